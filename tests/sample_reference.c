/* Every sampler against a plain one that copies and sorts the whole vocabulary: the same options, logits and random numbers must give the same
 * token, draw after draw, for short and long vocabularies, peaked and flat logits, ties, infinities and NaNs. */
#include "test.h"

#include "base/math.h"
#include "sample/sample_int.h"

#include <math.h>

typedef struct item {
    float logit;
    pinch_token id;
    double p, distance;
} item;

typedef struct reference {
    item *items;
    int n;
    const pinch_sampler_options *o;
    pn_sampler random; /* a copy of the sampler, for its numbers alone */
    double mu;
} reference;

static int by_logit(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}
static int by_distance(const void *a, const void *b)
{
    const item *x = a, *y = b;
    if ((float)x->distance != (float)y->distance) return (float)x->distance < (float)y->distance ? -1 : 1;
    return x->id < y->id ? -1 : 1;
}

static void softmax(reference *r, double temperature)
{
    double sum = 0;
    for (int i = 0; i < r->n; i++) {
        const double d = (double)r->items[i].logit - (double)r->items[0].logit;
        r->items[i].p = isnan(d) || d == 0 ? 1 : pn_exp(d / temperature);
        sum += r->items[i].p;
    }
    for (int i = 0; i < r->n; i++) r->items[i].p /= sum;
}

static void reference_sigma(reference *r, const float *logits, int n_vocab)
{
    if (r->o->top_n_sigma <= 0) return;
    double n = 0, mean = 0, square = 0;
    for (int i = 0; i < n_vocab; i++) {
        if (isfinite(logits[i])) n += 1, mean += (double)logits[i];
    }
    if (n == 0) return;
    mean /= n;
    for (int i = 0; i < n_vocab; i++) {
        if (isfinite(logits[i])) square += ((double)logits[i] - mean) * ((double)logits[i] - mean);
    }
    const double least = (double)r->items[0].logit - (double)r->o->top_n_sigma * sqrt(square / n);
    while (r->n > 1 && (double)r->items[r->n - 1].logit < least) r->n--;
}

static void reference_typical(reference *r)
{
    if (r->o->typical_p >= 1) return;
    softmax(r, 1);
    double entropy = 0, sum = 0;
    for (int i = 0; i < r->n; i++) entropy -= r->items[i].p > 0 ? r->items[i].p * pn_log(r->items[i].p) : 0;
    for (int i = 0; i < r->n; i++) r->items[i].distance = r->items[i].p > 0 ? fabs(-pn_log(r->items[i].p) - entropy) : (double)INFINITY;
    qsort(r->items, (size_t)r->n, sizeof *r->items, by_distance);
    int kept = 0;
    while (kept < r->n && sum <= (double)r->o->typical_p) sum += r->items[kept++].p;
    r->n = kept;
    qsort(r->items, (size_t)r->n, sizeof *r->items, by_logit);
}

static void reference_top_p(reference *r)
{
    if (r->o->top_p >= 1) return;
    softmax(r, 1);
    double sum = 0;
    int kept = 0;
    while (kept < r->n && (kept == 0 || sum < (double)r->o->top_p)) sum += r->items[kept++].p;
    r->n = kept;
}

static void reference_min_p(reference *r)
{
    if (r->o->min_p <= 0) return;
    const double least = (double)r->items[0].logit + pn_log((double)r->o->min_p);
    while (r->n > 1 && (double)r->items[r->n - 1].logit < least) r->n--;
}

static void reference_xtc(reference *r)
{
    if (r->o->xtc_probability <= 0 || r->o->xtc_threshold > 0.5f) return;
    if (pn_sample_uniform(&r->random) > (double)r->o->xtc_probability) return;
    softmax(r, 1);
    int above = 0;
    while (above < r->n && r->items[above].p >= (double)r->o->xtc_threshold) above++;
    if (above < 2) return;
    r->n -= above - 1;
    memmove(r->items, r->items + above - 1, (size_t)r->n * sizeof *r->items);
}

