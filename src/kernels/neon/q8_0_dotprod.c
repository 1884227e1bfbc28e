/* kernels/neon/q8_0_dotprod.c - Q8_0 on cores with sdot. A packed block of 8 rows x 32 columns: 8 half scales, then 16 vectors,
 * quad of columns by quad, half 0 before half 1 (dot.h). Knows nothing of other formats. */
#include "kernels/neon/dot.h"

enum { BLOCK_BYTES = 16 + 256 };

static void pack_block(uint8_t *dst, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    tile_codes t;
    tile_read(&t, pn_codes_q8_0, false, src, row_bytes, n_valid);
    memcpy(dst, t.d, 16);
    for (int quad = 0; quad < 8; quad++)
        for (int h = 0; h < 2; h++)
            for (int i = 0; i < 16; i++) dst[16 + 32 * quad + 16 * h + i] = dot_code(&t, h, quad, i);
}

/* Quad q of this block, whose vectors are in a0, a1; they are reloaded for two quads on. Even quads sum in i, odd ones in j. */
#define QUAD(s0, s1, a0, a1, x, lane, from, off) \
    V_SDOT(s0, a0, x, lane);                     \
    V_LDR(a0, from, off);                        \
    V_SDOT(s1, a1, x, lane);                     \
    V_LDR(a1, from, (off) + 16)

/* The float work of a block is done inside the next one. */
static void tile_1(const uint8_t *w, const uint8_t *x, int64_t k, float *y)
{
    const float32x4_t zero = vdupq_n_f32(0);
    uint8x16_t a0, a1, b0, b1, x0, x1, halves;
    int32x4_t i0 = vdupq_n_s32(0), i1 = i0, j0 = i0, j1 = i0;
    float32x4_t y0 = zero, y1 = zero, d0 = zero, d1 = zero, f0, f1, da;
    V_LDR(a0, w, 16);
    V_LDR(a1, w, 32);
    V_LDR(b0, w, 48);
    V_LDR(b1, w, 64);
    V_LDR(x0, x, 0);
    for (int64_t left = k / 32; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES), *nx = dot_next(x, left, sizeof(pn_act32));
        V_LDR(x1, x, 16);
        V_ADD_4S(f0, i0, j0);
        V_ADD_4S(f1, i1, j1);
        V_ZERO(i0);
        V_LDR(halves, w, 0);
        V_ZERO(i1);
        V_LDR_S(da, x, 32);
        QUAD(i0, i1, a0, a1, x0, 0, w, 80);
        V_ZERO(j0);
        V_ZERO(j1);
        QUAD(j0, j1, b0, b1, x0, 1, w, 112);
        V_SCVTF(f0, f0);
        V_SCVTF(f1, f1);
        QUAD(i0, i1, a0, a1, x0, 2, w, 144);
        QUAD(j0, j1, b0, b1, x0, 3, w, 176);
        V_LDR(x0, nx, 0);
        V_FMLA(y0, f0, d0);
        V_FMLA(y1, f1, d1);
        QUAD(i0, i1, a0, a1, x1, 0, w, 208);
        V_FCVTL(d0, halves);
        V_FCVTL2(d1, halves);
        QUAD(j0, j1, b0, b1, x1, 1, w, 240);
        QUAD(i0, i1, a0, a1, x1, 2, nw, 16);
        QUAD(j0, j1, b0, b1, x1, 3, nw, 48);
        V_FMUL_LANE(d0, d0, da, 0);
        V_FMUL_LANE(d1, d1, da, 0);
        w = nw;
        x = nx;
    }
    vst1q_f32(y, vfmaq_f32(y0, vcvtq_f32_s32(vaddq_s32(i0, j0)), d0));
    vst1q_f32(y + 4, vfmaq_f32(y1, vcvtq_f32_s32(vaddq_s32(i1, j1)), d1));
}

/* Quad q of this block from a[0], a[1], reloaded for the next but one. */
#define QUAD_4(i, a, x, lane, from, off) \
    DOT_COLUMNS(i, 0, (a)[0], x, lane);  \
    V_LDR((a)[0], from, off);            \
    DOT_COLUMNS(i, 1, (a)[1], x, lane);  \
    V_LDR((a)[1], from, (off) + 16)
#define QUAD_4_RELOAD(i, a, x, lane, from, off, rows, x_off)     \
    DOT_COLUMNS(i, 0, (a)[0], x, lane);                          \
    V_LDR((a)[0], from, off);                                    \
    DOT_COLUMNS_RELOAD(i, 1, (a)[1], x, lane, rows, x_off);      \
    V_LDR((a)[1], from, (off) + 16)

static void tile_4(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *out)
{
    uint8x16_t a[2], b[2], v0, v1, v2, v3, halves;
    DOT_VARIABLES(int32x4_t, i, 16, 17, 18, 19, 20, 21, 22, 23);
    DOT_VARIABLES(float32x4_t, y, 24, 25, 26, 27, 28, 29, 30, 31);
    float32x4_t d0, d1;
    const uint8_t *row[4] = {x[0], x[1], x[2], x[3]};
    DOT_ZERO_8(y);
    V_LDR(a[0], w, 16);
    V_LDR(a[1], w, 32);
    V_LDR(b[0], w, 48);
    V_LDR(b[1], w, 64);
    DOT_LOAD_4(v, row, 0);
    for (int64_t left = k / 32; left > 0; left--) {
        const uint8_t *nw = dot_next(w, left, BLOCK_BYTES);
        const int64_t step = dot_step(left, sizeof(pn_act32));
        const uint8_t *next[4] = {row[0] + step, row[1] + step, row[2] + step, row[3] + step};
        DOT_ZERO_8(i);
        QUAD_4(i, a, v, 0, w, 80);
        QUAD_4(i, b, v, 1, w, 112);
        QUAD_4(i, a, v, 2, w, 144);
        QUAD_4_RELOAD(i, b, v, 3, w, 176, row, 16);
        QUAD_4(i, a, v, 0, w, 208);
        QUAD_4(i, b, v, 1, w, 240);
        QUAD_4(i, a, v, 2, nw, 16);
        V_LDR(halves, w, 0);
        QUAD_4_RELOAD(i, b, v, 3, nw, 48, next, 0);
        V_FCVTL(d0, halves);
        V_FCVTL2(d1, halves);
        DOT_SCALE_2(y, i, 0, 1, d0, d1, row[0], row[1], V_SCVTF);
        DOT_SCALE_2(y, i, 2, 3, d0, d1, row[2], row[3], V_SCVTF);
        w = nw;
        for (int j = 0; j < 4; j++) row[j] = next[j];
    }
    DOT_STORE_8(out, y);
}

TILE_KERNEL(q8_0, dotprod, 32, 34, BLOCK_BYTES)
