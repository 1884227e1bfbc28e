/* models/build.h - what architecture files are written with. Only for models/.
 *
 * The first error sticks: every function here does nothing once `status` is set, so that an architecture reads as a list. */
#ifndef PN_BUILD_H
#define PN_BUILD_H

#include "models/models.h"

enum { PN_MAX_LAYERS = 512, PN_MAX_EXPERTS = 512, PN_MAX_FF = 1 << 20, PN_MAX_HEAD = 4096 };
#define PN_WIDTH_OF_TENSOR (-1)

typedef enum pn_qk_norm { PN_QK_NONE, PN_QK_HEAD, PN_QK_WHOLE } pn_qk_norm;

typedef struct pn_builder pn_builder;

/* One layer of a decoder: a mixer of positions, then a feed-forward block. Each emits its steps and leaves its result pending. */
typedef struct pn_layer {
    void (*mixer)(pn_builder *b, int32_t layer);        /* pn_emit_attention unless the architecture says otherwise; NULL: none */
    void (*feed_forward)(pn_builder *b, int32_t layer); /* pn_emit_feed_forward unless the architecture says otherwise; NULL: none */
    int32_t n_head, n_head_kv, d_k, d_v, n_ff;
    int32_t window;           /* 0: all positions */
    int rope;                 /* table of the plan; PN_NONE: no positions */
    int32_t kv_layer;         /* whose keys and values it reads: its own, or those of an earlier layer like it */
    bool v_normed;            /* values are normed by head, without weights; where attn_v.weight is missing they are what keys are before their norm */
    bool gated_heads;         /* attn_gate.weight: each head's result times the sigmoid of a row of it */
    float clamp, clamp_experts; /* of the gated activation: dense and shared experts, chosen ones; 0: none */
    bool gated_channels;      /* attn_q.weight holds for each head its query's rows, then as many whose sigmoid multiplies the head's result */
} pn_layer;

/* Mamba-2 mixers: inner channels in heads, whose groups share what goes into and comes out of the state. */
typedef struct pn_mamba {
    int32_t n_taps, inner, d_state, n_head, n_groups;
    bool normed;              /* ssm_norm must be there */
} pn_mamba;

/* Latent attention: sizes that its layers share; d_k and d_v of a layer are those of the heads outside of the latent space. */
typedef struct pn_mla_dims {
    int32_t rank, n_rot;      /* channels of the latent and of the rotated key */
} pn_mla_dims;

/* Delta-rule layers: heads of keys, of values, channels of each. */
typedef struct pn_delta_dims {
    int32_t n_taps, n_k, n_v, d;
    bool tiled;               /* value head h goes with key head h mod n_k */
    float bound;              /* KDA: of the logarithm of the decay, below 0; 0: decay by softplus */
} pn_delta_dims;

/* The block behind the layers that drafts tokens (MTP): none that is known; one whose tables and norms at both ends may be its own; one with a norm of its own
 * between the trunk's tables. */
typedef enum pn_drafting { PN_DRAFTS_NOT, PN_DRAFTS_OWN_ENDS, PN_DRAFTS_TRUNK_ENDS } pn_drafting;

/* A decoder of pre- or post-normed attention and feed-forward blocks: variation is data. */
typedef struct pn_decoder {
    pn_layer *layers;         /* [n_described] */
    int32_t n_layers, n_embd, n_ctx_train;
    int32_t n_blocks;         /* of the file: the layers, then blocks that draft tokens */
    int32_t n_described;      /* entries of `layers`: the layers, then the block that drafts tokens if it is wanted and there */
    pn_drafting drafting;
    float eps;
    /* attention */
    pn_qk_norm qk_norm;
    float q_scale;            /* multiplies queries after rotation */
    float temperature, temperature_length;
    float attn_softcap;
    bool sinks;               /* attn_sinks.weight */
    pn_mla_dims mla;          /* of pn_emit_mla */
    bool ignore_ffn_scales;   /* the reference loads `ffn_*.scale` of this architecture and does not use them */
    /* blocks */
    const char *attn_norm, *ffn_norm;           /* tensor names; NULL: none */
    const char *post_attn_norm, *post_ffn_norm; /* NULL: none */
    int32_t n_layer_input;    /* floats that each layer gets of the token beside the stream; 0: none */
    const char *heads_norm, *hidden_norm;       /* of what attn_output and ffn_down get; NULL: none */
    float residual_scale;
    /* feed-forward */
    pn_gate gate;
    bool gate_in_up;          /* ffn_up holds gate rows, then up rows */
    bool ungated;             /* down(act(up x)), shared experts too */
    int32_t n_experts, n_used, n_ff_expert;
    int32_t n_ff_shared;      /* of the shared expert; 0: none; PN_WIDTH_OF_TENSOR */
    bool gated_shared;        /* the shared expert is multiplied by the sigmoid of ffn_gate_inp_shexp . x */
    int32_t n_dense;          /* leading layers without experts */
    pn_routing routing;
    int32_t n_taps;           /* of short convolutions */
    pn_mamba mamba;
    pn_delta_dims delta;
    int32_t sinkhorn_iterations; /* hyper-connections */
    float sinkhorn_eps;
    const float *ones;        /* [PN_STREAMS * n_embd]: a norm without weights */
    /* ends */
    void (*end)(pn_builder *b); /* leaves the trunk's result in the stream; NULL: the pending update does */
    const char *output_norm;  /* tensor name */
    float embedding_scale;
    bool tied_always;
    float logit_scale, final_softcap;
} pn_decoder;

