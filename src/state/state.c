/* Caches of keys and values, recurrent layers' floats: where each layer of each sequence lies, how a head is stored, what going back still finds. */
#include "state/layout.h"

#include "base/pages.h"

#include <stdlib.h>

static const char *const cache_names[] = {"f32", "f16", "q8_0"};

size_t pn_kv_bytes(pinch_cache_type type, int32_t n_channels)
{
    const size_t n = (size_t)n_channels;
    return type == PINCH_CACHE_F32 ? n * 4 : type == PINCH_CACHE_F16 ? n * 2 : n / 32 * 34;
}

static int32_t cells_of(const pn_layer_shape *shape, const pn_state_options *o)
{
    int64_t cells = o->n_ctx;
    if (shape->window > 0) cells = pn_min64(cells, (int64_t)shape->window - 1 + o->n_batch);
    return (int32_t)((cells + PN_TILE - 1) / PN_TILE * PN_TILE);
}

/* Bytes of one part of a layer; false beyond what a size_t can hold several times. */
static bool part_bytes(uint64_t n, uint64_t size, size_t *bytes)
{
    uint64_t product;
    if (!pn_mul(n, size, &product) || product > SIZE_MAX / 8) return false;
    *bytes = (size_t)pn_round_up(product, 64);
    return true;
}

/* Places a layer behind what there is already. */
static bool layer_plan(pn_layer_place *l, const pn_layer_shape *shape, const pn_state_options *o, pn_totals *t)
{
    *l = (pn_layer_place){.shape = *shape, .offset = t->cached, .r_offset = (size_t)t->carried};
    if (!part_bytes((uint64_t)shape->recurrent, sizeof(float), &l->r_bytes)) return false;
    if (shape->n_head) {
        l->cells = cells_of(shape, o);
        l->forgets = l->cells < o->n_ctx;
        l->tile_bytes = pn_kv_bytes(o->type_k, shape->d_k) * PN_TILE;
        l->row_bytes = pn_kv_bytes(o->type_v, shape->d_v);
        const uint64_t head_cells = (uint64_t)shape->n_head * (uint64_t)l->cells;
        if (!part_bytes(head_cells / PN_TILE, l->tile_bytes, &l->k_bytes) || !part_bytes(head_cells, l->row_bytes, &l->v_bytes)) return false;
    }
    uint64_t cached, carried, all;
    t->carried += l->r_bytes; /* both below SIZE_MAX / 2 */
    t->rings += l->forgets ? pn_layer_bytes(l) : 0;
    return pn_mul(pn_layer_bytes(l), (uint64_t)o->n_seq, &cached) && pn_add(t->cached, cached, &t->cached) && pn_mul(t->carried, (uint64_t)o->n_seq, &carried) &&
           pn_add(t->cached, carried, &all) && all <= SIZE_MAX / 2;
}

bool pn_layers_plan(const pn_state_options *o, pn_layer_place *layers, pn_totals *t)
{
    *t = (pn_totals){0};
    for (int32_t i = 0; i < o->n_layers; i++) {
        pn_layer_place unwanted;
        if (!layer_plan(layers ? &layers[i] : &unwanted, &o->layers[i], o, t)) return false;
    }
    return true;
}

bool pn_state_bytes(const pn_state_options *o, uint64_t *bytes)
{
    pn_totals t;
    if (!pn_layers_plan(o, NULL, &t)) return false;
    *bytes = (uint64_t)pn_max64(1, (int64_t)(t.cached + t.carried * (uint64_t)o->n_seq));
    return true;
}

uint64_t pn_state_table_bytes(const pn_state_options *o)
{
    const uint64_t blocks = (uint64_t)o->n_seq + (uint64_t)o->n_kept, checkpoints = (uint64_t)pn_max64(0, o->n_checkpoints);
    return sizeof(pn_state) + (uint64_t)o->n_layers * sizeof(pn_layer_place) + (uint64_t)o->n_seq * sizeof(pn_seq) + checkpoints * sizeof(pn_checkpoint) + blocks * sizeof(int32_t);
}

bool pn_state_layer_memory(const pn_state_options *options, int32_t layer, pn_layer_memory *out)
{
    pn_totals t = {0};
    pn_layer_place l;
    if (!layer_plan(&l, &options->layers[layer], options, &t)) return false;
    const uint64_t heads = (uint64_t)l.shape.n_head;
    *out = (pn_layer_memory){.cells = l.cells, .position = heads * (l.tile_bytes / PN_TILE + l.row_bytes), .kv = pn_layer_bytes(&l), .recurrent = l.r_bytes};
    return true;
}

