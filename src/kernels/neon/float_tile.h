/* kernels/neon/float_tile.h - 16 rows of float weights, channel by channel ([k][16], f32 or f16), times columns of floats:
 * acc = fma(w, x, acc), k ascending. Serves the f32 and f16 kernels and the exact product. */
#ifndef PN_NEON_FLOAT_TILE_H
#define PN_NEON_FLOAT_TILE_H

#include "kernels/registry.h"
#include "quant/codes.h"

#include <arm_neon.h>

enum { FLOAT_ROWS = 16, FLOAT_COLS = 4 };

/* The 16 weights of channel k. `half` is a constant. */
static inline __attribute__((always_inline)) void float_load(float32x4_t w[4], const void *tile, int64_t k, bool half)
{
    if (half) {
        const uint16_t *p = (const uint16_t *)tile + k * FLOAT_ROWS;
        const float16x8_t low = vreinterpretq_f16_u16(vld1q_u16(p)), high = vreinterpretq_f16_u16(vld1q_u16(p + 8));
        w[0] = vcvt_f32_f16(vget_low_f16(low));
        w[1] = vcvt_high_f32_f16(low);
        w[2] = vcvt_f32_f16(vget_low_f16(high));
        w[3] = vcvt_high_f32_f16(high);
    } else {
        const float *p = (const float *)tile + k * FLOAT_ROWS;
        for (int v = 0; v < 4; v++) w[v] = vld1q_f32(p + 4 * v);
    }
}

/* y[n_cols][16]; n_cols is a constant: 1 or 4. */
static inline __attribute__((always_inline)) void float_tile(float *y, const void *tile, const float *const x[], int64_t n, int n_cols, bool half)
{
    float32x4_t acc[FLOAT_COLS][4], w[4];
    for (int c = 0; c < n_cols; c++)
        for (int v = 0; v < 4; v++) acc[c][v] = vdupq_n_f32(0);
    int64_t k = 0;
#define FLOAT_CHANNEL(lane)                                                                                        \
    float_load(w, tile, k + (lane), half);                                                                         \
    for (int c = 0; c < n_cols; c++)                                                                               \
        for (int v = 0; v < 4; v++) acc[c][v] = vfmaq_laneq_f32(acc[c][v], w[v], a[c], lane)
    for (; k + 4 <= n; k += 4) {
        float32x4_t a[FLOAT_COLS];
        for (int c = 0; c < n_cols; c++) a[c] = vld1q_f32(x[c] + k);
        FLOAT_CHANNEL(0);
        FLOAT_CHANNEL(1);
        FLOAT_CHANNEL(2);
        FLOAT_CHANNEL(3);
    }
    for (; k < n; k++) {
        float32x4_t a[FLOAT_COLS];
        for (int c = 0; c < n_cols; c++) a[c] = vdupq_n_f32(x[c][k]);
        FLOAT_CHANNEL(0);
    }
#undef FLOAT_CHANNEL
    for (int c = 0; c < n_cols; c++)
        for (int v = 0; v < 4; v++) vst1q_f32(y + FLOAT_ROWS * c + 4 * v, acc[c][v]);
}

/* Rows row .. row + n_valid - 1, whose tile this is, of every column. */
static inline __attribute__((always_inline)) void float_columns(const pn_mm *mm, const void *tile, int64_t row, int64_t n_valid, bool half)
{
    float y[FLOAT_COLS * FLOAT_ROWS];
    for (int64_t c = 0; c < mm->n_cols;) {
        const int n = mm->n_cols - c >= FLOAT_COLS ? FLOAT_COLS : 1;
        const float *x[FLOAT_COLS];
        for (int i = 0; i < n; i++) x[i] = mm->x[c + i];
        if (n == FLOAT_COLS) float_tile(y, tile, x, mm->k, FLOAT_COLS, half);
        else float_tile(y, tile, x, mm->k, 1, half);
        for (int i = 0; i < n; i++, c++) memcpy(mm->y[c] + row, y + FLOAT_ROWS * i, (size_t)n_valid * sizeof *y);
    }
}

static inline __attribute__((always_inline)) void float_multiply(const pn_mm *mm, int64_t row0, int64_t row1, uint64_t group_bytes, bool half)
{
    for (int64_t row = row0; row < row1; row += FLOAT_ROWS)
        float_columns(mm, (const uint8_t *)mm->w + (uint64_t)(row / FLOAT_ROWS) * group_bytes, row, pn_min64(row1 - row, FLOAT_ROWS), half);
}

/* What kernels.def wants of a float format of `bytes` bytes an element. */
#define FLOAT_KERNEL(weight, bytes, half)                                                                                         \
    uint64_t pn_##weight##__neon_group_bytes(int64_t k) { return pn_round_up((uint64_t)k * FLOAT_ROWS * (bytes), 64); }            \
    uint64_t pn_##weight##__neon_scratch(int64_t k) { return (void)k, 0; }                                                        \
    void pn_##weight##__neon_pack(void *dst, const void *src, int64_t n_valid, int64_t k)                                         \
    {                                                                                                                             \
        memset(dst, 0, pn_##weight##__neon_group_bytes(k));                                                                       \
        for (int64_t r = 0; r < n_valid; r++)                                                                                     \
            for (int64_t i = 0; i < k; i++)                                                                                       \
                memcpy((uint8_t *)dst + (i * FLOAT_ROWS + r) * (bytes), (const uint8_t *)src + (r * k + i) * (bytes), bytes);      \
    }                                                                                                                             \
    void pn_##weight##__neon_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { pn_##weight##__neon_gemm(mm, row0, row1, scratch); } \
    void pn_##weight##__neon_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)                                     \
    {                                                                                                                             \
        (void)scratch;                                                                                                            \
        float_multiply(mm, row0, row1, pn_##weight##__neon_group_bytes(mm->k), half);                                             \
    }

#endif
