/* kernels/x86/ops_x86.h - vector operations, bit-equal to kernels/scalar/ops_scalar.c.
 *
 * A template over the words of lanes_avx512.h or lanes_avx2.h, included after one of them; ends with the functions of a pn_ops table. */
#include "kernels/x86/float_tile_x86.h"
#include "kernels/x86/math_x86.h"

#include <math.h>

/* ---- element by element ---- */

typedef lanes (*map_fn)(lanes a, lanes b, lanes s);

/* y = f(a, b, s); b NULL: f gets s in its place. y may be a or b. */
PN_INLINE void map(float *y, const float *a, const float *b, lanes s, int64_t n, map_fn f)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) l_store(y + i, f(l_load(a + i), b ? l_load(b + i) : s, s));
    if (i == n) return;
    const lanes_part m = l_first(n - i);
    l_store_part(y + i, m, f(l_load_part(a + i, m), b ? l_load_part(b + i, m) : s, s));
}

PN_INLINE lanes f_add(lanes a, lanes b, lanes s) { return (void)s, l_add(a, b); }
PN_INLINE lanes f_mul(lanes a, lanes b, lanes s) { return (void)s, l_mul(a, b); }
PN_INLINE lanes f_add_scaled(lanes a, lanes b, lanes s) { return l_add(a, l_mul(b, s)); }
PN_INLINE lanes f_scale_mul(lanes a, lanes b, lanes s) { return l_mul(l_mul(a, s), b); }
PN_INLINE lanes f_softcap(lanes a, lanes inverse, lanes cap) { return l_mul(cap, l_tanh(l_mul(a, inverse))); }

static void add(float *y, const float *x, int64_t n) { map(y, y, x, l_set(0), n, f_add); }
static void mul(float *y, const float *x, int64_t n) { map(y, y, x, l_set(0), n, f_mul); }
static void scale(float *y, float s, int64_t n) { map(y, y, NULL, l_set(s), n, f_mul); }
static void add_scaled(float *y, const float *x, float s, int64_t n) { map(y, y, x, l_set(s), n, f_add_scaled); }
static void norm_scale(float *y, const float *x, float s, const float *w, int64_t n)
{
    if (w) map(y, x, w, l_set(s), n, f_scale_mul);
    else map(y, x, NULL, l_set(s), n, f_mul);
}

PN_INLINE lanes plain_factor(lanes u) { return u; }

/* y = act(g) * factor(u), or act(g) alone where u is NULL, for whole vectors. */
typedef void (*gate_fn)(float *y, const float *g, const float *u, int64_t n);

/* The same for any n: what is left goes through the same loops, since an activation is long code. */
static __attribute__((noinline)) void gate(gate_fn whole, float *y, const float *g, const float *u, int64_t n)
{
    const int64_t n_whole = n & ~INT64_C(15);
    whole(y, g, u, n_whole);
    if (n_whole == n) return;
    const lanes_part m = l_first(n - n_whole);
    float v[16], factors[16];
    l_store(v, l_load_part(g + n_whole, m));
    if (u) l_store(factors, l_load_part(u + n_whole, m));
    whole(v, v, u ? factors : NULL, 16);
    l_store_part(y + n_whole, m, l_load(v));
}

#define GATE(name, factor)                                                                                                          \
    static __attribute__((noinline)) void name##_whole(float *y, const float *g, const float *u, int64_t n)                         \
    {                                                                                                                               \
        for (int64_t i = 0; u && i < n; i += 16) l_store(y + i, l_mul(l_##name(l_load(g + i)), factor(l_load(u + i))));             \
        for (int64_t i = 0; !u && i < n; i += 16) l_store(y + i, l_##name(l_load(g + i)));                                          \
    }                                                                                                                               \
    static void name##_mul(float *y, const float *g, const float *u, int64_t n) { gate(name##_whole, y, g, u, n); }
GATE(silu, plain_factor)
GATE(sigmoid, plain_factor)
GATE(gelu, plain_factor)
GATE(relu2, plain_factor)
GATE(clamped, l_clamped_factor)
#undef GATE

PN_INLINE lanes f_clamp(lanes x, lanes low, lanes high) { return l_min(high, l_max(low, x)); }

static void clamp(float *x, float low, float high, int64_t n)
{
    const lanes l = l_set(low), h = l_set(high);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) l_store(x + i, f_clamp(l_load(x + i), l, h));
    const lanes_part m = l_first(n - i);
    if (i < n) l_store_part(x + i, m, f_clamp(l_load_part(x + i, m), l, h));
}

static void softcap(float *x, float cap, int64_t n)
{
    const lanes c = l_set(cap), inverse = l_set(1.0f / cap);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) l_store(x + i, f_softcap(l_load(x + i), inverse, c));
    const lanes_part m = l_first(n - i);
    if (i < n) l_store_part(x + i, m, f_softcap(l_load_part(x + i, m), inverse, c));
}

static void f16_from_f32(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 16) {
        const int64_t left = pn_min64(n - i, 16);
        l_store_f16_first(y + i, left, left == 16 ? l_load(x + i) : l_load_part(x + i, l_first(left)));
    }
}

