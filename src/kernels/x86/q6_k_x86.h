/* kernels/x86/q6_k_x86.h - layout of packed Q6_K, a template. Head: d of two blocks as f16; body: 4 vectors of scales (bytes 0..3 of a row's lane in
 * vector t: scales 4t..4t+3), then 16 x 3 vectors of codes: per sub-block of 16, low 6 bits are byte groups 0..2, their top 2 bits, lowest first, are
 * byte group 3. */
#include "kernels/x86/codes_x86.h"

#define BLOCK 256
#define FILE_BLOCK 210
#define HEAD_BLOCKS 2
#define BODY_VECTORS (4 + 48)
#define CODE_BITS 6
#define HAS_MIN 0
#define SUB 16

PN_INLINE vec sub_scale(const uint8_t *body, int j, int i)
{
    return v_right_signed(v_left(v_load(body + (j >> 2) * VECTOR_BYTES), (3 - (j & 3) - i) * 8), 24);
}

PN_INLINE vec sub_codes(const uint8_t *body, int j, int i, int g)
{
    const uint8_t *at = body + (4 + (j + i) * 3) * VECTOR_BYTES;
    if (g < 3) return v_and(v_load(at + g * VECTOR_BYTES), v_bytes(0x3f));
    const vec low = v_and(v_right(v_load(at), 6), v_bytes(0x03));
    const vec middle = v_or_bits(low, v_right(v_load(at + VECTOR_BYTES), 4), 0x0c);
    return v_or_bits(middle, v_right(v_load(at + 2 * VECTOR_BYTES), 2), 0x30);
}

/* 32 weights of each row: nibbles of ql, high or low ones, and bits 2*quarter, 2*quarter + 1 of qh; two sub-blocks of 3 vectors. */
PN_INLINE void pack_32_weights(uint8_t *out, const vec ql[8], const vec qh[8], int quarter)
{
    vec w[8];
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const vec bits = quarter < 2 ? v_left(qh[g], 4 - 2 * quarter) : v_right(qh[g], 2 * quarter - 4);
        w[g] = v_or_bits(quarter < 2 ? low_nibbles(ql[g]) : high_nibbles(ql[g]), bits, 0x30);
    }
    PN_UNROLL for (int s = 0; s < 2; s++)
    {
        PN_UNROLL for (int g = 0; g < 3; g++) v_store(out + (s * 3 + g) * VECTOR_BYTES, v_or_bits(w[s * 4 + g], v_left(w[s * 4 + 3], 6 - 2 * g), 0xc0));
    }
}

/* A file block: 128 bytes ql, 64 bytes qh, 16 scales, d. Each half of 128 weights is 4 quarters of 32: low nibbles of ql bytes l, of l + 32, high
 * nibbles of l, of l + 32, with bits 0-1, 2-3, 4-5, 6-7 of qh byte l. */
PN_INLINE void pack_block(uint8_t *head, uint8_t *body, const pack_rows *rows)
{
    vec v[4];
    pack_halves(head, rows, 208);
    pack_16(v, rows, 192);
    store_vectors(body, v, 4);
    for (size_t half = 0; half < 2; half++) {
        uint8_t *out = body + (4 + half * 24) * VECTOR_BYTES;
        vec ql[8], qh[8];
        pack_32(qh, rows, 128 + half * 32);
        pack_32(ql, rows, half * 64);
        pack_32_weights(out, ql, qh, 0);
        pack_32_weights(out + 12 * VECTOR_BYTES, ql, qh, 2);
        pack_32(ql, rows, half * 64 + 32);
        pack_32_weights(out + 6 * VECTOR_BYTES, ql, qh, 1);
        pack_32_weights(out + 18 * VECTOR_BYTES, ql, qh, 3);
    }
}
