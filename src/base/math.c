/* base/math.c - the scalar definition of every transcendental function that may reach a logit.
 *
 * Single-precision functions with vector forms follow math_poly.h step by step. The others work in double with plain products and sums (no fma,
 * so no slow emulation on old machines) and round once at the end. Errors are largest seen against long double (tests/base_math.c), in ulp. */
#include "base/math.h"
#include "base/math_poly.h"

#include <float.h>
#include <math.h>

_Static_assert(FLT_EVAL_METHOD == 0, "floats must be rounded to their type: build 32-bit x86 with -msse2 -mfpmath=sse");

/* 2^k for k in the normal range; a NaN's garbage k wraps harmlessly. */
static float exp2_of(uint32_t k) { return pn_bits_float((k + 127u) << 23); }
static double exp2_of_double(uint64_t k) { return pn_bits_double((k + 1023u) << 52); }

/* ---- single precision, with vector forms ------------------------------------------------------ */

typedef struct reduced {
    float r;    /* x - i * ln 2 */
    float q;    /* (e^r - 1 - r) / r^2 */
    uint32_t i; /* two's complement */
} reduced;

static reduced reduce_exp(float x)
{
    float t = fmaf(x, PN_LOG2E, PN_EXPF_MAGIC);
    float n = t - PN_EXPF_MAGIC;
    float r = fmaf(n, -PN_LN2_HIGH, x);
    r = fmaf(n, -PN_LN2_LOW, r);
    float q = fmaf(PN_EXPF_C6, r, PN_EXPF_C5);
    q = fmaf(q, r, PN_EXPF_C4);
    q = fmaf(q, r, PN_EXPF_C3);
    q = fmaf(q, r, PN_EXPF_C2);
    return (reduced){r, q, pn_float_bits(t) - PN_EXPF_MAGIC_BITS};
}

/* 0.92 ulp; denormal results 1.0 ulp */
float pn_expf(float x)
{
    x = PN_EXPF_LOW > x ? PN_EXPF_LOW : x;
    x = PN_EXPF_HIGH < x ? PN_EXPF_HIGH : x;
    reduced e = reduce_exp(x);
    float p = fmaf(e.q, e.r, 1.0f);
    p = fmaf(p, e.r, 1.0f);
    uint32_t h = ((e.i + 256u) >> 1) - 128u; /* i >> 1 without shifting a negative number */
    return (p * exp2_of(h)) * exp2_of(e.i - h);
}

/* 2.6 ulp, near 0 too */
float pn_tanhf(float x)
{
    uint32_t u = pn_float_bits(x);
    float a = pn_bits_float(u & 0x7FFFFFFFu);
    a += a;
    a = PN_TANHF_HIGH < a ? PN_TANHF_HIGH : a;
    reduced t = reduce_exp(a);
    float w = t.r * t.r;
    float p = fmaf(w, t.q, t.r);
    float s = exp2_of(t.i);
    float e = fmaf(s, p, s - 1.0f);
    return pn_bits_float(pn_float_bits(e / (e + 2.0f)) | (u & 0x80000000u));
}

/* 2.5 ulp down to -87, then -0 */
float pn_silu(float x) { return x / (1.0f + pn_expf(-x)); }

/* 2.5 ulp */
float pn_sigmoid(float x) { return 1.0f / (1.0f + pn_expf(-x)); }

/* 3 ulp from -1 up; below, where it vanishes, 1 ulp of x */
float pn_gelu(float x)
{
    float w = x * x;
    float k = fmaf(w, PN_GELU_CUBE, PN_GELU_LINEAR);
    return x / (1.0f + pn_expf(x * k));
}

/* ---- double precision ------------------------------------------------------------------------- */

#define ROUND_MAGIC 0x1.8p52 /* adding it leaves a double of step 1 */
#define LN2_HIGH 0x1.62e42feep-1 /* 32 bits: n * LN2_HIGH is exact */
#define LN2_LOW 0x1.a39ef35793c76p-33

/* Coefficients of this section: minimax fits in 400-bit arithmetic. */
static double polynomial(const double *c, int degree, double x)
{
    double y = c[degree];
    for (int i = degree - 1; i >= 0; i--) y = y * x + c[i];
    return y;
}

