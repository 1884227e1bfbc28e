/* Softmax attention over the cache.
 *
 * A unit of work is a tile: consecutive rows of one sequence times query heads that share one key-value head, at most PN_QUERIES queries, so that
 * one pass over the keys serves them all. Each query sums over its own positions in ascending order, lanes being position mod 16: the bits do
 * not depend on the tile, the batch, the ring's offset or the threads. */
#include "graph/walk.h"

#include "base/math.h"

#include <math.h>

/* Queries, and the scores of one pass. */
typedef struct tile {
    const pn_queries *in;
    int32_t base;            /* first position whose score is kept: a multiple of PN_TILE */
    int64_t ld;              /* scores of a query: positions base .. base + ld - 1 */
    float *key_rows;         /* where values are part of the keys: one tile of them as rows */
    int32_t key_tile;        /* which; PN_NONE */
} tile;

static int32_t first_visible(const pn_kv *kv, int32_t position)
{
    return kv->window > 0 && position >= kv->window ? position - kv->window + 1 : 0;
}

/* Scores of all queries at all positions of the tile's range; what a query may not see is dealt with afterwards. */
static void tile_scores(const pn_run *run, const tile *t, float *scores)
{
    const pn_queries *in = t->in;
    const pn_kv *kv = &in->kv;
    const uint8_t *k = kv->k + (size_t)in->kv_head * kv->k_head;
    const int32_t n_tiles = (int32_t)(t->ld / PN_TILE), ring = kv->cells / PN_TILE;
    for (int32_t done = 0; done < n_tiles;) { /* a ring wraps at most once */
        const int32_t at = (t->base / PN_TILE + done) % ring, n = (int32_t)pn_min64(n_tiles - done, ring - at);
        run->ops->qk[kv->type_k](scores + (int64_t)done * PN_TILE, t->ld, k + (size_t)at * kv->tile_bytes, kv->tile_bytes, n, in->q, in->n_rows * in->n_heads, in->d_k);
        done += n;
    }
}

/* Turns one query's scores into weights exp(s - max); returns their sum, the sink's weight last. */
static float weigh(const pn_run *run, const tile *t, float *s, int32_t position, const float *sink)
{
    const int32_t hidden = first_visible(&t->in->kv, position) - t->base, n = position + 1 - t->base;
    if (t->in->softcap != 0.0f) run->ops->softcap(s, t->in->softcap, n);
    for (int32_t i = 0; i < hidden; i++) s[i] = -INFINITY;
    const float largest = run->ops->max(s, n);
    if (!sink) return run->ops->exp_sum(s, largest, n);
    const float top = *sink > largest ? *sink : largest;
    return run->ops->exp_sum(s, top, n) + pn_expf(*sink - top);
}

/* Adds values of the cells [cell, cell + n), which do not wrap, to n_q queries from query `first` on; their weights are at p. */
static void add_cells(const pn_run *run, const tile *t, const float *p, int32_t first, int32_t n_q, int32_t cell, int32_t n)
{
    const pn_kv *kv = &t->in->kv;
    const uint8_t *v = kv->v + (size_t)t->in->kv_head * kv->v_head;
    run->ops->pv[kv->type_v](t->in->o + first, p, t->ld, v + (size_t)cell * kv->row_bytes, kv->row_bytes, n, n_q, t->in->d_v);
}

/* The same where values are the keys' first channels: a tile of keys is laid out as rows, once for all queries. */
static void add_keys(const pn_run *run, tile *t, const float *p, int32_t first, int32_t n_q, int32_t cell, int32_t n)
{
    const pn_kv *kv = &t->in->kv;
    const uint8_t *k = kv->k + (size_t)t->in->kv_head * kv->k_head;
    const int64_t ld = pn_key_row_floats(t->in->d_v);
    for (int32_t done = 0, part; done < n; done += part) {
        const int32_t at = (cell + done) / PN_TILE, inside = (cell + done) % PN_TILE;
        part = (int32_t)pn_min64(n - done, PN_TILE - inside);
        if (t->key_tile != at) run->ops->k_rows[kv->type_k](t->key_rows, ld, k + (size_t)at * kv->tile_bytes, t->in->d_v);
        t->key_tile = at;
        run->ops->pv[PINCH_CACHE_F32](t->in->o + first, p + done, t->ld, t->key_rows + inside * ld, (size_t)ld * sizeof(float), part, n_q, t->in->d_v);
    }
}

