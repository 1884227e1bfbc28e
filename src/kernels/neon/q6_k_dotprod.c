/* kernels/neon/q6_k_dotprod.c - Q6_K on cores with sdot. A packed super-block of 8 rows x 256 columns, 1680 bytes, no growth:
 *
 *     0  8 half d
 *    16  16 sub-blocks of 16 columns: 8 signed scales
 *   144  16 sub-blocks: half 0, half 1: 3 vectors that hold the 4 vectors (dot.h) of quads 0..3
 *
 * Codes are two's complement. The three bytes hold codes of quads 0, 1, 2 in bits 2-7; the code of quad 3 lies in their bits 0-1, its top
 * bits in the first. So all four unpack to 4 times the signed code in 6 operations; float conversion takes the factor away.
 * Knows nothing of other formats. */
#include "kernels/neon/dot.h"

enum { SCALES = 16, CODES = 144, SUB_BYTES = 96, BLOCK_BYTES = CODES + 16 * SUB_BYTES, X_D = 320 };

_Static_assert(offsetof(pn_act256, d) == X_D, "the code below counts on it");

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q6_k, true, src, row_bytes, n_valid);
    memcpy(dst, t.d, 16);
    for (int j = 0; j < 16; j++)
        for (int r = 0; r < TILE_ROWS; r++) dst[SCALES + 8 * j + r] = (uint8_t)t.row[r].scale[j];
    for (int j = 0; j < 16; j++)
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < 16; i++) {
                const int fourth = dot_code(&t, h, 4 * j + 3, i) & 63;
                for (int v = 0; v < 3; v++)
                    dst[CODES + SUB_BYTES * j + 48 * h + 16 * v + i] = (uint8_t)(dot_code(&t, h, 4 * j + v, i) << 2 | (fourth >> (4 - 2 * v) & 3));
            }
}

#define SIGNED_6(d, raw) V_AND(d, raw, six_bits)

/* The first sub-block: a[4] from r[3], which is spent. */
#define UNPACK(a, r)           \
    do {                       \
        SIGNED_6((a)[0], (r)[0]); \
        SIGNED_6((a)[1], (r)[1]); \
        SIGNED_6((a)[2], (r)[2]); \
        V_SLI((r)[2], (r)[1], 2); \
        V_SLI((r)[2], (r)[0], 4); \
        V_SHL((a)[3], (r)[2], 2); \
    } while (0)
#define LOAD_3(r, p, off)          \
    do {                           \
        V_LDR((r)[0], p, off);     \
        V_LDR((r)[1], p, (off) + 16); \
        V_LDR((r)[2], p, (off) + 32); \
    } while (0)

/* The sub-block in a[4], b[4] (halves 0 and 1) meets x; the next, raw in r[3], s[3], is unpacked in their place; the next but one is
 * loaded. Quads in the order 1, 0, 2, 3: the raw vectors then have the longest time to arrive. The slots are loads or half-width operations,
 * weigh_0 and weigh_1 of any width. */