static int reference_draw(reference *r)
{
    const double u = pn_sample_uniform(&r->random);
    if (r->o->temperature <= 0) return 0;
    softmax(r, (double)r->o->temperature);
    double sum = 0;
    for (int i = 0; i < r->n; i++) {
        sum += r->items[i].p;
        if (sum >= u) return i;
    }
    return r->n - 1;
}

static void load(reference *r, const float *logits, int n_vocab)
{
    r->n = 0;
    for (int i = 0; i < n_vocab; i++) {
        if (logits[i] > -INFINITY) r->items[r->n++] = (item){logits[i], i, 0, 0};
    }
    qsort(r->items, (size_t)r->n, sizeof *r->items, by_logit);
}

static pinch_token reference_choose(reference *r, const float *logits, int n_vocab)
{
    load(r, logits, n_vocab);
    if (r->n == 0) return -1;
    reference_sigma(r, logits, n_vocab);
    if (r->o->top_k > 0 && r->o->top_k < r->n) r->n = r->o->top_k;
    reference_typical(r);
    reference_top_p(r);
    reference_min_p(r);
    reference_xtc(r);
    return r->items[reference_draw(r)].id;
}

static pinch_token reference_mirostat(reference *r, const float *logits, int n_vocab)
{
    load(r, logits, n_vocab);
    if (r->n == 0) return -1;
    softmax(r, (double)r->o->temperature);
    int kept = 1;
    while (kept < r->n && -pn_log(r->items[kept].p) / 0.69314718055994530942 <= r->mu) kept++;
    r->n = kept;
    const int drawn = reference_draw(r);
    r->mu -= (double)r->o->mirostat_eta * (-pn_log(r->items[drawn].p) / 0.69314718055994530942 - (double)r->o->mirostat_tau);
    return r->items[drawn].id;
}

/* ---- cases ------------------------------------------------------------------------------------------ */

static double uniform(unsigned long long *state) { return (double)(pn_random(state) >> 11) * 0x1p-53; }

/* shape 0: like a model's; 1: flat; 2: steep; 3: a few values only (ties); 4: with infinities and NaNs */
static void fill(float *logits, int n, int shape, unsigned long long *state)
{
    static const double spread[] = {6, 0.01, 40, 4, 8};
    for (int i = 0; i < n; i++) {
        const double bell = uniform(state) + uniform(state) + uniform(state) + uniform(state) - 2;
        double l = spread[shape] * bell;
        if (shape == 3) l = floor(l);
        logits[i] = (float)l;
        if (shape == 4 && pn_random(state) % 7 == 0) logits[i] = pn_random(state) % 2 ? -INFINITY : NAN;
    }
    if (shape == 3) logits[n / 2] = -0.0f;
}

typedef struct setting {
    const char *name;
    float temperature;
    int32_t top_k;
    float typical, top_p, min_p, sigma, xtc_probability, xtc_threshold;
    float tau, eta; /* mirostat, when tau is above 0 */
} setting;