static void f32_from_f16(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) l_store(y + i, l_load_f16(x + i));
    if (i < n) l_store_part(y + i, l_first(n - i), l_load_f16_first(x + i, n - i));
}

/* ---- sums over a row ---- */

/* Lanes meet as (l, l+8), (l, l+4), (l, l+2), (l, l+1). */
PN_INLINE float sum_lanes(lanes v)
{
    const __m256 a = _mm256_add_ps(l_low(v), l_high(v));
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

/* No lane is a NaN. */
PN_INLINE float max_lanes(lanes v)
{
    const __m256 a = _mm256_max_ps(l_low(v), l_high(v));
    const __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(c, _mm_movehdup_ps(c)));
}

static float sum_squares(const float *x, int64_t n)
{
    lanes lane = l_set(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) lane = l_fma(l_load(x + i), l_load(x + i), lane);
    const lanes rest = l_load_part(x + i, l_first(n - i)); /* missing ones are +0, which changes no sum of squares */
    return sum_lanes(l_fma(rest, rest, lane));
}

static float dot(const float *x, const float *y, int64_t n)
{
    lanes lane = l_set(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) lane = l_fma(l_load(x + i), l_load(y + i), lane);
    const lanes_part m = l_first(n - i); /* a lane that takes no further element may hold -0, which +0 would change */
    if (i < n) lane = l_select(m, l_fma(l_load_part(x + i, m), l_load_part(y + i, m), lane), lane);
    return sum_lanes(lane);
}

/* The scalar form keeps the first of several equal values, which shows where that is a zero: +0 and -0 are equal. */
static float max(const float *x, int64_t n)
{
    const lanes none = l_set(-INFINITY);
    lanes lane = none;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) lane = l_max(l_load(x + i), lane);
    const lanes_part m = l_first(n - i);
    const float largest = max_lanes(l_max(l_select(m, l_load_part(x + i, m), none), lane));
    if (largest != 0) return largest;
    i = 0;
    while (x[i] != 0) i++;
    return x[i];
}

static float exp_sum(float *x, float largest, int64_t n)
{
    const lanes top = l_set(largest);
    lanes lane = l_set(0);
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const lanes e = l_exp(l_sub(l_load(x + i), top));
        l_store(x + i, e);
        lane = l_add(lane, e);
    }
    if (i == n) return sum_lanes(lane);
    const lanes_part m = l_first(n - i);
    const lanes e = l_exp(l_sub(l_load_part(x + i, m), top));
    l_store_part(x + i, m, e);
    return sum_lanes(l_add(lane, l_select(m, e, l_set(0))));
}

/* ---- rotary positions ---- */

PN_INLINE lanes turn_pairs(lanes x, lanes cs) { return l_fmaddsub(l_even(x), cs, l_mul(l_odd(x), l_swap(cs))); }

static void rope_norm(float *x, const float *cs, int64_t n_pairs)
{
    const int64_t n = 2 * n_pairs;
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) l_store(x + i, turn_pairs(l_load(x + i), l_load(cs + i)));
    const lanes_part m = l_first(n - i);
    if (i < n) l_store_part(x + i, m, turn_pairs(l_load_part(x + i, m), l_load_part(cs + i, m)));
}

static void rope_neox(float *x, const float *cs, int64_t n_pairs)
{
    float *y = x + n_pairs;
    for (int64_t i = 0; i < n_pairs; i += 16) {
        const lanes_part m = l_first(n_pairs - i);
        const lanes a = l_load_part(x + i, m), b = l_load_part(y + i, m);
        lanes c, s;
        l_unzip(l_load_part(cs + 2 * i, l_first(2 * (n_pairs - i))), l_load_part(cs + 2 * i + 16, l_first(2 * (n_pairs - i) - 16)), &c, &s);
        l_store_part(x + i, m, l_fms(a, c, l_mul(b, s)));
        l_store_part(y + i, m, l_fma(a, s, l_mul(b, c)));
    }
}

/* ---- activation formats: the rules of quant.h ---- */

/* `a > m ? a : m` on magnitudes: a NaN does not enter. */
PN_INLINE lanes magnitude_max(lanes m, lanes x) { return l_max(l_abs(x), m); }

/* 16 codes; a NaN gives -127. */
PN_INLINE __m128i round_codes(lanes x, lanes per_step) { return l_codes(l_min(l_max(l_mul(x, per_step), l_set(-127)), l_set(127))); }

/* 8 sums of 4 codes. */
PN_INLINE __m256i sums_of_4(__m256i q) { return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1)); }

