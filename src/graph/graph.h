/* graph/graph.h - the plan: an array of fused steps that all threads walk together, a barrier after each.
 *
 * models/ emits a plan once at load; engine/ opens a run for it and feeds batches of rows. Knows weights, kernels, state and threads; knows no files,
 * architectures or tokens. Steps of later kinds (recurrent layers, other attention) are a row in a table of kinds and one file.
 *
 * A row is one position of one sequence. With one row in a batch ("private" mode) every thread prepares its own copy of a step's input: the residual
 * stream, norm and rounding are cheap enough to repeat and that saves a barrier a step. With more rows the threads share the rows. Same bits. */
#ifndef PN_GRAPH_H
#define PN_GRAPH_H

#include "kernels/kernels.h"
#include "sched/pool.h"
#include "state/state.h"

/* ---- weights: (type, shape, layout, home). Kernels only ever see a pointer that is ready. ------------------------------------ */

typedef struct pn_weight {
    pn_type type;
    int64_t rows, k;         /* of one matrix */
    int32_t n_experts;       /* matrices; 1 for a plain weight */
    const pn_kernel *kernel; /* its layout is that of `data`; NULL: file layout for the exact path */
    const uint8_t *data;     /* set by the loader */
    uint64_t matrix_bytes;   /* of one matrix in this layout */
    const float *scale;      /* [n_experts]: multiplies results; NULL: none */
} pn_weight;

/* Activation format that a weight wants: its type's, or float on the exact path. */
static inline pn_act pn_weight_act(const pn_weight *w) { return w->kernel ? pn_type_get((uint32_t)w->type)->act : PN_ACT_F32; }
/* What reading one matrix takes: a mapped one may lie in another's rows, and matrix_bytes is the way to the next. */
static inline uint64_t pn_weight_bytes(const pn_weight *w)
{
    const pn_type_info *type = pn_type_get((uint32_t)w->type);
    return w->kernel && w->kernel->group_bytes ? w->matrix_bytes : (uint64_t)(w->rows * (w->k / type->block * type->bytes));
}
static inline unsigned pn_act_bit(pn_act act) { return 1u << act; }

/* ---- buffers: one per name, `width` floats for each row of the batch; those that never hold something at the same time share memory - */

#define PN_NONE (-1)
#define PN_STREAM 0 /* buffer 0 is the residual stream */
#define PN_MAX_BUFFERS 24

/* A set of buffers, a bit each. */
typedef uint32_t pn_buffer_set;
static inline pn_buffer_set pn_buffer_bit(int buffer) { return buffer == PN_NONE ? 0 : UINT32_C(1) << buffer; }

typedef enum pn_gate { PN_GATE_NONE, PN_GATE_SILU, PN_GATE_GELU, PN_GATE_RELU2, PN_GATE_CLAMPED } pn_gate;

/* ---- what a step does to its input before it uses it ----------------------------------------------------------------------------- */

/* stream += scale * norm(value), where value is a buffer's row, or the weighted sum of a row's experts; plus another row. */
typedef struct pn_update {
    int from;                /* buffer; PN_NONE: no update */
    int32_t n_used;          /* experts in `from`, each width floats; 0: a plain row */
    int weights;             /* buffer of their weights, where n_used is not 0 */
    int shared;              /* buffer added to that: a shared expert's, or a second mixer's; PN_NONE */
    int shared_gate;         /* buffer whose first float's sigmoid multiplies the shared row; PN_NONE */
    const float *post_norm;  /* [width]; NULL: none */
    float scale;             /* 1: none */
    const float *stream_scale; /* [1]: multiplies the stream afterwards; NULL: none */
} pn_update;

typedef struct pn_prep {
    int source;              /* buffer; PN_NONE: use what the step before prepared */
    int64_t width;           /* floats */
    int32_t n_used;          /* `source` holds the results of that many experts: their weighted sum is the input; 0: a plain row */
    int weights;             /* as in pn_update */
    pn_update update;        /* only for the stream */
    const float *norm;       /* [width] RMSNorm weight; NULL: none */
    int32_t groups;          /* equal parts of the row that are normed each by itself; 0: the whole row */
    float eps;
    pn_gate gate;            /* the input goes through it and is multiplied by columns [beside_column, beside_column + width) of buffer `beside` */
    int beside;
    int64_t beside_column;
    unsigned formats;        /* pn_act_bit of each format wanted */
    bool in_attention;       /* with many rows, attention has prepared it already */
} pn_prep;