#define SUB(sum, x, from, off, slot_0, slot_1, slot_2, slot_3, slot_4, slot_5, weigh_0, weigh_1) \
    do {                                               \
        V_SDOT(sum##0, a[1], x, 1);                    \
        slot_0;                                        \
        SIGNED_6(a[1], r[1]);                          \
        V_SDOT(sum##1, b[1], x, 1);                    \
        slot_1;                                        \
        SIGNED_6(b[1], s[1]);                          \
        V_SDOT(sum##0, a[0], x, 0);                    \
        slot_2;                                        \
        SIGNED_6(a[0], r[0]);                          \
        V_SDOT(sum##1, b[0], x, 0);                    \
        slot_3;                                        \
        SIGNED_6(b[0], s[0]);                          \
        V_SDOT(sum##0, a[2], x, 2);                    \
        slot_4;                                        \
        SIGNED_6(a[2], r[2]);                          \
        V_SDOT(sum##1, b[2], x, 2);                    \
        slot_5;                                        \
        SIGNED_6(b[2], s[2]);                          \
        V_SLI(r[2], r[1], 2);                          \
        V_SLI(s[2], s[1], 2);                          \
        V_SDOT(sum##0, a[3], x, 3);                    \
        V_LDR(r[1], from, (off) + 16);                 \
        weigh_0;                                       \
        V_SDOT(sum##1, b[3], x, 3);                    \
        V_LDR(s[1], from, (off) + 64);                 \
        weigh_1;                                       \
        V_SLI(r[2], r[0], 4);                          \
        V_LDR(r[0], from, off);                        \
        V_SLI(s[2], s[0], 4);                          \
        V_LDR(s[0], from, (off) + 48);                 \
        V_SHL(a[3], r[2], 2);                          \
        V_LDR(r[2], from, (off) + 32);                 \
        V_SHL(b[3], s[2], 2);                          \
        V_LDR(s[2], from, (off) + 80);                 \
    } while (0)

/* Two sub-blocks a turn: p and t0, t1 belong to the even one, q and t2, t3 to the odd one. Sums are weighted one sub-block later. */
static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    PIN_VARIABLE(int32x4_t, p0, 16);
    PIN_VARIABLE(int32x4_t, p1, 17);
    PIN_VARIABLE(int32x4_t, q0, 18);
    PIN_VARIABLE(int32x4_t, q1, 19);
    const uint8x16_t six_bits = vdupq_n_u8(0xfc);
    uint8x16_t a[4], b[4], r[3], s[3], x0, x1, halves, bytes;
    int16x8_t even, odd;
    int32x4_t i0, i1, t0 = vdupq_n_s32(0), t1 = t0, t2 = t0, t3 = t0;
    float32x4_t y0 = vdupq_n_f32(0), y1 = y0, d0, d1, da;
    LOAD_3(r, w, CODES);
    LOAD_3(s, w, CODES + 48);
    UNPACK(a, r);
    UNPACK(b, s);
    LOAD_3(r, w, CODES + SUB_BYTES);
    LOAD_3(s, w, CODES + SUB_BYTES + 48);
    V_ZERO(p0);
    V_ZERO(p1);
    for (int64_t left = k / 256; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES), *codes = w + CODES;
        V_ZERO(i0);
        V_ZERO(i1);
        V_ZERO(q0);
        V_ZERO(q1);
        V_LDR(x0, x, 0);
        V_LDR(bytes, w, SCALES);
        for (int j = 0; j < 8; j++) { /* sub-blocks 2j and 2j + 1 */
            const uint8_t *ahead = j < 7 ? codes + 2 * SUB_BYTES : nw + CODES;
            SUB(p, x0, ahead, 0, V_LDR(x1, x, 16), V_SXTL_8H(even, bytes), V_MLA_4S(i0, q0, t2), V_MLA_4S(i1, q1, t3), V_ZERO(q0), V_ZERO(q1),
                V_SXTL_4S(t0, even), V_SXTL2_4S(t1, even));
            V_SXTL2_8H(odd, bytes);
            SUB(q, x1, ahead, SUB_BYTES, V_LDR(x0, x, 32), V_LDR(bytes, w + 16 * j, SCALES + 16), V_MLA_4S(i0, p0, t0), V_MLA_4S(i1, p1, t1), V_ZERO(p0),
                V_ZERO(p1), V_SXTL_4S(t2, odd), V_SXTL2_4S(t3, odd));
            codes = ahead;
            V_ADVANCE(x, 32);
        }
        V_LDR(halves, w, 0);
        V_LDR_S(da, x, X_D - 256);
        V_MLA_4S(i0, q0, t2);
        V_MLA_4S(i1, q1, t3);
        V_FCVTL(d0, halves);
        V_FCVTL2(d1, halves);
        V_SCVTF_4(i0, i0);
        V_SCVTF_4(i1, i1);
        V_FMUL_LANE(d0, d0, da, 0);
        V_FMUL_LANE(d1, d1, da, 0);
        V_FMLA(y0, i0, d0);
        V_FMLA(y1, i1, d1);
        w = nw;
        V_ADVANCE(x, sizeof(pn_act256) - 256);
    }
    vst1q_f32(y, y0);
    vst1q_f32(y + 4, y1);
}

/* ---- 8 rows x 4 columns ---- */

/* Sums of columns c and e, half h, are weighted. */
#define WEIGH_2(h, c, e, t)                    \
    V_MLA_4S(sum##c##h, dot##c##h, t);         \
    V_MLA_4S(sum##e##h, dot##e##h, t)

/* Half h of the sub-block, in a[4]; the next half, raw in r[3], is unpacked in its place; the next but one is loaded. Meanwhile the sums of
 * the other half are weighted with its scales t. LAST: the activations' last use. SCALES_0, SCALES_1: work on scales. */
#define HALF(h, other, t, from, off, LAST, SCALES_0, SCALES_1) \
    do {                                   \
        SCALES_0;                          \
        DOT_COLUMNS(dot, h, a[1], v, 1);   \
        SIGNED_6(a[1], r[1]);              \
        WEIGH_2(other, 0, 1, t);           \
        DOT_COLUMNS(dot, h, a[0], v, 0);   \
        SIGNED_6(a[0], r[0]);              \
        WEIGH_2(other, 2, 3, t);           \
        SCALES_1;                          \
        DOT_COLUMNS(dot, h, a[2], v, 2);   \
        SIGNED_6(a[2], r[2]);              \
        V_SLI(r[2], r[1], 2);              \
        V_LDR(r[1], from, (off) + 16);     \
        V_ZERO(dot##0##other);             \
        LAST;                              \
        V_SLI(r[2], r[0], 4);              \
        V_LDR(r[0], from, off);            \
        V_ZERO(dot##1##other);             \
        V_ZERO(dot##2##other);             \
        V_ZERO(dot##3##other);             \
        V_SHL(a[3], r[2], 2);              \
        V_LDR(r[2], from, (off) + 32);     \
    } while (0)

/* y = fma(float(I), d*da, y), halves 0 and 1 */
static inline void finish_column(float *y, int32x4_t i0, int32x4_t i1, float32x4_t d0, float32x4_t d1, const uint8_t *da)
{
    float32x4_t s;
    V_LDR_S(s, da, 0);
    vst1q_f32(y, vfmaq_f32(vld1q_f32(y), vcvtq_n_f32_s32(i0, 2), vmulq_laneq_f32(d0, s, 0)));
    vst1q_f32(y + 4, vfmaq_f32(vld1q_f32(y + 4), vcvtq_n_f32_s32(i1, 2), vmulq_laneq_f32(d1, s, 0)));
}

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y)
{
    const uint8x16_t six_bits = vdupq_n_u8(0xfc);
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    memset(y, 0, TILE_COLS * TILE_ROWS * sizeof *y);
    for (int64_t b = 0; b < k / 256; b++, w += BLOCK_BYTES) {
        DOT_VARIABLES(int32x4_t, dot, 16, 17, 18, 19, 20, 21, 22, 23);
        DOT_VARIABLES(int32x4_t, sum, 24, 25, 26, 27, 28, 29, 30, 31);
        uint8x16_t a[4], r[3], v0, v1, v2, v3, halves;
        int32x4_t t0, t1, t;
        float32x4_t d0, d1;
        const uint8_t *codes = w + CODES, *scales = w + SCALES;
        LOAD_3(r, codes, 0);
        UNPACK(a, r);
        LOAD_3(r, codes, 48);
        DOT_LOAD_4(v, row, 0);
        DOT_ZERO_8(dot);
        DOT_ZERO_8(sum);
        V_ZERO(t1);
        for (int left = 16; left > 0; left--) { /* the last one loads ahead what is not used */
            const uint8_t *ahead = dot_next(codes, left, SUB_BYTES);
            HALF(0, 1, t1, ahead, 0, DOT_COLUMNS(dot, 0, a[3], v, 3), V_LDR_D(t, scales, 0), V_SXTL_8H(t, t));
            HALF(1, 0, t0, ahead, 48, DOT_COLUMNS_RELOAD(dot, 1, a[3], v, 3, row, 16), V_SXTL_4S(t0, t), V_SXTL2_4S(t1, t));
            codes = ahead;
            scales += 8;
            V_ADVANCE(row[0], 16);
            V_ADVANCE(row[1], 16);
            V_ADVANCE(row[2], 16);
            V_ADVANCE(row[3], 16);
        }
        V_LDR(halves, w, 0);
        WEIGH_2(1, 0, 1, t1);
        WEIGH_2(1, 2, 3, t1);
        V_FCVTL(d0, halves);
        V_FCVTL2(d1, halves);
        finish_column(y, sum00, sum01, d0, d1, row[0] + (X_D - 256));
        finish_column(y + 8, sum10, sum11, d0, d1, row[1] + (X_D - 256));
        finish_column(y + 16, sum20, sum21, d0, d1, row[2] + (X_D - 256));
        finish_column(y + 24, sum30, sum31, d0, d1, row[3] + (X_D - 256));
        for (int c = 0; c < 4; c++) row[c] += sizeof(pn_act256) - 256;
    }
}

TILE_KERNEL(q6_k, dotprod, 256, 210, BLOCK_BYTES)
