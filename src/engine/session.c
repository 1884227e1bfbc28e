/* Sessions: the memory plan with every default filled in, opening and closing. Computing is eval.c. */
#include "engine/engine.h"

#include "base/cpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { DEFAULT_CONTEXT = 8192, LEAST_CONTEXT = 256, DEFAULT_BATCH = 256, ROWS_OUT = PINCH_MAX_DRAFT + 1, MOST_SEQUENCES = 4096 };
enum { DEFAULT_CHECKPOINTS = 8, CHECKPOINT_BUDGET = 64 << 20 };

static const int32_t default_drafts[] = {0, 3, 2}; /* of each pinch_draft; see docs/SPEED.md */

pinch_session_options pinch_session_options_default(void) { return (pinch_session_options){.type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16}; }

/* ---- the plan ---------------------------------------------------------------------------------------------------------------------------- */

/* Options with every default filled in. */
typedef struct chosen {
    int32_t n_ctx, n_batch, n_seq;
    int32_t n_checkpoints; /* as asked for: see pinch_session_options */
    int n_threads, n_threads_batch;
    pinch_cache_type type_k, type_v;
    pinch_draft draft;
    int32_t n_draft;
    size_t others; /* bytes of the model's other sessions when this was planned */
    uint64_t own;  /* bytes of this one; UINT64_MAX: more than an address space */
} chosen;

static pinch_status check_range(const char *what, int64_t value, int64_t least, int64_t most, pinch_error *err)
{
    if (value >= least && value <= most) return PINCH_OK;
    return pn_fail(err, PINCH_ERR_ARGUMENT, "%s: %lld is not in %lld..%lld", what, (long long)value, (long long)least, (long long)most);
}

/* Where activations are not rounded, keys and values are not rounded to 8 bits either. */
static pinch_cache_type cache_type(const pinch_model *m, pinch_cache_type asked) { return m->weights.exact && asked == PINCH_CACHE_Q8_0 ? PINCH_CACHE_F16 : asked; }

static pinch_status choose(const pinch_model *m, const pinch_session_options *o, chosen *c, pinch_error *err)
{
    pn_topology topology;
    *c = (chosen){.n_ctx = o->n_ctx, .n_batch = o->n_batch, .n_seq = o->n_seq ? o->n_seq : 1, .n_checkpoints = o->n_checkpoints,
                    .n_threads = o->n_threads, .n_threads_batch = o->n_threads_batch, .type_k = o->type_k, .type_v = o->type_v, .draft = o->draft, .others = atomic_load(&m->in_sessions)};
    pn_topology_read(&topology);
    int generation, prompt;
    pn_threads_default(&topology, &generation, &prompt);
    if (c->n_threads == 0) c->n_threads = generation;
    if (c->n_threads_batch == 0) c->n_threads_batch = o->n_threads ? o->n_threads : prompt;
    if (c->n_ctx == 0) c->n_ctx = (int32_t)pn_min64(m->network.n_ctx_train, DEFAULT_CONTEXT);
    if (c->n_batch == 0) c->n_batch = (int32_t)pn_min64(DEFAULT_BATCH, c->n_ctx);
    pinch_status st = check_range("context", c->n_ctx, 1, INT32_MAX / 4, err);
    if (!st) st = check_range("batch", c->n_batch, 1, 1 << 16, err);
    if (!st) st = check_range("sequences", c->n_seq, 1, MOST_SEQUENCES, err);
    if (!st) st = check_range("checkpoints", c->n_checkpoints, -1, MOST_SEQUENCES, err);
    if (!st) st = check_range("threads", c->n_threads, 1, 64, err);
    if (!st) st = check_range("threads for prompts", c->n_threads_batch, 1, 64, err);
    if (!st) st = check_range("cache type of keys", (int64_t)c->type_k, 0, 2, err);
    if (!st) st = check_range("cache type of values", (int64_t)c->type_v, 0, 2, err);
    if (!st) st = check_range("kind of drafts", (int64_t)c->draft, 0, PINCH_DRAFT_MTP, err);
    if (!st) st = check_range("tokens of a draft", o->n_draft, 0, PINCH_MAX_DRAFT, err);
    if (!st && c->draft == PINCH_DRAFT_MTP && m->network.draft.plan.n_steps == 0)
        st = pn_fail(err, PINCH_ERR_ARGUMENT, "%s was opened without its block that drafts tokens (MTP)", pn_gguf_name(m->gguf));
    if (st) return st;
    c->type_k = cache_type(m, c->type_k);
    c->type_v = cache_type(m, c->type_v);
    if (c->n_batch > c->n_ctx && c->n_seq == 1) c->n_batch = c->n_ctx;
    if (c->draft) c->n_draft = (int32_t)pn_min64(o->n_draft ? o->n_draft : default_drafts[c->draft], c->n_batch - 1);
    return PINCH_OK;
}

