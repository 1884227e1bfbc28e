/* sample_int.h - what the files of this room share.
 *
 * A candidate is one 64-bit rank that holds both logit and id: ascending ranks are descending logits, equal logits by ascending id. What the samplers
 * leave is always an interval of ranks (and for typical an interval around a centre), so a set of survivors is a pair of bounds over the logits as they
 * lie, and becomes a short sorted list as soon as it is short. */
#ifndef PN_SAMPLE_INT_H
#define PN_SAMPLE_INT_H

#include "sample/sample.h"

enum {
    PN_SAMPLE_LIST = 1024, /* candidates that a list holds */
    PN_SAMPLE_DIGIT = 11,  /* bits of a rank that one pass over the logits settles */
    PN_SAMPLE_BUCKETS = 1 << PN_SAMPLE_DIGIT
};

/* A hash table from token to count that is emptied by raising `epoch`. */
typedef struct pn_tally_slot {
    uint32_t epoch; /* the slot is free unless this is the tally's */
    pinch_token token;
    int32_t value;
} pn_tally_slot;
typedef struct pn_tally {
    pn_tally_slot *slots; /* a power of two of them, at least twice the tokens ever put in */
    uint32_t mask;
    uint32_t epoch;
} pn_tally;

/* The last tokens of the text, newest at (next - 1) mod capacity. */
typedef struct pn_history {
    pinch_token *ring;
    int32_t capacity, held, next;
} pn_history;

/* Watches the text for DRY's sequence breakers, token by token. */
typedef struct pn_breakers {
    char *bytes;    /* the strings, one after the other */
    size_t *lengths;
    size_t n, longest;
    char *window;   /* the last longest - 1 bytes of the text, and room for the longest piece behind them */
    size_t piece_capacity;
    size_t n_kept;  /* bytes of earlier text in the window */
    int32_t since;  /* tokens after the newest one in which a breaker ended, or after the start */
} pn_breakers;

struct pn_sampler {
    pinch_sampler_options o; /* its pointers are ours or NULL */
    int32_t n_vocab;
    pinch_logit_bias *bias;
    pinch_token *suppressed;
    size_t n_suppressed;
    pn_piece_fn piece;
    const void *piece_ctx;

    uint64_t random[4]; /* xoshiro256** */
    double mu;          /* mirostat */

    pn_history history;
    int32_t repeat_window, dry_window; /* tokens looked back, 0: off */
    pn_tally tally;
    pinch_token *reversed; /* [dry_window], newest first */
    int32_t *z;            /* [dry_window] */
    pn_breakers breakers;

    int32_t n_list;
    uint64_t list[PN_SAMPLE_LIST];   /* survivors, ascending */
    uint64_t sorted[PN_SAMPLE_LIST]; /* scratch of a walk */
    double mass[PN_SAMPLE_BUCKETS];
    int32_t count[PN_SAMPLE_BUCKETS];
};

/* sample_options.c */
pinch_status pn_sampler_check(const pinch_sampler_options *o, int32_t n_vocab, pinch_error *err);

/* sample_penalty.c: all that changes single logits before anything is selected */
bool pn_tally_open(pn_tally *t, int32_t n_tokens);
pinch_status pn_breakers_open(pn_sampler *s, pinch_error *err);
void pn_breakers_see(pn_sampler *s, pinch_token id);
void pn_sample_bias(pn_sampler *s, float *logits);
void pn_sample_penalties(pn_sampler *s, float *logits);
void pn_sample_dry(pn_sampler *s, float *logits);

/* sample_select.c: the chain from top-n-sigma to the draw; -1 when no logit is above -inf */
pinch_token pn_sample_select(pn_sampler *s, const float *logits);
pinch_token pn_sample_mirostat(pn_sampler *s, const float *logits);
/* One number of [0, 1), 53 bits. */
double pn_sample_uniform(pn_sampler *s);

#endif
