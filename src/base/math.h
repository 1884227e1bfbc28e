/* base/math.h - exp, log, sin, cos, pow, tanh of our own: the same bits on every machine, because libms differ.
 *
 * Everything that may reach a logit uses these. Each states its error in ulp; tests/base_math.c checks it against long double over the whole range
 * used. Written with fmaf and IEEE operations only, so that each vector form (kernels/<isa>/) is bit-equal. */
#ifndef PN_MATH_H
#define PN_MATH_H

#include "base/base.h"

float pn_expf(float x);   /* x < -104: 0; x > 88.8: inf */
float pn_logf(float x);
float pn_sinf(float x);   /* |x| up to 2^20 at the stated error (rope angles are positions) */
float pn_cosf(float x);
float pn_powf(float x, float y); /* x > 0 */
float pn_tanhf(float x);
float pn_silu(float x);   /* x / (1 + exp(-x)) */
float pn_gelu(float x);   /* 0.5*x*(1 + tanh(0.7978845608028654*x*(1 + 0.044715*x*x))) */
/* double precision, for samplers and statistics: same rules */
double pn_exp(double x);
double pn_log(double x);

#endif