static int most_threads(const chosen *c) { return c->n_threads > c->n_threads_batch ? c->n_threads : c->n_threads_batch; }

/* Checkpoints that are not asked for by number: where layers are recurrent, going back would otherwise mean computing everything again. */
static int32_t default_checkpoints(const pn_state_options *o)
{
    uint64_t one;
    if (!pn_state_is_recurrent(o) || !pn_state_checkpoint_bytes(o, &one) || one == 0) return 0;
    return (int32_t)pn_max64(1, pn_min64(DEFAULT_CHECKPOINTS, CHECKPOINT_BUDGET / (int64_t)one));
}

static pn_state_options state_options(const pinch_model *m, const chosen *c)
{
    const pn_network *net = &m->network;
    const bool block_idles = net->draft.plan.n_steps > 0 && c->draft != PINCH_DRAFT_MTP; /* its layer is the last */
    pn_state_options o = {.layers = net->plan.shapes, .n_layers = block_idles ? net->draft.layer : net->plan.n_layers, .n_seq = c->n_seq, .n_ctx = c->n_ctx,
                          .n_batch = c->n_batch, .n_kept = c->n_draft, .type_k = c->type_k, .type_v = c->type_v};
    o.n_checkpoints = c->n_checkpoints ? (int32_t)pn_max64(0, c->n_checkpoints) : default_checkpoints(&o);
    return o;
}

static pn_run_options run_options(const pinch_model *m, const chosen *c, pn_state *state)
{
    return (pn_run_options){.plan = &m->network.plan, .ops = m->ops, .state = state, .n_batch = c->n_batch, .n_out = (int32_t)pn_min64(ROWS_OUT, c->n_batch), .n_ctx = c->n_ctx,
                            .n_threads = most_threads(c)};
}

static pn_run_options block_options(const pinch_model *m, const chosen *c, pn_state *state)
{
    pn_run_options o = run_options(m, c, state);
    o.plan = &m->network.draft.plan;
    return o;
}

/* Of the trunk and of the block that drafts. */
static bool scratch_bytes(const pinch_model *m, const chosen *c, uint64_t *bytes)
{
    const pn_run_options trunk = run_options(m, c, NULL), block = block_options(m, c, NULL);
    uint64_t more = 0;
    return pn_run_bytes(&trunk, bytes) && (c->draft != PINCH_DRAFT_MTP || pn_run_bytes(&block, &more)) && pn_add(*bytes, more, bytes);
}

static uint64_t session_other_bytes(const pinch_model *m, const chosen *c, const pn_state_options *so)
{
    const uint64_t texts = (uint64_t)c->n_seq * (sizeof(pn_text) + (uint64_t)c->n_ctx * sizeof(pinch_token));
    const uint64_t rows = (uint64_t)c->n_batch * (sizeof(pn_place) + sizeof(pinch_row) + sizeof(int32_t));
    const uint64_t full = m->network.logit_ids ? (uint64_t)m->network.n_vocab * sizeof(float) : 0;
    return sizeof(pinch_session) + texts + rows + full + pn_network_raw_bytes(&m->network) + 2 * (m->longest_piece + PN_MAX_STOP) + pn_state_table_bytes(so);
}

