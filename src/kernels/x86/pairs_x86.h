/* kernels/x86/pairs_x86.h - scales and minimums of Q4_K and Q5_K, 6 bits each, in the first 3 vectors of a block's body. A template over the words.
 *
 * Low 6 bits of bytes 0..3 of a row's lane: scales 0..3 | scales 4..7 | minimums 0 2 1 3. Their top 2 bits, lowest first, make minimums 4 6 5 7.
 * So masks leave minimums as 16-bit pairs in the order of the activations' sums. */
#include "kernels/x86/codes_x86.h"

#define PAIRS_BYTES (3 * VECTOR_BYTES)

PN_INLINE vec sub_scale(const uint8_t *body, int j, int i) { return v_and(v_right(v_load(body + (j >> 2) * VECTOR_BYTES), ((j & 3) + i) * 8), v_units(63)); }

/* The bits of the three scale vectors above the low 6, as bytes of 6 bits. */
PN_INLINE vec top_bits(const uint8_t *body)
{
    const vec low = v_and(v_right(v_load(body), 6), v_bytes(0x03));
    const vec middle = v_or_bits(low, v_right(v_load(body + VECTOR_BYTES), 4), 0x0c);
    return v_or_bits(middle, v_right(v_load(body + 2 * VECTOR_BYTES), 2), 0x30);
}

/* Minimums 2j and 2j + 1 as 16-bit pairs. */
PN_INLINE vec minimum_pairs(const uint8_t *body, int j)
{
    const vec bytes = j < 2 ? v_load(body + 2 * VECTOR_BYTES) : top_bits(body);
    return v_and(v_right(bytes, j % 2 * 8), v_units(0x003f003f));
}

/* The file's 12 bytes: 6 low bits of bytes 0..3 are scales 0..3, of 4..7 minimums 0..3; byte 8 + j has 4 bits of scale and of minimum 4 + j, whose
 * upper 2 bits are on top of bytes j and 4 + j. */
PN_INLINE void pack_scales(uint8_t *body, vec a, vec b, vec c)
{
    const __m128i order = _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15);
    const vec six = v_bytes(0x3f);
    const vec sc4 = v_or_bits(low_nibbles(c), v_right(a, 2), 0x30);
    const vec mn4 = v_shuffle_bytes(v_or_bits(high_nibbles(c), v_right(b, 2), 0x30), order);
    const vec mn0 = v_shuffle_bytes(v_and(b, six), order);
    v_store(body, v_or_bits(v_and(a, six), v_left(mn4, 6), 0xc0));
    v_store(body + VECTOR_BYTES, v_or_bits(sc4, v_left(mn4, 4), 0xc0));
    v_store(body + 2 * VECTOR_BYTES, v_or_bits(mn0, v_left(mn4, 2), 0xc0));
}

/* d, dmin and the pairs, in the file's order. */
PN_INLINE void pack_pairs(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    pack_halves(head, rows, 0);
    pack_halves(head + VECTOR_BYTES / 2, rows, 2);
    pack_scales(body, pack_units(rows, 4), pack_units(rows, 8), pack_units(rows, 12));
}
