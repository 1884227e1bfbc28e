/* tests/base_math.c - pn_* against long double: the largest error in ulp over the whole range used; extremes; the same bits on every machine. */
#include "base/math.h"
#include "test.h"

#include <float.h>
#include <math.h>

/* Where long double is emulated (aarch64 has 113 bits) sweeps are coarser. */
enum { COARSE = LDBL_MANT_DIG > 64 ? 61 : 1 };

/* Distance in units of the last place of the true value; denormals have a place of 2^-149 (2^-1074). */
static double ulp_error(long double got, long double want, int digits, int lowest)
{
    if (isinf(got) && isinf(want) && (got > 0) == (want > 0)) return 0;
    if (want == 0) return got == 0 ? 0 : HUGE_VAL;
    int e;
    frexpl(want, &e);
    const int place = e - digits < lowest ? lowest : e - digits;
    return (double)fabsl(ldexpl(got - want, -place));
}

static long double silu_l(long double x) { return x / (1 + expl(-x)); }
static long double sigmoid_l(long double x) { return 1 / (1 + expl(-x)); }
static long double softplus_l(long double x) { return x > 20 ? x + expl(-x) : log1pl(expl(x)); }
static long double gelu_l(long double x) { return x / (1 + expl(-2 * 0.79788456080286535587989211986876373695L * x * (1 + 0.044715L * x * x))); }

typedef struct float_case {
    const char *name;
    float (*fn)(float);
    long double (*truth)(long double);
    float low, high;
    double bound; /* ulp of the result */
} float_case;

static const float_case float_cases[] = {
    {"expf", pn_expf, expl, -87.3f, 88.72f, 0.92},
    {"expf, denormal results", pn_expf, expl, -104.0f, -87.3f, 1.0},
    {"tanhf", pn_tanhf, tanhl, -20.0f, 20.0f, 2.6},
    {"silu", pn_silu, silu_l, -87.0f, FLT_MAX, 2.5},
    {"sigmoid", pn_sigmoid, sigmoid_l, -87.0f, FLT_MAX, 2.5},
    {"softplus", pn_softplus, softplus_l, -87.0f, FLT_MAX, 0.502},
    {"gelu", pn_gelu, gelu_l, -1.0f, FLT_MAX, 3.0},
    {"logf", pn_logf, logl, FLT_TRUE_MIN, FLT_MAX, 0.501},
    {"sinf", pn_sinf, sinl, -0x1p30f, 0x1p30f, 0.501},
    {"cosf", pn_cosf, cosl, -0x1p30f, 0x1p30f, 0.501},
};

/* Over bit patterns, so that small magnitudes weigh as much as large ones. */
static void sweep(const float_case *c)
{
    double worst = 0;
    float at = 0;
    for (uint64_t u = 0; u <= UINT32_MAX; u += 1009 * COARSE) {
        const float x = pn_bits_float((uint32_t)u);
        if (!(x >= c->low && x <= c->high)) continue;
        const double e = ulp_error((long double)c->fn(x), c->truth((long double)x), 24, -149);
        if (e <= worst) continue;
        worst = e;
        at = x;
    }
    printf("%s: %.4f ulp at %a\n", c->name, worst, (double)at);
    CHECK(c->name, worst > 0 && worst <= c->bound, "%.4f ulp at %a, allowed %.4f", worst, (double)at, c->bound);
}

/* Ranges that matter most, evenly: softmax and activations. */
static void sweep_evenly(const float_case *c, float low, float high)
{
    const int n = 400000 / COARSE;
    double worst = 0;
    for (int i = 0; i <= n; i++) {
        const float x = low + (high - low) * (float)i / (float)n;
        const double e = ulp_error((long double)c->fn(x), c->truth((long double)x), 24, -149);
        if (e > worst) worst = e;
    }
    CHECK(c->name, worst <= c->bound, "%.4f ulp between %g and %g, allowed %.4f", worst, (double)low, (double)high, c->bound);
}

/* Left of -1 GELU's tail vanishes and its last place with it; what counts there is the distance in units of x's last place. */
static void gelu_tail(void)
{
    double worst = 0;
    for (float x = -1.0f; x > -20.0f; x -= 0.00002f * COARSE) {
        int e;
        frexpf(x, &e);
        const double d = (double)fabsl(ldexpl((long double)pn_gelu(x) - gelu_l((long double)x), 24 - e));
        if (d > worst) worst = d;
    }
    CHECK("gelu's tail is within an ulp of x", worst <= 1.0, "%.4f", worst);
}

