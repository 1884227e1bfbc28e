/* graph/walk.h - what the steps of this room share: the run, a thread's lane, preparing input. Only for graph/. */
#ifndef PN_WALK_H
#define PN_WALK_H

#include "graph/graph.h"

enum { PN_QUERIES = 16 }; /* queries that share a pass over the keys */
#define PN_DELTA_ROWS 8   /* rows of a sequence that a head of a delta rule takes at once */
#define PN_UNIT 16        /* rows of a weight per unit of scheduling: a multiple of every kernel's tile */
#define PN_BESIDE 64      /* rows of a gate's second matrix that are computed at once, for a full batch */

/* One thread's own memory. */
typedef struct pn_lane {
    int thread, n_threads;
    float *stream;           /* [n_embd], private mode */
    float *work;             /* [widest input] */
    uint8_t *act[3];         /* one row of each format, private mode */
    float *cos_sin[4];       /* [2 * n_pairs] per rope table, private mode */
    float *scores;           /* [PN_QUERIES][cells of the longest layer] */
    const void **x;          /* [n_batch] */
    float **y[2];            /* [n_batch] */
    float *latent_q, *latent_o; /* [PN_QUERIES] queries and results of latent attention */
    float *key_rows;         /* a tile of keys as rows, key_row_floats(rank) apart */
    uint8_t *latent_act;     /* [PN_QUERIES] rows of an activation format */
    float *beside;           /* results of a gate's second matrix: rows of pn_beside_rows, one a column */
    void *scratch;           /* of kernels */
} pn_lane;

struct pn_run {
    const pn_plan *plan;
    const pn_ops *ops;
    pn_state *state;
    pn_pool *pool;           /* of the current walk */
    int32_t n_batch, n_out, n_ctx;
    int n_lanes;
    pn_lane *lanes;
    uint8_t *memory;         /* all of the pointers here and in lanes */
    uint64_t bytes;
    int64_t beside;          /* floats of a lane's `beside` */
    float *buffers[PN_MAX_BUFFERS];
    uint8_t *act[3];         /* [n_batch] rows of each format, rows act_stride apart */
    uint64_t act_stride[3];
    uint8_t *expert_act[3];  /* [n_batch * n_used] rows */
    uint64_t expert_stride[3];
    float *cos_sin[4];       /* [n_batch][2 * n_pairs] */
    float *logits;           /* [n_out][n_logits] */
    int32_t *chosen;         /* [n_batch][n_used] experts of a row, most probable first */
    int32_t *order;          /* [n_batch * n_used] row * n_used + slot, grouped by expert */
    int32_t *expert_start;   /* [n_experts + 1] */
    int32_t *active;         /* [n_experts] experts that any row chose */
    int32_t n_active;
    pn_grab *grabs;          /* [n_steps] */
    double *seconds;         /* [n_steps] */
    bool profile;
    /* the current batch */
    const pn_place *places;
    int32_t n_rows;
    int begin, end;          /* steps */
};

/* What a step reads, and what it writes so that nothing of before is left. A step that keeps a part of what it writes reads it as well. */
typedef struct pn_uses {
    pn_buffer_set reads, writes;
    int32_t keys_of; /* 1 + the layer whose keys and values it reads, where that may be another than its own; 0: none */
    uint64_t weights; /* bytes of matrices that it reads for one row */
} pn_uses;

struct pn_step_kind {
    const char *name;
    /* Does thread `lane`'s part of the step. True: a barrier must follow. */
    bool (*run)(pn_run *run, pn_lane *lane, const pn_step *step);
    pn_uses (*uses)(const pn_step *step);
};

/* What preparing an input reads: its source, and the pending update, which an earlier step has left in buffers. */
pn_buffer_set pn_prep_reads(const pn_prep *prep);
pn_buffer_set pn_update_reads(const pn_update *u);
/* Channels [first, first + n) of what an update adds to a row of `width`: where they lie, or summed in `sum` [n]. */
const float *pn_update_value(const pn_run *run, const pn_update *u, int32_t row, int64_t width, int64_t first, int64_t n, float *sum);

static inline bool pn_private(const pn_run *run) { return run->n_rows == 1; }
static inline float *pn_row(const pn_run *run, int buffer, int32_t row) { return run->buffers[buffer] + (int64_t)row * run->plan->buffers[buffer].width; }
static inline pn_grab *pn_step_grab(const pn_run *run, const pn_step *step) { return &run->grabs[step - run->plan->steps]; }
static inline float *pn_stream_row(const pn_run *run, const pn_lane *lane, int32_t row)
{
    return pn_private(run) ? lane->stream : pn_row(run, PN_STREAM, row);
}
static inline void *pn_act_row(const pn_run *run, const pn_lane *lane, pn_act act, int32_t row)
{
    return pn_private(run) ? lane->act[act] : run->act[act] + (uint64_t)row * run->act_stride[act];
}
static inline const float *pn_cos_sin(const pn_run *run, const pn_lane *lane, int rope, int32_t row)
{
    return pn_private(run) ? lane->cos_sin[rope] : run->cos_sin[rope] + (int64_t)row * 2 * run->plan->ropes[rope].n_pairs;
}

