/* kernels/neon/q6_k_neon.c - Q6_K on cores without sdot. A packed super-block of 8 rows x 256 columns, 1680 bytes, no growth:
 *
 *     0  8 half d
 *    16  16 sub-blocks of 16 columns: 8 signed scales
 *   144  half 0, half 1: 16 sub-blocks: 3 vectors that hold the 16 columns of 4 rows
 *
 * Codes are two's complement. The three bytes hold codes of rows 0, 1, 2 in bits 2-7; the code of row 3 lies in their bits 0-1, its top bits
 * in the first. Knows nothing of other formats. */
#include "kernels/neon/rows.h"

enum { SCALES = 16, CODES = 144, SUB_BYTES = 48, HALF_BYTES = 16 * SUB_BYTES, BLOCK_BYTES = CODES + 2 * HALF_BYTES };

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q6_k, true, src, row_bytes, n_valid);
    memcpy(dst, t.d, 16);
    for (int j = 0; j < 16; j++)
        for (int r = 0; r < TILE_ROWS; r++) dst[SCALES + 8 * j + r] = (uint8_t)t.row[r].scale[j];
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < 256; i++) {
            uint8_t *to = dst + CODES + HALF_BYTES * h + SUB_BYTES * (i / 16) + i % 16;
            const int fourth = t.row[4 * h + 3].w[i] & 63;
            for (int v = 0; v < 3; v++) to[16 * v] = (uint8_t)((uint8_t)t.row[4 * h + v].w[i] << 2 | (fourth >> (4 - 2 * v) & 3));
        }
}

/* Signed codes of 4 rows from 3 vectors at p + off. */
#define UNPACK(w, p, off)               \
    do {                                \
        V_LDR((w)[0], p, off);          \
        V_LDR((w)[1], p, (off) + 16);   \
        V_LDR((w)[3], p, (off) + 32);   \
        V_SSHR((w)[2], (w)[3], 2);      \
        V_SLI((w)[3], (w)[1], 2);       \
        V_SSHR((w)[1], (w)[1], 2);      \
        V_SLI((w)[3], (w)[0], 4);       \
        V_SSHR((w)[0], (w)[0], 2);      \
        V_SHL((w)[3], (w)[3], 2);       \
        V_SSHR((w)[3], (w)[3], 2);      \
    } while (0)

/* Two products a lane, joined to 8: 32*127*8 = 32,512. t from rows w, u from rows v. */
#define DOT_16(t, w, x, u, v, z)        \
    do {                                \
        ROWS_EACH(V_SMULL, t, w, x);    \
        ROWS_EACH(V_SMULL, u, v, z);    \
        ROWS_EACH(V_SMLAL2, t, w, x);   \
        ROWS_EACH(V_SMLAL2, u, v, z);   \
        ROWS_JOIN(t, u);                \
    } while (0)

#define WEIGH(sum_0, sum_1, t, scale)        \
    do {                                     \
        V_SMLAL_4S(sum_0, t##0, scale);    \
        V_SMLAL2_4S(sum_1, t##0, scale);   \
    } while (0)

/* Scales of sub-block j as lanes r0 r0 r1 r1 r2 r2 r3 r3, halves 0 and 1. */
static inline int16x8_t scales_of(const uint8_t *w, int j, int h)
{
    const int16x8_t rows = vmovl_s8(vreinterpret_s8_u8(vld1_u8(w + SCALES + 8 * j)));
    return h ? vzip2q_s16(rows, rows) : vzip1q_s16(rows, rows);
}

/* y = fma(float(I), d*da, y): I = the sums joined by pairs */
static inline float32x4_t finish(float32x4_t y, int32x4_t sum_0, int32x4_t sum_1, float32x4_t d, const pn_act256 *x)
{
    return vfmaq_f32(y, vcvtq_f32_s32(vpaddq_s32(sum_0, sum_1)), vmulq_n_f32(d, x->d));
}

static inline float32x4_t scale_of_half(const uint8_t *w, int h)
{
    const float16x8_t d = vreinterpretq_f16_u8(vld1q_u8(w));
    return h ? vcvt_high_f32_f16(d) : vcvt_f32_f16(vget_low_f16(d));
}

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    uint8x16_t a[4], b[4], x0;
    ROWS_VARIABLES(int16x8_t);
    float32x4_t y0 = vdupq_n_f32(0), y1 = y0;
    for (int64_t block = 0; block < k / 256; block++, w += BLOCK_BYTES, x += sizeof(pn_act256)) {
        int32x4_t i0 = vdupq_n_s32(0), i1 = i0, i2 = i0, i3 = i0;
        for (int j = 0; j < 16; j++) {
            UNPACK(a, w + SUB_BYTES * j, CODES);
            UNPACK(b, w + SUB_BYTES * j, CODES + HALF_BYTES);
            V_LDR(x0, x + 16 * j, 0);
            DOT_16(t, a, x0, u, b, x0);
            WEIGH(i0, i1, t, scales_of(w, j, 0));
            WEIGH(i2, i3, u, scales_of(w, j, 1));
        }
        y0 = finish(y0, i0, i1, scale_of_half(w, 0), (const pn_act256 *)(const void *)x);
        y1 = finish(y1, i2, i3, scale_of_half(w, 1), (const pn_act256 *)(const void *)x);
    }
    vst1q_f32(y, y0);
    vst1q_f32(y + 4, y1);
}

static inline void half_4(float *y, const uint8_t *w, const uint8_t *const row[TILE_COLS], int h)
{
    uint8x16_t a[4], x0, x1;
    ROWS_VARIABLES(int16x8_t);
    int32x4_t sum[8];
    for (int i = 0; i < 8; i++) V_ZERO(sum[i]);
    for (int j = 0; j < 16; j++) {
        const int16x8_t scale = scales_of(w, j, h);
        UNPACK(a, w + SUB_BYTES * j + HALF_BYTES * h, CODES);
        for (int c = 0; c < 4; c += 2) {
            V_LDR(x0, row[c] + 16 * j, 0);
            V_LDR(x1, row[c + 1] + 16 * j, 0);
            DOT_16(t, a, x0, u, a, x1);
            WEIGH(sum[2 * c], sum[2 * c + 1], t, scale);
            WEIGH(sum[2 * c + 2], sum[2 * c + 3], u, scale);
        }
    }
    for (int c = 0; c < 4; c++) {
        float *to = y + 8 * c + 4 * h;
        vst1q_f32(to, finish(vld1q_f32(to), sum[2 * c], sum[2 * c + 1], scale_of_half(w, h), (const pn_act256 *)(const void *)row[c]));
    }
}

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y)
{
    memset(y, 0, TILE_COLS * TILE_ROWS * sizeof *y);
    for (int64_t b = 0; b < k / 256; b++, w += BLOCK_BYTES) {
        const uint8_t *row[TILE_COLS];
        for (int c = 0; c < 4; c++) row[c] = x[c] + b * (int64_t)sizeof(pn_act256);
        half_4(y, w, row, 0);
        half_4(y, w, row, 1);
    }
}

TILE_KERNEL(q6_k, neon, 256, 210, BLOCK_BYTES)