pinch_status pn_state_check(const pn_state_options *o, pinch_error *err)
{
    for (int32_t i = 0; i < o->n_layers; i++) {
        const pn_layer_shape *s = &o->layers[i];
        const pinch_cache_type types[2] = {o->type_k, o->type_v};
        const int32_t sizes[2] = {s->d_k, s->d_v};
        for (int j = 0; s->n_head && j < 2; j++)
            if (types[j] == PINCH_CACHE_Q8_0 && sizes[j] % 32)
                return pn_fail(err, PINCH_ERR_ARGUMENT, "cache type %s for %s: heads of layer %d have %d channels, no multiple of 32; use f16", cache_names[types[j]],
                               j ? "values" : "keys", (int)i, (int)sizes[j]);
    }
    return PINCH_OK;
}

static pinch_status state_init(pn_state *s, const pn_state_options *o, pinch_error *err)
{
    s->type_k = o->type_k;
    s->type_v = o->type_v;
    s->n_layers = o->n_layers;
    s->n_seq = o->n_seq;
    s->layers = pn_alloc_zero((uint64_t)o->n_layers, sizeof *s->layers);
    s->seqs = pn_alloc_zero((uint64_t)o->n_seq, sizeof *s->seqs);
    if (!s->layers || !s->seqs) return pn_fail_memory(err, "the table of layers and sequences", (uint64_t)o->n_layers * sizeof *s->layers);
    pn_totals t;
    if (!pn_layers_plan(o, s->layers, &t))
        return pn_fail(err, PINCH_ERR_MEMORY, "context %d x %d sequences: the cache does not fit in an address space", (int)o->n_ctx, (int)o->n_seq);
    s->recurrent = t.carried > 0;
    s->bytes = (uint64_t)pn_max64(1, (int64_t)t.cached);
    s->memory = pn_pages_alloc(s->bytes);
    if (!s->memory) return pn_fail_memory(err, "the key-value cache", s->bytes);
    const pinch_status st = pn_carried_open(s, o, t.carried, err);
    return st ? st : pn_checkpoints_open(s, o, err);
}

pinch_status pn_state_open(pn_state **out, const pn_state_options *options, pinch_error *err)
{
    pinch_status st = pn_state_check(options, err);
    if (st) return st;
    pn_state *s = pn_alloc_zero(1, sizeof *s);
    st = s ? state_init(s, options, err) : pn_fail_memory(err, "a state", sizeof *s);
    if (st) {
        pn_state_close(s);
        return st;
    }
    *out = s;
    return PINCH_OK;
}

void pn_state_close(pn_state *s)
{
    if (!s) return;
    pn_pages_free(s->memory, s->bytes);
    pn_checkpoints_close(s);
    pn_carried_close(s);
    free(s->layers);
    free(s->seqs);
    free(s);
}

pn_kv pn_state_kv(const pn_state *s, int32_t index, int32_t seq_index)
{
    const pn_layer_place *l = &s->layers[index];
    uint8_t *base = pn_layer_at(s, l, seq_index);
    return (pn_kv){.k = base, .v = base + l->k_bytes, .k_head = (size_t)(l->cells / PN_TILE) * l->tile_bytes, .v_head = (size_t)l->cells * l->row_bytes,
                   .tile_bytes = l->tile_bytes, .row_bytes = l->row_bytes, .cells = l->cells, .window = l->shape.window, .d_k = l->shape.d_k, .d_v = l->shape.d_v,
                   .type_k = s->type_k, .type_v = s->type_v};
}

/* ---- storing: one function per cache type ----------------------------------------------------------- */

/* A block of the q8_0 cache: the rounding of act32, its scale kept as a half. */
static uint16_t round_block(int8_t code[32], const pn_ops *ops, const float *x)
{
    pn_act32 block;
    ops->quantise_32(&block, x, 32);
    memcpy(code, block.q, 32);
    return pn_f32_to_f16(block.d);
}

static void store_k_f32(uint8_t *tile, const pn_ops *ops, int32_t cell, const float *k, int32_t d)
{
    (void)ops;
    float *t = (float *)(void *)tile + cell;
    for (int32_t i = 0; i < d; i++) t[i * PN_TILE] = k[i];
}

static void store_k_f16(uint8_t *tile, const pn_ops *ops, int32_t cell, const float *k, int32_t d)
{
    uint16_t *t = (uint16_t *)(void *)tile + cell;
    uint16_t half[64];
    for (int32_t i = 0; i < d; i += 64) {
        const int32_t n = (int32_t)pn_min64(64, d - i);
        ops->f16_from_f32(half, k + i, n);
        for (int32_t j = 0; j < n; j++) t[(i + j) * PN_TILE] = half[j];
    }
}

static void store_k_q8_0(uint8_t *tile, const pn_ops *ops, int32_t cell, const float *k, int32_t d)
{
    for (int32_t i = 0; i < d / 32; i++) {
        uint8_t *block = tile + (size_t)i * 34 * PN_TILE;
        int8_t code[32];
        const uint16_t scale = round_block(code, ops, k + i * 32);
        memcpy(block + cell * 2, &scale, 2);
        for (int32_t j = 0; j < 32; j++) block[2 * PN_TILE + j * PN_TILE + cell] = (uint8_t)code[j];
    }
}

