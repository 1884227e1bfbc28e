/* token/token_int.h - a vocabulary as the files of this room see it. */
#ifndef PN_TOKEN_INT_H
#define PN_TOKEN_INT_H

#include "token/heap.h"
#include "token/matcher.h"
#include "token/pattern.h"
#include "token/pre.h"
#include "token/strings.h"
#include "token/token.h"

/* What a token is: bits, for the reference's patch-ups add to what the file says. */
enum {
    PN_ATTR_NORMAL = 1, PN_ATTR_UNKNOWN = 2, PN_ATTR_CONTROL = 4, PN_ATTR_USER = 8, PN_ATTR_UNUSED = 16, PN_ATTR_BYTE = 32,
    PN_ATTR_EOG = 64 /* ends generation */
};
enum {
    PN_MAX_TEXT = 1 << 30, /* bytes of a text that is encoded: offsets of its escaped form fit 32 bits */
    PN_EMPTY_TEXT = 24     /* bytes of "[EMPTY_<id>]" at most */
};

typedef enum pn_family { PN_SPM, PN_BPE } pn_family;

struct pn_vocab {
    pn_family family;
    const pn_pre *pre; /* of BPE */
    bool raw;          /* BPE of UTF-8 text instead of the byte alphabet */
    bool escape_spaces, space_prefix, clean_spaces, ignore_merges, newline_words;
    pn_strings texts;
    pn_strings merges;            /* of BPE; number = rank */
    const pn_gguf_value *scores;  /* of SPM; NULL: all 0 */
    uint8_t *attributes;
    uint32_t longest_text;        /* bytes */
    uint8_t before_space[32];     /* bit b: some text (SPM) or merge (raw BPE) has byte b before an escaped space; other places may be cut */
    pinch_token byte_token[256];  /* what a byte becomes that no token covers; -1: nothing */
    pn_pattern *passes[PN_MAX_PASSES + 1]; /* NULL after the last */
    pn_matcher *matcher;
    pn_specials special;
    pinch_token *suppressed;
    size_t n_suppressed;
    uint32_t *empty; /* ids whose text in the file is empty, ascending */
    char *empty_text; /* PN_EMPTY_TEXT bytes each: length, then "[EMPTY_<id>]" */
    uint32_t n_empty;
    char warning[256];
};

/* The id of a text, -1: none. */
static inline pinch_token pn_vocab_find(const pn_vocab *v, const char *p, size_t n)
{
    if (n > v->longest_text) return -1;
    const pn_key key = pn_key_of((pn_str){p, n});
    return pn_strings_find(&v->texts, &key);
}

/* vocab_special.c: ids by key and by text, the EOG set, attribute patch-ups, the matcher. */
pinch_status pn_vocab_read_specials(pn_vocab *v, const pn_gguf *g, pinch_error *err);
/* encode.c: words and merges alone, no special tokens; for the id of a newline. -1: none. */
pinch_token pn_vocab_first_token(const pn_vocab *v, const char *text, size_t n);

/* merge.c: a word to tokens. */
typedef struct pn_symbol {
    uint32_t start;          /* in the word's text; it ends where the next begins */
    uint32_t previous, next; /* UINT32_MAX: none */
    uint32_t rank;           /* of the pair with the next symbol; UINT32_MAX: they do not merge, or this symbol is no more */
    uint64_t hash;           /* of its text, BPE */
} pn_symbol;
typedef struct pn_merger { /* scratch, and the tokens that come out; all owned */
    const pn_vocab *v;
    char *text; /* the word in the vocabulary's alphabet */
    size_t n, text_capacity;
    pn_symbol *symbols;
    size_t symbol_capacity;
    pn_heap heap;
    pinch_token *ids;
    size_t n_ids, id_capacity;
} pn_merger;
bool pn_merger_put(pn_merger *m, pinch_token id);
bool pn_merger_reserve(pn_merger *m, size_t n); /* room for n bytes in text */
bool pn_merge_word(pn_merger *m);               /* tokens of text[0 .. n); false: out of memory */
void pn_merger_free(pn_merger *m);              /* but for ids */

#endif
