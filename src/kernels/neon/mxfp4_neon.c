/* kernels/neon/mxfp4_neon.c - MXFP4 on cores without sdot: nibbles that are looked up, one scale per 32 columns. */
#include "kernels/neon/nibbles_neon.h"

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    mxfp4_read(&t, src, row_bytes, n_valid);
    nibbles_pack(dst, &t, NIBBLES_MXFP4);
}

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y) { nibbles_tile_1(w, x, k, y, NIBBLES_MXFP4); }
static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y) { nibbles_tile_4(w, x, k, y, NIBBLES_MXFP4); }

TILE_KERNEL(mxfp4, neon, 32, 17, nibbles_bytes(NIBBLES_MXFP4))
