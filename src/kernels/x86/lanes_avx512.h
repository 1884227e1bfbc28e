/* kernels/x86/lanes_avx512.h - 16 floats as one AVX-512 register: the words in which vector operations are written. lanes_avx2.h has the same. */
#ifndef PN_X86_LANES_AVX512_H
#define PN_X86_LANES_AVX512_H

#include "kernels/x86/avx512.h"

typedef __m512 lanes;
typedef __mmask16 lanes_part;

enum { n_wide = 4 /* vectors of a tile of attention beside 6 queries: 24 sums in registers */, n_strips = 2 /* of a delta rule */ };
enum { ssm_max_rows = 4 }; /* of a tile of a selective scan: inputs and sums in registers */

PN_INLINE lanes_part l_first(int64_t n) { return (lanes_part)((1u << (n < 0 ? 0 : n > 16 ? 16 : n)) - 1); }

PN_INLINE lanes l_load(const float *p) { return _mm512_loadu_ps(p); }
PN_INLINE void l_store(float *p, lanes v) { _mm512_storeu_ps(p, v); }
PN_INLINE lanes l_load_part(const float *p, lanes_part m) { return _mm512_maskz_loadu_ps(m, p); }
PN_INLINE void l_store_part(float *p, lanes_part m, lanes v) { _mm512_mask_storeu_ps(p, m, v); }
PN_INLINE lanes l_select(lanes_part m, lanes a, lanes b) { return _mm512_mask_blend_ps(m, b, a); } /* m ? a : b */

PN_INLINE lanes l_set(float x) { return _mm512_set1_ps(x); }
PN_INLINE lanes l_add(lanes a, lanes b) { return _mm512_add_ps(a, b); }
PN_INLINE lanes l_sub(lanes a, lanes b) { return _mm512_sub_ps(a, b); }
PN_INLINE lanes l_mul(lanes a, lanes b) { return _mm512_mul_ps(a, b); }
PN_INLINE lanes l_div(lanes a, lanes b) { return _mm512_div_ps(a, b); }
PN_INLINE lanes l_max(lanes a, lanes b) { return _mm512_max_ps(a, b); } /* a > b ? a : b */
PN_INLINE lanes l_min(lanes a, lanes b) { return _mm512_min_ps(a, b); } /* a < b ? a : b */
PN_INLINE lanes l_fma(lanes a, lanes b, lanes c) { return _mm512_fmadd_ps(a, b, c); }
PN_INLINE lanes l_fms(lanes a, lanes b, lanes c) { return _mm512_fmsub_ps(a, b, c); }
PN_INLINE lanes l_fmaddsub(lanes a, lanes b, lanes c) { return _mm512_fmaddsub_ps(a, b, c); } /* a*b - c in even lanes, + in odd ones */
PN_INLINE lanes l_abs(lanes a) { return _mm512_abs_ps(a); }
PN_INLINE lanes l_negate(lanes a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
PN_INLINE lanes l_with_sign(lanes a, lanes sign) { return _mm512_or_ps(a, _mm512_and_ps(sign, _mm512_set1_ps(-0.0f))); } /* a has none */
PN_INLINE lanes l_power_of_2(lanes n) { return _mm512_scalef_ps(_mm512_set1_ps(1), n); }
PN_INLINE lanes l_scale(lanes p, lanes n) { return _mm512_scalef_ps(p, n); } /* p * 2^n, rounded once */

PN_INLINE lanes l_even(lanes a) { return _mm512_moveldup_ps(a); }
PN_INLINE lanes l_odd(lanes a) { return _mm512_movehdup_ps(a); }
PN_INLINE lanes l_swap(lanes a) { return _mm512_castsi512_ps(_mm512_rol_epi64(_mm512_castps_si512(a), 32)); }
/* The even and the odd ones of 32 floats. */
PN_INLINE void l_unzip(lanes low, lanes high, lanes *even, lanes *odd)
{
    const __m512i at = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    *even = _mm512_permutex2var_ps(low, at, high);
    *odd = _mm512_permutex2var_ps(low, _mm512_add_epi32(at, _mm512_set1_epi32(1)), high);
}
PN_INLINE __m256 l_low(lanes a) { return _mm512_castps512_ps256(a); }
PN_INLINE __m256 l_high(lanes a) { return _mm512_extractf32x8_ps(a, 1); }

PN_INLINE lanes l_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
PN_INLINE lanes l_load_f16_first(const void *p, int64_t n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(l_first(n), p)); }
PN_INLINE lanes l_load_i8(const void *p) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p))); }
/* The conversion keeps a NaN's upper bits; the definition has one NaN of each sign. */
PN_INLINE void l_store_f16_first(void *p, int64_t n, lanes v)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    v = _mm512_mask_blend_ps(nan, v, l_with_sign(_mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000)), v));
    _mm256_mask_storeu_epi16(p, l_first(n), _mm512_maskz_cvtps_ph(0xffff, v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/* To the nearest integers, which fit 8 bits. */
PN_INLINE __m128i l_codes(lanes v) { return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(v)); }

#endif
