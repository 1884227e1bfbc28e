/* tests/draft_case.h - golden cases whose block drafts tokens: trunk and block as the engine walks them, but by hand.
 *
 * Every folder of ../shared/golden that holds draft.f32 or mtp_logits.f32 is such a case. */
#ifndef PN_DRAFT_CASE_H
#define PN_DRAFT_CASE_H

#include "engine_case.h"
#include "models/models.h"

enum { DRAFT_CHAIN = 8, DRAFT_CTX = 128, DRAFT_BATCH = 64, DRAFT_OUT = 8 };

typedef struct draft_case {
    const char *name;
    char path[800];
    pinch_token tokens[CASE_TOKENS]; /* the prompt, then the chain */
    size_t n_prompt, n_chain;
    int32_t n_vocab;
    double tolerance;
    float *logits; /* [n_prompt + n_chain][n_vocab] */
    float *hidden; /* [n_prompt][n_embd]; NULL: not given */
    size_t n_logits, n_hidden; /* bytes */
} draft_case;

static void draft_fill(draft_case *c, const pn_json *object)
{
    const pn_json *draft = pn_json_member(object, "draft");
    c->n_prompt = case_tokens(object, "prompt", c->tokens);
    c->n_vocab = (int32_t)case_number(object, "n_vocab", 0);
    c->tolerance = case_number(draft ? draft : object, "tolerance", 0);
    if (draft) c->n_chain = case_tokens(draft, "chain_tokens", c->tokens + c->n_prompt);
}

static float *draft_file(const char *folder, const char *name, const char *file, size_t *n)
{
    char path[800];
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, file);
    *n = 0;
    return (float *)(void *)case_read(path, n);
}

static void draft_free(draft_case *c)
{
    free(c->logits);
    free(c->hidden);
}

/* False: the folder's model drafts nothing that is known. */
static bool draft_load(draft_case *c, const char *folder, const char *name)
{
    *c = (draft_case){.name = name};
    size_t n = 0;
    c->logits = draft_file(folder, name, "draft.f32", &c->n_logits);
    if (!c->logits) c->logits = draft_file(folder, name, "mtp_logits.f32", &c->n_logits);
    if (!c->logits) return false;
    c->hidden = draft_file(folder, name, "hidden.f32", &c->n_hidden);
    snprintf(c->path, sizeof c->path, "%s/%s/model.gguf", folder, name);
    char *text = (char *)(void *)draft_file(folder, name, "case.json", &n);
    pn_arena arena;
    pn_arena_init(&arena, 1 << 20);
    pn_json object;
    pinch_error err = {0};
    if (text && pn_json_parse(&object, &arena, text, n, &err) == PINCH_OK) draft_fill(c, &object);
    pn_arena_free(&arena);
    free(text);
    return CHECK("a case of drafts is whole", c->n_prompt && c->n_logits == (c->n_prompt + c->n_chain) * (size_t)c->n_vocab * sizeof(float), "%s: %s", name, err.message);
}

/* ---- trunk and block ------------------------------------------------------------------------------------------------------------------------ */

typedef struct drafter {
    pn_gguf *g;
    pn_network net;
    const pn_ops *ops;
    pn_pool *pool;
    int n_threads;
    pn_state *state;
    pn_run *trunk, *block;
    uint8_t *raw;
} drafter;

static void drafter_close(drafter *d)
{
    pn_run_close(d->trunk);
    pn_run_close(d->block);
    pn_state_close(d->state);
    pn_pool_close(d->pool);
    pn_network_free(&d->net);
    pn_gguf_close(d->g);
    free(d->raw);
}

/* Caches and scratch beyond `limit` bytes are refused: a hostile file may ask for any size. */
static pinch_status drafter_runs(drafter *d, uint64_t limit, pinch_error *err)
{
    const pn_state_options so = {.layers = d->net.plan.shapes, .n_layers = d->net.plan.n_layers, .n_seq = 1, .n_ctx = DRAFT_CTX, .n_batch = DRAFT_BATCH, .type_k = PINCH_CACHE_F32,
                                 .type_v = PINCH_CACHE_F32};
    pn_run_options ro = {.plan = &d->net.plan, .ops = d->ops, .n_batch = DRAFT_BATCH, .n_out = DRAFT_OUT, .n_ctx = DRAFT_CTX, .n_threads = d->n_threads};
    pn_run_options block = ro;
    uint64_t bytes[3] = {0};
    block.plan = &d->net.draft.plan;
    bool fits = pn_state_bytes(&so, &bytes[0]) && pn_run_bytes(&ro, &bytes[1]) && pn_run_bytes(&block, &bytes[2]);
    for (int i = 0; i < 3; i++) fits = fits && bytes[i] <= limit;
    pinch_status st = fits ? pn_state_open(&d->state, &so, err) : pn_fail(err, PINCH_ERR_MEMORY, "beyond the limit");
    ro.state = block.state = d->state;
    if (!st) st = pn_run_open(&d->trunk, &ro, err);
    if (!st) st = pn_run_open(&d->block, &block, err);
    d->raw = malloc((size_t)pn_network_raw_bytes(&d->net));
    return !st && !d->raw ? PINCH_ERR_MEMORY : st;
}

