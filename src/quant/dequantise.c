/* quant/dequantise.c - rows of any type to float, by the formulas of docs/FORMATS.md: the same bits as ggml's reference.
 *
 * Blocks are read by codes.h; only the scaling, and so the rounding, is here. */
#include "quant/codes.h"

#include <math.h>

float pn_e8m0_half(uint8_t e) { return ldexpf(1.0f, e - 128); }

float pn_ue4m3_half(uint8_t x)
{
    const int exponent = x >> 3 & 15, mantissa = x & 7;
    if (x == 0x7f) return 0;
    return exponent == 0 ? ldexpf((float)mantissa, -10) : ldexpf((float)(8 + mantissa), exponent - 11);
}

void pn_dequantise_f32(float *dst, const void *src, int64_t n) { memcpy(dst, src, (size_t)n * sizeof *dst); }

void pn_dequantise_f16(float *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) dst[i] = pn_load_f16((const uint8_t *)src + 2 * i);
}

void pn_dequantise_bf16(float *dst, const void *src, int64_t n)
{
    for (int64_t i = 0; i < n; i++) dst[i] = pn_load_bf16((const uint8_t *)src + 2 * i);
}

static void values32(float *dst, const pn_codes *c, int n)
{
    for (int i = 0; i < n; i++) dst[i] = (float)c->w[i] * c->part[i / 16] + c->m;
}

static void values256(float *dst, const pn_codes *c, int n)
{
    for (int j = 0; j < n / 16; j++) {
        const float scale = c->d * (float)c->scale[j] * c->unit, min = c->dmin * (float)c->min[j];
        for (int i = 0; i < 16; i++) dst[16 * j + i] = scale * (float)c->w[16 * j + i] - min;
    }
}

#define BLOCKS(type, elements, bytes, values)                         \
    void pn_dequantise_##type(float *dst, const void *src, int64_t n) \
    {                                                                 \
        const uint8_t *block = src;                                   \
        for (int64_t i = 0; i < n; i += elements, block += bytes) {   \
            pn_codes c;                                               \
            pn_codes_##type(&c, block);                               \
            values(dst + i, &c, elements);                            \
        }                                                             \
    }
#define BLOCKS_PN_ACT_F32(type, elements, bytes)
#define BLOCKS_PN_ACT_32(type, elements, bytes) BLOCKS(type, elements, bytes, values32)
#define BLOCKS_PN_ACT_256(type, elements, bytes) BLOCKS(type, elements, bytes, values256)
#define WEIGHT(lower, upper, elements, bytes, act) BLOCKS_##act(lower, elements, bytes)
#define NUMBER(lower, upper, elements, bytes)
#include "quant/types.def"
