/* kernels/neon/rows.h - what the kernels for cores without sdot share. A weight vector holds 16 columns of one row; products of 8 bits are
 * summed in 16-bit lanes, and lanes are joined over 4 rows. Half h of a group is its rows 4h .. 4h+3.
 *
 * Eight chains of multiplications run side by side: on A53 each step of a chain takes 6 cycles. */
#ifndef PN_NEON_ROWS_H
#define PN_NEON_ROWS_H

#include "kernels/neon/pin.h"
#include "kernels/neon/tile.h"

#include <stddef.h>

/* Sums of 4 rows of two columns or halves, t and u, in fixed registers. Macros paste their names. */
#define ROWS_VARIABLES(type)      \
    PIN_VARIABLE(type, t0, 16);   \
    PIN_VARIABLE(type, t1, 17);   \
    PIN_VARIABLE(type, t2, 18);   \
    PIN_VARIABLE(type, t3, 19);   \
    PIN_VARIABLE(type, u0, 20);   \
    PIN_VARIABLE(type, u1, 21);   \
    PIN_VARIABLE(type, u2, 22);   \
    PIN_VARIABLE(type, u3, 23)

#define ROWS_EACH(OP, t, w, x)    \
    do {                          \
        OP(t##0, (w)[0], x);    \
        OP(t##1, (w)[1], x);    \
        OP(t##2, (w)[2], x);    \
        OP(t##3, (w)[3], x);    \
    } while (0)

/* Four products a lane: |w| <= 64. t from rows w0 (16 columns) and w1 (the next 16) with x0, x1; u from v0, v1 with z0, z1. */
#define ROWS_DOT_32(t, w0, w1, x0, x1, u, v0, v1, z0, z1) \
    do {                                                  \
        ROWS_EACH(V_SMULL, t, w0, x0);                    \
        ROWS_EACH(V_SMULL, u, v0, z0);                    \
        ROWS_EACH(V_SMLAL2, t, w0, x0);                   \
        ROWS_EACH(V_SMLAL2, u, v0, z0);                   \
        ROWS_EACH(V_SMLAL, t, w1, x1);                    \
        ROWS_EACH(V_SMLAL, u, v1, z1);                    \
        ROWS_EACH(V_SMLAL2, t, w1, x1);                   \
        ROWS_EACH(V_SMLAL2, u, v1, z1);                   \
    } while (0)

/* Lanes r0 r0 r1 r1 r2 r2 r3 r3 of 16 bits in t0, of u in u0: 16 products a lane, |w| <= 16. */
#define ROWS_JOIN(t, u)                  \
    do {                                 \
        V_ADDP_8H(t##0, t##0, t##1); \
        V_ADDP_8H(t##2, t##2, t##3); \
        V_ADDP_8H(u##0, u##0, u##1); \
        V_ADDP_8H(u##2, u##2, u##3); \
        V_ADDP_8H(t##0, t##0, t##2); \
        V_ADDP_8H(u##0, u##0, u##2); \
    } while (0)

/* y = fma(float(t0 by pairs), d*da, y) for two results; p, q: where the activation scales are. */
#define ROWS_SCALE(y0, t, d_t, p, y1, u, d_u, q) \
    do {                                         \
        float32x4_t s_t, s_u;                    \
        V_LDR_S(s_t, p, 32);                     \
        V_LDR_S(s_u, q, 32);                     \
        V_SADDLP(t##0, t##0);                \
        V_SADDLP(u##0, u##0);                \
        V_FMUL_LANE(s_t, d_t, s_t, 0);           \
        V_FMUL_LANE(s_u, d_u, s_u, 0);           \
        V_SCVTF(t##0, t##0);                 \
        V_SCVTF(u##0, u##0);                 \
        V_FMLA(y0, t##0, s_t);                 \
        V_FMLA(y1, u##0, s_u);                 \
    } while (0)

/* Codes as nibbles: low ones are columns 0..15. */
static inline void rows_pack_nibbles(uint8_t *dst, const tile_codes *t)
{
    for (int r = 0; r < TILE_ROWS; r++)
        for (int i = 0; i < 16; i++) dst[16 * r + i] = (uint8_t)((t->row[r].w[i] & 15) | t->row[r].w[16 + i] << 4);
}
#define ROWS_UNPACK_NIBBLES(LOW, HIGH, lo, hi, p, off)    \
    do {                                             \
        V_LDR((hi)[0], p, off);                      \
        V_LDR((hi)[1], p, (off) + 16);               \
        V_LDR((hi)[2], p, (off) + 32);               \
        V_LDR((hi)[3], p, (off) + 48);               \
        LOW((lo)[0], (hi)[0]);                       \
        LOW((lo)[1], (hi)[1]);                       \
        LOW((lo)[2], (hi)[2]);                       \
        LOW((lo)[3], (hi)[3]);                       \
        HIGH((hi)[0], (hi)[0], 4);                   \
        HIGH((hi)[1], (hi)[1], 4);                   \
        HIGH((hi)[2], (hi)[2], 4);                   \
        HIGH((hi)[3], (hi)[3], 4);                   \
    } while (0)

#endif
