/* quant/quantise_k.c - rows of floats to super-blocks (Q2_K .. Q6_K, IQ4_XS) and to IQ4_NL, whose search is that of IQ4_XS. */
#include "quant/iq_tables.h"
#include "quant/quantise.h"

#include <math.h>

static void put_f16(uint8_t *p, float f) { pn_put_u16(p, pn_f32_to_f16(f)); }

/* ---- packing of 256 codes: the inverse of codes256.c ---- */

static void put_two_bits(uint8_t *q, const uint8_t codes[256])
{
    memset(q, 0, 64);
    for (int i = 0; i < 256; i++) q[32 * (i / 128) + i % 32] |= (uint8_t)((codes[i] & 3) << i / 32 % 4 * 2);
}

static void put_four_bits(uint8_t *q, const uint8_t codes[256])
{
    memset(q, 0, 128);
    for (int i = 0; i < 256; i++) q[32 * (i / 64) + i % 32] |= (uint8_t)((codes[i] & 15) << i / 32 % 2 * 4);
}

/* Bit `bit` of each code: one bit a byte for each 32 elements. */
static void put_high_bit(uint8_t *h, const uint8_t codes[256], int bit)
{
    memset(h, 0, 32);
    for (int i = 0; i < 256; i++) h[i % 32] |= (uint8_t)((codes[i] >> bit & 1) << i / 32);
}

/* ---- types with scale and minimum: Q2_K, Q4_K, Q5_K ---- */

typedef struct min_type {
    pn_min_search plain, weighted; /* without and with importance */
    int most;                      /* largest code of a scale or minimum */
    float variance_factor;         /* with importance: variance = factor * mean of squares */
    bool magnitude_only;           /* without: w = |x|, else sqrt(mean of squares) + |x| */
} min_type;

typedef struct min_block {
    uint8_t codes[256], scale[16], min[16];
    uint16_t d, dmin; /* half precision */
} min_block;

static void weigh_plain(const min_type *t, float *w, const float *x, int n)
{
    const float base = t->magnitude_only ? 0 : sqrtf(pn_mean_square(x, n, 1));
    for (int i = 0; i < n; i++) w[i] = base + fabsf(x[i]);
}

/* Values >= 0 to codes 0 .. most; returns the step. */
static float round_positive(const float *values, int n, int most, uint8_t *codes)
{
    float largest = 0;
    for (int i = 0; i < n; i++) largest = values[i] > largest ? values[i] : largest;
    const float k = largest > 0 ? (float)most / largest : 0;
    for (int i = 0; i < n; i++) codes[i] = (uint8_t)pn_clamp(pn_nearest(k * values[i]), 0, most);
    return largest / (float)most;
}

static void search_groups(const min_type *t, min_block *b, const float *x, const float *importance)
{
    const pn_min_search *search = importance ? &t->weighted : &t->plain;
    const int n = search->n, n_groups = 256 / n;
    const float variance = importance ? pn_mean_square(x, 256, t->variance_factor) : 0;
    float scale[16], min[16], sum_w[16] = {0};
    for (int j = 0; j < n_groups; j++) {
        float w[32];
        const float *group = x + n * j;
        if (importance) pn_weigh(w, importance + n * j, group, n, variance);
        else weigh_plain(t, w, group, n);
        for (int i = 0; i < n; i++) sum_w[j] += w[i];
        scale[j] = pn_search_minimum(search, group, w, b->codes + n * j, &min[j]);
    }
    if (importance) {
        b->d = pn_f32_to_f16(pn_search_positive(n_groups, t->most, scale, sum_w, b->scale));
        b->dmin = pn_f32_to_f16(pn_search_positive(n_groups, t->most, min, sum_w, b->min));
    } else {
        b->d = pn_f32_to_f16(round_positive(scale, n_groups, t->most, b->scale));
        b->dmin = pn_f32_to_f16(round_positive(min, n_groups, t->most, b->min));
    }
}

/* Codes once more, with the scales as they are stored. */
static void recode_with_minimum(const min_type *t, min_block *b, const float *x)
{
    const int n = t->plain.n;
    for (int j = 0; j < 256 / n; j++) {
        const float d = pn_f16_to_f32(b->d) * (float)b->scale[j], min = pn_f16_to_f32(b->dmin) * (float)b->min[j];
        if (d == 0) continue;
        for (int i = n * j; i < n * j + n; i++) b->codes[i] = (uint8_t)pn_clamp(pn_nearest((x[i] + min) / d), 0, t->plain.N);
    }
}

static void quantise_min_block(const min_type *t, min_block *b, const float *x, const float *importance)
{
    search_groups(t, b, x, importance);
    recode_with_minimum(t, b, x);
}

static const float *at(const float *importance, int64_t i) { return importance ? importance + i : NULL; }

static void put_pair(uint8_t *p, const min_block *b)
{
    pn_put_u16(p, b->d);
    pn_put_u16(p + 2, b->dmin);
}

