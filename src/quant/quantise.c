/* quant/quantise.c - rows of floats to blocks of 32 to 128 weights, to TQ* and to 16-bit floats. Super-blocks: quantise_k.c. */
#include "quant/iq_tables.h"
#include "quant/quantise.h"

#include <math.h>

static void put_f16(uint8_t *p, float f) { pn_put_u16(p, pn_f32_to_f16(f)); }

void pn_quantise_f32(void *dst, const float *src, int64_t n, const float *importance)
{
    (void)importance;
    memcpy(dst, src, (size_t)n * sizeof *src);
}

void pn_quantise_f16(void *dst, const float *src, int64_t n, const float *importance)
{
    (void)importance;
    for (int64_t i = 0; i < n; i++) put_f16((uint8_t *)dst + 2 * i, src[i]);
}

/* Nearest even; a NaN stays one. */
static uint16_t bf16_from_f32(float f)
{
    const uint32_t bits = pn_float_bits(f);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 64u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

void pn_quantise_bf16(void *dst, const float *src, int64_t n, const float *importance)
{
    (void)importance;
    for (int64_t i = 0; i < n; i++) pn_put_u16((uint8_t *)dst + 2 * i, bf16_from_f32(src[i]));
}

static float reciprocal(float d) { return d != 0 ? 1.0f / d : 0; }

void pn_quantise_q8_0(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 32, src += 32, block += 34) {
        const float d = fabsf(pn_largest(src, 32)) / 127.0f, k = reciprocal(d);
        put_f16(block, d);
        for (int j = 0; j < 32; j++) block[2 + j] = (uint8_t)(int8_t)roundf(pn_clampf(src[j] * k, -127, 127));
    }
}

/* ---- 4 and 5 bits ---- */

/* Low four bits of 32 codes, and their fifth bits before them if there are any. */
static void put_codes(uint8_t *p, const uint8_t codes[32], int bits)
{
    uint32_t high = 0;
    for (int i = 0; i < 32; i++) high |= (uint32_t)(codes[i] >> 4) << i;
    if (bits == 5) {
        pn_put_u16(p, (uint16_t)high);
        pn_put_u16(p + 2, (uint16_t)(high >> 16));
        p += 4;
    }
    for (int i = 0; i < 16; i++) p[i] = (uint8_t)((codes[i] & 15) | codes[i + 16] << 4);
}

static uint8_t truncate(float v, int most) { return (uint8_t)pn_clampf(v, 0, (float)most); }

/* Codes 0 .. 2N-1 around N; returns the scale. */
static float round_symmetric(const float *x, int N, uint8_t codes[32])
{
    const float d = pn_largest(x, 32) / (float)-N, k = reciprocal(d);
    for (int i = 0; i < 32; i++) codes[i] = truncate(x[i] * k + ((float)N + 0.5f), 2 * N - 1);
    return d;
}

static void quantise_symmetric(uint8_t *block, const float *x, int64_t n, const float *importance, int bits)
{
    const int N = 1 << (bits - 1), bytes = 2 + 4 * bits;
    const float variance = importance ? pn_mean_square(x, n, 1) : 0;
    for (int64_t i = 0; i < n; i += 32, block += bytes) {
        uint8_t codes[32];
        float w[32], d;
        if (importance) {
            pn_weigh(w, importance + i, x + i, 32, variance);
            d = pn_search_symmetric(32, N, x + i, w, codes);
        } else {
            d = round_symmetric(x + i, N, codes);
        }
        put_f16(block, d);
        put_codes(block + 2, codes, bits);
    }
}

void pn_quantise_q4_0(void *dst, const float *src, int64_t n, const float *importance) { quantise_symmetric(dst, src, n, importance, 4); }
void pn_quantise_q5_0(void *dst, const float *src, int64_t n, const float *importance) { quantise_symmetric(dst, src, n, importance, 5); }

/* Codes 0 .. N upwards from the least element, which goes to *low; returns the scale. */
static float round_range(const float *x, int N, uint8_t codes[32], float *low)
{
    float least = x[0], most = x[0];
    for (int i = 1; i < 32; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    const float d = (most - least) / (float)N, k = reciprocal(d);
    for (int i = 0; i < 32; i++) codes[i] = truncate((x[i] - least) * k + 0.5f, N);
    *low = least;
    return d;
}

static void quantise_range(uint8_t *block, const float *x, int64_t n, const float *importance, int bits)
{
    const int N = (1 << bits) - 1, bytes = 4 + 4 * bits;
    const float variance = importance ? pn_mean_square(x, n, 1) : 0;
    const pn_min_search search = {32, N, -0.9f, 0.05f, 36, false};
    for (int64_t i = 0; i < n; i += 32, block += bytes) {
        uint8_t codes[32];
        float w[32], d, low;
        if (importance) {
            pn_weigh(w, importance + i, x + i, 32, variance);
            d = pn_search_minimum(&search, x + i, w, codes, &low);
            low = -low;
        } else {
            d = round_range(x + i, N, codes, &low);
        }
        put_f16(block, d);
        put_f16(block + 2, low);
        put_codes(block + 4, codes, bits);
    }
}

void pn_quantise_q4_1(void *dst, const float *src, int64_t n, const float *importance) { quantise_range(dst, src, n, importance, 4); }
void pn_quantise_q5_1(void *dst, const float *src, int64_t n, const float *importance) { quantise_range(dst, src, n, importance, 5); }

/* ---- 1 and 2 bits, ternary ---- */

void pn_quantise_q1_0(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 128, src += 128, block += 18) {
        float sum = 0;
        memset(block + 2, 0, 16);
        for (int j = 0; j < 128; j++) {
            sum += fabsf(src[j]);
            block[2 + j / 8] = (uint8_t)(block[2 + j / 8] | (src[j] >= 0 ? 1 : 0) << j % 8);
        }
        put_f16(block, sum / 128.0f);
    }
}

