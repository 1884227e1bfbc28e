/* What a session promises: the same bits for any batch shape, thread count, kernel, mapping and company of other sequences; going back and
 * sharing prefixes exactly; a stopped or failed call leaves everything as it was; few barriers. */
#include "engine/engine.h"
#include "engine_case.h"

#include <sys/mman.h>
#include <unistd.h>

static bool same_row(const float *a, const float *b, int32_t n) { return memcmp(a, b, (size_t)n * sizeof *a) == 0; }

/* Logits of the whole prompt under given options; NULL after a failed check. */
static float *run_with(const golden_case *c, const pinch_model_options *mo, int threads, int32_t batch)
{
    pinch_error err = {0};
    pinch_model *m = NULL;
    if (!CHECK("model opens with these options", pinch_model_open(&m, c->path, mo, &err) == PINCH_OK, "%s: %s", c->name, err.message)) return NULL;
    pinch_session *s = case_session(c, m, threads, batch, 1);
    float *out = s ? case_logits(c, s, c->prompt, c->n_prompt) : NULL;
    pinch_session_close(s);
    pinch_model_close(m);
    return out;
}

/* ---- the great equality ---------------------------------------------------------------------------------------------------------------- */

static void expect_same(const golden_case *c, const float *want, const pinch_model_options *mo, int threads, int32_t batch, const char *what)
{
    float *got = run_with(c, mo, threads, batch);
    size_t differ = 0;
    for (size_t i = 0; got && i < c->n_prompt * (size_t)c->n_vocab; i++) differ += memcmp(&got[i], &want[i], sizeof *got) != 0;
    CHECK("the same bits whatever the way", got && differ == 0, "%s, %s, %d threads, batches of %d: %zu logits differ", c->name, what, threads, (int)batch, differ);
    free(got);
}

static void great_equality(const golden_case *c, pinch_activations activations)
{
    static const char *const scalar[] = {"f32=scalar", "q4_0=scalar", "q4_1=scalar", "q5_0=scalar", "q5_1=scalar", "q8_0=scalar", "q4_k=scalar", "q6_k=scalar"};
    static const int32_t batches[] = {512, 1, 7, 64};
    pinch_model_options plain = pinch_model_options_default();
    plain.activations = activations;
    float *want = run_with(c, &plain, 1, 512);
    if (!want) return;
    for (size_t b = 0; b < PN_COUNT(batches); b++)
        for (int threads = 1; threads <= 3; threads++) expect_same(c, want, &plain, threads, batches[b], "default kernels");
    pinch_model_options o = plain;
    o.use_mapping = false;
    expect_same(c, want, &o, 2, 64, "read instead of mapped");
    o.kernels = scalar;
    o.n_kernels = PN_COUNT(scalar);
    expect_same(c, want, &o, 2, 7, "scalar kernels, read");
    o.use_mapping = true;
    expect_same(c, want, &o, 3, 512, "scalar kernels, mapped");
    free(want);
}

/* ---- sequences -------------------------------------------------------------------------------------------------------------------------- */