void pn_quantise_q2_k(void *dst, const float *src, int64_t n, const float *importance)
{
    static const min_type type = {{16, 3, -0.5f, 0.1f, 15, true}, {16, 3, -0.9f, 0.05f, 36, false}, 15, 1, true};
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 256, block += 84) {
        min_block b;
        quantise_min_block(&type, &b, src + i, at(importance, i));
        for (int j = 0; j < 16; j++) block[j] = (uint8_t)(b.scale[j] | b.min[j] << 4);
        put_two_bits(block + 16, b.codes);
        put_pair(block + 80, &b);
    }
}

/* Eight scales and eight minima of 6 bits in 12 bytes. */
static void put_six_bit_pairs(uint8_t *p, const min_block *b)
{
    for (int j = 0; j < 4; j++) {
        p[j] = (uint8_t)(b->scale[j] | b->scale[j + 4] >> 4 << 6);
        p[j + 4] = (uint8_t)(b->min[j] | b->min[j + 4] >> 4 << 6);
        p[j + 8] = (uint8_t)((b->scale[j + 4] & 15) | (b->min[j + 4] & 15) << 4);
    }
}

void pn_quantise_q4_k(void *dst, const float *src, int64_t n, const float *importance)
{
    static const min_type type = {{32, 15, -1, 0.1f, 20, false}, {32, 15, -0.9f, 0.05f, 36, false}, 63, 2, false};
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 256, block += 144) {
        min_block b;
        quantise_min_block(&type, &b, src + i, at(importance, i));
        put_pair(block, &b);
        put_six_bit_pairs(block + 4, &b);
        put_four_bits(block + 16, b.codes);
    }
}

void pn_quantise_q5_k(void *dst, const float *src, int64_t n, const float *importance)
{
    static const min_type type = {{32, 31, -0.5f, 0.1f, 15, false}, {32, 31, -0.9f, 0.05f, 36, false}, 63, 2, false};
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 256, block += 176) {
        min_block b;
        quantise_min_block(&type, &b, src + i, at(importance, i));
        put_pair(block, &b);
        put_six_bit_pairs(block + 4, &b);
        put_high_bit(block + 16, b.codes, 4);
        put_four_bits(block + 48, b.codes);
    }
}

/* ---- types with a signed scale for each 16: Q3_K, Q6_K ---- */

/* Codes 0 .. 2N-1 around N with the stored scale of each 16; where that is zero they stay. */
static void recode_symmetric(uint8_t codes[256], const float *x, int N, float d, const int8_t scale[16])
{
    for (int j = 0; j < 16; j++) {
        const float step = d * (float)scale[j];
        if (step == 0) continue;
        for (int i = 16 * j; i < 16 * j + 16; i++) codes[i] = (uint8_t)(pn_clamp(pn_nearest(x[i] / step), -N, N - 1) + N);
    }
}

/* Scales to signed 6-bit codes; returns the step in half precision. */
static uint16_t round_scales_q3(const float scale[16], int8_t codes[16])
{
    const float largest = pn_largest(scale, 16), k = largest != 0 ? -32.0f / largest : 0;
    for (int j = 0; j < 16; j++) codes[j] = (int8_t)(largest != 0 ? pn_clamp(pn_nearest(k * scale[j]), -32, 31) : -32);
    return largest != 0 ? pn_f32_to_f16(1 / k) : 0;
}

static uint16_t search_q3(const float *x, const float *importance, uint8_t codes[256], int8_t scale_codes[16])
{
    float scale[16];
    if (!importance) {
        for (int j = 0; j < 16; j++) scale[j] = pn_search_coordinate(16, 4, x + 16 * j, codes + 16 * j);
        return round_scales_q3(scale, scale_codes);
    }
    const float variance = pn_mean_square(x, 256, 2);
    float sum_w[16] = {0};
    uint8_t stored[16];
    for (int j = 0; j < 16; j++) {
        float w[16];
        pn_weigh(w, importance + 16 * j, x + 16 * j, 16, variance);
        for (int i = 0; i < 16; i++) sum_w[j] += w[i];
        scale[j] = pn_search_symmetric(16, 4, x + 16 * j, w, codes + 16 * j);
    }
    const float d = pn_search_symmetric(16, 32, scale, sum_w, stored);
    for (int j = 0; j < 16; j++) scale_codes[j] = (int8_t)(stored[j] - 32);
    return pn_f32_to_f16(d);
}

void pn_quantise_q3_k(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 256, block += 110) {
        uint8_t codes[256], *packed = block + 96;
        int8_t scale[16];
        const uint16_t d = search_q3(src + i, at(importance, i), codes, scale);
        recode_symmetric(codes, src + i, 4, pn_f16_to_f32(d), scale);
        put_high_bit(block, codes, 2);
        put_two_bits(block + 32, codes);
        memset(packed, 0, 12);
        for (int j = 0; j < 16; j++) {
            const int s = scale[j] + 32;
            packed[j % 8] |= (uint8_t)((s & 15) << j / 8 * 4);
            packed[8 + j % 4] |= (uint8_t)(s >> 4 << j / 4 * 2);
        }
        pn_put_u16(block + 108, d);
    }
}