/* The open file is the drafter's, whatever happens. */
static pinch_status drafter_build(drafter *d, pn_gguf *g, int32_t n_vocab, bool exact, int n_threads, uint64_t limit, pinch_error *err)
{
    const pn_weights_options o = {.features = pn_cpu_features(), .exact = exact, .use_mapping = true, .draft = true, .n_vocab = n_vocab};
    *d = (drafter){.g = g, .ops = pn_ops_best(o.features), .n_threads = n_threads};
    pinch_status st = pn_network_build(&d->net, g, &o, err);
    if (!st && d->net.resident_bytes > limit) st = pn_fail(err, PINCH_ERR_MEMORY, "beyond the limit");
    if (!st) st = pn_pool_open(&d->pool, n_threads, err);
    if (!st) st = pn_network_load(&d->net, &o, d->pool, err);
    return st ? st : drafter_runs(d, limit, err);
}

static bool drafter_open(drafter *d, const char *path, int32_t n_vocab, bool exact, int n_threads)
{
    pn_gguf *g = NULL;
    pinch_error err = {0};
    *d = (drafter){0};
    pinch_status st = pn_gguf_open(&g, path, &err);
    if (!st) st = drafter_build(d, g, n_vocab, exact, n_threads, UINT64_MAX, &err);
    return CHECK("trunk and block open", st == PINCH_OK, "%s: %s", path, err.message);
}

/* The block on n tokens from `position` on; the result at the position before the first lies in its layer's floats, those at the others in `hidden`. */
static bool block_rows(drafter *d, const pinch_token *tokens, const pn_place *places, int32_t n, const float *hidden)
{
    const pn_network *net = &d->net;
    const size_t E = (size_t)net->n_embd;
    float *pending = pn_state_recurrent(d->state, net->draft.layer, 0);
    for (int32_t i = 0; i < n; i++) {
        if (pn_draft_embed(net, tokens[i], d->raw, d->block, i, NULL)) return false;
        memcpy(pn_draft_hidden(net, d->block, i), i ? hidden + (size_t)(i - 1) * E : pending, E * sizeof *pending);
    }
    pn_run_trunk(d->block, d->pool, d->n_threads, places, n);
    return true;
}

static void keep_hidden(drafter *d, pn_run *run, int32_t row) { pn_run_hidden(run, row, pn_state_recurrent(d->state, d->net.draft.layer, 0)); }

/* Logits of all rows of the block's last walk. */
static void block_logits(drafter *d, int32_t n, float *out)
{
    const int64_t V = d->net.draft.plan.n_logits;
    for (int32_t at = 0; at < n; at += DRAFT_OUT) {
        int32_t rows[DRAFT_OUT];
        const int32_t m = (int32_t)pn_min64(DRAFT_OUT, n - at);
        for (int32_t i = 0; i < m; i++) rows[i] = at + i;
        pn_run_head(d->block, d->pool, d->n_threads, rows, m);
        for (int32_t i = 0; i < m; i++) memcpy(out + (at + i) * V, pn_run_logits(d->block, i), (size_t)V * sizeof *out);
    }
}

/* The prompt through trunk and block in batches, then the chain, each token with the block's own result before it. logits: as in the case; hidden: [n_prompt][n_embd]. */
static bool drafter_walk(drafter *d, const draft_case *c, int32_t n_batch, float *logits, float *hidden)
{
    const pn_network *net = &d->net;
    const int64_t V = net->draft.plan.n_logits, E = net->n_embd;
    pn_place places[DRAFT_BATCH];
    pn_state_rewind(d->state, 0, 0);
    memset(pn_state_recurrent(d->state, net->draft.layer, 0), 0, (size_t)E * sizeof(float));
    for (int32_t at = 0, n; at < (int32_t)c->n_prompt; at += n) {
        n = (int32_t)pn_min64(n_batch, (int64_t)c->n_prompt - at);
        for (int32_t i = 0; i < n; i++) {
            places[i] = (pn_place){0, at + i};
            if (pn_network_embed(net, c->tokens[at + i], d->raw, d->trunk, i, NULL)) return false;
        }
        pn_state_advance(d->state, 0, n);
        pn_run_trunk(d->trunk, d->pool, d->n_threads, places, n);
        for (int32_t i = 0; i < n; i++) pn_run_hidden(d->trunk, i, hidden + (at + i) * E);
        if (!block_rows(d, c->tokens + at, places, n, hidden + at * E)) return false;
        keep_hidden(d, d->trunk, n - 1);
        block_logits(d, n, logits + at * V);
    }
    for (int32_t at = (int32_t)c->n_prompt; at < (int32_t)(c->n_prompt + c->n_chain); at++) {
        places[0] = (pn_place){0, at};
        if (!block_rows(d, c->tokens + at, places, 1, NULL)) return false;
        keep_hidden(d, d->block, 0);
        block_logits(d, 1, logits + at * V);
    }
    return true;
}

#endif