/* ---- steps ------------------------------------------------------------------------------------------------------------------------ */

typedef struct pn_output {
    const pn_weight *w;
    const float *bias;       /* [n_experts][rows]; added before the weight's scale if bias_first, after it otherwise */
    bool bias_first;
    int buffer;              /* PN_NONE: only the step itself sees the results, a few at a time (the second matrix of a gate) */
    int64_t column;          /* first float of the result in the buffer's row */
} pn_output;

/* Up to six matrices on one input. gate: out[0] = act(out[0]) * out[1] (or act(out[0]) alone if n == 1); out[1] has no buffer. */
typedef struct pn_matmul {
    pn_prep prep;
    int n;
    pn_output out[6];
    pn_gate gate;
    float clamp;             /* of a gate: act(out[0]) from above, out[1] on both sides; 0: none */
    float scale;             /* of the results, after everything; 1: none */
    float softcap;           /* 0: none */
} pn_matmul;

/* Per-head norms, rotation, query scale; then keys and values go to the cache. In place in `buffer` ([q | k | v]). */
typedef struct pn_rope_kv {
    int buffer;
    int32_t layer;           /* of the state */
    int32_t n_head, n_head_kv, d_k, d_v; /* n_head_kv 0: queries alone */
    const float *q_norm, *k_norm; /* [d_k], or the whole vector if norm_whole; NULL: none */
    bool norm_whole;
    float eps;
    int rope;                /* table of the plan; PN_NONE: not rotated */
    float q_scale;
    float temperature;       /* 0: none; else q *= 1 + t * ln(floor(position / temperature_length) + 1) */
    float temperature_length;
    bool v_normed, v_of_k;   /* values are normed by head without weights; they are what keys are before their norm */
} pn_rope_kv;

typedef struct pn_attention {
    int buffer, out;         /* out: [n_head * d_v] a row */
    int32_t layer, n_head, n_head_kv, d_k, d_v;
    float softcap;           /* 0: none */
    int64_t gate_column;     /* of `buffer`: what heads are multiplied by the sigmoid of, [n_head] or [n_head][d_v]; PN_NONE */
    bool gated_channels;     /* the latter */
    const float *sinks;      /* [n_head] logits of no position, which take their share of the softmax and give no value; NULL: none */
    pn_prep emit;            /* what the next step wants of `out` */
} pn_attention;

/* What weights are made of: softmax or sigmoid of all logits, softmax of the chosen ones alone, sqrt(ln(1 + e^x)). Numbers are the files'. */
typedef enum pn_gating { PN_GATING_SOFTMAX = 1, PN_GATING_SIGMOID, PN_GATING_CHOSEN_SOFTMAX, PN_GATING_SQRT_SOFTPLUS } pn_gating;

typedef struct pn_routing {
    pn_gating gating;
    int32_t n_groups, n_groups_used; /* equal runs of experts, of which those with the largest sums of their two best stay; n_groups <= 1: none */
    bool normalised;         /* weights are divided by their sum */
    float scale;             /* of the weights; 1: none */
} pn_routing;

/* Chooses the n_used experts with the largest scores (ties: lower index), the best first. Weights do not know the bias. */
typedef struct pn_route {
    int buffer;              /* logits [n_experts] */
    int weights;             /* buffer: of the chosen experts, in their order */
    int32_t n_experts, n_used;
    const float *bias;       /* [n_experts] added to scores; NULL: none */
    pn_routing how;
} pn_route;

typedef struct pn_experts_up {
    pn_prep prep;            /* only where experts have an input of their own; else what the router got serves */
    pn_output gate, up;      /* act(gate) * up, and up has no buffer; gate.w NULL: act(up) */
    pn_gate act;
    int32_t n_used;
    float clamp;             /* as in pn_matmul */
} pn_experts_up;

