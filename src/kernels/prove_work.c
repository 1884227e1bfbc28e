/* kernels/prove_work.c - guard pages, fills, comparison and timing for the proofs. Knows the places of scales in blocks, no kernel. */
#include "kernels/prove_work.h"

#include "base/cpu.h"
#include "base/math.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { pattern = 0xA7, margin = 512 }; /* bytes before a placed block that are watched */

pinch_status pn_guarded_open(pn_guarded *g, size_t bytes, pinch_error *err)
{
    const long page = sysconf(_SC_PAGESIZE);
    g->page = page > 0 ? (size_t)page : 65536;
    g->bytes = (size_t)pn_round_up(bytes, g->page);
    void *p = mmap(NULL, g->bytes + g->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        memset(g, 0, sizeof *g);
        return pn_fail_memory(err, "a buffer of the proofs", bytes);
    }
    g->base = p;
    if (mprotect(g->base + g->bytes, g->page, PROT_NONE) == 0) return PINCH_OK;
    pn_guarded_close(g);
    return pn_fail(err, PINCH_ERR_IO, "the system refuses to protect a page of memory");
}

void pn_guarded_close(pn_guarded *g)
{
    if (g->base) munmap(g->base, g->bytes + g->page);
    memset(g, 0, sizeof *g);
}

/* Where the margin before p begins. */
static uint8_t *margin_before(const pn_guarded *g, const void *p)
{
    const size_t before = (size_t)((const uint8_t *)p - g->base);
    return g->base + before - (before < margin ? before : margin);
}

void *pn_guarded_place(pn_guarded *g, size_t n, size_t align)
{
    if (n > g->bytes) return NULL;
    uint8_t *p = g->base + (g->bytes - n) / align * align, *from = margin_before(g, p);
    memset(from, pattern, (size_t)(g->base + g->bytes - from));
    return p;
}

static bool all_pattern(const uint8_t *from, const uint8_t *to)
{
    for (; from < to; from++)
        if (*from != pattern) return false;
    return true;
}

bool pn_guarded_intact(const pn_guarded *g, const void *p, size_t n)
{
    const uint8_t *at = p;
    return all_pattern(margin_before(g, p), at) && all_pattern(at + n, g->base + g->bytes);
}

/* xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift generators". */
uint64_t pn_prove_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

/* Uniform in -1..1. */
static float random_unit(uint64_t *random) { return (float)((int32_t)(pn_prove_random(random) >> 40) - (1 << 23)) * 0x1p-23f; }

static float random_bits(uint64_t *random) { return pn_bits_float((uint32_t)(pn_prove_random(random) >> 32)); }

/* ---- weights ---- */

enum weight_fill { w_random, w_low, w_high, w_alternating, w_zero_scale, w_infinite_scale, w_tiny_scale, w_any_bits };
static const char *const weight_fills[pn_n_weight_fills] = {"random codes",      "all codes 0",          "all codes highest", "alternating codes",
                                                            "scales of zero", "inf and NaN scales", "denormal scales",   "random bits"};
const char *pn_weight_fill_name(int fill) { return weight_fills[fill]; }

/* Where the half-precision numbers of a block lie. */
static const struct {
    pn_type type;
    int n;
    int at[2];
} halves[] = {
    {PN_Q4_0, 1, {0}},     {PN_Q4_1, 2, {0, 2}},  {PN_Q5_0, 1, {0}},    {PN_Q5_1, 2, {0, 2}}, {PN_Q8_0, 1, {0}},   {PN_IQ4_NL, 1, {0}}, {PN_Q1_0, 1, {0}},
    {PN_Q2_0, 1, {0}},     {PN_Q2_K, 2, {80, 82}}, {PN_Q3_K, 1, {108}},  {PN_Q4_K, 2, {0, 2}}, {PN_Q5_K, 2, {0, 2}}, {PN_Q6_K, 1, {208}}, {PN_IQ4_XS, 1, {0}},
    {PN_TQ1_0, 1, {52}},   {PN_TQ2_0, 1, {64}},   {PN_IQ2_XXS, 1, {0}}, {PN_IQ2_XS, 1, {0}},  {PN_IQ2_S, 1, {0}},  {PN_IQ3_XXS, 1, {0}}, {PN_IQ3_S, 1, {0}},
    {PN_IQ1_S, 1, {0}},
};

static uint16_t scale_bits(int fill, uint64_t *random)
{
    static const uint16_t odd[4] = {0x7c00, 0xfc00, 0x7e00, 0x3c00}; /* inf, -inf, NaN, 1 */
    const uint16_t bits = (uint16_t)(pn_prove_random(random) >> 48);
    switch (fill) {
    case w_zero_scale: return bits & 0x8000u;
    case w_infinite_scale: return odd[bits & 3u];
    case w_tiny_scale: return bits & 0x83ffu;
    default: return (uint16_t)((bits & 0x83ffu) | (8u + (bits >> 10 & 7u)) << 10); /* magnitudes 2^-7 to 2 */
    }
}

static void put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* iq1_m keeps its scale in the top four bits of four words. */
static void put_iq1_m_scale(uint8_t *block, uint16_t bits)
{
    for (int i = 0; i < 4; i++) block[49 + 2 * i] = (uint8_t)((block[49 + 2 * i] & 0x0f) | (bits >> 4 * i & 15) << 4);
}

/* 8-bit exponents of mxfp4: 2^-8 to 2^7 unless extremes are asked for. */
static uint8_t exponent_bits(int fill, uint64_t *random)
{
    static const uint8_t odd[4] = {255, 254, 250, 128};
    const uint8_t bits = (uint8_t)(pn_prove_random(random) >> 56);
    if (fill == w_zero_scale || fill == w_tiny_scale) return bits & 3u;
    return fill == w_infinite_scale ? odd[bits & 3u] : (uint8_t)(120 + (bits & 15u));
}