static void store_v_f32(uint8_t *row, const pn_ops *ops, const float *v, int32_t d)
{
    (void)ops;
    memcpy(row, v, (size_t)d * sizeof *v);
}

static void store_v_f16(uint8_t *row, const pn_ops *ops, const float *v, int32_t d) { ops->f16_from_f32((uint16_t *)(void *)row, v, d); }

static void store_v_q8_0(uint8_t *row, const pn_ops *ops, const float *v, int32_t d)
{
    for (int32_t i = 0; i < d / 32; i++, row += 34) {
        int8_t code[32];
        const uint16_t scale = round_block(code, ops, v + i * 32);
        memcpy(row, &scale, 2);
        memcpy(row + 2, code, 32);
    }
}

void pn_kv_store_k(const pn_kv *kv, const pn_ops *ops, int32_t head, int32_t position, const float *k)
{
    static void (*const store[])(uint8_t *, const pn_ops *, int32_t, const float *, int32_t) = {store_k_f32, store_k_f16, store_k_q8_0};
    const int32_t cell = position % kv->cells;
    uint8_t *tile = kv->k + (size_t)head * kv->k_head + (size_t)(cell / PN_TILE) * kv->tile_bytes;
    store[kv->type_k](tile, ops, cell % PN_TILE, k, kv->d_k);
}

void pn_kv_store_v(const pn_kv *kv, const pn_ops *ops, int32_t head, int32_t position, const float *v)
{
    static void (*const store[])(uint8_t *, const pn_ops *, const float *, int32_t) = {store_v_f32, store_v_f16, store_v_q8_0};
    store[kv->type_v](kv->v + (size_t)head * kv->v_head + (size_t)(position % kv->cells) * kv->row_bytes, ops, v, kv->d_v);
}

/* ---- positions ------------------------------------------------------------------------------------- */

int32_t pn_state_length(const pn_state *s, int32_t i) { return s->seqs[i].length; }

void pn_state_touch(pn_state *s, int32_t i, int32_t n)
{
    pn_seq *q = &s->seqs[i];
    if (q->length + n > q->high) q->high = q->length + n;
    if (q->length + n > q->carried) q->carried = q->length + n;
}

void pn_state_advance(pn_state *s, int32_t i, int32_t n)
{
    pn_state_touch(s, i, n);
    s->seqs[i].length += n;
}

/* What recurrent layers need for position n is in place or kept. */
static bool carries(const pn_state *s, int32_t i, int32_t n) { return !s->recurrent || n == s->seqs[i].carried || pn_kept_holds(s, i, n); }

static bool rings_hold(const pn_state *s, int32_t i, int32_t n)
{
    const int32_t high = s->seqs[i].high;
    for (int32_t j = 0; j < s->n_layers; j++) {
        const pn_layer_place *l = &s->layers[j];
        if (l->shape.n_head == 0 || l->shape.window == 0) continue;
        const int32_t oldest_kept = (int32_t)pn_max64(high - l->cells, s->seqs[i].loaded - l->shape.window + 1), oldest_needed = n - l->shape.window + 1;
        if (oldest_kept > 0 && oldest_needed < oldest_kept) return false;
    }
    return true;
}

static bool holds(const pn_state *s, int32_t i, int32_t n) { return carries(s, i, n) && rings_hold(s, i, n); }

int32_t pn_state_can_rewind(const pn_state *s, int32_t i, int32_t n) { return holds(s, i, n) ? n : pn_checkpoint_before(s, i, n); }

static void start_over(pn_state *s, int32_t i)
{
    if (s->seqs[i].high == 0) return; /* nothing was stored since the last start */
    s->seqs[i] = (pn_seq){0};
    if (s->recurrent) memset(pn_carried_block(s, i), 0, s->carried.block_bytes);
}

void pn_state_rewind(pn_state *s, int32_t i, int32_t n)
{
    if (n == 0) start_over(s, i);
    else if (!holds(s, i, n)) pn_checkpoint_restore(s, i, n);
    else if (s->recurrent && n != s->seqs[i].carried) pn_kept_restore(s, i, n);
    s->seqs[i].length = n;
    pn_kept_drop(s, i);
    pn_checkpoints_drop(s, i, n);
}

void pn_state_copy(pn_state *s, int32_t from, int32_t to)
{
    if (from == to) return;
    for (int32_t j = 0; j < s->n_layers; j++) {
        const pn_layer_place *l = &s->layers[j];
        memcpy(pn_layer_at(s, l, to), pn_layer_at(s, l, from), pn_layer_bytes(l));
    }
    if (s->recurrent) memcpy(pn_carried_block(s, to), pn_carried_block(s, from), s->carried.block_bytes);
    s->seqs[to] = s->seqs[from];
    pn_kept_drop(s, to);
    pn_checkpoints_drop(s, to, -1);
}
