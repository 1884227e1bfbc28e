/* kernels/x86/q4_1_x86.h - layout of packed Q4_1, a template. Head: d and m as f16; body: 4 vectors of nibbles. */
#include "kernels/x86/codes_x86.h"

#define BLOCK 32
#define FILE_BLOCK 20
#define HEAD_BLOCKS 1
#define BODY_VECTORS 4
#define CODE_BITS 4
#define HAS_MIN 1

PN_INLINE void unpack(vec w[8], const uint8_t *body) { unpack_nibbles(w, body); }

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    pack_halves(head, rows, 0);
    pack_halves(head + VECTOR_BYTES / 2, rows, 2);
    pack_nibbles(body, rows, 4);
}
