/* sample_select.c - from logits to one token: which candidates survive, and which of them is drawn.
 *
 * The vocabulary is neither copied nor sorted. A set is a pair of bounds on ranks; each sampler moves a bound. Bounds that depend on a sum of
 * probabilities are found digit by digit: one pass sums the weights of 2^11 buckets of ranks, the bucket in which the sum is reached is looked at
 * again, and at most PN_SAMPLE_LIST candidates are sorted. So the number of passes is bounded for flat distributions as well.
 *
 * Order of sums: over a list, descending logit; over the logits as they lie, per bucket by ascending id, then buckets by descending logit. */
#include "sample/sample_int.h"

#include "base/math.h"

#include <float.h>
#include <math.h>

/* ---- ranks --------------------------------------------------------------------------------------- */

static inline uint64_t rank_of(float logit, int32_t id)
{
    const uint32_t bits = pn_float_bits(logit + 0.0f); /* -0 is +0: equal logits go by id */
    const uint32_t ascending = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)~ascending << 32 | (uint32_t)id;
}
static inline float logit_of(uint64_t rank)
{
    const uint32_t ascending = ~(uint32_t)(rank >> 32);
    return pn_bits_float(ascending & 0x80000000u ? ascending ^ 0x80000000u : ~ascending);
}
static inline pinch_token id_of(uint64_t rank) { return (pinch_token)(uint32_t)rank; }

/* The last rank that a logit of at least t can have. */
static uint64_t last_rank(double t)
{
    float f = t < (double)-FLT_MAX ? -FLT_MAX : t > (double)FLT_MAX ? INFINITY : (float)t;
    if ((double)f < t) f = nextafterf(f, INFINITY);
    return rank_of(f, INT32_MAX);
}

/* Max-heap of ranks: the worst candidate is on top. */
static void sift_down(uint64_t *heap, int32_t n, int32_t i)
{
    const uint64_t moving = heap[i];
    for (int32_t child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && heap[child + 1] > heap[child]) child++;
        if (heap[child] <= moving) break;
        heap[i] = heap[child];
    }
    heap[i] = moving;
}
static void heapify(uint64_t *a, int32_t n)
{
    for (int32_t i = n / 2 - 1; i >= 0; i--) sift_down(a, n, i);
}
static void sort(uint64_t *a, int32_t n)
{
    int32_t sorted = 1;
    while (sorted < n && a[sorted - 1] <= a[sorted]) sorted++;
    if (sorted >= n) return;
    heapify(a, n);
    for (int32_t end = n - 1; end > 0; end--) {
        const uint64_t worst = a[0];
        a[0] = a[end];
        a[end] = worst;
        sift_down(a, end, 0);
    }
}

/* ---- sets ---------------------------------------------------------------------------------------- */

typedef struct set {
    const float *logits;   /* of the whole vocabulary */
    const uint64_t *list;  /* the candidates, ascending; NULL: the logits as they lie */
    int32_t n;             /* of the list or the vocabulary */
    uint64_t first, last;  /* ranks inside */
    double max;            /* largest logit inside; +inf is possible */
    bool typical;          /* then also: typical rank at most typical_last */
    double centre;         /* ln Z - H: what typical measures the distance of max - logit from */
    double typical_max;    /* `max` when the centre was taken */
    uint64_t typical_last;
} set;

static inline double below(double max, float logit) { return (double)logit == max ? 0.0 : (double)logit - max; } /* no inf - inf */

/* Ascending distance of -ln p from the entropy, rounded to float; ties by id. */
static inline uint64_t typical_rank(const set *v, float logit, pinch_token id)
{
    const float distance = (float)fabs(-below(v->typical_max, logit) + v->centre);
    return (uint64_t)pn_float_bits(distance) << 32 | (uint32_t)id;
}

/* Candidate i, if it is inside. */
static inline bool member(const set *v, int32_t i, uint64_t *rank)
{
    if (v->list) {
        *rank = v->list[i];
    } else {
        if (!(v->logits[i] > -INFINITY)) return false; /* NaN too */
        *rank = rank_of(v->logits[i], i);
    }
    if (*rank < v->first || *rank > v->last) return false;
    return !v->typical || typical_rank(v, logit_of(*rank), id_of(*rank)) <= v->typical_last;
}