/* Adds values of positions [from, to) to n_q queries from query `first` on. */
static void add_values(const pn_run *run, tile *t, const float *scores, int32_t first, int32_t n_q, int32_t from, int32_t to)
{
    const pn_kv *kv = &t->in->kv;
    for (int32_t p = from; p < to;) {
        const int32_t cell = p % kv->cells, n = (int32_t)pn_min64(to - p, kv->cells - cell);
        const float *weights = scores + (int64_t)first * t->ld + (p - t->base);
        if (kv->d_v) add_cells(run, t, weights, first, n_q, cell, n);
        else add_keys(run, t, weights, first, n_q, cell, n);
        p += n;
    }
}

/* Positions that all rows see are read once for all queries; those that only some see, row by row, before and after. */
static void tile_values(const pn_run *run, tile *t, const float *scores)
{
    const pn_queries *in = t->in;
    const int32_t last = in->position + in->n_rows - 1;
    int32_t from = first_visible(&in->kv, last), to = in->position + 1;
    if (from >= to) from = to = last + 1; /* a window narrower than the tile: nothing is common */
    for (int32_t r = 0; r < in->n_rows; r++)
        add_values(run, t, scores, r * in->n_heads, in->n_heads, first_visible(&in->kv, in->position + r), (int32_t)pn_min64(from, in->position + r + 1));
    add_values(run, t, scores, 0, in->n_rows * in->n_heads, from, to);
    for (int32_t r = 1; r < in->n_rows && from < to; r++) add_values(run, t, scores, r * in->n_heads, in->n_heads, to, in->position + r + 1);
}

void pn_attend(const pn_run *run, pn_lane *lane, const pn_queries *in)
{
    const int32_t last = in->position + in->n_rows - 1, n = in->n_rows * in->n_heads;
    tile t = {.in = in, .base = first_visible(&in->kv, in->position) / PN_TILE * PN_TILE, .key_rows = lane->key_rows, .key_tile = PN_NONE};
    t.ld = (int64_t)(last / PN_TILE + 1) * PN_TILE - t.base;
    tile_scores(run, &t, lane->scores);
    float total[PN_QUERIES];
    for (int32_t i = 0; i < n; i++) {
        total[i] = weigh(run, &t, lane->scores + i * t.ld, in->position + i / in->n_heads, in->sinks ? in->sinks + i % in->n_heads : NULL);
        memset(in->o[i], 0, (size_t)in->d_v * sizeof(float));
    }
    tile_values(run, &t, lane->scores);
    for (int32_t i = 0; i < n; i++) run->ops->scale(in->o[i], in->gate[i] / total[i], in->d_v);
}

/* ---- the step ------------------------------------------------------------------------------------------------------------------------ */

/* What a head of a row is multiplied by as a whole. */
static float head_gate(const pn_run *run, const pn_attention *a, int32_t row, int32_t head)
{
    return a->gate_column == PN_NONE || a->gated_channels ? 1.0f : pn_sigmoid(pn_row(run, a->buffer, row)[a->gate_column + head]);
}

/* Query heads of one group, and which channels of their results. */
typedef struct part {
    int32_t head, n_heads;
    int32_t channel, n_channels; /* the first a multiple of 32 */
} part;

static void attend(const pn_run *run, pn_lane *lane, const pn_attention *a, int32_t row, int32_t n_rows, const part *p)
{
    const pn_place *place = &run->places[row];
    const int32_t n_heads = p->n_heads;
    pn_queries t = {.kv = pn_state_kv(run->state, a->layer, place->seq), .kv_head = p->head / (a->n_head / a->n_head_kv), .n_rows = n_rows, .n_heads = n_heads,
                    .position = place->position, .d_k = a->d_k, .d_v = p->n_channels, .softcap = a->softcap, .sinks = a->sinks ? a->sinks + p->head : NULL};
    t.kv.v += pn_kv_bytes(t.kv.type_v, p->channel);
    for (int32_t r = 0; r < n_rows; r++) {
        for (int32_t h = 0; h < n_heads; h++) {
            t.q[r * n_heads + h] = pn_row(run, a->buffer, row + r) + (int64_t)(p->head + h) * a->d_k;
            t.o[r * n_heads + h] = pn_row(run, a->out, row + r) + (int64_t)(p->head + h) * a->d_v + p->channel;
            t.gate[r * n_heads + h] = head_gate(run, a, row + r, p->head + h);
        }
    }
    pn_attend(run, lane, &t);
    for (int32_t i = 0; a->gated_channels && i < n_rows * n_heads; i++) {
        const float *gates = pn_row(run, a->buffer, row + i / n_heads) + a->gate_column + (int64_t)(p->head + i % n_heads) * a->d_v + p->channel;
        run->ops->sigmoid_mul(t.o[i], gates, t.o[i], p->n_channels);
    }
}

