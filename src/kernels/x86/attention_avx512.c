/* kernels/x86/attention_avx512.c - scores of queries with tiles of K, and weighted sums of V rows, with AVX-512. Meaning and layouts: kernels.h.
 *
 * A block of up to 6 queries x 4 vectors (tiles of 16 positions for K, 16 channels for V) keeps 24 sums in registers. K tiles, or chunks of V rows,
 * stay in L1 while all queries pass over them. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/ops_avx512.h"

enum { n_wide = 4, v_chunk = 64 };

typedef __m512 (*load_fn)(const uint8_t *p, int64_t i);

/* Vector i (16 elements) of an array. */
PN_INLINE __m512 load_vector_f32(const uint8_t *p, int64_t i) { return _mm512_loadu_ps(p + i * 64); }
PN_INLINE __m512 load_vector_f16(const uint8_t *p, int64_t i) { return f_load_halves(p + i * 32); }
PN_INLINE __m512 load_vector_i8(const uint8_t *p, int64_t i) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)(p + i * 16)))); }

/* Calls BLOCK(n, i) for queries i .. i+n-1 until all n_q are done. */
#define QUERIES(BLOCK)                  \
    do {                                \
        int i = 0;                      \
        for (; i + 6 <= n_q; i += 6) BLOCK(6); \
        if (n_q - i >= 4) { BLOCK(4); i += 4; } \
        if (n_q - i >= 2) { BLOCK(2); i += 2; } \
        if (n_q - i >= 1) BLOCK(1);     \
    } while (0)

/* ---- scores ---- */

/* sums[i*n_t + t] over channels [0, n_d) of K vectors at k + t*tile_bytes, from what sums holds. */
PN_INLINE void dot_channels(int n, int n_t, load_fn load, __m512 *sums, const uint8_t *k, size_t tile_bytes, const float *const *q, int c0, int n_d)
{
    for (int c = 0; c < n_d; c++) {
        __m512 kv[n_wide];
        PN_UNROLL for (int t = 0; t < n_t; t++) kv[t] = load(k + (size_t)t * tile_bytes, c);
        PN_UNROLL for (int i = 0; i < n; i++)
        {
            const __m512 qv = _mm512_set1_ps(q[i][c0 + c]);
            PN_UNROLL for (int t = 0; t < n_t; t++) sums[i * n_t + t] = _mm512_fmadd_ps(qv, kv[t], sums[i * n_t + t]);
        }
    }
}

PN_INLINE void scores_float(int n, int n_t, load_fn load, float *scores, int64_t ld, const uint8_t *k, size_t tile_bytes, const float *const *q, int d)
{
    __m512 acc[6 * n_wide];
    PN_UNROLL for (int j = 0; j < n * n_t; j++) acc[j] = _mm512_setzero_ps();
    dot_channels(n, n_t, load, acc, k, tile_bytes, q, 0, d);
    PN_UNROLL for (int i = 0; i < n; i++)
    {
        PN_UNROLL for (int t = 0; t < n_t; t++) _mm512_storeu_ps(scores + i * ld + t * 16, acc[i * n_t + t]);
    }
}

#define SCORES_FLOAT(type)                                                                                                                            \
    PN_INLINE void scores_##type(int n, int n_t, float *scores, int64_t ld, const uint8_t *k, size_t tile_bytes, const float *const *q, int d)          \
    {                                                                                                                                                 \
        scores_float(n, n_t, load_vector_##type, scores, ld, k, tile_bytes, q, d);                                                                    \
    }
SCORES_FLOAT(f32)
SCORES_FLOAT(f16)

/* Per 32 channels: 16 scales, then codes; the block's sum starts at +0 and meets the scale once. The running sums stay in `scores`. */
PN_INLINE void scores_q8_0(int n, int n_t, float *scores, int64_t ld, const uint8_t *k, size_t tile_bytes, const float *const *q, int d)
{
    for (int c = 0; c < d; c += 32, k += 32 + 32 * 16) {
        __m512 u[6 * n_wide];
        PN_UNROLL for (int j = 0; j < n * n_t; j++) u[j] = _mm512_setzero_ps();
        dot_channels(n, n_t, load_vector_i8, u, k + 32, tile_bytes, q, c, 32);
        PN_UNROLL for (int t = 0; t < n_t; t++)
        {
            const __m512 scale = f_load_halves(k + (size_t)t * tile_bytes);
            PN_UNROLL for (int i = 0; i < n; i++)
            {
                float *at = scores + i * ld + t * 16;
                _mm512_storeu_ps(at, _mm512_fmadd_ps(u[i * n_t + t], scale, c ? _mm512_loadu_ps(at) : _mm512_setzero_ps()));
            }
        }
    }
}

#define QK_BLOCK_4(n) QK_TYPE(n, 4, scores + i * ld + t * 16, ld, tile, tile_bytes, q + i, d)
#define QK_BLOCK_1(n) QK_TYPE(n, 1, scores + i * ld + t * 16, ld, tile, tile_bytes, q + i, d)
#define QK_BODY                                                       \
    {                                                                 \
        const uint8_t *tile = k;                                      \
        int64_t t = 0;                                                \
        for (; t + 4 <= n_tiles; t += 4, tile += 4 * tile_bytes) QUERIES(QK_BLOCK_4); \
        for (; t < n_tiles; t++, tile += tile_bytes) QUERIES(QK_BLOCK_1); \
    }

#define QK_TYPE scores_f32
void pn_avx512_qk_f32(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d) QK_BODY
#undef QK_TYPE
#define QK_TYPE scores_f16
void pn_avx512_qk_f16(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d) QK_BODY
#undef QK_TYPE
#define QK_TYPE scores_q8_0
void pn_avx512_qk_q8_0(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d) QK_BODY
#undef QK_TYPE

/* ---- weighted sums ---- */

/* Vector i (16 channels) of a q8_0 row: code * scale, rounded. */
PN_INLINE __m512 load_vector_q8_0(const uint8_t *row, int64_t i)
{
    const uint8_t *block = row + i / 2 * 34;
    uint16_t scale;
    memcpy(&scale, block, 2);
    return _mm512_mul_ps(load_vector_i8(block + 2, i % 2), _mm512_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(scale))));
}

