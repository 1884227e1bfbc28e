/* token/matcher.h - where special tokens stand in a text: the longest first, over the whole text, then by number, then from the left; in one pass.
 *
 * Knows texts and numbers of tokens, nothing else of a vocabulary. Immutable once made. */
#ifndef PN_TOKEN_MATCHER_H
#define PN_TOKEN_MATCHER_H

#include "gguf/gguf.h"

typedef struct pn_matcher pn_matcher;

typedef struct pn_special {
    pn_str text; /* not empty; may be forgotten after pn_matcher_make */
    pinch_token id;
    bool always;         /* matched even where special tokens are not parsed */
    bool strips_left, strips_right; /* takes white space beside it along */
} pn_special;

/* Sorts `list`. Texts are distinct. */
pinch_status pn_matcher_make(pn_matcher **out, pn_special *list, size_t n, pinch_error *err);
void pn_matcher_free(pn_matcher *m); /* NULL is fine */
uint64_t pn_matcher_bytes(const pn_matcher *m);

/* A text in pieces: each is text[start .. end) as it is (id -1), or a token with the white space that it takes along. They ascend and cover the text. */
typedef struct pn_piece_list {
    struct pn_fragment {
        uint32_t start, end;
        pinch_token id;
    } *at;
    size_t n;
} pn_piece_list;
/* n <= INT32_MAX. out->at is malloc'ed and the caller's. */
pinch_status pn_matcher_split(const pn_matcher *m, const char *text, size_t n, bool parse_special, pn_piece_list *out, pinch_error *err);

#endif
