/* Generation with drafts leaves what generation without them leaves: tokens, how it ended, position, logits and, bit for bit, the sequence's state. With
 * drafts that are wrong at every depth, with what the text itself suggests, however generation ends. */
#include "architectures.h"
#include "engine/engine.h"
#include "golden_each.h"
#include "snapshot_bytes.h"

#if defined(__x86_64__)
enum { EVERY = 1 };
#else
enum { EVERY = 12 }; /* emulated, or multiply-adds in software: hundreds of times slower */
#endif
enum { CTX = 96, PROMPT = 40, TOKENS = 24, DRAFT = 7, MOST = CTX + 8 };

/* ---- one generation, and what it leaves ------------------------------------------------------------------------------------------------- */

typedef struct plan { /* of a generation */
    const char *what;
    int32_t max_tokens;
    int end_in_callback, end_by_abort; /* at this token; 0: not */
    bool ends;                         /* at end tokens, which are made likely */
    bool sampled;
    bool saves; /* in the callback */
    const char *stop;
    int32_t n_ctx;
} plan;

typedef struct left {
    pinch_token tokens[MOST];
    size_t n;
    pinch_generate_result result;
    int32_t position;
    float *logits; /* NULL: none */
    snapshot_bytes state;
} left;

static void left_free(left *l)
{
    free(l->logits);
    free(l->state.data);
}

/* The tokens that a snapshot says it has, from its header. */
static bool read_tokens(void *user, const void *bytes, size_t n)
{
    uint32_t *tokens = user;
    if (*tokens == UINT32_MAX && n >= 16) memcpy(tokens, (const char *)bytes + 12, sizeof *tokens);
    return true;
}

typedef struct watch {
    const plan *p;
    left *l;
    pinch_session *s;
    int32_t begin;
    bool moved; /* the position that a callback saw was another than it should be */
    int saved, refused, untrue; /* snapshots; of those that were saved, ones that hold other than the text */
} watch;

/* What a callback may save is the text; with guesses ahead of it nothing. */
static void save_now(watch *w)
{
    uint32_t tokens = UINT32_MAX;
    pinch_error err = {0};
    const pinch_status st = pinch_session_save(w->s, 0, read_tokens, &tokens, &err);
    w->saved += st == PINCH_OK;
    w->refused += st == PINCH_ERR_ARGUMENT && strstr(err.message, "ahead") != NULL;
    w->untrue += st == PINCH_OK && tokens != (uint32_t)pinch_session_position(w->s, 0);
}

static bool on_token(void *user, pinch_token token, const char *text, size_t n)
{
    watch *w = user;
    (void)text, (void)n;
    if (token < 0) return false;
    w->moved = w->moved || pinch_session_position(w->s, 0) != w->begin + (int32_t)w->l->n;
    if (w->l->n < MOST) w->l->tokens[w->l->n++] = token;
    if (w->p->saves) save_now(w);
    return (int)w->l->n == w->p->end_in_callback;
}

static int abort_in; /* asked so many times more: stop; 0: never */
static bool wants_abort(void *user)
{
    (void)user;
    return abort_in > 0 && --abort_in == 0;
}

static int told; /* lines that say that drafts were given up */
static void on_log(void *user, pinch_log_level level, const char *message)
{
    (void)user, (void)level;
    told += strstr(message, "given up") != NULL;
}

static pinch_draft kind; /* that is tried, LOOKUP or MTP */

/* n_draft 0: no drafts; of a model's own block nevertheless one that follows, so that there is as much state to compare. */
static pinch_session *session_of(pinch_model *m, int32_t n_ctx, int32_t n_draft, int32_t n_seq)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = n_ctx;
    o.n_batch = 16;
    o.n_threads = n_seq;
    o.n_seq = n_seq;
    o.n_checkpoints = -1; /* going back would hide in one */
    o.draft = n_draft || kind == PINCH_DRAFT_MTP ? kind : PINCH_DRAFT_NONE;
    o.n_draft = n_draft;
    o.callbacks.abort = wants_abort;
    o.callbacks.log = on_log;
    pinch_session *s = NULL;
    pinch_error err = {0};
    CHECK("session opens", pinch_session_open(&s, m, &o, &err) == PINCH_OK, "%s", err.message);
    if (s) s->drafts.unmeasured = true;
    if (s && n_draft == 0) s->drafts.propose = NULL;
    return s;
}

