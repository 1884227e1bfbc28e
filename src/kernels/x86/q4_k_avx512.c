/* kernels/x86/q4_k_avx512.c - Q4_K, AVX-512 VNNI. Packed: per block 16 d and 16 dmin as f16, 3 vectors of scales, then 32 vectors; vector t
 * holds the rows' code bytes 4t..4t+3: 8 vectors serve two sub-blocks, low nibbles the first.
 * Scale vectors, low 6 bits of bytes 0..3 of a row's lane: scales 0..3 | scales 4..7 | minimums 0 2 1 3. Their top 2 bits, lowest first, make
 * minimums 4 6 5 7. So masks leave minimums as int16 pairs in the order of the activations' sums. */
#include "kernels/x86/avx512.h"

#define SUB 32
#define HEAD_BLOCKS 1
#define BODY_BYTES (192 + 2048)
#define HAS_MIN 1
#define FILE_BLOCK 144

PN_INLINE __m512i sub_scale(const uint8_t *body, int j)
{
    const __m512i v = _mm512_load_si512(body + j / 4 * 64);
    return _mm512_and_si512(_mm512_srli_epi32(v, (unsigned)(j % 4) * 8), _mm512_set1_epi32(63));
}

/* Bits of the three scale vectors above the low 6, as bytes of 6 bits. */
PN_INLINE __m512i top_bits(const uint8_t *body)
{
    const __m512i a = _mm512_srli_epi32(_mm512_load_si512(body), 6), b = _mm512_srli_epi32(_mm512_load_si512(body + 64), 4);
    const __m512i c = _mm512_srli_epi32(_mm512_load_si512(body + 128), 2);
    const __m512i low = _mm512_and_si512(a, _mm512_set1_epi8(0x03));
    return _mm512_ternarylogic_epi32(_mm512_ternarylogic_epi32(low, b, _mm512_set1_epi8(0x0c), 0xf8), c, _mm512_set1_epi8(0x30), 0xf8);
}

PN_INLINE __m512i minimum_pairs(const uint8_t *body, int j)
{
    const __m512i bytes = j < 2 ? _mm512_load_si512(body + 128) : top_bits(body);
    return _mm512_and_si512(_mm512_srli_epi32(bytes, (unsigned)(j % 2) * 8), _mm512_set1_epi32(0x003f003f));
}

PN_INLINE void sub_codes(__m512i w[8], const uint8_t *body, int j)
{
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i v = _mm512_load_si512(body + 192 + j / 2 * 512 + g * 64);
        w[g] = j % 2 ? high_nibbles(v) : low_nibbles(v);
    }
}

/* The file's 12 bytes: 6 low bits of bytes 0..3 are scales 0..3, of 4..7 minimums 0..3; byte 8 + j has 4 bits of scale and minimum 4 + j, whose
 * upper 2 bits are on top of bytes j and 4 + j. */
PN_INLINE void pack_scales(uint8_t *body, __m512i a, __m512i b, __m512i c)
{
    const __m512i six = _mm512_set1_epi8(0x3f), upper = _mm512_set1_epi8(0x30), two = _mm512_set1_epi8((char)0xc0);
    const __m512i order = _mm512_broadcast_i32x4(_mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    const __m512i sc4 = _mm512_or_si512(low_nibbles(c), _mm512_and_si512(_mm512_srli_epi16(a, 2), upper));
    const __m512i mn4 = _mm512_shuffle_epi8(_mm512_or_si512(high_nibbles(c), _mm512_and_si512(_mm512_srli_epi16(b, 2), upper)), order);
    const __m512i mn0 = _mm512_shuffle_epi8(_mm512_and_si512(b, six), order);
    _mm512_store_si512(body, _mm512_or_si512(_mm512_and_si512(a, six), _mm512_and_si512(_mm512_slli_epi16(mn4, 6), two)));
    _mm512_store_si512(body + 64, _mm512_or_si512(sc4, _mm512_and_si512(_mm512_slli_epi16(mn4, 4), two)));
    _mm512_store_si512(body + 128, _mm512_or_si512(mn0, _mm512_and_si512(_mm512_slli_epi16(mn4, 2), two)));
}

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    _mm256_store_si256((void *)head, pack_u16(rows, 0));
    _mm256_store_si256((void *)(head + 32), pack_u16(rows, 2));
    pack_scales(body, pack_u32(rows, 4), pack_u32(rows, 8), pack_u32(rows, 12));
    for (size_t i = 0; i < 4; i++) {
        __m512i v[8];
        pack_32(v, rows, 16 + i * 32);
        PN_UNROLL for (int g = 0; g < 8; g++) _mm512_store_si512(body + 192 + i * 512 + (size_t)g * 64, v[g]);
    }
}

#include "kernels/x86/act256_avx512.h"

PN_KERNEL_AVX512(q4_k)
