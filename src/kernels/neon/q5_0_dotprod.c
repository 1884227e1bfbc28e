/* kernels/neon/q5_0_dotprod.c - Q5_0 on cores with sdot. A packed block of 8 rows x 32 columns, 176 bytes, no growth: 8 half scales, then for
 * each 16 columns 5 vectors that hold the 8 vectors v = 2*quad + half (dot.h).
 *
 * Codes are two's complement. Vectors 0..4 have theirs in bits 3-7; 5, 6, 7 have their top three bits in bits 0-2 of vectors 0, 1, 2, and the
 * other two in bits 1-2 of vector 3, in bits 1-2 of vector 4, and in bit 0 of vectors 3 and 4. So all unpack to 8 times the signed code;
 * sums stay below 2^24 and lose the factor when they become float. Knows nothing of other formats. */
#include "kernels/neon/dot.h"

enum { CODES = 16, GROUP_BYTES = 80, BLOCK_BYTES = CODES + 2 * GROUP_BYTES };

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q5_0, false, src, row_bytes, n_valid);
    memcpy(dst, t.d, 16);
    for (int g = 0; g < 2; g++)
        for (int i = 0; i < 16; i++) {
            uint8_t *to = dst + CODES + GROUP_BYTES * g + i;
            unsigned code[8];
            for (int v = 0; v < 8; v++) code[v] = dot_code(&t, v % 2, 4 * g + v / 2, i) & 31u;
            for (int v = 0; v < 3; v++) to[16 * v] = (uint8_t)(code[v] << 3 | code[5 + v] >> 2);
            to[48] = (uint8_t)(code[3] << 3 | (code[5] & 3u) << 1 | (code[7] >> 1 & 1u));
            to[64] = (uint8_t)(code[4] << 3 | (code[6] & 3u) << 1 | (code[7] & 1u));
        }
}

#define TOP_5(d, raw) V_AND(d, raw, five_bits)
#define LOAD_5(r, p, off)             \
    do {                              \
        V_LDR((r)[0], p, off);        \
        V_LDR((r)[1], p, (off) + 16); \
        V_LDR((r)[2], p, (off) + 32); \
        V_LDR((r)[3], p, (off) + 48); \
        V_LDR((r)[4], p, (off) + 64); \
    } while (0)
/* Vectors 5, 6, 7 of the raw r. */
#define UNPACK_3(a, b, c, r)      \
    do {                          \
        V_SHL(a, (r)[3], 2);      \
        V_SHL(b, (r)[4], 2);      \
        V_SHL(c, (r)[4], 3);      \
        V_SLI(a, (r)[0], 5);      \
        V_SLI(b, (r)[1], 5);      \
        V_SLI(c, (r)[3], 4);      \
        TOP_5(a, a);              \
        TOP_5(b, b);              \
        V_SLI(c, (r)[2], 5);      \
    } while (0)

/* 16 columns, unpacked in v[8], meet x; the next ones, raw in r, are unpacked in their place; the next but one are loaded. */
#define GROUP(x, from, off, fill_1, fill_2, fill_3, fill_4) \
    do {                               \
        V_SDOT(sum0, v[0], x, 0);      \
        V_SDOT(sum1, v[1], x, 0);      \
        TOP_5(v[0], r[0]);             \
        TOP_5(v[1], r[1]);             \
        fill_1;                        \
        V_SDOT(sum0, v[2], x, 1);      \
        V_SDOT(sum1, v[3], x, 1);      \
        TOP_5(v[2], r[2]);             \
        TOP_5(v[3], r[3]);             \
        fill_2;                        \
        V_SDOT(sum0, v[4], x, 2);      \
        V_SDOT(sum1, v[5], x, 2);      \
        TOP_5(v[4], r[4]);             \
        V_SHL(v[5], r[3], 2);          \
        fill_3;                        \
        V_SDOT(sum0, v[6], x, 3);      \
        V_SDOT(sum1, v[7], x, 3);      \
        V_SHL(v[6], r[4], 2);          \
        V_SHL(v[7], r[4], 3);          \
        V_LDR(r[4], from, (off) + 64); \
        V_SLI(v[5], r[0], 5);          \
        V_LDR(r[0], from, off);        \
        V_SLI(v[6], r[1], 5);          \
        V_LDR(r[1], from, (off) + 16); \
        V_SLI(v[7], r[3], 4);          \
        V_LDR(r[3], from, (off) + 48); \
        fill_4;                        \
        TOP_5(v[5], v[5]);             \
        TOP_5(v[6], v[6]);             \
        V_SLI(v[7], r[2], 5);          \
        V_LDR(r[2], from, (off) + 32); \
    } while (0)

