/* kernels/x86/dots_avx2.h - integer dot products of one block with n columns, AVX2. A template, included after the layout of a format.
 *
 * Products of bytes are summed by pairs in 16 bits: with codes of 4, 5 and 6 bits, 8, 4 and 2 such sums fit (2 * 127 * (2^bits - 1) each); codes of
 * 8 bits would saturate, so their magnitude is multiplied by the activation with the weight's sign: at most 2 * 127 * 128. */

#define CODE_OFFSET (1 << (CODE_BITS - 1))
#define SUMS_16 (CODE_BITS == 4 ? 8 : CODE_BITS == 5 ? 4 : 2)

/* sum + codes times the 4 bytes at x, by pairs. */
PN_INLINE vec pair_products(vec codes, const uint8_t *x) { return _mm256_maddubs_epi16(codes, v_splat(x)); }
PN_INLINE vec add_pair_products(vec sum, vec codes, const uint8_t *x)
{
    sum = _mm256_add_epi16(sum, pair_products(codes, x));
    KEEP(sum);
    return sum;
}
PN_INLINE vec add_dots(vec sum, vec pairs, vec scale)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, scale));
    KEEP(sum);
    return sum;
}

#if BLOCK == 32
/* sum[c] = weights (u8 codes less offset) times the 32 activations at x[c] + at. */
PN_INLINE void block_dots(int n, const vec w[8], const uint8_t *const *x, size_t at, vec *sum)
{
    const vec ones = _mm256_set1_epi16(1);
#if CODE_BITS == 8
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const vec weights = v_xor(w[g], v_bytes(0x80)), magnitude = _mm256_abs_epi8(weights);
        PN_UNROLL for (int c = 0; c < n; c++)
        {
            const vec pairs = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(v_splat(x[c] + at + g * 4), weights));
            sum[c] = g ? add_dots(sum[c], pairs, ones) : _mm256_madd_epi16(pairs, ones);
        }
    }
#else
    PN_UNROLL for (int first = 0; first < 8; first += SUMS_16)
    {
        vec pairs[TILE];
        PN_UNROLL for (int c = 0; c < n; c++) pairs[c] = pair_products(w[first], x[c] + at + first * 4);
        PN_UNROLL for (int g = first + 1; g < first + SUMS_16; g++)
        {
            PN_UNROLL for (int c = 0; c < n; c++) pairs[c] = add_pair_products(pairs[c], w[g], x[c] + at + g * 4);
        }
        PN_UNROLL for (int c = 0; c < n; c++)
            sum[c] = first ? add_dots(sum[c], pairs[c], ones) : _mm256_madd_epi16(pairs[c], ones);
    }
#if !HAS_MIN
    PN_UNROLL for (int c = 0; c < n; c++)
        sum[c] = _mm256_sub_epi32(sum[c], v_left(v_splat(x[c] + at + offsetof(pn_act32, sum)), CODE_BITS - 1));
#endif
#endif
}
#else

/* What is added to the sums of the 16 sub-blocks of a column, halved, in both 16-bit halves: |sum of 16| * 16 <= 32512. */
PN_INLINE void starts_store(int32_t starts[16], const uint8_t *act)
{
    const vec sums = _mm256_loadu_si256((const void *)(act + offsetof(pn_act256, bsum16)));
    const vec halved = _mm256_mullo_epi16(sums, _mm256_set1_epi16(-CODE_OFFSET / 2));
    const vec low = _mm256_unpacklo_epi16(halved, halved), high = _mm256_unpackhi_epi16(halved, halved);
    v_store(starts, _mm256_permute2x128_si256(low, high, 0x20));
    v_store(starts + 8, _mm256_permute2x128_si256(low, high, 0x31));
}

/* A sub-block's scales as sub_dots takes them: in both 16-bit halves. */
PN_INLINE vec scale_word(vec scale) { return v_shuffle_bytes(scale, _mm_setr_epi8(0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13)); }

/* total[c] += scale * (sub-block j times the activations at x[c] + at). */
PN_INLINE void sub_dots(int n, const vec *w, vec scale, const uint8_t *const *x, size_t at, const int32_t (*starts)[16], int j, vec *total)
{
#if !HAS_MIN
    PN_UNROLL for (int c = 0; c < n; c++) total[c] = dot_i16(total[c], scale, &starts[c][j]);
#else
    (void)starts, (void)j;
#endif
    PN_UNROLL for (int first = 0; first < SUB / 4; first += SUMS_16)
    {
        vec pairs[TILE];
        PN_UNROLL for (int c = 0; c < n; c++) pairs[c] = pair_products(w[first], x[c] + at + first * 4);
        PN_UNROLL for (int g = first + 1; g < first + SUMS_16; g++)
        {
            PN_UNROLL for (int c = 0; c < n; c++) pairs[c] = add_pair_products(pairs[c], w[g], x[c] + at + g * 4);
        }
        PN_UNROLL for (int c = 0; c < n; c++) total[c] = add_dots(total[c], pairs[c], scale);
    }
}
#endif
