/* Generation: stop strings wherever tokens cut them, the end of a text, and the logits that it starts from. */
#include "engine_case.h"

enum { N_TOKENS = 24, N_TEXT = 4096 };

typedef struct shown {
    char text[N_TEXT];
    size_t n, calls, after; /* after: calls once the callback had said stop */
    size_t stop_at;         /* this call says stop */
    bool stopped;
    size_t ends[N_TOKENS + 1]; /* bytes certain after each token */
} shown;

static bool show(void *user, pinch_token token, const char *text, size_t n)
{
    shown *s = user;
    if (s->n + n <= sizeof s->text) memcpy(s->text + s->n, text, n);
    s->n += n;
    s->after += s->stopped;
    if (token >= 0 && s->calls <= N_TOKENS) s->ends[s->calls++] = s->n;
    if (s->calls == s->stop_at) s->stopped = true;
    return s->stopped;
}

typedef struct bench {
    const golden_case *c;
    pinch_session *session;
    pinch_sampler *sampler;
} bench;

static pinch_status generate(const bench *b, shown *out, const char *const *stops, size_t n_stops, pinch_generate_result *result)
{
    pinch_error err = {0};
    pinch_generate_options o = pinch_generate_options_default();
    o.max_tokens = N_TOKENS;
    o.ignore_eos = true;
    o.special = true;
    o.stops = stops;
    o.n_stops = n_stops;
    o.on_token = show;
    o.user = out;
    const pinch_status st = pinch_session_sync(b->session, 0, b->c->prompt, b->c->n_prompt, NULL, &err);
    return st ? st : pinch_generate(b->session, 0, b->sampler, &o, result, &err);
}

/* Every piece of the text as a stop string: exactly what is before its first place is shown. */
static void stop_anywhere(const bench *b, const shown *whole)
{
    for (size_t length = 1; length <= 5; length += 2)
        for (size_t at = 0; at + length <= whole->n; at += 3) {
            char stop[8] = {0};
            memcpy(stop, whole->text + at, length);
            if (strlen(stop) != length) continue;
            const char *const stops[] = {"", stop};
            const size_t first = (size_t)((const char *)memmem(whole->text, whole->n, stop, length) - whole->text);
            shown got = {0};
            pinch_generate_result result;
            generate(b, &got, stops, 2, &result);
            if (!CHECK("text ends before a stop string, however tokens cut it", result.stop == PINCH_STOP_STRING && got.n == first && !memcmp(got.text, whole->text, first),
                       "%s: %zu bytes from %zu on: %zu shown, not %zu", b->c->name, length, at, got.n, first))
                return;
        }
}

/* A long stop string begins, a short one completes inside it: the short one ends the text at once. */
static void stop_inside(const bench *b, const shown *whole)
{
    size_t at = whole->ends[3];
    while (at + 12 < whole->n && memchr(whole->text + at, 0, 12)) at++;
    if (at + 12 >= whole->n) return;
    char outer[16] = {0}, inner[4] = {0};
    memcpy(outer, whole->text + at, 12);
    memcpy(inner, whole->text + at + 4, 3);
    const char *const stops[] = {outer, inner};
    const size_t first = (size_t)((const char *)memmem(whole->text, whole->n, inner, 3) - whole->text);
    size_t tokens = 0;
    while (tokens < N_TOKENS && whole->ends[tokens] < first + 3) tokens++;
    shown got = {0};
    pinch_generate_result result;
    generate(b, &got, stops, 2, &result);
    CHECK("the stop string that is complete first ends the text", result.stop == PINCH_STOP_STRING && got.n == first, "%s: %zu bytes shown, not %zu", b->c->name, got.n, first);
    CHECK("and no further token is asked for", result.n_tokens == (int32_t)tokens + 1, "%s: %d tokens, not %zu", b->c->name, (int)result.n_tokens, tokens + 1);
}

/* What only looked like a stop string is shown in the end. */
static void no_stop(const bench *b, const shown *whole)
{
    char stop[8] = {0};
    size_t at = whole->n - 3;
    memcpy(stop, whole->text + at, 3);
    stop[3] = '\x01';
    const char *const stops[] = {stop};
    shown got = {0};
    pinch_generate_result result;
    generate(b, &got, stops, 1, &result);
    CHECK("a stop string that never completes loses nothing", result.stop == PINCH_STOP_LENGTH && got.n == whole->n && !memcmp(got.text, whole->text, got.n), "%s: %zu of %zu bytes", b->c->name,
          got.n, whole->n);
}

