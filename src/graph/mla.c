/* Multi-head latent attention: one compressed row a position serves all heads, as key and as value, and is never expanded in the cache.
 *
 * A unit of work is a few consecutive rows times a few heads, PN_QUERIES queries at most: their queries go into the latent space, attend there, and come
 * back, all in the thread's own memory. Each query's sums know nothing of the others, so the bits do not depend on the unit. */
#include "graph/walk.h"

#include "base/math.h"

/* ---- storing ----------------------------------------------------------------------------------------------------------------------------- */

static void rotate(const pn_run *run, const pn_lane *lane, int table, float *x, int32_t row)
{
    if (table == PN_NONE) return;
    const pn_rope *rope = &run->plan->ropes[table];
    (rope->neox ? run->ops->rope_neox : run->ops->rope_norm)(x, pn_cos_sin(run, lane, table, row), rope->n_pairs);
}

static bool latent(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_latent *s = &step->u.latent;
    int64_t begin, end;
    pn_share(lane, run->n_rows, &begin, &end);
    for (int32_t r = (int32_t)begin; r < end; r++) {
        float *x = pn_row(run, s->buffer, r);
        pn_rms_norm(run->ops, x, x, s->norm, s->eps, s->rank);
        rotate(run, lane, s->rope, x + s->rank, r);
        const pn_kv kv = pn_state_kv(run->state, s->layer, run->places[r].seq);
        pn_kv_store_k(&kv, run->ops, 0, run->places[r].position, x);
    }
    return true;
}

static pn_uses latent_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.latent.buffer)}; }

const pn_step_kind pn_step_latent = {"latent", latent, latent_uses};

/* ---- one head's matrices ------------------------------------------------------------------------------------------------------------------- */

/* One matrix of w on n rows, rounded as it wants them. */
static void multiply(const pn_run *run, pn_lane *lane, const pn_weight *w, int32_t head, const float *const *x, float *const *y, int32_t n)
{
    const pn_act act = pn_weight_act(w);
    const uint64_t stride = pn_round_up(pn_act_bytes(act, w->k), 64);
    const void *rounded[PN_QUERIES];
    for (int32_t i = 0; i < n; i++) {
        void *to = lane->latent_act + (uint64_t)i * stride;
        pn_round_row(run->ops, act, to, x[i], w->k);
        rounded[i] = to;
    }
    pn_multiply(run, lane, w, head, rounded, y, n, 0, w->rows);
    if (w->scale)
        for (int32_t i = 0; i < n; i++) run->ops->scale(y[i], w->scale[head], w->rows);
}

/* y = sum of x[j] times row j of the head's matrix, rows ascending: the product with the matrix turned round. */
static void multiply_turned(const pn_run *run, pn_lane *lane, const pn_weight *w, int32_t head, const float *const *x, float *const *y, int32_t n)
{
    const pn_type_info *type = pn_type_get((uint32_t)w->type);
    const int64_t row_bytes = w->k / type->block * type->bytes, ld = pn_key_row_floats(w->k);
    const uint8_t *matrix = w->data + (uint64_t)head * w->matrix_bytes;
    float weights[PN_QUERIES * PN_TILE];
    for (int32_t i = 0; i < n; i++) memset(y[i], 0, (size_t)w->k * sizeof(float));
    for (int64_t j = 0; j < w->rows; j += PN_TILE) {
        const int64_t some = pn_min64(PN_TILE, w->rows - j);
        for (int64_t r = 0; r < some; r++) type->dequantise(lane->key_rows + r * ld, matrix + (j + r) * row_bytes, w->k);
        for (int32_t i = 0; i < n; i++) memcpy(weights + i * PN_TILE, x[i] + j, (size_t)some * sizeof(float));
        run->ops->pv[PINCH_CACHE_F32](y, weights, PN_TILE, lane->key_rows, (size_t)ld * sizeof(float), some, n, (int)w->k);
    }
}

/* ---- attention ---------------------------------------------------------------------------------------------------------------------------- */

/* Queries of one head into the latent space, with their rotated channels behind. x[r]: the head's query of row + r. */
static void enter(const pn_run *run, pn_lane *lane, const pn_mla *s, int32_t head, const float *const *x, float *const *q, int32_t row, int32_t n)
{
    (s->k_b_turned ? multiply_turned : multiply)(run, lane, s->k_b, head, x, q, n);
    for (int32_t r = 0; r < n; r++) {
        memcpy(q[r] + s->rank, x[r] + s->n_plain, (size_t)s->n_rot * sizeof(float));
        rotate(run, lane, s->rope, q[r] + s->rank, row + r);
        const float scale = pn_query_scale(s->q_scale, s->temperature, s->temperature_length, run->places[row + r].position);
        run->ops->scale(q[r], scale, s->rank + s->n_rot);
    }
}

