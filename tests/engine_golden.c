/* The engine against golden tiny models: logits, greedy text, and the same bits for every batch size, thread count, sequence and way back. */
#include <math.h>

#include "engine_case.h"

static void compare(const golden_case *c, const float *ours, double tolerance, double tolerance_rms, const char *path)
{
    const size_t n = c->n_prompt * (size_t)c->n_vocab;
    double worst = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        const double gap = fabs((double)ours[i] - (double)c->logits[i]);
        if (!(gap <= worst)) worst = gap; /* a NaN sticks */
        square += gap * gap;
    }
    const double rms = sqrt(square / (double)n);
    CHECK("no logit is farther from the reference than its tolerance", worst <= tolerance, "%s %s: gap %.6f > %.6f", c->name, path, worst, tolerance);
    CHECK("the logits' rms distance is within its tolerance", rms <= tolerance_rms, "%s %s: rms %.6f > %.6f", c->name, path, rms, tolerance_rms);
}

static void check_path(const golden_case *c, pinch_activations activations)
{
    const bool exact = activations == PINCH_ACTIVATIONS_F32;
    pinch_model *model = case_model(c, activations);
    pinch_session *session = model ? case_session(c, model, 1, 0, 1) : NULL;
    float *ours = session ? case_logits(c, session, c->prompt, c->n_prompt) : NULL;
    if (ours) compare(c, ours, exact ? c->tolerance_exact : c->tolerance, exact ? c->tolerance_exact : c->tolerance_rms, exact ? "exact" : "default");
    free(ours);
    pinch_session_close(session);
    pinch_model_close(model);
}

static bool same(const golden_case *c, const float *a, const float *b, size_t rows)
{
    return memcmp(a, b, rows * (size_t)c->n_vocab * sizeof *a) == 0;
}

/* A text long enough for batches of 64 to differ from 512 and for windows to wrap. */
static size_t long_text(const golden_case *c, pinch_token *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const size_t at = i % (c->n_prompt + c->n_greedy);
        out[i] = at < c->n_prompt ? c->prompt[at] : c->greedy[at - c->n_prompt];
    }
    return n;
}

static void check_same_bits(const golden_case *c, pinch_model *model, const pinch_token *text, size_t n, const float *want)
{
    static const struct { int threads; int32_t batch; } ways[] = {{1, 1}, {2, 7}, {3, 64}, {2, 512}};
    for (size_t i = 0; i < PN_COUNT(ways); i++) {
        pinch_session *session = case_session(c, model, ways[i].threads, ways[i].batch, 1);
        float *got = session ? case_logits(c, session, text, n) : NULL;
        if (got)
            CHECK("threads and batch size do not change a bit", same(c, want, got, n), "%s: %d threads, batches of %d", c->name, ways[i].threads, ways[i].batch);
        free(got);
        pinch_session_close(session);
    }
}

/* Two sequences woven into one batch: each as if alone. */
static void check_sequences(const golden_case *c, pinch_model *model, const pinch_token *text, size_t n, const float *want)
{
    pinch_session *session = case_session(c, model, 2, 64, 2);
    pinch_row *rows = calloc(2 * n, sizeof *rows);
    float *got = calloc(2 * n * (size_t)c->n_vocab, sizeof *got);
    pinch_error err = {0};
    for (size_t i = 0; rows && i < n; i++) {
        rows[2 * i] = (pinch_row){.token = text[i], .seq = 0, .logits = true};
        rows[2 * i + 1] = (pinch_row){.token = text[(i + 5) % n], .seq = 1, .logits = true};
    }
    if (session && rows && got &&
        CHECK("two sequences in one batch are computed", pinch_session_eval(session, rows, 2 * n, case_row, got, &err) == PINCH_OK, "%s: %s", c->name, err.message)) {
        size_t differ = 0;
        for (size_t i = 0; i < n; i++) differ += !same(c, want + i * (size_t)c->n_vocab, got + 2 * i * (size_t)c->n_vocab, 1);
        CHECK("a sequence has the same bits beside another as alone", differ == 0, "%s: %zu of %zu rows differ", c->name, differ, n);
    }
    free(got);
    free(rows);
    pinch_session_close(session);
}

static bool last_row_is(const golden_case *c, pinch_session *session, const float *want, size_t row)
{
    const float *logits = pinch_session_logits(session);
    return logits && same(c, logits, want + row * (size_t)c->n_vocab, 1);
}

