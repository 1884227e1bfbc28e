/* Softmax attention over the cache.
 *
 * A unit of work is a tile: consecutive rows of one sequence times query heads that share one key-value head, at most PN_QUERIES queries, so that
 * one pass over the keys serves them all. Each query sums over its own positions in ascending order, lanes being position mod 16: the bits do
 * not depend on the tile, the batch, the ring's offset or the threads. */
#include "graph/walk.h"

#include "base/math.h"

#include <math.h>

typedef struct tile {
    const pn_attention *a;
    pn_kv kv;
    int32_t row, n_rows;     /* rows of the batch: consecutive positions of one sequence */
    int32_t head, n_heads;   /* query heads, of one key-value head */
    int32_t kv_head;
    int32_t position;        /* of the first row */
    int32_t base;            /* first position whose score is kept: a multiple of PN_TILE */
    int64_t ld;              /* scores of a query: positions base .. base + ld - 1 */
    const float *q[PN_QUERIES];
    float *o[PN_QUERIES];
} tile;

static int32_t first_visible(const pn_kv *kv, int32_t position)
{
    return kv->window > 0 && position >= kv->window ? position - kv->window + 1 : 0;
}

/* Queries are row-major: query i is row i / n_heads, head i % n_heads. */
static void tile_point(const pn_run *run, tile *t)
{
    for (int32_t r = 0; r < t->n_rows; r++) {
        for (int32_t h = 0; h < t->n_heads; h++) {
            t->q[r * t->n_heads + h] = pn_row(run, t->a->buffer, t->row + r) + (int64_t)(t->head + h) * t->a->d_k;
            t->o[r * t->n_heads + h] = pn_row(run, t->a->out, t->row + r) + (int64_t)(t->head + h) * t->a->d_v;
        }
    }
}

/* Scores of all queries at all positions of the tile's range; what a query may not see is dealt with afterwards. */
static void tile_scores(const pn_run *run, const tile *t, float *scores)
{
    const pn_kv *kv = &t->kv;
    const uint8_t *k = kv->k + (size_t)t->kv_head * kv->k_head;
    const int32_t n_tiles = (int32_t)(t->ld / PN_TILE), ring = kv->cells / PN_TILE;
    for (int32_t done = 0; done < n_tiles;) { /* a ring wraps at most once */
        const int32_t at = (t->base / PN_TILE + done) % ring, n = (int32_t)pn_min64(n_tiles - done, ring - at);
        run->ops->qk[kv->type_k](scores + (int64_t)done * PN_TILE, t->ld, k + (size_t)at * kv->tile_bytes, kv->tile_bytes, n, t->q, t->n_rows * t->n_heads, t->a->d_k);
        done += n;
    }
}

/* Turns one query's scores into weights exp(s - max); returns their sum. */
static float weigh(const pn_run *run, const tile *t, float *s, int32_t position)
{
    const int32_t hidden = first_visible(&t->kv, position) - t->base, n = position + 1 - t->base;
    if (t->a->softcap != 0.0f) run->ops->softcap(s, t->a->softcap, n);
    for (int32_t i = 0; i < hidden; i++) s[i] = -INFINITY;
    return run->ops->exp_sum(s, run->ops->max(s, n), n);
}

/* Adds values of positions [from, to) to n_q queries from query `first` on. */
static void add_values(const pn_run *run, const tile *t, const float *scores, int32_t first, int32_t n_q, int32_t from, int32_t to)
{
    const pn_kv *kv = &t->kv;
    const uint8_t *v = kv->v + (size_t)t->kv_head * kv->v_head;
    for (int32_t p = from; p < to;) {
        const int32_t cell = p % kv->cells, n = (int32_t)pn_min64(to - p, kv->cells - cell);
        run->ops->pv[kv->type_v](t->o + first, scores + (int64_t)first * t->ld + (p - t->base), t->ld, v + (size_t)cell * kv->row_bytes, kv->row_bytes, n, n_q, t->a->d_v);
        p += n;
    }
}

/* Positions that all rows see are read once for all queries; those that only some see, row by row, before and after. */
static void tile_values(const pn_run *run, const tile *t, const float *scores)
{
    const int32_t last = t->position + t->n_rows - 1;
    int32_t from = first_visible(&t->kv, last), to = t->position + 1;
    if (from >= to) from = to = last + 1; /* a window narrower than the tile: nothing is common */
    for (int32_t r = 0; r < t->n_rows; r++)
        add_values(run, t, scores, r * t->n_heads, t->n_heads, first_visible(&t->kv, t->position + r), (int32_t)pn_min64(from, t->position + r + 1));
    add_values(run, t, scores, 0, t->n_rows * t->n_heads, from, to);
    for (int32_t r = 1; r < t->n_rows && from < to; r++) add_values(run, t, scores, r * t->n_heads, t->n_heads, to, t->position + r + 1);
}