/* Three sequences of different lengths, their rows interleaved: each gets the bits it gets alone. */
static void company(const golden_case *c, pinch_model *m, const float *want)
{
    enum { SEQS = 3 };
    pinch_session *s = case_session(c, m, 2, 32, SEQS);
    if (!s) return;
    pinch_row rows[SEQS * CASE_TOKENS];
    int32_t place[SEQS * CASE_TOKENS];
    size_t n = 0;
    for (size_t i = 0; i < c->n_prompt; i++)
        for (int32_t q = 0; q < SEQS; q++)
            if (i < c->n_prompt - (size_t)q * 5) {
                place[n] = (int32_t)i;
                rows[n++] = (pinch_row){.token = c->prompt[i], .seq = q, .logits = true};
            }
    float *got = malloc(n * (size_t)c->n_vocab * sizeof *got);
    pinch_error err = {0};
    CHECK("rows of several sequences compute", got && pinch_session_eval(s, rows, n, case_row, got, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    size_t wrong = 0;
    for (size_t i = 0; got && i < n; i++) wrong += !same_row(got + i * (size_t)c->n_vocab, want + (size_t)place[i] * (size_t)c->n_vocab, c->n_vocab);
    CHECK("a sequence in company has the bits it has alone", wrong == 0, "%s: %zu of %zu rows differ", c->name, wrong, n);
    free(got);
    pinch_session_close(s);
}

static void expect_last(const golden_case *c, pinch_session *s, const float *want, size_t at, const char *what)
{
    const float *got = pinch_session_logits(s);
    CHECK(what, got && same_row(got, want + at * (size_t)c->n_vocab, c->n_vocab), "%s: logits after token %zu", c->name, at);
}

/* Truncate, feed again, share prefixes, copy: exact even where a window's ring has moved on. */
static void going_back(const golden_case *c, pinch_model *m, const float *want)
{
    pinch_session *s = case_session(c, m, 2, 4, 2);
    pinch_error err = {0};
    if (!s) return;
    const size_t n = c->n_prompt;
    size_t reused = 0;
    CHECK("feeding works", pinch_session_feed(s, 0, c->prompt, n, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    expect_last(c, s, want, n - 1, "feeding in batches of 4 gives the golden run's bits");
    for (size_t back = 1; back < n; back += 6) {
        const int32_t to = (int32_t)(n - back);
        CHECK("going back works", pinch_session_truncate(s, 0, to, &err) == PINCH_OK && pinch_session_position(s, 0) == to, "%s: to %d: %s", c->name, (int)to, err.message);
        CHECK("going on works", pinch_session_feed(s, 0, c->prompt + to, back, &err) == PINCH_OK, "%s: %s", c->name, err.message);
        expect_last(c, s, want, n - 1, "going back and on gives the same bits");
    }
    pinch_token other[CASE_TOKENS];
    memcpy(other, c->prompt, sizeof other);
    other[n - 3] = (other[n - 3] + 1) % c->n_vocab;
    CHECK("another text with the same beginning", pinch_session_sync(s, 0, other, n, &reused, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    CHECK("back to the first text", pinch_session_sync(s, 0, c->prompt, n, &reused, &err) == PINCH_OK && reused <= n - 3, "%s: %s", c->name, err.message);
    expect_last(c, s, want, n - 1, "sharing a prefix gives the same bits");
    CHECK("the same text again computes its last token only", pinch_session_sync(s, 0, c->prompt, n, &reused, &err) == PINCH_OK && reused == n - 1, "%s: %zu reused", c->name, reused);
    expect_last(c, s, want, n - 1, "and has its logits");
    CHECK("copying works", pinch_session_truncate(s, 0, 9, &err) == PINCH_OK && pinch_session_copy(s, 0, 1, &err) == PINCH_OK && pinch_session_position(s, 1) == 9, "%s: %s", c->name, err.message);
    CHECK("the copy goes on", pinch_session_feed(s, 1, c->prompt + 9, n - 9, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    expect_last(c, s, want, n - 1, "the copy has the same bits");
    pinch_session_close(s);
}

/* ---- failures --------------------------------------------------------------------------------------------------------------------------------- */

static bool stop_now(void *user) { return --*(int *)user < 0; }

static void stopping(const golden_case *c, pinch_model *m, const float *want)
{
    const size_t n = c->n_prompt;
    for (int when = 0; when < 4; when++) {
        int left = 1000;
        pinch_session_options o = pinch_session_options_default();
        o.n_ctx = CASE_CTX;
        o.n_batch = 5;
        o.n_threads = 2;
        o.type_k = c->type_k;
        o.type_v = c->type_v;
        o.callbacks.abort = stop_now;
        o.callbacks.user = &left;
        pinch_session *s = NULL;
        pinch_error err = {0};
        if (!CHECK("session opens", pinch_session_open(&s, m, &o, &err) == PINCH_OK, "%s", err.message)) return;
        pinch_session_feed(s, 0, c->prompt, 20, &err);
        left = when;
        CHECK("the abort callback stops a feed", pinch_session_feed(s, 0, c->prompt + 20, n - 20, &err) == PINCH_ABORTED, "%s after %d batches", c->name, when);
        CHECK("a stopped feed leaves the sequence as it was", pinch_session_position(s, 0) == 20, "%s: at %d", c->name, (int)pinch_session_position(s, 0));
        left = 1000;
        CHECK("and the session is usable", pinch_session_feed(s, 0, c->prompt + 20, n - 20, &err) == PINCH_OK, "%s: %s", c->name, err.message);
        expect_last(c, s, want, n - 1, "with the same bits");
        pinch_session_close(s);
    }
}

/* A file that shrinks under a model that was read, not mapped: rows whose embeddings are gone fail, and fail cleanly. */
static void unreadable(const golden_case *c)
{
    enum { LOW = 80, ALL = 200, BACK = 100 };
    pinch_token text[ALL];
    for (int i = 0; i < ALL; i++) text[i] = i < LOW ? 10 + i % 30 : 200 + i % 50;
    size_t size = 0;
    char *file = case_read(c->path, &size);
    const int fd = memfd_create(c->name, MFD_CLOEXEC);
    pinch_model_options mo = pinch_model_options_default();
    mo.use_mapping = false;
    pinch_model *m = NULL;
    pinch_error err = {0};
    if (!CHECK("model opens from memory", file && fd >= 0 && write(fd, file, size) == (ssize_t)size && !pinch_model_open_fd(&m, fd, c->name, &mo, &err), "%s: %s", c->name, err.message)) return;
    pinch_session *s = case_session(c, m, 2, 32, 2), *fresh = case_session(c, m, 1, 64, 1);
    float *want = fresh ? case_logits(c, fresh, text, ALL) : NULL;
    const off_t cut = (off_t)(m->network.embedding->offset + 100 * pn_network_raw_bytes(&m->network));
    if (s && want && CHECK("a text is fed", !pinch_session_feed(s, 0, text, ALL, &err), "%s: %s", c->name, err.message)) {
        CHECK("the file shrinks", ftruncate(fd, cut) == 0, "%s", c->name);
        CHECK("a feed that meets its end fails", pinch_session_feed(s, 1, text, ALL, &err) == PINCH_ERR_IO, "%s: %s", c->name, err.message);
        CHECK("and leaves both sequences as they were", pinch_session_position(s, 1) == 0 && pinch_session_position(s, 0) == ALL && !pinch_session_logits(s), "%s", c->name);
        const bool back = pinch_session_truncate(s, 0, BACK, &err) == PINCH_OK; /* without a ring nothing has to be read */
        const int32_t at = pinch_session_position(s, 0);
        CHECK("going back that cannot be computed leaves a sequence empty", at == (back ? BACK : 0), "%s: at %d", c->name, (int)at);
        CHECK("the file is whole again", pwrite(fd, file, size, 0) == (ssize_t)size, "%s", c->name);
        CHECK("the text goes on", !pinch_session_feed(s, 0, text + at, (size_t)(ALL - at), &err), "%s: %s", c->name, err.message);
        expect_last(c, s, want, ALL - 1, "and has the bits that it had");
    }
    free(want);
    free(file);
    close(fd);
    pinch_session_close(fresh);
    pinch_session_close(s);
    pinch_model_close(m);
}

static void refusals(const golden_case *c, pinch_model *m)
{
    pinch_session *s = case_session(c, m, 1, 8, 2);
    pinch_error err = {0};
    const pinch_token bad = c->n_vocab, good = 3;
    if (!s) return;
    CHECK("a token beyond the vocabulary", pinch_session_feed(s, 0, &bad, 1, &err) == PINCH_ERR_ARGUMENT && strstr(err.message, "token 320 is not in 0..319"), "%s", err.message);
    CHECK("a sequence that does not exist", pinch_session_feed(s, 2, &good, 1, &err) == PINCH_ERR_ARGUMENT && strstr(err.message, "sequence 2 is not in 0..1"), "%s", err.message);
    CHECK("going back to the future", pinch_session_truncate(s, 0, 1, &err) == PINCH_ERR_ARGUMENT, "%s", err.message);
    pinch_token many[CASE_CTX + 1];
    for (size_t i = 0; i < PN_COUNT(many); i++) many[i] = 5;
    CHECK("more than the context holds", pinch_session_feed(s, 0, many, PN_COUNT(many), &err) == PINCH_ERR_CONTEXT && strstr(err.message, "513"), "%s", err.message);
    CHECK("nothing was fed", pinch_session_position(s, 0) == 0, "%d", (int)pinch_session_position(s, 0));
    CHECK("exactly the context fits", pinch_session_feed(s, 0, many, CASE_CTX, &err) == PINCH_OK, "%s", err.message);
    CHECK("and not one more", pinch_session_feed(s, 0, &good, 1, &err) == PINCH_ERR_CONTEXT, "%s", err.message);
    pinch_session_close(s);
}

/* A q8_0 cache holds whole blocks of 32 channels: planning refuses what opening refuses, in the same words. */
static void cache_types(const golden_case *c, pinch_model *m)
{
    static const struct { pinch_cache_type k, v; const char *what; } types[] = {{PINCH_CACHE_Q8_0, PINCH_CACHE_F16, "keys"}, {PINCH_CACHE_F16, PINCH_CACHE_Q8_0, "values"}};
    const bool fits = m->network.plan.shapes[0].d_k % 32 == 0;
    for (size_t i = 0; i < PN_COUNT(types); i++) {
        pinch_session_options o = pinch_session_options_default();
        o.n_ctx = 64;
        o.type_k = types[i].k;
        o.type_v = types[i].v;
        pinch_memory_plan plan;
        pinch_session *s = NULL;
        pinch_error planned = {0}, opened = {0};
        const pinch_status st = pinch_session_plan(m, &o, &plan, &planned);
        CHECK("a plan knows which caches there can be", st == (fits ? PINCH_OK : PINCH_ERR_ARGUMENT), "%s, %s: status %d %s", c->name, types[i].what, (int)st, planned.message);
        CHECK("opening says the same", pinch_session_open(&s, m, &o, &opened) == st && !strcmp(planned.message, opened.message), "%s: %s / %s", c->name, planned.message, opened.message);
        CHECK("and names the cache", fits || strstr(opened.message, types[i].what), "%s: %s", c->name, opened.message);
        pinch_session_close(s);
    }
}

/* Without rounding activations a cache asked for in q8_0 is one in f16, planned and logged as such. */
static void remember(void *user, pinch_log_level level, const char *message)
{
    (void)level;
    if (strstr(message, "kept in f16")) *(bool *)user = true;
}

static void exact_cache(const golden_case *c)
{
    pinch_model *m = case_model(c, PINCH_ACTIVATIONS_F32);
    pinch_session *s = NULL;
    pinch_session_options o = pinch_session_options_default();
    pinch_memory_plan half = {0}, asked = {0};
    pinch_error err = {0};
    bool told = false;
    o.n_ctx = 64;
    CHECK("an exact session is planned", !pinch_session_plan(m, &o, &half, &err), "%s", err.message);
    o.type_k = o.type_v = PINCH_CACHE_Q8_0;
    o.callbacks = (pinch_callbacks){.log = remember, .user = &told};
    CHECK("an exact session opens", !pinch_session_plan(m, &o, &asked, &err) && !pinch_session_open(&s, m, &o, &err), "%s", err.message);
    CHECK("nothing exact is kept in 8 bits", asked.type_k == PINCH_CACHE_F16 && asked.type_v == PINCH_CACHE_F16 && asked.kv == half.kv, "%s: %llu bytes", c->name, (unsigned long long)asked.kv);
    CHECK("and that is told", told, "%s", c->name);
    pinch_session_close(s);
    pinch_model_close(m);
}

/* ---- barriers ----------------------------------------------------------------------------------------------------------------------------------- */

static void barriers(const golden_case *c, pinch_model *m)
{
    pinch_session *s = case_session(c, m, 2, 64, 1);
    pinch_error err = {0};
    if (!s) return;
    const double layers = m->network.plan.n_layers;
    uint64_t before = pn_pool_barriers(s->pool);
    pinch_session_feed(s, 0, c->prompt, c->n_prompt, &err);
    const double prompt = (double)(pn_pool_barriers(s->pool) - before);
    before = pn_pool_barriers(s->pool);
    pinch_session_feed(s, 0, c->prompt, 1, &err);
    const double token = (double)(pn_pool_barriers(s->pool) - before);
    CHECK("at most 9 barriers a layer for a prompt, and 7 around the layers", prompt <= 9 * layers + 7, "%s: %g for %g layers", c->name, prompt, layers);
    CHECK("6 barriers a layer for a token, and 5 around the layers", token <= 6 * layers + 5, "%s: %g for %g layers", c->name, token, layers);
    pinch_session_close(s);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(golden_names); i++) {
        golden_case c;
        if (!case_load(&c, golden_names[i])) continue;
        great_equality(&c, PINCH_ACTIVATIONS_Q8);
        great_equality(&c, PINCH_ACTIVATIONS_F32);
        pinch_model *m = case_model(&c, PINCH_ACTIVATIONS_Q8);
        const pinch_model_options o = pinch_model_options_default();
        float *want = m ? run_with(&c, &o, 1, 512) : NULL;
        if (want) {
            company(&c, m, want);
            going_back(&c, m, want);
            stopping(&c, m, want);
            unreadable(&c);
            refusals(&c, m);
            cache_types(&c, m);
            exact_cache(&c);
            barriers(&c, m);
        }
        free(want);
        pinch_model_close(m);
        case_free(&c);
    }
    return pn_done();
}
