/* kernels/x86/avx512.h - what AVX-512 kernels share: dot products with a broadcast operand, loads and stores of 16 rows, transposes for packing.
 *
 * Knows no weight format. A vector holds 16 rows, one per 32-bit lane; a code vector holds 4 consecutive weights of each row as bytes. */
#ifndef PN_X86_AVX512_H
#define PN_X86_AVX512_H

#include "kernels/registry.h"

#include <immintrin.h>

#define PN_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define PN_UNROLL _Pragma("clang loop unroll(full)")
#define PN_NO_UNROLL _Pragma("clang loop unroll(disable)")
#else
#define PN_UNROLL _Pragma("GCC unroll 64")
#define PN_NO_UNROLL _Pragma("GCC unroll 1")
#endif

#define LANES 16 /* rows of a group */
#define TILE 8   /* columns of a tile */

/* Activations and packed weights are read through a type that may alias any other. */
typedef int32_t __attribute__((may_alias)) pn_i32_alias;
typedef float __attribute__((may_alias)) pn_f32_alias;

/* gcc 12 does not fold a broadcast into the integer dot products; written out, the load costs no slot of the front end. Sanitizers must see the load. */
#if defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PN_FOLD_BROADCAST 1
#else
#define PN_FOLD_BROADCAST 0
#endif

/* Makes the compiler leave what it stored at p in memory and load it again. */
PN_INLINE void hide(void *p) { __asm__("" : : "r"(p) : "memory"); }

PN_INLINE __m512i splat_i32(const void *p) { return _mm512_set1_epi32(*(const pn_i32_alias *)p); }
PN_INLINE __m512 splat_f32(const void *p) { return _mm512_set1_ps(*(const pn_f32_alias *)p); }

/* acc + sum of 4 products u8 * i8 per lane; the same 4 signed bytes at x for every lane. */
PN_INLINE __m512i dot_u8(__m512i acc, __m512i w, const void *x)
{
#if PN_FOLD_BROADCAST
    __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const pn_i32_alias *)x));
    return acc;
#else
    return _mm512_dpbusd_epi32(acc, w, splat_i32(x));
#endif
}

/* acc + sum of 2 products i16 * i16 per lane. */
PN_INLINE __m512i dot_i16(__m512i acc, __m512i w, const void *x)
{
#if PN_FOLD_BROADCAST
    __asm__("vpdpwssd %2%{1to16%}, %1, %0" : "+v"(acc) : "v"(w), "m"(*(const pn_i32_alias *)x));
    return acc;
#else
    return _mm512_dpwssd_epi32(acc, w, splat_i32(x));
#endif
}

PN_INLINE __m512 load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256(p)); }

PN_INLINE __m512i low_nibbles(__m512i v) { return _mm512_and_si512(v, _mm512_set1_epi8(0x0f)); }
PN_INLINE __m512i high_nibbles(__m512i v) { return low_nibbles(_mm512_srli_epi16(v, 4)); }

/* 4 vectors of nibbles to 8 code vectors: low nibbles are weights 0..15 of the block, high nibbles 16..31, as in the file. */
PN_INLINE void unpack_nibbles(__m512i w[8], const uint8_t *codes)
{
    PN_UNROLL for (int t = 0; t < 4; t++)
    {
        const __m512i v = _mm512_load_si512(codes + t * 64);
        w[t] = low_nibbles(v);
        w[t + 4] = high_nibbles(v);
    }
}

/* The same with a fifth bit: bit g of byte i of a row's lane in the leading vector belongs to weight 4g + i. */
PN_INLINE void unpack_nibbles_5(__m512i w[8], const uint8_t *codes)
{
    const __m512i high = _mm512_load_si512(codes), bit4 = _mm512_set1_epi8(0x10);
    unpack_nibbles(w, codes + 64);
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i shifted = g < 4 ? _mm512_slli_epi16(high, (unsigned)(4 - g) & 15) : _mm512_srli_epi16(high, (unsigned)(g - 4) & 15);
        w[g] = _mm512_ternarylogic_epi32(w[g], shifted, bit4, 0xf8); /* w | (shifted & bit4) */
    }
}

/* Bit r set: row r of the group at `row` exists. */
PN_INLINE __mmask16 rows_mask(int64_t row, int64_t row_end)
{
    return (__mmask16)((1u << pn_min64(row_end - row, LANES)) - 1);
}

/* The columns of one tile. A tile that is not full repeats its last column: it computes and writes the same value twice. */
typedef struct columns {
    const uint8_t *x[TILE];
    float *y[TILE];
} columns;

PN_INLINE void columns_take(columns *cols, const pn_mm *mm, int64_t first, int n)
{
    for (int c = 0; c < n; c++) {
        const int64_t i = pn_min64(first + c, mm->n_cols - 1);
        cols->x[c] = mm->x[i];
        cols->y[c] = mm->y[i];
    }
}

/* ---- packing: 16 file rows, walked block by block ---- */

typedef struct pack_rows {
    const uint8_t *at[LANES];
    size_t step[LANES];
} pack_rows;

/* All zero: what the missing rows of the last group are read from. The largest block packed here is 256 bytes or less. */
static const uint8_t zero_block[256];

PN_INLINE void pack_begin(pack_rows *rows, const void *src, int64_t n_valid, size_t row_bytes, size_t block_bytes)
{
    for (int r = 0; r < LANES; r++) {
        const bool valid = r < n_valid;
        rows->at[r] = valid ? (const uint8_t *)src + (size_t)r * row_bytes : zero_block;
        rows->step[r] = valid ? block_bytes : 0;
    }
}
PN_INLINE void pack_next(pack_rows *rows)
{
    for (int r = 0; r < LANES; r++) rows->at[r] += rows->step[r];
}