/* Makes the set a list as soon as it fits. */
static void narrow(pn_sampler *s, set *v)
{
    int32_t n = 0;
    uint64_t rank;
    for (int32_t i = 0; i < v->n; i++) {
        if (!member(v, i, &rank)) continue;
        if (n == PN_SAMPLE_LIST) return;
        s->list[n++] = rank; /* over a list: never ahead of what is read */
    }
    sort(s->list, n);
    v->list = s->list;
    v->n = n;
    v->typical = false;
}

static uint64_t best(const set *v)
{
    uint64_t least = UINT64_MAX, rank;
    for (int32_t i = 0; i < v->n; i++) {
        if (member(v, i, &rank) && rank < least) least = rank;
    }
    return least;
}

/* ---- finding where a sum is reached ---------------------------------------------------------------- */

typedef struct measure {
    bool counting;      /* every candidate weighs 1 and the amount is a number of them; else it is a share of the total */
    bool by_typical;    /* order: ascending typical rank; else ascending rank */
    bool beyond;        /* reached when the sum is larger than the target; else when it is equal or larger */
    double temperature; /* weight = exp((logit - max) / temperature) */
    double amount;
} measure;

static inline double weight(const set *v, const measure *m, float logit)
{
    if (m->counting) return 1;
    const double d = below(v->max, logit);
    return d == 0 ? 1 : pn_exp(d / m->temperature);
}

typedef struct digits { /* ranks whose upper bits are known */
    uint64_t prefix;
    int shift; /* bits that are not; 64: nothing is known */
} digits;

static inline bool matches(const digits *d, uint64_t rank) { return d->shift == 64 || rank >> d->shift == d->prefix; }
static inline uint64_t order_of(const set *v, const measure *m, uint64_t rank)
{
    return m->by_typical ? typical_rank(v, logit_of(rank), id_of(rank)) : rank;
}

static void fill_buckets(pn_sampler *s, const set *v, const measure *m, const digits *d, int bits)
{
    memset(s->mass, 0, sizeof s->mass);
    memset(s->count, 0, sizeof s->count);
    for (int32_t i = 0; i < v->n; i++) {
        uint64_t rank;
        if (!member(v, i, &rank)) continue;
        const uint64_t at = order_of(v, m, rank);
        if (!matches(d, at)) continue;
        const size_t bucket = (size_t)(at >> (d->shift - bits)) & ((1u << bits) - 1);
        s->mass[bucket] += weight(v, m, logit_of(rank));
        s->count[bucket]++;
    }
}

static inline bool reached(const measure *m, double sum, double target) { return m->beyond ? sum > target : sum >= target; }

/* The bucket in which the target is reached, or the last that is not empty. *before: the sum ahead of it. */
static size_t pick_bucket(const pn_sampler *s, const measure *m, double target, double *before)
{
    size_t last = 0;
    double ahead_of_last = *before, sum = *before;
    for (size_t b = 0; b < PN_SAMPLE_BUCKETS; b++) {
        if (s->count[b] == 0) continue;
        last = b;
        ahead_of_last = sum;
        sum += s->mass[b];
        if (reached(m, sum, target)) break;
    }
    *before = ahead_of_last;
    return last;
}

/* The ranks (in the order of m) that match, sorted into s->sorted. */
static int32_t gather(pn_sampler *s, const set *v, const measure *m, const digits *d)
{
    int32_t n = 0;
    for (int32_t i = 0; i < v->n; i++) {
        uint64_t rank;
        if (!member(v, i, &rank)) continue;
        const uint64_t at = order_of(v, m, rank);
        if (matches(d, at)) s->sorted[n++] = at;
    }
    sort(s->sorted, n);
    return n;
}

static double sum_weights(const pn_sampler *s, const set *v, const measure *m, int32_t n)
{
    double sum = 0;
    for (int32_t i = 0; i < n; i++) sum += weight(v, m, v->logits[id_of(s->sorted[i])]);
    return sum;
}

/* Walks the set in the order of m and returns the place (rank or typical rank) at which the sum of weights reaches the amount; the
 * last place if it never does. *total (may be NULL): the sum over the set. The set must not be empty. */
