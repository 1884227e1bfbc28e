/* kernels/x86/ops_avx512.c - vector operations with AVX-512, bit-equal to kernels/scalar/ops_scalar.c. Attention is in attention_avx512.c,
 * activation rounding in quantise_avx512.c. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/float_tile_x86.h"
#include "kernels/x86/math_avx512.h"
#include "kernels/x86/ops_avx512.h"

#include <math.h>

/* Lanes of the step of 16 that begins at i. */
PN_INLINE __mmask16 lanes_from(int64_t i, int64_t n) { return rows_mask(i, n); }

/* ---- element by element: y[i] = f(...) ---- */

#define EACH(n)                                                            \
    for (int64_t i = 0; i < (n); i += LANES)                                \
        for (__mmask16 m = lanes_from(i, n), once = 1; once; once = 0)
#define LOAD(p) _mm512_maskz_loadu_ps(m, (p) + i)
#define STORE(p, v) _mm512_mask_storeu_ps((p) + i, m, v)

static void norm_scale(float *y, const float *x, float scale, const float *w, int64_t n)
{
    const __m512 s = _mm512_set1_ps(scale);
    if (w) EACH(n) STORE(y, _mm512_mul_ps(_mm512_mul_ps(LOAD(x), s), LOAD(w)));
    else EACH(n) STORE(y, _mm512_mul_ps(LOAD(x), s));
}

static void add(float *y, const float *x, int64_t n) { EACH(n) STORE(y, _mm512_add_ps(LOAD(y), LOAD(x))); }

static void scale_row(float *y, float s, int64_t n) { EACH(n) STORE(y, _mm512_mul_ps(LOAD(y), _mm512_set1_ps(s))); }

static void add_scaled(float *y, const float *x, float s, int64_t n)
{
    EACH(n) STORE(y, _mm512_add_ps(LOAD(y), _mm512_mul_ps(LOAD(x), _mm512_set1_ps(s))));
}

static void mul(float *y, const float *x, int64_t n) { EACH(n) STORE(y, _mm512_mul_ps(LOAD(y), LOAD(x))); }

PN_INLINE __m512 relu2_16(__m512 x)
{
    const __m512 r = _mm512_max_ps(x, _mm512_setzero_ps());
    return _mm512_mul_ps(r, r);
}

