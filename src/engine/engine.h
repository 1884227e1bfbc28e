/* engine/engine.h - the structs behind include/pinch.h, and what tools of this repository may look at.
 *
 * Owns models (immutable once open, but for the count of what their sessions take) and sessions (one thread at a time), the memory plan,
 * prefix reuse. Knows no terminal, network or file format. */
#ifndef PN_ENGINE_H
#define PN_ENGINE_H

#include "graph/graph.h"
#include "models/models.h"
#include "sample/sample.h"
#include "token/token.h"

#include <stdatomic.h>

struct pinch_model {
    pn_gguf *gguf;
    pn_vocab *vocab;          /* NULL: the tokenizer is of a kind that nothing here runs; vocab_error says which */
    pinch_error vocab_error;
    bool has_network;         /* planned; loaded unless plan_only */
    bool loaded;
    pn_network network;
    pn_weights_options weights;
    pinch_callbacks callbacks;
    const pn_ops *ops;
    uint64_t memory_limit;    /* 0: what the system has */
    atomic_size_t in_sessions; /* bytes that its open sessions planned for */
    uint64_t other_bytes;     /* vocabulary, metadata, small vectors, the program */
    size_t longest_piece;     /* bytes that a token may show: its text, and a little for one that no map covers */
    char arch[64];
};

typedef struct pn_text { /* of a sequence */
    pinch_token *tokens;      /* [n_ctx], of positions 0 .. length-1 */
    int32_t mark;             /* length before the call under way */
    bool block_rests;         /* the block that drafts was given up, and follows no more until the text begins anew */
} pn_text;

typedef struct pn_pace { /* how long tokens take with and without drafts */
    double plain;             /* seconds without, mean of the last few */
    double drafted;           /* seconds with, of the last whole window of rounds; 0: none yet */
    int32_t n_plain, since;   /* tokens measured; rounds with drafts since the last of them */
    double seconds;           /* of the window under way */
    int32_t rounds, tokens;
    int32_t slow;             /* windows in a row that were slower */
} pn_pace;

/* Writes at most `most` tokens behind the `length` tokens of a sequence's text, which the last of them was chosen for but not computed; returns how many. */
typedef int32_t (*pn_propose_fn)(pinch_session *s, int32_t seq, int32_t length, int32_t most);

typedef struct pn_drafts { /* of a session, see draft.c */
    pn_propose_fn propose;    /* NULL: no drafts */
    int32_t most;             /* tokens of one */
    bool unmeasured;          /* for tests: always as many as can be */
    double following;         /* seconds that it took to follow the last batch */
    bool told;                /* that they were given up */
    pn_pace pace;
    pinch_draft_stats stats;  /* of the generation under way */
    double seconds;           /* that the round under way took so far */
    int32_t taken;            /* tokens that it gave; 0: no round is under way */
    int32_t drafted, next;    /* tokens of its draft; of the next one at most */
    int32_t pause, left;      /* tokens without drafts once they are given up; of a pause under way */
    int32_t seq, row, ahead;  /* rows row+1 .. row+ahead of the last batch are computed, but no part of the sequence's text yet */
} pn_drafts;

struct pinch_session {
    pinch_model *model;       /* only its in_sessions changes */
    size_t planned_bytes;     /* its own part of them */
    pinch_callbacks callbacks;
    pn_pool *pool;
    pn_state *state;
    pn_run *run;
    pn_run *block;            /* of the block that drafts; NULL: it does not */
    int n_threads, n_threads_batch;
    int32_t n_ctx, n_batch, n_seq, n_out;
    pn_text *texts;           /* [n_seq] */
    pn_place *places;         /* [n_batch] */
    pinch_row *rows;          /* [n_batch]: of tokens, while they are computed */
    int32_t *out_rows;        /* [n_batch]: rows of the batch whose logits are wanted */
    uint8_t *raw;             /* one embedding row as the file holds it */
    float *full_logits;       /* [n_vocab] for a pruned head; NULL: the run's rows are whole */
    float *logits;            /* of the last row that wanted them; NULL: none since the last call that computed */
    int32_t logits_seq, logits_length; /* the row's sequence, and how many tokens that held with it */
    pn_drafts drafts;
    char *text;               /* generate: text held back */
    size_t text_capacity;
};

