/* kernels/scalar/float_scalar.c - weights in f32, f16 and bf16 times activations in float: the definition. */
#include "kernels/registry.h"
#include "quant/codes.h"

#include <math.h>

static float load_f32(const uint8_t *w, int64_t k) { return pn_load_f32(w + 4 * k); }
static float load_f16(const uint8_t *w, int64_t k) { return pn_load_f16(w + 2 * k); }
static float load_bf16(const uint8_t *w, int64_t k) { return pn_load_bf16(w + 2 * k); }

/* acc = fma(w, x, acc), k ascending. Weights may be unaligned: they lie as the file has them. */
static inline void multiply(const pn_mm *mm, int64_t row0, int64_t row1, int64_t bytes, float (*load)(const uint8_t *w, int64_t k))
{
    for (int64_t r = row0; r < row1; r++) {
        const uint8_t *w = (const uint8_t *)mm->w + r * mm->k * bytes;
        for (int64_t c = 0; c < mm->n_cols; c++) {
            const float *x = mm->x[c];
            float acc = 0;
            for (int64_t k = 0; k < mm->k; k++) acc = fmaf(load(w, k), x[k], acc);
            mm->y[c][r] = acc;
        }
    }
}

#define SCALAR(type, bytes)                                                                                                              \
    void pn_##type##__scalar_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)                                            \
    {                                                                                                                                    \
        (void)scratch;                                                                                                                   \
        multiply(mm, row0, row1, bytes, load_##type);                                                                                    \
    }                                                                                                                                    \
    void pn_##type##__scalar_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { pn_##type##__scalar_gemm(mm, row0, row1, scratch); }

SCALAR(f32, 4)
SCALAR(f16, 2)
SCALAR(bf16, 2)