struct pn_builder {
    const pn_gguf *g;
    const pn_weights_options *options;
    pn_network *net;
    pn_plan *plan;            /* of `net`: gets the steps */
    const char *arch;
    pn_decoder d;
    pn_update pending;        /* what the next prep adds to the stream */
    pinch_status status;
    pinch_error *err;
};

typedef struct pn_arch {
    const char *name;
    void (*describe)(pn_builder *b); /* fills b->d from the metadata */
} pn_arch;

/* ---- metadata: `name` gets the architecture's prefix ------------------------------------------------------------------------------ */

#define PN_REQUIRED INT64_MIN /* as a fallback: the key must be there */
void pn_build_fail(pn_builder *b, pinch_status status, const char *format, ...) PN_PRINTF(3, 4);
int64_t pn_meta_int(pn_builder *b, const char *name, int64_t fallback);
/* Between narrower bounds, which other keys set. */
int64_t pn_meta_int_within(pn_builder *b, const char *name, int64_t fallback, int64_t least, int64_t most);
/* Item `layer` of an array whose length must be the layer count, or a scalar for all. */
int64_t pn_meta_layer_int(pn_builder *b, const char *name, int32_t layer, int64_t fallback);
/* Item i of an array of n. */
int64_t pn_meta_item_int(pn_builder *b, const char *name, int32_t i, int32_t n);
bool pn_meta_has(pn_builder *b, const char *name);
bool pn_meta_is_array(pn_builder *b, const char *name);
/* Item `layer` of an array whose length must be the layer count, or a scalar for all; 0 where the key is absent. */
float pn_meta_layer_float(pn_builder *b, const char *name, int32_t layer);
float pn_meta_float(pn_builder *b, const char *name, double fallback);
float pn_meta_float_required(pn_builder *b, const char *name);
bool pn_meta_bool(pn_builder *b, const char *name, bool fallback);

/* Common keys: layers, widths, heads, eps, experts; every layer rotates with table 0 later. */
void pn_describe_decoder(pn_builder *b);
/* Latent attention in every layer, as its keys say: `attention.kv_lora_rank`, `.key_length_mla` and `.value_length_mla` (or `.key_length` and `.value_length`
 * of older files), `rope.dimension_count`. Layers whose mixer is another may overwrite theirs. */
void pn_describe_mla(pn_builder *b);
/* A sentence where a file of a mixture has no experts. */
void pn_need_experts(pn_builder *b);
/* Experts of the families that say how they choose: `expert_gating_func` (absent or 0: `fallback`; 0: required), `expert_weights_norm` and `_scale`, leading dense layers,
 * `expert_feed_forward_length`, shared experts as wide as their tensor. */
void pn_describe_routing(pn_builder *b, pn_gating fallback);
/* Shapes of Mamba-2 mixers from ssm.*. */
void pn_describe_mamba(pn_builder *b);
/* Layers il with (il mod period) < period - 1 slide, all if period is 0; `attention.sliding_window_pattern` is another period, or an array of who slides. */
void pn_describe_windows(pn_builder *b, int32_t window, int32_t period);
/* A rotary table from rope.* keys: its index. */
typedef struct pn_rope_want {
    bool neox;
    bool scaled;              /* rope.scaling.type and .factor stretch it */
    bool plain;               /* rope.scaling.attn_factor does not apply either */
    bool factors;             /* tensors rope_freqs, or rope_factors_* with longrope, apply */
    bool factors_always;      /* rope_factors_* whatever the scaling type (phi3) */
    bool yarn_betas;          /* rope.scaling.yarn_beta_fast and _slow count */
    double yarn_log_multiplier; /* the magnitude 1 + 0.1*ln f is divided by 1 + 0.1*this*ln f; 0: not */
    bool yarn_own_multiplier; /* and is 1 + 0.1*yarn_log_multiplier*ln f itself, so that both cancel */
    double base;              /* 0: rope.freq_base */
    int32_t d_k, n_rot;       /* of a head; 0: of layer 0, rope.dimension_count */
} pn_rope_want;
int pn_describe_rope(pn_builder *b, pn_rope_want want);

/* ---- tensors ------------------------------------------------------------------------------------------------------------------------ */

