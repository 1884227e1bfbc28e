/* Rotary positions: the tables of a batch, and the step that norms, rotates and stores heads. */
#include "graph/walk.h"

#include "base/math.h"

#include <math.h>

void pn_rope_row(const pn_rope *rope, int32_t n_ctx, int32_t position, float *cos_sin)
{
    const float *factor = n_ctx > rope->long_beyond ? rope->factor_long : rope->factor;
    float theta = (float)position;
    for (int32_t k = 0; k < rope->n_pairs; k++) {
        const float t = factor ? theta / factor[k] : theta;
        float angle = rope->freq_scale * t;
        if (rope->mix) angle = angle * (1.0f - rope->mix[k]) + t * rope->mix[k];
        cos_sin[2 * k] = pn_cosf(angle) * rope->magnitude;
        cos_sin[2 * k + 1] = pn_sinf(angle) * rope->magnitude;
        theta *= rope->step;
    }
}

/* Norms n_heads heads of x: each alone with the same weight, or all as one vector. */
static void norm_heads(const pn_run *run, const pn_rope_kv *s, float *x, const float *w, int32_t n_heads)
{
    if (!w) return;
    if (s->norm_whole) {
        pn_rms_norm(run->ops, x, x, w, s->eps, (int64_t)n_heads * s->d_k);
        return;
    }
    for (int32_t h = 0; h < n_heads; h++) pn_rms_norm(run->ops, x + (int64_t)h * s->d_k, x + (int64_t)h * s->d_k, w, s->eps, s->d_k);
}

static void rotate_heads(const pn_run *run, const pn_lane *lane, const pn_rope_kv *s, float *x, int32_t n_heads, int32_t row)
{
    if (s->rope == PN_NONE) return;
    const pn_rope *rope = &run->plan->ropes[s->rope];
    const float *cos_sin = pn_cos_sin(run, lane, s->rope, row);
    for (int32_t h = 0; h < n_heads; h++) (rope->neox ? run->ops->rope_neox : run->ops->rope_norm)(x + (int64_t)h * s->d_k, cos_sin, rope->n_pairs);
}

float pn_query_scale(float scale, float temperature, float temperature_length, int32_t position)
{
    if (temperature == 0.0f) return scale;
    return scale * (1.0f + temperature * pn_logf(floorf((float)position / temperature_length) + 1.0f));
}

static void queries(const pn_run *run, const pn_lane *lane, const pn_rope_kv *s, int32_t row, int32_t first, int32_t n)
{
    float *q = pn_row(run, s->buffer, row) + (int64_t)first * s->d_k;
    norm_heads(run, s, q, s->q_norm, n);
    rotate_heads(run, lane, s, q, n, row);
    const float scale = pn_query_scale(s->q_scale, s->temperature, s->temperature_length, run->places[row].position);
    if (scale != 1.0f) run->ops->scale(q, scale, (int64_t)n * s->d_k);
}

static void keys_values(const pn_run *run, const pn_lane *lane, const pn_rope_kv *s, int32_t row, int32_t first, int32_t n)
{
    float *base = pn_row(run, s->buffer, row) + (int64_t)s->n_head * s->d_k;
    float *k = base + (int64_t)first * s->d_k;
    float *v = base + (int64_t)s->n_head_kv * s->d_k + (int64_t)first * s->d_v;
    if (s->v_of_k) memcpy(v, k, (size_t)n * (size_t)s->d_v * sizeof *v);
    for (int32_t h = 0; s->v_normed && h < n; h++) pn_rms_norm(run->ops, v + (int64_t)h * s->d_v, v + (int64_t)h * s->d_v, NULL, s->eps, s->d_v);
    norm_heads(run, s, k, s->k_norm, n);
    rotate_heads(run, lane, s, k, n, row);
    const pn_kv kv = pn_state_kv(run->state, s->layer, run->places[row].seq);
    for (int32_t h = 0; h < n; h++) {
        pn_kv_store_k(&kv, run->ops, first + h, run->places[row].position, k + (int64_t)h * s->d_k);
        pn_kv_store_v(&kv, run->ops, first + h, run->places[row].position, v + (int64_t)h * s->d_v);
    }
}

/* Units of a row: its query heads, then its key-value heads; a norm over the whole vector makes each kind one unit. */
static bool rope_kv(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_rope_kv *s = &step->u.rope_kv;
    const int32_t q_units = s->norm_whole ? 1 : s->n_head, kv_units = s->norm_whole ? 1 : s->n_head_kv, units = q_units + kv_units;
    int64_t a, b;
    while (pn_grab_next(pn_step_grab(run, step), (int64_t)run->n_rows * units, lane->n_threads, &a, &b)) {
        for (int64_t i = a; i < b; i++) {
            const int32_t row = (int32_t)(i / units), unit = (int32_t)(i % units);
            if (unit < q_units) queries(run, lane, s, row, unit, s->n_head / q_units);
            else keys_values(run, lane, s, row, unit - q_units, s->n_head_kv / kv_units);
        }
    }
    return true;
}

static pn_uses rope_kv_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.rope_kv.buffer)}; }

const pn_step_kind pn_step_rope_kv = {"rope+kv", rope_kv, rope_kv_uses};
