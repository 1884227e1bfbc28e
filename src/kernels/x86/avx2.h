/* kernels/x86/avx2.h - the words in which formats and kernels are written, for AVX2, FMA and F16C: a vector of 8 rows, one per 32-bit lane.
 *
 * A code vector holds 4 consecutive weights of each row as bytes. avx512.h has the same words for 16 rows; knows no weight format. */
#ifndef PN_X86_AVX2_H
#define PN_X86_AVX2_H

#include "kernels/x86/rows_x86.h"

#include <immintrin.h>

#define LANES 8           /* rows of a group */
#define TILE 4            /* columns of a tile */
#define DIRECT_TILE 4     /* columns of a tile straight from the packed form */
#define DIRECT_COLUMNS 4  /* columns above which a panel pays */
#define FLOAT_TILE 6      /* columns x groups of a tile of float weights, and groups of a single column: sums enough to hide the latency */
#define FLOAT_GROUPS 2
#define FLOAT_GEMV_GROUPS 8

typedef __m256i vec;
typedef __m256 fvec;
typedef __m256i row_mask;

#define MM(op) _mm256_##op
#define SI(op) _mm256_##op##_si256
#include "kernels/x86/words_x86.h"
#undef MM
#undef SI

PN_INLINE vec v_or_bits(vec a, vec b, int bits) { return v_or(a, v_and(b, v_bytes(bits))); } /* a | (b & bits), by bytes */
PN_INLINE vec v_left(vec a, int n) { return _mm256_slli_epi32(a, n); }
PN_INLINE vec v_right(vec a, int n) { return _mm256_srli_epi32(a, n); }
PN_INLINE vec v_right_signed(vec a, int n) { return _mm256_srai_epi32(a, n); }
PN_INLINE vec v_shuffle_bytes(vec a, __m128i order) { return _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(order)); } /* in each 4 rows */

PN_INLINE vec v_table(const void *p) { return _mm256_broadcastsi128_si256(_mm_loadu_si128(p)); } /* 16 bytes for each 4 rows */

PN_INLINE fvec f_load_halves(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128(p)); }
PN_INLINE fvec f_load_bf16(const void *p) { return _mm256_castsi256_ps(v_left(_mm256_cvtepu16_epi32(_mm_loadu_si128(p)), 16)); }
PN_INLINE void f_store_rows(float *p, row_mask m, fvec v) { _mm256_maskstore_ps(p, m, v); }

/* Which rows of the group at `row` exist: all bits of their lanes. */
PN_INLINE row_mask rows_mask(int64_t row, int64_t row_end)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)pn_min64(row_end - row, LANES)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* acc + sum of 2 products i16 * i16 per lane. */
PN_INLINE vec dot_i16(vec acc, vec w, const void *x) { return _mm256_add_epi32(acc, _mm256_madd_epi16(w, v_splat(x))); }

/* ---- packing ---- */

/* The 32-bit (16-bit) value at byte `offset` of each row's block. */
PN_INLINE vec pack_units(const pack_rows *rows, size_t offset)
{
    uint32_t v[LANES];
    for (int r = 0; r < LANES; r++) memcpy(&v[r], rows->at[r] + offset, 4);
    return _mm256_loadu_si256((const void *)v);
}
PN_INLINE void pack_halves(uint8_t *out, const pack_rows *rows, size_t offset)
{
    uint16_t v[LANES];
    for (int r = 0; r < LANES; r++) memcpy(&v[r], rows->at[r] + offset, 2);
    memcpy(out, v, sizeof v);
}

/* 16 bytes of each row at `offset`: out[j] = 32-bit unit j of all rows. */
PN_INLINE void pack_16(vec out[4], const pack_rows *rows, size_t offset)
{
    vec a[4];
    PN_UNROLL for (int i = 0; i < 4; i++)
        a[i] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(rows->at[i] + offset))),
                                       _mm_loadu_si128((const void *)(rows->at[i + 4] + offset)), 1);
    const vec t0 = _mm256_unpacklo_epi32(a[0], a[1]), t1 = _mm256_unpackhi_epi32(a[0], a[1]);
    const vec t2 = _mm256_unpacklo_epi32(a[2], a[3]), t3 = _mm256_unpackhi_epi32(a[2], a[3]);
    out[0] = _mm256_unpacklo_epi64(t0, t2);
    out[1] = _mm256_unpackhi_epi64(t0, t2);
    out[2] = _mm256_unpacklo_epi64(t1, t3);
    out[3] = _mm256_unpackhi_epi64(t1, t3);
}

/* 32 bytes of each row at `offset`: out[j] = 32-bit unit j of all rows. */
PN_INLINE void pack_32(vec out[8], const pack_rows *rows, size_t offset)
{
    pack_16(out, rows, offset);
    pack_16(out + 4, rows, offset + 16);
}

/* A lane holds two consecutive 16-bit weights of a row: stores all rows' first, then all rows' second. */
PN_INLINE void store_halves(uint8_t *out, vec v)
{
    const vec sorted = v_shuffle_bytes(v, _mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    _mm256_store_si256((void *)out, _mm256_permute4x64_epi64(sorted, 0xd8));
}

#endif
