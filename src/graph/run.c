/* Opens a run: one block of memory, carved in a fixed order; and walks ranges of the plan with the pool. */
#include "graph/walk.h"

#include "base/cpu.h"
#include "base/pages.h"

#include <stdatomic.h>
#include <stdlib.h>

/* ---- carving: the same walk counts (base NULL) and assigns ------------------------------------------------------------------ */

typedef struct carve {
    uint8_t *base;
    uint64_t used;
    bool overflow;
} carve;

static void *take(carve *c, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!pn_mul(count, size, &bytes) || bytes > UINT64_MAX / 4 - c->used) {
        c->overflow = true;
        return NULL;
    }
    void *p = c->base ? c->base + c->used : NULL;
    c->used = pn_round_up(c->used + bytes, 64);
    return p;
}

/* Widths that the plan's steps ask for. */
typedef struct needs {
    int64_t input[3];        /* widest prepared input of each format */
    int64_t expert_input[3];
    int64_t work;
    uint64_t scratch;
    int32_t n_experts, n_used;
    int64_t latent_q, latent_o, key_row;
    uint64_t latent_act;
} needs;

static void need_weight(needs *n, const pn_weight *w)
{
    if (!w) return;
    const uint64_t bytes = !w->kernel ? pn_exact_scratch(w->k) : w->kernel->scratch_bytes ? w->kernel->scratch_bytes(w->k) : 0;
    if (bytes > n->scratch) n->scratch = bytes;
}

static void need_prep(needs *n, const pn_prep *prep)
{
    if (prep->width > n->work) n->work = prep->width;
    for (int f = 0; f < 3; f++)
        if (prep->formats & (1u << f) && prep->width > n->input[f]) n->input[f] = prep->width;
}

static void need_mla(needs *n, const pn_mla *s)
{
    const pn_weight *weights[2] = {s->k_b, s->v_b};
    for (int i = 0; i < 2; i++) {
        const uint64_t bytes = pn_round_up(pn_act_bytes(pn_weight_act(weights[i]), weights[i]->k), 64);
        need_weight(n, weights[i]);
        if (bytes > n->latent_act) n->latent_act = bytes;
    }
    n->latent_q = pn_max64(n->latent_q, (int64_t)s->rank + s->n_rot);
    n->latent_o = pn_max64(n->latent_o, s->rank);
    n->key_row = pn_max64(n->key_row, pn_key_row_floats(s->rank));
}

static void need_step(needs *n, const pn_step *s)
{
    if (s->kind == &pn_step_matmul) {
        need_prep(n, &s->u.matmul.prep);
        for (int i = 0; i < s->u.matmul.n; i++) need_weight(n, s->u.matmul.out[i].w);
    } else if (s->kind == &pn_step_settle) {
        need_prep(n, &s->u.settle);
    } else if (s->kind == &pn_step_route) {
        n->n_experts = s->u.route.n_experts > n->n_experts ? s->u.route.n_experts : n->n_experts;
        n->n_used = s->u.route.n_used > n->n_used ? s->u.route.n_used : n->n_used;
        n->work = pn_max64(n->work, (int64_t)s->u.route.n_experts * 2); /* scores of experts and of groups */
    } else if (s->kind == &pn_step_blend) {
        n->work = pn_max64(n->work, s->u.blend.width);
    } else if (s->kind == &pn_step_mla) {
        need_mla(n, &s->u.mla);
    } else if (s->kind == &pn_step_delta) {
        n->work = pn_max64(n->work, (int64_t)s->u.delta.d_k * 4 * PN_DELTA_ROWS);
    } else if (s->kind == &pn_step_experts_up) {
        need_prep(n, &s->u.up.prep);
        need_weight(n, s->u.up.gate.w);
        need_weight(n, s->u.up.up.w);
    } else if (s->kind == &pn_step_experts_down) {
        const pn_weight *w = s->u.down.out.w;
        need_weight(n, w);
        const pn_act act = pn_weight_act(w);
        if (w->k > n->expert_input[act]) n->expert_input[act] = w->k;
    }
}

/* Enough for PN_BESIDE rows of a full batch; of a single row, which comes often, for more at once. */
static int64_t beside_floats(const pn_run_options *o) { return pn_max64(o->n_batch, PN_BESIDE) * PN_BESIDE; }