static void sweep_pow(void)
{
    unsigned long long seed = 7;
    double worst = 0;
    for (int i = 0; i < 400000 / COARSE; i++) {
        const float x = pn_bits_float((uint32_t)(pn_random(&seed) % 0x7f800000u)), y = (float)((double)(pn_random(&seed) >> 40) * 0x1p-20 - 8.0);
        const long double want = powl((long double)x, (long double)y);
        if (!(want < (long double)FLT_MAX) || x == 0) continue;
        const double e = ulp_error((long double)pn_powf(x, y), want, 24, -149);
        if (e > worst) worst = e;
    }
    CHECK("powf", worst <= 0.501, "%.4f ulp", worst);
}

static void sweep_doubles(void)
{
    unsigned long long seed = 5;
    double worst_exp = 0, worst_log = 0;
    for (int i = 0; i < 400000 / COARSE; i++) {
        const double unit = (double)(pn_random(&seed) >> 11) * 0x1p-53, x = i % 2 ? unit * 1454.0 - 745.0 : unit * 40.0 - 39.0;
        const double e = ulp_error((long double)pn_exp(x), expl((long double)x), 53, -1074);
        if (e > worst_exp) worst_exp = e;
        const uint64_t any = pn_random(&seed) % UINT64_C(0x7ff0000000000000);
        const double v = i % 2 ? pn_bits_double(any) : unit + 0.5; /* near 1 the logarithm cancels */
        if (v == 0) continue;
        const double l = ulp_error((long double)pn_log(v), logl((long double)v), 53, -1074);
        if (l > worst_log) worst_log = l;
    }
    printf("exp: %.4f ulp, log: %.4f ulp\n", worst_exp, worst_log);
    CHECK("exp", worst_exp <= 1.0, "%.4f ulp", worst_exp);
    CHECK("log", worst_log <= 1.0, "%.4f ulp", worst_log);
}

static void extremes(void)
{
    const float inf = INFINITY, nan = NAN, tiny = FLT_TRUE_MIN;
    static const struct { const char *what; float (*fn)(float); float x, want; } points[] = {
        {"exp(0)", pn_expf, 0.0f, 1.0f}, {"exp(-0)", pn_expf, -0.0f, 1.0f}, {"exp(inf)", pn_expf, (float)INFINITY, (float)INFINITY},
        {"exp(-inf)", pn_expf, -(float)INFINITY, 0.0f}, {"exp(88.8)", pn_expf, 88.8f, (float)INFINITY}, {"exp(1e30)", pn_expf, 1e30f, (float)INFINITY},
        {"exp(-104)", pn_expf, -104.0f, 0.0f}, {"exp(-1e30)", pn_expf, -1e30f, 0.0f}, {"exp of the last that is not 0", pn_expf, -0x1.9fe368p6f, FLT_TRUE_MIN},
        {"tanh(0)", pn_tanhf, 0.0f, 0.0f}, {"tanh(-0)", pn_tanhf, -0.0f, -0.0f}, {"tanh(10)", pn_tanhf, 10.0f, 1.0f}, {"tanh(-inf)", pn_tanhf, -(float)INFINITY, -1.0f},
        {"tanh(denormal)", pn_tanhf, FLT_TRUE_MIN, FLT_TRUE_MIN}, {"tanh(1e-20)", pn_tanhf, 1e-20f, 1e-20f},
        {"silu(0)", pn_silu, 0.0f, 0.0f}, {"silu(-200)", pn_silu, -200.0f, -0.0f}, {"silu(200)", pn_silu, 200.0f, 200.0f}, {"silu(inf)", pn_silu, (float)INFINITY, (float)INFINITY},
        {"gelu(0)", pn_gelu, 0.0f, 0.0f}, {"gelu(-50)", pn_gelu, -50.0f, -0.0f}, {"gelu(-1e30)", pn_gelu, -1e30f, -0.0f}, {"gelu(1e30)", pn_gelu, 1e30f, 1e30f},
        {"log(1)", pn_logf, 1.0f, 0.0f}, {"log(0)", pn_logf, 0.0f, -(float)INFINITY}, {"log(inf)", pn_logf, (float)INFINITY, (float)INFINITY},
        {"sin(0)", pn_sinf, 0.0f, 0.0f}, {"cos(0)", pn_cosf, 0.0f, 1.0f},
    };
    for (size_t i = 0; i < PN_COUNT(points); i++) {
        const float got = points[i].fn(points[i].x);
        CHECK("an extreme value", pn_float_bits(got) == pn_float_bits(points[i].want), "%s: %a, want %a", points[i].what, (double)got, (double)points[i].want);
    }
    float (*const all[])(float) = {pn_expf, pn_logf, pn_sinf, pn_cosf, pn_tanhf, pn_silu, pn_sigmoid, pn_softplus, pn_gelu};
    for (size_t i = 0; i < PN_COUNT(all); i++) CHECK("NaN gives NaN", isnan(all[i](nan)) && isnan(all[i](-nan)), "function %zu", i);
    CHECK("log of what is below 0 is NaN", isnan(pn_logf(-1.0f)) && isnan(pn_log(-tiny)) && isnan(pn_logf(-inf)), "%d", 0);
    CHECK("sin and cos beyond their range are NaN", isnan(pn_sinf(0x1.000002p30f)) && isnan(pn_cosf(-inf)), "%d", 0);
    CHECK("double exp ends where doubles end", pn_exp(710.0) == HUGE_VAL && pn_exp(709.7) < HUGE_VAL && pn_exp(-746.0) == 0 && pn_exp(-745.0) > 0, "%d", 0);
    CHECK("double exp and log keep NaN and infinity", isnan(pn_exp((double)nan)) && isnan(pn_log((double)nan)) && pn_exp(-HUGE_VAL) == 0 && pn_log(HUGE_VAL) == HUGE_VAL, "%d", 0);
    CHECK("powers of 0, 1 and by 0", pn_powf(1.0f, 5.0f) == 1.0f && pn_powf(7.0f, 0.0f) == 1.0f && pn_powf(0.0f, 2.0f) == 0.0f, "%d", 0);
}

