/* Routing of a mixture: which experts a row goes to, with which weights, and the batch's rows grouped by expert. */
#include "graph/walk.h"

#include "base/math.h"

#include <float.h>
#include <math.h>

/* Smallest sum of chosen weights that is divided by: 2^-14, a safeguard of the reference. */
static const float least_sum = 6.103515625e-5f;
/* Scores that are no ordinary numbers: the last choice, and what has been chosen. */
static const float last_choice = -FLT_MAX, taken = -INFINITY;

/* x = exp(x) / sum. */
static void softmax(const pn_ops *ops, float *x, int32_t n) { ops->scale(x, 1.0f / ops->exp_sum(x, ops->max(x, n), n), n); }

/* Logits to what weights are made of, in place. */
static void gate(const pn_ops *ops, pn_gating gating, float *p, int32_t n)
{
    if (gating == PN_GATING_SOFTMAX) {
        softmax(ops, p, n);
    } else if (gating == PN_GATING_SIGMOID) {
        ops->scale(p, -1.0f, n);
        ops->exp_sum(p, 0.0f, n);
        for (int32_t e = 0; e < n; e++) p[e] = 1.0f / (1.0f + p[e]);
    } else if (gating == PN_GATING_SQRT_SOFTPLUS) {
        for (int32_t e = 0; e < n; e++) p[e] = sqrtf(p[e] > 20.0f ? p[e] : pn_logf(1.0f + pn_expf(p[e])));
    }
    if (gating == PN_GATING_CHOSEN_SOFTMAX) return;
    for (int32_t e = 0; e < n; e++)
        if (!(p[e] >= 0.0f)) p[e] = 0.0f; /* NaN from broken weights */
}

/* Index of the largest score, the lowest of equals, which is then marked as taken. */
static int32_t take_best(float *score, int32_t n)
{
    int32_t best = 0;
    for (int32_t i = 1; i < n; i++)
        if (score[i] > score[best]) best = i;
    score[best] = taken;
    return best;
}

/* Sum of the two largest. */
static float group_score(const float *score, int32_t n)
{
    float first = last_choice, second = last_choice;
    for (int32_t i = 0; i < n; i++) {
        if (score[i] > first) {
            second = first;
            first = score[i];
        } else if (score[i] > second) {
            second = score[i];
        }
    }
    return fmaxf(first + second, last_choice);
}

/* Makes the experts of all but the best groups the last choice. `groups`: scratch, a float each. */
static void keep_groups(const pn_route *s, float *score, float *groups)
{
    const int32_t size = s->n_experts / s->how.n_groups;
    for (int32_t g = 0; g < s->how.n_groups; g++) groups[g] = group_score(score + g * size, size);
    for (int32_t i = 0; i < s->how.n_groups_used; i++) take_best(groups, s->how.n_groups);
    for (int32_t g = 0; g < s->how.n_groups; g++)
        for (int32_t e = g * size; groups[g] != taken && e < (g + 1) * size; e++) score[e] = last_choice;
}

/* Weights of the chosen experts from their probabilities. */
static void finish_weights(const pn_ops *ops, const pn_route *s, float *weight)
{
    if (s->how.gating == PN_GATING_CHOSEN_SOFTMAX) softmax(ops, weight, s->n_used);
    float sum = 0.0f;
    for (int32_t i = 0; i < s->n_used; i++) sum += weight[i];
    for (int32_t i = 0; s->how.normalised && i < s->n_used; i++) weight[i] /= sum > least_sum ? sum : least_sum;
    if (s->how.scale != 1.0f) ops->scale(weight, s->how.scale, s->n_used);
}

static void choose(const pn_run *run, const pn_lane *lane, const pn_route *s, int32_t row)
{
    float *p = pn_row(run, s->buffer, row), *score = lane->work;
    gate(run->ops, s->how.gating, p, s->n_experts);
    memcpy(score, p, (size_t)s->n_experts * sizeof *score);
    if (s->bias) run->ops->add(score, s->bias, s->n_experts);
    for (int32_t e = 0; e < s->n_experts; e++)
        if (!(score[e] > last_choice)) score[e] = last_choice; /* an expert is chosen once at most, whatever the weights hold */
    if (s->how.n_groups > 1) keep_groups(s, score, score + s->n_experts);
    int32_t *chosen = run->chosen + (int64_t)row * s->n_used;
    float *weight = pn_row(run, s->weights, row);
    for (int32_t i = 0; i < s->n_used; i++) {
        chosen[i] = take_best(score, s->n_experts);
        weight[i] = p[chosen[i]];
    }
    finish_weights(run->ops, s, weight);
}

/* Counting sort of (row, slot) by expert, rows ascending within one. */
static void group_rows(pn_run *run, const pn_route *s)
{
    const int32_t n = run->n_rows * s->n_used;
    memset(run->expert_start, 0, ((size_t)s->n_experts + 1) * sizeof *run->expert_start);
    for (int32_t i = 0; i < n; i++) run->expert_start[run->chosen[i] + 1]++;
    run->n_active = 0;
    for (int32_t e = 0; e < s->n_experts; e++) {
        if (run->expert_start[e + 1]) run->active[run->n_active++] = e;
        run->expert_start[e + 1] += run->expert_start[e];
    }
    for (int32_t i = 0; i < n; i++) run->order[run->expert_start[run->chosen[i]]++] = i;
    for (int32_t e = s->n_experts; e > 0; e--) run->expert_start[e] = run->expert_start[e - 1];
    run->expert_start[0] = 0;
}

static bool route(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_route *s = &step->u.route;
    int64_t begin, end;
    pn_share(lane, run->n_rows, &begin, &end);
    for (int64_t r = begin; r < end; r++) choose(run, lane, s, (int32_t)r);
    if (!pn_private(run)) pn_pool_barrier(run->pool);
    if (lane->thread == (pn_private(run) ? lane->n_threads - 1 : 0)) group_rows(run, s); /* one row belongs to the last thread's share */
    return true;
}

static pn_uses route_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.route.buffer), .writes = pn_buffer_bit(step->u.route.weights)}; }

const pn_step_kind pn_step_route = {"route", route, route_uses};
