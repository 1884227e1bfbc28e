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
 * Panel of a row group: per block N_SUB x [SUB x 16 codes | 16 scales as int32], with HAS_MIN 4 x 16 pairs of minimums, then 16 d as float and with
 * HAS_MIN 16 dmin. It makes all formats one loop that is short enough for the sums to stay in registers.
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

#define SUB_BYTES (SUB * LANES + 64)
#define PANEL_BYTES (N_SUB * SUB_BYTES + (HAS_MIN ? 4 * 64 + 2 * 64 : 64))

#if !HAS_MIN
/* What the integer sum of each sub-block of 16 starts at: minus offset * sum of its activations. */
PN_INLINE void starts_store(int32_t starts[16], const uint8_t *act)
{
    const __m512i sums = _mm512_cvtepi16_epi32(_mm256_loadu_si256((const void *)(act + offsetof(pn_act256, bsum16))));
    _mm512_store_si512(starts, _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sums, OFFSET_SHIFT)));
}
#endif

/* total += scale * dot for n columns of sub-block j, whose activations are at x[c] + at. */
PN_INLINE void sub_block(int n, const __m512i *w, __m512i scale, const uint8_t *const *x, size_t at, const int32_t (*starts)[16], int j, __m512i *total)
{
    __m512i sum[TILE];
    PN_UNROLL for (int c = 0; c < n; c++) sum[c] = HAS_MIN ? _mm512_setzero_si512() : splat_i32(&starts[c][j]);
    PN_UNROLL for (int g = 0; g < SUB / 4; g++)
    {
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = dot_u8(sum[c], w[g], x[c] + at + g * 4);
    }
    PN_UNROLL for (int c = 0; c < n; c++) total[c] = _mm512_add_epi32(total[c], _mm512_mullo_epi32(sum[c], scale));
}

/* acc + (d*I - dmin*M) * da, or acc + I * (d*da); M: minimums times the activations' sums. */
PN_INLINE __m512 block_end(__m512 acc, __m512i total, __m512 d, __m512 dmin, const __m512i *minimums, const uint8_t *act)
{
    const __m512 da = splat_f32(act + offsetof(pn_act256, d)), value = _mm512_cvtepi32_ps(total);
#if HAS_MIN
    __m512i m = _mm512_setzero_si512();
    PN_UNROLL for (int j = 0; j < 4; j++) m = dot_i16(m, minimums[j], act + offsetof(pn_act256, bsum32) + j * 4);
    return _mm512_fmadd_ps(_mm512_fnmadd_ps(dmin, _mm512_cvtepi32_ps(m), _mm512_mul_ps(d, value)), da, acc);
#else
    (void)dmin, (void)minimums;
    return _mm512_fmadd_ps(value, _mm512_mul_ps(d, da), acc);
#endif
}

/* 16 rows x n columns straight from the packed form. */
PN_INLINE void tile(int n, const uint8_t *group, int64_t k, const columns *cols, int64_t row, __mmask16 mask)
{
    __m512 acc[TILE];
    PN_UNROLL for (int c = 0; c < n; c++) acc[c] = _mm512_setzero_ps();
    for (int64_t b = 0; b < k / 256; b++) {
        const uint8_t *head = group + head_at(b), *body = group + body_at(b);
        const size_t at = (size_t)b * sizeof(pn_act256);
        __m512i total[TILE], minimums[4];
        _Alignas(64) int32_t starts[TILE][16];
#if !HAS_MIN
        PN_UNROLL for (int c = 0; c < n; c++) starts_store(starts[c], cols->x[c] + at);
        hide(starts);
#endif
        PN_UNROLL for (int c = 0; c < n; c++) total[c] = _mm512_setzero_si512();
        PN_UNROLL for (int j = 0; j < N_SUB; j++)
        {
            __m512i w[SUB / 4];
            sub_codes(w, body, j);
            sub_block(n, w, sub_scale(body, j), cols->x, at + (size_t)j * SUB, (const int32_t(*)[16])starts, j, total);
        }
#if HAS_MIN
        PN_UNROLL for (int j = 0; j < 4; j++) minimums[j] = minimum_pairs(body, j);
#endif
        const __m512 d = load_f16(head), dmin = HAS_MIN ? load_f16(head + 32) : d;
        PN_UNROLL for (int c = 0; c < n; c++) acc[c] = block_end(acc[c], total[c], d, dmin, minimums, cols->x[c] + at);
    }
    PN_UNROLL for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(cols->y[c] + row, mask, acc[c]);
}

