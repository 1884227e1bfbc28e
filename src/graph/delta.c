/* Gated delta rule of DeltaNet and KDA layers. Threads share the heads; a head takes the rows of a batch in order, those of one sequence together, so that
 * the sums of a row and the update of the row before share a pass over the head's state. */
#include "graph/walk.h"

#include "base/math.h"

#include <math.h>

static int64_t head_floats(const pn_delta *s) { return (int64_t)s->d_k * (int64_t)pn_round_up((uint64_t)s->d_v, 16); }

/* exp of what the decay's logits are made of, n values. */
static void decay_values(const pn_run *run, const pn_delta *s, float *y, const float *logits, int32_t head, const float *dt, int32_t n)
{
    const pn_ops *ops = run->ops;
    memcpy(y, logits, (size_t)n * sizeof *y);
    ops->add(y, dt, n);
    if (s->decay_of == PN_DECAY_BOUNDED) {
        ops->scale(y, s->a[head], n);
        ops->sigmoid_mul(y, y, NULL, n);
        ops->scale(y, s->bound, n);
    } else {
        for (int32_t i = 0; i < n; i++) y[i] = pn_softplus(y[i]);
        ops->scale(y, s->a[head], n);
    }
    ops->exp_sum(y, 0.0f, n);
}

/* keys: what pn_delta_token says. */
static pn_delta_token prepare(const pn_run *run, const pn_delta *s, int32_t head, int32_t row, float *keys)
{
    const pn_ops *ops = run->ops;
    const float *base = pn_row(run, s->buffer, row);
    const int32_t d = s->d_k, key_head = s->tiled ? head % s->n_k : head / (s->n_v / s->n_k);
    const float *q = base + s->query + (int64_t)key_head * d, *k = base + s->key + (int64_t)key_head * d;
    float *key = keys + 2 * d, *decay = keys + 3 * d;
    const int32_t n_decay = s->decay_channels ? d : 1;
    decay_values(run, s, decay, base + s->decay + (int64_t)head * n_decay, head, s->dt + (int64_t)head * n_decay, n_decay);
    for (int32_t i = n_decay; i < d; i++) decay[i] = decay[0];
    const float q_scale = 1.0f / sqrtf(ops->sum_squares(q, d) + s->eps), k_scale = 1.0f / sqrtf(ops->sum_squares(k, d) + s->eps);
    ops->norm_scale(keys, k, k_scale, decay, d);
    ops->norm_scale(keys + d, q, q_scale, decay, d);
    ops->norm_scale(key, k, k_scale, NULL, d);
    return (pn_delta_token){.keys = keys, .v = base + s->value + (int64_t)head * s->d_v, .out = pn_row(run, s->out, row) + (int64_t)head * s->d_v,
                            .key_query = ops->dot(key, q, d) * q_scale, .beta = pn_sigmoid(base[s->beta + head]), .scale = 1.0f / sqrtf((float)d)};
}

static void finish(const pn_run *run, const pn_delta *s, int32_t head, int32_t row)
{
    const float *gate = pn_row(run, s->buffer, row) + s->gate + (int64_t)head * s->d_v;
    float *out = pn_row(run, s->out, row) + (int64_t)head * s->d_v;
    pn_rms_norm(run->ops, out, out, s->norm, s->eps, s->d_v);
    (s->sigmoid_gate ? run->ops->sigmoid_mul : run->ops->silu_mul)(out, gate, out, s->d_v);
}

static void delta_head(const pn_run *run, const pn_lane *lane, const pn_delta *s, int32_t head)
{
    pn_delta_token tokens[PN_DELTA_ROWS];
    const int64_t at = s->state + head * head_floats(s);
    for (int32_t row = 0, n; row < run->n_rows; row += n) {
        n = pn_carried_rows(run, s->layer, row, PN_DELTA_ROWS);
        for (int32_t i = 0; i < n; i++) tokens[i] = prepare(run, s, head, row + i, lane->work + (int64_t)i * 4 * s->d_k);
        run->ops->delta_rule(pn_state_recurrent(run->state, s->layer, run->places[row].seq) + at, tokens, n, s->d_k, s->d_v);
        pn_keep_row(run, s->layer, row, at, head_floats(s));
        for (int32_t i = 0; i < n; i++) finish(run, s, head, row + i);
    }
}

static bool delta(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_delta *s = &step->u.delta;
    int64_t a, b;
    while (pn_grab_next(pn_step_grab(run, step), s->n_v, lane->n_threads, &a, &b))
        for (int64_t head = a; head < b; head++) delta_head(run, lane, s, (int32_t)head);
    return true;
}

static pn_uses delta_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.delta.buffer), .writes = pn_buffer_bit(step->u.delta.out)}; }

const pn_step_kind pn_step_delta = {"delta rule", delta, delta_uses};
