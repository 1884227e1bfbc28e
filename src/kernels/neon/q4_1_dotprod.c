/* kernels/neon/q4_1_dotprod.c - Q4_1 on cores with sdot: nibbles, a scale and a minimum per 32 columns. */
#include "kernels/neon/nibbles_dotprod.h"

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q4_1, false, src, row_bytes, n_valid);
    nibbles_pack(dst, &t, NIBBLES_MINIMA);
}

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y) { nibbles_tile_1(w, x, k, y, NIBBLES_MINIMA); }
static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y) { nibbles_tile_4(w, x, k, y, NIBBLES_MINIMA); }

TILE_KERNEL(q4_1, dotprod, 32, 20, nibbles_bytes(NIBBLES_MINIMA))