static const uint8_t *make_panel(uint8_t *scratch, const uint8_t *group, int64_t k)
{
    uint8_t *panel = scratch;
    for (int64_t b = 0; b < k / 256; b++) {
        const uint8_t *head = group + head_at(b), *body = group + body_at(b);
        PN_UNROLL for (int j = 0; j < N_SUB; j++, panel += SUB_BYTES)
        {
            __m512i w[SUB / 4];
            sub_codes(w, body, j);
            PN_UNROLL for (int g = 0; g < SUB / 4; g++) _mm512_store_si512(panel + g * 64, w[g]);
            _mm512_store_si512(panel + SUB * LANES, sub_scale(body, j));
        }
#if HAS_MIN
        PN_UNROLL for (int j = 0; j < 4; j++, panel += 64) _mm512_store_si512(panel, minimum_pairs(body, j));
        _mm512_store_ps(panel + 64, load_f16(head + 32));
#endif
        _mm512_store_ps(panel, load_f16(head));
        panel += HAS_MIN ? 128 : 64;
    }
    return scratch;
}

/* 16 rows x n columns from the panel. Sums of whole blocks live in memory: they are touched once in 64 dot products. */
PN_INLINE void panel_tile(int n, const uint8_t *panel, int64_t k, const columns *cols, int64_t row, __mmask16 mask)
{
    const uint8_t *x[TILE];
    _Alignas(64) float acc[TILE][LANES];
    PN_UNROLL for (int c = 0; c < n; c++)
    {
        x[c] = cols->x[c];
        _mm512_store_ps(acc[c], _mm512_setzero_ps());
    }
    size_t at = 0;
    for (int64_t b = 0; b < k / 256; b++, at += sizeof(pn_act256) - 256) {
        __m512i total[TILE], minimums[4];
        _Alignas(64) int32_t starts[TILE][16];
#if !HAS_MIN
        PN_UNROLL for (int c = 0; c < n; c++) starts_store(starts[c], x[c] + at);
        hide(starts);
#endif
        PN_UNROLL for (int c = 0; c < n; c++) total[c] = _mm512_setzero_si512();
        PN_NO_UNROLL for (int j = 0; j < N_SUB; j++, panel += SUB_BYTES, at += SUB)
        {
            __m512i w[SUB / 4];
            PN_UNROLL for (int g = 0; g < SUB / 4; g++) w[g] = _mm512_load_si512(panel + g * 64);
            sub_block(n, w, _mm512_load_si512(panel + SUB * LANES), x, at, (const int32_t(*)[16])starts, j, total);
        }
#if HAS_MIN
        PN_UNROLL for (int j = 0; j < 4; j++, panel += 64) minimums[j] = _mm512_load_si512(panel);
#endif
        const __m512 d = _mm512_load_ps(panel), dmin = HAS_MIN ? _mm512_load_ps(panel + 64) : d;
        panel += HAS_MIN ? 128 : 64;
        hide(acc);
        PN_UNROLL for (int c = 0; c < n; c++)
            _mm512_store_ps(acc[c], block_end(_mm512_load_ps(acc[c]), total[c], d, dmin, minimums, x[c] + (at - 256)));
    }
    PN_UNROLL for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(cols->y[c] + row, mask, _mm512_load_ps(acc[c]));
}

static void pack(void *dst, const void *src, int64_t n_valid, int64_t k)
{
    uint8_t *out = dst;
    pack_rows rows;
    pack_begin(&rows, src, n_valid, (size_t)(k / 256) * FILE_BLOCK, FILE_BLOCK);
    for (int64_t b = 0; b < k / 256; b++, pack_next(&rows)) pack_block(out + head_at(b), out + body_at(b), &rows);
}

#define SCRATCH_BYTES(k) ((uint64_t)(k) / 256 * PANEL_BYTES)
#include "kernels/x86/gemm_avx512.h"