PN_INLINE int32_t sum_of_32(__m256i q)
{
    const __m256i by_4 = sums_of_4(q);
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(by_4), _mm256_extracti128_si256(by_4, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

static void quantise_32(pn_act32 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 32, dst++) {
        const lanes a = l_load(x + i), b = l_load(x + i + 16);
        const float m = max_lanes(magnitude_max(magnitude_max(l_set(0), a), b));
        if (!(m >= 1e-30f)) {
            memset(dst, 0, sizeof *dst);
            continue;
        }
        const lanes per_step = l_set(127.0f / m);
        const __m256i q = _mm256_inserti128_si256(_mm256_castsi128_si256(round_codes(a, per_step)), round_codes(b, per_step), 1);
        _mm256_storeu_si256((void *)dst->q, q);
        dst->d = m / 127.0f;
        dst->sum = sum_of_32(q);
        dst->s = dst->d * (float)dst->sum;
        dst->zero = 0;
    }
}

/* Sums of 16 and of 32 codes, and the latter split into 128*hi + lo. */
PN_INLINE void block_sums(pn_act256 *dst)
{
    __m256i by_32[2]; /* 4 + 4 sums of 32 in order, as 32-bit units; their halves, sums of 16, go to bsum16 */
    PN_UNROLL for (int h = 0; h < 2; h++)
    {
        __m256i q[4];
        PN_UNROLL for (int i = 0; i < 4; i++) q[i] = sums_of_4(_mm256_loadu_si256((const void *)(dst->q + h * 128 + i * 32)));
        /* a 128-bit half of q[i] is 16 codes: after two pairwise additions unit i of each half is sum 2i (low half) or 2i + 1 */
        const __m256i by_16 = _mm256_hadd_epi32(_mm256_hadd_epi32(q[0], q[1]), _mm256_hadd_epi32(q[2], q[3]));
        const __m128i low = _mm256_castsi256_si128(by_16), high = _mm256_extracti128_si256(by_16, 1);
        const __m128i pairs = _mm_packs_epi32(_mm_unpacklo_epi32(low, high), _mm_unpackhi_epi32(low, high));
        _mm_storeu_si128((void *)(dst->bsum16 + h * 8), pairs);
        by_32[h] = _mm256_castsi128_si256(_mm_madd_epi16(pairs, _mm_set1_epi16(1)));
    }
    const __m256i sums = _mm256_inserti128_si256(by_32[0], _mm256_castsi256_si128(by_32[1]), 1);
    const __m256i high = _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(64)), 7);
    const __m256i low = _mm256_sub_epi32(sums, _mm256_slli_epi32(high, 7));
    const __m256i sums16 = _mm256_permute4x64_epi64(_mm256_packs_epi32(sums, sums), 0xd8);
    const __m256i parts = _mm256_permute4x64_epi64(_mm256_packs_epi32(high, low), 0xd8); /* hi 0..7, lo 0..7 */
    _mm_storeu_si128((void *)dst->bsum32, _mm256_castsi256_si128(sums16));
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(parts), _mm256_extracti128_si256(parts, 1));
    memcpy(dst->hi, &bytes, 8);
    memcpy(dst->lo, (const uint8_t *)&bytes + 8, 8);
}

static void quantise_256(pn_act256 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 256, dst++) {
        lanes largest[4];
        PN_UNROLL for (int j = 0; j < 4; j++) largest[j] = magnitude_max(l_set(0), l_load(x + i + j * 16));
        for (int j = 4; j < 16; j += 4) {
            PN_UNROLL for (int l = 0; l < 4; l++) largest[l] = magnitude_max(largest[l], l_load(x + i + (j + l) * 16));
        }
        const float m = max_lanes(l_max(l_max(largest[0], largest[1]), l_max(largest[2], largest[3])));
        if (!(m >= 1e-30f)) {
            memset(dst, 0, sizeof *dst);
            continue;
        }
        const lanes per_step = l_set(127.0f / m);
        for (int j = 0; j < 16; j++) _mm_storeu_si128((void *)(dst->q + j * 16), round_codes(l_load(x + i + j * 16), per_step));
        block_sums(dst);
        dst->d = m / 127.0f;
        memset(dst->zero, 0, sizeof dst->zero);
    }
}

/* ---- exact path ---- */

enum { piece = 256 }; /* elements dequantised at a time: a multiple of every type's block */

/* A group of rows of the file layout to float, interleaved: panel[k][LANES]. Missing rows repeat the last one. */
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
            vec v[8];
            pack_32(v, &rows, 0);
            for (int i = 0; i < pn_min64(8, n - k); i++) v_store(panel + (at + k + i) * LANES, v[i]);
        }
    }
}

PN_INLINE fvec load_weights(const uint8_t *p) { return f_load(p); }

static void exact(const pn_exact_mm *e, int64_t row0, int64_t row1, void *scratch)
{
    const pn_mm *mm = &e->mm;
    float *panel = (float *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    for (int64_t row = row0; row < row1; row += LANES) {
        make_float_panel(panel, e, row, row1);
        for (int64_t c = 0; c < mm->n_cols; c += max_columns) {
            columns cols;
            columns_take(&cols, mm, c, max_columns);
            if (mm->n_cols - c == 1) float_tile(1, 1, load_weights, 4, (const uint8_t *)panel, 0, mm->k, &cols, row, row1);
            else float_tile(max_columns, 1, load_weights, 4, (const uint8_t *)panel, 0, mm->k, &cols, row, row1);
        }
    }
}
