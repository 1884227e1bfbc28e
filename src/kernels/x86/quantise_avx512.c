/* kernels/x86/quantise_avx512.c - rounds activations to 8 bits with AVX-512: the rules of quant.h. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/ops_avx512.h"

/* `a > m ? a : m` on magnitudes: a NaN does not enter. */
PN_INLINE __m512 magnitude_max(__m512 m, __m512 x) { return _mm512_max_ps(_mm512_abs_ps(x), m); }

PN_INLINE __m128i round_codes(__m512 x, __m512 per_step)
{
    __m512 t = _mm512_mul_ps(x, per_step);
    t = _mm512_max_ps(t, _mm512_set1_ps(-127.0f)); /* a NaN gives -127 */
    t = _mm512_min_ps(t, _mm512_set1_ps(127.0f));
    return _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(t));
}

/* Sum of 32 codes. */
PN_INLINE int32_t sum_32(__m256i q)
{
    const __m256i by_4 = _mm256_dpbusd_epi32(_mm256_setzero_si256(), _mm256_set1_epi8(1), q);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(by_4), _mm256_extracti128_si256(by_4, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

void pn_avx512_quantise_32(pn_act32 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 32, dst++) {
        const __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + 16);
        const float m = _mm512_reduce_max_ps(magnitude_max(magnitude_max(_mm512_setzero_ps(), a), b));
        if (!(m >= 1e-30f)) {
            memset(dst, 0, sizeof *dst);
            continue;
        }
        const __m512 per_step = _mm512_set1_ps(127.0f / m);
        const __m256i q = _mm256_inserti128_si256(_mm256_castsi128_si256(round_codes(a, per_step)), round_codes(b, per_step), 1);
        _mm256_storeu_si256((void *)dst->q, q);
        dst->d = m / 127.0f;
        dst->sum = sum_32(q);
        dst->s = dst->d * (float)dst->sum;
        dst->zero = 0;
    }
}

/* Sums of 16 and 32 codes and their split into 128*hi + lo. */
PN_INLINE void block_sums(pn_act256 *dst)
{
    __m512i by_4[4]; /* sums of 4 codes */
    PN_UNROLL for (int i = 0; i < 4; i++)
        by_4[i] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), _mm512_loadu_si512(dst->q + i * 64));
    /* a sum of 4 fits 16 bits; two pairwise additions leave one sum of 16 per 64-bit half of each 128-bit lane */
    const __m512i ones = _mm512_set1_epi16(1);
    const __m512i lo = _mm512_madd_epi16(_mm512_packs_epi32(by_4[0], by_4[1]), ones), hi = _mm512_madd_epi16(_mm512_packs_epi32(by_4[2], by_4[3]), ones);
    /* 16-bit lanes, in each 128-bit lane l: sums of 8 of by_4[0] lane l, [1], [2], [3], each as a pair */
    const __m512i by_16 = _mm512_madd_epi16(_mm512_packs_epi32(lo, hi), ones);
    /* 32-bit unit 4l + i is the sum of group 4i + l */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    const __m256i sums16 = _mm512_cvtepi32_epi16(_mm512_permutexvar_epi32(order, by_16));
    const __m256i sums32 = _mm256_madd_epi16(sums16, _mm256_set1_epi16(1));
    const __m256i high = _mm256_srai_epi32(_mm256_add_epi32(sums32, _mm256_set1_epi32(64)), 7);
    _mm256_storeu_si256((void *)dst->bsum16, sums16);
    _mm_storeu_si128((void *)dst->bsum32, _mm256_cvtepi32_epi16(sums32));
    _mm_storel_epi64((void *)dst->hi, _mm256_cvtepi32_epi8(high));
    _mm_storel_epi64((void *)dst->lo, _mm256_cvtepi32_epi8(_mm256_sub_epi32(sums32, _mm256_slli_epi32(high, 7))));
}

void pn_avx512_quantise_256(pn_act256 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 256, dst++) {
        __m512 largest[4];
        PN_UNROLL for (int j = 0; j < 4; j++) largest[j] = magnitude_max(_mm512_setzero_ps(), _mm512_loadu_ps(x + i + j * 16));
        for (int j = 4; j < 16; j += 4) {
            PN_UNROLL for (int l = 0; l < 4; l++) largest[l] = magnitude_max(largest[l], _mm512_loadu_ps(x + i + (j + l) * 16));
        }
        const __m512 pair = _mm512_max_ps(_mm512_max_ps(largest[0], largest[1]), _mm512_max_ps(largest[2], largest[3]));
        const float m = _mm512_reduce_max_ps(pair);
        if (!(m >= 1e-30f)) {
            memset(dst, 0, sizeof *dst);
            continue;
        }
        const __m512 per_step = _mm512_set1_ps(127.0f / m);
        for (int j = 0; j < 16; j++) _mm_storeu_si128((void *)(dst->q + j * 16), round_codes(_mm512_loadu_ps(x + i + j * 16), per_step));
        block_sums(dst);
        dst->d = m / 127.0f;
        memset(dst->zero, 0, sizeof dst->zero);
    }
}
