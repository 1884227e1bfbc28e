/* Routing of a mixture against a plain account of it in double precision: every gating, groups, bias, ties, and logits that mean harm. */
#include "graph/walk.h"
#include "test.h"

#include <math.h>
#include <stdlib.h>

enum { N_ROWS = 40, MAX_EXPERTS = 64 };

static unsigned long long seed = 0x9e3779b97f4a7c15ull;

static double uniform(void) { return (double)(pn_random(&seed) >> 11) / (double)(1ull << 53); }

/* ---- the plain account -------------------------------------------------------------------------------------------------------------------- */

/* Indices of v by value, the largest first, the lower of equals first. */
static void rank(int *order, const double *v, int n)
{
    for (int i = 0; i < n; i++) {
        int at = i;
        for (; at > 0 && v[order[at - 1]] < v[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

static void plain_softmax(double *p, int n)
{
    double max = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++) max = fmax(max, p[i]);
    for (int i = 0; i < n; i++) sum += p[i] = exp(p[i] - max);
    for (int i = 0; i < n; i++) p[i] /= sum;
}

static void plain_groups(const pn_route *s, double *score)
{
    const int size = s->n_experts / s->how.n_groups;
    double group[MAX_EXPERTS];
    int order[MAX_EXPERTS];
    for (int g = 0; g < s->how.n_groups; g++) {
        rank(order, score + g * size, size);
        group[g] = score[g * size + order[0]] + score[g * size + order[1]];
    }
    rank(order, group, s->how.n_groups);
    for (int i = s->how.n_groups_used; i < s->how.n_groups; i++)
        for (int e = 0; e < size; e++) score[order[i] * size + e] = -1e300;
}

static void plain_route(const pn_route *s, const float *logits, int *chosen, double *weight)
{
    double p[MAX_EXPERTS], score[MAX_EXPERTS], sum = 0;
    int order[MAX_EXPERTS];
    for (int e = 0; e < s->n_experts; e++) p[e] = (double)logits[e];
    if (s->how.gating == PN_GATING_SOFTMAX) plain_softmax(p, s->n_experts);
    for (int e = 0; e < s->n_experts; e++) {
        if (s->how.gating == PN_GATING_SIGMOID) p[e] = 1 / (1 + exp(-p[e]));
        if (s->how.gating == PN_GATING_SQRT_SOFTPLUS) p[e] = sqrt(log(1 + exp(p[e])));
        score[e] = p[e] + (s->bias ? (double)s->bias[e] : 0);
    }
    if (s->how.n_groups > 1) plain_groups(s, score);
    rank(order, score, s->n_experts);
    for (int i = 0; i < s->n_used; i++) weight[i] = p[chosen[i] = order[i]];
    if (s->how.gating == PN_GATING_CHOSEN_SOFTMAX) plain_softmax(weight, s->n_used);
    for (int i = 0; i < s->n_used; i++) sum += weight[i];
    for (int i = 0; i < s->n_used; i++) weight[i] = weight[i] / (s->how.normalised ? fmax(sum, 1.0 / 16384) : 1) * (double)s->how.scale;
}

/* ---- the step ------------------------------------------------------------------------------------------------------------------------------ */

typedef struct bench {
    pn_plan plan;
    pn_pool *pool;
    pn_run *run;
    pn_place places[N_ROWS];
} bench;

static bool bench_open(bench *b, const pn_route *route)
{
    *b = (bench){0};
    pn_plan_buffer(&b->plan, "stream", 8);
    const int logits = pn_plan_buffer(&b->plan, "router", route->n_experts), weights = pn_plan_buffer(&b->plan, "expert weights", route->n_used);
    b->plan.logits = pn_plan_buffer(&b->plan, "logits", 1);
    b->plan.n_embd = 8;
    b->plan.n_logits = 1;
    pn_step *s = pn_plan_step(&b->plan, &pn_step_route, 0);
    if (s) s->u.route = *route;
    if (s) {
        s->u.route.buffer = logits;
        s->u.route.weights = weights;
    }
    b->plan.head = b->plan.n_steps;
    pn_plan_lay_out(&b->plan);
    b->plan.buffers[logits].offset = 16; /* beside the stream, which threads copy when a walk of one row begins */
    b->plan.buffers[weights].offset = 16 + (int64_t)pn_round_up((uint64_t)route->n_experts, 16);
    b->plan.row_floats = b->plan.buffers[weights].offset + (int64_t)pn_round_up((uint64_t)route->n_used, 16);
    for (int i = 0; i < N_ROWS; i++) b->places[i] = (pn_place){.position = i};
    const pn_run_options o = {.plan = &b->plan, .ops = pn_ops_best(pn_cpu_features()), .n_batch = N_ROWS, .n_out = 1, .n_ctx = 64, .n_threads = 3};
    pinch_error err = {0};
    return CHECK("a run of the step opens", s && !pn_pool_open(&b->pool, 3, &err) && !pn_run_open(&b->run, &o, &err), "%s", err.message);
}

static void bench_close(bench *b)
{
    pn_run_close(b->run);
    pn_pool_close(b->pool);
    pn_plan_free(&b->plan);
}

static float *bench_logits(bench *b, int32_t row) { return pn_row(b->run, b->plan.steps[0].u.route.buffer, row); }

/* Rows sorted by expert: every (row, slot) once, under the expert that it chose, ascending. */
static bool grouped(const pn_run *run, const pn_route *s, int n_rows)
{
    int seen = 0;
    for (int32_t a = 0; a < run->n_active; a++) {
        const int32_t e = run->active[a];
        for (int32_t i = run->expert_start[e]; i < run->expert_start[e + 1]; i++, seen++)
            if (run->chosen[run->order[i]] != e || (i > run->expert_start[e] && run->order[i] <= run->order[i - 1])) return false;
    }
    return seen == n_rows * s->n_used;
}

static bool as_told(const pn_run *run, const pn_route *s, int row, const float *logits)
{
    int chosen[MAX_EXPERTS];
    double weight[MAX_EXPERTS];
    plain_route(s, logits, chosen, weight);
    for (int i = 0; i < s->n_used; i++) {
        const int at = row * s->n_used + i;
        const double own = (double)pn_row(run, run->plan->steps[0].u.route.weights, row)[i];
        if (run->chosen[at] != chosen[i] || fabs(own - weight[i]) > 2e-6 * fmax(1, fabs(weight[i]))) {
            printf("row %d slot %d: expert %d weight %.9g, plainly %d %.9g\n", row, i, (int)run->chosen[at], own, chosen[i], weight[i]);
            return false;
        }
    }
    return true;
}

static void compare(const char *what, const pn_route *s, double low, double high, double grid)
{
    bench b;
    static float logits[N_ROWS][MAX_EXPERTS];
    for (int rows = 1; rows <= N_ROWS; rows += N_ROWS - 1) { /* one row is another way of walking */
        if (!bench_open(&b, s)) return;
        for (int r = 0; r < rows; r++) {
            for (int e = 0; e < s->n_experts; e++) logits[r][e] = (float)(floor((low + uniform() * (high - low)) / grid) * grid);
            memcpy(bench_logits(&b, r), logits[r], (size_t)s->n_experts * sizeof(float));
        }
        pn_run_trunk(b.run, b.pool, 3, b.places, rows);
        bool same = true;
        for (int r = 0; r < rows && same; r++) same = as_told(b.run, s, r, logits[r]);
        CHECK("experts and weights are those of the plain account", same, "%s, %d rows", what, rows);
        CHECK("rows are grouped by expert", grouped(b.run, s, rows), "%s, %d rows", what, rows);
        bench_close(&b);
    }
}

static void variants(void)
{
    float bias[MAX_EXPERTS];
    for (int e = 0; e < MAX_EXPERTS; e++) bias[e] = (float)(uniform() - 0.5);
    for (int gating = PN_GATING_SOFTMAX; gating <= PN_GATING_SQRT_SOFTPLUS; gating++) {
        for (int bits = 0; bits < 8; bits++) {
            char what[64];
            snprintf(what, sizeof what, "gating %d, variant %d", gating, bits);
            const pn_route s = {.n_experts = 48, .n_used = 5, .bias = bits & 1 ? bias : NULL,
                                .how = {.gating = (pn_gating)gating, .n_groups = bits & 2 ? 8 : 0, .n_groups_used = 3, .normalised = bits & 4, .scale = bits & 1 ? 2.5f : 1.0f}};
            compare(what, &s, -6, 6, 1e-6);
        }
        const pn_route ties = {.n_experts = 12, .n_used = 4, .how = {.gating = (pn_gating)gating, .n_groups = 3, .n_groups_used = 2, .scale = 1.0f}};
        compare("ties", &ties, -2, 2, 2);
        const pn_route all = {.n_experts = 6, .n_used = 6, .how = {.gating = (pn_gating)gating, .normalised = true, .scale = 1.0f}};
        compare("all experts", &all, -2, 2, 1e-6);
    }
    const pn_route tiny = {.n_experts = 8, .n_used = 2, .how = {.gating = PN_GATING_SIGMOID, .normalised = true, .scale = 1.0f}};
    compare("a sum below the least", &tiny, -14, -11, 1e-6);
}

/* Logits of which nothing can be made: experts in range, none twice. */
static void broken(void)
{
    static const float harm[] = {NAN, INFINITY, -INFINITY, 1e38f, -1e38f, 0};
    for (int gating = PN_GATING_SOFTMAX; gating <= PN_GATING_SQRT_SOFTPLUS; gating++) {
        bench b;
        float bias[16];
        for (int e = 0; e < 16; e++) bias[e] = harm[(e * 5 + gating) % 6];
        const pn_route s = {.n_experts = 16, .n_used = 7, .bias = bias, .how = {.gating = (pn_gating)gating, .n_groups = 4, .n_groups_used = 1, .normalised = true, .scale = 3.0f}};
        if (!bench_open(&b, &s)) return;
        for (int r = 0; r < N_ROWS; r++)
            for (int e = 0; e < 16; e++) bench_logits(&b, r)[e] = harm[pn_random(&seed) % 6];
        pn_run_trunk(b.run, b.pool, 3, b.places, N_ROWS);
        bool fine = grouped(b.run, &s, N_ROWS);
        for (int r = 0; r < N_ROWS; r++) {
            unsigned seen = 0;
            for (int i = 0; i < s.n_used; i++) {
                const int32_t e = b.run->chosen[r * s.n_used + i];
                fine = fine && e >= 0 && e < 16 && !(seen & 1u << e);
                seen |= 1u << (e & 15);
            }
        }
        CHECK("broken logits choose experts that exist, each once, even where the groups hold too few", fine, "gating %d", gating);
        bench_close(&b);
    }
}

int main(void)
{
    variants();
    broken();
    return pn_done();
}
