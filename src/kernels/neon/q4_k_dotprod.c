/* kernels/neon/q4_k_dotprod.c - Q4_K on cores with sdot. A packed super-block of 8 rows x 256 columns, 1152 bytes, no growth:
 *
 *     0  scales (scales_q4_k.h)
 *   128  8 sub-blocks of 32 columns: 4 pairs (dot.h), half 0 before half 1
 *
 * Knows nothing of other formats. */
#include "kernels/neon/dot.h"
#include "kernels/neon/scales_q4_k.h"

enum { CODES = SCALES_BYTES, SUB_BYTES = 128, BLOCK_BYTES = CODES + 8 * SUB_BYTES };
enum { X_HALVES = 304, X_D = 320 }; /* pn_act256: hi and lo; d */

_Static_assert(offsetof(pn_act256, hi) == X_HALVES && offsetof(pn_act256, d) == X_D, "the code below counts on it");

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q4_k, true, src, row_bytes, n_valid);
    pack_scales(dst, &t);
    for (int pair = 0; pair < 32; pair++)
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < 16; i++)
                dst[CODES + 32 * pair + 16 * h + i] = (uint8_t)(dot_code(&t, h, 2 * pair, i) | dot_code(&t, h, 2 * pair + 1, i) << 4);
}

/* Index vectors for tbl: byte j of each 32-bit lane, the rest out of range, so zero: scale j % 4 of 4 rows as int32. */
static inline uint8x16_t scale_index(int j) { return vreinterpretq_u8_u32(vaddq_u32((uint32x4_t){0, 4, 8, 12}, vdupq_n_u32(0xffffff00u + (uint32_t)j))); }

#define LOW(d, raw) V_AND(d, raw, four_bits)
#define HIGH(d, raw) V_USHR(d, raw, 4)

#define NOTHING (void)0
#define SCALE(t, j, h) V_TBL(t, scale[2 * (h) + (j) / 4], index[(j) % 4])

/* Sub-block j; its dots go to `sum`. Sub-block j - 1, whose dots are in `before`, is weighted meanwhile, and `before` made ready for j + 1.
 * What comes after lies at from + from_off and x_from + x_off. */