/* Going back, feeding again, following a shared prefix and copying a sequence all end in the bits of a fresh session. */
static void check_ways_back(const golden_case *c, pinch_model *model, const pinch_token *text, size_t n, const float *want)
{
    pinch_session *session = case_session(c, model, 2, 32, 2);
    if (!session) return;
    pinch_error err = {0};
    size_t reused = 0;
    const int32_t back[] = {(int32_t)n - 3, (int32_t)n / 2, 1};
    CHECK("the text is fed", pinch_session_feed(session, 0, text, n, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    for (size_t i = 0; i < PN_COUNT(back); i++) {
        CHECK("a session goes back", pinch_session_truncate(session, 0, back[i], &err) == PINCH_OK && pinch_session_position(session, 0) == back[i], "%s to %d: %s", c->name, back[i],
              err.message);
        CHECK("and is fed again", pinch_session_feed(session, 0, text + back[i], n - (size_t)back[i], &err) == PINCH_OK, "%s: %s", c->name, err.message);
        CHECK("after going back the bits are those of a fresh session", last_row_is(c, session, want, n - 1), "%s, back to %d of %zu", c->name, back[i], n);
    }
    CHECK("a sequence is copied", pinch_session_copy(session, 0, 1, &err) == PINCH_OK && pinch_session_position(session, 1) == (int32_t)n, "%s: %s", c->name, err.message);
    CHECK("a copied sequence follows a shorter text", pinch_session_sync(session, 1, text, n - 2, &reused, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    CHECK("sync gives the bits of a fresh session", last_row_is(c, session, want, n - 3), "%s, %zu reused", c->name, reused);
    pinch_session_close(session);
}

static void check_equality(const golden_case *c, pinch_activations activations)
{
    pinch_token text[160];
    const size_t n = long_text(c, text, PN_COUNT(text));
    pinch_model *model = case_model(c, activations);
    pinch_session *session = model ? case_session(c, model, 1, 512, 1) : NULL;
    float *want = session ? case_logits(c, session, text, n) : NULL;
    pinch_session_close(session);
    if (want) {
        check_same_bits(c, model, text, n, want);
        check_sequences(c, model, text, n, want);
        check_ways_back(c, model, text, n, want);
    }
    free(want);
    pinch_model_close(model);
}

typedef struct written { pinch_token ids[CASE_TOKENS]; size_t n; } written;

static bool write_down(void *user, pinch_token token, const char *text, size_t n)
{
    written *w = user;
    (void)text, (void)n;
    if (w->n < CASE_TOKENS) w->ids[w->n++] = token;
    return false;
}

static void check_greedy(const golden_case *c)
{
    pinch_model *model = case_model(c, PINCH_ACTIVATIONS_F32);
    pinch_session *session = model ? case_session(c, model, 2, 0, 1) : NULL;
    pinch_sampler_options how = pinch_sampler_options_default();
    how.temperature = 0;
    pinch_sampler *sampler = NULL;
    pinch_error err = {0};
    written w = {0};
    pinch_generate_options options = pinch_generate_options_default();
    options.max_tokens = (int32_t)c->n_greedy;
    options.ignore_eos = true;
    options.on_token = write_down;
    options.user = &w;
    pinch_generate_result result = {0};
    if (session && CHECK("sampler opens", pinch_sampler_open(&sampler, model, &how, &err) == PINCH_OK, "%s: %s", c->name, err.message) &&
        CHECK("the prompt is fed", pinch_session_feed(session, 0, c->prompt, c->n_prompt, &err) == PINCH_OK, "%s: %s", c->name, err.message) &&
        CHECK("text is generated", pinch_generate(session, 0, sampler, &options, &result, &err) == PINCH_OK, "%s: %s", c->name, err.message)) {
        CHECK("as many tokens as asked for", w.n == c->n_greedy && result.n_tokens == (int32_t)w.n && result.stop == PINCH_STOP_LENGTH, "%s: %zu of %zu", c->name, w.n, c->n_greedy);
        for (size_t i = 0; i < w.n && c->margins[i] >= 2 * c->tolerance; i++)
            if (!CHECK("greedy text equals the reference's", w.ids[i] == c->greedy[i], "%s: step %zu: %d, not %d", c->name, i, w.ids[i], c->greedy[i])) break;
    }
    pinch_sampler_close(sampler);
    pinch_session_close(session);
    pinch_model_close(model);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(golden_names); i++) {
        golden_case c;
        if (case_load(&c, golden_names[i])) {
            check_path(&c, PINCH_ACTIVATIONS_Q8);
            check_path(&c, PINCH_ACTIVATIONS_F32);
            check_equality(&c, PINCH_ACTIVATIONS_Q8);
            check_equality(&c, PINCH_ACTIVATIONS_F32);
            check_greedy(&c);
        }
        case_free(&c);
    }
    return pn_done();
}
