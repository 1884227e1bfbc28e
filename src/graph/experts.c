/* Mixture of experts, once route.c has grouped the batch's rows by expert: each expert's weights are read once; multiply, round, multiply back. */
#include "graph/walk.h"

/* Calls `work` for unit rows of each active expert, all experts on one scale. */
typedef void (*expert_fn)(pn_run *run, pn_lane *lane, const pn_step *step, int32_t expert, int64_t row0, int64_t row1);

static void each_expert(pn_run *run, pn_lane *lane, const pn_step *step, int64_t rows, expert_fn work)
{
    const int64_t units = (rows + PN_UNIT - 1) / PN_UNIT;
    int64_t a, b;
    while (pn_grab_next(pn_step_grab(run, step), units * run->n_active, lane->n_threads, &a, &b)) {
        while (a < b) {
            const int64_t which = a / units, stop = pn_min64(b, (which + 1) * units);
            work(run, lane, step, run->active[which], (a - which * units) * PN_UNIT, pn_min64((stop - which * units) * PN_UNIT, rows));
            a = stop;
        }
    }
}

static void expert_matrix(pn_run *run, pn_lane *lane, const pn_output *out, int32_t expert, int32_t n_used, float **y, int64_t row0, int64_t row1)
{
    const int32_t *order = run->order + run->expert_start[expert];
    const int32_t n = run->expert_start[expert + 1] - run->expert_start[expert];
    for (int32_t i = 0; i < n; i++)
        y[i] = out->buffer == PN_NONE ? pn_beside(run, lane, n, i) : pn_row(run, out->buffer, order[i] / n_used) + order[i] % n_used * out->w->rows + row0;
    pn_multiply(run, lane, out->w, expert, lane->x, y, n, row0, row1);
    pn_finish(run, out, expert, y, n, row0, row1);
}

static void up_some_rows(pn_run *run, pn_lane *lane, const pn_step *step, int32_t expert, int64_t row0, int64_t row1)
{
    const pn_experts_up *s = &step->u.up;
    const int32_t *order = run->order + run->expert_start[expert];
    const int32_t n = run->expert_start[expert + 1] - run->expert_start[expert];
    const pn_output *outs[2] = {s->gate.w ? &s->gate : &s->up, s->gate.w ? &s->up : NULL};
    for (int i = 0; i < 2 && outs[i]; i++) {
        for (int32_t j = 0; j < n; j++) lane->x[j] = pn_act_row(run, lane, pn_weight_act(outs[i]->w), order[j] / s->n_used);
        expert_matrix(run, lane, outs[i], expert, s->n_used, lane->y[i], row0, row1);
    }
    pn_gate_rows(run->ops, s->act, s->clamp, lane->y[0], outs[1] ? lane->y[1] : NULL, n, row1 - row0);
}

static void up_rows(pn_run *run, pn_lane *lane, const pn_step *step, int32_t expert, int64_t row0, int64_t row1)
{
    const int64_t n = pn_beside_rows(run, run->expert_start[expert + 1] - run->expert_start[expert]);
    for (int64_t row = row0; row < row1; row += n) up_some_rows(run, lane, step, expert, row, pn_min64(row + n, row1));
}

static bool experts_up(pn_run *run, pn_lane *lane, const pn_step *step)
{
    pn_prep_rows(run, lane, &step->u.up.prep);
    each_expert(run, lane, step, step->u.up.up.w->rows, up_rows);
    return true;
}

static pn_uses experts_up_uses(const pn_step *step)
{
    const pn_experts_up *s = &step->u.up;
    const uint64_t bytes = pn_weight_bytes(s->up.w) + (s->gate.w ? pn_weight_bytes(s->gate.w) : 0);
    return (pn_uses){.reads = pn_prep_reads(&s->prep), .writes = pn_buffer_bit(s->gate.w ? s->gate.buffer : s->up.buffer), .weights = bytes * (uint64_t)s->n_used};
}

const pn_step_kind pn_step_experts_up = {"experts up", experts_up, experts_up_uses};

static void *expert_act(const pn_run *run, pn_act act, int32_t slot) { return run->expert_act[act] + (uint64_t)slot * run->expert_stride[act]; }

/* Rounds the hidden rows of all chosen experts, shared even for one row: there are n_used of them. */
static bool experts_round(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_experts_down *s = &step->u.down;
    const pn_act act = pn_weight_act(s->out.w);
    const int64_t k = s->out.w->k;
    int64_t begin, end;
    pn_share(lane, (int64_t)run->n_rows * s->n_used, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        const float *x = pn_row(run, s->source, (int32_t)(i / s->n_used)) + i % s->n_used * k;
        pn_round_row(run->ops, act, expert_act(run, act, (int32_t)i), x, k);
    }
    return true;
}

static pn_uses experts_round_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.down.source)}; }

const pn_step_kind pn_step_experts_round = {"experts round", experts_round, experts_round_uses};

static void down_rows(pn_run *run, pn_lane *lane, const pn_step *step, int32_t expert, int64_t row0, int64_t row1)
{
    const pn_experts_down *s = &step->u.down;
    const int32_t *order = run->order + run->expert_start[expert];
    const int32_t n = run->expert_start[expert + 1] - run->expert_start[expert];
    for (int32_t j = 0; j < n; j++) lane->x[j] = expert_act(run, pn_weight_act(s->out.w), order[j]);
    expert_matrix(run, lane, &s->out, expert, s->n_used, lane->y[0], row0, row1);
}

static bool experts_down(pn_run *run, pn_lane *lane, const pn_step *step)
{
    each_expert(run, lane, step, step->u.down.out.w->rows, down_rows);
    return true;
}

static pn_uses experts_down_uses(const pn_step *step)
{
    const pn_experts_down *s = &step->u.down;
    return (pn_uses){.writes = pn_buffer_bit(s->out.buffer), .weights = pn_weight_bytes(s->out.w) * (uint64_t)s->n_used};
}

const pn_step_kind pn_step_experts_down = {"experts down", experts_down, experts_down_uses};
