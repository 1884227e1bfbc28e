/* What the text so far and the options do to logits: bias, suppressed ids, penalties, DRY with its breakers, against plain quadratic code;
 * logits that leave nothing to choose; and the sentences that refuse options. */
#include "test.h"

#include "base/math.h"
#include "sample/sample_int.h"

#include <float.h>
#include <math.h>

enum { N = 64 };

/* Token 10 is ":", 11 "a\n", 12 "<", 13 "br>", any other its letter. */
static size_t piece(const void *ctx, pinch_token id, char *out, size_t capacity)
{
    (void)ctx;
    char letter[2] = {(char)('A' + id % 26), 0};
    const char *text = id == 10 ? ":" : id == 11 ? "a\n" : id == 12 ? "<" : id == 13 ? "br>" : letter;
    const size_t n = strlen(text);
    if (n < capacity) capacity = n;
    if (capacity) memcpy(out, text, capacity);
    return n;
}

static pn_sampler *open_sampler(const pinch_sampler_options *o, const pinch_token *suppressed, size_t n_suppressed)
{
    pn_sampler *s = NULL;
    pinch_error err = {PINCH_OK, ""};
    CHECK("a sampler opens", pn_sampler_open(&s, o, N, 256, piece, NULL, suppressed, n_suppressed, &err) == PINCH_OK, "%s", err.message);
    return s;
}

static bool same(const float *a, const float *b)
{
    for (int i = 0; i < N; i++) {
        if (!(a[i] == b[i] || fabsf(a[i] - b[i]) <= 1e-5f * fabsf(b[i]))) return false;
    }
    return true;
}

static void penalties(void)
{
    unsigned long long state = 5;
    for (int round = 0; round < 40; round++) {
        pinch_sampler_options o = pinch_sampler_options_default();
        o.repeat_penalty = round % 3 ? 1.3f : 1;
        o.frequency_penalty = round % 2 ? 0.25f : 0;
        o.presence_penalty = round % 5 ? 0.5f : 0;
        o.repeat_last_n = round % 7 == 0 ? -1 : round;
        pn_sampler *s = open_sampler(&o, NULL, 0);
        if (!s) return;
        pinch_token text[300];
        const int n_text = round * 7 + 1;
        for (int i = 0; i < n_text; i++) pn_sampler_accept(s, text[i] = (pinch_token)(pn_random(&state) % 20));
        float logits[N], want[N];
        for (int i = 0; i < N; i++) want[i] = logits[i] = (float)(i % 9) - 4;
        const int window = o.repeat_last_n < 0 ? 256 : o.repeat_last_n;
        const int from = n_text > window ? n_text - window : 0;
        for (int id = 0; id < N; id++) {
            int count = 0;
            for (int i = from; i < n_text; i++) count += text[i] == id;
            if (!count) continue;
            want[id] = want[id] > 0 ? want[id] / o.repeat_penalty : want[id] * o.repeat_penalty;
            want[id] -= (float)count * o.frequency_penalty + o.presence_penalty;
        }
        pn_sampler_choose(s, logits);
        CHECK("penalties of the last n tokens", same(logits, want), "round %d", round);
        pn_sampler_close(s);
    }
}

/* The definition, quadratic: for each earlier end of a match, how far it goes back, cut to the tokens after the newest breaker. */
static void plain_dry(const pinch_token *text, int n, int reach, const pinch_sampler_options *o, float *logits)
{
    int longest[N] = {0};
    if (reach > n) reach = n;
    for (int at = 0; at + 1 < n; at++) { /* text[at] ends an earlier match, text[at + 1] followed it */
        int m = 0;
        while (m <= at && m < reach && text[at - m] == text[n - 1 - m]) m++;
        if (m >= o->dry_allowed_length && m + 1 > longest[text[at + 1]]) longest[text[at + 1]] = m + 1;
    }
    for (int id = 0; id < N; id++) {
        if (longest[id]) logits[id] -= o->dry_multiplier * (float)pn_exp((longest[id] - 1 - o->dry_allowed_length) * pn_log((double)o->dry_base));
    }
}