static void put_scales(uint8_t *block, pn_type type, int fill, uint64_t *random)
{
    for (size_t i = 0; i < PN_COUNT(halves); i++)
        for (int j = 0; halves[i].type == type && j < halves[i].n; j++) put_u16(block + halves[i].at[j], scale_bits(fill, random));
    if (type == PN_IQ1_M) put_iq1_m_scale(block, scale_bits(fill, random));
    if (type == PN_MXFP4) block[0] = exponent_bits(fill, random);
    if (type == PN_NVFP4 && fill == w_zero_scale) memset(block, 0, 4);
}

static void fill_codes(uint8_t *p, size_t n, int fill, uint64_t *random)
{
    switch (fill) {
    case w_low: memset(p, 0, n); return;
    case w_high: memset(p, 0xff, n); return;
    case w_alternating:
        for (size_t i = 0; i < n; i++) p[i] = i % 2 ? 0x5a : 0xa5;
        return;
    default:
        for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(pn_prove_random(random) >> 56);
    }
}

static void put_float(uint8_t *p, pn_type type, float f)
{
    uint32_t bits = pn_float_bits(f);
    if (type == PN_F16) bits = (uint32_t)pn_f32_to_f16(f) << 16;
    const size_t n = type == PN_F32 ? 4 : 2;
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(bits >> 8 * (4 - n + i));
}

static void fill_plain_floats(uint8_t *p, pn_type type, int64_t n, int fill, uint64_t *random)
{
    const uint32_t bytes = pn_type_get((uint32_t)type)->bytes;
    for (int64_t i = 0; i < n;) {
        float f[256];
        const int64_t some = pn_min64(n - i, 256);
        pn_fill_floats(f, some, fill, random);
        for (int64_t j = 0; j < some; j++, i++) put_float(p + i * bytes, type, f[j]);
    }
}

void pn_fill_weights(uint8_t *blocks, pn_type type, int64_t n_blocks, int fill, uint64_t *random)
{
    const pn_type_info *info = pn_type_get((uint32_t)type);
    if (info->act == PN_ACT_F32) {
        fill_plain_floats(blocks, type, n_blocks, fill, random);
        return;
    }
    for (int64_t b = 0; b < n_blocks; b++, blocks += info->bytes) {
        fill_codes(blocks, info->bytes, fill, random);
        if (fill != w_any_bits) put_scales(blocks, type, fill, random);
    }
}

/* ---- floats ---- */

enum float_fill { f_random, f_ones, f_minus_ones, f_alternating, f_zeros, f_outlier, f_infinite, f_any_bits };
static const char *const float_fills[pn_n_float_fills] = {"random", "all 1", "all -1", "1 and -1", "zeros", "one outlier", "inf and NaN", "random bits"};
const char *pn_float_fill_name(int fill) { return float_fills[fill]; }

static float fill_one(int fill, int64_t i, uint64_t *random)
{
    static const float odd[4] = {INFINITY, -INFINITY, NAN, 0x1p-140f};
    const uint64_t bits = pn_prove_random(random);
    switch (fill) {
    case f_ones: return 1;
    case f_minus_ones: return -1;
    case f_alternating: return i % 2 ? -1.0f : 1.0f;
    case f_zeros: return bits >> 63 ? -0.0f : 0.0f;
    case f_outlier: return i % 61 == 7 ? 3000.0f : random_unit(random);
    case f_infinite: return bits >> 59 == 0 ? odd[bits & 3u] : random_unit(random);
    case f_any_bits: return random_bits(random);
    default: return ldexpf(random_unit(random), (int)(bits >> 60) - 8);
    }
}

void pn_fill_floats(float *x, int64_t n, int fill, uint64_t *random)
{
    for (int64_t i = 0; i < n; i++) x[i] = fill_one(fill, i, random);
}

/* ---- comparison ---- */

void pn_prove_compare(pn_proof *proof, const float *got, const float *wanted, int64_t n)
{
    double largest = 0, difference = 0;
    proof->floats += (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        if (fabs((double)wanted[i]) > largest) largest = fabs((double)wanted[i]);
        if (memcmp(&got[i], &wanted[i], sizeof *got) == 0 || (isnan(got[i]) && isnan(wanted[i]))) continue;
        proof->differing++;
        const double d = fabs((double)got[i] - (double)wanted[i]);
        if (!(d <= difference)) difference = isnan(d) ? INFINITY : d;
    }
    if (difference == 0) return;
    const double relative = largest > 0 ? difference / largest : INFINITY;
    if (relative > proof->largest) proof->largest = relative;
}

void pn_prove_failure(pn_proof *proof, const char *format, ...)
{
    proof->held = false;
    if (proof->failure[0]) return;
    va_list args;
    va_start(args, format);
    vsnprintf(proof->failure, sizeof proof->failure, format, args);
    va_end(args);
}

/* ---- time ---- */

/* Seconds of processor that this thread has had: other programs on the machine do not count. */
static double thread_seconds(void)
{
    struct timespec t;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) != 0) return pn_now();
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double pn_prove_time(void (*call)(void *user), void *user, double seconds)
{
    enum { least = 5 }; /* batches that count, however long they take */
    double best = INFINITY;
    const double start = thread_seconds();
    int batch = 1, counted = 0;
    do {
        const double from = thread_seconds();
        for (int i = 0; i < batch; i++) call(user);
        const double took = thread_seconds() - from;
        if (took < 0.0002 && batch < 1 << 20) { /* too short to be timed well */
            batch *= 2;
            continue;
        }
        counted++;
        if (took / batch < best) best = took / batch;
    } while (counted < least || thread_seconds() - start < seconds);
    return best;
}
