/* sample_penalty.c - logit bias, repeat, frequency and presence penalties, DRY.
 *
 * Touches only the logits of tokens that are named by an option or by the text. */
#include "sample/sample_int.h"

#include "base/math.h"

#include <math.h>
#include <stdlib.h>

/* ---- tally ------------------------------------------------------------------------------------ */

bool pn_tally_open(pn_tally *t, int32_t n_tokens)
{
    uint64_t size = 16;
    while (size < 2 * (uint64_t)n_tokens) size *= 2;
    t->slots = pn_alloc_zero(size, sizeof *t->slots);
    t->mask = (uint32_t)(size - 1);
    return t->slots != NULL;
}

static void tally_clear(pn_tally *t)
{
    if (++t->epoch) return;
    memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof *t->slots);
    t->epoch = 1;
}

/* The slot of a token, with value 0 when it is new. */
static pn_tally_slot *tally_at(pn_tally *t, pinch_token token)
{
    uint32_t i = (uint32_t)token * 2654435769u; /* 2^32 / golden ratio: spreads neighbours */
    for (i ^= i >> 15;; i++) {
        pn_tally_slot *slot = &t->slots[i & t->mask];
        if (slot->epoch != t->epoch) {
            *slot = (pn_tally_slot){t->epoch, token, 0};
            return slot;
        }
        if (slot->token == token) return slot;
    }
}

/* Token `back` places before the end: 0 is the newest. */
static pinch_token token_back(const pn_history *h, int32_t back)
{
    int32_t i = h->next - 1 - back;
    return h->ring[i < 0 ? i + h->capacity : i];
}

/* ---- bias and penalties ------------------------------------------------------------------------ */

void pn_sample_bias(pn_sampler *s, float *logits)
{
    for (size_t i = 0; i < s->o.n_logit_bias; i++) logits[s->bias[i].token] += s->bias[i].bias;
    for (size_t i = 0; i < s->n_suppressed; i++) logits[s->suppressed[i]] = -INFINITY;
}

void pn_sample_penalties(pn_sampler *s, float *logits)
{
    const pinch_sampler_options *o = &s->o;
    const int32_t n = s->history.held < s->repeat_window ? s->history.held : s->repeat_window;
    if (n == 0) return;
    tally_clear(&s->tally);
    for (int32_t i = 0; i < n; i++) tally_at(&s->tally, token_back(&s->history, i))->value++;
    for (int32_t i = 0; i < n; i++) {
        pn_tally_slot *slot = tally_at(&s->tally, token_back(&s->history, i));
        if (slot->value == 0) continue; /* done at a newer place */
        float *l = &logits[slot->token];
        *l = *l > 0 ? *l / o->repeat_penalty : *l * o->repeat_penalty;
        *l -= (float)slot->value * o->frequency_penalty + o->presence_penalty;
        slot->value = 0;
    }
}

/* ---- DRY ---------------------------------------------------------------------------------------- */

static const char *const default_breakers[] = {"\n", ":", "\"", "*"};

static size_t longest_piece(const pn_sampler *s)
{
    size_t longest = 0;
    for (pinch_token id = 0; id < s->n_vocab; id++) {
        const size_t n = s->piece(s->piece_ctx, id, NULL, 0);
        if (n > longest) longest = n;
    }
    return longest;
}

pinch_status pn_breakers_open(pn_sampler *s, pinch_error *err)
{
    pn_breakers *b = &s->breakers;
    const char *const *texts = s->o.dry_breakers ? s->o.dry_breakers : default_breakers;
    b->n = s->o.dry_breakers ? s->o.n_dry_breakers : PN_COUNT(default_breakers);
    if (!s->piece) b->n = 0;
    if (b->n == 0) return PINCH_OK;
    size_t total = 0;
    for (size_t i = 0; i < b->n; i++) {
        const size_t n = strlen(texts[i]);
        total += n;
        if (n > b->longest) b->longest = n;
    }
    b->piece_capacity = longest_piece(s);
    b->bytes = pn_alloc(total, 1);
    b->lengths = pn_alloc(b->n, sizeof *b->lengths);
    b->window = pn_alloc(b->longest + b->piece_capacity, 1);
    if (!b->bytes || !b->lengths || !b->window) return pn_fail_memory(err, "sequence breakers", total + b->longest + b->piece_capacity);
    size_t at = 0;
    for (size_t i = 0; i < b->n; i++) {
        b->lengths[i] = strlen(texts[i]);
        memcpy(b->bytes + at, texts[i], b->lengths[i]);
        at += b->lengths[i];
    }
    return PINCH_OK;
}