/* `layer` < 0: no "blk.N." prefix. NULL if absent and optional, or after an error. A weight takes the `.scale` tensor beside it. */
const pn_weight *pn_bind(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t rows, bool required);
/* Rows [first, first + rows) of a matrix of `total` rows. */
const pn_weight *pn_bind_part(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t total, int64_t first, int64_t rows);
/* Runs of rows, `stride` rows apart, one after the other as one matrix. */
typedef struct pn_rows {
    int64_t first, run, stride;
    int32_t n_runs;
} pn_rows;
const pn_weight *pn_bind_runs(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t total, pn_rows rows);
const pn_weight *pn_bind_experts(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t rows, int32_t n, bool required);
/* Rows [first, first + rows) of each of n matrices of `total` rows. */
typedef struct pn_matrices {
    int64_t k, total, first, rows;
    int32_t n;
    bool joined;              /* the tensor has two dimensions: the matrices follow one another in its rows */
    bool one;                 /* they become one matrix of n * rows rows */
    bool plain;               /* in file layout, for a step that reads rows itself */
    bool optional;
} pn_matrices;
const pn_weight *pn_bind_matrices(pn_builder *b, int32_t layer, const char *name, pn_matrices m);
const float *pn_bind_vector(pn_builder *b, int32_t layer, const char *name, int64_t n, bool required);
/* A small matrix as floats, [rows][k]. */
const float *pn_bind_table(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t rows, bool required);
/* Taps of convolutions of adjacent channels, a tensor of channels[i] x n_taps each: [n_taps][all channels], oldest first. */
const float *pn_bind_taps(pn_builder *b, int32_t layer, const char *const *names, const int64_t *channels, int n, int32_t n_taps);
bool pn_has_tensor(pn_builder *b, int32_t layer, const char *name);
/* A table whose rows are read from the file, one a token. NULL after an error. */
const pn_tensor *pn_bind_rows(pn_builder *b, int32_t layer, const char *name, int64_t width, int64_t rows);
/* Rows of a matrix whose width only the file knows, at most `most`; 0 if it is absent (an error). */
int64_t pn_tensor_rows(pn_builder *b, int32_t layer, const char *name, int64_t most);

/* ---- plan --------------------------------------------------------------------------------------------------------------------------- */

int pn_emit_buffer(pn_builder *b, const char *name, int64_t width);
pn_step *pn_emit(pn_builder *b, const pn_step_kind *kind, int32_t layer); /* NULL after an error */
/* Input from the stream, with the pending update applied first. */
pn_prep pn_emit_prep(pn_builder *b, const float *norm, unsigned formats);

/* Formats that the weights want of a common input; NULLs among them are skipped. */
unsigned pn_formats_of(const pn_weight *const *w, int n);
/* A step of up to six matrices on one input, and each of them (none if s or w is NULL). */
pn_step *pn_emit_matmul(pn_builder *b, int32_t layer, pn_prep prep);
void pn_emit_output(pn_step *s, const pn_weight *w, const float *bias, bool bias_first, int buffer, int64_t column);
/* A matrix whose result the stream takes up at the next prep. */
void pn_emit_to_stream(pn_builder *b, int32_t layer, const pn_weight *w, const float *bias, bool bias_first, pn_prep prep, const char *post_norm);

void pn_emit_begin(pn_builder *b);
void pn_emit_attention(pn_builder *b, int32_t layer);
/* Its parts, for layers that do something else beside it: norm and projections, with the input prepared in the formats `also` for the next step; and all that
 * follows, with the result in buffer `value`. */
void pn_emit_attention_in(pn_builder *b, int32_t layer, unsigned also);
void pn_emit_attention_out(pn_builder *b, int32_t layer, int value);
void pn_emit_short_conv(pn_builder *b, int32_t layer);
void pn_emit_mamba(pn_builder *b, int32_t layer);
/* Its parts, for layers that do something else beside it: the first matrix, and all that follows, with the result in `value`. */
const pn_weight *pn_bind_mamba_in(pn_builder *b, int32_t layer);
void pn_emit_mamba_in(pn_builder *b, int32_t layer, const pn_weight *in, pn_prep prep);
void pn_emit_mamba_out(pn_builder *b, int32_t layer, int value);
void pn_emit_mla(pn_builder *b, int32_t layer);
void pn_emit_gated_delta(pn_builder *b, int32_t layer); /* DeltaNet of Qwen */
void pn_emit_kda(pn_builder *b, int32_t layer);         /* Kimi delta attention */
void pn_emit_feed_forward(pn_builder *b, int32_t layer);
/* Experts whose router and whose own input take the stream through norms of their own: n_used results in the buffer that is returned. */
int pn_emit_experts_beside(pn_builder *b, int32_t layer, const pn_weight *router, const float *router_norm, const float *norm);
/* What is pending, then the head: norm, and the matrix whose rows are the logits. */
void pn_emit_head(pn_builder *b, const float *norm, const pn_weight *w, const float *bias);
/* Mixer and feed-forward of a layer. */
void pn_emit_layer(pn_builder *b, int32_t layer);
/* All of it, layer by layer; then the block that drafts tokens, if it is wanted. */
void pn_emit_decoder(pn_builder *b);
void pn_emit_draft(pn_builder *b);

#endif