static bool add_up(uint64_t *sum, const uint64_t *parts, size_t n)
{
    *sum = 0;
    for (size_t i = 0; i < n; i++)
        if (!pn_add(*sum, parts[i], sum)) return false;
    return true;
}

/* Fills the plan, and the session's own part of it. */
static bool count(const pinch_model *m, chosen *c, pinch_memory_plan *p)
{
    const pn_state_options so = state_options(m, c);
    *p = (pinch_memory_plan){.weights_resident = m->network.resident_bytes, .weights_mapped = m->network.mapped_bytes, .n_ctx = c->n_ctx, .n_batch = c->n_batch, .n_seq = c->n_seq,
                             .type_k = c->type_k, .type_v = c->type_v};
    p->other = session_other_bytes(m, c, &so);
    c->own = UINT64_MAX;
    uint64_t one, own;
    if (!pn_state_bytes(&so, &p->kv) || !scratch_bytes(m, c, &p->scratch) || !pn_state_checkpoint_bytes(&so, &one) ||
        !pn_mul(one, (uint64_t)so.n_checkpoints, &p->checkpoints) || !pn_state_kept_bytes(&so, &p->drafts)) return false;
    if (!add_up(&own, (const uint64_t[]){p->kv, p->checkpoints, p->drafts, p->scratch, p->other}, 5)) return false;
    if (!add_up(&p->total, (const uint64_t[]){own, p->weights_resident, p->weights_mapped, m->other_bytes}, 4)) return false;
    p->other += m->other_bytes;
    c->own = own;
    return true;
}

/* What is available counts mapped pages as reclaimable, and weights that are loaded already as spent. */
static uint64_t still_needed(const pinch_model *m, const chosen *c) { return c->own + m->other_bytes + (m->loaded ? 0 : m->network.resident_bytes); }

/* Of a stated limit: what loaded weights and other sessions, by their plans, leave. */
static uint64_t still_available(const pinch_model *m, const chosen *c)
{
    const uint64_t available = pn_memory_available(), spent = c->others + (m->loaded ? m->network.resident_bytes : 0);
    if (m->memory_limit == 0) return available;
    const uint64_t rest = m->memory_limit > spent ? m->memory_limit - spent : 0;
    return rest < available ? rest : available;
}

/* Without a stated context, halves it until the plan fits. False: not even the least does. */
static bool shrink(const pinch_model *m, chosen *c, bool may_shrink, pinch_memory_plan *p)
{
    for (;;) {
        const bool counted = count(m, c, p);
        p->available = still_available(m, c);
        if (counted && still_needed(m, c) <= p->available) return true;
        if (!may_shrink || c->n_ctx / 2 < LEAST_CONTEXT) return false;
        c->n_ctx /= 2;
        if (c->n_batch > c->n_ctx) c->n_batch = c->n_ctx;
    }
}

static pinch_status too_large(const pinch_model *m, const chosen *c, const pinch_memory_plan *p, pinch_error *err)
{
    static const char advice[] = "a shorter context (-c), a smaller batch (-b) or a q8_0 cache (-ctk, -ctv) would help";
    if (c->own == UINT64_MAX)
        return pn_fail(err, PINCH_ERR_MEMORY, "context %d, batch %d, %d sequences: more than an address space holds; %s", (int)c->n_ctx, (int)c->n_batch, (int)c->n_seq, advice);
    return pn_fail(err, PINCH_ERR_MEMORY,
                   "context %d, batch %d: %" PRIu64 " MiB needed (weights %" PRIu64 ", cache %" PRIu64 ", checkpoints %" PRIu64 ", drafts %" PRIu64 ", scratch %" PRIu64
                   ", other %" PRIu64 "), %" PRIu64 " MiB available%s; %s",
                   (int)c->n_ctx, (int)c->n_batch, (still_needed(m, c) >> 20) + 1, m->loaded ? 0 : p->weights_resident >> 20, p->kv >> 20, p->checkpoints >> 20, p->drafts >> 20,
                   p->scratch >> 20, p->other >> 20, p->available >> 20, c->others && m->memory_limit ? " beside the model's other sessions" : "", advice);
}

