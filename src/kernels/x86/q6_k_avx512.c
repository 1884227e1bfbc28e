/* kernels/x86/q6_k_avx512.c - Q6_K, AVX-512 VNNI. Packed: per two blocks 2 x 16 d as f16, then per block 4 vectors of scales (bytes 0..3 of a row's
 * lane in vector t: scales 4t..4t+3) and 16 x 3 vectors of codes: per sub-block of 16, low 6 bits are byte groups 0..2, their top 2 bits, lowest
 * first, byte group 3. */
#include "kernels/x86/avx512.h"

#define SUB 16
#define HEAD_BLOCKS 2
#define BODY_BYTES (256 + 3072)
#define HAS_MIN 0
#define OFFSET_SHIFT 5
#define FILE_BLOCK 210

PN_INLINE __m512i sub_scale(const uint8_t *body, int j)
{
    const __m512i v = _mm512_load_si512(body + j / 4 * 64);
    return _mm512_srai_epi32(_mm512_slli_epi32(v, (unsigned)(3 - j % 4) * 8), 24);
}

PN_INLINE void sub_codes(__m512i w[4], const uint8_t *body, int j)
{
    const __m512i six = _mm512_set1_epi8(0x3f);
    const __m512i a = _mm512_load_si512(body + 256 + j * 192), b = _mm512_load_si512(body + 256 + j * 192 + 64);
    const __m512i c = _mm512_load_si512(body + 256 + j * 192 + 128);
    w[0] = _mm512_and_si512(a, six);
    w[1] = _mm512_and_si512(b, six);
    w[2] = _mm512_and_si512(c, six);
    const __m512i low = _mm512_and_si512(_mm512_srli_epi16(a, 6), _mm512_set1_epi8(0x03));
    const __m512i middle = _mm512_ternarylogic_epi32(low, _mm512_srli_epi16(b, 4), _mm512_set1_epi8(0x0c), 0xf8);
    w[3] = _mm512_ternarylogic_epi32(middle, _mm512_srli_epi16(c, 2), _mm512_set1_epi8(0x30), 0xf8);
}

/* 32 weights of each row, from `offset` of ql on (nibble 0 or 1) and of qh (bits shift, shift + 1): two sub-blocks of 3 vectors. */
PN_INLINE void pack_32_weights(uint8_t *out, const __m512i ql[8], const __m512i qh[8], bool high, int shift)
{
    const __m512i two = _mm512_set1_epi8((char)0xc0), upper = _mm512_set1_epi8(0x30);
    __m512i w[8];
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i bits = shift < 4 ? _mm512_slli_epi16(qh[g], (unsigned)(4 - shift) & 15) : _mm512_srli_epi16(qh[g], (unsigned)(shift - 4) & 15);
        w[g] = _mm512_ternarylogic_epi32(high ? high_nibbles(ql[g]) : low_nibbles(ql[g]), bits, upper, 0xf8);
    }
    PN_UNROLL for (int s = 0; s < 2; s++)
    {
        const __m512i *v = w + s * 4;
        uint8_t *at = out + s * 192;
        _mm512_store_si512(at, _mm512_ternarylogic_epi32(v[0], _mm512_slli_epi16(v[3], 6), two, 0xf8));
        _mm512_store_si512(at + 64, _mm512_ternarylogic_epi32(v[1], _mm512_slli_epi16(v[3], 4), two, 0xf8));
        _mm512_store_si512(at + 128, _mm512_ternarylogic_epi32(v[2], _mm512_slli_epi16(v[3], 2), two, 0xf8));
    }
}

/* A file block: 128 bytes ql, 64 bytes qh, 16 scales, d. Each half of 128 weights: 4 x 32 weights from ql byte l and l + 32, low nibbles first,
 * and from bits 0-1, 2-3, 4-5, 6-7 of qh byte l. */
PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    __m512i v[4];
    _mm256_store_si256((void *)head, pack_u16(rows, 208));
    pack_16(v, rows, 192);
    PN_UNROLL for (int t = 0; t < 4; t++) _mm512_store_si512(body + t * 64, v[t]);
    for (size_t half = 0; half < 2; half++) {
        uint8_t *out = body + 256 + half * 8 * 192;
        __m512i ql[8], qh[8];
        pack_32(qh, rows, 128 + half * 32);
        pack_32(ql, rows, half * 64);
        pack_32_weights(out, ql, qh, false, 0);
        pack_32_weights(out + 4 * 192, ql, qh, true, 4);
        pack_32(ql, rows, half * 64 + 32);
        pack_32_weights(out + 2 * 192, ql, qh, false, 2);
        pack_32_weights(out + 6 * 192, ql, qh, true, 6);
    }
}

#include "kernels/x86/act256_avx512.h"

PN_KERNEL_AVX512(q6_k)