static uint64_t find_cut(pn_sampler *s, const set *v, const measure *m, double *total)
{
    digits d = {0, 64};
    double before = 0, target = 0, all = 0;
    int32_t n = 0;
    if (v->list) {
        n = gather(s, v, m, &d);
        all = sum_weights(s, v, m, n);
        target = m->counting ? m->amount : m->amount * all;
    }
    while (n == 0) {
        const int bits = d.shift < PN_SAMPLE_DIGIT ? d.shift : PN_SAMPLE_DIGIT;
        fill_buckets(s, v, m, &d, bits);
        if (d.shift == 64) {
            for (size_t b = 0; b < PN_SAMPLE_BUCKETS; b++) all += s->mass[b];
            target = m->counting ? m->amount : m->amount * all;
        }
        const size_t bucket = pick_bucket(s, m, target, &before);
        d.prefix = d.prefix << bits | bucket;
        d.shift -= bits;
        if (s->count[bucket] <= PN_SAMPLE_LIST) n = gather(s, v, m, &d);
    }
    if (total) *total = all;
    for (int32_t i = 0; i < n - 1; i++) {
        before += weight(v, m, v->logits[id_of(s->sorted[i])]);
        if (reached(m, before, target)) return s->sorted[i];
    }
    return s->sorted[n - 1];
}

static double total_weight(const set *v, const measure *m, double *weighted_below)
{
    double sum = 0, sum_below = 0;
    for (int32_t i = 0; i < v->n; i++) {
        uint64_t rank;
        if (!member(v, i, &rank)) continue;
        const double w = weight(v, m, logit_of(rank));
        sum += w;
        if (w > 0) sum_below += w * below(v->max, logit_of(rank));
    }
    if (weighted_below) *weighted_below = sum_below;
    return sum;
}

/* ---- the chain -------------------------------------------------------------------------------------- */

enum { BLOCK = 32 };

typedef struct moments { /* of the finite logits */
    double n, sum, squares;
} moments;

/* The sums that top-n-sigma needs, by ascending id. */
static void add_moments(moments *stats, const float *logits, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const double l = (double)logits[i];
        if (!(fabs(l) < (double)INFINITY)) continue;
        stats->n += 1;
        stats->sum += l;
        stats->squares += l * l;
    }
}

/* A heap of the k best, and the worst logit among them once there are k: a later equal one has a higher id and loses. */
typedef struct top {
    uint64_t *heap;
    int32_t n, k;
    float worst;
} top;

static void top_offer(top *t, float logit, int32_t id)
{
    if (!(logit > t->worst)) return;
    if (t->n < t->k) {
        t->heap[t->n++] = rank_of(logit, id);
        if (t->n < t->k) return;
        heapify(t->heap, t->n);
    } else {
        t->heap[0] = rank_of(logit, id);
        sift_down(t->heap, t->n, 0);
    }
    t->worst = logit_of(t->heap[0]);
}

/* Few logits are among the best: a block without any costs one test. */
static bool any_above(const float *logits, float worst)
{
    int any = 0;
    for (int i = 0; i < BLOCK; i++) any |= logits[i] > worst;
    return any != 0;
}

/* The k best logits become the list. `stats`, if not NULL, gets its sums from the same pass. */
static void take_top_k(pn_sampler *s, set *v, int32_t k, moments *stats)
{
    top t = {s->list, 0, k, -INFINITY};
    for (int32_t i = 0; i < v->n; i += BLOCK) {
        const int32_t n = v->n - i < BLOCK ? v->n - i : BLOCK;
        if (stats) add_moments(stats, v->logits + i, n);
        if (n == BLOCK && !any_above(v->logits + i, t.worst)) continue;
        for (int32_t j = 0; j < n; j++) top_offer(&t, v->logits[i + j], i + j);
    }
    sort(s->list, t.n);
    v->list = s->list;
    v->n = t.n;
}

static void keep_at_least(set *v, double logit)
{
    const uint64_t last = last_rank(logit < v->max ? logit : v->max);
    if (last < v->last) v->last = last;
}

static void top_n_sigma(pn_sampler *s, set *v, const moments *stats)
{
    if (s->o.top_n_sigma <= 0 || stats->n == 0) return;
    const double mean = stats->sum / stats->n;
    const double variance = stats->squares / stats->n - mean * mean;
    keep_at_least(v, v->max - (double)s->o.top_n_sigma * sqrt(variance > 0 ? variance : 0));
    narrow(s, v);
}

static void long_top_k(pn_sampler *s, set *v)
{
    if (s->o.top_k <= PN_SAMPLE_LIST || s->o.top_k >= s->n_vocab || v->list) return;
    const measure m = {.counting = true, .amount = s->o.top_k};
    v->last = find_cut(s, v, &m, NULL);
    narrow(s, v);
}

static const measure plain = {.temperature = 1};

