/* kernels/x86/float_avx512.h - mat-mul of weights that are floats of 4 or 2 bytes and activations in float, 16 rows at a time.
 *
 * A template: the file of a format includes it after defining ELEMENT (bytes) and load_16(p), 16 weights as float. Packed group: for each k the 16
 * rows' weights, the end padded to 64 bytes. A single column takes 4 groups at once, since one row is one chain of fused multiply-adds. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/float_tile_avx512.h"

static uint64_t group_bytes(int64_t k) { return pn_round_up((uint64_t)k * LANES * ELEMENT, 64); }

static void pack(void *dst, const void *src, int64_t n_valid, int64_t k)
{
    uint8_t *out = dst;
    const int64_t per_step = 32 / ELEMENT;
    pack_rows rows;
    pack_begin(&rows, src, n_valid, (size_t)k * ELEMENT, 32);
    int64_t at = 0;
    for (; at + per_step <= k; at += per_step, pack_next(&rows)) {
        __m512i v[8];
        pack_32(v, &rows, 0);
        PN_UNROLL for (int i = 0; i < 8; i++) store_units(out + at * LANES * ELEMENT + i * 64, v[i]);
    }
    for (int64_t i = 0; at < k; at++, i++)
        for (int r = 0; r < LANES; r++) memcpy(out + (at * LANES + r) * ELEMENT, rows.at[r] + i * ELEMENT, ELEMENT);
    memset(out + k * LANES * ELEMENT, 0, (size_t)(group_bytes(k) - (uint64_t)k * LANES * ELEMENT));
}

static void gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    (void)scratch;
    const uint64_t step = group_bytes(mm->k);
    const uint8_t *group = (const uint8_t *)mm->w + (uint64_t)(row0 / LANES) * step;
    columns cols;
    columns_take(&cols, mm, 0, 1);
    int64_t row = row0;
    for (; row + 4 * LANES <= row1; row += 4 * LANES, group += 4 * step) float_tile(1, 4, load_16, ELEMENT, group, step, mm->k, &cols, row, 0xffff);
    for (; row < row1; row += LANES, group += step) float_tile(1, 1, load_16, ELEMENT, group, step, mm->k, &cols, row, rows_mask(row, row1));
}

static void gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    (void)scratch;
    const uint64_t step = group_bytes(mm->k);
    const uint8_t *group = (const uint8_t *)mm->w + (uint64_t)(row0 / LANES) * step;
    for (int64_t row = row0; row < row1; row += LANES, group += step) {
        const __mmask16 mask = rows_mask(row, row1);
        for (int64_t c = 0; c < mm->n_cols; c += TILE) {
            columns cols;
            const int n = mm->n_cols - c > 4 ? TILE : 4;
            columns_take(&cols, mm, c, n);
            if (n == TILE) float_tile(TILE, 1, load_16, ELEMENT, group, step, mm->k, &cols, row, mask);
            else float_tile(4, 1, load_16, ELEMENT, group, step, mm->k, &cols, row, mask);
        }
    }
}

static uint64_t scratch_bytes(int64_t k)
{
    (void)k;
    return 0;
}