static void stop_by_callback(const bench *b)
{
    for (size_t when = 1; when <= 6; when++) {
        shown got = {.stop_at = when};
        pinch_generate_result result;
        const pinch_status st = generate(b, &got, NULL, 0, &result);
        CHECK("a callback that says stop is not called again", st == PINCH_OK && result.stop == PINCH_STOP_ABORT && result.n_tokens == (int32_t)when && got.after == 0, "%s: %d tokens, %zu calls after",
              b->c->name, (int)result.n_tokens, got.after);
    }
}

/* ---- logits ----------------------------------------------------------------------------------------------------------------------------- */

static bool refuses(const bench *b, int32_t seq, const char *part)
{
    pinch_error err = {0};
    pinch_generate_options o = pinch_generate_options_default();
    pinch_generate_result result = {.n_tokens = -7};
    o.max_tokens = 1;
    return pinch_generate(b->session, seq, b->sampler, &o, &result, &err) == PINCH_ERR_ARGUMENT && strstr(err.message, part) && result.n_tokens == -7;
}

static void logits_at_hand(const bench *b)
{
    const golden_case *c = b->c;
    pinch_session *s = b->session;
    pinch_error err = {0};
    pinch_row row = {.token = c->prompt[1], .seq = 1};
    CHECK("a fresh sequence has no logits", refuses(b, 1, "feed"), "%s", c->name);
    CHECK("two sequences are fed", !pinch_session_feed(s, 1, c->prompt, 5, &err) && !pinch_session_feed(s, 0, c->prompt, 7, &err), "%s: %s", c->name, err.message);
    CHECK("the logits of one sequence do not generate another", refuses(b, 1, "sequence 0"), "%s", c->name);
    CHECK("nor one that does not exist", refuses(b, 2, "sequence 2") && refuses(b, -1, "sequence -1"), "%s", c->name);
    CHECK("rows without logits are computed", !pinch_session_eval(s, &row, 1, NULL, NULL, &err), "%s: %s", c->name, err.message);
    CHECK("and leave none behind", !pinch_session_logits(s) && refuses(b, 1, "feed"), "%s", c->name);
    CHECK("a sequence is fed and cut", !pinch_session_feed(s, 0, c->prompt, 3, &err) && !pinch_session_truncate(s, 0, 9, &err), "%s: %s", c->name, err.message);
    CHECK("logits of what was cut off do not generate", refuses(b, 0, "follow 10 tokens"), "%s", c->name);
    CHECK("a sequence is fed and copied over", !pinch_session_feed(s, 1, c->prompt, 3, &err) && !pinch_session_copy(s, 0, 1, &err), "%s: %s", c->name, err.message);
    CHECK("logits of what was copied over do not generate", refuses(b, 1, "feed"), "%s", c->name);
    const pinch_token bad = c->n_vocab;
    CHECK("a sequence is fed", !pinch_session_feed(s, 0, c->prompt, 1, &err), "%s: %s", c->name, err.message);
    CHECK("a call that is refused at once keeps the logits", pinch_session_feed(s, 0, &bad, 1, &err) == PINCH_ERR_ARGUMENT && pinch_session_logits(s), "%s", c->name);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(golden_names); i++) {
        golden_case c;
        pinch_error err = {0};
        if (!case_load(&c, golden_names[i])) continue;
        pinch_model *model = case_model(&c, PINCH_ACTIVATIONS_Q8);
        bench b = {.c = &c, .session = model ? case_session(&c, model, 1, 0, 2) : NULL};
        pinch_sampler_options how = pinch_sampler_options_default();
        how.temperature = 0;
        shown whole = {0};
        pinch_generate_result result;
        if (b.session && CHECK("sampler opens", !pinch_sampler_open(&b.sampler, model, &how, &err), "%s", err.message)) {
            logits_at_hand(&b);
            CHECK("text is generated", !generate(&b, &whole, NULL, 0, &result) && result.stop == PINCH_STOP_LENGTH && whole.n > 24 && whole.n < N_TEXT, "%s: %zu bytes", c.name, whole.n);
            stop_anywhere(&b, &whole);
            stop_inside(&b, &whole);
            no_stop(&b, &whole);
            stop_by_callback(&b);
        }
        pinch_sampler_close(b.sampler);
        pinch_session_close(b.session);
        pinch_model_close(model);
        case_free(&c);
    }
    return pn_done();
}
