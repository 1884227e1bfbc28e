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

/* Sub-block j from the pairs at CODES + 128*j of w; its dots go to `sum`. `work_*` belong to sub-block j - 1. */
#define SUB(j, sum, from, from_off, x0_from, x0_off, x1_off, work_0, work_1, work_2, work_3)                                       \
    V_ZERO((sum)[0]);                                                                                                           \
    V_ZERO((sum)[1]);                                                                                                           \
    DOT_PAIR(sum, low, high, x0, 0, r, s, w, CODES + SUB_BYTES * (j) + 64, LOW, HIGH, V_LDR(x1, x, x1_off), work_0);             \
    DOT_PAIR(sum, low, high, x0, 2, s, r, w, CODES + SUB_BYTES * (j) + 96, LOW, HIGH, work_1, V_LDR(x0, x0_from, x0_off));       \
    DOT_PAIR(sum, low, high, x1, 0, r, s, from, from_off, LOW, HIGH, (void)0, work_2);                                          \
    DOT_PAIR(sum, low, high, x1, 2, s, r, from, (from_off) + 32, LOW, HIGH, (void)0, work_3)

#define SCALE(t, j, h) V_TBL(t, scale[2 * (h) + (j) / 4], index[(j) % 4])
/* A sub-block inside the super-block: the one before it is weighted meanwhile. */
#define INNER(j, sum, before)                                                                                            \
    SUB(j, sum, w, CODES + SUB_BYTES * ((j) + 1), x, 32 * ((j) + 1), 32 * (j) + 16, SCALE(t0, (j) - 1, 0), SCALE(t1, (j) - 1, 1), \
        V_MLA_4S(i0, (before)[0], t0), V_MLA_4S(i1, (before)[1], t1))

/* y = fma(fma(-dmin, float(M), d*float(I)), da, y), halves 0 and 1; M from the sums of 32 activations, bsum32 = 128*hi + lo. */
static inline float32x4x2_t finish(float32x4x2_t y, int32x4_t i0, int32x4_t i1, const uint8x16_t min[4], const float32x4_t d[4], const uint8_t *x)
{
    uint8x16_t bsums;
    int32x4_t m0, m1, n0, n1;
    float32x4_t f0, f1, g0, g1, da;
    V_LDR(bsums, x, X_HALVES);
    V_ZERO(m0);
    V_ZERO(m1);
    V_ZERO(n0);
    V_ZERO(n1);
    V_SDOT(m0, min[0], bsums, 0);
    V_SDOT(m1, min[2], bsums, 0);
    V_SDOT(n0, min[0], bsums, 2);
    V_SDOT(n1, min[2], bsums, 2);
    V_SCVTF(f0, i0);
    V_SCVTF(f1, i1);
    V_SDOT(m0, min[1], bsums, 1);
    V_SDOT(m1, min[3], bsums, 1);
    V_SDOT(n0, min[1], bsums, 3);
    V_SDOT(n1, min[3], bsums, 3);
    V_FMUL(f0, d[0], f0);
    V_FMUL(f1, d[1], f1);
    V_SHL_4S(m0, m0, 7);
    V_SHL_4S(m1, m1, 7);
    V_LDR_S(da, x, X_D);
    V_ADD_4S(m0, m0, n0);
    V_ADD_4S(m1, m1, n1);
    V_SCVTF(g0, m0);
    V_SCVTF(g1, m1);
    V_FMLS(f0, d[2], g0);
    V_FMLS(f1, d[3], g1);
    V_FMLA_LANE(y.val[0], f0, da, 0);
    V_FMLA_LANE(y.val[1], f1, da, 0);
    return y;
}

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    const uint8x16_t four_bits = vdupq_n_u8(15), index[4] = {scale_index(0), scale_index(1), scale_index(2), scale_index(3)};
    uint8x16_t low[2], high[2], r[2], s[2], x0, x1, scale[4], min[4], t0, t1;
    int32x4_t p[2], q[2], i0, i1;
    float32x4_t d[4];
    float32x4x2_t sums = {{vdupq_n_f32(0), vdupq_n_f32(0)}};
    V_LDR(s[0], w, CODES);
    V_LDR(s[1], w, CODES + 16);
    V_LDR(r[0], w, CODES + 32);
    V_LDR(r[1], w, CODES + 48);
    V_LDR(x0, x, 0);
    LOW(low[0], s[0]);
    LOW(low[1], s[1]);
    HIGH(high[0], s[0]);
    HIGH(high[1], s[1]);
    for (int64_t left = k / 256; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES), *nx = dot_next(x, left, sizeof(pn_act256));
        UNPACK_SCALES(scale, w);
        V_ZERO(i0);
        V_ZERO(i1);
        SUB(0, p, w, CODES + SUB_BYTES, x, 32, 16, (void)0, (void)0, (void)0, (void)0);
        INNER(1, q, p);
        INNER(2, p, q);
        INNER(3, q, p);
        INNER(4, p, q);
        INNER(5, q, p);
        INNER(6, p, q);
        SUB(7, q, nw, CODES, nx, 0, 240, SCALE(t0, 6, 0), SCALE(t1, 6, 1), V_MLA_4S(i0, p[0], t0), V_MLA_4S(i1, p[1], t1));
        SCALE(t0, 7, 0);
        SCALE(t1, 7, 1);
        UNPACK_MINIMA(min, w);
        UNPACK_D(d, w);
        V_MLA_4S(i0, q[0], t0);
        V_MLA_4S(i1, q[1], t1);
        sums = finish(sums, i0, i1, min, d, x);
        w = nw;
        x = nx;
    }
    vst1q_f32(y, sums.val[0]);
    vst1q_f32(y + 4, sums.val[1]);
}