static float head_gate(const pn_run *run, const pn_mla *s, int32_t row, int32_t head) { return s->gate == PN_NONE ? 1.0f : pn_sigmoid(pn_row(run, s->gate, row)[head]); }

/* n_heads heads from `head` on of n_rows rows from `row` on. */
static void attend(const pn_run *run, pn_lane *lane, const pn_mla *s, int32_t row, int32_t n_rows, int32_t head, int32_t n_heads)
{
    const int32_t d_k = s->rank + s->n_rot;
    pn_queries t = {.kv = pn_state_kv(run->state, s->layer, run->places[row].seq), .n_rows = n_rows, .n_heads = n_heads, .position = run->places[row].position, .d_k = d_k, .d_v = s->rank};
    const float *x[PN_QUERIES];
    float *y[PN_QUERIES];
    for (int32_t h = 0; h < n_heads; h++) {
        for (int32_t r = 0; r < n_rows; r++) {
            x[r] = pn_row(run, s->query, row + r) + (int64_t)(head + h) * (s->n_plain + s->n_rot);
            y[r] = lane->latent_q + (int64_t)(r * n_heads + h) * d_k;
        }
        enter(run, lane, s, head + h, x, y, row, n_rows);
    }
    for (int32_t i = 0; i < n_rows * n_heads; i++) {
        t.q[i] = lane->latent_q + (int64_t)i * d_k;
        t.o[i] = lane->latent_o + (int64_t)i * s->rank;
        t.gate[i] = head_gate(run, s, row + i / n_heads, head + i % n_heads);
    }
    pn_attend(run, lane, &t);
    for (int32_t h = 0; h < n_heads; h++) {
        for (int32_t r = 0; r < n_rows; r++) {
            x[r] = t.o[r * n_heads + h];
            y[r] = pn_row(run, s->out, row + r) + (int64_t)(head + h) * s->d_v;
        }
        multiply(run, lane, s->v_b, head + h, x, y, n_rows);
    }
}

/* Rows from `row` on, below `end`, of one unit: consecutive positions of one sequence in one tile of keys, so that it is laid out as rows once. */
static int32_t unit_rows(const pn_run *run, int32_t row, int32_t end)
{
    const pn_place *first = &run->places[row];
    const int32_t most = (int32_t)pn_min64(PN_TILE - first->position % PN_TILE, end - row);
    int32_t n = 1;
    while (n < most && n < PN_QUERIES && first[n].seq == first->seq && first[n].position == first->position + n) n++;
    return n;
}

/* Heads of a unit: as many as rows leave room for, but no fewer units than threads for a single row. */
static int32_t unit_heads(const pn_run *run, const pn_lane *lane, const pn_mla *s)
{
    int32_t units = 0;
    for (int32_t row = 0; row < run->n_rows; units++) row += unit_rows(run, row, run->n_rows);
    const int32_t room = (int32_t)((int64_t)PN_QUERIES * units / run->n_rows), share = (s->n_head + lane->n_threads - 1) / lane->n_threads;
    return (int32_t)pn_max64(1, pn_min64(room, run->n_rows == 1 ? share : s->n_head));
}

/* Places are counted head by head, so that a thread meets one head's matrices many times in a row. */
static bool mla(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_mla *s = &step->u.mla;
    const int32_t heads = unit_heads(run, lane, s), groups = (s->n_head + heads - 1) / heads;
    int64_t from, to;
    while (pn_grab_next(pn_step_grab(run, step), (int64_t)groups * run->n_rows, lane->n_threads, &from, &to)) {
        while (from < to) {
            const int32_t head = (int32_t)(from / run->n_rows) * heads, row = (int32_t)(from % run->n_rows), end = (int32_t)pn_min64(run->n_rows, row + to - from);
            const int32_t n_heads = (int32_t)pn_min64(heads, s->n_head - head);
            const int32_t n_rows = (int32_t)pn_min64(unit_rows(run, row, end), PN_QUERIES / n_heads);
            attend(run, lane, s, row, n_rows, head, n_heads);
            from += n_rows;
        }
    }
    return true;
}

static pn_uses mla_uses(const pn_step *step)
{
    const pn_mla *s = &step->u.mla;
    return (pn_uses){.reads = pn_buffer_bit(s->query) | pn_buffer_bit(s->gate), .writes = pn_buffer_bit(s->out),
                     .weights = (pn_weight_bytes(s->k_b) + pn_weight_bytes(s->v_b)) * (uint64_t)s->n_head};
}

const pn_step_kind pn_step_mla = {"latent attention", mla, mla_uses};
