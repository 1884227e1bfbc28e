/* kernels/x86/q5_0_x86.h - layout of packed Q5_0, a template. Head: d of two blocks as f16; body: the fifth bits, then 4 vectors of nibbles. */
#include "kernels/x86/codes_x86.h"

#define BLOCK 32
#define FILE_BLOCK 22
#define HEAD_BLOCKS 2
#define BODY_VECTORS 5
#define CODE_BITS 5
#define HAS_MIN 0

PN_INLINE void unpack(vec w[8], const uint8_t *body) { unpack_nibbles_5(w, body); }

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    pack_halves(head, rows, 0);
    v_store(body, spread_fifth_bits(pack_units(rows, 2)));
    pack_nibbles(body + VECTOR_BYTES, rows, 6);
}