static void dry(void)
{
    unsigned long long state = 9;
    for (int round = 0; round < 200; round++) {
        pinch_sampler_options o = pinch_sampler_options_default();
        o.dry_multiplier = 0.75f;
        o.dry_allowed_length = round % 4;
        o.dry_penalty_last_n = round % 5 ? 50 : -1;
        pn_sampler *s = open_sampler(&o, NULL, 0);
        if (!s) return;
        pinch_token text[256];
        const int n_text = round, window = o.dry_penalty_last_n < 0 ? 256 : 50;
        int since = 0;
        for (int i = 0; i < n_text; i++) {
            text[i] = (pinch_token)(pn_random(&state) % (round % 2 ? 3 : 1));
            if (pn_random(&state) % (round % 2 ? 40 : 6) == 0) text[i] = 10 + (pinch_token)(pn_random(&state) % 2);
            since = text[i] >= 10 ? 0 : since + 1;
            pn_sampler_accept(s, text[i]);
        }
        float logits[N] = {0}, want[N] = {0};
        const int from = n_text > window ? n_text - window : 0;
        if (n_text - from >= 2 && since >= o.dry_allowed_length) plain_dry(text + from, n_text - from, since, &o, want);
        pn_sampler_choose(s, logits);
        CHECK("DRY as defined", same(logits, want), "round %d", round);
        pn_sampler_close(s);
    }
}

static void breakers(void)
{
    static const char *const broken[] = {"<br>"};
    const pinch_token text[] = {1, 2, 3, 12, 13, 1, 2, 3, 12, 13};
    pinch_sampler_options o = pinch_sampler_options_default();
    o.dry_multiplier = 1;
    for (int with = 0; with < 2; with++) {
        o.dry_breakers = broken;
        o.n_dry_breakers = (size_t)with;
        pn_sampler *s = open_sampler(&o, NULL, 0);
        if (!s) return;
        for (size_t i = 0; i < PN_COUNT(text); i++) pn_sampler_accept(s, text[i]);
        float logits[N] = {0};
        pn_sampler_choose(s, logits);
        CHECK("a breaker spread over tokens stops DRY", with ? logits[1] == 0 : logits[1] < 0, "breakers %d: %g", with, (double)logits[1]);
        pn_sampler_close(s);
    }
    o.dry_base = 3e38f;
    o.dry_multiplier = 3e38f;
    pn_sampler *s = open_sampler(&o, NULL, 0);
    if (!s) return;
    for (int i = 0; i < 200; i++) pn_sampler_accept(s, i % 2);
    float logits[N] = {0};
    pn_sampler_choose(s, logits);
    CHECK("DRY's power stays finite", isfinite(logits[0]) && logits[0] < -1e30f, "%g", (double)logits[0]);
    pn_sampler_close(s);
}

static pinch_token greedy(const float *values, const pinch_logit_bias *bias, size_t n_bias, const pinch_token *suppressed, size_t n_suppressed)
{
    pinch_sampler_options o = pinch_sampler_options_default();
    o.temperature = 0;
    o.logit_bias = bias;
    o.n_logit_bias = n_bias;
    pn_sampler *s = open_sampler(&o, suppressed, n_suppressed);
    if (!s) return -1;
    float logits[N];
    memcpy(logits, values, sizeof logits);
    const pinch_token id = pn_sampler_choose(s, logits);
    pn_sampler_close(s);
    return id;
}