/* Queries that share a pass over one head of keys: consecutive positions of one sequence times query heads, row-major, PN_QUERIES at most. */
typedef struct pn_queries {
    pn_kv kv;
    int32_t kv_head;
    int32_t n_rows, n_heads;
    int32_t position;        /* of the first row */
    int32_t d_k, d_v;
    float softcap;           /* 0: none */
    const float *q[PN_QUERIES];
    float *o[PN_QUERIES];    /* written */
    float gate[PN_QUERIES];  /* multiplies results; 1: none */
    const float *sinks;      /* [n_heads]: a logit more for the softmax of each; NULL: none */
} pn_queries;
void pn_attend(const pn_run *run, pn_lane *lane, const pn_queries *queries);
/* Floats from one row of a tile of keys to the next: rows a power of two apart would fight for one cache set. */
static inline int64_t pn_key_row_floats(int64_t d) { return (int64_t)pn_round_up((uint64_t)d, 16) + 16; }
/* What a query at a position is multiplied by. */
float pn_query_scale(float scale, float temperature, float temperature_length, int32_t position);

/* This thread's share of n rows, contiguous. */
static inline void pn_share(const pn_lane *lane, int64_t n, int64_t *begin, int64_t *end)
{
    *begin = n * lane->thread / lane->n_threads;
    *end = n * (lane->thread + 1) / lane->n_threads;
}

/* How many rows from `row` on, at most `most`, belong to its sequence. */
static inline int32_t pn_same_sequence(const pn_run *run, int32_t row, int32_t most)
{
    int32_t n = 1;
    while (n < most && row + n < run->n_rows && run->places[row + n].seq == run->places[row].seq) n++;
    return n;
}

/* The same for a step that updates what its layer carries: one by one where that is kept after each. */
static inline int32_t pn_carried_rows(const pn_run *run, int32_t layer, int32_t row, int32_t most)
{
    const pn_place p = run->places[row];
    return pn_state_kept(run->state, layer, p.seq, p.position) ? 1 : pn_same_sequence(run, row, most);
}
/* After row `row`: floats [at, at + n) of what the layer carries are kept if they are to be. */
static inline void pn_keep_row(const pn_run *run, int32_t layer, int32_t row, int64_t at, int64_t n)
{
    const pn_place p = run->places[row];
    float *kept = pn_state_kept(run->state, layer, p.seq, p.position);
    if (kept) memcpy(kept + at, pn_state_recurrent(run->state, layer, p.seq) + at, (size_t)n * sizeof *kept);
}

/* x as a row of an activation format. */
static inline void pn_round_row(const pn_ops *ops, pn_act act, void *to, const float *x, int64_t n)
{
    if (act == PN_ACT_F32) memcpy(to, x, (size_t)n * sizeof *x);
    else if (act == PN_ACT_32) ops->quantise_32(to, x, n);
    else ops->quantise_256(to, x, n);
}

/* Prepares one row's input as `prep` says. */
void pn_prep_row(const pn_run *run, pn_lane *lane, const pn_prep *prep, int32_t row);
/* Prepares all rows: privately, or shared and with a barrier. */
void pn_prep_rows(pn_run *run, pn_lane *lane, const pn_prep *prep);
/* y = RMSNorm(x): sum of squares in 16 lanes, mean + eps, 1/sqrt, (x*scale)*w. w NULL: no weight. */
void pn_rms_norm(const pn_ops *ops, float *y, const float *x, const float *w, float eps, int64_t n);
/* Rows [row0, row1) of one matrix of w; row0 is a multiple of PN_UNIT, row1 too or the matrix's end. y[c] is where the results of column c go. */
void pn_multiply(const pn_run *run, pn_lane *lane, const pn_weight *w, int32_t expert, const void *const *x, float *const *y, int64_t n_cols, int64_t row0, int64_t row1);
/* Bias and scale on what pn_multiply wrote. */
void pn_finish(const pn_run *run, const pn_output *out, int32_t expert, float *const *y, int64_t n_cols, int64_t row0, int64_t row1);
void pn_gate_rows(const pn_ops *ops, pn_gate gate, float clamp, float *const *y, float *const *u, int64_t n_cols, int64_t n);
/* Rows of a gate's second matrix that the lane holds for n_cols columns, and where those of one column lie. */
static inline int64_t pn_beside_rows(const pn_run *run, int64_t n_cols) { return run->beside / n_cols / PN_UNIT * PN_UNIT; }
float *pn_beside(const pn_run *run, const pn_lane *lane, int64_t n_cols, int64_t column);
/* Fills the cos/sin row of a position. */
void pn_rope_row(const pn_rope *rope, int32_t n_ctx, int32_t position, float *cos_sin);

#endif
