/* quant/quantise.h - what the quantisers share: searches for scales, and rounding. */
#ifndef PN_QUANTISE_H
#define PN_QUANTISE_H

#include "quant/codes.h"

static inline void pn_put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* Nearest integer, ties to even, for |v| <= 4194303; any other v, NaN too, gives some integer within 2^22. */
static inline int pn_nearest(float v)
{
    return (int)(pn_float_bits(v + 12582912.0f) & 0x007fffffu) - 0x00400000;
}
static inline int pn_clamp(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
/* As pn_clamp; a NaN gives low. */
static inline float pn_clampf(float v, float low, float high) { return !(v > low) ? low : v > high ? high : v; }

/* The element of largest magnitude, with its sign; the first of equals; 0 for n = 0. */
float pn_largest(const float *x, int n);

/* Each search finds codes and a scale that make sum w * (scale * code - x)^2 small. */

/* Codes -N .. N-1, stored as 0 .. 2N-1. w NULL: x^2. */
float pn_search_symmetric(int n, int N, const float *x, const float *w, uint8_t *codes);
/* Codes -N .. N-1, stored as 0 .. 2N-1, each improved in turn, weighted by x^2. */
float pn_search_coordinate(int n, int N, const float *x, uint8_t *codes);
/* Codes 0 .. N for x >= 0. */
float pn_search_positive(int n, int N, const float *x, const float *w, uint8_t *codes);

/* Codes 0 .. N with x ~ scale * code - *min, *min >= 0: tries n_steps + 1 widenings of the range, first + step * i. */
typedef struct pn_min_search {
    int n, N;
    float first, step;
    int n_steps;
    bool absolute; /* minimises |difference| instead of its square */
} pn_min_search;
float pn_search_minimum(const pn_min_search *s, const float *x, const float *w, uint8_t *codes, float *min);

/* w = importance * sqrt(variance + x^2) */
void pn_weigh(float *w, const float *importance, const float *x, int n, float variance);
/* sum of squares over n, times `factor`, divided by n */
float pn_mean_square(const float *x, int64_t n, float factor);

/* pn_quantise_<type> is the member of pn_type_info. The grid types have none: theirs needs a search for near grid points. */
#define WEIGHT(lower, upper, elements, bytes, act) void pn_quantise_##lower(void *dst, const float *src, int64_t n, const float *importance);
#define NUMBER(lower, upper, elements, bytes)
#include "quant/types.def"
#undef WEIGHT
#undef NUMBER
#define pn_quantise_iq2_xxs NULL
#define pn_quantise_iq2_xs NULL
#define pn_quantise_iq2_s NULL
#define pn_quantise_iq3_xxs NULL
#define pn_quantise_iq3_s NULL
#define pn_quantise_iq1_s NULL
#define pn_quantise_iq1_m NULL

#endif