static void edges(void)
{
    const pinch_logit_bias up = {7, 5}, out = {3, -INFINITY};
    const pinch_token none[] = {0, 1};
    float v[N] = {0};
    v[3] = v[5] = 4;
    CHECK("ties go to the lower id", greedy(v, NULL, 0, NULL, 0) == 3, "greedy");
    CHECK("bias adds", greedy(v, &up, 1, NULL, 0) == 7, "bias");
    CHECK("bias of -inf removes", greedy(v, &out, 1, NULL, 0) == 5, "bias");
    for (int i = 0; i < N; i++) v[i] = -INFINITY;
    CHECK("all -inf: the lowest id", greedy(v, NULL, 0, NULL, 0) == 0, "all -inf");
    CHECK("all -inf: not a suppressed one", greedy(v, NULL, 0, none, 2) == 2, "suppressed");
    v[0] = NAN;
    CHECK("NaN is not chosen before -inf", greedy(v, NULL, 0, NULL, 0) == 1, "NaN");
    for (int i = 0; i < N; i++) v[i] = NAN;
    CHECK("all NaN: id 0", greedy(v, NULL, 0, NULL, 0) == 0, "all NaN");
    v[9] = -3e38f;
    CHECK("any number before NaN", greedy(v, NULL, 0, NULL, 0) == 9, "one number");
    v[9] = -FLT_MAX;
    CHECK("the least number too", greedy(v, NULL, 0, NULL, 0) == 9, "one number");
    pinch_sampler_options o = pinch_sampler_options_default();
    o.typical_p = 0.9f;
    o.xtc_probability = 1;
    o.top_k = 0;
    pn_sampler *s = open_sampler(&o, NULL, 0);
    for (int i = 0; i < N; i++) v[i] = i == 4 || i == 6 ? INFINITY : 1;
    const pinch_token id = s ? pn_sampler_choose(s, v) : -1;
    CHECK("+inf takes all", id == 4 || id == 6, "%d", (int)id);
    pn_sampler_close(s);
}

typedef struct refusal {
    pinch_sampler_options o;
    const char *sentence;
} refusal;

static void refusals(void)
{
    static const pinch_logit_bias far = {N, 1}, nan_bias = {1, NAN};
    static const char *const empty[] = {""};
    const pinch_sampler_options d = pinch_sampler_options_default();
    refusal cases[12];
    for (size_t i = 0; i < PN_COUNT(cases); i++) cases[i].o = d;
    cases[0].o.temperature = NAN, cases[0].sentence = "sampling option temperature is nan: it must be a finite number";
    cases[1].o.top_p = -0.5f, cases[1].sentence = "sampling option top_p is -0.5: it must be a number from 0 to 1 (1: off)";
    cases[2].o.min_p = 1.5f, cases[2].sentence = "sampling option min_p is 1.5: it must be a number from 0 (off) to 1";
    cases[3].o.repeat_penalty = 0, cases[3].sentence = "sampling option repeat_penalty is 0.0: it must be a number above 0 (1: off)";
    cases[4].o.repeat_last_n = -2, cases[4].sentence = "sampling option repeat_last_n is -2: it must be -1 (the context), 0 (off) or a number of tokens";
    cases[5].o.mirostat = 1, cases[5].sentence = "sampling option mirostat is 1: it must be 0 (off) or 2";
    cases[6].o.logit_bias = &far, cases[6].o.n_logit_bias = 1, cases[6].sentence = "sampling option logit_bias names token 64: this vocabulary has ids 0 to 63";
    cases[7].o.logit_bias = &nan_bias, cases[7].o.n_logit_bias = 1, cases[7].sentence = "sampling option logit_bias is nan: it must be a finite number or -inf";
    cases[8].o.dry_base = 0.5f, cases[8].sentence = "sampling option dry_base is 0.5: it must be a finite number, at least 1";
    cases[9].o.dry_breakers = empty, cases[9].o.n_dry_breakers = 1, cases[9].sentence = "sampling option dry_breakers: entry 0 is empty";
    cases[10].o.xtc_probability = 2, cases[10].sentence = "sampling option xtc_probability is 2.0: it must be a number from 0 (off) to 1";
    cases[11].o.dry_multiplier = INFINITY, cases[11].sentence = "sampling option dry_multiplier is inf: it must be a finite number, at least 0 (0: off)";
    for (size_t i = 0; i < PN_COUNT(cases); i++) {
        pn_sampler *s = NULL;
        pinch_error err = {PINCH_OK, ""};
        const pinch_status st = pn_sampler_open(&s, &cases[i].o, N, 256, piece, NULL, NULL, 0, &err);
        CHECK("a wrong option is refused with its name and value", st == PINCH_ERR_ARGUMENT && !s && !strcmp(err.message, cases[i].sentence), "%zu: %s", i, err.message);
        pn_sampler_close(s);
    }
}

int main(void)
{
    penalties();
    dry();
    breakers();
    edges();
    refusals();
    return pn_done();
}
