/* kernels/neon/dot.h - what the dotprod kernels share. A weight vector holds 4 rows x 4 columns, byte 4*r + j = row r, column j, so that
 * `sdot` by lane meets it with 4 activations of a row of x; half h of a group is its rows 4h .. 4h+3. */
#ifndef PN_NEON_DOT_H
#define PN_NEON_DOT_H

#include "kernels/neon/pin.h"
#include "kernels/neon/tile.h"

#include <stddef.h>

/* Byte i of the vector for half h and columns 4*quad .. 4*quad+3. */
static inline uint8_t dot_code(const tile_codes *t, int h, int quad, int i) { return (uint8_t)t->row[4 * h + i / 4].w[4 * quad + i % 4]; }

/* Where the next block's data are: the pipelines load ahead, and the last block loads itself again. */
static inline const uint8_t *dot_next(const uint8_t *p, int64_t left, int64_t step) { return left > 1 ? p + step : p; }

/* ---- nibbles: the vector for columns of quads 2p (low nibbles) and 2p+1 (high ones) is a "pair" ----
 * The unpacked pair meets the activations; of the next one, raw, low and high parts are taken; the next but one is loaded. LOW and HIGH
 * are the format's unpacking. `fill_1`, `fill_2`: work that hides the latency of sdot. */
#define DOT_PAIR(sum, low, high, x, lane, raw, later, from, off, LOW, HIGH, fill_1, fill_2) \
    do {                                                                                   \
        V_SDOT((sum)[0], (low)[0], x, lane);                                               \
        V_LDR((later)[0], from, off);                                                      \
        V_SDOT((sum)[1], (low)[1], x, lane);                                               \
        V_LDR((later)[1], from, (off) + 16);                                               \
        LOW((low)[0], (raw)[0]);                                                           \
        LOW((low)[1], (raw)[1]);                                                           \
        fill_1;                                                                            \
        V_SDOT((sum)[0], (high)[0], x, (lane) + 1);                                        \
        V_SDOT((sum)[1], (high)[1], x, (lane) + 1);                                        \
        HIGH((high)[0], (raw)[0]);                                                         \
        HIGH((high)[1], (raw)[1]);                                                         \
        fill_2;                                                                            \
    } while (0)

/* The same for 4 columns; x_reload is DOT_COLUMNS_RELOAD with its rows and offset where the activations end, else DOT_COLUMNS. */
#define DOT_PAIR_4(sum, low, high, x, lane, raw, from, off, LOW, HIGH) \
    do {                                                               \
        DOT_PAIR_4_HEAD(sum, low, high, x, lane, raw, from, off, LOW, HIGH); \
        DOT_COLUMNS(sum, 1, (high)[1], x, (lane) + 1);                 \
        HIGH((high)[1], (raw)[1]);                                     \
        V_LDR((raw)[1], from, (off) + 16);                             \
    } while (0)
#define DOT_PAIR_4_RELOAD(sum, low, high, x, lane, raw, from, off, LOW, HIGH, rows, x_off) \
    do {                                                               \
        DOT_PAIR_4_HEAD(sum, low, high, x, lane, raw, from, off, LOW, HIGH); \
        DOT_COLUMNS_RELOAD(sum, 1, (high)[1], x, (lane) + 1, rows, x_off); \
        HIGH((high)[1], (raw)[1]);                                     \
        V_LDR((raw)[1], from, (off) + 16);                             \
    } while (0)
#define DOT_PAIR_4_HEAD(sum, low, high, x, lane, raw, from, off, LOW, HIGH) \
    DOT_COLUMNS(sum, 0, (low)[0], x, lane);                            \
    LOW((low)[0], (raw)[0]);                                           \
    DOT_COLUMNS(sum, 1, (low)[1], x, lane);                            \
    LOW((low)[1], (raw)[1]);                                           \
    DOT_COLUMNS(sum, 0, (high)[0], x, (lane) + 1);                     \
    HIGH((high)[0], (raw)[0]);                                         \
    V_LDR((raw)[0], from, off)

/* ---- 8 rows x 4 columns: sums i[2*c + h] of column c, half h ---- */

