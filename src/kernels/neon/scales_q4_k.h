/* kernels/neon/scales_q4_k.h - scales and minima of a packed Q4_K super-block of 8 rows, 128 bytes, as in the file only reordered:
 *
 *     0  8 half d
 *    16  8 half dmin
 *    32  4 vectors v = 2*half + j/4, byte 4*row + j%4: minimum of sub-block j in bits 0-5, top bits of its scale in bits 6-7
 *    96  2 vectors: low four bits of the scales of v (low nibbles) and of v + 2 (high nibbles)
 *
 * Where "half" is rows 0..3 or 4..7 of the group. */
#ifndef PN_NEON_SCALES_Q4_K_H
#define PN_NEON_SCALES_Q4_K_H

#include "kernels/neon/pin.h"
#include "kernels/neon/tile.h"

enum { MINIMA = 32, SCALES = 96, SCALES_BYTES = 128 };

static inline void pack_scales(uint8_t *dst, const tile_codes *t)
{
    memcpy(dst, t->d, 16);
    memcpy(dst + 16, t->m, 16);
    memset(dst + MINIMA, 0, SCALES_BYTES - MINIMA);
    for (int v = 0; v < 4; v++)
        for (int i = 0; i < 16; i++) {
            const pn_codes *c = &t->row[4 * (v / 2) + i / 4];
            const int j = 4 * (v % 2) + i % 4, scale = c->scale[2 * j];
            dst[MINIMA + 16 * v + i] = (uint8_t)(c->min[2 * j] | scale >> 4 << 6);
            dst[SCALES + 16 * (v % 2) + i] |= (uint8_t)((scale & 15) << 4 * (v / 2));
        }
}

/* Bytes of scales, vector v as in the picture. */
#define UNPACK_SCALES(scale, w)          \
    do {                                 \
        uint8x16_t top_0, top_1, top_2, top_3;       \
        V_LDR((scale)[0], w, SCALES);    \
        V_LDR((scale)[1], w, SCALES + 16); \
        V_LDR(top_0, w, MINIMA);            \
        V_LDR(top_1, w, MINIMA + 16);       \
        V_LDR(top_2, w, MINIMA + 32);       \
        V_LDR(top_3, w, MINIMA + 48);       \
        V_USHR((scale)[2], (scale)[0], 4); \
        V_USHR((scale)[3], (scale)[1], 4); \
        V_USHR(top_0, top_0, 6);               \
        V_USHR(top_1, top_1, 6);               \
        V_USHR(top_2, top_2, 6);               \
        V_USHR(top_3, top_3, 6);               \
        V_SLI((scale)[0], top_0, 4);        \
        V_SLI((scale)[1], top_1, 4);        \
        V_SLI((scale)[2], top_2, 4);        \
        V_SLI((scale)[3], top_3, 4);        \
    } while (0)

#define UNPACK_MINIMA(min, w)            \
    do {                                 \
        const uint8x16_t six_bits = vdupq_n_u8(63); \
        V_LDR((min)[0], w, MINIMA);      \
        V_LDR((min)[1], w, MINIMA + 16); \
        V_LDR((min)[2], w, MINIMA + 32); \
        V_LDR((min)[3], w, MINIMA + 48); \
        V_AND((min)[0], (min)[0], six_bits); \
        V_AND((min)[2], (min)[2], six_bits); \
        V_AND((min)[1], (min)[1], six_bits); \
        V_AND((min)[3], (min)[3], six_bits); \
    } while (0)

/* d[0], d[1]: d of halves 0 and 1; d[2], d[3]: dmin */
#define UNPACK_D(d, w)              \
    do {                            \
        uint8x16_t halves, minima;  \
        V_LDR(halves, w, 0);        \
        V_LDR(minima, w, 16);       \
        V_FCVTL((d)[0], halves);    \
        V_FCVTL2((d)[1], halves);   \
        V_FCVTL((d)[2], minima);    \
        V_FCVTL2((d)[3], minima);   \
    } while (0)

#endif
