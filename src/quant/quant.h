/* quant/quant.h - tensor types: sizes, dequantise, quantise. The scalar reference for all kernels.
 *
 * Knows block formats (docs/FORMATS.md) and nothing of files, models or instruction sets. */
#ifndef PN_QUANT_H
#define PN_QUANT_H

#include "base/base.h"

/* Values are the type ids of GGUF files. */
typedef enum pn_type {
    PN_F32 = 0, PN_F16 = 1, PN_Q4_0 = 2, PN_Q4_1 = 3, PN_Q5_0 = 6, PN_Q5_1 = 7, PN_Q8_0 = 8, PN_Q8_1 = 9,
    PN_Q2_K = 10, PN_Q3_K = 11, PN_Q4_K = 12, PN_Q5_K = 13, PN_Q6_K = 14, PN_Q8_K = 15,
    PN_IQ2_XXS = 16, PN_IQ2_XS = 17, PN_IQ3_XXS = 18, PN_IQ1_S = 19, PN_IQ4_NL = 20, PN_IQ3_S = 21, PN_IQ2_S = 22, PN_IQ4_XS = 23,
    PN_I8 = 24, PN_I16 = 25, PN_I32 = 26, PN_I64 = 27, PN_F64 = 28, PN_IQ1_M = 29, PN_BF16 = 30,
    PN_TQ1_0 = 34, PN_TQ2_0 = 35, PN_MXFP4 = 39, PN_NVFP4 = 40, PN_Q1_0 = 41, PN_Q2_0 = 42,
    PN_TYPE_COUNT = 43
} pn_type;

/* How activations are rounded before they meet a weight type. Belongs to the type's MEANING: the same on every CPU. */
typedef enum pn_act { PN_ACT_F32 = 0, PN_ACT_32 = 1, PN_ACT_256 = 2 } pn_act;

typedef struct pn_type_info {
    const char *name;        /* lower case, as options and tables show it: "q4_k"; NULL: not a type */
    uint32_t block;          /* elements per block; 0: not a type */
    uint32_t bytes;          /* bytes per block */
    pn_act act;
    /* `n` elements (a multiple of block) to float; bit-identical to the formulas of docs/FORMATS.md. NULL: integer types */
    void (*dequantise)(float *dst, const void *src, int64_t n);
    /* One row of n elements; `importance` [n] may be NULL. NULL: no quantiser. */
    void (*quantise)(void *dst, const float *src, int64_t n, const float *importance);
} pn_type_info;

/* NULL for an id that is not a type (unknown or removed). */
const pn_type_info *pn_type_get(uint32_t id);
/* By name, any case; false if unknown. */
bool pn_type_by_name(const char *name, pn_type *out);
/* Bytes of a row of n elements; false if n is no multiple of the block or the size overflows. */
bool pn_row_bytes(pn_type type, uint64_t n, uint64_t *bytes);

/* Half precision, nearest even. Exact on every machine. */
float pn_f16_to_f32(uint16_t h);
uint16_t pn_f32_to_f16(float f);

/* ---- activation formats -----------------------------------------------------------------------
 * One row of activations is an array of these blocks (or plain floats for PN_ACT_F32). Every kernel of every
 * instruction set reads this very layout, so rows can be quantised once and used by any of them.
 *
 * Rounding, both: m = max |x|; if !(m >= 1e-30f) then d = 0 and q = 0; else d = m / 127.0f, id = 127.0f / m,
 * q = nearest-even(clamp(x * id, -127, 127)), where clamp(t) is: t > -127 ? t : -127 (a NaN gives -127), then t < 127 ? t : 127.
 * The maximum is taken as `a > m ? a : m` from m = 0, so NaNs do not enter it. */
typedef struct pn_act32 { /* 32 elements */
    int8_t q[32];
    float d;
    float s;     /* d * (float)sum, rounded once */
    int32_t sum; /* of q */
    int32_t zero;
} pn_act32;

typedef struct pn_act256 { /* 256 elements */
    int8_t q[256];
    int16_t bsum16[16]; /* sums of 16 q */
    int16_t bsum32[8];  /* sums of 32 q: |.| <= 4064 */
    int8_t hi[8];       /* bsum32 = 128*hi + lo with lo in -64..63 */
    int8_t lo[8];
    float d;
    int32_t zero[3];
} pn_act256;

_Static_assert(sizeof(pn_act32) == 48, "kernels rely on it");
_Static_assert(sizeof(pn_act256) == 336, "kernels rely on it");

/* Bytes of a row of k activations. k must be a multiple of 32 or 256 for the rounded formats. */
static inline uint64_t pn_act_bytes(pn_act act, int64_t k)
{
    return act == PN_ACT_F32 ? (uint64_t)k * 4 : act == PN_ACT_32 ? (uint64_t)k / 32 * sizeof(pn_act32) : (uint64_t)k / 256 * sizeof(pn_act256);
}

#endif
