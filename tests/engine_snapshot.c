/* Snapshots: a sequence that was written and read goes on with the same bits, in a session of any context and batch; what is short, damaged, foreign or of
 * another kind is refused with a sentence, and the session goes on working. */
#include "base/base.h"
#include "pinch.h"
#include "snapshot_bytes.h"
#include "test.h"

enum { PROMPT = 70, MORE = 6 };

static bool refuse(void *user, const void *bytes, size_t n)
{
    (void)user, (void)bytes, (void)n;
    return false;
}

static pinch_session *session_of(pinch_model *m, int32_t n_ctx, int32_t n_batch, pinch_cache_type type)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = n_ctx;
    o.n_batch = n_batch;
    o.n_seq = 2;
    o.n_threads = 1;
    o.type_k = o.type_v = type;
    pinch_session *s = NULL;
    pinch_error err = {0};
    CHECK("session opens", pinch_session_open(&s, m, &o, &err) == PINCH_OK, "%s", err.message);
    return s;
}

/* A copy of the logits after some more tokens; the caller's. */
static float *go_on(pinch_session *s, int32_t seq, const pinch_token *tokens, int32_t n_vocab)
{
    pinch_error err = {0};
    float *copy = malloc((size_t)n_vocab * sizeof *copy);
    for (int i = 0; i < MORE; i++) CHECK("the sequence goes on", pinch_session_feed(s, seq, tokens + i, 1, &err) == PINCH_OK, "%s", err.message);
    if (copy && pinch_session_logits(s)) memcpy(copy, pinch_session_logits(s), (size_t)n_vocab * sizeof *copy);
    return copy;
}

static pinch_status load(pinch_session *s, const snapshot_bytes *b, pinch_error *err)
{
    snapshot_bytes copy = *b;
    copy.at = 0;
    return pinch_session_load(s, 1, snapshot_get, &copy, err);
}

/* Everything cut short and many a changed byte. Afterwards the session serves as if nothing had been. */
static void hostile(const char *name, pinch_session *s, snapshot_bytes *b)
{
    pinch_error err = {0};
    const size_t whole = b->n;
    int taken = 0, silent = 0;
    for (size_t n = 0; n < whole; n += 1 + whole / 97) {
        b->n = n;
        taken += load(s, b, &err) == PINCH_OK;
        silent += !err.message[0];
    }
    b->n = whole;
    CHECK("a short snapshot is refused", taken == 0 && silent == 0, "%s: %d taken, %d without a sentence", name, taken, silent);
    taken = silent = 0;
    for (size_t i = 0; i < whole; i += i < 64 ? 1 : 1 + whole / 211) {
        b->data[i] ^= (unsigned char)(1 << i % 8);
        err.message[0] = 0;
        taken += load(s, b, &err) == PINCH_OK;
        silent += !err.message[0];
        b->data[i] ^= (unsigned char)(1 << i % 8);
    }
    CHECK("a damaged snapshot is refused", taken == 0 && silent == 0, "%s: %d taken, %d without a sentence", name, taken, silent);
}

