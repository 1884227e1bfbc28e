/* state/layout.h - how a state lies in memory. Only for state/. */
#ifndef PN_STATE_LAYOUT_H
#define PN_STATE_LAYOUT_H

#include "state/state.h"

typedef struct pn_layer_place {
    pn_layer_shape shape;
    int32_t cells;
    bool forgets;                     /* a ring shorter than the context */
    size_t tile_bytes, row_bytes;
    size_t k_bytes, v_bytes; /* of one sequence: keys, then values */
    uint64_t offset;         /* of sequence 0; the next one is k_bytes + v_bytes further */
    size_t r_bytes;          /* of recurrent floats */
    size_t r_offset;         /* of them in a block of all layers' */
} pn_layer_place;

typedef struct pn_totals { /* bytes */
    uint64_t cached;  /* keys and values of all sequences */
    uint64_t carried; /* a block: recurrent floats of one sequence */
    uint64_t rings;   /* rings of one sequence */
} pn_totals;

typedef struct pn_seq {
    int32_t length;
    int32_t high; /* positions ever stored since the last start from 0: a ring of c cells holds high-c .. */
    int32_t loaded; /* positions that came from a stream: rings got only what going on from there needs */
    int32_t carried; /* positions that recurrent layers have taken in */
} pn_seq;

/* A sequence at a position, as far as going on would change it: whole rings and recurrent floats. Keys and values that are only appended stay where
 * they are, so a checkpoint holds until its sequence goes back below it. */
typedef struct pn_checkpoint {
    int32_t seq; /* -1: free */
    pn_seq as;   /* at the time */
    uint64_t used; /* by the state's clock */
} pn_checkpoint;

/* What recurrent layers carry: a block of all layers' floats for each sequence, and one for each row of a batch but its last that is kept, the first for
 * position `first`. Which block is whose changes: going back to a kept row is an exchange. */
typedef struct pn_carried {
    uint8_t *memory;
    uint64_t bytes; /* of all blocks */
    size_t block_bytes;
    int32_t *block; /* [n_seq + n_kept] */
    int32_t n_kept;
    int32_t seq, first, n_rows; /* of the kept batch; n_rows 0: nothing is kept */
} pn_carried;

struct pn_state {
    uint8_t *memory;
    uint64_t bytes; /* of memory, at least 1 */
    pinch_cache_type type_k, type_v;
    int32_t n_layers, n_seq;
    pn_layer_place *layers;
    pn_seq *seqs;
    bool recurrent; /* some layer is */
    int32_t n_checkpoints;
    pn_checkpoint *checkpoints;
    uint8_t *checkpoint_memory;
    uint64_t checkpoint_bytes; /* of one */
    uint64_t clock;
    pn_carried carried;
};

static inline size_t pn_layer_bytes(const pn_layer_place *l) { return l->k_bytes + l->v_bytes; }
static inline uint8_t *pn_layer_at(const pn_state *s, const pn_layer_place *l, int32_t index) { return s->memory + l->offset + (uint64_t)index * pn_layer_bytes(l); }

/* The block of a sequence. */
static inline uint8_t *pn_carried_block(const pn_state *s, int32_t seq) { return s->carried.memory + (uint64_t)s->carried.block[seq] * s->carried.block_bytes; }

/* Places all layers, to `layers` if that is not NULL; false when they become too many bytes. */
bool pn_layers_plan(const pn_state_options *o, pn_layer_place *layers, pn_totals *t);

pinch_status pn_checkpoints_open(pn_state *s, const pn_state_options *o, pinch_error *err);
void pn_checkpoints_close(pn_state *s);
/* The position of the newest checkpoint of a sequence at or before n; 0: none. */
int32_t pn_checkpoint_before(const pn_state *s, int32_t seq, int32_t n);
void pn_checkpoint_restore(pn_state *s, int32_t seq, int32_t position);
void pn_checkpoints_drop(pn_state *s, int32_t seq, int32_t beyond); /* those of a sequence beyond a position */

pinch_status pn_carried_open(pn_state *s, const pn_state_options *o, uint64_t block_bytes, pinch_error *err);
void pn_carried_close(pn_state *s);
bool pn_kept_holds(const pn_state *s, int32_t seq, int32_t n); /* what recurrent layers carried behind position n */
void pn_kept_restore(pn_state *s, int32_t seq, int32_t n);
void pn_kept_drop(pn_state *s, int32_t seq); /* if it is that sequence's */

#endif
