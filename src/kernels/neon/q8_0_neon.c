/* kernels/neon/q8_0_neon.c - Q8_0 on cores without sdot. A packed block of 8 rows x 32 columns: 8 half scales, then 32 bytes a row.
 * A 16-bit lane holds 2 products (128*127*2 = 32,512), so sums of 32 bits begin after two multiplications. */
#include "kernels/neon/rows.h"

enum { CODES = 16, BLOCK_BYTES = CODES + 256 };

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q8_0, false, src, row_bytes, n_valid);
    memcpy(dst, t.d, 16);
    for (int r = 0; r < TILE_ROWS; r++) memcpy(dst + CODES + 32 * r, t.row[r].w, 32);
}

#define LOAD_4_ROWS(lo, hi, p, off)      \
    do {                                 \
        V_LDR((lo)[0], p, off);          \
        V_LDR((hi)[0], p, (off) + 16);   \
        V_LDR((lo)[1], p, (off) + 32);   \
        V_LDR((hi)[1], p, (off) + 48);   \
        V_LDR((lo)[2], p, (off) + 64);   \
        V_LDR((hi)[2], p, (off) + 80);   \
        V_LDR((lo)[3], p, (off) + 96);   \
        V_LDR((hi)[3], p, (off) + 112);  \
    } while (0)

/* Sums of 4 rows with the block at x, still by lanes, go to t4, what they are to be multiplied with to s. Meanwhile those of the column before
 * are joined and added, before = fma(float(t), s, before): A53 takes 6 to 10 cycles for each step of that tail. */
#define COLUMN(before, d, x)                \
    do {                                    \
        V_LDR(x1, x, 16);                   \
        V_LDR(x0, x, 0);                    \
        V_LDR_S(da, x, 32);                 \
        ROWS_EACH(V_SMULL, u, hi, x1);      \
        V_ADDP_4S(joined, t0, t1);      \
        V_ADDP_4S(t2, t2, t3);        \
        ROWS_EACH(V_SMLAL2, u, hi, x1);     \
        V_ADDP_4S(joined, joined, t2);    \
        ROWS_EACH(V_SMULL, t, lo, x0);      \
        V_SCVTF(joined, joined);            \
        V_FMUL_LANE(da, d, da, 0);          \
        ROWS_EACH(V_SMLAL2, t, lo, x0);     \
        V_FMLA(before, joined, s);          \
        V_SADDLP(t0, t0);               \
        V_SADDLP(t1, t1);               \
        V_SADDLP(t2, t2);               \
        V_SADDLP(t3, t3);               \
        s = da;                             \
        V_SADALP(t0, u0);               \
        V_SADALP(t1, u1);               \
        V_SADALP(t2, u2);               \
        V_SADALP(t3, u3);               \
    } while (0)

static inline float32x4_t finish(float32x4_t before, int32x4_t t0, int32x4_t t1, int32x4_t t2, int32x4_t t3, float32x4_t s)
{
    return vfmaq_f32(before, vcvtq_f32_s32(vpaddq_s32(vpaddq_s32(t0, t1), vpaddq_s32(t2, t3))), s);
}

static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    ROWS_VARIABLES(int32x4_t);
    uint8x16_t lo[4], hi[4], x0, x1, halves;
    int32x4_t joined;
    float32x4_t y0 = vdupq_n_f32(0), y1 = y0, d0, d1, s = y0, da;
    V_ZERO(t0);
    V_ZERO(t1);
    V_ZERO(t2);
    V_ZERO(t3);
    for (int64_t b = 0; b < k / 32; b++, w += BLOCK_BYTES, x += sizeof(pn_act32)) {
        V_LDR(halves, w, 0);
        LOAD_4_ROWS(lo, hi, w, CODES);
        V_FCVTL(d0, halves);
        V_FCVTL2(d1, halves);
        COLUMN(y1, d0, x);
        LOAD_4_ROWS(lo, hi, w, CODES + 128);
        COLUMN(y0, d1, x);
    }
    vst1q_f32(y, y0);
    vst1q_f32(y + 4, finish(y1, t0, t1, t2, t3, s));
}

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *out)
{
    ROWS_VARIABLES(int32x4_t);
    uint8x16_t lo[4], hi[4], x0, x1, halves;
    int32x4_t joined;
    float32x4_t y[8], d, s = vdupq_n_f32(0), da;
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    for (int j = 0; j < 8; j++) y[j] = vdupq_n_f32(0);
    V_ZERO(t0);
    V_ZERO(t1);
    V_ZERO(t2);
    V_ZERO(t3);
    for (int64_t b = 0; b < k / 32; b++, w += BLOCK_BYTES) {
        V_LDR(halves, w, 0);
        LOAD_4_ROWS(lo, hi, w, CODES);
        V_FCVTL(d, halves);
        COLUMN(y[7], d, row[0]);
        COLUMN(y[0], d, row[1]);
        COLUMN(y[2], d, row[2]);
        COLUMN(y[4], d, row[3]);
        V_LDR(halves, w, 0);
        LOAD_4_ROWS(lo, hi, w, CODES + 128);
        V_FCVTL2(d, halves);
        COLUMN(y[6], d, row[0]);
        COLUMN(y[1], d, row[1]);
        COLUMN(y[3], d, row[2]);
        COLUMN(y[5], d, row[3]);
        for (int c = 0; c < 4; c++) row[c] += sizeof(pn_act32);
    }
    y[7] = finish(y[7], t0, t1, t2, t3, s);
    for (int j = 0; j < 8; j++) vst1q_f32(out + 4 * j, y[j]);
}

TILE_KERNEL(q8_0, neon, 32, 34, BLOCK_BYTES)
