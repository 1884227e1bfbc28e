/* kernels/prove_work.h - what the proofs share: buffers with guard pages, random numbers, fills, comparison, timing. */
#ifndef PN_PROVE_WORK_H
#define PN_PROVE_WORK_H

#include "kernels/prove.h"

/* Memory that ends at an unreadable page. Owner: whoever opened it. */
typedef struct pn_guarded {
    uint8_t *base;
    size_t bytes; /* usable, before the guard page */
    size_t page;
} pn_guarded;

pinch_status pn_guarded_open(pn_guarded *g, size_t bytes, pinch_error *err);
void pn_guarded_close(pn_guarded *g); /* zeroed: fine */
/* The last n bytes before the guard, moved down to a multiple of align; they, a margin before them and all behind them are set to a pattern.
 * NULL: n is too large. */
void *pn_guarded_place(pn_guarded *g, size_t n, size_t align);
/* Whether the margin before p and all bytes from p + n on still hold the pattern. */
bool pn_guarded_intact(const pn_guarded *g, const void *p, size_t n);

uint64_t pn_prove_random(uint64_t *state);

/* Edge fills, chosen by number: 0 .. count-1. */
enum { pn_n_weight_fills = 8, pn_n_float_fills = 8 };
const char *pn_weight_fill_name(int fill);
const char *pn_float_fill_name(int fill);
/* n_blocks blocks of a weight type in file layout. */
void pn_fill_weights(uint8_t *blocks, pn_type type, int64_t n_blocks, int fill, uint64_t *random);
void pn_fill_floats(float *x, int64_t n, int fill, uint64_t *random);

/* Adds one case to a proof; `format` describes it and is kept if this is the first that breaks the promise. */
void pn_prove_compare(pn_proof *proof, const float *got, const float *wanted, int64_t n);
void pn_prove_failure(pn_proof *proof, const char *format, ...) PN_PRINTF(2, 3);

/* Seconds of processor that one call takes: repeats it for about `seconds` and takes the fastest batch. */
double pn_prove_time(void (*call)(void *user), void *user, double seconds);

/* prove_ops.c: every member of `ops` against `scalar`. */
pinch_status pn_prove_ops(const pn_prove_options *options, const pn_ops *ops, const pn_ops *scalar, pinch_error *err);
bool pn_prove_wanted(const pn_prove_options *options, const char *name);

#endif
