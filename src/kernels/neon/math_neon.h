/* kernels/neon/math_neon.h - exp, tanh, SiLU and GELU of base/math_poly.h on four lanes, bit-equal to the scalar forms. */
#ifndef PN_NEON_MATH_H
#define PN_NEON_MATH_H

#include "base/math_poly.h"

#include <arm_neon.h>

typedef struct neon_reduced {
    float32x4_t r, q; /* x - i*ln 2; (e^r - 1 - r) / r^2 */
    int32x4_t i;
} neon_reduced;

static inline neon_reduced neon_reduce_exp(float32x4_t x)
{
    const float32x4_t magic = vdupq_n_f32(PN_EXPF_MAGIC), t = vfmaq_f32(magic, x, vdupq_n_f32(PN_LOG2E)), n = vsubq_f32(t, magic);
    float32x4_t r = vfmaq_f32(x, n, vdupq_n_f32(-PN_LN2_HIGH));
    r = vfmaq_f32(r, n, vdupq_n_f32(-PN_LN2_LOW));
    float32x4_t q = vfmaq_f32(vdupq_n_f32(PN_EXPF_C5), vdupq_n_f32(PN_EXPF_C6), r);
    q = vfmaq_f32(vdupq_n_f32(PN_EXPF_C4), q, r);
    q = vfmaq_f32(vdupq_n_f32(PN_EXPF_C3), q, r);
    q = vfmaq_f32(vdupq_n_f32(PN_EXPF_C2), q, r);
    return (neon_reduced){r, q, vsubq_s32(vreinterpretq_s32_f32(t), vdupq_n_s32((int32_t)PN_EXPF_MAGIC_BITS))};
}

/* 2^k for k in the normal range */
static inline float32x4_t neon_exp2_of(int32x4_t k) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(k, vdupq_n_s32(127)), 23)); }

static inline float32x4_t neon_exp(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1);
    const neon_reduced e = neon_reduce_exp(vminq_f32(vdupq_n_f32(PN_EXPF_HIGH), vmaxq_f32(vdupq_n_f32(PN_EXPF_LOW), x)));
    const float32x4_t p = vfmaq_f32(one, vfmaq_f32(one, e.q, e.r), e.r);
    const int32x4_t half = vshrq_n_s32(e.i, 1);
    return vmulq_f32(vmulq_f32(p, neon_exp2_of(half)), neon_exp2_of(vsubq_s32(e.i, half)));
}

static inline float32x4_t neon_tanh(float32x4_t x)
{
    const float32x4_t a = vabsq_f32(x);
    const neon_reduced t = neon_reduce_exp(vminq_f32(vdupq_n_f32(PN_TANHF_HIGH), vaddq_f32(a, a)));
    const float32x4_t p = vfmaq_f32(t.r, vmulq_f32(t.r, t.r), t.q), s = neon_exp2_of(t.i);
    const float32x4_t e = vfmaq_f32(vsubq_f32(s, vdupq_n_f32(1)), s, p);
    return vbslq_f32(vdupq_n_u32(0x80000000u), x, vdivq_f32(e, vaddq_f32(e, vdupq_n_f32(2))));
}

static inline float32x4_t neon_silu(float32x4_t x) { return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1), neon_exp(vnegq_f32(x)))); }

static inline float32x4_t neon_sigmoid(float32x4_t x) { return vdivq_f32(vdupq_n_f32(1), vaddq_f32(vdupq_n_f32(1), neon_exp(vnegq_f32(x)))); }

static inline float32x4_t neon_gelu(float32x4_t x)
{
    const float32x4_t k = vfmaq_f32(vdupq_n_f32(PN_GELU_LINEAR), vmulq_f32(x, x), vdupq_n_f32(PN_GELU_CUBE));
    return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1), neon_exp(vmulq_f32(x, k))));
}

#endif