#define GATE(name)                                                               \
    static void name##_mul(float *y, const float *g, const float *u, int64_t n)  \
    {                                                                            \
        if (u) EACH(n) STORE(y, _mm512_mul_ps(name##_16(LOAD(g)), LOAD(u)));      \
        else EACH(n) STORE(y, name##_16(LOAD(g)));                               \
    }
GATE(silu)
GATE(gelu)
GATE(relu2)

static void softcap(float *x, float cap, int64_t n)
{
    const __m512 c = _mm512_set1_ps(cap), inverse = _mm512_set1_ps(1.0f / cap);
    EACH(n) STORE(x, _mm512_mul_ps(c, tanh_16(_mm512_mul_ps(LOAD(x), inverse))));
}

/* The conversion keeps a NaN's upper bits; the definition has one NaN of each sign. */
PN_INLINE __m512 plain_nan(__m512 x)
{
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    const __m512i quiet = _mm512_set1_epi32(0x7fc00000), bits = _mm512_castps_si512(x);
    return _mm512_castsi512_ps(_mm512_mask_ternarylogic_epi32(bits, nan, quiet, _mm512_set1_epi32(INT32_MIN), 0xec)); /* (bits & sign) | quiet */
}

static void f16_from_f32(uint16_t *y, const float *x, int64_t n)
{
    EACH(n) _mm256_mask_storeu_epi16(y + i, m, _mm512_cvtps_ph(plain_nan(LOAD(x)), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

static void f32_from_f16(float *y, const uint16_t *x, int64_t n) { EACH(n) STORE(y, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, x + i))); }

/* ---- sums over a row ---- */

/* Lanes meet as (l, l+8), (l, l+4), (l, l+2), (l, l+1). */
static float sum_lanes(__m512 v)
{
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

static float sum_squares(const float *x, int64_t n)
{
    __m512 lane = _mm512_setzero_ps();
    EACH(n)
    {
        const __m512 v = LOAD(x);
        lane = _mm512_mask3_fmadd_ps(v, v, lane, m);
    }
    return sum_lanes(lane);
}

/* The scalar form keeps the first of several equal values, which shows where that is a zero: +0 and -0 are equal. */
static float max(const float *x, int64_t n)
{
    __m512 lane = _mm512_set1_ps(-INFINITY);
    EACH(n) lane = _mm512_mask_max_ps(lane, m, LOAD(x), lane);
    const float largest = _mm512_reduce_max_ps(lane);
    if (largest != 0) return largest;
    int64_t i = 0;
    while (x[i] != 0) i++;
    return x[i];
}

static float exp_sum(float *x, float largest, int64_t n)
{
    __m512 lane = _mm512_setzero_ps();
    EACH(n)
    {
        const __m512 e = exp_16(_mm512_sub_ps(LOAD(x), _mm512_set1_ps(largest)));
        STORE(x, e);
        lane = _mm512_mask_add_ps(lane, m, lane, e);
    }
    return sum_lanes(lane);
}

/* ---- rotary positions ---- */

static void rope_norm(float *x, const float *cs, int64_t n_pairs)
{
    EACH(2 * n_pairs)
    {
        const __m512 v = LOAD(x), turn = LOAD(cs); /* c s c s ... */
        const __m512 a = _mm512_moveldup_ps(v), b = _mm512_movehdup_ps(v);
        STORE(x, _mm512_fmaddsub_ps(a, turn, _mm512_mul_ps(b, _mm512_permute_ps(turn, 0xb1))));
    }
}

static void rope_neox(float *x, const float *cs, int64_t n_pairs)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    float *y = x + n_pairs;
    EACH(n_pairs)
    {
        const int64_t left = pn_min64(n_pairs - i, LANES);
        const __m512 low = _mm512_maskz_loadu_ps(rows_mask(0, 2 * left), cs + 2 * i);
        const __m512 high = left > 8 ? _mm512_maskz_loadu_ps(rows_mask(LANES, 2 * left), cs + 2 * i + LANES) : low;
        const __m512 c = _mm512_permutex2var_ps(low, even, high), s = _mm512_permutex2var_ps(low, odd, high);
        const __m512 a = LOAD(x), b = LOAD(y);
        STORE(x, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        STORE(y, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}

/* ---- exact path ---- */

enum { piece = 256 }; /* elements dequantised at a time: a multiple of every type's block */

/* 16 rows of the file layout to float, interleaved: panel[k][16]. Missing rows repeat the last one. */
static void make_float_panel(float *panel, const pn_exact_mm *e, int64_t row, int64_t row1)
{
    const pn_type_info *type = pn_type_get((uint32_t)e->type);
    const size_t row_bytes = (size_t)e->mm.k / type->block * type->bytes;
    _Alignas(64) float part[LANES][piece];
    for (int64_t at = 0; at < e->mm.k; at += piece) {
        const int64_t n = pn_min64(piece, e->mm.k - at);
        for (int r = 0; r < LANES; r++) {
            const uint8_t *src = (const uint8_t *)e->mm.w + (size_t)pn_min64(row + r, row1 - 1) * row_bytes;
            type->dequantise(part[r], src + (size_t)at / type->block * type->bytes, n);
        }
        pack_rows rows;
        pack_begin(&rows, LANES, part, LANES, sizeof part[0], 32);
        for (int64_t k = 0; k < n; k += 8, pack_next(&rows, LANES)) {
            __m512i v[8];
            pack_32(v, &rows, 0);
            for (int i = 0; i < pn_min64(8, n - k); i++) _mm512_store_si512(panel + (at + k + i) * LANES, v[i]);
        }
    }
}

PN_INLINE __m512 load_16(const uint8_t *p) { return _mm512_load_ps(p); }

static void exact(const pn_exact_mm *e, int64_t row0, int64_t row1, void *scratch)
{
    const pn_mm *mm = &e->mm;
    float *panel = (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    for (int64_t row = row0; row < row1; row += LANES) {
        make_float_panel(panel, e, row, row1);
        for (int64_t c = 0; c < mm->n_cols; c += TILE) {
            columns cols;
            columns_take(&cols, mm, c, TILE);
            if (mm->n_cols - c == 1) float_tile(1, 1, load_16, 4, (const uint8_t *)panel, 0, mm->k, &cols, row, row1);
            else float_tile(TILE, 1, load_16, 4, (const uint8_t *)panel, 0, mm->k, &cols, row, row1);
        }
    }
}

const pn_ops pn_ops_avx512vnni = {
    .isa = "avx512vnni",
    .quantise_32 = pn_avx512_quantise_32,
    .quantise_256 = pn_avx512_quantise_256,
    .sum_squares = sum_squares,
    .norm_scale = norm_scale,
    .add = add,
    .scale = scale_row,
    .add_scaled = add_scaled,
    .mul = mul,
    .silu_mul = silu_mul,
    .gelu_mul = gelu_mul,
    .relu2_mul = relu2_mul,
    .softcap = softcap,
    .max = max,
    .exp_sum = exp_sum,
    .rope_norm = rope_norm,
    .rope_neox = rope_neox,
    .f16_from_f32 = f16_from_f32,
    .f32_from_f16 = f32_from_f16,
    .qk = {pn_avx512_qk_f32, pn_avx512_qk_f16, pn_avx512_qk_q8_0},
    .pv = {pn_avx512_pv_f32, pn_avx512_pv_f16, pn_avx512_pv_q8_0},
    .exact = exact,
};
