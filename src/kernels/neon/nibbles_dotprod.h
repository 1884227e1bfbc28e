/* kernels/neon/nibbles_dotprod.h - the tiles of 4-bit formats with one scale per 32 columns, on cores with sdot. A packed block of 8 rows
 * x 32 columns:
 *
 *   with minima (Q4_1)   8 half minima, 8 half scales, 4 pairs (dot.h), half 0 before half 1; nibbles are codes 0..15
 *   without (Q4_0)       8 half scales, 4 pairs; nibbles are codes in two's complement, so that both unpack to 16 times the signed code
 *                        without a subtraction; sums stay below 2^24 and lose the factor when they become float
 *   a table (MXFP4)      as without minima, but scales are upper halves of floats, and codes are looked up
 *
 * `form` is a constant in every function here. */
#ifndef PN_NEON_NIBBLES_DOTPROD_H
#define PN_NEON_NIBBLES_DOTPROD_H

#include "kernels/neon/dot.h"
#include "kernels/neon/mxfp4.h"

enum { NIBBLES_X_SCALES = 32 /* d and s of pn_act32 */ };
typedef enum nibbles_form { NIBBLES_PLAIN, NIBBLES_MINIMA, NIBBLES_TABLE } nibbles_form;

/* Where the pairs begin in a block, and its size. */
static inline int64_t nibbles_codes(nibbles_form form) { return form == NIBBLES_MINIMA ? 32 : 16; }
static inline int64_t nibbles_bytes(nibbles_form form) { return nibbles_codes(form) + 128; }

static inline void nibbles_pack(uint8_t *dst, const tile_codes *t, nibbles_form form)
{
    if (form == NIBBLES_MINIMA) memcpy(dst, t->m, 16);
    dst += nibbles_codes(form);
    memcpy(dst - 16, t->d, 16);
    for (int pair = 0; pair < 4; pair++)
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < 16; i++)
                dst[32 * pair + 16 * h + i] = (uint8_t)((dot_code(t, h, 2 * pair, i) & 15) | dot_code(t, h, 2 * pair + 1, i) << 4);
}

#define NIBBLES_LOW(d, raw)                               \
    do {                                                  \
        if (form == NIBBLES_PLAIN) V_SHL(d, raw, 4);      \
        else V_AND(d, raw, mask);                         \
    } while (0)
#define NIBBLES_HIGH(d, raw)                              \
    do {                                                  \
        if (form == NIBBLES_PLAIN) V_AND(d, raw, mask);   \
        else V_USHR(d, raw, 4);                           \
    } while (0)
/* Some instructions after LOW or HIGH, for which it would wait. */
#define NIBBLES_LOOK(d)                                   \
    do {                                                  \
        if (form == NIBBLES_TABLE) V_TBL(d, values, d);   \
    } while (0)
#define NIBBLES_LOW_LOOK(d, raw)                          \
    do {                                                  \
        NIBBLES_LOW(d, raw);                              \
        NIBBLES_LOOK(d);                                  \
    } while (0)
#define NIBBLES_HIGH_LOOK(d, raw)                         \
    do {                                                  \
        NIBBLES_HIGH(d, raw);                             \
        NIBBLES_LOOK(d);                                  \
    } while (0)
#define NIBBLES_CONVERT(d, a)                             \
    do {                                                  \
        if (form == NIBBLES_PLAIN) V_SCVTF_16(d, a);      \
        else V_SCVTF(d, a);                               \
    } while (0)
#define NIBBLES_SCALES_0(d, raw)                          \
    do {                                                  \
        if (form == NIBBLES_TABLE) V_SHLL(d, raw);        \
        else V_FCVTL(d, raw);                             \
    } while (0)
#define NIBBLES_SCALES_1(d, raw)                          \
    do {                                                  \
        if (form == NIBBLES_TABLE) V_SHLL2(d, raw);       \
        else V_FCVTL2(d, raw);                            \
    } while (0)

