/* sample_options.c - the defaults of the sampling options and what values they may have. */
#include "sample/sample_int.h"

#include "base/number.h"

#include <math.h>
#include <stddef.h>

PINCH_API pinch_sampler_options pinch_sampler_options_default(void)
{
    return (pinch_sampler_options){
        .seed = 0,
        .temperature = 0.8f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1,
        .top_n_sigma = -1,
        .xtc_probability = 0,
        .xtc_threshold = 0.1f,
        .repeat_penalty = 1,
        .repeat_last_n = 64,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_penalty_last_n = 64,
        .mirostat_tau = 5,
        .mirostat_eta = 0.1f,
    };
}

/* Values from min to max are meant; a bound that is itself excluded is written as the next float. */
typedef struct float_rule {
    const char *name;
    size_t offset;
    float min, max;
    const char *wants;
} float_rule;

#define FIELD(name) #name, offsetof(pinch_sampler_options, name)
#define ANY 3.0e38f
static const float_rule float_rules[] = {
    {FIELD(temperature), -ANY, ANY, "a finite number"},
    {FIELD(top_p), 0, ANY, "a number from 0 to 1 (1: off)"},
    {FIELD(min_p), -ANY, 1, "a number from 0 (off) to 1"},
    {FIELD(typical_p), 0, ANY, "a number from 0 to 1 (1: off)"},
    {FIELD(top_n_sigma), -ANY, ANY, "a finite number"},
    {FIELD(xtc_probability), 0, 1, "a number from 0 (off) to 1"},
    {FIELD(xtc_threshold), 0, 1, "a number from 0 to 1"},
    {FIELD(repeat_penalty), 1e-6f, 1e6f, "a number above 0 (1: off)"},
    {FIELD(frequency_penalty), -ANY, ANY, "a finite number"},
    {FIELD(presence_penalty), -ANY, ANY, "a finite number"},
    {FIELD(dry_multiplier), 0, ANY, "a finite number, at least 0 (0: off)"},
    {FIELD(dry_base), 1, ANY, "a finite number, at least 1"},
    {FIELD(mirostat_tau), 0, ANY, "a finite number, at least 0"},
    {FIELD(mirostat_eta), 0, ANY, "a finite number, at least 0"},
};

typedef struct int_rule {
    const char *name;
    size_t offset;
    int32_t min;
    const char *wants;
} int_rule;

static const int_rule int_rules[] = {
    {FIELD(repeat_last_n), -1, "-1 (the context), 0 (off) or a number of tokens"},
    {FIELD(dry_penalty_last_n), -1, "-1 (the context), 0 (off) or a number of tokens"},
    {FIELD(dry_allowed_length), 0, "a number of tokens"},
};

static pinch_status refuse_float(const char *name, float v, const char *wants, pinch_error *err)
{
    char text[32];
    size_t n = pn_format_float(text, v);
    return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option %s is %.*s: it must be %s", name, (int)n, text, wants);
}

static pinch_status check_bias(const pinch_sampler_options *o, int32_t n_vocab, pinch_error *err)
{
    if (o->n_logit_bias > INT32_MAX || (o->n_logit_bias && !o->logit_bias)) {
        return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option logit_bias has no list for its %zu entries", o->n_logit_bias);
    }
    for (size_t i = 0; i < o->n_logit_bias; i++) {
        const pinch_logit_bias *b = &o->logit_bias[i];
        if (b->token < 0 || b->token >= n_vocab) {
            return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option logit_bias names token %" PRId32 ": this vocabulary has ids 0 to %" PRId32, b->token, n_vocab - 1);
        }
        if (!(b->bias < INFINITY)) return refuse_float("logit_bias", b->bias, "a finite number or -inf", err);
    }
    return PINCH_OK;
}

static pinch_status check_breakers(const pinch_sampler_options *o, pinch_error *err)
{
    if (!o->dry_breakers) return PINCH_OK;
    if (o->n_dry_breakers > INT32_MAX) return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option dry_breakers has %zu entries", o->n_dry_breakers);
    for (size_t i = 0; i < o->n_dry_breakers; i++) {
        if (!o->dry_breakers[i] || !o->dry_breakers[i][0]) {
            return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option dry_breakers: entry %zu is empty", i);
        }
    }
    return PINCH_OK;
}

pinch_status pn_sampler_check(const pinch_sampler_options *o, int32_t n_vocab, pinch_error *err)
{
    for (size_t i = 0; i < PN_COUNT(float_rules); i++) {
        const float_rule *r = &float_rules[i];
        float v;
        memcpy(&v, (const char *)o + r->offset, sizeof v);
        if (!(v >= r->min && v <= r->max)) return refuse_float(r->name, v, r->wants, err);
    }
    for (size_t i = 0; i < PN_COUNT(int_rules); i++) {
        const int_rule *r = &int_rules[i];
        int32_t v;
        memcpy(&v, (const char *)o + r->offset, sizeof v);
        if (v < r->min) return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option %s is %" PRId32 ": it must be %s", r->name, v, r->wants);
    }
    if (o->mirostat != 0 && o->mirostat != 2) {
        return pn_fail(err, PINCH_ERR_ARGUMENT, "sampling option mirostat is %" PRId32 ": it must be 0 (off) or 2", o->mirostat);
    }
    pinch_status st = check_bias(o, n_vocab, err);
    return st ? st : check_breakers(o, err);
}
