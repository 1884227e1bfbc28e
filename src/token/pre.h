/* token/pre.h - the table of pre-tokenizers by their names in tokenizer.ggml.pre. Knows expressions and defaults, no vocabulary. */
#ifndef PN_TOKEN_PRE_H
#define PN_TOKEN_PRE_H

#include "gguf/gguf.h"

enum { PN_MAX_PASSES = 6 };
enum {
    PN_PRE_CLEAN = 1,         /* detokenising drops spaces before punctuation */
    PN_PRE_BOS = 2,           /* a BOS is put first unless the file says otherwise */
    PN_PRE_IGNORE_MERGES = 4, /* a word that is a token is that token */
    PN_PRE_RAW = 8,           /* merges are of UTF-8 text with U+2581 for spaces, not of the byte alphabet */
    PN_PRE_NO_MERGES = 16     /* a file without merges is taken */
};
typedef struct pn_pre {
    const char *names; /* separated by blanks */
    const char *passes[PN_MAX_PASSES]; /* expressions; each splits the pieces of the one before */
    unsigned flags;
} pn_pre;

const pn_pre *pn_pre_find(pn_str name); /* NULL: unknown */
const pn_pre *pn_pre_at(size_t i);      /* NULL: past the last */

#endif