/* What query i's head is multiplied by. */
static float head_gate(const pn_run *run, const tile *t, int32_t i)
{
    if (t->a->gate_column == PN_NONE) return 1.0f;
    const float *logits = pn_row(run, t->a->buffer, t->row + i / t->n_heads) + t->a->gate_column;
    return pn_sigmoid(logits[t->head + i % t->n_heads]);
}

static void attend(const pn_run *run, pn_lane *lane, tile *t)
{
    const int32_t last = t->position + t->n_rows - 1;
    t->base = first_visible(&t->kv, t->position) / PN_TILE * PN_TILE;
    t->ld = (int64_t)(last / PN_TILE + 1) * PN_TILE - t->base;
    tile_point(run, t);
    tile_scores(run, t, lane->scores);
    float total[PN_QUERIES];
    for (int32_t i = 0; i < t->n_rows * t->n_heads; i++) {
        total[i] = weigh(run, t, lane->scores + i * t->ld, t->position + i / t->n_heads);
        memset(t->o[i], 0, (size_t)t->a->d_v * sizeof(float));
    }
    tile_values(run, t, lane->scores);
    for (int32_t i = 0; i < t->n_rows * t->n_heads; i++) run->ops->scale(t->o[i], head_gate(run, t, i) / total[i], t->a->d_v);
}

/* All query heads of `n` rows from `row` on. */
static void attend_rows(const pn_run *run, pn_lane *lane, const pn_attention *a, int32_t row, int32_t n)
{
    const int32_t group = a->n_head / a->n_head_kv;
    tile t = {.a = a, .kv = pn_state_kv(run->state, a->layer, run->places[row].seq), .row = row, .n_rows = n, .position = run->places[row].position};
    for (int32_t h = 0; h < a->n_head; h += t.n_heads) {
        t.head = h;
        t.kv_head = h / group;
        t.n_heads = (int32_t)pn_min64(pn_min64(group - h % group, PN_QUERIES / n), a->n_head - h);
        attend(run, lane, &t);
    }
}

/* Rows from `row` on, below `end`, that one tile may hold: consecutive positions of one sequence, and few enough for the ring. */
static int32_t tile_rows(const pn_run *run, const pn_attention *a, int32_t row, int32_t end)
{
    const int32_t group = a->n_head / a->n_head_kv;
    const int32_t most = group >= PN_QUERIES ? 1 : PN_QUERIES / group;
    int32_t n = 1;
    while (n < most && row + n < end && run->places[row + n].seq == run->places[row].seq && run->places[row + n].position == run->places[row].position + n) n++;
    return n;
}

static bool many_rows(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_attention *a = &step->u.attention;
    int64_t from, to;
    while (pn_grab_next(pn_step_grab(run, step), run->n_rows, lane->n_threads, &from, &to)) {
        for (int32_t row = (int32_t)from, n; row < to; row += n) {
            n = tile_rows(run, a, row, (int32_t)to);
            attend_rows(run, lane, a, row, n);
            for (int32_t r = row; r < row + n; r++) pn_prep_row(run, lane, &a->emit, r);
        }
    }
    return true;
}

/* One row: units are whole groups of query heads where they divide evenly, else single heads, so that no thread waits long for another. */
static bool one_row(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_attention *a = &step->u.attention;
    const int32_t group = a->n_head / a->n_head_kv;
    const bool even = a->n_head_kv % lane->n_threads == 0 || a->n_head_kv >= 4 * lane->n_threads;
    const int32_t heads = even ? (int32_t)pn_min64(group, PN_QUERIES) : 1;
    const int32_t units_per_group = (group + heads - 1) / heads;
    tile t = {.a = a, .kv = pn_state_kv(run->state, a->layer, run->places[0].seq), .n_rows = 1, .position = run->places[0].position};
    int64_t from, to;
    while (pn_grab_next(pn_step_grab(run, step), (int64_t)a->n_head_kv * units_per_group, lane->n_threads, &from, &to)) {
        for (int64_t i = from; i < to; i++) {
            t.kv_head = (int32_t)(i / units_per_group);
            t.head = t.kv_head * group + (int32_t)(i % units_per_group) * heads;
            t.n_heads = (int32_t)pn_min64(heads, (int64_t)(t.kv_head + 1) * group - t.head);
            attend(run, lane, &t);
        }
    }
    return true;
}

static bool attention(pn_run *run, pn_lane *lane, const pn_step *step) { return pn_private(run) ? one_row(run, lane, step) : many_rows(run, lane, step); }

static pn_uses attention_uses(const pn_step *step)
{
    return (pn_uses){.reads = pn_buffer_bit(step->u.attention.buffer), .writes = pn_buffer_bit(step->u.attention.out)};
}

const pn_step_kind pn_step_attention = {"attention", attention, attention_uses};
