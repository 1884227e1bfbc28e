/* Buffers that share memory: two of one step never meet, and what no later step reads may be destroyed. Every golden model that this build runs. */
#include "engine/engine.h"
#include "graph/walk.h"
#include "golden_each.h"

#include <math.h>

enum { N_TEXT = 24, N_BATCH = 9 };

/* ---- places ----------------------------------------------------------------------------------------------------------------------------- */

static bool meet(const pn_buffer *a, const pn_buffer *b) { return a->offset < b->offset + b->width && b->offset < a->offset + a->width; }

static bool holds(pn_buffer_set set, int buffer) { return (set & pn_buffer_bit(buffer)) != 0; }

/* Buffers of a step that lie in each other. */
static int clashes(const pn_plan *plan, const pn_step *s)
{
    const pn_uses uses = s->kind->uses(s);
    const pn_buffer_set held = s->alive | uses.reads | uses.writes;
    int n = 0;
    for (int a = 0; a < plan->n_buffers; a++)
        for (int b = 0; b < a; b++) n += holds(held, a) && holds(held, b) && a != plan->logits && b != plan->logits && meet(&plan->buffers[a], &plan->buffers[b]);
    return n;
}

static void places(const char *name, const pn_plan *plan)
{
    int64_t sum = 0;
    bool inside = true;
    for (int i = 0; i < plan->n_buffers; i++) {
        if (i == plan->logits) continue;
        sum += plan->buffers[i].width;
        inside = inside && plan->buffers[i].offset >= 0 && plan->buffers[i].offset % 16 == 0 && plan->buffers[i].offset + plan->buffers[i].width <= plan->row_floats;
    }
    CHECK("buffers lie in the block, each from a cache line on", inside, "%s", name);
    CHECK("and share it", plan->row_floats < sum, "%s: %lld of %lld floats a row", name, (long long)plan->row_floats, (long long)sum);
    for (int i = 0; i < plan->n_steps; i++)
        if (!CHECK("two buffers of a step never meet", clashes(plan, &plan->steps[i]) == 0, "%s: step %d, %s", name, i, pn_step_name(&plan->steps[i]))) return;
    const pn_buffer_set left = plan->steps[plan->head - 1].alive;
    CHECK("the stream alone is alive between trunk and head", left == pn_buffer_bit(PN_STREAM), "%s: %#x", name, (unsigned)left);
}

/* ---- poison: a step after each that fills what no buffer covers that is still alive ------------------------------------------------------- */

static bool covered(const pn_plan *plan, pn_buffer_set alive, int64_t column)
{
    for (int i = 0; i < plan->n_buffers; i++)
        if (holds(alive, i) && i != plan->logits && column >= plan->buffers[i].offset && column < plan->buffers[i].offset + plan->buffers[i].width) return true;
    return false;
}

static bool poison(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_plan *plan = run->plan;
    float *block = run->buffers[PN_STREAM] - (int64_t)run->n_batch * plan->buffers[PN_STREAM].offset;
    if (lane->thread != 0) return true;
    for (int64_t column = 0; column < plan->row_floats; column++)
        for (int32_t r = 0; r < run->n_batch && !covered(plan, step->alive, column); r++) block[column * run->n_batch + r] = NAN;
    return true;
}

static pn_uses no_uses(const pn_step *step) { return (void)step, (pn_uses){0}; }

static const pn_step_kind poison_kind = {"poison", poison, no_uses};

static bool poison_plan(pn_plan *plan)
{
    pn_step *steps = calloc((size_t)plan->n_steps * 2, sizeof *steps);
    for (int i = 0; steps && i < plan->n_steps; i++) {
        steps[2 * i] = plan->steps[i];
        steps[2 * i + 1] = (pn_step){.kind = &poison_kind, .layer = -1, .alive = plan->steps[i].alive};
    }
    if (!steps) return false;
    free(plan->steps);
    plan->steps = steps;
    plan->n_steps *= 2;
    plan->head *= 2;
    return true;
}

static bool keep_row(void *user, size_t index, const float *logits, int32_t n_vocab)
{
    memcpy((float *)user + index * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof(float));
    return false;
}

/* Logits of a fixed text, most of it in batches, the end token by token; the caller's, NULL after a failed check. */
static float *logits(const char *name, pinch_model *m)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = 64;
    o.n_batch = N_BATCH;
    o.n_threads = o.n_threads_batch = 2;
    const int32_t n_vocab = pinch_model_n_vocab(m);
    float *out = calloc((size_t)N_TEXT * (size_t)n_vocab, sizeof *out);
    pinch_session *s = NULL;
    pinch_row rows[N_TEXT];
    pinch_error err = {0};
    for (int i = 0; i < N_TEXT; i++) rows[i] = (pinch_row){.token = (3 + i * 7) % n_vocab, .logits = true};
    pinch_status st = out ? pinch_session_open(&s, m, &o, &err) : PINCH_ERR_MEMORY;
    if (!st) st = pinch_session_eval(s, rows, N_TEXT - 3, keep_row, out, &err);
    for (size_t i = N_TEXT - 3; !st && i < N_TEXT; i++) st = pinch_session_eval(s, rows + i, 1, keep_row, out + i * (size_t)n_vocab, &err);
    pinch_session_close(s);
    if (CHECK("a golden model computes", st == PINCH_OK, "%s: %s", name, err.message)) return out;
    free(out);
    return NULL;
}

static void poisoned(const char *name, pinch_model *m)
{
    const size_t n = (size_t)N_TEXT * (size_t)pinch_model_n_vocab(m);
    float *want = logits(name, m), *got = want && poison_plan(&m->network.plan) ? logits(name, m) : NULL;
    CHECK("what is not alive may be destroyed after any step", want && got && memcmp(want, got, n * sizeof *got) == 0, "%s", name);
    free(want);
    free(got);
}

/* ---- models ------------------------------------------------------------------------------------------------------------------------------ */

static bool one_model(const char *name, const char *path)
{
    pinch_model *m = NULL;
    pinch_error err = {0};
    if (pinch_model_open(&m, path, NULL, &err)) return false; /* of an architecture or a tokenizer that comes later */
    places(name, &m->network.plan);
    poisoned(name, m);
    pinch_model_close(m);
    return true;
}

int main(void)
{
    golden_each(one_model);
    return pn_done();
}
