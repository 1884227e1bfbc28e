/* Prefix reuse where layers forget (windows, recurrent layers): requests of mixed prefixes through one session give the logits of fresh sessions bit
 * for bit, go back to checkpoints instead of computing everything again, and take no more memory with time. */
#include "base/base.h"
#include "base/cpu.h"
#include "pinch.h"
#include "test.h"

#include <string.h>

#if defined(__x86_64__)
enum { REQUESTS = 1000 };
#else
enum { REQUESTS = 15 }; /* emulated, or multiply-adds in software: hundreds of times slower */
#endif
enum { CTX = 256, BATCH = 8, PREFIXES = 4, WARM = REQUESTS / 5, COMPARED = REQUESTS / 50 + 1, MOST = 160 };

typedef struct text {
    pinch_token tokens[MOST];
    size_t n;
} text;

static void extend(text *t, size_t n, int32_t n_vocab, unsigned long long *seed)
{
    for (size_t i = 0; i < n && t->n < MOST; i++) t->tokens[t->n++] = (pinch_token)(pn_random(seed) % (unsigned long long)n_vocab);
}

static pinch_session *session_of(pinch_model *m, int32_t n_checkpoints)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = CTX;
    o.n_batch = BATCH;
    o.n_threads = 1;
    o.n_checkpoints = n_checkpoints;
    pinch_session *s = NULL;
    pinch_error err = {0};
    CHECK("session opens", pinch_session_open(&s, m, &o, &err) == PINCH_OK, "%s", err.message);
    return s;
}

typedef struct tally {
    int wrong, failed;
    size_t reused; /* tokens */
} tally;

/* The text as a whole, then two more tokens one by one; `fresh` computes all of it from the start. */
static void request(pinch_session *s, pinch_session *fresh, const text *t, bool compare, int32_t n_vocab, tally *sum)
{
    pinch_error err = {0};
    size_t reused = 0;
    bool ok = pinch_session_sync(s, 0, t->tokens, t->n - 2, &reused, &err) == PINCH_OK;
    for (size_t i = t->n - 2; ok && i < t->n; i++) ok = pinch_session_feed(s, 0, &t->tokens[i], 1, &err) == PINCH_OK;
    sum->reused += reused;
    sum->failed += !ok;
    if (!ok || !compare) return;
    ok = pinch_session_truncate(fresh, 0, 0, &err) == PINCH_OK && pinch_session_feed(fresh, 0, t->tokens, t->n, &err) == PINCH_OK;
    sum->wrong += !ok || memcmp(pinch_session_logits(s), pinch_session_logits(fresh), (size_t)n_vocab * sizeof(float)) != 0;
}

/* Returns the tokens that were reused. */
static size_t mixed_requests(const char *name, pinch_model *m, int32_t n_checkpoints)
{
    const int32_t n_vocab = pinch_model_n_vocab(m);
    pinch_session *s = session_of(m, n_checkpoints), *fresh = session_of(m, -1);
    unsigned long long seed = 20260101;
    static text prefixes[PREFIXES];
    tally sum = {0};
    uint64_t before = 0;
    for (int i = 0; i < PREFIXES; i++) {
        prefixes[i].n = 0;
        extend(&prefixes[i], 30 + 15 * (size_t)i, n_vocab, &seed);
    }
    text last = prefixes[0];
    for (int i = 0; s && fresh && i < REQUESTS; i++) {
        if (i == WARM) before = pn_memory_resident();
        text t = i % 3 ? last : prefixes[pn_random(&seed) % PREFIXES]; /* another conversation, */
        if (i % 3 == 2) t.n -= 3;                                      /* another answer to the last prompt, or one that goes on */
        if (t.n > MOST / 2 + 30) t = prefixes[i % PREFIXES];
        extend(&t, 3 + (size_t)(pn_random(&seed) % 20), n_vocab, &seed);
        request(s, fresh, &t, i % COMPARED == 0, n_vocab, &sum);
        last = t;
    }
    CHECK("every request is served", sum.failed == 0, "%s: %d failed", name, sum.failed);
    CHECK("a reused prefix gives a fresh session's logits", sum.wrong == 0, "%s, %d checkpoints: %d requests differ", name, (int)n_checkpoints, sum.wrong);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    (void)before; /* the sanitizers keep memory of their own */
#else
    const uint64_t after = pn_memory_resident();
    CHECK("memory stays", after <= before + (128 << 10), "%s: %llu bytes more", name, (unsigned long long)(after - before));
#endif
    pinch_session_close(s);
    pinch_session_close(fresh);
    return sum.reused;
}

/* The same prompt again, and an answer taken back, cost a checkpoint's distance and not the whole text. */
static void again(const char *name, pinch_model *m)
{
    pinch_session *s = session_of(m, 2);
    text t = {.n = 0};
    unsigned long long seed = 7;
    extend(&t, 100, pinch_model_n_vocab(m), &seed);
    size_t reused = 0;
    pinch_error err = {0};
    const bool ok = s && pinch_session_sync(s, 0, t.tokens, 60, NULL, &err) == PINCH_OK && pinch_session_feed(s, 0, t.tokens + 60, 1, &err) == PINCH_OK &&
                    pinch_session_feed(s, 0, t.tokens + 61, 1, &err) == PINCH_OK && pinch_session_sync(s, 0, t.tokens, 60, &reused, &err) == PINCH_OK;
    CHECK("the same prompt again computes one token", ok && reused == 59, "%s: %zu reused, %s", name, reused, err.message);
    pinch_session_close(s);
}

static void try_model(const char *name, const char *path, bool recurrent)
{
    pinch_model *m = NULL;
    pinch_error err = {0};
    pinch_model_options o = pinch_model_options_default();
    if (!CHECK("model opens", pinch_model_open(&m, path, &o, &err) == PINCH_OK, "%s: %s", name, err.message)) return;
    const size_t with = mixed_requests(name, m, 3), without = mixed_requests(name, m, -1);
    CHECK("checkpoints save work", recurrent ? with * 2 > without * 3 : with >= without, "%s: %zu tokens reused with, %zu without", name, with, without);
    again(name, m);
    pinch_model_close(m);
}

int main(void)
{
    static const struct {
        const char *name;
        bool recurrent;
    } shared[] = {{"gemma2-f32", false}, {"gemma4-f32", false}, {"gpt-oss-f32", false}, {"lfm2-swa-f32", true}, {"qwen35-f32", true}, {"granitehybrid-moe", true}, {"falcon-h1-f32", true}, {"nemotron-h-moe-f32", true}};
    try_model("gemma3-q8", "tests/golden/gemma3-q8/model.gguf", false);
    const char *folder = pn_shared();
    if (!folder) pn_skip("architectures of ../shared", "../shared is missing");
    for (size_t i = 0; folder && i < PN_COUNT(shared); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/golden/%s/model.gguf", folder, shared[i].name);
        try_model(shared[i].name, path, shared[i].recurrent);
    }
    return pn_done();
}
