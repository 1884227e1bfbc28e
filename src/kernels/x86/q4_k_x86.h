/* kernels/x86/q4_k_x86.h - layout of packed Q4_K, a template. Head: d and dmin as f16; body: the scales of pairs_x86.h, then 32 vectors of nibbles, of
 * which vector t holds the rows' code bytes 4t..4t+3: 8 vectors serve two sub-blocks, low nibbles the first. */
#include "kernels/x86/pairs_x86.h"

#define BLOCK 256
#define FILE_BLOCK 144
#define HEAD_BLOCKS 1
#define BODY_VECTORS (3 + 32)
#define CODE_BITS 4
#define HAS_MIN 1
#define SUB 32

PN_INLINE vec sub_codes(const uint8_t *body, int j, int i, int g)
{
    const vec v = v_load(body + PAIRS_BYTES + (j * 4 + i / 2 * 8 + g) * VECTOR_BYTES);
    return i % 2 ? high_nibbles(v) : low_nibbles(v);
}

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    pack_pairs(head, body, rows);
    for (size_t i = 0; i < 4; i++) {
        vec v[8];
        pack_32(v, rows, 16 + i * 32);
        store_vectors(body + PAIRS_BYTES + i * 8 * VECTOR_BYTES, v, 8);
    }
}