static void put_q6(uint8_t *block, const uint8_t codes[256])
{
    memset(block, 0, 192);
    for (int i = 0; i < 256; i++) {
        const int quarter = i / 32 % 4;
        block[64 * (i / 128) + 32 * (quarter % 2) + i % 32] |= (uint8_t)((codes[i] & 15) << quarter / 2 * 4);
        block[128 + 32 * (i / 128) + i % 32] |= (uint8_t)(codes[i] >> 4 << 2 * quarter);
    }
}

void pn_quantise_q6_k(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 256, block += 210) {
        uint8_t codes[256];
        float scale[16];
        int8_t stored[16];
        const float *x = src + i;
        for (int j = 0; j < 16; j++) scale[j] = pn_search_symmetric(16, 32, x + 16 * j, at(importance, i + 16 * j), codes + 16 * j);
        const float largest = pn_largest(scale, 16);
        if (!(fabsf(largest) >= 1e-15f)) {
            memset(block, 0, 210);
            continue;
        }
        const float k = -128.0f / largest;
        const uint16_t d = pn_f32_to_f16(1 / k);
        for (int j = 0; j < 16; j++) stored[j] = (int8_t)pn_clamp(pn_nearest(k * scale[j]), -128, 127);
        recode_symmetric(codes, x, 32, pn_f16_to_f32(d), stored);
        put_q6(block, codes);
        memcpy(block + 192, stored, 16);
        pn_put_u16(block + 208, d);
    }
}

/* ---- IQ4_NL, IQ4_XS: codes point into a table ---- */

/* The table value nearest to v; the upper one of equals. */
static int nearest_iq4(float v)
{
    const int8_t *values = pn_iq4nl_values;
    int upper = 1;
    if (!(v > values[0])) return 0;
    while (upper < 15 && values[upper] < v) upper++;
    return v - values[upper - 1] < values[upper] - v ? upper - 1 : upper;
}

/* The scale that fits 32 elements best; 0 where they are all but zero. */
static float search_iq4(const float *x, const float *w)
{
    const float largest = pn_largest(x, 32);
    float scale = 0, best = 0;
    if (!(fabsf(largest) >= 1e-15f)) return 0;
    for (int step = -8; step <= 7; step++) { /* -8: the table's first value meets the largest element with its sign turned */
        const float k = step == -8 ? 1 / (-largest / pn_iq4nl_values[0]) : (float)(step + pn_iq4nl_values[0]) / largest;
        float qx = 0, qq = 0;
        for (int i = 0; i < 32; i++) {
            const float q = pn_iq4nl_values[nearest_iq4(k * x[i])];
            qx += w[i] * q * x[i];
            qq += w[i] * q * q;
        }
        if (step > -8 && !(qq > 0 && qx * qx > best * qq)) continue;
        scale = qx / qq;
        best = scale * qx;
    }
    return scale;
}

static void weigh_iq4(float w[32], const float *x, const float *importance, float variance)
{
    if (importance) pn_weigh(w, importance, x, 32, variance);
    else
        for (int i = 0; i < 32; i++) w[i] = x[i] * x[i];
}

static void put_iq4(uint8_t *q, const float *x, float scale)
{
    const float k = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < 16; i++) q[i] = (uint8_t)(nearest_iq4(k * x[i]) | nearest_iq4(k * x[i + 16]) << 4);
}

void pn_quantise_iq4_nl(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 32, block += 18) {
        float w[32];
        weigh_iq4(w, src + i, at(importance, i), pn_mean_square(src + i, 32, 2));
        const float scale = search_iq4(src + i, w);
        put_f16(block, scale);
        put_iq4(block + 2, src + i, scale);
    }
}

void pn_quantise_iq4_xs(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    for (int64_t i = 0; i < n; i += 256, block += 136) {
        const float variance = pn_mean_square(src + i, 256, 2);
        float scale[8];
        for (int j = 0; j < 8; j++) {
            float w[32];
            weigh_iq4(w, src + i + 32 * j, at(importance, i + 32 * j), variance);
            scale[j] = search_iq4(src + i + 32 * j, w);
        }
        const float d = -pn_largest(scale, 8) / 32, k = d != 0 ? 1 / d : 0;
        memset(block, 0, 8);
        put_f16(block, d);
        for (int j = 0; j < 8; j++) {
            const int s = pn_clamp(pn_nearest(k * scale[j]), -32, 31);
            block[2 + j / 4] |= (uint8_t)((s + 32) >> 4 << j % 4 * 2);
            block[4 + j / 2] |= (uint8_t)(((s + 32) & 15) << j % 2 * 4);
            put_iq4(block + 8 + 16 * j, src + i + 32 * j, d * (float)s);
        }
    }
}