static pinch_status plan_session(const pinch_model *m, const pinch_session_options *o, chosen *c, pinch_memory_plan *p, pinch_error *err)
{
    if (!m->has_network) return pn_fail(err, PINCH_ERR_ARGUMENT, "%s was opened for its vocabulary only", pn_gguf_name(m->gguf));
    pinch_status st = choose(m, o, c, err);
    const pn_state_options so = state_options(m, c);
    if (!st) st = pn_state_check(&so, err);
    if (st) return st;
    if (shrink(m, c, o->n_ctx == 0, p)) return PINCH_OK;
    return too_large(m, c, p, err);
}

pinch_status pinch_session_plan(const pinch_model *m, const pinch_session_options *options, pinch_memory_plan *plan, pinch_error *err)
{
    const pinch_session_options o = options ? *options : pinch_session_options_default();
    chosen c;
    *plan = (pinch_memory_plan){0};
    return plan_session(m, &o, &c, plan, err);
}

/* ---- opening ------------------------------------------------------------------------------------------------------------------------------ */

static pinch_status open_texts(pinch_session *s, pinch_error *err)
{
    const pn_network *net = &s->model->network;
    s->texts = pn_alloc_zero((uint64_t)s->n_seq, sizeof *s->texts);
    s->places = pn_alloc((uint64_t)s->n_batch, sizeof *s->places);
    s->rows = pn_alloc((uint64_t)s->n_batch, sizeof *s->rows);
    s->out_rows = pn_alloc((uint64_t)s->n_batch, sizeof *s->out_rows);
    s->raw = pn_alloc(pn_network_raw_bytes(net), 1);
    s->text_capacity = s->model->longest_piece + PN_MAX_STOP;
    s->text = pn_alloc(s->text_capacity, 2); /* held text, and the same after a piece was added */
    if (net->logit_ids) s->full_logits = pn_alloc((uint64_t)net->n_vocab, sizeof *s->full_logits);
    bool ok = s->texts && s->places && s->rows && s->out_rows && s->raw && s->text && (s->full_logits || !net->logit_ids);
    for (int32_t i = 0; ok && i < s->n_seq; i++) {
        s->texts[i].tokens = pn_alloc((uint64_t)s->n_ctx, sizeof *s->texts[i].tokens);
        ok = s->texts[i].tokens != NULL;
    }
    return ok ? PINCH_OK : pn_fail_memory(err, "the text of a session", (uint64_t)s->n_seq * (uint64_t)s->n_ctx * sizeof(pinch_token));
}

/* A context that nobody asked for, or one beyond what the model was trained for. */
static void log_context(const pinch_session *s, const pinch_session_options *o)
{
    const int trained = (int)s->model->network.n_ctx_train, n = (int)s->n_ctx;
    char line[160];
    if (!s->callbacks.log || (o->n_ctx ? n <= trained : n == trained)) return;
    const char *why = n < (int)pn_min64(trained, DEFAULT_CONTEXT) ? ": what the available memory allows" : "";
    if (n > trained) snprintf(line, sizeof line, "context %d is longer than the %d that the model was trained for", n, trained);
    else snprintf(line, sizeof line, "context %d of the model's %d%s (-c sets it)", n, trained, why);
    s->callbacks.log(s->callbacks.user, PINCH_LOG_INFO, line);
}

