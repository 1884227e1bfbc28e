/* sample/sample.h - choosing a token from logits: one pass with a small heap, no sort and no copy of the vocabulary.
 *
 * Stands on base alone. Random numbers, exp and log are our own: the same seed and logits give the same token on every machine. */
#ifndef PN_SAMPLE_H
#define PN_SAMPLE_H

#include "base/base.h"

typedef struct pn_sampler pn_sampler;
/* Text of a token for DRY's sequence breakers: returns length, writes at most capacity bytes. */
typedef size_t (*pn_piece_fn)(const void *ctx, pinch_token id, char *out, size_t capacity);

/* Checks options (a sentence names option and value). All memory is taken here. `suppressed`: ids never sampled, copied. `n_ctx` bounds histories (-1 of last_n). */
pinch_status pn_sampler_open(pn_sampler **out, const pinch_sampler_options *options, int32_t n_vocab, int32_t n_ctx, pn_piece_fn piece, const void *piece_ctx,
                             const pinch_token *suppressed, size_t n_suppressed, pinch_error *err);
void pn_sampler_close(pn_sampler *s); /* NULL is fine */
void pn_sampler_accept(pn_sampler *s, pinch_token id);
pinch_token pn_sampler_choose(pn_sampler *s, float *logits); /* allocates nothing */
void pn_sampler_reset(pn_sampler *s);

#endif