/* Does a breaker end in the window at or after byte `from`? */
static bool breaker_ends(const pn_breakers *b, size_t n_window, size_t from)
{
    const char *text = b->bytes;
    for (size_t i = 0; i < b->n; text += b->lengths[i++]) {
        const size_t n = b->lengths[i];
        const size_t start = from + 1 > n ? from + 1 - n : 0;
        if (n_window > start && memmem(b->window + start, n_window - start, text, n)) return true;
    }
    return false;
}

void pn_breakers_see(pn_sampler *s, pinch_token id)
{
    pn_breakers *b = &s->breakers;
    if (b->since < INT32_MAX) b->since++;
    if (b->n == 0) return;
    size_t n = s->piece(s->piece_ctx, id, b->window + b->n_kept, b->piece_capacity);
    if (n > b->piece_capacity) n = b->piece_capacity;
    const size_t n_window = b->n_kept + n;
    if (breaker_ends(b, n_window, b->n_kept)) b->since = 0;
    const size_t keep = n_window < b->longest - 1 ? n_window : b->longest - 1;
    memmove(b->window, b->window + n_window - keep, keep);
    b->n_kept = keep;
}

/* z[i] = how many tokens from i on equal those from 0 on (Gusfield's Z function, linear time). */
static void z_function(int32_t *z, const pinch_token *t, int32_t n)
{
    int32_t left = 0, right = 0; /* [left, right): the match that reaches farthest so far */
    z[0] = n;
    for (int32_t i = 1; i < n; i++) {
        int32_t m = 0;
        if (i < right) m = z[i - left] < right - i ? z[i - left] : right - i;
        while (i + m < n && t[m] == t[i + m]) m++;
        z[i] = m;
        if (i + m > right) {
            left = i;
            right = i + m;
        }
    }
}

/* multiplier * base^exponent. ln(FLT_MAX) = 88.72 bounds the power, FLT_MAX / 4 the product, so that a finite logit stays finite. */
static float dry_penalty(const pinch_sampler_options *o, int32_t exponent)
{
    const double ln_base = pn_log((double)o->dry_base);
    double e = (double)exponent * ln_base;
    if (e > 88.0) e = 88.0;
    const double penalty = (double)o->dry_multiplier * pn_exp(e);
    return penalty < 0x1p126 ? (float)penalty : 0x1p126f;
}

void pn_sample_dry(pn_sampler *s, float *logits)
{
    const pinch_sampler_options *o = &s->o;
    const int32_t n = s->history.held < s->dry_window ? s->history.held : s->dry_window;
    const int32_t reach = s->breakers.since < n ? s->breakers.since : n; /* no match may hold a breaker */
    if (n < 2 || reach < o->dry_allowed_length) return;
    for (int32_t i = 0; i < n; i++) s->reversed[i] = token_back(&s->history, i);
    z_function(s->z, s->reversed, n);
    /* Tokens back to front: the match at i was followed by the token at i - 1. */
    tally_clear(&s->tally);
    for (int32_t i = 1; i < n; i++) {
        const int32_t m = s->z[i] < reach ? s->z[i] : reach;
        if (m < o->dry_allowed_length) continue;
        pn_tally_slot *slot = tally_at(&s->tally, s->reversed[i - 1]);
        if (m + 1 > slot->value) slot->value = m + 1; /* 0 stays: none */
    }
    for (int32_t i = 0; i < n; i++) {
        pn_tally_slot *slot = tally_at(&s->tally, s->reversed[i]);
        if (slot->value == 0) continue;
        logits[slot->token] -= dry_penalty(o, slot->value - 1 - o->dry_allowed_length);
        slot->value = 0;
    }
}
