/* kernels/x86/math_x86.h - exp, tanh, SiLU and GELU on 16 lanes, bit-equal to base/math.h: the operations of base/math_poly.h.
 *
 * A template over the words of lanes_avx512.h or lanes_avx2.h, included after one of them. */
#include "base/math_poly.h"

/* x - n*ln 2 in two steps, n = the integer nearest x / ln 2; returns q of math_poly.h. */
PN_INLINE lanes exp_parts(lanes x, lanes *n, lanes *r)
{
    const lanes magic = l_set(PN_EXPF_MAGIC);
    *n = l_sub(l_fma(x, l_set(PN_LOG2E), magic), magic);
    *r = l_fma(*n, l_set(-PN_LN2_HIGH), x);
    *r = l_fma(*n, l_set(-PN_LN2_LOW), *r);
    lanes q = l_fma(l_set(PN_EXPF_C6), *r, l_set(PN_EXPF_C5));
    q = l_fma(q, *r, l_set(PN_EXPF_C4));
    q = l_fma(q, *r, l_set(PN_EXPF_C3));
    return l_fma(q, *r, l_set(PN_EXPF_C2));
}

PN_INLINE lanes l_exp(lanes x)
{
    const lanes one = l_set(1);
    lanes n, r;
    const lanes q = exp_parts(l_min(l_set(PN_EXPF_HIGH), l_max(l_set(PN_EXPF_LOW), x)), &n, &r);
    return l_scale(l_fma(l_fma(q, r, one), r, one), n);
}

PN_INLINE lanes l_tanh(lanes x)
{
    const lanes one = l_set(1), magnitude = l_abs(x);
    lanes n, r;
    const lanes q = exp_parts(l_min(l_set(PN_TANHF_HIGH), l_add(magnitude, magnitude)), &n, &r);
    const lanes s = l_power_of_2(n);
    const lanes e = l_fma(s, l_fma(l_mul(r, r), q, r), l_sub(s, one));
    return l_with_sign(l_abs(l_div(e, l_add(e, l_set(2)))), x);
}

PN_INLINE lanes l_silu(lanes x) { return l_div(x, l_add(l_set(1), l_exp(l_negate(x)))); }

PN_INLINE lanes l_sigmoid(lanes x) { return l_div(l_set(1), l_add(l_set(1), l_exp(l_negate(x)))); }

PN_INLINE lanes l_gelu(lanes x)
{
    const lanes k = l_fma(l_mul(x, x), l_set(PN_GELU_CUBE), l_set(PN_GELU_LINEAR));
    return l_div(x, l_add(l_set(1), l_exp(l_mul(x, k))));
}

PN_INLINE lanes l_clamped(lanes x)
{
    x = l_min(l_set(PN_CLAMPED_LIMIT), x);
    return l_div(x, l_add(l_set(1), l_exp(l_mul(x, l_set(-PN_CLAMPED_ALPHA)))));
}

PN_INLINE lanes l_clamped_factor(lanes x) { return l_add(l_min(l_set(PN_CLAMPED_LIMIT), l_max(l_set(-PN_CLAMPED_LIMIT), x)), l_set(1)); }

PN_INLINE lanes l_relu2(lanes x)
{
    const lanes r = l_max(x, l_set(0));
    return l_mul(r, r);
}