static pinch_sampler *sampler_of(pinch_model *m, const plan *p)
{
    const pinch_token eos = pinch_token_eos(m);
    const pinch_logit_bias likely = {eos, 4.0f};
    pinch_sampler_options o = pinch_sampler_options_default();
    o.temperature = p->sampled ? 1.5f : 0.0f;
    o.seed = 20260101;
    o.logit_bias = &likely;
    o.n_logit_bias = p->ends && eos >= 0;
    if (p->sampled) {
        o.repeat_penalty = 1.3f;
        o.dry_multiplier = 0.8f;
        o.frequency_penalty = 0.2f;
    }
    pinch_sampler *sampler = NULL;
    pinch_error err = {0};
    CHECK("sampler opens", pinch_sampler_open(&sampler, m, &o, &err) == PINCH_OK, "%s", err.message);
    return sampler;
}

/* What sequence 0 holds, and the logits at hand. */
static void look(pinch_session *s, left *l)
{
    const size_t n = (size_t)pinch_model_n_vocab(s->model);
    pinch_error err = {0};
    l->position = pinch_session_position(s, 0);
    const float *logits = pinch_session_logits(s);
    l->logits = logits ? malloc(n * sizeof *logits) : NULL;
    if (l->logits) memcpy(l->logits, logits, n * sizeof *logits);
    l->state.data = malloc(SNAPSHOT_MOST);
    CHECK("the sequence is saved", l->state.data && pinch_session_save(s, 0, snapshot_put, &l->state, &err) == PINCH_OK, "%s", err.message);
}

static left generate(pinch_session *s, pinch_sampler *sampler, const plan *p, const pinch_token *prompt)
{
    left l = {.n = 0};
    watch w = {.p = p, .l = &l, .s = s, .begin = PROMPT};
    pinch_error err = {0};
    pinch_generate_options o = pinch_generate_options_default();
    o.max_tokens = p->max_tokens;
    o.ignore_eos = !p->ends;
    o.special = true;
    o.stops = &p->stop;
    o.n_stops = p->stop != NULL;
    o.on_token = on_token;
    o.user = &w;
    abort_in = 0;
    CHECK("the prompt is fed", pinch_session_sync(s, 0, prompt, PROMPT, NULL, &err) == PINCH_OK, "%s: %s", p->what, err.message);
    for (int i = 0; i < PROMPT; i++) pinch_sampler_accept(sampler, prompt[i]);
    abort_in = p->end_by_abort;
    CHECK("text is generated", pinch_generate(s, 0, sampler, &o, &l.result, &err) == PINCH_OK, "%s: %s", p->what, err.message);
    abort_in = 0;
    CHECK("a callback sees the position that the text has", !w.moved, "%s", p->what);
    const bool guessed = l.result.drafts.n_drafted > 0, refusals = w.refused > 0;
    if (p->saves) CHECK("a callback saves the text, or is refused with guesses ahead", w.untrue == 0 && w.saved > 0 && refusals == guessed, "%s: %d saved, %d refused", p->what, w.saved, w.refused);
    look(s, &l);
    return l;
}

static left generation(pinch_model *m, pinch_session *s, const plan *p, const pinch_token *prompt)
{
    pinch_sampler *sampler = sampler_of(m, p);
    const left l = sampler ? generate(s, sampler, p, prompt) : (left){.n = 0};
    pinch_sampler_close(sampler);
    return l;
}

static void same(const char *name, const plan *p, const char *drafter, const left *want, const left *got, int32_t n_vocab)
{
    const snapshot_bytes *a = &want->state, *b = &got->state;
    CHECK("drafts change no token", want->n == got->n && !memcmp(want->tokens, got->tokens, want->n * sizeof *want->tokens), "%s, %s, %s: %zu tokens, not %zu",
          name, p->what, drafter, got->n, want->n);
    CHECK("nor how generation ends", want->result.stop == got->result.stop && want->result.n_tokens == got->result.n_tokens && want->position == got->position,
          "%s, %s, %s: stop %d at %d, not %d at %d", name, p->what, drafter, (int)got->result.stop, (int)got->position, (int)want->result.stop, (int)want->position);
    CHECK("nor a bit of the logits that it leaves",
          !want->logits == !got->logits && (!want->logits || !memcmp(want->logits, got->logits, (size_t)n_vocab * sizeof *want->logits)), "%s, %s, %s", name, p->what, drafter);
    CHECK("nor a bit of the state", a->data && b->data && a->n == b->n && !memcmp(a->data, b->data, a->n), "%s, %s, %s", name, p->what, drafter);
}