static uint64_t mix(uint64_t hash, uint64_t v) { return (hash ^ v) * UINT64_C(0x100000001b3); }

/* Every machine and compiler gives these very bits. NaNs, whose payloads are free, are left out. */
static void pinned_bits(void)
{
    static const struct { const char *what; float (*fn)(float); uint64_t want; } pins[] = {
        {"expf", pn_expf, UINT64_C(0x68ad673b2d6b0b87)},   {"logf", pn_logf, UINT64_C(0xb00bf8cb8baa28b7)}, {"sinf", pn_sinf, UINT64_C(0xd4d8cd118a736f9e)}, {"cosf", pn_cosf, UINT64_C(0xc087980c53ad9a10)},
        {"tanhf", pn_tanhf, UINT64_C(0x6d345c4abad9d12d)}, {"silu", pn_silu, UINT64_C(0x156e8259cdc0f3dd)}, {"gelu", pn_gelu, UINT64_C(0x9ee464b3800b4e38)},
    };
    for (size_t i = 0; i < PN_COUNT(pins); i++) {
        uint64_t hash = UINT64_C(0xcbf29ce484222325);
        for (uint64_t u = 0; u <= UINT32_MAX; u += 40009) {
            const float y = pins[i].fn(pn_bits_float((uint32_t)u));
            if (!isnan(y)) hash = mix(hash, pn_float_bits(y));
        }
        CHECK("the bits are the same everywhere", hash == pins[i].want, "%s: 0x%016" PRIx64, pins[i].what, hash);
    }
    uint64_t exp_hash = 0, log_hash = 0;
    for (int i = 0; i < 20000; i++) {
        const double x = (double)i * 0.07 - 740.0, e = pn_exp(x), l = pn_log((double)(i + 1) * 0x1.234567p-9);
        exp_hash = mix(exp_hash, pn_double_bits(e));
        log_hash = mix(log_hash, pn_double_bits(l));
    }
    CHECK("the bits of exp are the same everywhere", exp_hash == UINT64_C(0x3a82329cdd988fbc), "0x%016" PRIx64, exp_hash);
    CHECK("the bits of log are the same everywhere", log_hash == UINT64_C(0x8ce2213c06115809), "0x%016" PRIx64, log_hash);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(float_cases); i++) sweep(&float_cases[i]);
    sweep_evenly(&float_cases[0], -20.0f, 0.0f);
    sweep_evenly(&float_cases[2], -1.0f, 1.0f);
    sweep_evenly(&float_cases[3], -10.0f, 10.0f);
    sweep_evenly(&float_cases[4], -1.0f, 10.0f);
    sweep_evenly(&float_cases[6], 0.0f, 4096.0f);
    gelu_tail();
    sweep_pow();
    sweep_doubles();
    extremes();
    pinned_bits();
    return pn_done();
}
