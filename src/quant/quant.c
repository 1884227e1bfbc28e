/* quant/quant.c - the table of tensor types and half-precision conversion.
 *
 * Owns sizes and names; the formulas live in dequantise*.c and quantise*.c. */
#include "quant/quantise.h"

#include <strings.h>

#define WEIGHT(lower, upper, elements, bytes, act) [PN_##upper] = {#lower, elements, bytes, act, pn_dequantise_##lower, pn_quantise_##lower},
#define NUMBER(lower, upper, elements, bytes) [PN_##upper] = {#lower, elements, bytes, PN_ACT_F32, NULL, NULL},
static const pn_type_info types[PN_TYPE_COUNT] = {
#include "quant/types.def"
};
#undef WEIGHT
#undef NUMBER

/* Every block of weights is a whole number of activation blocks or divides one. */
#define WEIGHT(lower, upper, elements, bytes, act)                                                                                      \
    _Static_assert((act) == PN_ACT_F32 ? (elements) == 1 : (elements) % ((act) == PN_ACT_32 ? 32 : 256) == 0, #lower ": block and activation");
#define NUMBER(lower, upper, elements, bytes)
#include "quant/types.def"
#undef WEIGHT
#undef NUMBER

const pn_type_info *pn_type_get(uint32_t id)
{
    if (id >= PN_TYPE_COUNT || types[id].block == 0) return NULL;
    return &types[id];
}

bool pn_type_by_name(const char *name, pn_type *out)
{
    for (uint32_t id = 0; id < PN_TYPE_COUNT; id++) {
        if (!types[id].name || strcasecmp(types[id].name, name) != 0) continue;
        *out = (pn_type)id;
        return true;
    }
    return false;
}

bool pn_row_bytes(pn_type type, uint64_t n, uint64_t *bytes)
{
    const pn_type_info *info = pn_type_get((uint32_t)type);
    if (!info || n % info->block != 0) return false;
    return pn_mul(n / info->block, info->bytes, bytes);
}

float pn_f16_to_f32(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000u) << 16, exponent = (h >> 10) & 31u, mantissa = h & 0x3ffu;
    if (exponent == 31) return pn_bits_float(sign | 0x7f800000u | mantissa << 13);
    if (exponent == 0) return pn_bits_float(sign | pn_float_bits((float)mantissa * 0x1p-24f));
    return pn_bits_float(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t pn_f32_to_f16(float f)
{
    const uint32_t bits = pn_float_bits(f), magnitude = bits & 0x7fffffffu;
    const uint32_t sign = bits >> 16 & 0x8000u;
    if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u); /* NaN */
    if (magnitude >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* 65520 and above round to infinity */
    if (magnitude < 0x38800000u) { /* below 2^-14: 0.5's unit in the last place is the step of half subnormals, 2^-24 */
        const float rounded = pn_bits_float(magnitude) + 0.5f;
        return (uint16_t)(sign | (pn_float_bits(rounded) - pn_float_bits(0.5f)));
    }
    const uint32_t rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
    return (uint16_t)(sign | (rounded - 0x38000000u) >> 13);
}