#define NIBBLES_PAIR(sum, x, lane, raw, later, from, off, slot_0, slot_1, last)                                              \
    DOT_PAIR(sum, low, high, x, lane, raw, later, from, off, NIBBLES_LOW, NIBBLES_HIGH, slot_0; NIBBLES_LOOK(low[0]),         \
             slot_1; NIBBLES_LOOK(low[1]), last; NIBBLES_LOOK(high[0]); NIBBLES_LOOK(high[1]))

/* The block at w, x; its dots go to `sum`. The float work of the block before, whose dots are in `before`, is done meanwhile, and `before` made
 * ready for the next block, which lies at next_w, next_x. */
#define NIBBLES_BLOCK(sum, before, next_w, next_x)                                                                            \
    do {                                                                                                                      \
        const uint8_t *nw = next_w, *nx = next_x;                                                                             \
        NIBBLES_PAIR(sum, v0, 0, r, s, w, 64, V_LDR(v1, x, 16), V_LDR(halves, w, -16),                                        \
                     NIBBLES_CONVERT(f0, before##0); NIBBLES_CONVERT(f1, before##1));                                         \
        NIBBLES_PAIR(sum, v0, 2, s, r, w, 96, if (form == NIBBLES_MINIMA) V_LDR(offsets, w, -32), V_LDR(v0, nx, 0),           \
                     V_FMLA(y0, f0, d0); V_FMLA(y1, f1, d1));                                                                 \
        NIBBLES_PAIR(sum, v1, 0, r, s, nw, 0, NIBBLES_SCALES_0(d0, halves), NIBBLES_SCALES_1(d1, halves),                     \
                     if (form == NIBBLES_MINIMA) V_FMLA_LANE(y0, m0, xs, 1); if (form == NIBBLES_MINIMA) V_FMLA_LANE(y1, m1, xs, 1)); \
        V_LDR(xs, x, NIBBLES_X_SCALES);                                                                                       \
        if (form == NIBBLES_MINIMA) V_FCVTL(m0, offsets);                                                                     \
        if (form == NIBBLES_MINIMA) V_FCVTL2(m1, offsets);                                                                    \
        NIBBLES_PAIR(sum, v1, 2, s, r, nw, 32, V_ZERO(before##0), V_ZERO(before##1),                                          \
                     V_FMUL_LANE(d0, d0, xs, 0); V_FMUL_LANE(d1, d1, xs, 0));                                                 \
        w = nw;                                                                                                               \
        x = nx;                                                                                                               \
    } while (0)

static inline __attribute__((always_inline)) void nibbles_tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y, nibbles_form form)
{
    const int64_t block_bytes = nibbles_bytes(form);
    const uint8x16_t mask = vdupq_n_u8(form == NIBBLES_PLAIN ? 0xf0 : 15), values = vreinterpretq_u8_s8(vld1q_s8(mxfp4_doubled));
    const float32x4_t zero = vdupq_n_f32(0);
    (void)values; /* MXFP4 alone needs it */
    PIN_VARIABLE(int32x4_t, p0, 16);
    PIN_VARIABLE(int32x4_t, p1, 17);
    PIN_VARIABLE(int32x4_t, q0, 18);
    PIN_VARIABLE(int32x4_t, q1, 19);
    uint8x16_t low[2], high[2], r[2], s[2], v0, v1, halves, offsets;
    float32x4_t y0 = zero, y1 = zero, f0, f1, d0 = zero, d1 = zero, m0 = zero, m1 = zero, xs = zero;
    w += nibbles_codes(form);
    V_LDR(s[0], w, 0);
    V_LDR(s[1], w, 16);
    V_LDR(r[0], w, 32);
    V_LDR(r[1], w, 48);
    V_LDR(v0, x, 0);
    V_ZERO(p0);
    V_ZERO(p1);
    V_ZERO(q0);
    V_ZERO(q1);
    NIBBLES_LOW_LOOK(low[0], s[0]);
    NIBBLES_LOW_LOOK(low[1], s[1]);
    NIBBLES_HIGH_LOOK(high[0], s[0]);
    NIBBLES_HIGH_LOOK(high[1], s[1]);
    int64_t left = k / 32;
    for (; left >= 2; left -= 2) {
        NIBBLES_BLOCK(p, q, w + block_bytes, x + sizeof(pn_act32));
        NIBBLES_BLOCK(q, p, dot_next(w, left - 1, block_bytes), dot_next(x, left - 1, sizeof(pn_act32)));
    }
    if (left) {
        NIBBLES_BLOCK(p, q, w, x);
        NIBBLES_CONVERT(f0, p0);
        NIBBLES_CONVERT(f1, p1);
    } else {
        NIBBLES_CONVERT(f0, q0);
        NIBBLES_CONVERT(f1, q1);
    }
    V_FMLA(y0, f0, d0);
    V_FMLA(y1, f1, d1);
    if (form == NIBBLES_MINIMA) V_FMLA_LANE(y0, m0, xs, 1);
    if (form == NIBBLES_MINIMA) V_FMLA_LANE(y1, m1, xs, 1);
    vst1q_f32(y, y0);
    vst1q_f32(y + 4, y1);
}

static inline __attribute__((always_inline)) void nibbles_tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *out, nibbles_form form)
{
    const int64_t block_bytes = nibbles_bytes(form);
    const uint8x16_t mask = vdupq_n_u8(form == NIBBLES_PLAIN ? 0xf0 : 15), values = vreinterpretq_u8_s8(vld1q_s8(mxfp4_doubled));
    uint8x16_t low[2], high[2], v0, v1, v2, v3, halves;
    DOT_VARIABLES(int32x4_t, sum, 16, 17, 18, 19, 20, 21, 22, 23);
    DOT_VARIABLES(float32x4_t, y, 24, 25, 26, 27, 28, 29, 30, 31);
    float32x4_t d0, d1;
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    (void)values; /* MXFP4 alone needs it */
    DOT_ZERO_8(y);
    w += nibbles_codes(form);
    DOT_PAIR_4_START(low, high, w, NIBBLES_LOW_LOOK, NIBBLES_HIGH_LOOK);
    DOT_LOAD_4(v, row, 0);
    for (int64_t left = k / 32; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, block_bytes);
        const int64_t step = dot_step(left, sizeof(pn_act32));
        const uint8_t *next[4] = {row[0] + step, row[1] + step, row[2] + step, row[3] + step};
        DOT_ZERO_8(sum);
        DOT_PAIR_4(sum, low, high, v, 0, w, 32, NIBBLES_LOW_LOOK, NIBBLES_HIGH_LOOK);
        DOT_PAIR_4_RELOAD(sum, low, high, v, 2, w, 64, NIBBLES_LOW_LOOK, NIBBLES_HIGH_LOOK, row, 16);
        DOT_PAIR_4(sum, low, high, v, 0, w, 96, NIBBLES_LOW_LOOK, NIBBLES_HIGH_LOOK);
        V_LDR(halves, w, -16);
        DOT_PAIR_4_RELOAD(sum, low, high, v, 2, nw, 0, NIBBLES_LOW_LOOK, NIBBLES_HIGH_LOOK, next, 0);
        NIBBLES_SCALES_0(d0, halves);
        NIBBLES_SCALES_1(d1, halves);
        DOT_SCALE_2(y, sum, 0, 1, d0, d1, row[0], row[1], NIBBLES_CONVERT);
        DOT_SCALE_2(y, sum, 2, 3, d0, d1, row[2], row[3], NIBBLES_CONVERT);
        if (form == NIBBLES_MINIMA) {
            V_LDR(halves, w, -32);
            V_FCVTL(d0, halves);
            V_FCVTL2(d1, halves);
            DOT_MINIMUM_2(y, 0, 1, d0, d1, row[0], row[1]);
            DOT_MINIMUM_2(y, 2, 3, d0, d1, row[2], row[3]);
        }
        w = nw;
        for (int j = 0; j < 4; j++) row[j] = next[j];
    }
    DOT_STORE_8(out, y);
}

#endif