/* ---- 8 rows x 4 columns ---- */

#define SUB_4(j, from, from_off, rows_2, x_off_2)                                                                              \
    DOT_ZERO_8(dot);                                                                                                           \
    DOT_PAIR_4(dot, low, high, v, 0, r, w, CODES + SUB_BYTES * (j) + 64, LOW, HIGH);                                           \
    DOT_PAIR_4_RELOAD(dot, low, high, v, 2, r, w, CODES + SUB_BYTES * (j) + 96, LOW, HIGH, row, 32 * (j) + 16);                 \
    V_LDR(t0, scales, 32 * (j));                                                                                               \
    DOT_PAIR_4(dot, low, high, v, 0, r, from, from_off, LOW, HIGH);                                                            \
    V_LDR(t1, scales, 32 * (j) + 16);                                                                                          \
    DOT_PAIR_4_RELOAD(dot, low, high, v, 2, r, from, (from_off) + 32, LOW, HIGH, rows_2, x_off_2);                              \
    DOT_WEIGH_8(sum, dot, t0, t1)

/* All scales of a super-block as int32 vectors [sub-block][half]: registers are too few to unpack them where they are used. */
static inline void widen_scales(int32x4_t scales[16], const uint8_t *w)
{
    uint8x16_t scale[4];
    UNPACK_SCALES(scale, w);
    for (int j = 0; j < 8; j++)
        for (int h = 0; h < 2; h++) scales[2 * j + h] = vreinterpretq_s32_u8(vqtbl1q_u8(scale[2 * h + j / 4], scale_index(j % 4)));
}

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y)
{
    const uint8x16_t four_bits = vdupq_n_u8(15);
    uint8x16_t low[2], high[2], r[2], v[4], t0, t1;
    int32x4_t dot[8], sum[8], scales[16];
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    memset(y, 0, TILE_COLS * TILE_ROWS * sizeof *y);
    V_LDR(r[0], w, CODES);
    V_LDR(r[1], w, CODES + 16);
    LOW(low[0], r[0]);
    LOW(low[1], r[1]);
    HIGH(high[0], r[0]);
    HIGH(high[1], r[1]);
    V_LDR(r[0], w, CODES + 32);
    V_LDR(r[1], w, CODES + 48);
    for (int j = 0; j < 4; j++) V_LDR(v[j], row[j], 0);
    for (int64_t left = k / 256; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES);
        const int64_t step = left > 1 ? (int64_t)sizeof(pn_act256) : 0;
        const uint8_t *next[4] = {row[0] + step, row[1] + step, row[2] + step, row[3] + step};
        widen_scales(scales, w);
        DOT_ZERO_8(sum);
        SUB_4(0, w, CODES + 1 * SUB_BYTES, row, 32);
        SUB_4(1, w, CODES + 2 * SUB_BYTES, row, 64);
        SUB_4(2, w, CODES + 3 * SUB_BYTES, row, 96);
        SUB_4(3, w, CODES + 4 * SUB_BYTES, row, 128);
        SUB_4(4, w, CODES + 5 * SUB_BYTES, row, 160);
        SUB_4(5, w, CODES + 6 * SUB_BYTES, row, 192);
        SUB_4(6, w, CODES + 7 * SUB_BYTES, row, 224);
        SUB_4(7, nw, CODES, next, 0);
        uint8x16_t min[4];
        UNPACK_MINIMA(min, w);
        float32x4_t d[4];
        UNPACK_D(d, w);
        for (int c = 0; c < 4; c++) vst1q_f32_x2(y + 8 * c, finish(vld1q_f32_x2(y + 8 * c), sum[2 * c], sum[2 * c + 1], min, d, row[c]));
        w = nw;
        for (int c = 0; c < 4; c++) row[c] = next[c];
    }
}

TILE_KERNEL(q4_k, dotprod, 256, 144, BLOCK_BYTES)
