/* Input of steps: the pending update of the residual stream, norm, rounding. */
#include "graph/walk.h"

#include "base/math.h"

#include <math.h>

void pn_rms_norm(const pn_ops *ops, float *y, const float *x, const float *w, float eps, int64_t n)
{
    const float mean = ops->sum_squares(x, n) / (float)n;
    ops->norm_scale(y, x, 1.0f / sqrtf(mean + eps), w, n);
}

/* n channels of a row's experts, `width` apart, summed into `sum` in the order in which they were chosen. */
static void sum_experts(const pn_run *run, const float *from, const float *weight, int32_t n_used, int64_t width, int64_t n, float *sum)
{
    run->ops->norm_scale(sum, from, weight[0], NULL, n);
    for (int32_t i = 1; i < n_used; i++) run->ops->add_scaled(sum, from + i * width, weight[i], n);
}

const float *pn_update_value(const pn_run *run, const pn_update *u, int32_t row, int64_t width, int64_t first, int64_t n, float *sum)
{
    const float *from = pn_row(run, u->from, row) + first;
    if (u->n_used == 0 && u->shared == PN_NONE) return from;
    if (u->n_used) sum_experts(run, from, pn_row(run, u->weights, row), u->n_used, width, n, sum);
    else memcpy(sum, from, (size_t)n * sizeof *sum);
    if (u->shared == PN_NONE) return sum;
    const float *shared = pn_row(run, u->shared, row) + first;
    if (u->shared_gate == PN_NONE) run->ops->add(sum, shared, n);
    else run->ops->add_scaled(sum, shared, pn_sigmoid(*pn_row(run, u->shared_gate, row)), n);
    return sum;
}

static void update_stream(const pn_run *run, pn_lane *lane, const pn_prep *prep, float *stream, int32_t row)
{
    const pn_update *u = &prep->update;
    const float *value = pn_update_value(run, u, row, prep->width, 0, prep->width, lane->work);
    if (u->post_norm) {
        pn_rms_norm(run->ops, lane->work, value, u->post_norm, prep->eps, prep->width);
        value = lane->work;
    }
    if (u->scale == 1.0f) run->ops->add(stream, value, prep->width);
    else run->ops->add_scaled(stream, value, u->scale, prep->width);
    if (u->stream_scale) run->ops->scale(stream, *u->stream_scale, prep->width);
}

pn_buffer_set pn_update_reads(const pn_update *u)
{
    if (u->from == PN_NONE) return 0;
    return pn_buffer_bit(u->from) | (u->n_used ? pn_buffer_bit(u->weights) : 0) | (u->shared == PN_NONE ? 0 : pn_buffer_bit(u->shared) | pn_buffer_bit(u->shared_gate));
}

pn_buffer_set pn_prep_reads(const pn_prep *prep)
{
    const pn_buffer_set own = pn_buffer_bit(prep->source) | (prep->n_used ? pn_buffer_bit(prep->weights) : 0) | (prep->gate == PN_GATE_NONE ? 0 : pn_buffer_bit(prep->beside));
    return own | pn_update_reads(&prep->update);
}

void pn_prep_row(const pn_run *run, pn_lane *lane, const pn_prep *prep, int32_t row)
{
    const pn_ops *ops = run->ops;
    const float *x = pn_row(run, prep->source, row);
    if (prep->source == PN_STREAM) {
        float *stream = pn_stream_row(run, lane, row);
        if (prep->update.from != PN_NONE) update_stream(run, lane, prep, stream, row);
        x = stream;
    }
    if (prep->n_used) {
        sum_experts(run, x, pn_row(run, prep->weights, row), prep->n_used, prep->width, prep->width, lane->work);
        x = lane->work;
    }
    if (prep->norm) {
        const int64_t part = prep->groups ? prep->width / prep->groups : prep->width;
        for (int64_t i = 0; i < prep->width; i += part) pn_rms_norm(ops, lane->work + i, x + i, prep->norm + i, prep->eps, part);
        x = lane->work;
    }
    if (prep->gate != PN_GATE_NONE) {
        float *y = lane->work, *u = pn_row(run, prep->beside, row) + prep->beside_column;
        if (x != y) memcpy(y, x, (size_t)prep->width * sizeof *y);
        pn_gate_rows(ops, prep->gate, 0.0f, &y, &u, 1, prep->width);
        x = y;
    }
    for (int f = 0; f < 3; f++)
        if (prep->formats & pn_act_bit((pn_act)f)) pn_round_row(ops, (pn_act)f, pn_act_row(run, lane, (pn_act)f, row), x, prep->width);
}

void pn_prep_rows(pn_run *run, pn_lane *lane, const pn_prep *prep)
{
    if (prep->source == PN_NONE) return;
    if (pn_private(run)) {
        pn_prep_row(run, lane, prep, 0);
        return;
    }
    if (prep->in_attention) return;
    int64_t begin, end;
    pn_share(lane, run->n_rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) pn_prep_row(run, lane, prep, (int32_t)r);
    pn_pool_barrier(run->pool);
}

/* Applies the last update, so that the stream alone is alive at the end of the trunk. */
static bool settle(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_prep *prep = &step->u.settle;
    int64_t begin, end;
    pn_share(lane, run->n_rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) {
        float *stream = pn_stream_row(run, lane, (int32_t)r);
        update_stream(run, lane, prep, stream, (int32_t)r);
        if (pn_private(run)) memcpy(pn_row(run, PN_STREAM, 0), stream, (size_t)prep->width * sizeof *stream);
    }
    return true;
}

static pn_uses settle_uses(const pn_step *step) { return (pn_uses){.reads = pn_prep_reads(&step->u.settle)}; }

const pn_step_kind pn_step_settle = {"settle", settle, settle_uses};

/* ---- rotary tables -------------------------------------------------------------------------------------------------------------------- */

static bool begin_rows(pn_run *run, pn_lane *lane, const pn_step *step)
{
    (void)step;
    int64_t begin = 0, end = 1;
    if (!pn_private(run)) pn_share(lane, run->n_rows, &begin, &end);
    for (int i = 0; i < run->plan->n_ropes; i++) {
        const pn_rope *rope = &run->plan->ropes[i];
        for (int64_t r = begin; r < end; r++) {
            float *row = pn_private(run) ? lane->cos_sin[i] : run->cos_sin[i] + r * 2 * rope->n_pairs;
            pn_rope_row(rope, run->n_ctx, run->places[r].position, row);
        }
    }
    return !pn_private(run);
}

static pn_uses begin_uses(const pn_step *step) { return (void)step, (pn_uses){0}; }

const pn_step_kind pn_step_begin = {"begin", begin_rows, begin_uses};