/* o[i][c0 + 16 l ..] += p[i*ld + j] * V_j for n_pos rows, n_v vectors of channels of which the last is masked. */
PN_INLINE void weigh(int n, int n_v, load_fn load, float *const *o, const float *p, int64_t ld, const uint8_t *v, size_t row_bytes, int64_t n_pos, int c0)
{
    __m512 acc[6 * n_wide];
    PN_UNROLL for (int i = 0; i < n; i++)
    {
        PN_UNROLL for (int l = 0; l < n_v; l++) acc[i * n_v + l] = _mm512_loadu_ps(o[i] + c0 + l * 16);
    }
    for (int64_t j = 0; j < n_pos; j++, v += row_bytes) {
        __m512 vv[n_wide];
        PN_UNROLL for (int l = 0; l < n_v; l++) vv[l] = load(v, c0 / 16 + l);
        PN_UNROLL for (int i = 0; i < n; i++)
        {
            const __m512 weight = _mm512_set1_ps(p[i * ld + j]);
            PN_UNROLL for (int l = 0; l < n_v; l++) acc[i * n_v + l] = _mm512_fmadd_ps(weight, vv[l], acc[i * n_v + l]);
        }
    }
    PN_UNROLL for (int i = 0; i < n; i++)
    {
        PN_UNROLL for (int l = 0; l < n_v; l++) _mm512_storeu_ps(o[i] + c0 + l * 16, acc[i * n_v + l]);
    }
}

/* Channels beyond the last multiple of 16. */
static void weigh_rest(float *o, const float *p, const uint8_t *v, size_t row_bytes, int64_t n_pos, int c0, int d, int element)
{
    const __mmask16 m = rows_mask(c0, d);
    __m512 acc = _mm512_maskz_loadu_ps(m, o + c0);
    for (int64_t j = 0; j < n_pos; j++, v += row_bytes) {
        const __m512 row = element == 4 ? _mm512_maskz_loadu_ps(m, v + 4 * c0) : _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, v + 2 * c0));
        acc = _mm512_fmadd_ps(_mm512_set1_ps(p[j]), row, acc);
    }
    _mm512_mask_storeu_ps(o + c0, m, acc);
}

#define PV_BLOCK_4(n) weigh(n, 4, PV_LOAD, o + i, p + i * ld + j, ld, rows, row_bytes, n_rows, c)
#define PV_BLOCK_1(n) weigh(n, 1, PV_LOAD, o + i, p + i * ld + j, ld, rows, row_bytes, n_rows, c)
#define PV_BODY(element)                                                                                                  \
    {                                                                                                                     \
        for (int64_t j = 0; j < n_pos; j += v_chunk) {                                                                    \
            const uint8_t *rows = (const uint8_t *)v + (size_t)j * row_bytes;                                             \
            const int64_t n_rows = pn_min64(v_chunk, n_pos - j);                                                          \
            int c = 0;                                                                                                    \
            for (; c + 64 <= d; c += 64) QUERIES(PV_BLOCK_4);                                                             \
            for (; c + 16 <= d; c += 16) QUERIES(PV_BLOCK_1);                                                             \
            if (c < d) for (int i = 0; i < n_q; i++) weigh_rest(o[i], p + i * ld + j, rows, row_bytes, n_rows, c, d, element); \
        }                                                                                                                 \
    }

#define PV_LOAD load_vector_f32
void pn_avx512_pv_f32(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d) PV_BODY(4)
#undef PV_LOAD
#define PV_LOAD load_vector_f16
void pn_avx512_pv_f16(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d) PV_BODY(2)
#undef PV_LOAD
#define PV_LOAD load_vector_q8_0
void pn_avx512_pv_q8_0(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d)
{
    /* d is a multiple of 32 */
    PV_BODY(2)
}
#undef PV_LOAD
