/* kernels/neon/attention_neon.c - scores and weighted values of pn_ops: the layouts and the order of sums stand in ops.def.
 *
 * K: lanes are positions, so a score is one chain over channels. V: lanes are channels, so an output is one chain over positions. Up to
 * four queries share each load; their number is a constant in the inner functions. */
#include "kernels/neon/ops_neon.h"

#include "quant/codes.h"

#include <arm_neon.h>
#include <math.h>

enum { TILE = 16, PV_BLOCK = 64, FORM_F32 = 0, FORM_F16 = 1, FORM_Q8_0 = 2 };

#define INLINE static inline __attribute__((always_inline))

INLINE float32x4_t half_4(const uint8_t *p) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p))); }

INLINE void codes_16(float32x4_t w[4], const uint8_t *p)
{
    const int8x16_t codes = vreinterpretq_s8_u8(vld1q_u8(p));
    const int16x8_t low = vmovl_s8(vget_low_s8(codes)), high = vmovl_high_s8(codes);
    w[0] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    w[1] = vcvtq_f32_s32(vmovl_high_s16(low));
    w[2] = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    w[3] = vcvtq_f32_s32(vmovl_high_s16(high));
}

/* 16 values at p: floats, halves, or codes without their scale. */
INLINE void load_16(float32x4_t w[4], const uint8_t *p, int form)
{
    if (form == FORM_Q8_0) codes_16(w, p);
    else
        for (int v = 0; v < 4; v++) w[v] = form == FORM_F32 ? vreinterpretq_f32_u8(vld1q_u8(p + 16 * v)) : half_4(p + 8 * v);
}

/* ---- scores ---- */

/* acc[i][v] = fma(q_i, k, acc[i][v]) over channels c .. c + n - 1, the first of which lies at k. */
INLINE void qk_channels(float32x4_t acc[][4], const uint8_t *k, const float *const *q, int n_q, int c, int n, int form)
{
    const int step = form == FORM_F32 ? 4 * TILE : form == FORM_F16 ? 2 * TILE : TILE;
    float32x4_t w[4], a[4];
    int j = 0;
#define QK_CHANNEL(lane)                                                                         \
    load_16(w, k + (j + (lane)) * step, form);                                                   \
    for (int i = 0; i < n_q; i++)                                                                \
        for (int v = 0; v < 4; v++) acc[i][v] = vfmaq_laneq_f32(acc[i][v], w[v], a[i], lane)
    for (; j + 4 <= n; j += 4) {
        for (int i = 0; i < n_q; i++) a[i] = vld1q_f32(q[i] + c + j);
        QK_CHANNEL(0);
        QK_CHANNEL(1);
        QK_CHANNEL(2);
        QK_CHANNEL(3);
    }
    for (; j < n; j++) {
        for (int i = 0; i < n_q; i++) a[i] = vdupq_n_f32(q[i][c + j]);
        QK_CHANNEL(0);
    }
#undef QK_CHANNEL
}

INLINE void zero_16(float32x4_t acc[][4], int n_q)
{
    for (int i = 0; i < n_q; i++)
        for (int v = 0; v < 4; v++) acc[i][v] = vdupq_n_f32(0);
}

INLINE void qk_tile(float *scores, int64_t ld, const uint8_t *k, const float *const *q, int n_q, int d, int form)
{
    float32x4_t acc[4][4], u[4][4];
    zero_16(acc, n_q);
    if (form != FORM_Q8_0) qk_channels(acc, k, q, n_q, 0, d, form);
    else
        for (int c = 0; c < d; c += 32, k += 2 * TILE + 32 * TILE) {
            zero_16(u, n_q);
            qk_channels(u, k + 2 * TILE, q, n_q, c, 32, form);
            for (int v = 0; v < 4; v++) {
                const float32x4_t scale = half_4(k + 8 * v);
                for (int i = 0; i < n_q; i++) acc[i][v] = vfmaq_f32(acc[i][v], u[i][v], scale);
            }
        }
    for (int i = 0; i < n_q; i++)
        for (int v = 0; v < 4; v++) vst1q_f32(scores + i * ld + 4 * v, acc[i][v]);
}

/* q8_0 holds two sets of accumulators: two queries at most. */
INLINE void qk_all(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d, int form)
{
    const int most = form == FORM_Q8_0 ? 2 : 4;
    for (int64_t t = 0; t < n_tiles; t++) {
        const uint8_t *tile = (const uint8_t *)k + (size_t)t * tile_bytes;
        int i = 0;
        for (; i + most <= n_q; i += most) qk_tile(scores + i * ld + t * TILE, ld, tile, q + i, most, d, form);
        for (; i < n_q; i++) qk_tile(scores + i * ld + t * TILE, ld, tile, q + i, 1, d, form);
    }
}

#define QK(type, form)                                                                                                                            \
    void pn_neon_qk_##type(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d)    \
    {                                                                                                                                             \
        qk_all(scores, ld, k, tile_bytes, n_tiles, q, n_q, d, form);                                                                              \
    }
QK(f32, FORM_F32)
QK(f16, FORM_F16)
QK(q8_0, FORM_Q8_0)

/* ---- weighted values ---- */

