/* kernels/neon/q4_k_neon.c - Q4_K on cores without sdot. A packed super-block of 8 rows x 256 columns, 1152 bytes, no growth:
 *
 *     0  scales (scales_q4_k.h)
 *   128  half 0, half 1: 8 sub-blocks of 32 columns: 16 bytes a row, low nibbles are columns 0..15
 *
 * Knows nothing of other formats. */
#include "kernels/neon/rows.h"
#include "kernels/neon/scales_q4_k.h"

enum { CODES = SCALES_BYTES, SUB_BYTES = 64, HALF_BYTES = 8 * SUB_BYTES, BLOCK_BYTES = CODES + 2 * HALF_BYTES };

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q4_k, true, src, row_bytes, n_valid);
    pack_scales(dst, &t);
    for (int r = 0; r < TILE_ROWS; r++)
        for (int j = 0; j < 8; j++) {
            const int8_t *w = t.row[r].w + 32 * j;
            uint8_t *to = dst + CODES + HALF_BYTES * (r / 4) + SUB_BYTES * j + 16 * (r % 4);
            for (int i = 0; i < 16; i++) to[i] = (uint8_t)(w[i] | w[16 + i] << 4);
        }
}

/* Scales of sub-block j and half h as 16-bit lanes r0 r0 r1 r1 r2 r2 r3 r3; minima of sub-blocks 2i and 2i + 1 as lanes r0..r3 r0..r3. */
typedef struct wide_scales {
    int16x8_t scale[2][8], min[2][4];
    float32x4_t d[4]; /* d of halves 0 and 1, dmin */
} wide_scales;

static inline void widen(wide_scales *s, const uint8_t *w)
{
    static const uint8_t spread[16] = {0, 255, 0, 255, 4, 255, 4, 255, 8, 255, 8, 255, 12, 255, 12, 255};
    static const uint8_t couple[16] = {0, 255, 4, 255, 8, 255, 12, 255, 1, 255, 5, 255, 9, 255, 13, 255};
    const uint8x16_t next = vreinterpretq_u8_u16(vdupq_n_u16(1)); /* to the next sub-block: out of range stays out of range */
    uint8x16_t scale[4], min[4];
    UNPACK_SCALES(scale, w);
    UNPACK_MINIMA(min, w);
    for (int v = 0; v < 4; v++) {
        uint8x16_t index = vld1q_u8(spread);
        for (int j = 0; j < 4; j++) {
            s->scale[v / 2][4 * (v % 2) + j] = vreinterpretq_s16_u8(vqtbl1q_u8(scale[v], index));
            index = vaddq_u8(index, next);
        }
        index = vld1q_u8(couple);
        s->min[v / 2][2 * (v % 2)] = vreinterpretq_s16_u8(vqtbl1q_u8(min[v], index));
        s->min[v / 2][2 * (v % 2) + 1] = vreinterpretq_s16_u8(vqtbl1q_u8(min[v], vaddq_u8(index, vaddq_u8(next, next))));
    }
    UNPACK_D(s->d, w);
}

/* y = fma(fma(-dmin, float(M), d*float(I)), da, y) for 4 rows: I = the sums joined by pairs, M from the sums of 32 activations. */
static inline float32x4_t finish(float32x4_t y, int32x4_t sum_0, int32x4_t sum_1, const wide_scales *s, int h, const pn_act256 *x)
{
    const int16x8_t bsums = vld1q_s16(x->bsum32);
    int32x4_t m = vmull_laneq_s16(vget_low_s16(s->min[h][0]), bsums, 0), n = vmull_high_laneq_s16(s->min[h][0], bsums, 1);
    m = vmlal_laneq_s16(m, vget_low_s16(s->min[h][1]), bsums, 2);
    n = vmlal_high_laneq_s16(n, s->min[h][1], bsums, 3);
    m = vmlal_laneq_s16(m, vget_low_s16(s->min[h][2]), bsums, 4);
    n = vmlal_high_laneq_s16(n, s->min[h][2], bsums, 5);
    m = vmlal_laneq_s16(m, vget_low_s16(s->min[h][3]), bsums, 6);
    n = vmlal_high_laneq_s16(n, s->min[h][3], bsums, 7);
    float32x4_t f = vmulq_f32(s->d[h], vcvtq_f32_s32(vpaddq_s32(sum_0, sum_1)));
    f = vfmsq_f32(f, s->d[2 + h], vcvtq_f32_s32(vaddq_s32(m, n)));
    return vfmaq_n_f32(y, f, x->d);
}

