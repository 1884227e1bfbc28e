/* kernels/x86/act256_avx512.h - mat-mul of weights in blocks of 256 with integer sub-block scales and activations in pn_act256, 16 rows at a time.
 *
 * A template: the file of a format includes it after defining
 *   SUB                    weights per sub-block scale: 32 or 16
 *   HEAD_BLOCKS            2: the d of two blocks share one 64-byte head; 1: d and dmin are the head
 *   BODY_BYTES             bytes of scales and codes of 16 rows x 256 weights, a multiple of 64
 *   HAS_MIN                1: dmin and minimums per 32 (SUB is 32 then)
 *   OFFSET_SHIFT           without minimums: log2 of what the unsigned codes carry too much
 *   FILE_BLOCK             bytes of a block in the file
 *   sub_scale(body, j)     the scales of sub-block j as int32
 *   sub_codes(w, body, j)  its SUB / 4 code vectors
 *   minimum_pairs(body, j) with HAS_MIN: minimums 2j and 2j + 1 as int16 pairs
 *   pack_block(head, body, rows)   packs one block of 16 rows; head is 32 bytes of d (and 32 of dmin)
 * Packed group: heads [64] each followed by its blocks' bodies. A last head of an odd count keeps both halves, and its second block is absent.
 * Order of sums: kernels.h. */
#include "kernels/x86/avx512.h"

#define UNIT_BYTES (64 + HEAD_BLOCKS * BODY_BYTES)
#define N_SUB (256 / SUB)

static uint64_t group_bytes(int64_t k)
{
    const uint64_t blocks = (uint64_t)k / 256;
    return (blocks + HEAD_BLOCKS - 1) / HEAD_BLOCKS * 64 + blocks * BODY_BYTES;
}

/* Where block b's head and body lie in a group. */
PN_INLINE size_t head_at(int64_t b) { return (size_t)b / HEAD_BLOCKS * UNIT_BYTES + (size_t)b % HEAD_BLOCKS * 32; }
PN_INLINE size_t body_at(int64_t b) { return (size_t)b / HEAD_BLOCKS * UNIT_BYTES + 64 + (size_t)b % HEAD_BLOCKS * BODY_BYTES; }

#if HAS_MIN
/* x = d*I - dmin*M, fused. M: the minimums times the activations' sums. */
PN_INLINE __m512 less_minimums(__m512 x, const uint8_t *head, const uint8_t *body, const uint8_t *act)
{
    __m512i m = _mm512_setzero_si512();
    PN_UNROLL for (int j = 0; j < 4; j++) m = dot_i16(m, minimum_pairs(body, j), act + offsetof(pn_act256, bsum32) + j * 4);
    return _mm512_fnmadd_ps(load_f16(head + 32), _mm512_cvtepi32_ps(m), x);
}
#else
/* What the integer sum of each sub-block of 16 starts at: minus offset * sum of its activations. */
PN_INLINE void starts_store(int32_t starts[16], const uint8_t *act)
{
    const __m512i sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)(act + offsetof(pn_act256, bsum16))));
    _mm512_store_si512(starts, _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sums, OFFSET_SHIFT)));
}
#endif

/* 16 rows x n columns of one block: acc[c] takes its sum. Codes from the panel if there is one. */
PN_INLINE void block(int n, const uint8_t *head, const uint8_t *body, const uint8_t *panel, const uint8_t *const *x, size_t at, __m512 *acc)
{
    __m512i total[TILE];
#if !HAS_MIN
    _Alignas(64) int32_t starts[TILE][16];
    PN_UNROLL for (int c = 0; c < n; c++) starts_store(starts[c], x[c] + at);
#endif
    PN_UNROLL for (int c = 0; c < n; c++) total[c] = _mm512_setzero_si512();
    PN_UNROLL for (int j = 0; j < N_SUB; j++)
    {
        __m512i w[SUB / 4], sum[TILE];
        if (panel) {
            PN_UNROLL for (int g = 0; g < SUB / 4; g++) w[g] = _mm512_load_si512(panel + j * SUB * LANES + g * 64);
        } else {
            sub_codes(w, body, j);
        }
#if HAS_MIN
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = _mm512_setzero_si512();
#else
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = splat_i32(&starts[c][j]);
#endif
        PN_UNROLL for (int g = 0; g < SUB / 4; g++)
        {
            PN_UNROLL for (int c = 0; c < n; c++) sum[c] = dot_u8(sum[c], w[g], x[c] + at + j * SUB + g * 4);
        }
        const __m512i scale = sub_scale(body, j);
        PN_UNROLL for (int c = 0; c < n; c++) total[c] = _mm512_add_epi32(total[c], _mm512_mullo_epi32(sum[c], scale));
    }
    const __m512 d = load_f16(head);
    PN_UNROLL for (int c = 0; c < n; c++)
    {
        const __m512 da = splat_f32(x[c] + at + offsetof(pn_act256, d)), value = _mm512_cvtepi32_ps(total[c]);
#if HAS_MIN
        acc[c] = _mm512_fmadd_ps(less_minimums(_mm512_mul_ps(d, value), head, body, x[c] + at), da, acc[c]);
#else
        acc[c] = _mm512_fmadd_ps(value, _mm512_mul_ps(d, da), acc[c]);
#endif
    }
}

PN_INLINE void tile(int n, const uint8_t *group, const uint8_t *panel, int64_t k, const columns *cols, int64_t row, __mmask16 mask)
{
    const uint8_t *x[TILE];
    __m512 acc[TILE];
    PN_UNROLL for (int c = 0; c < n; c++)
    {
        x[c] = cols->x[c];
        acc[c] = _mm512_setzero_ps();
    }
    for (int64_t b = 0; b < k / 256; b++) {
        block(n, group + head_at(b), group + body_at(b), panel ? panel + b * 256 * LANES : NULL, x, (size_t)b * sizeof(pn_act256), acc);
    }
    PN_UNROLL for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(cols->y[c] + row, mask, acc[c]);
}

static void make_panel(uint8_t *panel, const uint8_t *group, int64_t k)
{
    for (int64_t b = 0; b < k / 256; b++) {
        PN_UNROLL for (int j = 0; j < N_SUB; j++)
        {
            __m512i w[SUB / 4];
            sub_codes(w, group + body_at(b), j);
            PN_UNROLL for (int g = 0; g < SUB / 4; g++) _mm512_store_si512(panel + (b * 256 + j * SUB + g * 4) * LANES, w[g]);
        }
    }
}

static void pack(void *dst, const void *src, int64_t n_valid, int64_t k)
{
    uint8_t *out = dst;
    pack_rows rows;
    pack_begin(&rows, src, n_valid, (size_t)(k / 256) * FILE_BLOCK, FILE_BLOCK);
    for (int64_t b = 0; b < k / 256; b++, pack_next(&rows)) pack_block(out + head_at(b), out + body_at(b), &rows);
}

#define USE_PANEL 1
#include "kernels/x86/gemm_avx512.h"