typedef struct pn_experts_down {
    int source;              /* [n_used * k] a row */
    pn_output out;
    int32_t n_used;
} pn_experts_down;

/* Causal convolution of adjacent channels, each by itself (ops.def: conv): columns [column, column + channels) of `buffer`, gates beside them, the result
 * to columns [out, out + channels) of the same buffer, which may be those of the input or of a gate. What the last rows brought in stays in the layer's
 * recurrent floats: [n_taps - 1][channels] at `state`. */
typedef struct pn_conv {
    int buffer;
    int32_t layer;
    int64_t state;
    int64_t column, out, channels;
    int64_t in_gate, out_gate; /* first columns; PN_NONE */
    const float *taps, *bias;  /* [n_taps][channels], oldest first; [channels] or NULL */
    int n_taps;                /* 2 .. PN_MAX_TAPS */
    bool silu;
} pn_conv;

/* Mamba-2's selective scan (ops.def: ssm) on a row [z | x b c after their convolution | dt]: head h has x of `head` channels, b and c of its group, and its own
 * dt; the result, times silu(z), takes the place of z. The state of a head is pn_ssm_floats(head, d_state) of the layer's recurrent floats from `state` on. */
typedef struct pn_ssm {
    int buffer;
    int32_t layer;
    int64_t state;
    int32_t n_head, head, n_groups, d_state;
    const float *dt_bias, *a, *skip; /* [n_head]; a is negative: the state decays by exp(a * softplus(dt + dt_bias)) */
} pn_ssm;

/* Multi-head latent attention: a position's cache row, shared by all heads, is [latent of `rank` channels | rotated key of n_rot]; values are the latents
 * themselves. A head's query goes through its matrix into the latent space, its result back through another. */
typedef struct pn_latent {   /* norm of the latent, rotation of the key, into the cache; in place in `buffer` */
    int buffer;              /* [rank + n_rot] */
    int32_t layer, rank, n_rot;
    const float *norm;       /* [rank] */
    float eps;
    int rope;                /* table of the plan; PN_NONE: not rotated */
} pn_latent;

typedef struct pn_mla {
    int query, out;          /* [n_head][n_plain + n_rot], of which the last n_rot channels are rotated; [n_head][d_v] */
    int gate;                /* [n_head] logits, whose sigmoid multiplies a head's result; PN_NONE */
    int32_t layer, n_head, n_plain, n_rot, rank, d_v;
    const pn_weight *k_b;    /* n_head matrices from n_plain to rank, or, in file layout, from rank to n_plain: see k_b_turned */
    bool k_b_turned;
    const pn_weight *v_b;    /* n_head matrices from rank to d_v */
    int rope;
    float q_scale, temperature, temperature_length; /* as in pn_rope_kv */
} pn_mla;

/* What a delta rule's decay is made of: exp(a * softplus(x + dt)), or exp(bound * sigmoid(a * (x + dt))). */
typedef enum pn_decay { PN_DECAY_SOFTPLUS, PN_DECAY_BOUNDED } pn_decay;

/* Gated delta rule (ops.def: delta_rule), heads by themselves; then each head's norm and output gate, to `out` [n_v][d_v]. Columns of `buffer`: queries and
 * keys [n_k][d_k], scaled to length 1; values and gates [n_v][d_v]; beta [n_v] before its sigmoid; decay [n_v], or [n_v][d_k] if each key channel has its own.
 * The layer's recurrent floats at `state`: for each of n_v heads d_k times d_v, the latter rounded up to 16. */
typedef struct pn_delta {
    int buffer, out;
    int32_t layer;
    int64_t state;
    int32_t n_k, n_v, d_k, d_v;
    int64_t query, key, value, gate, beta, decay; /* columns */
    bool tiled;              /* value head h goes with key head h mod n_k; otherwise with h / (n_v / n_k) */
    bool decay_channels;
    pn_decay decay_of;
    const float *a, *dt;     /* [n_v], as many as decay */
    float bound;
    const float *norm;       /* [d_v] */
    float eps;               /* of the norm and of the lengths */
    bool sigmoid_gate;       /* otherwise SiLU */
} pn_delta;

