/* base/math_poly.h - the polynomials behind exp, tanh, SiLU and GELU, written once for scalar and for every vector width.
 *
 * A vector form performs, in each lane, exactly the operations listed here, each rounded once (IEEE nearest even, denormals kept); then it is
 * bit-equal to the scalar form in math.c. fma(a, b, c) is a*b + c rounded once; everything else is a single rounded operation.
 * Where an input is NaN the result is a NaN, of any payload. Conditional picks are written so that x86's min/max give them as they are:
 *   min(a, b) = a < b ? a : b (b when either is NaN), max(a, b) = a > b ? a : b. NEON's vminq/vmaxq propagate the NaN: equally good.
 *
 * expf(x)
 *   x  = min(PN_EXPF_HIGH, max(PN_EXPF_LOW, x))         in this operand order: a NaN stays x
 *   t  = fma(x, PN_LOG2E, PN_EXPF_MAGIC)                the integer nearest x*log2(e) now stands in the low bits of t
 *   n  = t - PN_EXPF_MAGIC                              as a float
 *   r  = fma(n, -PN_LN2_HIGH, x);  r = fma(n, -PN_LN2_LOW, r)          |r| <= 0.3467
 *   q  = C6;  q = fma(q, r, C5);  q = fma(q, r, C4);  q = fma(q, r, C3);  q = fma(q, r, C2)
 *   p  = fma(q, r, 1);  p = fma(p, r, 1)                e^r, in 0.70 .. 1.42
 *   i  = bits(t) - bits(PN_EXPF_MAGIC) as int32;  h = i >> 1 (towards minus infinity)
 *   result = (p * 2^h) * 2^(i - h)                      2^k is the float of bits (k + 127) << 23; only the second product may round.
 *                                                       An instruction that scales with one rounding (vscalefps with n) gives the same bits.
 *   Below -103.98 the result is 0, above 88.73 infinity, denormal results are rounded correctly from p.
 *
 * tanhf(x)
 *   a  = min(PN_TANHF_HIGH, |x| + |x|)                  in this operand order
 *   t, n, r, q as in expf(a), without its clamp
 *   w  = r * r;  p = fma(w, q, r)                       e^r - 1
 *   s  = 2^i, the float of bits (i + 127) << 23         0 <= i <= 29
 *   e  = fma(s, p, s - 1)                               e^a - 1, in full precision near 0
 *   result = e / (e + 2), with the sign bit of x
 *
 * silu(x) = x / (1 + expf(-x))                           expf overflows for x < -88.73: -0 there; -inf gives NaN
 *
 * sigmoid(x) = 1 / (1 + expf(-x))
 *
 * gelu(x), the tanh form: 0.5*x*(1 + tanh(u)) = x / (1 + exp(-2u)), which cancels nowhere
 *   w  = x * x
 *   k  = fma(w, PN_GELU_CUBE, PN_GELU_LINEAR)           both constants carry the factor -2*sqrt(2/pi)
 *   result = x / (1 + expf(x * k)) */
#ifndef PN_MATH_POLY_H
#define PN_MATH_POLY_H

#define PN_EXPF_LOW (-105.0f)
#define PN_EXPF_HIGH 89.0f
#define PN_EXPF_MAGIC 0x1.8p23f /* bits 0x4B400000; adding it leaves a float of step 1 */
#define PN_EXPF_MAGIC_BITS 0x4B400000u
#define PN_LOG2E 0x1.715476p+0f
#define PN_LN2_HIGH 0x1.62e4p-1f /* 15 bits: n * PN_LN2_HIGH is exact */
#define PN_LN2_LOW 0x1.7f7d1cp-20f

/* Minimax of (e^r - 1 - r) / r^2 over |r| <= ln(2)/2, weighted by r^2: error 2^-28.2 of e^r. */
#define PN_EXPF_C2 0x1p-1f
#define PN_EXPF_C3 0x1.55549p-3f
#define PN_EXPF_C4 0x1.555488p-5f
#define PN_EXPF_C5 0x1.123adp-7f
#define PN_EXPF_C6 0x1.6d8aep-10f

#define PN_TANHF_HIGH 20.0f /* tanh(10) is 1 to float precision */

#define PN_GELU_LINEAR (-0x1.988454p+0f) /* -2 * sqrt(2/pi) */
#define PN_GELU_CUBE (-0x1.2444f2p-4f)   /* -2 * sqrt(2/pi) * 0.044715 */

#define PN_CLAMPED_LIMIT 7.0f   /* of the gated activation of gpt-oss */
#define PN_CLAMPED_ALPHA 1.702f

#endif
