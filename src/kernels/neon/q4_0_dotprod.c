/* kernels/neon/q4_0_dotprod.c - Q4_0 on cores with sdot: nibbles in two's complement, one scale per 32 columns. */
#include "kernels/neon/nibbles_dotprod.h"

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q4_0, false, src, row_bytes, n_valid);
    nibbles_pack(dst, &t, NIBBLES_PLAIN);
}

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y) { nibbles_tile_1(w, x, k, y, NIBBLES_PLAIN); }
static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y) { nibbles_tile_4(w, x, k, y, NIBBLES_PLAIN); }

TILE_KERNEL(q4_0, dotprod, 32, 18, nibbles_bytes(NIBBLES_PLAIN))
