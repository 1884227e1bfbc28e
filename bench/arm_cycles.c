/* bench/arm_cycles.c - calls one kernel often, for a cycle model to count (bench/arm_cycles.sh).
 *
 *   arm_cycles list              names of all packed kernels
 *   arm_cycles NAME COLUMNS CALLS   prints the number of weights times columns that were multiplied */
#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>

enum { n_rows = 256, row_length = 2048, max_columns = 16 };

static const pn_kernel *find(const char *name)
{
    for (size_t i = 0; pn_kernel_at(i); i++)
        if (strcmp(pn_kernel_at(i)->name, name) == 0) return pn_kernel_at(i);
    return NULL;
}

static int list(void)
{
    for (size_t i = 0; pn_kernel_at(i); i++)
        if (pn_kernel_at(i)->group_bytes) puts(pn_kernel_at(i)->name);
    return 0;
}

static void *allocate(uint64_t bytes)
{
    void *p = aligned_alloc(64, (size_t)pn_round_up(bytes + 1, 64));
    if (!p) exit(1);
    return memset(p, 1, (size_t)bytes); /* small scales and codes in every format: nothing overflows to infinity */
}

static void *pack(const pn_kernel *kernel)
{
    uint64_t bytes, row_bytes;
    if (!pn_kernel_matrix_bytes(kernel, n_rows, row_length, &bytes) || !pn_row_bytes(kernel->weight, row_length, &row_bytes)) exit(1);
    uint8_t *w = allocate(bytes), *file = allocate(row_bytes * n_rows);
    for (int r = 0; r < n_rows; r += kernel->rows)
        kernel->pack(w + (uint64_t)(r / kernel->rows) * kernel->group_bytes(row_length), file + (uint64_t)r * row_bytes, kernel->rows, row_length);
    free(file);
    return w;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) return list();
    const pn_kernel *kernel = argc == 4 ? find(argv[1]) : NULL;
    const int columns = kernel ? atoi(argv[2]) : 0, calls = kernel ? atoi(argv[3]) : 0;
    if (columns < 1 || columns > max_columns) return fputs("usage: arm_cycles list | arm_cycles NAME COLUMNS CALLS\n", stderr), 2;
    const void *x[max_columns];
    float *y[max_columns];
    const pn_act act = pn_type_get((uint32_t)kernel->weight)->act;
    for (int c = 0; c < columns; c++) {
        x[c] = allocate(pn_act_bytes(act, row_length));
        y[c] = allocate(n_rows * sizeof(float));
    }
    const pn_mm mm = {pack(kernel), n_rows, row_length, x, y, columns};
    void *scratch = allocate(kernel->scratch_bytes(row_length));
    for (int i = 0; i < calls; i++) (columns == 1 ? kernel->gemv : kernel->gemm)(&mm, 0, n_rows, scratch);
    printf("%.0f\n", (double)n_rows * row_length * columns * calls);
    return 0;
}
