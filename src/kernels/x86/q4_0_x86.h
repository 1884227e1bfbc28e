/* kernels/x86/q4_0_x86.h - layout of packed Q4_0, a template. Head: d of two blocks as f16; body: 4 vectors of nibbles. */
#include "kernels/x86/codes_x86.h"

#define BLOCK 32
#define FILE_BLOCK 18
#define HEAD_BLOCKS 2
#define BODY_VECTORS 4
#define CODE_BITS 4
#define HAS_MIN 0

PN_INLINE void unpack(vec w[8], const uint8_t *body) { unpack_nibbles(w, body); }

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    pack_halves(head, rows, 0);
    pack_nibbles(body, rows, 2);
}