#define SUB(j, sum, before, from, from_off, x_from, x_off, weigh_0, weigh_1)                                                          \
    DOT_PAIR(sum, low, high, v0, 0, r, s, w, CODES + SUB_BYTES * (j) + 64, LOW, HIGH, V_LDR(v1, x0, 32 * (j) + 16), NOTHING, SCALE(t0, ((j) + 7) % 8, 0)); \
    DOT_PAIR(sum, low, high, v0, 2, s, r, w, CODES + SUB_BYTES * (j) + 96, LOW, HIGH, SCALE(t1, ((j) + 7) % 8, 1), V_LDR(v0, x_from, x_off), weigh_0);   \
    DOT_PAIR(sum, low, high, v1, 0, r, s, from, from_off, LOW, HIGH, NOTHING, NOTHING, weigh_1);                                       \
    DOT_PAIR(sum, low, high, v1, 2, s, r, from, (from_off) + 32, LOW, HIGH, V_ZERO(before##0), V_ZERO(before##1), NOTHING)
/* One with another before it, one with another behind it. */
#define WEIGHING(j, sum, before, from, from_off, x_from, x_off) \
    SUB(j, sum, before, from, from_off, x_from, x_off, V_MLA_4S(i00, before##0, t0), V_MLA_4S(i01, before##1, t1))
#define INNER(j, sum, before) WEIGHING(j, sum, before, w, CODES + SUB_BYTES * ((j) + 1), x0, 32 * ((j) + 1))

/* The end of a super-block, y = fma(fma(-dmin, float(M), d*float(I)), da, y): M from the sums of 32 activations, bsum32 = 128*hi + lo. A step
 * is written for one column c; EACH does it for one or for two columns, which then hide each other's latency. */
#define END_VARIABLES(c)                                     \
    uint8x16_t bsums##c;                                     \
    int32x4_t m##c##0, m##c##1, n##c##0, n##c##1;            \
    float32x4_t f##c##0, f##c##1, da##c
#define END_LOAD(c)                      \
    V_LDR(bsums##c, x##c, X_HALVES);     \
    V_ZERO(m##c##0);                     \
    V_ZERO(m##c##1);                     \
    V_ZERO(n##c##0);                     \
    V_ZERO(n##c##1)
#define END_DOT_0(c)                             \
    V_SDOT(m##c##0, min[0], bsums##c, 0);        \
    V_SDOT(m##c##1, min[2], bsums##c, 0);        \
    V_SDOT(n##c##0, min[0], bsums##c, 2);        \
    V_SDOT(n##c##1, min[2], bsums##c, 2)
#define END_FLOAT_I(c)                   \
    V_SCVTF(f##c##0, i##c##0);           \
    V_SCVTF(f##c##1, i##c##1)
#define END_DOT_1(c)                             \
    V_SDOT(m##c##0, min[1], bsums##c, 1);        \
    V_SDOT(m##c##1, min[3], bsums##c, 1);        \
    V_SDOT(n##c##0, min[1], bsums##c, 3);        \
    V_SDOT(n##c##1, min[3], bsums##c, 3)
#define END_TIMES_D(c)                   \
    V_FMUL(f##c##0, d[0], f##c##0);      \
    V_FMUL(f##c##1, d[1], f##c##1)
#define END_SHIFT(c)                     \
    V_SHL_4S(m##c##0, m##c##0, 7);       \
    V_SHL_4S(m##c##1, m##c##1, 7);       \
    V_LDR_S(da##c, x##c, X_D)
#define END_ADD(c)                       \
    V_ADD_4S(m##c##0, m##c##0, n##c##0); \
    V_ADD_4S(m##c##1, m##c##1, n##c##1)
#define END_FLOAT_M(c)                   \
    V_SCVTF(m##c##0, m##c##0);           \
    V_SCVTF(m##c##1, m##c##1)
#define END_MINUS(c)                     \
    V_FMLS(f##c##0, d[2], m##c##0);      \
    V_FMLS(f##c##1, d[3], m##c##1)
#define END_PLUS(c)                              \
    V_FMLA_LANE(y##c##0, f##c##0, da##c, 0);     \
    V_FMLA_LANE(y##c##1, f##c##1, da##c, 0)
#define END_OF_BLOCK(EACH) \
    EACH(END_VARIABLES);   \
    EACH(END_LOAD);        \
    EACH(END_DOT_0);       \
    EACH(END_FLOAT_I);     \
    EACH(END_DOT_1);       \
    EACH(END_TIMES_D);     \
    EACH(END_SHIFT);       \
    EACH(END_ADD);         \
    EACH(END_FLOAT_M);     \
    EACH(END_MINUS);       \
    EACH(END_PLUS)
#define ONE_COLUMN(step) step(0)
#define TWO_COLUMNS(step) \
    step(0);              \
    step(1)

static void tile_1(const uint8_t *w, const uint8_t *x0, int64_t k, float *y)
{
    const uint8x16_t four_bits = vdupq_n_u8(15), index[4] = {scale_index(0), scale_index(1), scale_index(2), scale_index(3)};
    PIN_VARIABLE(int32x4_t, p0, 16);
    PIN_VARIABLE(int32x4_t, p1, 17);
    PIN_VARIABLE(int32x4_t, q0, 18);
    PIN_VARIABLE(int32x4_t, q1, 19);
    uint8x16_t low[2], high[2], r[2], s[2], v0, v1, scale[4], min[4], t0, t1;
    int32x4_t i00, i01;
    float32x4_t d[4], y00 = vdupq_n_f32(0), y01 = y00;
    V_LDR(s[0], w, CODES);
    V_LDR(s[1], w, CODES + 16);
    V_LDR(r[0], w, CODES + 32);
    V_LDR(r[1], w, CODES + 48);
    V_LDR(v0, x0, 0);
    LOW(low[0], s[0]);
    LOW(low[1], s[1]);
    HIGH(high[0], s[0]);
    HIGH(high[1], s[1]);
    V_ZERO(p0);
    V_ZERO(p1);
    for (int64_t left = k / 256; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES), *nx = dot_next(x0, left, sizeof(pn_act256));
        UNPACK_SCALES(scale, w);
        V_ZERO(i00);
        V_ZERO(i01);
        SUB(0, p, q, w, CODES + SUB_BYTES, x0, 32, NOTHING, NOTHING);
        INNER(1, q, p);
        INNER(2, p, q);
        INNER(3, q, p);
        INNER(4, p, q);
        INNER(5, q, p);
        INNER(6, p, q);
        WEIGHING(7, q, p, nw, CODES, nx, 0);
        SCALE(t0, 7, 0);
        SCALE(t1, 7, 1);
        UNPACK_MINIMA(min, w);
        UNPACK_D(d, w);
        V_MLA_4S(i00, q0, t0);
        V_MLA_4S(i01, q1, t1);
        END_OF_BLOCK(ONE_COLUMN);
        w = nw;
        x0 = nx;
    }
    vst1q_f32(y, y00);
    vst1q_f32(y + 4, y01);
}

/* ---- 8 rows x 4 columns ---- */

/* Sub-block j; the next one begins `ahead` behind CODES, its activations at x_ahead of the rows. */
#define SUB_4(j, ahead, x_ahead)                                                                                           \
    DOT_ZERO_8(dot);                                                                                                       \
    DOT_PAIR_4(dot, low, high, v, 0, w, CODES + SUB_BYTES * (j) + 32, LOW, HIGH);                                           \
    DOT_PAIR_4_RELOAD(dot, low, high, v, 2, w, CODES + SUB_BYTES * (j) + 64, LOW, HIGH, row, 32 * (j) + 16);                 \
    DOT_PAIR_4(dot, low, high, v, 0, w, CODES + SUB_BYTES * (j) + 96, LOW, HIGH);                                           \
    V_LDR(t0, scales, 32 * (j));                                                                                           \
    V_LDR(t1, scales, 32 * (j) + 16);                                                                                      \
    DOT_PAIR_4_RELOAD(dot, low, high, v, 2, w, CODES + (ahead), LOW, HIGH, row, x_ahead);                                   \
    DOT_WEIGH_4(sum, dot, 0, t0);                                                                                          \
    DOT_WEIGH_4(sum, dot, 1, t1)

/* All scales of a super-block as int32 vectors [sub-block][half]: registers are too few to unpack them where they are used. */
static inline void widen_scales(int32x4_t scales[16], const uint8_t *w)
{
    uint8x16_t scale[4];
    UNPACK_SCALES(scale, w);
    for (int j = 0; j < 8; j++)
        for (int h = 0; h < 2; h++) scales[2 * j + h] = vreinterpretq_s32_u8(vqtbl1q_u8(scale[2 * h + j / 4], scale_index(j % 4)));
}

/* Two columns; y: their sums so far, in memory because registers are too few. */
static inline void finish_2(float *y, int32x4_t i00, int32x4_t i01, int32x4_t i10, int32x4_t i11, const uint8x16_t min[4], const float32x4_t d[4],
                            const uint8_t *x0, const uint8_t *x1)
{
    float32x4_t y00 = vld1q_f32(y), y01 = vld1q_f32(y + 4), y10 = vld1q_f32(y + 8), y11 = vld1q_f32(y + 12);
    END_OF_BLOCK(TWO_COLUMNS);
    vst1q_f32(y, y00);
    vst1q_f32(y + 4, y01);
    vst1q_f32(y + 8, y10);
    vst1q_f32(y + 12, y11);
}

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y)
{
    const uint8x16_t four_bits = vdupq_n_u8(15);
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    memset(y, 0, TILE_COLS * TILE_ROWS * sizeof *y);
    for (int64_t b = 0; b < k / 256; b++, w += BLOCK_BYTES) {
        DOT_VARIABLES(int32x4_t, dot, 16, 17, 18, 19, 20, 21, 22, 23);
        DOT_VARIABLES(int32x4_t, sum, 24, 25, 26, 27, 28, 29, 30, 31);
        int32x4_t scales[16], t0, t1;
        uint8x16_t low[2], high[2], v0, v1, v2, v3, min[4];
        float32x4_t d[4];
        widen_scales(scales, w);
        DOT_PAIR_4_START(low, high, w + CODES, LOW, HIGH);
        DOT_LOAD_4(v, row, 0);
        DOT_ZERO_8(sum);
        SUB_4(0, 128, 32);
        SUB_4(1, 256, 64);
        SUB_4(2, 384, 96);
        SUB_4(3, 512, 128);
        SUB_4(4, 640, 160);
        SUB_4(5, 768, 192);
        SUB_4(6, 896, 224);
        SUB_4(7, 0, 0); /* what this loads ahead is not used: the rest wants the registers */
        UNPACK_MINIMA(min, w);
        UNPACK_D(d, w);
        finish_2(y, sum00, sum01, sum10, sum11, min, d, row[0], row[1]);
        finish_2(y + 16, sum20, sum21, sum30, sum31, min, d, row[2], row[3]);
        for (int c = 0; c < 4; c++) row[c] += sizeof(pn_act256);
    }
}

TILE_KERNEL(q4_k, dotprod, 256, 144, BLOCK_BYTES)