/* Hyper-connections: PN_STREAMS residual streams of `width` channels in a buffer. Before a block they are gathered into the stream (buffer 0), with weights
 * made of `logits` (a matrix's product with them, normalised); after it the block's result is spread over them. */
#define PN_STREAMS 4
#define PN_STREAM_LOGITS (2 * PN_STREAMS + PN_STREAMS * PN_STREAMS) /* what goes into the block, what comes out, [to][from] of the mixing */

typedef struct pn_gather {
    int streams, weights;    /* weights: [PN_STREAM_LOGITS - PN_STREAMS] for the spread that follows; PN_NONE with logits PN_NONE */
    int logits;              /* [PN_STREAM_LOGITS]; PN_NONE: the mean of the streams, after the last block */
    int64_t width;
    const float *scale;      /* [3], of the three parts */
    const float *base;       /* [PN_STREAM_LOGITS] */
    int32_t iterations;      /* of Sinkhorn */
    float eps;               /* added to its sums */
} pn_gather;

typedef struct pn_spread {
    int streams, weights;
    int64_t width;
    pn_update update;        /* the block's result, without post_norm and scale; from PN_NONE: all streams become the stream */
} pn_spread;

/* y = (norm(y) + norm(x)) * scale for `parts` equal parts of a row, each normed by itself. */
typedef struct pn_blend {
    int y, x;                /* buffers */
    int64_t width;           /* of a part */
    int32_t parts;
    int32_t n_used;          /* x holds the results of that many experts, which are summed first; 0: a plain row */
    int weights;             /* as in pn_update */
    const float *y_norm, *x_norm; /* [width]; NULL: none */
    float eps, scale;
} pn_blend;

typedef struct pn_step pn_step;
typedef struct pn_step_kind pn_step_kind;
extern const pn_step_kind pn_step_begin, pn_step_matmul, pn_step_rope_kv, pn_step_attention, pn_step_route, pn_step_experts_up, pn_step_experts_round,
    pn_step_experts_down, pn_step_settle, pn_step_conv, pn_step_ssm, pn_step_latent, pn_step_mla, pn_step_delta, pn_step_gather, pn_step_spread, pn_step_blend;

struct pn_step {
    const pn_step_kind *kind;
    int32_t layer;           /* for reports; -1: none */
    pn_buffer_set alive;     /* set by pn_plan_lay_out: what later steps still read, which is what a cut after this step must carry */
    union {
        pn_matmul matmul;
        pn_rope_kv rope_kv;
        pn_attention attention;
        pn_route route;
        pn_experts_up up;
        pn_experts_down down;
        pn_conv conv;
        pn_ssm ssm;
        pn_latent latent;
        pn_mla mla;
        pn_delta delta;
        pn_gather gather;
        pn_spread spread;
        pn_blend blend;
        pn_prep settle;      /* applies the pending update, so that only the stream is alive afterwards */
    } u;
};

/* ---- rotary tables ------------------------------------------------------------------------------------------------------------------ */

/* theta_0 = position, theta_{k+1} = theta_k * step; t = theta / factor; angle = freq_scale*t*(1 - mix) + t*mix; cos and sin times magnitude.
 * The arrays are [n_pairs] and not owned. */
typedef struct pn_rope {
    bool neox;
    int32_t n_pairs;
    float step, freq_scale, magnitude;
    const float *factor;      /* NULL: all 1 */
    const float *factor_long; /* the same in contexts longer than long_beyond */
    int32_t long_beyond;
    const float *mix;         /* NULL: all 0 */
} pn_rope;

/* ---- the plan: immutable once built --------------------------------------------------------------------------------------------------- */

typedef struct pn_buffer {
    const char *name;        /* a constant */
    int64_t width;
    int64_t offset;          /* set by pn_plan_lay_out: floats of other buffers before this one, for each row of the batch */
} pn_buffer;

