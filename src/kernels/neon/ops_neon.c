/* kernels/neon/ops_neon.c - the vector operations on four lanes, bit-equal to kernels/scalar/ops_scalar.c. Attention, activation formats
 * and the exact product have files of their own (ops_neon.h). */
#include "kernels/neon/ops_neon.h"

#include "kernels/neon/math_neon.h"
#include "kernels/registry.h"

#include <math.h>

/* ---- maps: y[i] = f(a[i], b[i], s), i ascending by fours; the last ones through a buffer. y may be a or b. ---- */

typedef float32x4_t (*map_fn)(float32x4_t a, float32x4_t b, float32x4_t s);

static inline float32x4_t load_part(const float *x, int64_t n)
{
    float part[4] = {0};
    for (int64_t i = 0; i < n; i++) part[i] = x[i];
    return vld1q_f32(part);
}

static inline void store_part(float *y, float32x4_t v, int64_t n)
{
    float part[4];
    vst1q_f32(part, v);
    for (int64_t i = 0; i < n; i++) y[i] = part[i];
}

static inline __attribute__((always_inline)) void map(float *y, const float *a, const float *b, float s, int64_t n, map_fn f)
{
    const float32x4_t scalar = vdupq_n_f32(s);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) { /* four at once: divisions and polynomials overlap */
        const float32x4_t r0 = f(vld1q_f32(a + i), vld1q_f32(b + i), scalar), r1 = f(vld1q_f32(a + i + 4), vld1q_f32(b + i + 4), scalar);
        const float32x4_t r2 = f(vld1q_f32(a + i + 8), vld1q_f32(b + i + 8), scalar), r3 = f(vld1q_f32(a + i + 12), vld1q_f32(b + i + 12), scalar);
        vst1q_f32(y + i, r0);
        vst1q_f32(y + i + 4, r1);
        vst1q_f32(y + i + 8, r2);
        vst1q_f32(y + i + 12, r3);
    }
    for (; i < n; i += 4) {
        const int64_t left = pn_min64(n - i, 4);
        store_part(y + i, f(load_part(a + i, left), load_part(b + i, left), scalar), left);
    }
}

static inline float32x4_t scaled(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)b, vmulq_f32(a, s); }
static inline float32x4_t scaled_weighted(float32x4_t a, float32x4_t b, float32x4_t s) { return vmulq_f32(vmulq_f32(a, s), b); }
static inline float32x4_t sum(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)s, vaddq_f32(a, b); }
static inline float32x4_t sum_scaled(float32x4_t a, float32x4_t b, float32x4_t s) { return vaddq_f32(a, vmulq_f32(b, s)); }
static inline float32x4_t product(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)s, vmulq_f32(a, b); }
static inline float32x4_t silu(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)b, (void)s, neon_silu(a); }
static inline float32x4_t silu_times(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)s, vmulq_f32(neon_silu(a), b); }
static inline float32x4_t sigmoid(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)b, (void)s, neon_sigmoid(a); }
static inline float32x4_t sigmoid_times(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)s, vmulq_f32(neon_sigmoid(a), b); }
static inline float32x4_t gelu(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)b, (void)s, neon_gelu(a); }
static inline float32x4_t gelu_times(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)s, vmulq_f32(neon_gelu(a), b); }
static inline float32x4_t relu2(float32x4_t a, float32x4_t b, float32x4_t s)
{
    (void)b, (void)s;
    const float32x4_t r = vbslq_f32(vcgtzq_f32(a), a, vdupq_n_f32(0));
    return vmulq_f32(r, r);
}
static inline float32x4_t relu2_times(float32x4_t a, float32x4_t b, float32x4_t s) { return vmulq_f32(relu2(a, b, s), b); }
static inline float32x4_t clamped(float32x4_t a, float32x4_t b, float32x4_t s)
{
    (void)b, (void)s;
    a = vminq_f32(vdupq_n_f32(PN_CLAMPED_LIMIT), a);
    return vdivq_f32(a, vaddq_f32(vdupq_n_f32(1), neon_exp(vmulq_f32(a, vdupq_n_f32(-PN_CLAMPED_ALPHA)))));
}
static inline float32x4_t clamped_times(float32x4_t a, float32x4_t b, float32x4_t s)
{
    const float32x4_t u = vminq_f32(vdupq_n_f32(PN_CLAMPED_LIMIT), vmaxq_f32(vdupq_n_f32(-PN_CLAMPED_LIMIT), b));
    return vmulq_f32(clamped(a, b, s), vaddq_f32(u, vdupq_n_f32(1)));
}
static inline float32x4_t capped(float32x4_t a, float32x4_t b, float32x4_t s) { return (void)b, vmulq_f32(s, neon_tanh(vmulq_f32(a, vdivq_f32(vdupq_n_f32(1), s)))); }

