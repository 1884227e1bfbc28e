/* kernels/x86/mxfp4_x86.h - layout of packed MXFP4, a template. Head: scales of two blocks as the upper halves of floats, which hold any power of two; body: 4
 * vectors of nibbles. Codes are looked up, and as large as those of Q5_0, whose panels serve. */
#include "kernels/x86/codes_x86.h"
#include "quant/codes.h"

#define BLOCK 32
#define FILE_BLOCK 17
#define HEAD_BLOCKS 2
#define BODY_VECTORS 4
#define CODE_BITS 5
#define HAS_MIN 0
#define LOAD_SCALES f_load_bf16
#define ONLY_PANELS

static const uint8_t doubled_values[16] = {16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4}; /* + 16 */

PN_INLINE void unpack(vec w[8], const uint8_t *body)
{
    const vec values = v_table(doubled_values);
    unpack_nibbles(w, body);
    PN_UNROLL for (int g = 0; g < 8; g++) w[g] = v_lookup(values, w[g]);
}

PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    PN_NO_UNROLL for (int r = 0; r < LANES; r++)
    {
        const uint16_t half = pn_e8m0_half_bf16(rows->at[r][0]);
        memcpy(head + 2 * r, &half, 2);
    }
    pack_nibbles(body, rows, 1);
}
