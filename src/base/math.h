/* base/math.h - exp, log, sin, cos, pow, tanh of our own: the same bits on every machine, because libms differ.
 *
 * Everything that may reach a logit uses these. Each states its error in ulp; tests/base_math.c checks it against long double over the whole range
 * used. Written with fmaf and IEEE operations only, so that each vector form (kernels/<isa>/) is bit-equal. */
#ifndef PN_MATH_H
#define PN_MATH_H

#include "base/base.h"

/* The bits of a number, and the number that has these bits. */
static inline uint32_t pn_float_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline float pn_bits_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static inline uint64_t pn_double_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}
static inline double pn_bits_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Errors in ulp. The first five have vector forms: math_poly.h lists their operations. */
float pn_expf(float x);          /* 0.92; x < -104: 0; x > 88.8: inf; denormal results 1.0 */
float pn_tanhf(float x);         /* 2.6, near 0 too */
float pn_silu(float x);          /* 2.5; x / (1 + exp(-x)); -0 below -88.7 */
float pn_sigmoid(float x);       /* 2.5; 1 / (1 + exp(-x)); 0 below -88.7 */
float pn_gelu(float x);          /* 3 from -1 up, below 1 ulp of x; 0.5*x*(1 + tanh(0.7978845608028654*x*(1 + 0.044715*x*x))) */
float pn_logf(float x);          /* 0.501 */
float pn_softplus(float x);      /* 0.501; log(1 + exp(x)) */
float pn_sinf(float x);          /* 0.501 for |x| <= 2^30 (rope angles are positions), NaN beyond */
float pn_cosf(float x);          /* the same */
float pn_powf(float x, float y); /* 0.501; x >= 0 */
/* double precision, for samplers and statistics: 1.0 */
double pn_exp(double x);
double pn_log(double x);

#endif
