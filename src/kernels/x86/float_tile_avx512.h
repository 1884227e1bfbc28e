/* kernels/x86/float_tile_avx512.h - rows x columns of fused multiply-adds over interleaved float weights: for the float formats and the exact path. */
#ifndef PN_X86_FLOAT_TILE_AVX512_H
#define PN_X86_FLOAT_TILE_AVX512_H

#include "kernels/x86/avx512.h"

typedef __m512 (*load_16_fn)(const uint8_t *p);

/* n columns x n_groups groups of 16 rows, `step` bytes apart; the mask holds for the last group. Each sum takes k ascending. */
PN_INLINE void float_tile(int n, int n_groups, load_16_fn load, int element, const uint8_t *w, size_t step, int64_t k, const columns *cols, int64_t row,
                          __mmask16 mask)
{
    __m512 acc[TILE];
    PN_UNROLL for (int i = 0; i < n * n_groups; i++) acc[i] = _mm512_setzero_ps();
    for (int64_t i = 0; i < k; i++) {
        PN_UNROLL for (int g = 0; g < n_groups; g++)
        {
            const __m512 weights = load(w + (size_t)g * step + i * LANES * element);
            PN_UNROLL for (int c = 0; c < n; c++) acc[g * n + c] = _mm512_fmadd_ps(weights, splat_f32(cols->x[c] + i * 4), acc[g * n + c]);
        }
    }
    PN_UNROLL for (int g = 0; g < n_groups; g++)
    {
        PN_UNROLL for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(cols->y[c] + row + g * LANES, g == n_groups - 1 ? mask : (__mmask16)0xffff, acc[g * n + c]);
    }
}

#endif
