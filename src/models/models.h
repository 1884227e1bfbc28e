/* models/models.h - architectures: one file each reads its hyper-parameters, binds its weights and emits its plan.
 *
 * Knows GGUF names, shapes and formulas; knows nothing of tokens, sessions or threads beyond what packing takes. */
#ifndef PN_MODELS_H
#define PN_MODELS_H

#include "base/arena.h"
#include "gguf/gguf.h"
#include "graph/graph.h"

typedef struct pn_weights_options {
    uint32_t features;            /* of the CPU */
    bool exact;                   /* dequantised weights against float activations */
    bool use_mapping;
    bool draft;                   /* the block that drafts tokens as well */
    const pn_kernel *forced[PN_TYPE_COUNT]; /* by type; NULL: the best */
    int32_t n_vocab;              /* entries of the token list */
    pinch_callbacks callbacks;
} pn_weights_options;

/* A matrix of the plan and where it comes from. */
typedef struct pn_source {
    pn_weight weight;             /* what steps point to */
    const pn_tensor *tensor;
    int64_t first_row;            /* of a part of the tensor's rows */
    int64_t run, stride;          /* the rows come in runs, `stride` rows from one to the next and from a matrix to the next */
    bool mapped;
    uint64_t bytes;               /* of all experts in their layout */
    uint64_t offset;              /* in the resident block */
    struct pn_source *next;
} pn_source;

/* The block behind the layers that guesses the token after the next (MTP, nextn): a plan of its own, whose keys and values lie in the trunk's state as
 * one layer more. Row p is the token at position p with the trunk's result at p - 1, normed as its head takes it (pn_run_hidden); zero at position 0. */
typedef struct pn_draft {
    pn_plan plan;                 /* n_steps 0: none was asked for */
    int32_t layer;                /* in the state; its recurrent floats, [n_embd], are for that result of a sequence's last position */
    int pair;                     /* buffer of the plan: the embedding, then the trunk's result */
    const pn_tensor *embedding;
} pn_draft;

typedef struct pn_network {
    const char *arch;
    pn_plan plan;
    pn_draft draft;
    pn_arena arena;               /* sources and small vectors */
    pn_source *first, *last;
    int n_sources;
    const pn_tensor *embedding;   /* rows are read from the file, one a token */
    float embedding_scale;        /* 1: none */
    const pn_tensor *layer_embedding; /* a second table, whose rows go to a buffer of their own; NULL: none */
    int layer_buffer;
    float layer_scale;
    const int32_t *logit_ids;     /* pruned head: row -> token id; NULL: rows are ids */
    int32_t n_embd, n_vocab, n_ctx_train;
    uint64_t resident_bytes, mapped_bytes;
    uint8_t *resident;            /* one block of pages */
    const uint8_t **maps;         /* [n_parts] */
    const pn_gguf *g;             /* not owned */
} pn_network;

/* Reads hyper-parameters, binds and checks every tensor, builds the plan, counts bytes; loads small vectors, no matrix. */
pinch_status pn_network_build(pn_network *net, const pn_gguf *g, const pn_weights_options *options, pinch_error *err);
/* Maps, reads and packs the matrices with the pool's threads. */
pinch_status pn_network_load(pn_network *net, const pn_weights_options *options, pn_pool *pool, pinch_error *err);
void pn_network_free(pn_network *net);
/* Reads and dequantises a token's embeddings, scaled, to where row `row` of the run's next batch takes them; `raw`: at least pn_network_raw_bytes. */
pinch_status pn_network_embed(const pn_network *net, pinch_token token, void *raw, pn_run *run, int32_t row, pinch_error *err);
/* The same for a row of the draft plan's run, and where its other half, the result at the position before, is to be written: [n_embd]. */
pinch_status pn_draft_embed(const pn_network *net, pinch_token token, void *raw, pn_run *run, int32_t row, pinch_error *err);
float *pn_draft_hidden(const pn_network *net, pn_run *run, int32_t row);
uint64_t pn_network_raw_bytes(const pn_network *net);
/* What a generated token takes from memory and brings back, keys and values apart. */
typedef struct pn_token_bytes {
    uint64_t weights; /* matrices in their layout, experts by the share used, and one row of each table */
    uint64_t state;   /* what recurrent layers carry, once read and once written */
} pn_token_bytes;
pn_token_bytes pn_network_token_bytes(const pn_network *net);

#endif
