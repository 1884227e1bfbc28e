/* kernels/neon/quantise_neon.c - activations to 8 bits per block, bit-equal to kernels/scalar/ops_scalar.c. */
#include "kernels/neon/ops_neon.h"

#include <arm_neon.h>

/* Largest |x| of n elements, n a multiple of 16; NaNs do not enter. */
static inline float largest_magnitude(const float *x, int n)
{
    float32x4_t m[4];
    for (int l = 0; l < 4; l++) m[l] = vdupq_n_f32(0);
    for (int i = 0; i < n; i += 16)
        for (int l = 0; l < 4; l++) {
            const float32x4_t a = vabsq_f32(vld1q_f32(x + i + 4 * l));
            m[l] = vbslq_f32(vcgtq_f32(a, m[l]), a, m[l]);
        }
    return vmaxvq_f32(vmaxq_f32(vmaxq_f32(m[0], m[1]), vmaxq_f32(m[2], m[3])));
}

/* A NaN becomes -127. */
static inline int32x4_t round_4(const float *x, float per_step)
{
    const float32x4_t low = vdupq_n_f32(-127), high = vdupq_n_f32(127);
    float32x4_t t = vmulq_n_f32(vld1q_f32(x), per_step);
    t = vbslq_f32(vcgtq_f32(t, low), t, low);
    return vcvtnq_s32_f32(vminq_f32(t, high));
}

static inline int8x16_t round_16(const float *x, float per_step)
{
    const int16x8_t low = vcombine_s16(vmovn_s32(round_4(x, per_step)), vmovn_s32(round_4(x + 4, per_step)));
    const int16x8_t high = vcombine_s16(vmovn_s32(round_4(x + 8, per_step)), vmovn_s32(round_4(x + 12, per_step)));
    return vcombine_s8(vmovn_s16(low), vmovn_s16(high));
}

/* Codes of n elements and the sums of each 16; returns the step. */
static inline float round_block(int8_t *q, int16_t *sums, const float *x, int n)
{
    const float m = largest_magnitude(x, n);
    if (!(m >= 1e-30f)) {
        memset(q, 0, (size_t)n);
        memset(sums, 0, (size_t)n / 16 * sizeof *sums);
        return 0;
    }
    const float per_step = 127.0f / m;
    for (int i = 0; i < n; i += 16) {
        const int8x16_t codes = round_16(x + i, per_step);
        vst1q_s8(q + i, codes);
        sums[i / 16] = vaddlvq_s8(codes);
    }
    return m / 127.0f;
}

void pn_neon_quantise_32(pn_act32 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 32, dst++) {
        int16_t sums[2];
        dst->d = round_block(dst->q, sums, x + i, 32);
        dst->sum = sums[0] + sums[1];
        dst->s = dst->d * (float)dst->sum;
        dst->zero = 0;
    }
}

void pn_neon_quantise_256(pn_act256 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 256, dst++) {
        dst->d = round_block(dst->q, dst->bsum16, x + i, 256);
        const int16x8_t sums = vpaddq_s16(vld1q_s16(dst->bsum16), vld1q_s16(dst->bsum16 + 8)), hi = vrshrq_n_s16(sums, 7);
        vst1q_s16(dst->bsum32, sums);
        vst1_s8(dst->hi, vmovn_s16(hi));
        vst1_s8(dst->lo, vmovn_s16(vsubq_s16(sums, vshlq_n_s16(hi, 7))));
        memset(dst->zero, 0, sizeof dst->zero);
    }
}
