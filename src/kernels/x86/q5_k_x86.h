/* kernels/x86/q5_k_x86.h - layout of packed Q5_K, a template. Head: d and dmin as f16; body: the scales of pairs_x86.h, 8 vectors of fifth bits, of which
 * vector g holds the rows' bytes 4g..4g+3 (bit j of byte i: weight 4g + i of sub-block j), then 32 vectors of nibbles as in Q4_K. */
#include "kernels/x86/pairs_x86.h"

#define BLOCK 256
#define FILE_BLOCK 176
#define HEAD_BLOCKS 1
#define BODY_VECTORS (3 + 8 + 32)
#define CODE_BITS 5
#define HAS_MIN 1
#define SUB 32

PN_INLINE vec sub_codes(const uint8_t *body, int j, int i, int g)
{
    const uint8_t *at = body + PAIRS_BYTES + g * VECTOR_BYTES;
    const vec v = v_load(at + (8 + j * 4 + i / 2 * 8) * VECTOR_BYTES), fifth = v_right(v_load(at), j);
    return v_or_bits(i % 2 ? high_nibbles(v) : low_nibbles(v), v_left(fifth, 4 - i), 0x10);
}

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    pack_pairs(head, body, rows);
    for (size_t i = 0; i < 5; i++) {
        vec v[8];
        pack_32(v, rows, 16 + i * 32);
        store_vectors(body + PAIRS_BYTES + i * 8 * VECTOR_BYTES, v, 8);
    }
}