#define DOT_ZERO_8(i) \
    V_ZERO((i)[0]);   \
    V_ZERO((i)[1]);   \
    V_ZERO((i)[2]);   \
    V_ZERO((i)[3]);   \
    V_ZERO((i)[4]);   \
    V_ZERO((i)[5]);   \
    V_ZERO((i)[6]);   \
    V_ZERO((i)[7])

/* One weight vector of half h meets lane `lane` of the four columns' activations. */
#define DOT_COLUMNS(i, h, w, x, lane)      \
    V_SDOT((i)[0 + (h)], w, (x)[0], lane); \
    V_SDOT((i)[2 + (h)], w, (x)[1], lane); \
    V_SDOT((i)[4 + (h)], w, (x)[2], lane); \
    V_SDOT((i)[6 + (h)], w, (x)[3], lane)

/* The same, and the activations are spent: each is reloaded from its row at `off`. */
#define DOT_COLUMNS_RELOAD(i, h, w, x, lane, rows, off) \
    V_SDOT((i)[0 + (h)], w, (x)[0], lane);              \
    V_LDR((x)[0], (rows)[0], off);                      \
    V_SDOT((i)[2 + (h)], w, (x)[1], lane);              \
    V_LDR((x)[1], (rows)[1], off);                      \
    V_SDOT((i)[4 + (h)], w, (x)[2], lane);              \
    V_LDR((x)[2], (rows)[2], off);                      \
    V_SDOT((i)[6 + (h)], w, (x)[3], lane);              \
    V_LDR((x)[3], (rows)[3], off)

/* sum += dot * scale of the half */
#define DOT_WEIGH_8(sum, dot, scale_0, scale_1)    \
    V_MLA_4S((sum)[0], (dot)[0], scale_0);         \
    V_MLA_4S((sum)[2], (dot)[2], scale_0);         \
    V_MLA_4S((sum)[4], (dot)[4], scale_0);         \
    V_MLA_4S((sum)[6], (dot)[6], scale_0);         \
    V_MLA_4S((sum)[1], (dot)[1], scale_1);         \
    V_MLA_4S((sum)[3], (dot)[3], scale_1);         \
    V_MLA_4S((sum)[5], (dot)[5], scale_1);         \
    V_MLA_4S((sum)[7], (dot)[7], scale_1)

/* y = fma(convert(i), dw * da, y) for two columns c, c+1 of act32 blocks at p, q; the halves' scales are in d0, d1. */
#define DOT_SCALE_2(y, i, c, d0, d1, p, q, convert)\
    do {                                         \
        float32x4_t s0, s1, s2, s3;              \
        V_LDR_S(s1, p, 32);                      \
        V_LDR_S(s3, q, 32);                      \
        convert((i)[2 * (c)], (i)[2 * (c)]); \
        convert((i)[2 * (c) + 1], (i)[2 * (c) + 1]); \
        V_FMUL_LANE(s0, d0, s1, 0);              \
        V_FMUL_LANE(s1, d1, s1, 0);              \
        V_FMUL_LANE(s2, d0, s3, 0);              \
        V_FMUL_LANE(s3, d1, s3, 0);              \
        convert((i)[2 * (c) + 2], (i)[2 * (c) + 2]); \
        convert((i)[2 * (c) + 3], (i)[2 * (c) + 3]); \
        V_FMLA((y)[2 * (c)], (i)[2 * (c)], s0);  \
        V_FMLA((y)[2 * (c) + 1], (i)[2 * (c) + 1], s1); \
        V_FMLA((y)[2 * (c) + 2], (i)[2 * (c) + 2], s2); \
        V_FMLA((y)[2 * (c) + 3], (i)[2 * (c) + 3], s3); \
    } while (0)

/* y = fma(m, s, y) for the same columns: m0, m1 hold the minima of the halves. */
#define DOT_MINIMUM_2(y, c, m0, m1, p, q)            \
    do {                                             \
        float32x4_t s_p, s_q;                        \
        V_LDR_S(s_p, p, 36);                         \
        V_LDR_S(s_q, q, 36);                         \
        V_FMLA_LANE((y)[2 * (c)], m0, s_p, 0);       \
        V_FMLA_LANE((y)[2 * (c) + 1], m1, s_p, 0);   \
        V_FMLA_LANE((y)[2 * (c) + 2], m0, s_q, 0);   \
        V_FMLA_LANE((y)[2 * (c) + 3], m1, s_q, 0);   \
    } while (0)

#endif