/* ---- drafts that know what will come ------------------------------------------------------------------------------------------------------ */

static struct {
    const left *text; /* what generation without drafts gave */
    int32_t prompt, round;
    int32_t accepted; /* as it should be */
} known;

/* 0, 1, 2, ... tokens as they will be chosen, then others. */
static int32_t propose_known(pinch_session *s, int32_t seq, int32_t length, int32_t most)
{
    const int32_t right = known.round++ % (DRAFT + 1), n_vocab = pinch_model_n_vocab(s->model);
    for (int32_t i = 0; i < most; i++) {
        const int32_t at = length + i - known.prompt;
        const pinch_token next = at < (int32_t)known.text->n ? known.text->tokens[at] : 0;
        s->texts[seq].tokens[length + i] = i < right ? next : (next + 1) % n_vocab;
    }
    known.accepted += right < most ? right : most;
    return most;
}

/* ---- the tests ------------------------------------------------------------------------------------------------------------------------------ */

static void compare(const char *name, pinch_model *m, const plan *p, const pinch_token *prompt)
{
    const int32_t n_ctx = p->n_ctx ? p->n_ctx : CTX, n_vocab = pinch_model_n_vocab(m);
    pinch_session *plain = session_of(m, n_ctx, 0, 1), *drafting = session_of(m, n_ctx, DRAFT, 1);
    if (plain && drafting) {
        left want = generation(m, plain, p, prompt);
        left looked = generation(m, drafting, p, prompt);
        same(name, p, kind == PINCH_DRAFT_MTP ? "mtp" : "lookup", &want, &looked, n_vocab);
        known.text = &want;
        known.prompt = PROMPT;
        known.round = known.accepted = 0;
        drafting->drafts.propose = propose_known;
        left got = generation(m, drafting, p, prompt);
        same(name, p, "known", &want, &got, n_vocab);
        if (want.result.stop == PINCH_STOP_LENGTH && p->max_tokens > DRAFT)
            CHECK("what was right is accepted, what was wrong is not", got.result.drafts.n_accepted == known.accepted && known.accepted > 0 && got.result.drafts.n_drafted > known.accepted,
                  "%s, %s: %d of %d, not %d", name, p->what, (int)got.result.drafts.n_accepted, (int)got.result.drafts.n_drafted, (int)known.accepted);
        left_free(&want);
        left_free(&looked);
        left_free(&got);
    }
    pinch_session_close(plain);
    pinch_session_close(drafting);
}

/* A text that repeats itself, so that looking up finds something. */
static void write_prompt(pinch_token *prompt, int32_t n_vocab)
{
    for (int i = 0; i < PROMPT; i++) prompt[i] = (i % 13 * 7 + i % 13 / 3 + 5) % n_vocab;
}

/* Every way to end, at every token that a draft may hold. */
static void ends(const char *name, pinch_model *m, const pinch_token *prompt)
{
    for (int i = 1; i <= DRAFT + 2; i++) {
        compare(name, m, &(plan){.what = "max_tokens", .max_tokens = i}, prompt);
        compare(name, m, &(plan){.what = "context full", .max_tokens = -1, .n_ctx = PROMPT + i}, prompt);
        compare(name, m, &(plan){.what = "callback says stop", .max_tokens = -1, .end_in_callback = i, .sampled = true}, prompt);
        compare(name, m, &(plan){.what = "abort", .max_tokens = -1, .end_by_abort = i}, prompt);
    }
    for (int i = 0; i < DRAFT + 2; i++) {
        pinch_session *s = session_of(m, CTX, 0, 1);
        left l = s ? generation(m, s, &(plan){.what = "whole", .max_tokens = TOKENS}, prompt) : (left){.n = 0};
        char piece[64] = "";
        if (l.n > (size_t)i) pinch_token_piece(m, l.tokens[i], true, piece, sizeof piece - 1);
        if (piece[0]) compare(name, m, &(plan){.what = "stop string", .max_tokens = TOKENS, .stop = piece}, prompt);
        left_free(&l);
        pinch_session_close(s);
    }
}

