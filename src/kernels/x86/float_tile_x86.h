/* kernels/x86/float_tile_x86.h - rows x columns of fused multiply-adds over interleaved float weights: for the float formats and the exact path.
 *
 * A template over the words of avx512.h or avx2.h, included after one of them. */

enum { max_sums = 12 };

typedef fvec (*load_weights_fn)(const uint8_t *p);

/* n columns x n_groups groups, `step` bytes apart; only the last group may end beyond row_end. Each sum takes k ascending. */
PN_INLINE void float_tile(int n, int n_groups, load_weights_fn load, int element, const uint8_t *w, size_t step, int64_t k, const columns *cols, int64_t row,
                          int64_t row_end)
{
    fvec acc[max_sums];
    PN_UNROLL for (int i = 0; i < n * n_groups; i++) acc[i] = f_zero();
    for (int64_t i = 0; i < k; i++) {
        fvec weights[max_sums];
        PN_UNROLL for (int g = 0; g < n_groups; g++) weights[g] = load(w + (size_t)g * step + i * LANES * element);
        PN_UNROLL for (int c = 0; c < n; c++)
        {
            const fvec x = f_splat(cols->x[c] + i * 4);
            PN_UNROLL for (int g = 0; g < n_groups; g++) acc[c * n_groups + g] = f_fma(weights[g], x, acc[c * n_groups + g]);
        }
    }
    PN_UNROLL for (int g = 0; g < n_groups; g++)
    {
        const row_mask mask = rows_mask(row + g * LANES, row_end);
        PN_UNROLL for (int c = 0; c < n; c++) f_store_rows(cols->y[c] + row + g * LANES, mask, acc[c * n_groups + g]);
    }
}
