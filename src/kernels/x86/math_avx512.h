/* kernels/x86/math_avx512.h - exp, tanh, SiLU and GELU on 16 lanes, bit-equal to base/math.h: the operations of base/math_poly.h. */
#ifndef PN_X86_MATH_AVX512_H
#define PN_X86_MATH_AVX512_H

#include "base/math_poly.h"
#include "kernels/x86/avx512.h"

PN_INLINE __m512 flip_sign(__m512 x) { return _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN))); }

/* x - n*ln 2 in two steps, n = the integer nearest x / ln 2; returns q of math_poly.h. */
PN_INLINE __m512 exp_parts(__m512 x, __m512 *n, __m512 *r)
{
    const __m512 magic = _mm512_set1_ps(PN_EXPF_MAGIC);
    *n = _mm512_sub_ps(_mm512_fmadd_ps(x, _mm512_set1_ps(PN_LOG2E), magic), magic);
    *r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-PN_LN2_HIGH), x);
    *r = _mm512_fmadd_ps(*n, _mm512_set1_ps(-PN_LN2_LOW), *r);
    __m512 q = _mm512_set1_ps(PN_EXPF_C6);
    q = _mm512_fmadd_ps(q, *r, _mm512_set1_ps(PN_EXPF_C5));
    q = _mm512_fmadd_ps(q, *r, _mm512_set1_ps(PN_EXPF_C4));
    q = _mm512_fmadd_ps(q, *r, _mm512_set1_ps(PN_EXPF_C3));
    return _mm512_fmadd_ps(q, *r, _mm512_set1_ps(PN_EXPF_C2));
}

PN_INLINE __m512 exp_16(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1);
    __m512 n, r;
    x = _mm512_min_ps(_mm512_set1_ps(PN_EXPF_HIGH), _mm512_max_ps(_mm512_set1_ps(PN_EXPF_LOW), x));
    const __m512 q = exp_parts(x, &n, &r);
    return _mm512_scalef_ps(_mm512_fmadd_ps(_mm512_fmadd_ps(q, r, one), r, one), n);
}

PN_INLINE __m512 tanh_16(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1), magnitude = _mm512_abs_ps(x);
    __m512 n, r;
    const __m512 q = exp_parts(_mm512_min_ps(_mm512_set1_ps(PN_TANHF_HIGH), _mm512_add_ps(magnitude, magnitude)), &n, &r);
    const __m512 p = _mm512_fmadd_ps(_mm512_mul_ps(r, r), q, r), s = _mm512_scalef_ps(one, n);
    const __m512 e = _mm512_fmadd_ps(s, p, _mm512_sub_ps(s, one));
    const __m512 t = _mm512_div_ps(e, _mm512_add_ps(e, _mm512_set1_ps(2)));
    /* the sign bit of x, all other bits of t */
    return _mm512_castsi512_ps(
        _mm512_ternarylogic_epi32(_mm512_set1_epi32(INT32_MIN), _mm512_castps_si512(x), _mm512_castps_si512(t), 0xca));
}

PN_INLINE __m512 silu_16(__m512 x) { return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1), exp_16(flip_sign(x)))); }

PN_INLINE __m512 gelu_16(__m512 x)
{
    const __m512 k = _mm512_fmadd_ps(_mm512_mul_ps(x, x), _mm512_set1_ps(PN_GELU_CUBE), _mm512_set1_ps(PN_GELU_LINEAR));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1), exp_16(_mm512_mul_ps(x, k))));
}

#endif
