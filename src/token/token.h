/* token/token.h - tokenizers: BPE and SPM as GGUF files describe them, and the stream decoder.
 *
 * Stands on gguf and base alone. Immutable after open; any number of threads may use it. Text is bytes with a length: NULs and broken UTF-8 are fine.
 * Scores are read where they lie in the GGUF header, which must outlive the vocabulary. */
#ifndef PN_TOKEN_H
#define PN_TOKEN_H

#include "gguf/gguf.h"

typedef struct pn_vocab pn_vocab;

pinch_status pn_vocab_open(pn_vocab **out, const pn_gguf *g, pinch_error *err);
void pn_vocab_close(pn_vocab *v); /* NULL is fine */
/* Empties the file's lists that this vocabulary has copied: another one cannot be opened from it afterwards. */
void pn_vocab_drop_lists(const pn_vocab *v, pn_gguf *g);
uint64_t pn_vocab_bytes(const pn_vocab *v); /* memory it holds */

int32_t pn_vocab_size(const pn_vocab *v);
const char *pn_vocab_warning(const pn_vocab *v); /* NULL, or a sentence (a missing pre-tokenizer name, ...) */
/* Special ids, -1: none. */
typedef struct pn_specials { pinch_token bos, eos, eot, eom, unk, sep, pad, fim_pre, fim_suf, fim_mid, fim_pad, fim_rep, fim_sep, newline; bool add_bos, add_eos; } pn_specials;
const pn_specials *pn_vocab_specials(const pn_vocab *v);
bool pn_vocab_is_eog(const pn_vocab *v, pinch_token id);
bool pn_vocab_is_control(const pn_vocab *v, pinch_token id);
pn_str pn_vocab_text(const pn_vocab *v, pinch_token id); /* raw text of the file */
/* suppress_tokens of the file: ids never sampled. */
size_t pn_vocab_suppressed(const pn_vocab *v, const pinch_token **ids);

/* *out is malloc'ed and the caller's (free()). Linear time in n. */
pinch_status pn_encode(const pn_vocab *v, const char *text, size_t n, bool add_special, bool parse_special, pinch_token **out, size_t *n_out, pinch_error *err);

/* The bytes of one token. Returns the length; at most `capacity` are written. `special`: control tokens show their text. */
size_t pn_piece(const pn_vocab *v, pinch_token id, bool special, char *out, size_t capacity);
/* detokenise(remove_special, unparse_special) of docs/FORMATS.md; *out malloc'ed, the caller's. */
pinch_status pn_decode(const pn_vocab *v, const pinch_token *ids, size_t n, bool remove_special, bool special, char **out, size_t *n_out, pinch_error *err);

/* Stream decoder: bytes of tokens in, whole UTF-8 characters out. Never emits half a character, never loses a byte: bytes that are part of no
 * character come out as they are once that is certain. Plain struct, no memory. */
typedef struct pn_stream {
    char held[8];
    int n_held;
} pn_stream;
/* Adds bytes; writes at most n + 8 bytes to out; returns how many. */
size_t pn_stream_put(pn_stream *s, const char *bytes, size_t n, char *out);
size_t pn_stream_end(pn_stream *s, char *out); /* what is held, as it is */

#endif