typedef struct pn_plan {
    pn_buffer buffers[PN_MAX_BUFFERS];
    int n_buffers;
    int64_t row_floats;      /* of all buffers but the logits, where they share memory */
    pn_rope ropes[4];
    int n_ropes;
    pn_step *steps;          /* owned */
    int n_steps, capacity;
    int head;                /* first step of the head: the steps before it are the trunk */
    int logits;              /* buffer of the head's results */
    int64_t n_embd, n_logits;
    pn_layer_shape *shapes;  /* [n_layers], owned */
    int32_t n_layers;
} pn_plan;

void pn_plan_free(pn_plan *plan); /* what it owns */
/* The buffer of that name, at least as wide as asked. PN_NONE: too many, which only a new architecture can cause. */
int pn_plan_buffer(pn_plan *plan, const char *name, int64_t width);
/* A zeroed step at the end; NULL: no memory. */
pn_step *pn_plan_step(pn_plan *plan, const pn_step_kind *kind, int32_t layer);
/* Once all steps stand: which buffers are alive after each, and places such that those of one step do not meet. */
void pn_plan_lay_out(pn_plan *plan);
/* Bytes of matrices that one row's way through trunk and head reads: of a mixture's experts as many as a row chooses. */
uint64_t pn_plan_weight_bytes(const pn_plan *plan);
const char *pn_step_name(const pn_step *step);
/* The first step behind a layer, where the trunk can be cut: the steps before it leave what their last one calls alive. */
int pn_plan_cut(const pn_plan *plan, int32_t layer);
/* Whether steps from `cut` on read keys and values that steps before it store: those of a layer whose cache later ones share. */
bool pn_plan_shares_keys(const pn_plan *plan, int cut, int32_t layer);

/* ---- a run: everything that walking a plan needs, allocated once ------------------------------------------------------------------------ */

typedef struct pn_place { /* of a row */
    int32_t seq, position;
} pn_place;

typedef struct pn_run pn_run;

typedef struct pn_run_options {
    const pn_plan *plan;
    const pn_ops *ops;
    pn_state *state;         /* not owned */
    int32_t n_batch;         /* rows at most */
    int32_t n_out;           /* rows that the head serves at once */
    int32_t n_ctx;
    int n_threads;           /* most that walk */
} pn_run_options;

/* Bytes that pn_run_open takes (state and pool apart). */
bool pn_run_bytes(const pn_run_options *options, uint64_t *bytes);
pinch_status pn_run_open(pn_run **out, const pn_run_options *options, pinch_error *err);
void pn_run_close(pn_run *run); /* NULL is fine */

/* Row r of the residual stream, [n_embd], to be filled before a walk. */
float *pn_run_stream(pn_run *run, int32_t row);
/* Row r of another buffer: one that is to be filled before a walk, or that is alive where a plan was cut. */
float *pn_run_row(pn_run *run, int buffer, int32_t row);
/* Rows of logits after the head, [n_logits] each. */
float *pn_run_logits(pn_run *run, int32_t row);
/* Trunk: keys and values of these rows are stored, the stream holds the last layer's result. */
void pn_run_trunk(pn_run *run, pn_pool *pool, int n_threads, const pn_place *places, int32_t n_rows);
/* A part of the trunk, steps [begin, end): what is alive before `begin` has to lie in the rows of its buffers, what is alive after it will. */
void pn_run_part(pn_run *run, pn_pool *pool, int n_threads, const pn_place *places, int32_t n_rows, int begin, int end);
/* Head for the rows rows[0..n) of the last trunk, ascending, n <= n_out; the stream's rows are moved, so the head may be asked again only for later rows. */
void pn_run_head(pn_run *run, pn_pool *pool, int n_threads, const int32_t *rows, int32_t n);

/* What the head makes of row r of the last trunk before its matrix: the normed stream, [n_embd]. Before pn_run_head moves the rows. */
void pn_run_hidden(pn_run *run, int32_t row, float *out);

/* Time spent per kind of step, when asked for. */
typedef struct pn_profile_row { const char *name; double seconds; uint64_t count; } pn_profile_row;
void pn_run_profile(pn_run *run, bool on);
size_t pn_run_profile_rows(const pn_run *run, pn_profile_row *rows, size_t capacity);

#endif
