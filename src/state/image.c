/* A sequence as a stream of bytes whose order does not depend on context, batch, rings or tiles: layer after layer; of each head the keys of all positions
 * that going on needs, ascending, then their values; then recurrent floats. Elements are as the cache types hold them (q8_0: blocks of scale and codes). */
#include "state/layout.h"

#include "base/hash.h"

/* Elements that move at once: a block of q8_0. */
enum { PIECE = 32 };

static int32_t first_needed(const pn_layer_shape *shape, int32_t length)
{
    return shape->window > 0 && length >= shape->window ? length - shape->window + 1 : 0;
}

bool pn_state_image_bytes(const pn_state *s, int32_t length, uint64_t *bytes)
{
    *bytes = 0;
    for (int32_t i = 0; i < s->n_layers; i++) {
        const pn_layer_place *l = &s->layers[i];
        const uint64_t n = (uint64_t)(length - first_needed(&l->shape, length)) * (uint64_t)l->shape.n_head;
        uint64_t one;
        if (!pn_mul(n, l->tile_bytes / PN_TILE + l->row_bytes, &one) || !pn_add(*bytes, one, bytes) || !pn_add(*bytes, (uint64_t)l->shape.recurrent * sizeof(float), bytes)) return false;
    }
    return true;
}

uint64_t pn_state_layout(const pn_state *s)
{
    pn_hash h = {0};
    const int32_t types[] = {(int32_t)s->type_k, (int32_t)s->type_v, s->n_layers};
    pn_hash_add(&h, types, sizeof types);
    for (int32_t i = 0; i < s->n_layers; i++) {
        const pn_layer_shape *l = &s->layers[i].shape;
        const int64_t shape[] = {l->n_head, l->d_k, l->d_v, l->window, l->recurrent};
        pn_hash_add(&h, shape, sizeof shape);
    }
    return pn_hash_end(&h);
}

/* ---- keys: elements [at, at + n) of a position in a tile to or from a row ------------------------------------------------------------ */

typedef struct element {
    size_t bytes;  /* of one */
    size_t stride; /* between a position's elements */
} element;

static void move(void *row, uint8_t *tile, const element *e, int32_t n, bool take)
{
    uint8_t *r = row;
    for (int32_t i = 0; i < n; i++, tile += e->stride, r += e->bytes) memcpy(take ? r : tile, take ? tile : r, e->bytes);
}

static void move_key(uint8_t *row, uint8_t *tile, pinch_cache_type type, int32_t cell, int32_t at, int32_t n, bool take)
{
    static const element floats = {4, 4 * PN_TILE}, halves = {2, 2 * PN_TILE}, codes = {1, PN_TILE};
    if (type == PINCH_CACHE_Q8_0) {
        uint8_t *block = tile + (size_t)at / 32 * 34 * PN_TILE;
        move(row, block + cell * 2, &halves, 1, take);
        move(row + 2, block + 2 * PN_TILE + cell, &codes, n, take);
    } else {
        const element *e = type == PINCH_CACHE_F32 ? &floats : &halves;
        move(row, tile + (size_t)at * e->stride + (size_t)cell * e->bytes, e, n, take);
    }
}

/* ---- a whole sequence, in one order for both directions --------------------------------------------------------------------------- */

typedef struct stream {
    bool (*move)(void *ctx, void *bytes, size_t n); /* takes the bytes, or fills them */
    void *ctx;
    bool writing; /* the state to the stream */
} stream;

static bool key(const pn_kv *kv, int32_t head, int32_t position, const stream *to)
{
    uint8_t row[PIECE * 4];
    const int32_t cell = position % kv->cells;
    uint8_t *tile = kv->k + (size_t)head * kv->k_head + (size_t)(cell / PN_TILE) * kv->tile_bytes;
    for (int32_t at = 0; at < kv->d_k; at += PIECE) {
        const int32_t n = (int32_t)pn_min64(PIECE, kv->d_k - at);
        const size_t bytes = pn_kv_bytes(kv->type_k, n);
        if (to->writing) move_key(row, tile, kv->type_k, cell % PN_TILE, at, n, true);
        if (!to->move(to->ctx, row, bytes)) return false;
        if (!to->writing) move_key(row, tile, kv->type_k, cell % PN_TILE, at, n, false);
    }
    return true;
}

static bool layer(const pn_state *s, int32_t index, int32_t seq, int32_t length, const stream *to)
{
    const pn_layer_place *l = &s->layers[index];
    const int32_t first = first_needed(&l->shape, length);
    const pn_kv kv = pn_state_kv(s, index, seq);
    for (int32_t h = 0; h < l->shape.n_head; h++) {
        for (int32_t p = first; p < length; p++)
            if (!key(&kv, h, p, to)) return false;
        for (int32_t p = first; p < length && kv.row_bytes; p++)
            if (!to->move(to->ctx, kv.v + (size_t)h * kv.v_head + (size_t)(p % kv.cells) * kv.row_bytes, kv.row_bytes)) return false;
    }
    return l->shape.recurrent == 0 || to->move(to->ctx, pn_state_recurrent(s, index, seq), (size_t)l->shape.recurrent * sizeof(float));
}

static bool layers(const pn_state *s, int32_t seq, int32_t length, const stream *to)
{
    for (int32_t i = 0; i < s->n_layers; i++)
        if (!layer(s, i, seq, length, to)) return false;
    return true;
}

static bool fill_zero(void *ctx, void *bytes, size_t n)
{
    (void)ctx;
    memset(bytes, 0, n);
    return true;
}

void pn_state_blank(pn_state *s, int32_t index, int32_t seq, int32_t position)
{
    static const stream zeros = {fill_zero, NULL, false};
    const pn_layer_shape *shape = &s->layers[index].shape;
    const pn_kv kv = pn_state_kv(s, index, seq);
    const size_t carried = (size_t)shape->recurrent * sizeof(float);
    float *kept = pn_state_kept(s, index, seq, position);
    for (int32_t h = 0; h < shape->n_head; h++) {
        key(&kv, h, position, &zeros);
        memset(kv.v + (size_t)h * kv.v_head + (size_t)(position % kv.cells) * kv.row_bytes, 0, kv.row_bytes);
    }
    if (carried) memset(pn_state_recurrent(s, index, seq), 0, carried);
    if (carried && kept) memset(kept, 0, carried);
}

bool pn_state_write(const pn_state *s, int32_t seq, bool (*put)(void *ctx, void *bytes, size_t n), void *ctx)
{
    return layers(s, seq, s->seqs[seq].length, &(stream){put, ctx, true});
}

bool pn_state_read(pn_state *s, int32_t seq, int32_t length, bool (*get)(void *ctx, void *bytes, size_t n), void *ctx)
{
    pn_state_rewind(s, seq, 0);
    s->seqs[seq].high = length; /* touched from here on, whatever becomes of it */
    if (!layers(s, seq, length, &(stream){get, ctx, false})) {
        pn_state_rewind(s, seq, 0);
        return false;
    }
    s->seqs[seq] = (pn_seq){.length = length, .high = length, .loaded = length, .carried = length};
    return true;
}