void pn_neon_norm_scale(float *y, const float *x, float scale, const float *w, int64_t n)
{
    if (w) map(y, x, w, scale, n, scaled_weighted);
    else map(y, x, x, scale, n, scaled);
}

void pn_neon_add(float *y, const float *x, int64_t n) { map(y, y, x, 0, n, sum); }
void pn_neon_scale(float *y, float s, int64_t n) { map(y, y, y, s, n, scaled); }
void pn_neon_add_scaled(float *y, const float *x, float s, int64_t n) { map(y, y, x, s, n, sum_scaled); }
void pn_neon_mul(float *y, const float *x, int64_t n) { map(y, y, x, 0, n, product); }

void pn_neon_silu_mul(float *y, const float *g, const float *u, int64_t n)
{
    if (u) map(y, g, u, 0, n, silu_times);
    else map(y, g, g, 0, n, silu);
}

void pn_neon_sigmoid_mul(float *y, const float *g, const float *u, int64_t n)
{
    if (u) map(y, g, u, 0, n, sigmoid_times);
    else map(y, g, g, 0, n, sigmoid);
}

void pn_neon_gelu_mul(float *y, const float *g, const float *u, int64_t n)
{
    if (u) map(y, g, u, 0, n, gelu_times);
    else map(y, g, g, 0, n, gelu);
}

void pn_neon_relu2_mul(float *y, const float *g, const float *u, int64_t n)
{
    if (u) map(y, g, u, 0, n, relu2_times);
    else map(y, g, g, 0, n, relu2);
}

static inline float32x4_t larger(float32x4_t x, float32x4_t b, float32x4_t s) { return (void)b, vbslq_f32(vcgtq_f32(s, x), s, x); }
static inline float32x4_t smaller(float32x4_t x, float32x4_t b, float32x4_t s) { return (void)b, vbslq_f32(vcltq_f32(s, x), s, x); }

void pn_neon_clamp(float *x, float low, float high, int64_t n)
{
    map(x, x, x, low, n, larger);
    map(x, x, x, high, n, smaller);
}

void pn_neon_clamped_mul(float *y, const float *g, const float *u, int64_t n)
{
    if (u) map(y, g, u, 0, n, clamped_times);
    else map(y, g, g, 0, n, clamped);
}

void pn_neon_softcap(float *x, float cap, int64_t n) { map(x, x, x, cap, n, capped); }

/* ---- sums over a row: 16 lanes ---- */

typedef struct lanes {
    float32x4_t v[4];
} lanes;

/* Lanes meet as (l, l+8), (l, l+4), (l, l+2), (l, l+1). */
static inline float sum_lanes(const lanes *l)
{
    const float32x4_t four = vaddq_f32(vaddq_f32(l->v[0], l->v[2]), vaddq_f32(l->v[1], l->v[3]));
    const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
    return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}

/* Missing elements are +0: no lane is ever -0, so adding them changes nothing. */
float pn_neon_sum_squares(const float *x, int64_t n)
{
    lanes l = {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 4; j++) {
            const float32x4_t v = vld1q_f32(x + i + 4 * j);
            l.v[j] = vfmaq_f32(l.v[j], v, v);
        }
    for (int j = 0; i < n; i += 4, j++) {
        const float32x4_t v = load_part(x + i, pn_min64(n - i, 4));
        l.v[j] = vfmaq_f32(l.v[j], v, v);
    }
    return sum_lanes(&l);
}

float pn_neon_dot(const float *x, const float *y, int64_t n)
{
    lanes l = {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 4; j++) l.v[j] = vfmaq_f32(l.v[j], vld1q_f32(x + i + 4 * j), vld1q_f32(y + i + 4 * j));
    float rest[16]; /* a lane that takes no further element may hold -0, which +0 would change */
    for (int j = 0; j < 4; j++) vst1q_f32(rest + 4 * j, l.v[j]);
    for (int j = 0; i + j < n; j++) rest[j] = fmaf(x[i + j], y[i + j], rest[j]);
    for (int j = 0; j < 4; j++) l.v[j] = vld1q_f32(rest + 4 * j);
    return sum_lanes(&l);
}

