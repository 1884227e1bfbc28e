/* kernels/x86/q8_0_x86.h - layout of packed Q8_0, a template. Head: d of two blocks as f16; body: 8 code vectors, each byte plus 128. */
#include "kernels/x86/codes_x86.h"

#define BLOCK 32
#define FILE_BLOCK 34
#define HEAD_BLOCKS 2
#define BODY_VECTORS 8
#define CODE_BITS 8
#define HAS_MIN 0

PN_INLINE void unpack(vec w[8], const uint8_t *body)
{
    PN_UNROLL for (int g = 0; g < 8; g++) w[g] = v_load(body + g * VECTOR_BYTES);
}

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    vec v[8];
    pack_halves(head, rows, 0);
    pack_32(v, rows, 2);
    PN_UNROLL for (int g = 0; g < 8; g++) v[g] = v_xor(v[g], v_bytes(0x80));
    store_vectors(body, v, 8);
}
