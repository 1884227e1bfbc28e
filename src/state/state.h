/* state/state.h - what a sequence remembers: keys and values per layer, whole or as a ring of a sliding window; what a recurrent layer carries on.
 *
 * Knows geometry and positions; knows nothing of models, steps or who computes the rows. The logical form is (layer, position, head, channel);
 * how it lies in memory is what kernels.h says of qk and pv. A position p of a ring lies in cell p mod cells, and cells is a multiple of 16, so that
 * tiles and lanes depend on the position alone. */
#ifndef PN_STATE_H
#define PN_STATE_H

#include "base/base.h"
#include "kernels/kernels.h"

#define PN_TILE 16 /* positions per tile of the K cache */

typedef struct pn_layer_shape {
    int32_t n_head;    /* KV heads; 0: the layer keeps no keys and values */
    int32_t d_k, d_v;  /* d_v 0: values are the first channels of the keys */
    int32_t window;    /* positions visible, the token itself included; 0: all */
    int64_t recurrent; /* floats that the layer carries from position to position; 0: none */
} pn_layer_shape;

typedef struct pn_state pn_state;

typedef struct pn_state_options {
    const pn_layer_shape *layers; /* copied */
    int32_t n_layers;
    int32_t n_seq, n_ctx, n_batch; /* n_batch rows at most are appended before their attention is done */
    int32_t n_checkpoints;         /* of all sequences together */
    int32_t n_kept;                /* rows of one batch after each of which what recurrent layers carry may be kept, below n_batch */
    pinch_cache_type type_k, type_v;
} pn_state_options;

/* Bytes of caches and of what is carried that pn_state_open takes; false when they do not fit in an address space. */
bool pn_state_bytes(const pn_state_options *options, uint64_t *bytes);
/* Of tables besides: of layers, sequences, checkpoints and blocks. */
uint64_t pn_state_table_bytes(const pn_state_options *options);
/* Bytes of one checkpoint, 0 where no layer needs any: rings shorter than the context, and what recurrent layers carry. */
bool pn_state_checkpoint_bytes(const pn_state_options *options, uint64_t *bytes);
/* What a layer takes of each sequence. */
typedef struct pn_layer_memory {
    int32_t cells;          /* positions that there is room for; 0: the layer keeps no keys and values */
    uint64_t position;      /* bytes of the keys and values of one */
    uint64_t kv, recurrent; /* bytes of all, rounded up to whole cache lines */
} pn_layer_memory;
bool pn_state_layer_memory(const pn_state_options *options, int32_t layer, pn_layer_memory *out);
bool pn_state_is_recurrent(const pn_state_options *options);
/* Bytes of what is kept of n_kept rows. */
bool pn_state_kept_bytes(const pn_state_options *options, uint64_t *bytes);
/* A head size that the cache type cannot hold (q8_0 wants multiples of 32) is a sentence; pn_state_open asks by itself. */
pinch_status pn_state_check(const pn_state_options *options, pinch_error *err);
pinch_status pn_state_open(pn_state **out, const pn_state_options *options, pinch_error *err);
void pn_state_close(pn_state *s); /* NULL is fine */

/* One layer of one sequence, as attention walks it. */
typedef struct pn_kv {
    uint8_t *k, *v;       /* head h: k + h*k_head, v + h*v_head */
    size_t k_head, v_head;
    size_t tile_bytes;    /* of K */
    size_t row_bytes;     /* of V */
    int32_t cells;        /* multiple of PN_TILE */
    int32_t window;
    int32_t d_k, d_v;
    pinch_cache_type type_k, type_v;
} pn_kv;
pn_kv pn_state_kv(const pn_state *s, int32_t layer, int32_t seq);
/* Channels of one key or value; for q8_0 a multiple of 32. */
size_t pn_kv_bytes(pinch_cache_type type, int32_t n_channels);
/* The floats of a recurrent layer, 64-byte aligned, zero at position 0; its step updates them in place and decides what they mean. Valid until the sequence
 * goes back. */
float *pn_state_recurrent(const pn_state *s, int32_t layer, int32_t seq);
/* Where the step copies them to once it has done the row at `position`; NULL: nowhere. */
float *pn_state_kept(const pn_state *s, int32_t layer, int32_t seq, int32_t position);
/* What is of a layer at `position` becomes zero: key, value, and what it carries behind it, in place and kept. */
void pn_state_blank(pn_state *s, int32_t layer, int32_t seq, int32_t position);
/* Stores one head's key or value at a position. Different heads and positions may be stored by different threads. */
void pn_kv_store_k(const pn_kv *kv, const pn_ops *ops, int32_t head, int32_t position, const float *k);
void pn_kv_store_v(const pn_kv *kv, const pn_ops *ops, int32_t head, int32_t position, const float *v);

int32_t pn_state_length(const pn_state *s, int32_t seq);
/* Positions length .. length+n-1 are about to be stored: what a ring loses by that is lost, whether or not they are kept. */
void pn_state_touch(pn_state *s, int32_t seq, int32_t n);
/* They have been stored in every layer. */
void pn_state_advance(pn_state *s, int32_t seq, int32_t n);
/* The sequence's next n rows, n_kept + 1 at most, will be one batch, and it may end after any of them: going back to behind its first row, or any later
 * one, will be exact until the sequence goes back or beyond it. */
void pn_state_keep(pn_state *s, int32_t seq, int32_t n);
/* The newest position at or before n (n <= length) from which the sequence can go on exactly: n, or where a ring has lost what n needs or a
 * recurrent layer has gone beyond it unkept, that of a checkpoint, or 0. */
int32_t pn_state_can_rewind(const pn_state *s, int32_t seq, int32_t n);
void pn_state_rewind(pn_state *s, int32_t seq, int32_t n); /* n as pn_state_can_rewind answered */
void pn_state_copy(pn_state *s, int32_t from, int32_t to);
/* Remembers the sequence as it is now; the checkpoint used longest ago gives way. It holds until the sequence goes back below it. */
void pn_state_checkpoint(pn_state *s, int32_t seq);
bool pn_state_keeps_checkpoints(const pn_state *s);

/* A sequence as bytes that do not depend on context and batch: states of the same layout read each other's. */
bool pn_state_image_bytes(const pn_state *s, int32_t length, uint64_t *bytes);
uint64_t pn_state_layout(const pn_state *s); /* a hash of cache types and shapes */
/* False as soon as put or get is. A sequence that could not be read whole is left empty. */
bool pn_state_write(const pn_state *s, int32_t seq, bool (*put)(void *ctx, void *bytes, size_t n), void *ctx);
bool pn_state_read(pn_state *s, int32_t seq, int32_t length, bool (*get)(void *ctx, void *bytes, size_t n), void *ctx);

#endif
