/* kernels/x86/dots_avx512.h - integer dot products of one block with n columns, AVX-512 VNNI. A template, included after the layout of a format. */

/* total + a dot of 2 products i16 * i16 per lane is dot_i16 of avx512.h. Codes carry half their range too much where there are no minimums: the
 * integer sums start at minus that offset times the sum of the activations. Through memory: the vector pipes are full. */
#define CODE_OFFSET (1 << (CODE_BITS - 1))

#if BLOCK == 32
/* sum[c] = weights (u8 codes less offset) times the 32 activations at x[c] + at. */
PN_INLINE void block_dots(int n, const vec w[8], const uint8_t *const *x, size_t at, vec *sum)
{
#if HAS_MIN
    PN_UNROLL for (int c = 0; c < n; c++) sum[c] = v_zero();
#else
    int32_t starts[TILE];
    PN_UNROLL for (int c = 0; c < n; c++) starts[c] = *(const pn_i32_alias *)(x[c] + at + offsetof(pn_act32, sum)) * -CODE_OFFSET;
    hide(starts);
    PN_UNROLL for (int c = 0; c < n; c++) sum[c] = v_splat(&starts[c]);
#endif
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = dot_u8(sum[c], w[g], x[c] + at + g * 4);
    }
}
#else

/* What the sums of the 16 sub-blocks of a column start at. */
PN_INLINE void starts_store(int32_t starts[16], const uint8_t *act)
{
    const vec sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)(act + offsetof(pn_act256, bsum16))));
    v_store(starts, _mm512_mullo_epi32(sums, _mm512_set1_epi32(-CODE_OFFSET)));
}

/* A sub-block's scales as sub_dots takes them. */
PN_INLINE vec scale_word(vec scale) { return scale; }

/* total[c] += scale * (sub-block j times the activations at x[c] + at). */
PN_INLINE void sub_dots(int n, const vec *w, vec scale, const uint8_t *const *x, size_t at, const int32_t (*starts)[16], int j, vec *total)
{
    vec sum[TILE];
    PN_UNROLL for (int c = 0; c < n; c++) sum[c] = HAS_MIN ? v_zero() : v_splat(&starts[c][j]);
    PN_UNROLL for (int g = 0; g < SUB / 4; g++)
    {
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = dot_u8(sum[c], w[g], x[c] + at + g * 4);
    }
    PN_UNROLL for (int c = 0; c < n; c++) total[c] = _mm512_add_epi32(total[c], _mm512_mullo_epi32(sum[c], scale));
}
#endif