/* Another sequence in the session takes its turns, and is copied over; both sessions do the same. */
static void company(const char *name, pinch_model *m, const pinch_token *prompt)
{
    const plan p = {.what = "two sequences", .max_tokens = TOKENS / 2, .sampled = true};
    left l[2] = {{.n = 0}, {.n = 0}};
    for (int i = 0; i < 2; i++) {
        pinch_session *s = session_of(m, CTX, i ? DRAFT : 0, 2);
        pinch_sampler *sampler = sampler_of(m, &p);
        pinch_generate_options o = pinch_generate_options_default();
        pinch_error err = {0};
        o.max_tokens = TOKENS / 2;
        o.ignore_eos = true;
        bool ok = s && sampler && !pinch_session_feed(s, 1, prompt, PROMPT - 3, &err) && !pinch_generate(s, 1, sampler, &o, NULL, &err);
        if (ok) {
            left first = generate(s, sampler, &p, prompt);
            left_free(&first);
            ok = !pinch_session_feed(s, 1, prompt, 2, &err) && !pinch_generate(s, 1, sampler, &o, NULL, &err) && !pinch_session_truncate(s, 1, PROMPT, &err) && !pinch_session_copy(s, 1, 0, &err) &&
                 !pinch_session_feed(s, 0, prompt, 3, &err) && !pinch_generate(s, 0, sampler, &o, &l[i].result, &err);
        }
        CHECK("sequences take turns", ok, "%s: %s", name, err.message);
        if (ok) look(s, &l[i]);
        pinch_sampler_close(sampler);
        pinch_session_close(s);
    }
    same(name, &p, kind == PINCH_DRAFT_MTP ? "mtp" : "lookup", &l[0], &l[1], pinch_model_n_vocab(m));
    left_free(&l[0]);
    left_free(&l[1]);
}

static int32_t propose_wrong(pinch_session *s, int32_t seq, int32_t length, int32_t most)
{
    const int32_t n = propose_known(s, seq, length, most);
    known.round = 0;
    return n;
}

/* After the shortest of pauses. */
static int32_t propose_soon(pinch_session *s, int32_t seq, int32_t length, int32_t most)
{
    s->drafts.pause = 1;
    return propose_wrong(s, seq, length, most);
}

static void make_slow(pinch_session *s)
{
    s->drafts.unmeasured = false;
    s->drafts.propose = propose_wrong;
    s->drafts.pace = (pn_pace){.plain = 1e-12, .n_plain = 4};
}

/* Drafts that are measured as slow are given up, which is said once: lookup's for a while, the block's until the text begins anew. What is measured changes
 * no token. */
static void giving_up(const char *name, pinch_model *m, const pinch_token *prompt)
{
    const plan p = {.what = "giving up", .max_tokens = TOKENS, .sampled = true};
    pinch_session *plain = session_of(m, CTX, 0, 1), *drafting = session_of(m, CTX, DRAFT, 1);
    left want = plain ? generation(m, plain, &p, prompt) : (left){.n = 0};
    known.text = &want;
    known.round = told = 0;
    int32_t drafted = 0;
    for (int i = 0; drafting && i < 3; i++) {
        make_slow(drafting);
        if (i == 2) drafting->drafts.propose = propose_soon;
        left got = generation(m, drafting, &p, prompt);
        const pinch_draft_stats *d = &got.result.drafts;
        if (i == 0) drafted = d->n_drafted;
        if (i == 2)
            CHECK("lookup is tried again after a pause, the block is not", kind == PINCH_DRAFT_MTP ? d->n_drafted == drafted : d->n_drafted > drafted,
                  "%s: %d tokens, %d before", name, (int)d->n_drafted, (int)drafted);
        else
            CHECK("slow drafts are given up", d->given_up && d->n_accepted == 0 && d->n_drafted > 0 && d->n_drafted < (TOKENS - 4) * DRAFT, "%s: %d of %d", name,
                  (int)d->n_accepted, (int)d->n_drafted);
        CHECK("which is said once", told == 1, "%s: %d lines", name, told);
        CHECK("and changes no token and no logit", got.n == want.n && !memcmp(got.tokens, want.tokens, want.n * sizeof *want.tokens) && got.logits && want.logits &&
                                                       !memcmp(got.logits, want.logits, (size_t)pinch_model_n_vocab(m) * sizeof *want.logits), "%s", name);
        left_free(&got);
    }
    left_free(&want);
    pinch_session_close(plain);
    pinch_session_close(drafting);
}

