/* bench/ssm_cycles.c - calls the selective scan of Mamba-2 often, for a cycle model to count: make CONFIG=arm64 build/arm64/bench/ssm_cycles, then
 *   ../shared/tools/armmodel/armmodel --core cortex-a55 --json FILE -- build/arm64/bench/ssm_cycles 1 8
 *
 *   ssm_cycles ROWS CALLS   24 heads of 64 channels and 128 states, ROWS at once; prints the number of values of the state times rows */
#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>

enum { n_heads = 24, head = 64, d_state = 128, max_rows = 8, stride = head + 2 * d_state };

static float *allocate(size_t n)
{
    float *p = aligned_alloc(64, n * sizeof *p);
    if (!p) exit(1);
    for (size_t i = 0; i < n; i++) p[i] = 1.0f / (float)(64 + i % 61); /* as a decay, too: the state stays bounded */
    return p;
}

int main(int argc, char **argv)
{
    const int n_rows = argc == 3 ? atoi(argv[1]) : 0, calls = argc == 3 ? atoi(argv[2]) : 0;
    if (n_rows < 1 || n_rows > max_rows) return fputs("usage: ssm_cycles ROWS CALLS\n", stderr), 2;
    const pn_ops *ops = pn_ops_best(pn_cpu_features());
    const size_t floats = (size_t)pn_ssm_floats(head, d_state);
    float *state = allocate(n_heads * floats), *x = allocate(max_rows * stride), *y = allocate(max_rows * stride), *steps = allocate(16);
    pn_ssm_rows rows = {.y = y, .x = x, .b = x + head, .c = x + head + d_state, .stride = stride, .decay = steps, .step = steps, .skip = 1, .n_rows = n_rows, .n = head, .d_state = d_state};
    for (int i = 0; i < calls; i++)
        for (int h = 0; h < n_heads; h++) {
            rows.state = state + (size_t)h * floats;
            ops->ssm(&rows);
        }
    printf("%.0f\n", (double)n_heads * head * d_state * n_rows * calls);
    return 0;
}