static void carve_lane(carve *c, pn_lane *lane, const pn_run_options *o, const needs *n)
{
    const pn_plan *plan = o->plan;
    const uint64_t cells = pn_round_up((uint64_t)o->n_ctx, PN_TILE) + PN_TILE;
    lane->stream = take(c, (uint64_t)plan->n_embd, 4);
    lane->work = take(c, (uint64_t)n->work, 4);
    for (int f = 0; f < 3; f++) lane->act[f] = take(c, pn_act_bytes((pn_act)f, n->input[f]), 1);
    for (int i = 0; i < plan->n_ropes; i++) lane->cos_sin[i] = take(c, (uint64_t)plan->ropes[i].n_pairs * 2, 4);
    lane->scores = take(c, cells * PN_QUERIES, 4);
    lane->x = take(c, (uint64_t)o->n_batch, sizeof *lane->x);
    for (int i = 0; i < 2; i++) lane->y[i] = take(c, (uint64_t)o->n_batch, sizeof *lane->y[i]);
    lane->latent_q = take(c, (uint64_t)n->latent_q * PN_QUERIES, 4);
    lane->latent_o = take(c, (uint64_t)n->latent_o * PN_QUERIES, 4);
    lane->key_rows = take(c, (uint64_t)n->key_row * PN_TILE, 4);
    lane->latent_act = take(c, n->latent_act, PN_QUERIES);
    lane->beside = take(c, (uint64_t)beside_floats(o), 4);
    lane->scratch = take(c, n->scratch, 1);
}

static void carve_run(carve *c, pn_run *run, const pn_run_options *o, const needs *n)
{
    const pn_plan *plan = o->plan;
    const uint64_t rows = (uint64_t)o->n_batch, slots = rows * (uint64_t)n->n_used;
    float *shared = take(c, rows, (uint64_t)plan->row_floats * 4);
    for (int i = 0; shared && i < plan->n_buffers; i++) run->buffers[i] = shared + (int64_t)rows * plan->buffers[i].offset;
    run->logits = take(c, (uint64_t)o->n_out, (uint64_t)plan->n_logits * 4);
    run->buffers[plan->logits] = run->logits;
    for (int f = 0; f < 3; f++) {
        run->act_stride[f] = pn_round_up(pn_act_bytes((pn_act)f, n->input[f]), 64);
        if (run->act_stride[f] % 4096 == 0) run->act_stride[f] += 64; /* rows a page apart would fight for one cache set */
        run->act[f] = take(c, o->n_batch > 1 ? rows : 0, run->act_stride[f]);
        run->expert_stride[f] = pn_round_up(pn_act_bytes((pn_act)f, n->expert_input[f]), 64);
        run->expert_act[f] = take(c, slots, run->expert_stride[f]);
    }
    for (int i = 0; i < plan->n_ropes; i++) run->cos_sin[i] = take(c, rows, (uint64_t)plan->ropes[i].n_pairs * 8);
    run->chosen = take(c, slots, sizeof *run->chosen);
    run->order = take(c, slots, sizeof *run->order);
    run->expert_start = take(c, (uint64_t)n->n_experts + 1, sizeof *run->expert_start);
    run->active = take(c, (uint64_t)n->n_experts, sizeof *run->active);
    run->grabs = take(c, (uint64_t)plan->n_steps, sizeof *run->grabs);
    run->seconds = take(c, (uint64_t)plan->n_steps, sizeof *run->seconds);
    run->lanes = take(c, (uint64_t)o->n_threads, sizeof *run->lanes);
    for (int t = 0; t < o->n_threads; t++) {
        pn_lane spare, *lane = run->lanes ? &run->lanes[t] : &spare;
        carve_lane(c, lane, o, n);
    }
}

static needs plan_needs(const pn_plan *plan)
{
    needs n = {.work = plan->n_embd};
    for (int i = 0; i < plan->n_steps; i++) need_step(&n, &plan->steps[i]);
    return n;
}

bool pn_run_bytes(const pn_run_options *o, uint64_t *bytes)
{
    const needs n = plan_needs(o->plan);
    pn_run run = {0};
    carve c = {0};
    carve_run(&c, &run, o, &n);
    *bytes = c.used + sizeof run;
    return !c.overflow;
}

pinch_status pn_run_open(pn_run **out, const pn_run_options *o, pinch_error *err)
{
    const needs n = plan_needs(o->plan);
    uint64_t bytes;
    if (!pn_run_bytes(o, &bytes)) return pn_fail(err, PINCH_ERR_MEMORY, "batch %d, context %d: scratch memory beyond 64 bits", (int)o->n_batch, (int)o->n_ctx);
    pn_run *run = pn_alloc_zero(1, sizeof *run);
    if (!run) return pn_fail_memory(err, "a run", sizeof *run);
    run->bytes = bytes;
    run->memory = pn_pages_alloc(bytes);
    if (!run->memory) {
        free(run);
        return pn_fail_memory(err, "scratch", bytes);
    }
    run->plan = o->plan;
    run->ops = o->ops;
    run->state = o->state;
    run->n_batch = o->n_batch;
    run->n_out = o->n_out;
    run->n_ctx = o->n_ctx;
    run->beside = beside_floats(o);
    run->n_lanes = o->n_threads;
    carve c = {.base = run->memory};
    carve_run(&c, run, o, &n);
    *out = run;
    return PINCH_OK;
}

