/* kernels/neon/exact_neon.c - weights of any type in file layout times float activations: 16 rows are dequantised and turned into a tile
 * of float_tile.h. `scratch`: the tile, then one row. */
#include "kernels/neon/float_tile.h"
#include "kernels/neon/ops_neon.h"

_Static_assert(FLOAT_ROWS == PN_EXACT_ROWS, "pn_exact_scratch counts on it");

static void scatter(float *tile, const float *row, int64_t k)
{
    for (int64_t i = 0; i < k; i++) tile[i * FLOAT_ROWS] = row[i];
}

void pn_neon_exact(const pn_exact_mm *e, int64_t row0, int64_t row1, void *scratch)
{
    const pn_mm *mm = &e->mm;
    const pn_type_info *type = pn_type_get((uint32_t)e->type);
    const int64_t row_bytes = mm->k / type->block * type->bytes;
    float *tile = scratch, *one = tile + mm->k * FLOAT_ROWS;
    for (int64_t row = row0; row < row1; row += FLOAT_ROWS) {
        const int64_t n_valid = pn_min64(row1 - row, FLOAT_ROWS);
        if (n_valid < FLOAT_ROWS) memset(tile, 0, (size_t)mm->k * FLOAT_ROWS * sizeof *tile);
        for (int64_t r = 0; r < n_valid; r++) {
            type->dequantise(one, (const uint8_t *)mm->w + (row + r) * row_bytes, mm->k);
            scatter(tile + r, one, mm->k);
        }
        float_columns(mm, tile, row, n_valid, false);
    }
}