/* The float work of a block is done inside the next one. */
static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    const uint8x16_t five_bits = vdupq_n_u8(0xf8);
    const float32x4_t zero = vdupq_n_f32(0);
    uint8x16_t v[8], r[5], x0, x1, halves;
    int32x4_t sum0, sum1;
    float32x4_t y0 = zero, y1 = zero, f0 = zero, f1 = zero, d0 = zero, d1 = zero, da;
    LOAD_5(r, w, CODES);
    TOP_5(v[0], r[0]);
    TOP_5(v[1], r[1]);
    TOP_5(v[2], r[2]);
    TOP_5(v[3], r[3]);
    TOP_5(v[4], r[4]);
    UNPACK_3(v[5], v[6], v[7], r);
    LOAD_5(r, w, CODES + GROUP_BYTES);
    V_LDR(x0, x, 0);
    for (int64_t left = k / 32; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES), *nx = dot_next(x, left, sizeof(pn_act32));
        V_ZERO(sum0);
        V_ZERO(sum1);
        GROUP(x0, nw, CODES, V_LDR(x1, x, 16), V_FMLA(y0, f0, d0); V_FMLA(y1, f1, d1), V_LDR(halves, w, 0), V_LDR_S(da, x, 32));
        GROUP(x1, nw, CODES + GROUP_BYTES, V_LDR(x0, nx, 0), V_FCVTL(d0, halves), V_FCVTL2(d1, halves),
              V_FMUL_LANE(d0, d0, da, 0); V_FMUL_LANE(d1, d1, da, 0));
        V_SCVTF_8(f0, sum0);
        V_SCVTF_8(f1, sum1);
        w = nw;
        x = nx;
    }
    vst1q_f32(y, vfmaq_f32(y0, f0, d0));
    vst1q_f32(y + 4, vfmaq_f32(y1, f1, d1));
}

/* ---- 8 rows x 4 columns ---- */

/* 16 columns: s, t hold vectors 0, 1, r the raw ones; both are replaced by the next ones. LAST: the activations' last use. */
#define GROUP_4(from, off, LAST)       \
    do {                               \
        uint8x16_t a, b, c;            \
        DOT_COLUMNS(sum, 0, s, v, 0);  \
        V_SHL(a, r[3], 2);             \
        TOP_5(s, r[2]);                \
        DOT_COLUMNS(sum, 1, t, v, 0);  \
        V_SLI(a, r[0], 5);             \
        TOP_5(t, r[3]);                \
        V_LDR(r[0], from, off);        \
        DOT_COLUMNS(sum, 0, s, v, 1);  \
        TOP_5(a, a);                   \
        V_SHL(b, r[4], 2);             \
        DOT_COLUMNS(sum, 1, t, v, 1);  \
        TOP_5(s, r[4]);                \
        V_SHL(c, r[4], 3);             \
        V_LDR(r[4], from, (off) + 64); \
        DOT_COLUMNS(sum, 1, a, v, 2);  \
        V_SLI(b, r[1], 5);             \
        V_LDR(r[1], from, (off) + 16); \
        V_SLI(c, r[3], 4);             \
        V_LDR(r[3], from, (off) + 48); \
        DOT_COLUMNS(sum, 0, s, v, 2);  \
        TOP_5(b, b);                   \
        V_SLI(c, r[2], 5);             \
        V_LDR(r[2], from, (off) + 32); \
        TOP_5(s, r[0]);                \
        DOT_COLUMNS(sum, 0, b, v, 3);  \
        TOP_5(t, r[1]);                \
        LAST;                          \
    } while (0)

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *out)
{
    const uint8x16_t five_bits = vdupq_n_u8(0xf8);
    uint8x16_t r[5], v0, v1, v2, v3, s, t, halves;
    DOT_VARIABLES(int32x4_t, sum, 16, 17, 18, 19, 20, 21, 22, 23);
    DOT_VARIABLES(float32x4_t, y, 24, 25, 26, 27, 28, 29, 30, 31);
    float32x4_t d0, d1;
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    DOT_ZERO_8(y);
    LOAD_5(r, w, CODES);
    TOP_5(s, r[0]);
    TOP_5(t, r[1]);
    DOT_LOAD_4(v, row, 0);
    for (int64_t left = k / 32; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES);
        const int64_t step = dot_step(left, sizeof(pn_act32));
        const uint8_t *next[4] = {row[0] + step, row[1] + step, row[2] + step, row[3] + step};
        DOT_ZERO_8(sum);
        GROUP_4(w, CODES + GROUP_BYTES, DOT_COLUMNS_RELOAD(sum, 1, c, v, 3, row, 16));
        V_LDR(halves, w, 0);
        GROUP_4(nw, CODES, DOT_COLUMNS_RELOAD(sum, 1, c, v, 3, next, 0));
        V_FCVTL(d0, halves);
        V_FCVTL2(d1, halves);
        DOT_SCALE_2(y, sum, 0, 1, d0, d1, row[0], row[1], V_SCVTF_8);
        DOT_SCALE_2(y, sum, 2, 3, d0, d1, row[2], row[3], V_SCVTF_8);
        w = nw;
        for (int j = 0; j < 4; j++) row[j] = next[j];
    }
    DOT_STORE_8(out, y);
}

TILE_KERNEL(q5_0, dotprod, 32, 22, BLOCK_BYTES)
