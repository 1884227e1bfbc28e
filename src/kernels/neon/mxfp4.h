/* kernels/neon/mxfp4.h - blocks of MXFP4 to pack: codes as in the file, which a table turns into doubled values, and scales as the upper halves of floats. */
#ifndef PN_NEON_MXFP4_H
#define PN_NEON_MXFP4_H

#include "kernels/neon/tile.h"

static const int8_t mxfp4_doubled[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline void mxfp4_nibbles(pn_codes *c, const uint8_t *block)
{
    for (int i = 0; i < 32; i++) c->w[i] = (int8_t)(block[1 + i % 16] >> (i / 16 * 4) & 15);
}

static inline void mxfp4_read(tile_codes *t, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_read(t, mxfp4_nibbles, false, src, row_bytes, n_valid);
    for (int64_t r = 0; r < n_valid; r++) t->d[r] = pn_e8m0_half_bf16(src[(uint64_t)r * row_bytes]);
}

#endif