void pn_run_close(pn_run *run)
{
    if (!run) return;
    pn_pages_free(run->memory, run->bytes);
    free(run);
}

float *pn_run_row(pn_run *run, int buffer, int32_t row) { return pn_row(run, buffer, row); }
float *pn_run_stream(pn_run *run, int32_t row) { return pn_row(run, PN_STREAM, row); }
float *pn_run_logits(pn_run *run, int32_t row) { return run->logits + (int64_t)row * run->plan->n_logits; }

/* ---- walking ---------------------------------------------------------------------------------------------------------------------- */

static void walk(void *arg, int thread, int n_threads)
{
    pn_run *run = arg;
    pn_lane *lane = &run->lanes[thread];
    lane->thread = thread;
    lane->n_threads = n_threads;
    const size_t stream_bytes = (size_t)run->plan->n_embd * sizeof(float);
    const bool later = run->begin > 0 && run->begin < run->plan->head; /* a part of the trunk that does not begin with its tables */
    if (pn_private(run)) memcpy(lane->stream, pn_row(run, PN_STREAM, 0), stream_bytes);
    if (later && run->plan->steps[0].kind->run(run, lane, run->plan->steps)) pn_pool_barrier(run->pool);
    double t = run->profile && thread == 0 ? pn_now() : 0;
    for (int i = run->begin; i < run->end; i++) {
        const pn_step *step = &run->plan->steps[i];
        if (step->kind->run(run, lane, step)) pn_pool_barrier(run->pool);
        if (run->profile && thread == 0) {
            const double now = pn_now();
            run->seconds[i] += now - t;
            t = now;
        }
    }
    const bool left = run->end < run->plan->head && run->plan->steps[run->end - 1].alive & pn_buffer_bit(PN_STREAM); /* else its memory may be another's by now */
    if (left && pn_private(run) && thread == 0) memcpy(pn_row(run, PN_STREAM, 0), lane->stream, stream_bytes);
}

static void walk_range(pn_run *run, pn_pool *pool, int n_threads, int begin, int end)
{
    for (int i = begin; i < end; i++) pn_grab_reset(&run->grabs[i]);
    run->pool = pool;
    run->begin = begin;
    run->end = end;
    pn_pool_run(pool, n_threads, walk, run);
}

void pn_run_part(pn_run *run, pn_pool *pool, int n_threads, const pn_place *places, int32_t n_rows, int begin, int end)
{
    run->places = places;
    run->n_rows = n_rows;
    walk_range(run, pool, n_threads, begin, end);
}

void pn_run_trunk(pn_run *run, pn_pool *pool, int n_threads, const pn_place *places, int32_t n_rows)
{
    pn_run_part(run, pool, n_threads, places, n_rows, 0, run->plan->head);
}

void pn_run_head(pn_run *run, pn_pool *pool, int n_threads, const int32_t *rows, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (rows[i] != i) memcpy(pn_row(run, PN_STREAM, i), pn_row(run, PN_STREAM, rows[i]), (size_t)run->plan->n_embd * sizeof(float));
    run->n_rows = n;
    walk_range(run, pool, n_threads, run->plan->head, run->plan->n_steps);
}

void pn_run_hidden(pn_run *run, int32_t row, float *out)
{
    const pn_prep *prep = &run->plan->steps[run->plan->head].u.matmul.prep;
    pn_rms_norm(run->ops, out, pn_row(run, PN_STREAM, row), prep->norm, prep->eps, prep->width);
}

/* ---- profile ------------------------------------------------------------------------------------------------------------------------ */

void pn_run_profile(pn_run *run, bool on)
{
    run->profile = on;
    memset(run->seconds, 0, (size_t)run->plan->n_steps * sizeof *run->seconds);
}

size_t pn_run_profile_rows(const pn_run *run, pn_profile_row *rows, size_t capacity)
{
    size_t n = 0;
    for (int i = 0; i < run->plan->n_steps; i++) {
        const char *name = i >= run->plan->head ? "head" : run->plan->steps[i].kind->name;
        size_t j = 0;
        while (j < n && strcmp(rows[j].name, name)) j++;
        if (j == capacity) continue;
        if (j == n) rows[n++] = (pn_profile_row){.name = name};
        rows[j].seconds += run->seconds[i];
        rows[j].count++;
    }
    return n;
}