static void log_cache(const pinch_session *s, const pinch_session_options *o)
{
    if (!s->callbacks.log || (cache_type(s->model, o->type_k) == o->type_k && cache_type(s->model, o->type_v) == o->type_v)) return;
    s->callbacks.log(s->callbacks.user, PINCH_LOG_INFO, "keys and values are kept in f16 instead of q8_0: nothing is rounded to 8 bits with activations in f32");
}

static pinch_status session_init(pinch_session *s, const chosen *c, pinch_error *err)
{
    s->n_ctx = c->n_ctx;
    s->n_batch = c->n_batch;
    s->n_seq = c->n_seq;
    s->n_threads = c->n_threads;
    s->n_threads_batch = c->n_threads_batch;
    s->drafts.propose = pn_drafter(c->draft);
    s->drafts.most = c->n_draft;
    const pn_state_options so = state_options(s->model, c);
    pinch_status st = open_texts(s, err);
    if (!st) st = pn_state_open(&s->state, &so, err);
    const pn_run_options ro = run_options(s->model, c, s->state);
    s->n_out = ro.n_out;
    if (!st) st = pn_run_open(&s->run, &ro, err);
    const pn_run_options bo = block_options(s->model, c, s->state);
    if (!st && c->draft == PINCH_DRAFT_MTP) st = pn_run_open(&s->block, &bo, err);
    if (!st) st = pn_pool_open(&s->pool, most_threads(c), err);
    return st;
}

/* A plan that fits beside all sessions that are open by now, counted before anything is allocated: another thread may open one at the same time. */
static pinch_status take_memory(pinch_session *s, const pinch_session_options *o, chosen *c, pinch_error *err)
{
    pinch_memory_plan plan;
    size_t bytes, others;
    do {
        pinch_status st = plan_session(s->model, o, c, &plan, err);
        if (!st && !s->model->loaded) st = pn_fail(err, PINCH_ERR_ARGUMENT, "%s was opened without its weights", pn_gguf_name(s->model->gguf));
        if (st) return st;
        bytes = (size_t)c->own;
        others = c->others;
    } while (!atomic_compare_exchange_weak(&s->model->in_sessions, &others, others + bytes));
    s->planned_bytes = bytes;
    return PINCH_OK;
}

pinch_status pinch_session_open(pinch_session **out, pinch_model *m, const pinch_session_options *options, pinch_error *err)
{
    const pinch_session_options o = options ? *options : pinch_session_options_default();
    chosen c;
    pinch_session *s = pn_alloc_zero(1, sizeof *s);
    if (!s) return pn_fail_memory(err, "a session", sizeof *s);
    s->model = m;
    s->callbacks = o.callbacks;
    pinch_status st = take_memory(s, &o, &c, err);
    if (!st) st = session_init(s, &c, err);
    if (st) {
        pinch_session_close(s);
        return st;
    }
    log_context(s, &o);
    log_cache(s, &o);
    *out = s;
    return PINCH_OK;
}

void pinch_session_close(pinch_session *s)
{
    if (!s) return;
    pn_pool_close(s->pool);
    pn_run_close(s->run);
    pn_run_close(s->block);
    pn_state_close(s->state);
    for (int32_t i = 0; s->texts && i < s->n_seq; i++) free(s->texts[i].tokens);
    free(s->texts);
    free(s->places);
    free(s->rows);
    free(s->out_rows);
    free(s->raw);
    free(s->text);
    free(s->full_logits);
    atomic_fetch_sub(&s->model->in_sessions, s->planned_bytes);
    free(s);
}

int32_t pinch_session_n_ctx(const pinch_session *s) { return s->n_ctx; }
int32_t pinch_session_position(const pinch_session *s, int32_t seq) { return seq < 0 || seq >= s->n_seq ? 0 : pn_state_length(s->state, seq) - (seq == s->drafts.seq ? s->drafts.ahead : 0); }
float *pinch_session_logits(pinch_session *s) { return s->logits; }
