/* kernels/x86/codes_x86.h - code vectors from nibbles and their packing: a template over the words of avx512.h or avx2.h, included after one of them.
 *
 * A vector of nibbles holds the rows' code bytes 4t..4t+3 of a block of 32: low nibbles are weights 4t.., high nibbles weights 16 + 4t.., as in the file. */

#define VECTOR_BYTES (LANES * 4)

PN_INLINE vec low_nibbles(vec v) { return v_and(v, v_bytes(0x0f)); }
PN_INLINE vec high_nibbles(vec v) { return low_nibbles(v_right(v, 4)); }

/* 4 vectors of nibbles to 8 code vectors. */
PN_INLINE void unpack_nibbles(vec w[8], const uint8_t *codes)
{
    PN_UNROLL for (int t = 0; t < 4; t++)
    {
        const vec v = v_load(codes + t * VECTOR_BYTES);
        w[t] = low_nibbles(v);
        w[t + 4] = high_nibbles(v);
    }
}

/* The same with a fifth bit: bit g of byte i of a row's lane in the leading vector belongs to weight 4g + i. */
PN_INLINE void unpack_nibbles_5(vec w[8], const uint8_t *codes)
{
    const vec high = v_load(codes);
    unpack_nibbles(w, codes + VECTOR_BYTES);
    PN_UNROLL for (int g = 0; g < 8; g++) w[g] = v_or_bits(w[g], g < 4 ? v_left(high, 4 - g) : v_right(high, g - 4), 0x10);
}

PN_INLINE void store_vectors(uint8_t *out, const vec *v, int n)
{
    PN_UNROLL for (int i = 0; i < n; i++) v_store(out + i * VECTOR_BYTES, v[i]);
}

/* 16 bytes of nibbles of each row at `offset`. */
PN_INLINE void pack_nibbles(uint8_t *codes, const pack_rows *rows, size_t offset)
{
    vec v[4];
    pack_16(v, rows, offset);
    store_vectors(codes, v, 4);
}

/* The fifth bits of 32 weights a row, bit k for weight k, in the order that unpack_nibbles_5 reads. */
PN_INLINE vec spread_fifth_bits(vec bits)
{
    vec out = v_zero();
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const vec nibble = v_and(v_right(bits, g * 4), v_units(15));
        const vec spread = v_and(v_multiply(nibble, 0x00204081), v_bytes(1)); /* bit i to bit 0 of byte i */
        out = v_or(out, v_left(spread, g));
    }
    return out;
}
