/* A plan cut behind any layer into two parts, each with a session of its own, gives the bits of the whole: only the rows of the buffers that the plan calls
 * alive at the cut are carried over, and the caches that later layers share. Every golden model that this build runs. */
#include "engine/engine.h"
#include "golden_each.h"

#include <math.h>

enum { N_TEXT = 11, N_BATCH = 8 };

/* One side: a run over its own state and threads. */
typedef struct side {
    pn_state *state;
    pn_run *run;
    pn_pool *pool;
} side;

static bool side_open(side *s, const pinch_model *m)
{
    const pn_plan *plan = &m->network.plan;
    pinch_error err = {0};
    *s = (side){0};
    const pn_state_options so = {.layers = plan->shapes, .n_layers = plan->n_layers, .n_seq = 1, .n_ctx = 64, .n_batch = N_BATCH, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16};
    pinch_status st = pn_state_open(&s->state, &so, &err);
    const pn_run_options ro = {.plan = plan, .ops = m->ops, .state = s->state, .n_batch = N_BATCH, .n_out = 1, .n_ctx = 64, .n_threads = 2};
    if (!st) st = pn_run_open(&s->run, &ro, &err);
    if (!st) st = pn_pool_open(&s->pool, 2, &err);
    return CHECK("a side opens", st == PINCH_OK, "%s", err.message);
}

static void side_close(side *s)
{
    pn_pool_close(s->pool);
    pn_run_close(s->run);
    pn_state_close(s->state);
}

static void carry_rows(const pn_plan *plan, int cut, const side *a, const side *b, int32_t n)
{
    for (int k = 0; k < plan->n_buffers; k++)
        for (int32_t i = 0; i < n && (plan->steps[cut - 1].alive & pn_buffer_bit(k)); i++) memcpy(pn_run_row(b->run, k, i), pn_run_row(a->run, k, i), (size_t)plan->buffers[k].width * sizeof(float));
}

static void carry_keys(const pn_plan *plan, int cut, const side *a, const side *b)
{
    for (int32_t layer = 0; layer < plan->n_layers; layer++) {
        if (!pn_plan_shares_keys(plan, cut, layer)) continue;
        const pn_kv from = pn_state_kv(a->state, layer, 0), to = pn_state_kv(b->state, layer, 0);
        memcpy(to.k, from.k, from.k_head * (size_t)plan->shapes[layer].n_head);
        memcpy(to.v, from.v, from.v_head * (size_t)plan->shapes[layer].n_head);
    }
}

/* Text of a fixed kind through [0, cut) of `a` and [cut, head) of `b`, in batches of n_batch; the last token's logits. */
static bool text(const pinch_model *m, side *a, side *b, int cut, int32_t n_batch, float *logits)
{
    const pn_plan *plan = &m->network.plan;
    pinch_error err = {0};
    uint8_t *raw = malloc((size_t)pn_network_raw_bytes(&m->network));
    bool ok = raw != NULL;
    int32_t n = 0;
    pn_state_rewind(a->state, 0, 0);
    pn_state_rewind(b->state, 0, 0);
    for (int32_t at = 0; ok && at < N_TEXT; at += n) {
        pn_place places[N_BATCH];
        n = (int32_t)pn_min64(n_batch, N_TEXT - at);
        for (int32_t i = 0; i < n; i++) {
            places[i] = (pn_place){0, at + i};
            ok = ok && pn_network_embed(&m->network, (3 + (at + i) * 7) % m->network.n_vocab, raw, a->run, i, &err) == PINCH_OK;
        }
        pn_state_advance(a->state, 0, n);
        if (b != a) pn_state_advance(b->state, 0, n);
        pn_run_part(a->run, a->pool, 2, places, n, 0, cut);
        if (a != b) {
            carry_rows(plan, cut, a, b, n);
            carry_keys(plan, cut, a, b);
        }
        pn_run_part(b->run, b->pool, 2, places, n, cut, plan->head);
    }
    const int32_t last = n - 1;
    pn_run_head(b->run, b->pool, 2, &last, 1);
    memcpy(logits, pn_run_logits(b->run, 0), (size_t)plan->n_logits * sizeof *logits);
    free(raw);
    return ok;
}

static void cut_at(const char *name, const pinch_model *m, side *a, side *b, int32_t layer, int32_t n_batch, const float *want, float *got)
{
    const int cut = pn_plan_cut(&m->network.plan, layer);
    memset(got, 0, (size_t)m->network.plan.n_logits * sizeof *got);
    const bool ran = text(m, a, b, cut, n_batch, got);
    CHECK("two parts give the whole's logits", ran && cut > 0 && cut < m->network.plan.head && !memcmp(want, got, (size_t)m->network.plan.n_logits * sizeof *got),
          "%s: cut behind layer %d, batches of %d", name, (int)layer, (int)n_batch);
}

static void cuts(const char *name, const pinch_model *m)
{
    const pn_plan *plan = &m->network.plan;
    float *want = calloc((size_t)plan->n_logits, sizeof *want), *got = calloc((size_t)plan->n_logits, sizeof *got);
    const bool every = getenv("PINCH_LONG") != NULL; /* else the first two, the middle and the last */
    side a, b;
    const bool open_a = side_open(&a, m), open_b = side_open(&b, m);
    if (want && got && open_a && open_b) {
        CHECK("the whole computes", text(m, &a, &a, plan->head - 1, N_BATCH, want) && isfinite(want[0]), "%s", name);
        for (int32_t layer = 0; layer + 1 < plan->n_layers; layer++) {
            if (!every && layer > 1 && layer + 2 < plan->n_layers && layer != plan->n_layers / 2) continue;
            cut_at(name, m, &a, &b, layer, N_BATCH, want, got);
            cut_at(name, m, &a, &b, layer, 1, want, got);
        }
    }
    side_close(&a);
    side_close(&b);
    free(want);
    free(got);
}

static bool one_model(const char *name, const char *path)
{
    pinch_model *m = NULL;
    pinch_error err = {0};
    if (strncmp(name, "type-", 5) == 0 || pinch_model_open(&m, path, NULL, &err)) return false; /* types make no other plan */
    cuts(name, m);
    pinch_model_close(m);
    return true;
}

int main(void)
{
    golden_each(one_model);
    return pn_done();
}