/* x / d rounded, plus 1: -1, 0, 1 become 0, 1, 2. */
static int ternary(float x, float k) { return (int)roundf(pn_clampf(x * k, -1, 1)) + 1; }

void pn_quantise_q2_0(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 64, src += 64, block += 18) {
        const float d = fabsf(pn_largest(src, 64)), k = reciprocal(d);
        put_f16(block, d);
        memset(block + 2, 0, 16);
        for (int j = 0; j < 64; j++) block[2 + j / 4] = (uint8_t)(block[2 + j / 4] | ternary(src[j], k) << j % 4 * 2);
    }
}

/* n digits, x[0], x[stride], ..., most significant first, as a fraction of 256 rounded up. */
static uint8_t pack_trits(const float *x, int n, int stride, float k)
{
    int number = 0;
    for (int i = 0; i < 5; i++) number = number * 3 + (i < n ? ternary(x[i * stride], k) : 0);
    return (uint8_t)((number * 256 + 242) / 243);
}

void pn_quantise_tq1_0(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 256, src += 256, block += 54) {
        const float d = fabsf(pn_largest(src, 256)), k = reciprocal(d);
        for (int j = 0; j < 32; j++) block[j] = pack_trits(src + j, 5, 32, k);
        for (int j = 0; j < 16; j++) block[32 + j] = pack_trits(src + 160 + j, 5, 16, k);
        for (int j = 0; j < 4; j++) block[48 + j] = pack_trits(src + 240 + j, 4, 4, k);
        put_f16(block + 52, d);
    }
}

void pn_quantise_tq2_0(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 256, src += 256, block += 66) {
        const float d = fabsf(pn_largest(src, 256)), k = reciprocal(d);
        memset(block, 0, 64);
        for (int j = 0; j < 256; j++) {
            uint8_t *byte = block + 32 * (j / 128) + j % 32;
            *byte = (uint8_t)(*byte | ternary(src[j], k) << j / 32 % 4 * 2);
        }
        put_f16(block + 64, d);
    }
}

/* ---- tables of 16 values ---- */

/* Code of the table value, times d, that is nearest to x; the first of equals. */
static int nearest_fp4(float x, float d)
{
    int best = 0;
    for (int i = 1; i < 16; i++)
        if (fabsf((float)pn_mxfp4_values[i] * d - x) < fabsf((float)pn_mxfp4_values[best] * d - x)) best = i;
    return best;
}

/* Exponent so that the largest value takes the table's largest binade: floor(log2(largest)) - 2. */
static uint8_t mx_exponent(float largest)
{
    int exponent;
    if (!(largest > 0)) return 0;
    frexpf(largest, &exponent);
    return (uint8_t)pn_clamp(isfinite(largest) ? exponent - 1 - 2 + 127 : 254, 0, 254);
}

void pn_quantise_mxfp4(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 32, src += 32, block += 17) {
        uint8_t codes[32];
        block[0] = mx_exponent(fabsf(pn_largest(src, 32)));
        const float d = pn_e8m0_half(block[0]);
        for (int j = 0; j < 32; j++) codes[j] = (uint8_t)nearest_fp4(src[j], d);
        put_codes(block + 1, codes, 4);
    }
}

/* The 8-bit float of NVFP4 nearest to v >= 0, ties to even, at most 448. */
static uint8_t ue4m3_from(float v)
{
    int exponent;
    if (!(v > 0)) return 0;
    if (v >= 448) return 0x7e;
    frexpf(v, &exponent); /* v = 0.5 .. 1 times 2^exponent */
    const int step = exponent < -5 ? -9 : exponent - 4; /* log2 of the spacing of values around v */
    const int units = pn_nearest(ldexpf(v, -step));     /* 8 .. 16, or 0 .. 8 for subnormals */
    return (uint8_t)(exponent < -5 ? units : (exponent + 5) * 8 + units);
}

void pn_quantise_nvfp4(void *dst, const float *src, int64_t n, const float *importance)
{
    uint8_t *block = dst;
    (void)importance;
    for (int64_t i = 0; i < n; i += 64, block += 36)
        for (int part = 0; part < 4; part++, src += 16) {
            uint8_t *q = block + 4 + 8 * part;
            block[part] = ue4m3_from(fabsf(pn_largest(src, 16)) / 6.0f);
            const float d = pn_ue4m3_half(block[part]);
            for (int j = 0; j < 8; j++) q[j] = (uint8_t)(nearest_fp4(src[j], d) | nearest_fp4(src[j + 8], d) << 4);
        }
}