float pn_neon_max(const float *x, int64_t n)
{
    float32x4_t m[4];
    for (int j = 0; j < 4; j++) m[j] = vdupq_n_f32(-INFINITY);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 4; j++) {
            const float32x4_t v = vld1q_f32(x + i + 4 * j);
            m[j] = vbslq_f32(vcgtq_f32(v, m[j]), v, m[j]);
        }
    float largest = vmaxvq_f32(vmaxq_f32(vmaxq_f32(m[0], m[1]), vmaxq_f32(m[2], m[3])));
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

float pn_neon_exp_sum(float *x, float largest, int64_t n)
{
    const float32x4_t m = vdupq_n_f32(largest);
    lanes l = {{vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0), vdupq_n_f32(0)}};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        for (int j = 0; j < 4; j++) {
            const float32x4_t e = neon_exp(vsubq_f32(vld1q_f32(x + i + 4 * j), m));
            vst1q_f32(x + i + 4 * j, e);
            l.v[j] = vaddq_f32(l.v[j], e);
        }
    for (int j = 0; i < n; i += 4, j++) {
        const int64_t left = pn_min64(n - i, 4);
        store_part(x + i, neon_exp(vsubq_f32(load_part(x + i, left), m)), left);
        l.v[j] = vaddq_f32(l.v[j], load_part(x + i, left));
    }
    return sum_lanes(&l);
}

/* ---- rotary positions ---- */

static inline void rotate(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s)
{
    const float32x4_t x = *a, y = *b;
    *a = vfmaq_f32(vnegq_f32(vmulq_f32(y, s)), x, c);
    *b = vfmaq_f32(vmulq_f32(y, c), x, s);
}

static inline void rotate_one(float *a, float *b, float c, float s)
{
    const float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

void pn_neon_rope_norm(float *x, const float *cs, int64_t n_pairs)
{
    int64_t k = 0;
    for (; k + 4 <= n_pairs; k += 4) {
        float32x4x2_t v = vld2q_f32(x + 2 * k);
        const float32x4x2_t angle = vld2q_f32(cs + 2 * k);
        rotate(&v.val[0], &v.val[1], angle.val[0], angle.val[1]);
        vst2q_f32(x + 2 * k, v);
    }
    for (; k < n_pairs; k++) rotate_one(&x[2 * k], &x[2 * k + 1], cs[2 * k], cs[2 * k + 1]);
}

void pn_neon_rope_neox(float *x, const float *cs, int64_t n_pairs)
{
    int64_t k = 0;
    for (; k + 4 <= n_pairs; k += 4) {
        float32x4_t a = vld1q_f32(x + k), b = vld1q_f32(x + k + n_pairs);
        const float32x4x2_t angle = vld2q_f32(cs + 2 * k);
        rotate(&a, &b, angle.val[0], angle.val[1]);
        vst1q_f32(x + k, a);
        vst1q_f32(x + k + n_pairs, b);
    }
    for (; k < n_pairs; k++) rotate_one(&x[k], &x[k + n_pairs], cs[2 * k], cs[2 * k + 1]);
}

/* ---- half precision ---- */

void pn_neon_f16_from_f32(uint16_t *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) { /* a NaN becomes 0x7E00 with its sign */
        const float32x4_t v = vld1q_f32(x + i);
        const uint16x4_t h = vreinterpret_u16_f16(vcvt_f16_f32(v)), is_number = vmovn_u32(vceqq_f32(v, v));
        const uint16x4_t nan = vorr_u16(vand_u16(h, vdup_n_u16(0x8000)), vdup_n_u16(0x7E00));
        vst1_u16(y + i, vbsl_u16(is_number, h, nan));
    }
    for (; i < n; i++) y[i] = pn_f32_to_f16(x[i]);
}

void pn_neon_f32_from_f16(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) vst1q_f32(y + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + i))));
    for (; i < n; i++) y[i] = pn_f16_to_f32(x[i]);
}

#define OP_NAME(name) pn_neon_##name
const pn_ops pn_ops_neon = {
    .isa = "neon",
#include "kernels/ops_members.h"
};
