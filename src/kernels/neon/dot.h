/* kernels/neon/dot.h - what the dotprod kernels share. A weight vector holds 4 rows x 4 columns, byte 4*r + j = row r, column j, so that
 * `sdot` by lane meets it with 4 activations of a row of x; half h of a group is its rows 4h .. 4h+3. */
#ifndef PN_NEON_DOT_H
#define PN_NEON_DOT_H

#include "kernels/neon/pin.h"
#include "kernels/neon/tile.h"

#include <stddef.h>

/* Byte i of the vector for half h and columns 4*quad .. 4*quad+3. */
static inline uint8_t dot_code(const tile_codes *t, int h, int quad, int i) { return (uint8_t)t->row[4 * h + i / 4].w[4 * quad + i % 4]; }

/* From one block to the next: the pipelines load ahead, and the last block loads itself again. A mask, because gcc makes a condition a branch. */
static inline int64_t dot_step(int64_t left, int64_t step) { return step & -(int64_t)(left > 1); }
static inline const uint8_t *dot_next(const uint8_t *p, int64_t left, int64_t step) { return p + dot_step(left, step); }

/* ---- nibbles: the vector for columns of quads 2p (low nibbles) and 2p+1 (high ones) is a "pair" ----
 * The unpacked pair meets the activations; of the next one, raw, low and high parts are taken; the next but one is loaded into `later`. LOW and
 * HIGH are the format's unpacking. sdot, something small, unpacking: so the modelled A55 is never idle and sums have their four cycles;
 * `slot_0`, `slot_1` are loads or half-width operations, `last` anything. sum: names, pasted. */
