/* tests/tiny_runs.h - a tiny model either runs, with the same bits however its rows are cut, shared and mixed with another sequence's, or is refused. */
#ifndef PN_TINY_RUNS_H
#define PN_TINY_RUNS_H

#include "tiny_model.h"

#include <math.h>

enum { N_TEXT = 70 };

static int32_t tiny_text(int i, int32_t n_vocab) { return (i * 7 + i / 9) % n_vocab; }

static bool keep_row(void *user, size_t index, const float *logits, int32_t n_vocab)
{
    memcpy((float *)user + index * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof(float));
    return false;
}

/* Logits of a fixed text fed to sequence `seq` in batches; the caller's, NULL after a failed check. */
static float *run(const char *what, pinch_model *m, const pinch_session_options *o, int32_t seq)
{
    pinch_session *s = NULL;
    pinch_error err = {0};
    if (!CHECK("session opens", pinch_session_open(&s, m, o, &err) == PINCH_OK, "%s: %s", what, err.message)) return NULL;
    const int32_t n_vocab = pinch_model_n_vocab(m);
    float *out = calloc((size_t)N_TEXT * (size_t)n_vocab, sizeof *out);
    pinch_row rows[N_TEXT];
    for (int i = 0; i < N_TEXT; i++) rows[i] = (pinch_row){.token = tiny_text(i, n_vocab), .seq = seq, .logits = true};
    CHECK("rows are computed", out && pinch_session_eval(s, rows, N_TEXT, keep_row, out, &err) == PINCH_OK, "%s: %s", what, err.message);
    pinch_session_close(s);
    return out;
}

static bool same_bits(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; a && b && i < n; i++)
        if (!(isnan(a[i]) && isnan(b[i])) && memcmp(&a[i], &b[i], sizeof *a)) return false;
    return a && b;
}

/* Two sequences of the same text, their rows taking turns in runs of 1 to 4: each has the bits that it has alone. */
static void together(const char *what, pinch_model *m, const float *want)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = 100;
    o.n_threads = 2;
    o.n_batch = 16;
    o.n_seq = 2;
    pinch_session *s = NULL;
    pinch_error err = {0};
    if (!CHECK("session opens", pinch_session_open(&s, m, &o, &err) == PINCH_OK, "%s: %s", what, err.message)) return;
    const size_t n_vocab = (size_t)pinch_model_n_vocab(m);
    pinch_row rows[2 * N_TEXT];
    int at[2 * N_TEXT], next[2] = {0, 0}, n = 0;
    for (int turn = 0; n < 2 * N_TEXT; turn++)
        for (int i = 0; i <= turn % 4 && next[turn % 2] < N_TEXT; i++) {
            at[n] = next[turn % 2]++;
            rows[n] = (pinch_row){.token = tiny_text(at[n], (int32_t)n_vocab), .seq = turn % 2, .logits = true};
            n++;
        }
    float *got = calloc(2 * N_TEXT * n_vocab, sizeof *got);
    bool same = got && pinch_session_eval(s, rows, 2 * N_TEXT, keep_row, got, &err) == PINCH_OK;
    for (int i = 0; i < 2 * N_TEXT && same; i++) same = same_bits(got + (size_t)i * n_vocab, want + (size_t)at[i] * n_vocab, n_vocab);
    CHECK("sequences that share batches have the bits that they have alone", same, "%s: %s", what, err.message);
    free(got);
    pinch_session_close(s);
}

/* The model runs, with the same bits however its rows are cut and shared. Frees the recipe. */
static void runs(const char *what, tiny *t)
{
    static const struct { int threads; int32_t batch, n_seq; } ways[] = {{1, 1, 1}, {2, 3, 2}, {3, 16, 5}, {2, 1, 3}};
    for (int activations = 0; activations < 2; activations++) {
        pinch_error err;
        pinch_model *m = tiny_open(t, (pinch_activations)activations, &err);
        if (!CHECK("an odd shape opens", m != NULL, "%s: %s", what, err.message)) break;
        pinch_session_options o = pinch_session_options_default();
        o.n_ctx = 100;
        o.n_threads = 1;
        float *want = run(what, m, &o, 0);
        for (size_t i = 0; i < PN_COUNT(ways); i++) {
            o.n_threads = ways[i].threads;
            o.n_batch = ways[i].batch;
            o.n_seq = ways[i].n_seq;
            float *got = run(what, m, &o, ways[i].n_seq - 1);
            CHECK("an odd shape has the same bits however it is computed", same_bits(want, got, (size_t)N_TEXT * (size_t)pinch_model_n_vocab(m)), "%s: %d threads, batches of %d", what,
                  ways[i].threads, (int)ways[i].batch);
            free(got);
        }
        if (want) together(what, m, want);
        free(want);
        pinch_model_close(m);
    }
    tiny_free(t);
}

/* The model is refused with a sentence that holds `part`. Frees the recipe. */
static void refused(const char *what, tiny *t, const char *part)
{
    pinch_error err;
    pinch_model *m = tiny_open(t, PINCH_ACTIVATIONS_Q8, &err);
    CHECK("what cannot be is refused with a sentence", !m && strstr(err.message, part), "%s: %s", what, m ? "opened" : err.message);
    pinch_model_close(m);
    tiny_free(t);
}

#endif