/* 1 ulp */
double pn_exp(double x)
{
    static const double c[] = {0x1p-1, 0x1.555555555555bp-3, 0x1.5555555555559p-5, 0x1.111111110ebf1p-7, 0x1.6c16c16c14e11p-10, 0x1.a01a01b3a29c6p-13,
                               0x1.a01a01acd0353p-16, 0x1.71ddefd22b04ep-19, 0x1.27e4cf7a1e0b4p-22, 0x1.af6c5e4ac8f43p-26, 0x1.1f842bb41748cp-29};
    if (x < -746.0) return 0.0;
    if (x > 710.0) return (double)INFINITY;
    double t = x * 0x1.71547652b82fep+0 + ROUND_MAGIC, n = t - ROUND_MAGIC;
    double r = (x - n * LN2_HIGH) - n * LN2_LOW;
    double p = 1.0 + (r + r * r * polynomial(c, 10, r));
    uint64_t i = pn_double_bits(t) - pn_double_bits(ROUND_MAGIC), h = ((i + 2048u) >> 1) - 1024u;
    return (p * exp2_of_double(h)) * exp2_of_double(i - h);
}

/* 1 ulp */
double pn_log(double x)
{
    /* 2 atanh(s) = 2s + s^3 * poly(s^2) */
    static const double c[] = {0x1.5555555555592p-1, 0x1.999999997ff7ap-2, 0x1.24924941d646ap-2, 0x1.c71c5220b2c1ep-3,
                               0x1.746639d3b6566p-3, 0x1.39a2451409eb6p-3, 0x1.2effaaec06286p-3};
    if (!(x > 0.0)) return x == 0.0 ? -(double)INFINITY : (double)NAN;
    if (!(x <= DBL_MAX)) return x;
    double shift = 0.0;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        shift = 54.0;
    }
    /* m = x / 2^k in sqrt(1/2) .. sqrt(2) */
    uint64_t u = pn_double_bits(x), root = pn_double_bits(0x1.6a09e667f3bcdp-1);
    uint64_t k = (u - root) >> 52;
    double m = pn_bits_double(u - (k << 52)), n = (double)(int64_t)k;
    /* u - root of numbers below sqrt(1/2) wraps: the top 12 bits are then k + 4096 */
    if (k >= 2048) n -= 4096.0;
    n -= shift;
    double f = m - 1.0, s = f / (2.0 + f), z = s * s;
    return n * LN2_HIGH + (f - (s * (f - z * polynomial(c, 6, z)) - n * LN2_LOW));
}

/* ---- single precision by way of double -------------------------------------------------------- */

/* All of these: 0.501 ulp. */
float pn_logf(float x) { return (float)pn_log((double)x); }

/* log(1 + e) is e - e^2/2 as long as e^3 does not show */
float pn_softplus(float x)
{
    if (x > 20.0f) return x;
    const double e = pn_exp((double)x);
    return (float)(e < 0x1p-20 ? e - 0.5 * e * e : pn_log(1.0 + e));
}

float pn_powf(float x, float y) { return (float)pn_exp((double)y * pn_log((double)x)); }

/* pi/2 in three parts, 23 + 23 + 53 bits: n * the first two is exact for |n| < 2^30. */
#define HALF_PI_HIGH 0x1.921fb4p+0
#define HALF_PI_MIDDLE 0x1.4442dp-24
#define HALF_PI_LOW 0x1.8469898cc517p-48
#define TRIG_LIMIT 0x1p30f

/* sin(x + quarter * pi/2) */
static float sine(float x, uint64_t quarter)
{
    static const double sin_c[] = {-0x1.5555555555549p-3, 0x1.111111110f8abp-7, -0x1.a01a019c17fc2p-13,
                                   0x1.71de357d80a24p-19, -0x1.ae5e6af199a0ep-26, 0x1.5d946b91b4bdep-33};
    static const double cos_c[] = {0x1.5555555553152p-5, -0x1.6c16c167722d5p-10, 0x1.a019fab1abfc5p-16, -0x1.27e02de656ad8p-22, 0x1.1bc8dd8d76a15p-29};
    if (!(x >= -TRIG_LIMIT && x <= TRIG_LIMIT)) return NAN;
    double t = (double)x * 0x1.45f306dc9c883p-1 + ROUND_MAGIC, n = t - ROUND_MAGIC;
    double r = (((double)x - n * HALF_PI_HIGH) - n * HALF_PI_MIDDLE) - n * HALF_PI_LOW, z = r * r;
    quarter += pn_double_bits(t);
    double v = (quarter & 1) ? 1.0 - z * 0.5 + z * z * polynomial(cos_c, 4, z) : r + r * z * polynomial(sin_c, 5, z);
    return (float)((quarter & 2) ? -v : v);
}

float pn_sinf(float x) { return sine(x, 0); }
float pn_cosf(float x) { return sine(x, 1); }