#define DOT_PAIR(sum, low, high, x, lane, raw, later, from, off, LOW, HIGH, slot_0, slot_1, last) \
    do {                                              \
        V_SDOT(sum##0, (low)[0], x, lane);            \
        V_LDR((later)[0], from, off);                 \
        LOW((low)[0], (raw)[0]);                      \
        V_SDOT(sum##1, (low)[1], x, lane);            \
        V_LDR((later)[1], from, (off) + 16);          \
        LOW((low)[1], (raw)[1]);                      \
        V_SDOT(sum##0, (high)[0], x, (lane) + 1);     \
        slot_0;                                       \
        HIGH((high)[0], (raw)[0]);                    \
        V_SDOT(sum##1, (high)[1], x, (lane) + 1);     \
        slot_1;                                       \
        HIGH((high)[1], (raw)[1]);                    \
        last;                                         \
    } while (0)

/* ---- 8 rows x 4 columns. Names are pasted: i##c##h is the vector of column c, half h; x##c the activations of column c. ---- */

/* Eight accumulators in fixed registers, columns 0..3, half 0 before half 1. */
#define DOT_VARIABLES(type, i, n00, n01, n10, n11, n20, n21, n30, n31) \
    PIN_VARIABLE(type, i##00, n00);                                    \
    PIN_VARIABLE(type, i##01, n01);                                    \
    PIN_VARIABLE(type, i##10, n10);                                    \
    PIN_VARIABLE(type, i##11, n11);                                    \
    PIN_VARIABLE(type, i##20, n20);                                    \
    PIN_VARIABLE(type, i##21, n21);                                    \
    PIN_VARIABLE(type, i##30, n30);                                    \
    PIN_VARIABLE(type, i##31, n31)

#define DOT_ZERO_4(i, h) \
    V_ZERO(i##0##h);     \
    V_ZERO(i##1##h);     \
    V_ZERO(i##2##h);     \
    V_ZERO(i##3##h)
#define DOT_ZERO_8(i)  \
    DOT_ZERO_4(i, 0); \
    DOT_ZERO_4(i, 1)

/* 16 activations of each column. */
#define DOT_LOAD_4(x, rows, off)   \
    V_LDR(x##0, (rows)[0], off);   \
    V_LDR(x##1, (rows)[1], off);   \
    V_LDR(x##2, (rows)[2], off);   \
    V_LDR(x##3, (rows)[3], off)

/* One weight vector of half h meets lane `lane` of the four columns' activations. */
#define DOT_COLUMNS(i, h, w, x, lane)  \
    V_SDOT(i##0##h, w, x##0, lane);    \
    V_SDOT(i##1##h, w, x##1, lane);    \
    V_SDOT(i##2##h, w, x##2, lane);    \
    V_SDOT(i##3##h, w, x##3, lane)

/* The same beside two loads. */
#define DOT_COLUMNS_LOAD(i, h, w, x, lane, a, b, from, off) \
    V_SDOT(i##0##h, w, x##0, lane);                         \
    V_LDR(a, from, off);                                    \
    V_SDOT(i##1##h, w, x##1, lane);                         \
    V_LDR(b, from, (off) + 16);                             \
    V_SDOT(i##2##h, w, x##2, lane);                         \
    V_SDOT(i##3##h, w, x##3, lane)

/* The same, and the activations are spent: each is reloaded from its row at `off`. */
#define DOT_COLUMNS_RELOAD(i, h, w, x, lane, rows, off) \
    V_SDOT(i##0##h, w, x##0, lane);                     \
    V_LDR(x##0, (rows)[0], off);                        \
    V_SDOT(i##1##h, w, x##1, lane);                     \
    V_LDR(x##1, (rows)[1], off);                        \
    V_SDOT(i##2##h, w, x##2, lane);                     \
    V_LDR(x##2, (rows)[2], off);                        \
    V_SDOT(i##3##h, w, x##3, lane);                     \
    V_LDR(x##3, (rows)[3], off)

/* sum += dot * scale of the half */
#define DOT_WEIGH_4(sum, dot, h, scale)            \
    V_MLA_4S(sum##0##h, dot##0##h, scale);         \
    V_MLA_4S(sum##1##h, dot##1##h, scale);         \
    V_MLA_4S(sum##2##h, dot##2##h, scale);         \
    V_MLA_4S(sum##3##h, dot##3##h, scale)

/* y = fma(convert(i), dw * da, y) for columns c, e with act32 blocks at p, q; the halves' scales are in d0, d1. */
#define DOT_SCALE_2(y, i, c, e, d0, d1, p, q, convert) \
    do {                                          \
        float32x4_t s0, s1, s2, s3;               \
        V_LDR_S(s1, p, 32);                       \
        V_LDR_S(s3, q, 32);                       \
        convert(i##c##0, i##c##0);                \
        convert(i##c##1, i##c##1);                \
        V_FMUL_LANE(s0, d0, s1, 0);               \
        V_FMUL_LANE(s1, d1, s1, 0);               \
        V_FMUL_LANE(s2, d0, s3, 0);               \
        V_FMUL_LANE(s3, d1, s3, 0);               \
        convert(i##e##0, i##e##0);                \
        convert(i##e##1, i##e##1);                \
        V_FMLA(y##c##0, i##c##0, s0);             \
        V_FMLA(y##c##1, i##c##1, s1);             \
        V_FMLA(y##e##0, i##e##0, s2);             \
        V_FMLA(y##e##1, i##e##1, s3);             \
    } while (0)

/* y = fma(m, s, y) for the same columns: m0, m1 hold the minima of the halves. */
#define DOT_MINIMUM_2(y, c, e, m0, m1, p, q)      \
    do {                                          \
        float32x4_t s_p, s_q;                     \
        V_LDR_S(s_p, p, 36);                      \
        V_LDR_S(s_q, q, 36);                      \
        V_FMLA_LANE(y##c##0, m0, s_p, 0);         \
        V_FMLA_LANE(y##c##1, m1, s_p, 0);         \
        V_FMLA_LANE(y##e##0, m0, s_q, 0);         \
        V_FMLA_LANE(y##e##1, m1, s_q, 0);         \
    } while (0)

/* Results to out[4][8]. */
#define DOT_STORE_8(out, y)               \
    do {                                  \
        vst1q_f32(out, y##00);            \
        vst1q_f32((out) + 4, y##01);      \
        vst1q_f32((out) + 8, y##10);      \
        vst1q_f32((out) + 12, y##11);     \
        vst1q_f32((out) + 16, y##20);     \
        vst1q_f32((out) + 20, y##21);     \
        vst1q_f32((out) + 24, y##30);     \
        vst1q_f32((out) + 28, y##31);     \
    } while (0)

/* ---- pairs of nibbles, 8 rows x 4 columns: the pair meets the activations, the next one is loaded and unpacked in its place. One operation of
 * full width after each four sdots: the modelled A55 hides half of it there, but nothing of two in a row. _RELOAD: the activations end here and
 * are reloaded from their rows at x_off. ---- */
#define DOT_PAIR_4(sum, low, high, x, lane, from, off, LOW, HIGH)                          \
    do {                                                                                   \
        DOT_PAIR_4_HEAD(sum, low, high, x, lane, from, off, LOW, HIGH);                    \
        DOT_COLUMNS(sum, 1, (high)[1], x, (lane) + 1);                                     \
        HIGH((high)[1], raw_1);                                                            \
    } while (0)
#define DOT_PAIR_4_RELOAD(sum, low, high, x, lane, from, off, LOW, HIGH, rows, x_off)      \
    do {                                                                                   \
        DOT_PAIR_4_HEAD(sum, low, high, x, lane, from, off, LOW, HIGH);                    \
        DOT_COLUMNS_RELOAD(sum, 1, (high)[1], x, (lane) + 1, rows, x_off);                 \
        HIGH((high)[1], raw_1);                                                            \
    } while (0)
#define DOT_PAIR_4_HEAD(sum, low, high, x, lane, from, off, LOW, HIGH)                     \
    uint8x16_t raw_0, raw_1;                                                               \
    DOT_COLUMNS_LOAD(sum, 0, (low)[0], x, lane, raw_0, raw_1, from, off);                  \
    LOW((low)[0], raw_0);                                                                  \
    DOT_COLUMNS(sum, 1, (low)[1], x, lane);                                                \
    LOW((low)[1], raw_1);                                                                  \
    DOT_COLUMNS(sum, 0, (high)[0], x, (lane) + 1);                                         \
    HIGH((high)[0], raw_0)
/* The first pair. */
#define DOT_PAIR_4_START(low, high, from, LOW, HIGH) \
    do {                                             \
        uint8x16_t raw_0, raw_1;                     \
        V_LDR(raw_0, from, 0);                       \
        V_LDR(raw_1, from, 16);                      \
        LOW((low)[0], raw_0);                        \
        LOW((low)[1], raw_1);                        \
        HIGH((high)[0], raw_0);                      \
        HIGH((high)[1], raw_1);                      \
    } while (0)

#endif