/* Some tokens more of a text where the block rests, and what that leaves. */
static left go_on(pinch_session *s, pinch_sampler *sampler)
{
    left l = {.n = 0};
    pinch_error err = {0};
    pinch_generate_options o = pinch_generate_options_default();
    const pinch_token next = 1;
    o.max_tokens = TOKENS / 2;
    o.ignore_eos = true;
    CHECK("the text goes on", !pinch_session_feed(s, 0, &next, 1, &err) && !pinch_generate(s, 0, sampler, &o, &l.result, &err), "%s", err.message);
    CHECK("a block that was given up drafts no more", l.result.drafts.n_drafted == 0 && l.result.drafts.given_up, "%d tokens", (int)l.result.drafts.n_drafted);
    look(s, &l);
    return l;
}

/* A block that was given up leaves the same state whatever the session held before, and is tried again when a text begins anew. */
static void resting(const char *name, pinch_model *m, const pinch_token *prompt)
{
    const plan p = {.what = "resting", .max_tokens = TOKENS, .sampled = true};
    const left unknown = {.n = 0};
    pinch_token other[PROMPT * 2];
    left l[2] = {{.n = 0}, {.n = 0}};
    known.text = &unknown;
    known.round = 0;
    for (int i = 0; i < PROMPT * 2; i++) other[i] = prompt[PROMPT - 1 - i % PROMPT];
    for (int i = 0; i < 2; i++) {
        pinch_error err = {0};
        pinch_session *s = session_of(m, CTX, DRAFT, 2);
        pinch_sampler *sampler = sampler_of(m, &p);
        bool ok = s && sampler;
        for (int32_t seq = 0; ok && seq < 2 * i; seq++) ok = !pinch_session_feed(s, seq, other, PROMPT * 2, &err);
        if (ok) {
            make_slow(s);
            left first = generate(s, sampler, &p, prompt);
            l[i] = go_on(s, sampler);
            left anew = generate(s, sampler, &p, prompt);
            const int32_t before = first.result.drafts.n_drafted, after = anew.result.drafts.n_drafted;
            CHECK("a text that begins anew is drafted again", before > 0 && after > 0, "%s: %d, then %d tokens", name, (int)before, (int)after);
            left_free(&first);
            left_free(&anew);
        }
        CHECK("two sessions serve, one of them used", ok, "%s: %s", name, err.message);
        pinch_sampler_close(sampler);
        pinch_session_close(s);
    }
    same(name, &p, "mtp", &l[0], &l[1], pinch_model_n_vocab(m));
    left_free(&l[0]);
    left_free(&l[1]);
}

static void try_kind(const char *name, pinch_model *m, bool deeply, bool every_end)
{
    pinch_token prompt[PROMPT];
    write_prompt(prompt, pinch_model_n_vocab(m));
    compare(name, m, &(plan){.what = "greedy", .max_tokens = TOKENS}, prompt);
    if (!deeply) return;
    compare(name, m, &(plan){.what = "sampled", .max_tokens = TOKENS, .sampled = true}, prompt);
    compare(name, m, &(plan){.what = "end tokens", .max_tokens = TOKENS, .sampled = true, .ends = true}, prompt);
    compare(name, m, &(plan){.what = "callback saves", .max_tokens = TOKENS, .saves = true}, prompt);
    company(name, m, prompt);
    giving_up(name, m, prompt);
    if (kind == PINCH_DRAFT_MTP) resting(name, m, prompt);
    if (every_end) ends(name, m, prompt);
}

static bool try_model(const char *name, const char *path)
{
    static int nth, nth_block;
    static architectures met;
    pinch_model *m = NULL;
    pinch_model_options o = pinch_model_options_default();
    if (pinch_model_open(&m, path, &o, NULL) != PINCH_OK) return false;
    kind = PINCH_DRAFT_LOOKUP;
    if (nth++ % EVERY == 0) try_kind(name, m, first_of_its_kind(&met, pinch_model_arch(m)), EVERY == 1 || nth == 1);
    pinch_model_close(m);
    o.draft_block = true;
    if (pinch_model_open(&m, path, &o, NULL) == PINCH_OK) { /* few have a block */
        kind = PINCH_DRAFT_MTP;
        try_kind(name, m, nth_block++ == 0 || EVERY == 1, EVERY == 1);
        pinch_model_close(m);
    }
    return true;
}

int main(void)
{
    golden_each(try_model);
    return pn_done();
}
