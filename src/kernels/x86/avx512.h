/* kernels/x86/avx512.h - the words in which formats and kernels are written, for AVX-512: a vector of 16 rows, one per 32-bit lane.
 *
 * A code vector holds 4 consecutive weights of each row as bytes. avx2.h has the same words for 8 rows; knows no weight format. */
#ifndef PN_X86_AVX512_H
#define PN_X86_AVX512_H

#include "kernels/x86/rows_x86.h"

#include <immintrin.h>

#define LANES 16        /* rows of a group */
#define TILE 8          /* columns of a tile */
#define DIRECT_TILE 4   /* columns of a tile straight from the packed form */
#define DIRECT_COLUMNS 8 /* columns above which a panel pays */
#define FLOAT_TILE 8    /* columns x groups of a tile of float weights, and groups of a single column: sums enough to hide the latency */
#define FLOAT_GROUPS 1
#define FLOAT_GEMV_GROUPS 4

typedef __m512i vec;
typedef __m512 fvec;
typedef __mmask16 row_mask;

#define MM(op) _mm512_##op
#define SI(op) _mm512_##op##_si512
#include "kernels/x86/words_x86.h"
#undef MM
#undef SI

PN_INLINE vec v_or_bits(vec a, vec b, int bits) { return _mm512_ternarylogic_epi32(a, b, v_bytes(bits), 0xf8); } /* a | (b & bits), by bytes */
PN_INLINE vec v_left(vec a, int n) { return _mm512_slli_epi32(a, (unsigned)n & 31); }
PN_INLINE vec v_right(vec a, int n) { return _mm512_srli_epi32(a, (unsigned)n & 31); }
PN_INLINE vec v_right_signed(vec a, int n) { return _mm512_srai_epi32(a, (unsigned)n & 31); }
PN_INLINE vec v_shuffle_bytes(vec a, __m128i order) { return _mm512_shuffle_epi8(a, _mm512_broadcast_i32x4(order)); } /* in each 4 rows */

PN_INLINE vec v_table(const void *p) { return _mm512_broadcast_i32x4(_mm_loadu_si128(p)); } /* 16 bytes for each 4 rows */

PN_INLINE fvec f_load_halves(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }
PN_INLINE fvec f_load_bf16(const void *p) { return _mm512_castsi512_ps(v_left(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16)); }
PN_INLINE void f_store_rows(float *p, row_mask m, fvec v) { _mm512_mask_storeu_ps(p, m, v); }

/* Which rows of the group at `row` exist. */
PN_INLINE row_mask rows_mask(int64_t row, int64_t row_end) { return (row_mask)((1u << pn_min64(row_end - row, LANES)) - 1); }

/* gcc 12 does not fold a broadcast into the integer dot products; written out, the load costs no slot of the front end. Sanitizers must see the load. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PN_FOLD_BROADCAST 1
#else
#define PN_FOLD_BROADCAST 0
#endif

/* acc + sum of 4 products u8 * i8 per lane; the same 4 signed bytes at x for every lane. */
PN_INLINE vec dot_u8(vec acc, vec w, const void *x)
{
#if PN_FOLD_BROADCAST
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const pn_i32_alias *)x));
    return acc;
#else
    return _mm512_dpbusd_epi32(acc, w, v_splat(x));
#endif
}

/* acc + sum of 2 products i16 * i16 per lane. */
PN_INLINE vec dot_i16(vec acc, vec w, const void *x)
{
#if PN_FOLD_BROADCAST
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const pn_i32_alias *)x));
    return acc;
#else
    return _mm512_dpwssd_epi32(acc, w, v_splat(x));
#endif
}

/* ---- packing ---- */

/* The 32-bit (16-bit) value at byte `offset` of each row's block. */
PN_INLINE vec pack_units(const pack_rows *rows, size_t offset)
{
    uint32_t v[LANES];
    for (int r = 0; r < LANES; r++) memcpy(&v[r], rows->at[r] + offset, 4);
    return _mm512_loadu_si512(v);
}
PN_INLINE void pack_halves(uint8_t *out, const pack_rows *rows, size_t offset)
{
    uint16_t v[LANES];
    for (int r = 0; r < LANES; r++) memcpy(&v[r], rows->at[r] + offset, 2);
    _mm256_store_si256((void *)out, _mm256_loadu_si256((const void *)v));
}

/* 4x4 transposes of 32-bit units inside each 128-bit lane: out[j] lane = unit j of a[0..3]. */
PN_INLINE void transpose_4x4(vec out[4], const vec a[4])
{
    const vec t0 = _mm512_unpacklo_epi32(a[0], a[1]), t1 = _mm512_unpackhi_epi32(a[0], a[1]);
    const vec t2 = _mm512_unpacklo_epi32(a[2], a[3]), t3 = _mm512_unpackhi_epi32(a[2], a[3]);
    out[0] = _mm512_unpacklo_epi64(t0, t2);
    out[1] = _mm512_unpackhi_epi64(t0, t2);
    out[2] = _mm512_unpacklo_epi64(t1, t3);
    out[3] = _mm512_unpackhi_epi64(t1, t3);
}

/* 16 bytes of each row at `offset`: out[j] = 32-bit unit j of all rows. */
PN_INLINE void pack_16(vec out[4], const pack_rows *rows, size_t offset)
{
    vec a[4];
    PN_UNROLL for (int i = 0; i < 4; i++)
    {
        vec v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(rows->at[i] + offset)));
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(rows->at[i + 4] + offset)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(rows->at[i + 8] + offset)), 2);
        a[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(rows->at[i + 12] + offset)), 3);
    }
    transpose_4x4(out, a);
}

/* 32 bytes of each row at `offset`: out[j] = 32-bit unit j of all rows. */
PN_INLINE void pack_32(vec out[8], const pack_rows *rows, size_t offset)
{
    vec a[8], t[8]; /* a[0..3]: rows i | i + 4; a[4..7]: rows i + 8 | i + 12 */
    PN_UNROLL for (int i = 0; i < 8; i++)
    {
        const int r = (i & 3) + (i >> 2) * 8;
        a[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)(rows->at[r] + offset))),
                                  _mm256_loadu_si256((const void *)(rows->at[r + 4] + offset)), 1);
    }
    transpose_4x4(t, a);
    transpose_4x4(t + 4, a + 4);
    PN_UNROLL for (int j = 0; j < 4; j++)
    {
        out[j] = _mm512_shuffle_i64x2(t[j], t[4 + j], 0x88);
        out[4 + j] = _mm512_shuffle_i64x2(t[j], t[4 + j], 0xdd);
    }
}

/* A lane holds two consecutive 16-bit weights of a row: stores all rows' first, then all rows' second. */
PN_INLINE void store_halves(uint8_t *out, vec v)
{
    _mm256_store_si256((void *)out, _mm512_cvtepi32_epi16(v));
    _mm256_store_si256((void *)(out + 32), _mm512_cvtepi32_epi16(v_right(v, 16)));
}

#endif