/* Channels c .. c + 15 of the row at v. */
INLINE void value_16(float32x4_t w[4], const uint8_t *v, int c, int form)
{
    if (form == FORM_Q8_0) {
        const uint8_t *block = v + c / 32 * 34;
        const float32x4_t scale = vcvt_f32_f16(vreinterpret_f16_u16(vld1_dup_u16((const uint16_t *)(const void *)block)));
        codes_16(w, block + 2 + c % 32);
        for (int j = 0; j < 4; j++) w[j] = vmulq_f32(w[j], scale);
    } else load_16(w, v + c * (form == FORM_F32 ? 4 : 2), form);
}

/* Channels c .. c + 15 of n_q outputs over all positions. */
INLINE void pv_16(float *const *o, const float *p, int64_t ld, const uint8_t *v, size_t row_bytes, int64_t n_pos, int n_q, int c, int form)
{
    float32x4_t acc[4][4], w[4];
    for (int i = 0; i < n_q; i++)
        for (int j = 0; j < 4; j++) acc[i][j] = vld1q_f32(o[i] + c + 4 * j);
    for (int64_t t = 0; t < n_pos; t++, v += row_bytes) {
        value_16(w, v, c, form);
        for (int i = 0; i < n_q; i++)
            for (int j = 0; j < 4; j++) acc[i][j] = vfmaq_n_f32(acc[i][j], w[j], p[i * ld + t]);
    }
    for (int i = 0; i < n_q; i++)
        for (int j = 0; j < 4; j++) vst1q_f32(o[i] + c + 4 * j, acc[i][j]);
}

/* One channel beyond the last 16; q8_0 has none. */
INLINE void pv_one(float *o, const float *p, const uint8_t *v, size_t row_bytes, int64_t n_pos, int c, int form)
{
    float acc = *o;
    for (int64_t t = 0; t < n_pos; t++, v += row_bytes) acc = fmaf(p[t], form == FORM_F32 ? pn_load_f32(v + 4 * c) : pn_load_f16(v + 2 * c), acc);
    *o = acc;
}

/* Positions in blocks that stay in the first-level cache while all channels and queries pass over them. */
INLINE void pv_all(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d, int form)
{
    const int whole = d / 16 * 16;
    for (int64_t t = 0; t < n_pos; t += PV_BLOCK) {
        const int64_t n = pn_min64(n_pos - t, PV_BLOCK);
        const uint8_t *rows = (const uint8_t *)v + (size_t)t * row_bytes;
        int i = 0;
        for (; i + 4 <= n_q; i += 4)
            for (int c = 0; c < whole; c += 16) pv_16(o + i, p + i * ld + t, ld, rows, row_bytes, n, 4, c, form);
        for (; i < n_q; i++)
            for (int c = 0; c < whole; c += 16) pv_16(o + i, p + i * ld + t, ld, rows, row_bytes, n, 1, c, form);
        for (int c = whole; c < d; c++)
            for (int j = 0; j < n_q; j++) pv_one(&o[j][c], p + j * ld + t, rows, row_bytes, n, c, form);
    }
}

#define PV(type, form)                                                                                                                             \
    void pn_neon_pv_##type(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d)            \
    {                                                                                                                                              \
        pv_all(o, p, ld, v, row_bytes, n_pos, n_q, d, form);                                                                                       \
    }
PV(f32, FORM_F32)
PV(f16, FORM_F16)
PV(q8_0, FORM_Q8_0)

/* ---- a tile of K as rows ---- */

/* 16 positions of channel c of a tile. */
INLINE void channel_16(float32x4_t w[4], const uint8_t *k, int c, int form)
{
    if (form != FORM_Q8_0) {
        load_16(w, k + (size_t)c * TILE * (form == FORM_F32 ? 4 : 2), form);
        return;
    }
    const uint8_t *block = k + (size_t)(c / 32) * 34 * TILE;
    codes_16(w, block + 2 * TILE + c % 32 * TILE);
    for (int j = 0; j < 4; j++) w[j] = vmulq_f32(w[j], half_4(block + 8 * j));
}

/* Four channels of 16 positions to rows. */
INLINE void turn_4(float *y, int64_t ld, float32x4_t w[4][4])
{
    for (int j = 0; j < 4; j++) {
        const float32x4x2_t a = vtrnq_f32(w[0][j], w[1][j]), b = vtrnq_f32(w[2][j], w[3][j]);
        float *row = y + 4 * j * ld;
        vst1q_f32(row, vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0])));
        vst1q_f32(row + ld, vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1])));
        vst1q_f32(row + 2 * ld, vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0])));
        vst1q_f32(row + 3 * ld, vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1])));
    }
}

INLINE void k_rows_all(float *y, int64_t ld, const uint8_t *k, int d, int form)
{
    int c = 0;
    for (; c + 4 <= d; c += 4) {
        float32x4_t w[4][4];
        for (int i = 0; i < 4; i++) channel_16(w[i], k, c + i, form);
        turn_4(y + c, ld, w);
    }
    for (; c < d; c++) {
        float32x4_t w[4];
        float t[TILE];
        channel_16(w, k, c, form);
        for (int j = 0; j < 4; j++) vst1q_f32(t + 4 * j, w[j]);
        for (int p = 0; p < TILE; p++) y[p * ld + c] = t[p];
    }
}

#define K_ROWS(type, form)                                                          \
    void pn_neon_k_rows_##type(float *y, int64_t ld, const void *k, int d)          \
    {                                                                               \
        k_rows_all(y, ld, k, d, form);                                              \
    }
K_ROWS(f32, FORM_F32)
K_ROWS(f16, FORM_F16)
K_ROWS(q8_0, FORM_Q8_0)
