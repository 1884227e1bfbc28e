/* bench/delta_cycles.c - calls the delta rule often, for a cycle model to count: make CONFIG=arm64 build/arm64/bench/delta_cycles, then
 *   ../shared/tools/armmodel/armmodel --core cortex-a55 --json FILE -- build/arm64/bench/delta_cycles 1 8
 *
 *   delta_cycles TOKENS CALLS   16 heads of 128 x 128, TOKENS at once; prints the number of values of the state times tokens */
#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>

enum { n_heads = 16, d = 128, max_tokens = 8 };

static float *allocate(size_t n)
{
    float *p = aligned_alloc(64, n * sizeof *p);
    if (!p) exit(1);
    for (size_t i = 0; i < n; i++) p[i] = 1.0f / (float)(64 + i % 61); /* keys of length below 1: the state stays bounded */
    return p;
}

int main(int argc, char **argv)
{
    const int n_tokens = argc == 3 ? atoi(argv[1]) : 0, calls = argc == 3 ? atoi(argv[2]) : 0;
    if (n_tokens < 1 || n_tokens > max_tokens) return fputs("usage: delta_cycles TOKENS CALLS\n", stderr), 2;
    const pn_ops *ops = pn_ops_best(pn_cpu_features());
    float *state = allocate((size_t)n_heads * d * d), *keys = allocate(4 * d * max_tokens), *v = allocate(d), *out = allocate(d * max_tokens);
    pn_delta_token tokens[max_tokens];
    for (int t = 0; t < n_tokens; t++) tokens[t] = (pn_delta_token){keys + 4 * d * t, v, out + d * t, 0.1f, 0.5f, 0.1f};
    for (int i = 0; i < calls; i++)
        for (int h = 0; h < n_heads; h++) ops->delta_rule(state + (size_t)h * d * d, tokens, n_tokens, d, d);
    printf("%.0f\n", (double)n_heads * d * d * n_tokens * calls);
    return 0;
}
