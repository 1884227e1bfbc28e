/* sample.c - a sampler's life: open, the text it is told, choosing, random numbers. */
#include "sample/sample_int.h"

#include <math.h>
#include <stdlib.h>

/* ---- random numbers: xoshiro256** (Blackman, Vigna 2018), its state filled by SplitMix64 ------------ */

static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static void seed_random(pn_sampler *s)
{
    uint64_t state = s->o.seed;
    for (size_t i = 0; i < PN_COUNT(s->random); i++) s->random[i] = split_mix(&state);
}

static uint64_t rotate_left(uint64_t x, int n) { return x << n | x >> (64 - n); }

double pn_sample_uniform(pn_sampler *s)
{
    uint64_t *r = s->random;
    const uint64_t result = rotate_left(r[1] * 5, 7) * 9;
    const uint64_t t = r[1] << 17;
    r[2] ^= r[0];
    r[3] ^= r[1];
    r[1] ^= r[2];
    r[0] ^= r[3];
    r[2] ^= t;
    r[3] = rotate_left(r[3], 45);
    return (double)(result >> 11) * 0x1p-53;
}

/* ---- open ------------------------------------------------------------------------------------------- */

/* How many tokens an option looks back: -1 is the context, and no more than the context can matter. */
static int32_t window_of(int32_t last_n, int32_t n_ctx) { return last_n < 0 || last_n > n_ctx ? n_ctx : last_n; }

static pinch_status copy_lists(pn_sampler *s, const pinch_token *suppressed, size_t n_suppressed, pinch_error *err)
{
    const pinch_sampler_options *o = &s->o;
    s->bias = pn_alloc(o->n_logit_bias, sizeof *s->bias);
    s->suppressed = pn_alloc(n_suppressed, sizeof *s->suppressed);
    if (!s->bias || !s->suppressed) return pn_fail_memory(err, "logit bias", (uint64_t)o->n_logit_bias * sizeof *s->bias);
    if (o->n_logit_bias) memcpy(s->bias, o->logit_bias, o->n_logit_bias * sizeof *s->bias);
    for (size_t i = 0; i < n_suppressed; i++) {
        if (suppressed[i] >= 0 && suppressed[i] < s->n_vocab) s->suppressed[s->n_suppressed++] = suppressed[i];
    }
    return PINCH_OK;
}

static pinch_status open_history(pn_sampler *s, int32_t n_ctx, pinch_error *err)
{
    const pinch_sampler_options *o = &s->o;
    const bool penalties = !o->mirostat && (o->repeat_penalty != 1 || o->frequency_penalty != 0 || o->presence_penalty != 0);
    const bool dry = !o->mirostat && o->dry_multiplier > 0;
    s->repeat_window = penalties ? window_of(o->repeat_last_n, n_ctx) : 0;
    s->dry_window = dry ? window_of(o->dry_penalty_last_n, n_ctx) : 0;
    const int32_t n = s->repeat_window > s->dry_window ? s->repeat_window : s->dry_window;
    s->history.capacity = n;
    if (n == 0) return PINCH_OK;
    s->history.ring = pn_alloc((uint64_t)n, sizeof *s->history.ring);
    s->reversed = pn_alloc((uint64_t)s->dry_window, sizeof *s->reversed);
    s->z = pn_alloc((uint64_t)s->dry_window, sizeof *s->z);
    if (!s->history.ring || !s->reversed || !s->z || !pn_tally_open(&s->tally, n)) return pn_fail_memory(err, "the sampler's history", (uint64_t)n * 24);
    return s->dry_window ? pn_breakers_open(s, err) : PINCH_OK;
}

pinch_status pn_sampler_open(pn_sampler **out, const pinch_sampler_options *options, int32_t n_vocab, int32_t n_ctx, pn_piece_fn piece, const void *piece_ctx,
                             const pinch_token *suppressed, size_t n_suppressed, pinch_error *err)
{
    const pinch_sampler_options defaults = pinch_sampler_options_default();
    if (!options) options = &defaults;
    if (n_vocab < 1) return pn_fail(err, PINCH_ERR_ARGUMENT, "a sampler needs a vocabulary, this one has %" PRId32 " tokens", n_vocab);
    pinch_status st = pn_sampler_check(options, n_vocab, err);
    if (st) return st;
    pn_sampler *s = pn_alloc_zero(1, sizeof *s);
    if (!s) return pn_fail_memory(err, "a sampler", sizeof *s);
    s->o = *options;
    s->n_vocab = n_vocab;
    s->piece = piece;
    s->piece_ctx = piece_ctx;
    st = copy_lists(s, suppressed, n_suppressed, err);
    if (!st) st = open_history(s, n_ctx > 0 ? n_ctx : 0, err);
    if (st) {
        pn_sampler_close(s);
        return st;
    }
    s->o.logit_bias = NULL;
    s->o.dry_breakers = NULL;
    pn_sampler_reset(s);
    *out = s;
    return PINCH_OK;
}

void pn_sampler_close(pn_sampler *s)
{
    if (!s) return;
    free(s->bias);
    free(s->suppressed);
    free(s->history.ring);
    free(s->tally.slots);
    free(s->reversed);
    free(s->z);
    free(s->breakers.bytes);
    free(s->breakers.lengths);
    free(s->breakers.window);
    free(s);
}

void pn_sampler_reset(pn_sampler *s)
{
    seed_random(s);
    s->mu = 2 * (double)s->o.mirostat_tau;
    s->history.held = s->history.next = 0;
    s->breakers.n_kept = 0;
    s->breakers.since = 0;
}

/* ---- use -------------------------------------------------------------------------------------------- */

void pn_sampler_accept(pn_sampler *s, pinch_token id)
{
    pn_history *h = &s->history;
    if (h->capacity == 0 || id < 0 || id >= s->n_vocab) return;
    h->ring[h->next] = id;
    h->next = h->next + 1 == h->capacity ? 0 : h->next + 1;
    if (h->held < h->capacity) h->held++;
    if (s->dry_window) pn_breakers_see(s, id);
}

static bool is_suppressed(const pn_sampler *s, pinch_token id)
{
    for (size_t i = 0; i < s->n_suppressed; i++) {
        if (s->suppressed[i] == id) return true;
    }
    return false;
}

/* No logit is above -inf: the lowest id that is no NaN and not suppressed, else that is no NaN, else 0. */
static pinch_token choose_anyway(const pn_sampler *s, const float *logits)
{
    pinch_token fallback = -1;
    for (pinch_token id = 0; id < s->n_vocab; id++) {
        if (isnan(logits[id])) continue;
        if (!is_suppressed(s, id)) return id;
        if (fallback < 0) fallback = id;
    }
    return fallback < 0 ? 0 : fallback;
}

pinch_token pn_sampler_choose(pn_sampler *s, float *logits)
{
    pn_sample_bias(s, logits);
    pinch_token id;
    if (s->o.mirostat) {
        id = pn_sample_mirostat(s, logits);
    } else {
        pn_sample_penalties(s, logits);
        pn_sample_dry(s, logits);
        id = pn_sample_select(s, logits);
    }
    return id >= 0 ? id : choose_anyway(s, logits);
}