/* Query heads [first, end) of `n` rows from `row` on. */
static void attend_heads(const pn_run *run, pn_lane *lane, const pn_attention *a, int32_t row, int32_t n, int32_t first, int32_t end)
{
    const int32_t group = a->n_head / a->n_head_kv;
    for (part p = {.head = first, .n_channels = a->d_v}; p.head < end; p.head += p.n_heads) {
        p.n_heads = (int32_t)pn_min64(pn_min64(group - p.head % group, PN_QUERIES / n), end - p.head);
        attend(run, lane, a, row, n, &p);
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
            attend_heads(run, lane, a, row, n, 0, a->n_head);
            for (int32_t r = row; r < row + n; r++) pn_prep_row(run, lane, &a->emit, r);
        }
    }
    return true;
}

/* How one row's work is cut into units: whole groups of query heads, which read keys and values once, as far as these share out evenly; groups that are left
 * over by heads, or by halves of the channels, whose scores are then computed twice. */
typedef struct units {
    int32_t group, whole; /* groups that are one unit each */
    int32_t heads;        /* of a unit of the others */
    int32_t halves;       /* 2: such a unit has half of the channels; 1 */
    int32_t n;
} units;

static units cut(const pn_attention *a, int32_t n_threads)
{
    units u = {.group = a->n_head / a->n_head_kv, .whole = a->n_head_kv, .halves = 1};
    const int32_t left = a->n_head_kv >= 4 * n_threads ? 0 : a->n_head_kv % n_threads;
    u.whole -= left;
    u.heads = u.group % n_threads == 0 ? u.group / n_threads : 1;
    if (n_threads == 2 && u.group % 2 && u.group <= PN_QUERIES && a->d_v >= 64) {
        u.heads = u.group;
        u.halves = 2;
    }
    u.n = u.whole + left * (u.group / u.heads) * u.halves;
    return u;
}

static void attend_unit(const pn_run *run, pn_lane *lane, const pn_attention *a, const units *u, int32_t i)
{
    const int32_t first = i < u->whole ? i * u->group : u->whole * u->group + (i - u->whole) / u->halves * u->heads;
    if (i < u->whole || u->halves == 1) {
        attend_heads(run, lane, a, 0, 1, first, first + (i < u->whole ? u->group : u->heads));
        return;
    }
    const int32_t middle = (int32_t)pn_round_up((uint64_t)a->d_v / 2, 32), second = (i - u->whole) % 2;
    attend(run, lane, a, 0, 1, &(part){.head = first, .n_heads = u->heads, .channel = second ? middle : 0, .n_channels = second ? a->d_v - middle : middle});
}

static bool one_row(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_attention *a = &step->u.attention;
    const units u = cut(a, lane->n_threads);
    int64_t from, to;
    while (pn_grab_next(pn_step_grab(run, step), u.n, lane->n_threads, &from, &to))
        for (int64_t i = from; i < to; i++) attend_unit(run, lane, a, &u, (int32_t)i);
    return true;
}

static bool attention(pn_run *run, pn_lane *lane, const pn_step *step) { return pn_private(run) ? one_row(run, lane, step) : many_rows(run, lane, step); }

static pn_uses attention_uses(const pn_step *step)
{
    const pn_attention *a = &step->u.attention;
    return (pn_uses){.reads = pn_buffer_bit(a->buffer), .writes = pn_buffer_bit(a->out), .keys_of = a->layer + 1};
}

const pn_step_kind pn_step_attention = {"attention", attention, attention_uses};
