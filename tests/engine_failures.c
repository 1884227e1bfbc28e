/* Failure injection: the n-th allocation or read fails, for every n, in opening a model, opening a session and a turn.
 *
 * Each must give a status with a sentence, leak nothing, and leave the session usable or closed cleanly. The Makefile links this program with --wrap for
 * malloc, calloc, realloc, mmap and pread, so that the library's calls come here. Also counts allocations: a token's path makes none. */
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine_case.h"

/* A kind of call that can be made to fail: `left` counts down at each call and the call that finds 0 fails; below 0 none does. */
typedef struct injected {
    const char *what;
    _Atomic long left, made;
} injected;
static injected allocations = {.what = "allocation", .left = -1}, reads = {.what = "read", .left = -1};
static _Atomic long mappings; /* mapped and not yet unmapped */

static bool fails(injected *kind)
{
    kind->made++;
    return kind->left >= 0 && kind->left-- == 0;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t count, size_t n);
void *__real_realloc(void *p, size_t n);
void *__real_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
int __real_munmap(void *at, size_t n);
ssize_t __real_pread64(int fd, void *buffer, size_t n, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t count, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset);
int __wrap_munmap(void *at, size_t n);
ssize_t __wrap_pread64(int fd, void *buffer, size_t n, off_t offset);