static const setting settings[] = {
    /*                         temp  top-k typical top-p   min-p  sigma xtc */
    {"defaults",               0.8f,   40, 1,      0.95f,  0.05f,  -1, 0, 0, 0, 0},
    {"draw alone",             1,       0, 1,      1,      0,      -1, 0, 0, 0, 0},
    {"greedy",                 0,       0, 1,      1,      0,      -1, 0, 0, 0, 0},
    {"top-k 1",                1,       1, 1,      1,      0,      -1, 0, 0, 0, 0},
    {"top-k 5",                1e6f,    5, 1,      1,      0,      -1, 0, 0, 0, 0},
    {"top-k 1500",             1e6f, 1500, 1,      1,      0,      -1, 0, 0, 0, 0},
    {"top-p 0.5",              1e6f,    0, 1,      0.5f,   0,      -1, 0, 0, 0, 0},
    {"top-p 0.999",            3,       0, 1,      0.999f, 0,      -1, 0, 0, 0, 0},
    {"top-p 0",                1,       0, 1,      0,      0,      -1, 0, 0, 0, 0},
    {"min-p 0.01",             1e6f,    0, 1,      1,      0.01f,  -1, 0, 0, 0, 0},
    {"min-p 1",                1,       0, 1,      1,      1,      -1, 0, 0, 0, 0},
    {"typical 0.7",            1e6f,    0, 0.7f,   1,      0,      -1, 0, 0, 0, 0},
    {"typical 0.2, greedy",    0,       0, 0.2f,   1,      0,      -1, 0, 0, 0, 0},
    {"typical of top-k 30",    1e6f,   30, 0.9f,   1,      0,      -1, 0, 0, 0, 0},
    {"sigma 1",                1e6f,    0, 1,      1,      0,       1, 0, 0, 0, 0},
    {"sigma 2 and top-k 50",   1,      50, 1,      1,      0,       2, 0, 0, 0, 0},
    {"xtc always",             1,       0, 1,      1,      0,      -1, 1, 0.01f, 0, 0},
    {"xtc, threshold 0",       1,      20, 1,      1,      0,      -1, 0.5f, 0, 0, 0},
    {"xtc, greedy",            0,       0, 1,      1,      0,      -1, 0.5f, 0.05f, 0, 0},
    {"all at once",            2,    2000, 0.95f,  0.9f,   0.001f,  3, 0.5f, 0.02f, 0, 0},
    {"mirostat",               1,       0, 1,      1,      0,      -1, 0, 0, 5, 0.1f},
    {"mirostat, low and hot",  1.5f,    0, 1,      1,      0,      -1, 0, 0, 0.5f, 1},
};

static pinch_sampler_options options_of(const setting *c)
{
    pinch_sampler_options o = pinch_sampler_options_default();
    o.seed = 1234;
    o.temperature = c->temperature;
    o.top_k = c->top_k;
    o.typical_p = c->typical;
    o.top_p = c->top_p;
    o.min_p = c->min_p;
    o.top_n_sigma = c->sigma;
    o.xtc_probability = c->xtc_probability;
    o.xtc_threshold = c->xtc_threshold;
    o.mirostat = c->tau > 0 ? 2 : 0;
    o.mirostat_tau = c->tau;
    o.mirostat_eta = c->eta;
    return o;
}

static void compare(const setting *c, int n_vocab, int shape, int draws)
{
    unsigned long long state = 77 + (unsigned)n_vocab * 10 + (unsigned)shape;
    float *logits = malloc((size_t)n_vocab * sizeof *logits), *used = malloc((size_t)n_vocab * sizeof *used);
    const pinch_sampler_options o = options_of(c);
    reference r = {.items = malloc((size_t)n_vocab * sizeof *r.items), .o = &o, .mu = 2 * (double)o.mirostat_tau};
    pn_sampler *s = NULL;
    pinch_error err = {PINCH_OK, ""};
    if (logits && used && r.items && CHECK("a sampler opens", pn_sampler_open(&s, &o, n_vocab, 512, NULL, NULL, NULL, 0, &err) == PINCH_OK, "%s: %s", c->name, err.message)) {
        int differing = 0, ours = 0, theirs = 0;
        r.random = *s;
        fill(logits, n_vocab, shape, &state);
        for (int i = 0; i < draws && !differing; i++) {
            memcpy(used, logits, (size_t)n_vocab * sizeof *used);
            theirs = o.mirostat ? reference_mirostat(&r, logits, n_vocab) : reference_choose(&r, logits, n_vocab);
            ours = pn_sampler_choose(s, used);
            if (theirs >= 0) differing = ours != theirs;
        }
        CHECK("the plain sampler chooses the same", !differing, "%s, %d tokens, shape %d: %d, plain %d", c->name, n_vocab, shape, ours, theirs);
    }
    pn_sampler_close(s);
    free(logits);
    free(used);
    free(r.items);
}

int main(void)
{
    static const int sizes[][2] = {{1, 3}, {2, 20}, {300, 60}, {5000, 12}, {40000, 2}};
    for (size_t c = 0; c < PN_COUNT(settings); c++) {
        for (size_t i = 0; i < PN_COUNT(sizes); i++) {
            for (int shape = 0; shape < 5; shape++) compare(&settings[c], sizes[i][0], shape, sizes[i][1]);
        }
    }
    return pn_done();
}