/* 32-bit value (16-bit value) at byte `offset` of each row's block. */
PN_INLINE __m512i pack_u32(const pack_rows *rows, size_t offset)
{
    uint32_t v[LANES];
    for (int r = 0; r < LANES; r++) memcpy(&v[r], rows->at[r] + offset, 4);
    return _mm512_loadu_si512(v);
}
PN_INLINE __m256i pack_u16(const pack_rows *rows, size_t offset)
{
    uint16_t v[LANES];
    for (int r = 0; r < LANES; r++) memcpy(&v[r], rows->at[r] + offset, 2);
    return _mm256_loadu_si256((const void *)v);
}

/* 4x4 transposes of 32-bit units inside each 128-bit lane: out[j] lane = unit j of a[0..3]. */
PN_INLINE void transpose_4x4(__m512i out[4], const __m512i a[4])
{
    const __m512i t0 = _mm512_unpacklo_epi32(a[0], a[1]), t1 = _mm512_unpackhi_epi32(a[0], a[1]);
    const __m512i t2 = _mm512_unpacklo_epi32(a[2], a[3]), t3 = _mm512_unpackhi_epi32(a[2], a[3]);
    out[0] = _mm512_unpacklo_epi64(t0, t2);
    out[1] = _mm512_unpackhi_epi64(t0, t2);
    out[2] = _mm512_unpacklo_epi64(t1, t3);
    out[3] = _mm512_unpackhi_epi64(t1, t3);
}

/* 16 bytes of each row at `offset`: out[j] = 32-bit unit j of rows 0..15. */
PN_INLINE void pack_16(__m512i out[4], const pack_rows *rows, size_t offset)
{
    __m512i a[4];
    PN_UNROLL for (int i = 0; i < 4; i++)
    {
        __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)(rows->at[i] + offset)));
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(rows->at[i + 4] + offset)), 1);
        v = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(rows->at[i + 8] + offset)), 2);
        a[i] = _mm512_inserti32x4(v, _mm_loadu_si128((const void *)(rows->at[i + 12] + offset)), 3);
    }
    transpose_4x4(out, a);
}

/* 16 bytes of nibbles of each row at `offset`, as unpack_nibbles reads them. */
PN_INLINE void pack_nibbles(uint8_t *codes, const pack_rows *rows, size_t offset)
{
    __m512i v[4];
    pack_16(v, rows, offset);
    PN_UNROLL for (int t = 0; t < 4; t++) _mm512_store_si512(codes + t * 64, v[t]);
}

/* out[0..7] from 16 vectors of two rows' 32 bytes: a[i] = row i | row i + 4, a[4 + i] = row i + 8 | row i + 12. */
PN_INLINE void transpose_16x8(__m512i out[8], const __m512i a[8])
{
    __m512i t[8];
    transpose_4x4(t, a);
    transpose_4x4(t + 4, a + 4);
    PN_UNROLL for (int j = 0; j < 4; j++)
    {
        out[j] = _mm512_shuffle_i64x2(t[j], t[4 + j], 0x88);
        out[4 + j] = _mm512_shuffle_i64x2(t[j], t[4 + j], 0xdd);
    }
}

/* 32 bytes of each row at `offset`: out[j] = 32-bit unit j of rows 0..15. */
PN_INLINE void pack_32(__m512i out[8], const pack_rows *rows, size_t offset)
{
    __m512i a[8];
    PN_UNROLL for (int i = 0; i < 8; i++)
    {
        const int r = (i & 3) + (i >> 2) * 8;
        a[i] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256((const void *)(rows->at[r] + offset))),
                                  _mm256_loadu_si256((const void *)(rows->at[r + 4] + offset)), 1);
    }
    transpose_16x8(out, a);
}

/* The fifth bits of 32 weights a row, bit k for weight k, in the order that unpack_nibbles_5 reads. */
PN_INLINE __m512i pack_fifth_bits(__m512i bits)
{
    __m512i out = _mm512_setzero_si512();
    PN_UNROLL for (int g = 0; g < 8; g++)
    {
        const __m512i nibble = _mm512_and_si512(_mm512_srli_epi32(bits, (unsigned)g * 4), _mm512_set1_epi32(15));
        /* bit i of the nibble to bit 0 of byte i */
        const __m512i spread = _mm512_and_si512(_mm512_mullo_epi32(nibble, _mm512_set1_epi32(0x00204081)), _mm512_set1_epi32(0x01010101));
        out = _mm512_or_si512(out, _mm512_slli_epi32(spread, (unsigned)g));
    }
    return out;
}

/* 16-bit units: a lane holds two consecutive weights of a row; stores 16 rows' first, then 16 rows' second. */
PN_INLINE void store_pairs(uint8_t *out, __m512i v)
{
    _mm256_store_si256((void *)out, _mm512_cvtepi32_epi16(v));
    _mm256_store_si256((void *)(out + 32), _mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)));
}

/* The functions that kernels.def names. */
#define PN_KERNEL_AVX512(weight)                                                                                                            \
    uint64_t pn_##weight##__avx512vnni_group_bytes(int64_t k) { return group_bytes(k); }                                                    \
    void pn_##weight##__avx512vnni_pack(void *dst, const void *src, int64_t n_valid, int64_t k) { pack(dst, src, n_valid, k); }             \
    uint64_t pn_##weight##__avx512vnni_scratch(int64_t k) { return scratch_bytes(k); }                                                      \
    void pn_##weight##__avx512vnni_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { gemv(mm, row0, row1, scratch); }      \
    void pn_##weight##__avx512vnni_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { gemm(mm, row0, row1, scratch); }

#endif
