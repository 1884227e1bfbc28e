/* kernels/x86/lanes_avx2.h - 16 floats as two AVX2 registers: the words in which vector operations are written. lanes_avx512.h has the same. */
#ifndef PN_X86_LANES_AVX2_H
#define PN_X86_LANES_AVX2_H

#include "kernels/x86/avx2.h"

typedef struct lanes {
    __m256 low, high;
} lanes;
typedef struct lanes_part {
    __m256i low, high; /* all bits of the lanes that belong */
} lanes_part;

enum { n_wide = 1 /* vectors of a tile of attention beside 6 queries: 12 sums in registers */, n_strips = 2 /* of a delta rule */ };
enum { ssm_max_rows = 2 }; /* of a tile of a selective scan: inputs and sums in registers */

PN_INLINE lanes_part l_first(int64_t n)
{
    const __m256i count = _mm256_set1_epi32((int)pn_min64(n, 16)), at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return (lanes_part){_mm256_cmpgt_epi32(count, at), _mm256_cmpgt_epi32(count, _mm256_add_epi32(at, _mm256_set1_epi32(8)))};
}

PN_INLINE lanes l_load(const float *p) { return (lanes){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
PN_INLINE void l_store(float *p, lanes v)
{
    _mm256_storeu_ps(p, v.low);
    _mm256_storeu_ps(p + 8, v.high);
}
PN_INLINE lanes l_load_part(const float *p, lanes_part m) { return (lanes){_mm256_maskload_ps(p, m.low), _mm256_maskload_ps(p + 8, m.high)}; }
PN_INLINE void l_store_part(float *p, lanes_part m, lanes v)
{
    _mm256_maskstore_ps(p, m.low, v.low);
    _mm256_maskstore_ps(p + 8, m.high, v.high);
}

#define PN_LANES_1(name, op) \
    PN_INLINE lanes name(lanes a) { return (lanes){op(a.low), op(a.high)}; }
#define PN_LANES_2(name, op) \
    PN_INLINE lanes name(lanes a, lanes b) { return (lanes){op(a.low, b.low), op(a.high, b.high)}; }
#define PN_LANES_3(name, op) \
    PN_INLINE lanes name(lanes a, lanes b, lanes c) { return (lanes){op(a.low, b.low, c.low), op(a.high, b.high, c.high)}; }

PN_INLINE lanes l_set(float x) { return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
PN_LANES_2(l_add, _mm256_add_ps)
PN_LANES_2(l_sub, _mm256_sub_ps)
PN_LANES_2(l_mul, _mm256_mul_ps)
PN_LANES_2(l_div, _mm256_div_ps)
PN_LANES_2(l_max, _mm256_max_ps) /* a > b ? a : b */
PN_LANES_2(l_min, _mm256_min_ps) /* a < b ? a : b */
PN_LANES_2(l_xor, _mm256_xor_ps)
PN_LANES_2(l_or, _mm256_or_ps)
PN_LANES_2(l_and, _mm256_and_ps)
PN_LANES_2(l_and_not, _mm256_andnot_ps) /* b without the bits of a */
PN_LANES_3(l_fma, _mm256_fmadd_ps)
PN_LANES_3(l_fms, _mm256_fmsub_ps)
PN_LANES_3(l_fmaddsub, _mm256_fmaddsub_ps) /* a*b - c in even lanes, + in odd ones */
PN_LANES_3(l_blend, _mm256_blendv_ps)      /* b where c's sign bit is set, else a */
PN_INLINE lanes l_select(lanes_part m, lanes a, lanes b)
{
    return l_blend(b, a, (lanes){_mm256_castsi256_ps(m.low), _mm256_castsi256_ps(m.high)}); /* m ? a : b */
}
PN_INLINE lanes l_abs(lanes a) { return l_and_not(l_set(-0.0f), a); }
PN_INLINE lanes l_negate(lanes a) { return l_xor(a, l_set(-0.0f)); }
PN_INLINE lanes l_with_sign(lanes a, lanes sign) { return l_or(a, l_and(sign, l_set(-0.0f))); } /* a has none */

/* The float 2^i, i in -126..127. */
PN_INLINE __m256 power_of_2(__m256i i) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(i, _mm256_set1_epi32(127)), 23)); }
PN_INLINE __m256 power_of_integer(__m256 n) { return power_of_2(_mm256_cvtps_epi32(n)); }
/* p * 2^n in two factors; only the second product can round. */
PN_INLINE __m256 scale_8(__m256 p, __m256 n)
{
    const __m256i i = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(i, 1);
    return _mm256_mul_ps(_mm256_mul_ps(p, power_of_2(half)), power_of_2(_mm256_sub_epi32(i, half)));
}
PN_LANES_1(l_power_of_2, power_of_integer)
PN_LANES_2(l_scale, scale_8)

PN_LANES_1(l_even, _mm256_moveldup_ps)
PN_LANES_1(l_odd, _mm256_movehdup_ps)
PN_INLINE lanes l_swap(lanes a) { return (lanes){_mm256_permute_ps(a.low, 0xb1), _mm256_permute_ps(a.high, 0xb1)}; }
PN_INLINE __m256 in_order(__m256 v) { return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8)); }
/* The even and the odd ones of 32 floats. */
PN_INLINE void l_unzip(lanes low, lanes high, lanes *even, lanes *odd)
{
    *even = (lanes){in_order(_mm256_shuffle_ps(low.low, low.high, 0x88)), in_order(_mm256_shuffle_ps(high.low, high.high, 0x88))};
    *odd = (lanes){in_order(_mm256_shuffle_ps(low.low, low.high, 0xdd)), in_order(_mm256_shuffle_ps(high.low, high.high, 0xdd))};
}
PN_INLINE __m256 l_low(lanes a) { return a.low; }
PN_INLINE __m256 l_high(lanes a) { return a.high; }

PN_INLINE lanes l_load_f16(const void *p)
{
    const uint8_t *at = p;
    return (lanes){_mm256_cvtph_ps(_mm_loadu_si128((const void *)at)), _mm256_cvtph_ps(_mm_loadu_si128((const void *)(at + 16)))};
}
PN_INLINE lanes l_load_f16_first(const void *p, int64_t n)
{
    uint16_t all[16] = {0};
    memcpy(all, p, (size_t)n * 2);
    return l_load_f16(all);
}
PN_INLINE lanes l_load_i8(const void *p)
{
    const __m128i q = _mm_loadu_si128(p);
    return (lanes){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8)))};
}
PN_INLINE __m256 unordered(__m256 v) { return _mm256_cmp_ps(v, v, _CMP_UNORD_Q); }
PN_LANES_1(l_nan, unordered)
/* The conversion keeps a NaN's upper bits; the definition has one NaN of each sign. */
PN_INLINE void l_store_f16_first(void *p, int64_t n, lanes v)
{
    const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    v = l_blend(v, l_with_sign((lanes){quiet, quiet}, v), l_nan(v));
    uint16_t all[16];
    _mm_storeu_si128((void *)all, _mm256_cvtps_ph(v.low, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    _mm_storeu_si128((void *)(all + 8), _mm256_cvtps_ph(v.high, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    memcpy(p, all, (size_t)n * 2);
}
/* To the nearest integers, which fit 8 bits. */
PN_INLINE __m128i l_codes(lanes v)
{
    const __m256i by_16 = _mm256_permute4x64_epi64(_mm256_packs_epi32(_mm256_cvtps_epi32(v.low), _mm256_cvtps_epi32(v.high)), 0xd8);
    return _mm_packs_epi16(_mm256_castsi256_si128(by_16), _mm256_extracti128_si256(by_16, 1));
}

#endif