void *__wrap_malloc(size_t n)
{
    return fails(&allocations) ? NULL : __real_malloc(n);
}
void *__wrap_calloc(size_t count, size_t n)
{
    return fails(&allocations) ? NULL : __real_calloc(count, n);
}
void *__wrap_realloc(void *p, size_t n)
{
    return fails(&allocations) ? NULL : __real_realloc(p, n);
}
void *__wrap_mmap64(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
    if (fails(&allocations)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *p = __real_mmap64(at, n, protection, flags, fd, offset);
    mappings += p != MAP_FAILED;
    return p;
}
int __wrap_munmap(void *at, size_t n)
{
    mappings--;
    return __real_munmap(at, n);
}
ssize_t __wrap_pread64(int fd, void *buffer, size_t n, off_t offset)
{
    if (!fails(&reads)) return __real_pread64(fd, buffer, n, offset);
    errno = EIO;
    return -1;
}

/* One attempt at something with a failure injected. Its objects are closed again, whatever happens. */
typedef pinch_status (*attempt_fn)(void *ctx, pinch_error *err);

enum { MOST_CALLS = 20000 };

/* Lets call 0, 1, 2, ... fail until an attempt makes fewer calls than that. */
static void inject(injected *kind, const char *where, attempt_fn attempt, void *ctx)
{
    long n = 0;
    bool reached = true;
    for (; reached && n < MOST_CALLS; n++) {
        pinch_error err = {0};
        const long before = mappings;
        kind->left = n;
        const pinch_status status = attempt(ctx, &err);
        reached = kind->left < 0;
        kind->left = -1;
        if (!reached) CHECK("without a failure it works", status == PINCH_OK, "%s, %s %ld not reached: %s", where, kind->what, n, err.message);
        CHECK("a failure has a status and a sentence", status == PINCH_OK || (err.status == status && err.message[0]), "%s, %s %ld: status %d, '%s'", where, kind->what, n, status, err.message);
        CHECK("a failure leaves no mapping behind", mappings == before, "%s, %s %ld: %ld more", where, kind->what, n, mappings - before);
    }
    CHECK("every call was made to fail", !reached, "%s: %s %ld still reached", where, kind->what, n);
}

typedef struct scene {
    const golden_case *c;
    pinch_model *model;
    pinch_session *session;
    pinch_activations activations;
    bool mapped;
    pinch_draft draft;
} scene;

static pinch_status open_model(void *ctx, pinch_error *err)
{
    const scene *s = ctx;
    pinch_model_options options = pinch_model_options_default();
    options.activations = s->activations;
    options.use_mapping = s->mapped;
    pinch_model *model = NULL;
    const pinch_status status = pinch_model_open(&model, s->c->path, &options, err);
    CHECK("an out-parameter is written on success alone", (status == PINCH_OK) == (model != NULL), "status %d", status);
    pinch_model_close(model);
    return status;
}

static pinch_session_options session_options(const scene *s)
{
    pinch_session_options options = pinch_session_options_default();
    options.n_ctx = CASE_CTX;
    options.n_threads = options.n_threads_batch = 2;
    options.type_k = s->c->type_k;
    options.type_v = s->c->type_v;
    options.draft = s->draft;
    return options;
}

static pinch_status open_session(void *ctx, pinch_error *err)
{
    scene *s = ctx;
    const pinch_session_options options = session_options(s);
    pinch_session *session = NULL;
    const pinch_status status = pinch_session_open(&session, s->model, &options, err);
    CHECK("an out-parameter is written on success alone", (status == PINCH_OK) == (session != NULL), "status %d", status);
    pinch_session_close(session);
    return status;
}

/* A turn in the scene's session: goes back to the start, feeds the prompt, samples a token. */
static pinch_status take_turn(void *ctx, pinch_error *err)
{
    scene *s = ctx;
    pinch_sampler_options how = pinch_sampler_options_default();
    pinch_sampler *sampler = NULL;
    pinch_status status = pinch_session_truncate(s->session, 0, 0, err);
    if (status == PINCH_OK) status = pinch_session_feed(s->session, 0, s->c->prompt, s->c->n_prompt, err);
    const int32_t held = pinch_session_position(s->session, 0);
    CHECK("a failed feed leaves the sequence as it was", held == (status == PINCH_OK ? (int32_t)s->c->n_prompt : 0) || held == (int32_t)s->c->n_prompt, "%d tokens held", held);
    if (status == PINCH_OK) status = pinch_sampler_open(&sampler, s->model, &how, err);
    if (status == PINCH_OK) pinch_sampler_accept(sampler, pinch_sampler_choose(sampler, pinch_session_logits(s->session)));
    pinch_sampler_close(sampler);
    return status;
}

static pinch_status use_text(void *ctx, pinch_error *err)
{
    static const char text[] = "the cat and the hat";
    scene *s = ctx;
    pinch_token ids[64];
    char back[256];
    size_t n = 0, n_back = 0;
    pinch_status status = pinch_tokenize(s->model, text, sizeof text - 1, true, true, ids, PN_COUNT(ids), &n, err);
    if (status == PINCH_OK) status = pinch_detokenize(s->model, ids, n, false, back, sizeof back, &n_back, err);
    if (status != PINCH_OK) return status;
    const pinch_message message = {.role = "user", .content = text};
    return pinch_chat_render(s->model, &message, 1, true, back, sizeof back, &n_back, err);
}

static void check_turn(scene *s)
{
    float *want = case_logits(s->c, s->session, s->c->prompt, s->c->n_prompt);
    inject(&allocations, "turn", take_turn, s);
    pinch_error err = {0};
    const bool fed = pinch_session_truncate(s->session, 0, 0, &err) == PINCH_OK && pinch_session_feed(s->session, 0, s->c->prompt, s->c->n_prompt, &err) == PINCH_OK;
    if (want)
        CHECK("after all failures the session computes the same bits",
              fed && memcmp(pinch_session_logits(s->session), want + (s->c->n_prompt - 1) * (size_t)s->c->n_vocab, (size_t)s->c->n_vocab * sizeof(float)) == 0, "%s", err.message);
    free(want);
}

static void check_token_path(const scene *s)
{
    pinch_sampler_options how = pinch_sampler_options_default();
    pinch_generate_options options = pinch_generate_options_default();
    pinch_generate_result result = {0};
    pinch_sampler *sampler = NULL;
    pinch_error err = {0};
    options.max_tokens = 40;
    options.ignore_eos = true;
    if (!CHECK("sampler opens", pinch_sampler_open(&sampler, s->model, &how, &err) == PINCH_OK, "%s", err.message)) return;
    const long before = allocations.made;
    const bool written = pinch_generate(s->session, 0, sampler, &options, &result, &err) == PINCH_OK;
    CHECK("generating allocates nothing", written && result.n_tokens == 40 && allocations.made == before, "%ld allocations for %d tokens: %s", allocations.made - before, result.n_tokens,
          err.message);
    pinch_sampler_close(sampler);
}

/* Embeddings are read from the file, those of drafts too. */
static pinch_status continue_text(void *ctx, pinch_error *err)
{
    const scene *s = ctx;
    pinch_sampler_options how = pinch_sampler_options_default();
    pinch_generate_options options = pinch_generate_options_default();
    pinch_generate_result result = {0};
    pinch_sampler *sampler = NULL;
    how.temperature = 0;
    options.max_tokens = 8;
    options.ignore_eos = true;
    pinch_status status = pinch_session_sync(s->session, 0, s->c->prompt, s->c->n_prompt, NULL, err);
    if (status == PINCH_OK) status = pinch_sampler_open(&sampler, s->model, &how, err);
    if (status == PINCH_OK) status = pinch_generate(s->session, 0, sampler, &options, &result, err);
    pinch_sampler_close(sampler);
    return status;
}

static void check_reads(scene *s)
{
    const size_t n = (size_t)pinch_model_n_vocab(s->model);
    float *want = malloc(n * sizeof *want);
    pinch_error err = {0};
    CHECK("text is continued", want && continue_text(s, &err) == PINCH_OK, "%s", err.message);
    if (want) memcpy(want, pinch_session_logits(s->session), n * sizeof *want);
    inject(&reads, "generation with drafts", continue_text, s);
    CHECK("after all failures the session leaves the same bits", want && continue_text(s, &err) == PINCH_OK && !memcmp(want, pinch_session_logits(s->session), n * sizeof *want), "%s", err.message);
    free(want);
}

static void check_case(const golden_case *c)
{
    scene s = {.c = c};
    for (int i = 0; i < 3; i++) {
        s.activations = i == 2 ? PINCH_ACTIVATIONS_F32 : PINCH_ACTIVATIONS_Q8;
        s.mapped = i != 1;
        inject(&allocations, s.mapped ? "open, mapped" : "open, read", open_model, &s);
        inject(&reads, s.mapped ? "open, mapped" : "open, read", open_model, &s);
    }
    s.model = case_model(c, PINCH_ACTIVATIONS_Q8);
    if (!s.model) return;
    inject(&allocations, "session", open_session, &s);
    inject(&allocations, "text", use_text, &s);
    s.session = case_session(c, s.model, 2, 0, 1);
    if (s.session) {
        check_turn(&s);
        check_token_path(&s);
    }
    pinch_session_close(s.session);
    pinch_model_close(s.model);
}

/* Sessions that draft, of a model with recurrent layers and a block of its own: what they open, and a token's path. */
static void check_drafts(void)
{
    const char *shared = pn_shared();
    if (!shared) {
        pn_skip("sessions that draft", "../shared is missing");
        return;
    }
    golden_case c = {.name = "qwen35-mtp", .prompt = {5, 6, 7, 8, 5, 6, 7, 8, 5, 6}, .n_prompt = 10, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16};
    snprintf(c.path, sizeof c.path, "%s/golden/%s/model.gguf", shared, c.name);
    pinch_model_options o = pinch_model_options_default();
    o.draft_block = true;
    scene s = {.c = &c};
    pinch_error err = {0};
    if (!CHECK("model opens", pinch_model_open(&s.model, c.path, &o, &err) == PINCH_OK, "%s", err.message)) return;
    for (s.draft = PINCH_DRAFT_LOOKUP; s.draft <= PINCH_DRAFT_MTP; s.draft++) {
        inject(&allocations, "session that drafts", open_session, &s);
        const pinch_session_options options = session_options(&s);
        const bool ready = pinch_session_open(&s.session, s.model, &options, &err) == PINCH_OK && pinch_session_feed(s.session, 0, c.prompt, c.n_prompt, &err) == PINCH_OK;
        if (CHECK("a session that drafts is fed", ready, "%s", err.message)) {
            check_token_path(&s);
            check_reads(&s);
        }
        pinch_session_close(s.session);
        s.session = NULL;
    }
    pinch_model_close(s.model);
}

int main(void)
{
    for (size_t i = 0; i < PN_COUNT(golden_names); i++) {
        golden_case c;
        if (case_load(&c, golden_names[i])) check_case(&c);
        case_free(&c);
    }
    check_drafts();
    return pn_done();
}
