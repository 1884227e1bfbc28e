/* How often each token is drawn, by chi-square against the probabilities that the formulas give; a seed gives one sequence and no other does;
 * choosing allocates nothing. */
#include "test.h"

#include "sample/sample_int.h"

#include <math.h>

enum { N = 12, DRAWS = 60000, LONG = 20000 };

static int allocations;
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n) { return allocations++, __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return allocations++, __real_calloc(n, size); }
void *__wrap_realloc(void *p, size_t n) { return allocations++, __real_realloc(p, n); }

static pn_sampler *open_sampler(const pinch_sampler_options *o, int32_t n_vocab)
{
    pn_sampler *s = NULL;
    pinch_error err = {PINCH_OK, ""};
    CHECK("a sampler opens", pn_sampler_open(&s, o, n_vocab, 256, NULL, NULL, NULL, 0, &err) == PINCH_OK, "%s", err.message);
    return s;
}

static pinch_sampler_options all_off(void)
{
    pinch_sampler_options o = pinch_sampler_options_default();
    o.temperature = 1;
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 0;
    o.seed = 42;
    return o;
}

/* want[i]: relative probabilities; 0: must never come. The bound is the 99.99 % quantile for 11 degrees of freedom, 39.1; fewer have a lower one. */
static void draws_like(const char *name, const pinch_sampler_options *o, const float *logits, const double *want)
{
    pn_sampler *s = open_sampler(o, N);
    if (!s) return;
    double total = 0, chi_square = 0;
    int count[N] = {0}, wrong = 0;
    for (int i = 0; i < N; i++) total += want[i];
    for (int i = 0; i < DRAWS; i++) {
        float used[N];
        memcpy(used, logits, sizeof used);
        count[pn_sampler_choose(s, used)]++;
    }
    for (int i = 0; i < N; i++) {
        const double expected = want[i] / total * DRAWS;
        if (want[i] == 0) wrong += count[i];
        else chi_square += (count[i] - expected) * (count[i] - expected) / expected;
    }
    CHECK("draws follow the distribution", wrong == 0 && chi_square < 39.1, "%s: chi-square %.1f, %d impossible draws", name, chi_square, wrong);
    pn_sampler_close(s);
}

static void distributions(void)
{
    float logits[N];
    double p[N], want[N], total = 0;
    for (int i = 0; i < N; i++) logits[i] = 0.35f * (float)((i * 5) % N); /* distinct, unsorted; p from 0.005 to 0.3 */
    for (int i = 0; i < N; i++) total += p[i] = exp((double)logits[i]);
    for (int i = 0; i < N; i++) p[i] /= total;
    pinch_sampler_options o = all_off();
    draws_like("softmax", &o, logits, p);

    o.temperature = 0.5f;
    for (int i = 0; i < N; i++) want[i] = p[i] * p[i];
    draws_like("temperature 0.5", &o, logits, want);

    o = all_off();
    o.top_k = 4;
    for (int i = 0; i < N; i++) want[i] = logits[i] > 0.35f * 7.5f ? p[i] : 0;
    draws_like("top-k 4", &o, logits, want);

    o = all_off();
    o.min_p = 0.2f;
    for (int i = 0; i < N; i++) want[i] = logits[i] >= 0.35f * 11 + logf(0.2f) ? p[i] : 0;
    draws_like("min-p 0.2", &o, logits, want);

    /* p >= 0.1 holds for the four best (0.30 0.21 0.15 0.104); with probability 0.4 only the fourth of them stays */
    o = all_off();
    o.xtc_probability = 0.4f;
    double kept = 0;
    for (int i = 0; i < N; i++) kept += logits[i] < 0.35f * 8.5f ? p[i] : 0;
    for (int i = 0; i < N; i++) want[i] = 0.6 * p[i] + (logits[i] < 0.35f * 8.5f ? 0.4 * p[i] / kept : 0);
    draws_like("XTC 0.4", &o, logits, want);
}

static void seeds(void)
{
    float *logits = malloc(LONG * sizeof *logits);
    unsigned long long state = 3;
    pinch_token first[64];
    for (int i = 0; logits && i < LONG; i++) logits[i] = (float)(pn_random(&state) % 1000) * 0.01f;
    pinch_sampler_options o = all_off();
    for (uint64_t seed = 7; logits && seed < 9; seed++) {
        o.seed = seed;
        pn_sampler *s = open_sampler(&o, LONG);
        int equal = 0;
        for (int round = 0; s && round < 2; round++) {
            for (int i = 0; i < 64; i++) {
                const pinch_token id = pn_sampler_choose(s, logits);
                if (seed == 7 && round == 0) first[i] = id;
                else equal += id == first[i];
            }
            if (seed == 7 && round == 1) CHECK("after reset a seed gives the same tokens", equal == 64, "%d of 64", equal);
            if (s) pn_sampler_reset(s);
        }
        if (seed == 8) CHECK("another seed gives others", equal < 32, "%d of 128", equal);
        pn_sampler_close(s);
    }
    free(logits);
}

/* The numbers themselves, so that a seed means the same in every build: SplitMix64 of 0 fills the state of xoshiro256**. */
static void numbers(void)
{
    pinch_sampler_options o = all_off();
    o.seed = 0;
    pn_sampler *s = open_sampler(&o, 2);
    if (!s) return;
    CHECK("the generator's first state", s->random[0] == 0xe220a8397b1dcdafu && s->random[1] == 0x6e789e6aa1b965f4u, "%llx", (unsigned long long)s->random[0]);
    const double u = pn_sample_uniform(s);
    CHECK("its first number", u == (double)(0x99ec5f36cb75f2b4u >> 11) * 0x1p-53, "%.17g", u);
    pn_sampler_close(s);
}

static void no_allocation(void)
{
    float *logits = malloc(LONG * sizeof *logits);
    for (int kind = 0; logits && kind < 4; kind++) {
        pinch_sampler_options o = kind == 0 ? pinch_sampler_options_default() : all_off();
        o.repeat_penalty = 1.1f;
        o.dry_multiplier = 1;
        o.typical_p = kind == 2 ? 0.9f : 1;
        o.top_p = 0.97f;
        o.mirostat = kind == 3 ? 2 : 0;
        pn_sampler *s = open_sampler(&o, LONG);
        const int before = allocations;
        for (int i = 0; s && i < 100; i++) {
            for (int k = 0; k < LONG; k++) logits[k] = (float)(k * 37 % 1001) * 0.01f;
            pn_sampler_accept(s, pn_sampler_choose(s, logits));
        }
        CHECK("choosing and accepting allocate nothing", allocations == before, "options %d: %d", kind, allocations - before);
        pn_sampler_close(s);
    }
    free(logits);
    CHECK("the counter counts", allocations > 0, "none");
}

int main(void)
{
    distributions();
    seeds();
    numbers();
    no_allocation();
    return pn_done();
}