#define LOW(d, raw) V_AND(d, raw, four_bits)
#define UNPACK(lo, hi, p, off) ROWS_UNPACK_NIBBLES(LOW, V_USHR, lo, hi, p, off)

/* sum[0], sum[1] += t[0] * scale */
#define WEIGH(sum_0, sum_1, t, scale)        \
    do {                                     \
        V_SMLAL_4S(sum_0, t##0, scale);    \
        V_SMLAL2_4S(sum_1, t##0, scale);   \
    } while (0)

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    const uint8x16_t four_bits = vdupq_n_u8(15);
    uint8x16_t lo[4], hi[4], lo2[4], hi2[4], x0, x1;
    ROWS_VARIABLES(int16x8_t);
    float32x4_t y0 = vdupq_n_f32(0), y1 = y0;
    for (int64_t b = 0; b < k / 256; b++, w += BLOCK_BYTES, x += sizeof(pn_act256)) {
        wide_scales s;
        int32x4_t i0 = vdupq_n_s32(0), i1 = i0, i2 = i0, i3 = i0;
        widen(&s, w);
        for (int j = 0; j < 8; j++) {
            UNPACK(lo, hi, w + SUB_BYTES * j, CODES);
            UNPACK(lo2, hi2, w + SUB_BYTES * j, CODES + HALF_BYTES);
            V_LDR(x0, x + 32 * j, 0);
            V_LDR(x1, x + 32 * j, 16);
            ROWS_DOT_32(t, lo, hi, x0, x1, u, lo2, hi2, x0, x1);
            ROWS_JOIN(t, u);
            WEIGH(i0, i1, t, s.scale[0][j]);
            WEIGH(i2, i3, u, s.scale[1][j]);
        }
        y0 = finish(y0, i0, i1, &s, 0, (const pn_act256 *)(const void *)x);
        y1 = finish(y1, i2, i3, &s, 1, (const pn_act256 *)(const void *)x);
    }
    vst1q_f32(y, y0);
    vst1q_f32(y + 4, y1);
}

/* Columns c and c + 1 of sub-block j. */
#define COLUMNS_2(c, scale)                                        \
    do {                                                           \
        V_LDR(x0, row[c] + 32 * j, 0);                             \
        V_LDR(z0, row[(c) + 1] + 32 * j, 0);                       \
        V_LDR(x1, row[c] + 32 * j, 16);                            \
        V_LDR(z1, row[(c) + 1] + 32 * j, 16);                      \
        ROWS_DOT_32(t, lo, hi, x0, x1, u, lo, hi, z0, z1);         \
        ROWS_JOIN(t, u);                                           \
        WEIGH(sum[2 * (c)], sum[2 * (c) + 1], t, scale);           \
        WEIGH(sum[2 * (c) + 2], sum[2 * (c) + 3], u, scale);       \
    } while (0)

static inline void half_4(float *y, const uint8_t *w, const uint8_t *const row[TILE_COLS], const wide_scales *s, int h)
{
    const uint8x16_t four_bits = vdupq_n_u8(15);
    uint8x16_t lo[4], hi[4], x0, x1, z0, z1;
    ROWS_VARIABLES(int16x8_t);
    int32x4_t sum[8];
    for (int i = 0; i < 8; i++) V_ZERO(sum[i]);
    for (int j = 0; j < 8; j++) {
        UNPACK(lo, hi, w + SUB_BYTES * j, 0);
        COLUMNS_2(0, s->scale[h][j]);
        COLUMNS_2(2, s->scale[h][j]);
    }
    for (int c = 0; c < 4; c++) {
        float *to = y + 8 * c + 4 * h;
        vst1q_f32(to, finish(vld1q_f32(to), sum[2 * c], sum[2 * c + 1], s, h, (const pn_act256 *)(const void *)row[c]));
    }
}

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y)
{
    memset(y, 0, TILE_COLS * TILE_ROWS * sizeof *y);
    for (int64_t b = 0; b < k / 256; b++, w += BLOCK_BYTES) {
        const uint8_t *row[TILE_COLS];
        for (int c = 0; c < 4; c++) row[c] = x[c] + b * (int64_t)sizeof(pn_act256);
        wide_scales s;
        widen(&s, w);
        half_4(y, w + CODES, row, &s, 0);
        half_4(y, w + CODES + HALF_BYTES, row, &s, 1);
    }
}

TILE_KERNEL(q4_k, neon, 256, 144, BLOCK_BYTES)