/* Stops may be this long; generate holds back that much text. */
#define PN_MAX_STOP 1024
#define PN_PIECE_SLACK 64

/* Kernel that serves a tensor type in this model, for reports; NULL: none. */
const pn_kernel *pn_model_kernel(const pinch_model *model, pn_type type);
pinch_status pn_model_needs_vocab(const pinch_model *model, pinch_error *err);
/* That a session has a sequence of this number. */
pinch_status pn_session_check(const pinch_session *s, int32_t seq, pinch_error *err);

/* ---- eval.c: one sequence's rows ahead of its text ---- */

/* Computes the n tokens that stand behind sequence `seq`'s text as one batch. The first is text now and its logits are at hand; the others are ahead.
 * A failure leaves the sequence as it was. */
pinch_status pn_session_run_ahead(pinch_session *s, int32_t seq, int32_t n, pinch_error *err);
/* The next row that is ahead becomes text, its logits those at hand. The caller may stop instead. */
pinch_status pn_session_take_ahead(pinch_session *s, pinch_error *err);
/* A pruned head's row spread over the vocabulary, until the next one; other rows as they are. */
float *pn_session_whole_row(pinch_session *s, float *logits);
/* Forgets what is ahead. */
void pn_session_settle(pinch_session *s);

/* ---- draft.c ---- */

/* The drafter of a kind. */
pn_propose_fn pn_drafter(pinch_draft kind);
void pn_draft_begin(pinch_session *s, int32_t seq);
/* As pinch_session_feed of one token; with drafts behind it, as many as `most` and the context allow. */
pinch_status pn_draft_feed(pinch_session *s, int32_t seq, pinch_token token, int32_t most, pinch_error *err);
void pn_draft_end(pinch_session *s, pinch_draft_stats *stats);

/* ---- block.c: the model's block that drafts tokens, of a session that has one ---- */

/* The n rows of the last batch, whose trunk has been computed and whose head has not. Of a text where it rests it holds zeros, so that a snapshot's bytes do
 * not depend on what was there before. */
pinch_status pn_block_follow(pinch_session *s, int32_t n, int n_threads, pinch_error *err);
/* A pn_propose_fn. */
int32_t pn_block_propose(pinch_session *s, int32_t seq, int32_t length, int32_t most);
/* As pinch_session_eval, with the block's logits of all rows instead of the head's. */
pinch_status pn_block_logits(pinch_session *s, const pinch_row *rows, size_t n, pinch_row_fn fn, void *user, pinch_error *err);

/* ---- pace.c: whether drafts pay ---- */

/* Whether the next token should be computed without drafts, to know what that takes. */
bool pn_pace_wants_plain(const pn_pace *p);
void pn_pace_plain(pn_pace *p, double seconds);
/* A round with drafts gave so many tokens. True: drafts should be given up. */
bool pn_pace_round(pn_pace *p, int32_t tokens, double seconds);

/* What pinch_tokenize, pinch_detokenize, pinch_chat_render and pinch_template_render copy into a buffer: malloc'ed, the caller's. */
pinch_status pn_text_encode(const pinch_model *model, const char *text, size_t n, bool add_special, bool parse_special, pinch_token **ids, size_t *n_ids, pinch_error *err);
pinch_status pn_text_decode(const pinch_model *model, const pinch_token *tokens, size_t n, bool special, char **text, size_t *n_text, pinch_error *err);
pinch_status pn_text_chat(const pinch_model *model, const pinch_message *messages, size_t n, bool add_generation_prompt, char **text, size_t *n_text, pinch_error *err);
pinch_status pn_text_template(const char *source, size_t n_source, const char *json, size_t n_json, int64_t now, char **text, size_t *n_text, pinch_error *err);

#endif