static void round_trip(const char *name, pinch_model *m, pinch_model *other, pinch_cache_type type)
{
    pinch_error err = {0};
    snapshot_bytes b = {malloc(SNAPSHOT_MOST), 0, 0};
    pinch_token tokens[PROMPT + MORE];
    unsigned long long seed = 5;
    const int32_t n_vocab = pinch_model_n_vocab(m);
    for (size_t i = 0; i < PN_COUNT(tokens); i++) tokens[i] = (pinch_token)(pn_random(&seed) % (unsigned long long)n_vocab);
    pinch_session *a = session_of(m, 128, 8, type), *c = session_of(m, 200, 32, type), *foreign = other ? session_of(other, 128, 8, PINCH_CACHE_F16) : NULL;
    bool ok = a && c && b.data && pinch_session_feed(a, 0, tokens, PROMPT, &err) == PINCH_OK && pinch_session_save(a, 0, snapshot_put, &b, &err) == PINCH_OK;
    CHECK("a snapshot is written", ok, "%s: %s", name, err.message);
    if (ok) {
        hostile(name, c, &b);
        CHECK("a whole one is read", load(c, &b, &err) == PINCH_OK && pinch_session_position(c, 1) == PROMPT && !pinch_session_logits(c), "%s: %s", name, err.message);
        float *stayed = go_on(a, 0, tokens + PROMPT, n_vocab), *restored = go_on(c, 1, tokens + PROMPT, n_vocab);
        CHECK("restored is never left", stayed && restored && !memcmp(stayed, restored, (size_t)n_vocab * sizeof(float)), "%s, cache type %d", name, (int)type);
        free(restored);
        ok = pinch_session_truncate(c, 1, PROMPT - 40, &err) == PINCH_OK && pinch_session_feed(c, 1, tokens + PROMPT - 40, 40, &err) == PINCH_OK;
        restored = ok ? go_on(c, 1, tokens + PROMPT, n_vocab) : NULL;
        CHECK("going back below what was loaded is exact, too", stayed && restored && !memcmp(stayed, restored, (size_t)n_vocab * sizeof(float)), "%s: %s", name, err.message);
        free(stayed);
        free(restored);
        CHECK("a writer that fails is a status", pinch_session_save(a, 0, refuse, NULL, &err) == PINCH_ERR_IO, "%d", (int)err.status);
        const pinch_status beyond = pinch_session_save(a, 2, snapshot_put, &b, &err), below = pinch_session_load(a, -1, snapshot_get, &b, &err);
        CHECK("a sequence that is none is refused", beyond == PINCH_ERR_ARGUMENT && below == PINCH_ERR_ARGUMENT, "%d and %d", (int)beyond, (int)below);
    }
    if (ok && foreign) {
        CHECK("a sequence is filled", pinch_session_feed(foreign, 1, tokens, 1, &err) == PINCH_OK, "%s", err.message);
        CHECK("another model's is refused, and what was there stays", load(foreign, &b, &err) == PINCH_ERR_ARGUMENT && strstr(err.message, "another model") && pinch_session_position(foreign, 1) == 1,
              "%s", err.message);
    }
    pinch_session *small = ok ? session_of(m, 32, 8, type) : NULL;
    if (small) CHECK("one too long is refused", load(small, &b, &err) == PINCH_ERR_CONTEXT, "%s", err.message);
    pinch_session *wide = ok ? session_of(m, 128, 8, type == PINCH_CACHE_F16 ? PINCH_CACHE_F32 : PINCH_CACHE_F16) : NULL;
    if (wide) CHECK("another cache type is refused", load(wide, &b, &err) == PINCH_ERR_ARGUMENT && strstr(err.message, "cache type"), "%s", err.message);
    pinch_session_close(wide);
    pinch_session_close(small);
    pinch_session_close(foreign);
    pinch_session_close(a);
    pinch_session_close(c);
    free(b.data);
}

static pinch_model *open_model(const char *path)
{
    pinch_model *m = NULL;
    pinch_error err = {0};
    CHECK("model opens", pinch_model_open(&m, path, NULL, &err) == PINCH_OK, "%s: %s", path, err.message);
    return m;
}

static bool holds_q8_0(const pinch_model *m)
{
    pinch_session_options o = pinch_session_options_default();
    pinch_memory_plan plan;
    pinch_error err = {0};
    o.type_k = o.type_v = PINCH_CACHE_Q8_0;
    return pinch_session_plan(m, &o, &plan, &err) == PINCH_OK;
}

static void try_model(const char *name, const char *path, pinch_model *other)
{
    pinch_model *m = open_model(path);
    if (!m) return;
    if (holds_q8_0(m)) round_trip(name, m, other, PINCH_CACHE_Q8_0);
    round_trip(name, m, other, PINCH_CACHE_F16);
    round_trip(name, m, other, PINCH_CACHE_F32);
    pinch_model_close(m);
}

int main(void)
{
    static const char *const shared[] = {"gemma2-f32", "gemma4-f32", "gpt-oss-f32", "llama-headdim", "lfm2-swa-f32"};
    pinch_model *other = open_model("tests/golden/llama-f32/model.gguf");
    try_model("gemma3-q8", "tests/golden/gemma3-q8/model.gguf", other);
    try_model("qwen3-q4km", "tests/golden/qwen3-q4km/model.gguf", other);
    const char *folder = pn_shared();
    if (!folder) pn_skip("architectures of ../shared", "../shared is missing");
    for (size_t i = 0; folder && i < PN_COUNT(shared); i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/golden/%s/model.gguf", folder, shared[i]);
        try_model(shared[i], path, other);
    }
    pinch_model_close(other);
    return pn_done();
}
