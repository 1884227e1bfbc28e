/* quant/codes.h - blocks of quantised weights as small integers and scales: the one reading of each block format, from which both
 * dequantisation and the scalar kernels are made. */
#ifndef PN_CODES_H
#define PN_CODES_H

#include "base/math.h"
#include "quant/quant.h"

/* Reads from any address: weights lie as the file has them. */
static inline uint16_t pn_load_u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static inline uint32_t pn_load_u32(const uint8_t *p) { return (uint32_t)pn_load_u16(p) | (uint32_t)pn_load_u16(p + 2) << 16; }
static inline float pn_load_f32(const uint8_t *p) { return pn_bits_float(pn_load_u32(p)); }
static inline float pn_load_f16(const uint8_t *p) { return pn_f16_to_f32(pn_load_u16(p)); }
static inline float pn_load_bf16(const uint8_t *p) { return pn_bits_float((uint32_t)pn_load_u16(p) << 16); }

/* 2^(e - 128), and half of the 8-bit float of NVFP4: 4 bits of exponent, 3 of mantissa, its sign bit ignored; 0x7f (NaN) counts as 0, 0xff
 * does not, as in the reference. */
float pn_e8m0_half(uint8_t e);
float pn_ue4m3_half(uint8_t x);
/* The upper half of the former's bits, which holds it whole: a power of two. */
static inline uint16_t pn_e8m0_half_bf16(uint8_t e) { return (uint16_t)(pn_float_bits(pn_e8m0_half(e)) >> 16); }

/* One block. Formats for activation blocks of 32 use `part` and `m`, super-blocks of 256 the rest:
 *   value i = w[i] * part[i / 16] + m                                                m = -0 where the format has no minimum: it adds nothing
 *   value i = ((d * scale[i / 16]) * unit) * w[i] - dmin * min[i / 16]               unit: 1/8 for iq1_* and iq2_*, 1/4 for iq3_xxs, else 1
 * Formats with one scale for more than 16 elements repeat it. */
typedef struct pn_codes {
    int8_t w[256];
    float part[8], m;
    int16_t scale[16], min[16];
    float d, dmin, unit;
} pn_codes;

/* pn_codes_<type> reads one block (none for floats); pn_dequantise_<type> is the member of pn_type_info. */
#define WEIGHT(lower, upper, elements, bytes, act)           \
    void pn_codes_##lower(pn_codes *c, const uint8_t *block); \
    void pn_dequantise_##lower(float *dst, const void *src, int64_t n);
#define NUMBER(lower, upper, elements, bytes)
#include "quant/types.def"
#undef WEIGHT
#undef NUMBER

#endif