static void typical(pn_sampler *s, set *v)
{
    if (s->o.typical_p >= 1) return;
    double weighted_below;
    const double total = total_weight(v, &plain, &weighted_below);
    v->centre = weighted_below / total; /* ln Z - H, as H = ln Z - sum(w * below) / Z */
    v->typical_max = v->max;
    const measure m = {.by_typical = true, .beyond = true, .temperature = 1, .amount = (double)s->o.typical_p};
    v->typical_last = find_cut(s, v, &m, NULL);
    v->typical = true;
    v->max = (double)logit_of(best(v));
    narrow(s, v);
}

static void top_p(pn_sampler *s, set *v)
{
    if (s->o.top_p >= 1) return;
    const measure m = {.temperature = 1, .amount = (double)s->o.top_p};
    v->last = find_cut(s, v, &m, NULL);
    narrow(s, v);
}

static void min_p(pn_sampler *s, set *v)
{
    if (s->o.min_p <= 0) return;
    keep_at_least(v, v->max + pn_log((double)s->o.min_p));
    narrow(s, v);
}

/* Of the candidates at or above the threshold only the least probable stays. */
static void xtc(pn_sampler *s, set *v)
{
    if (s->o.xtc_probability <= 0 || s->o.xtc_threshold > 0.5f) return;
    if (pn_sample_uniform(s) > (double)s->o.xtc_probability) return;
    const double least = (double)s->o.xtc_threshold * total_weight(v, &plain, NULL);
    int32_t n = 0;
    uint64_t rank, last = 0;
    for (int32_t i = 0; i < v->n; i++) {
        if (!member(v, i, &rank) || weight(v, &plain, logit_of(rank)) < least) continue;
        n++;
        if (rank > last) last = rank;
    }
    if (n < 2) return;
    v->first = last;
    v->max = (double)logit_of(last);
    narrow(s, v);
}

static pinch_token draw(pn_sampler *s, const set *v)
{
    const double u = pn_sample_uniform(s);
    if (s->o.temperature <= 0) return id_of(best(v));
    const measure m = {.temperature = (double)s->o.temperature, .amount = u};
    return id_of(find_cut(s, v, &m, NULL));
}

/* How many candidates the pass with the heap keeps; 0: no such pass. The argmax is all that greedy needs, unless a sampler can drop it. */
static int32_t heap_size(const pinch_sampler_options *o)
{
    if (o->temperature <= 0 && o->typical_p >= 1 && o->xtc_probability <= 0) return 1;
    return o->top_k >= 1 && o->top_k <= PN_SAMPLE_LIST ? o->top_k : 0;
}

pinch_token pn_sample_select(pn_sampler *s, const float *logits)
{
    set v = {.logits = logits, .n = s->n_vocab, .last = UINT64_MAX};
    moments stats = {0, 0, 0};
    const int32_t k = heap_size(&s->o);
    if (k > 0) take_top_k(s, &v, k, s->o.top_n_sigma > 0 ? &stats : NULL);
    else if (s->o.top_n_sigma > 0) add_moments(&stats, logits, v.n);
    const uint64_t first = best(&v);
    if (first == UINT64_MAX) return -1;
    v.max = (double)logit_of(first);
    top_n_sigma(s, &v, &stats);
    long_top_k(s, &v);
    typical(s, &v);
    top_p(s, &v);
    min_p(s, &v);
    xtc(s, &v);
    return draw(s, &v);
}

pinch_token pn_sample_mirostat(pn_sampler *s, const float *logits)
{
    const double ln2 = 0.69314718055994530942;
    set v = {.logits = logits, .n = s->n_vocab, .last = UINT64_MAX};
    const uint64_t first = best(&v);
    if (first == UINT64_MAX) return -1;
    v.max = (double)logit_of(first);
    measure m = {.temperature = (double)s->o.temperature, .amount = pn_sample_uniform(s)};
    double surprise = 0;
    uint64_t drawn = first;
    if (m.temperature > 0) {
        const double ln_total = pn_log(total_weight(&v, &m, NULL));
        if (ln_total > s->mu * ln2) v.last = first; /* even the best surprises too much: it stays alone */
        else keep_at_least(&v, v.max + (ln_total - s->mu * ln2) * m.temperature);
        narrow(s, &v);
        double kept;
        drawn = find_cut(s, &v, &m, &kept);
        surprise = (pn_log(kept) - below(v.max, logit_of(drawn)) / m.temperature) / ln2;
    }
    s->mu -= (double)s->o.mirostat_eta * (surprise - (double)s->o.mirostat_tau);
    return id_of(drawn);
}
