/* token/strings.h - a string array of a GGUF file, copied without its lengths and indexed: string by number and number by string.
 *
 * Knows nothing of tokens. A slot of the hash table is 32 bits: the number + 1 in the low ones and, in what is left, bits of the hash, so that most
 * strings that are not there are refused without a look at the file's bytes. */
#ifndef PN_TOKEN_STRINGS_H
#define PN_TOKEN_STRINGS_H

#include "gguf/gguf.h"
#include "token/text.h"

typedef struct pn_strings {
    char *data;       /* the strings, one behind the other */
    uint32_t *offset; /* [n + 1] where each begins and the one before ends */
    uint32_t *slot;   /* 0: free */
    uint32_t n, n_slots, number_mask;
    uint64_t probes;  /* steps taken while building; see pn_strings_index */
} pn_strings;

enum { PN_STRINGS_MAX = 1 << 24 };

/* Copies the array's strings and makes an empty table. `key` is for sentences. */
pinch_status pn_strings_open(pn_strings *s, const pn_gguf_value *array, const char *key, pinch_error *err);
void pn_strings_close(pn_strings *s); /* a zeroed one is fine */
uint64_t pn_strings_bytes(const pn_strings *s);

static inline pn_str pn_strings_at(const pn_strings *s, uint32_t i)
{
    return (pn_str){s->data + s->offset[i], s->offset[i + 1] - s->offset[i]};
}

/* A key is a string, or two strings that stand in the file with one space between: hash and comparison take the parts as they are. */
typedef struct pn_key {
    pn_str left, right; /* right.p NULL: left alone */
    uint64_t hash;
} pn_key;
static inline pn_key pn_key_of(pn_str text) { return (pn_key){text, {NULL, 0}, pn_text_hash(text.p, text.n)}; }
/* The right hash is turned by a bit: a step takes (a ^ b), which is the same for b and a, and 0 for all pairs of equal halves. */
static inline pn_key pn_key_of_pair(pn_str left, uint64_t left_hash, pn_str right, uint64_t right_hash)
{
    return (pn_key){left, right, pn_hash_step(left_hash, right_hash << 1 | right_hash >> 63)};
}
static inline bool pn_key_is(const pn_key *key, pn_str text)
{
    if (!key->right.p) return text.n == key->left.n && memcmp(text.p, key->left.p, text.n) == 0;
    return text.n == key->left.n + 1 + key->right.n && memcmp(text.p, key->left.p, key->left.n) == 0 && text.p[key->left.n] == ' ' &&
           memcmp(text.p + key->left.n + 1, key->right.p, key->right.n) == 0;
}
static inline uint32_t pn_strings_tag(const pn_strings *s, uint64_t hash) { return (uint32_t)(hash >> 32) & ~s->number_mask; }

/* Slots are as many as are filled and a third more, no power of two: the low half of the hash as a share of them. */
static inline uint32_t pn_strings_slot(const pn_strings *s, uint64_t hash) { return (uint32_t)((uint64_t)(uint32_t)hash * s->n_slots >> 32); }
static inline uint32_t pn_strings_next(const pn_strings *s, uint32_t at) { return at + 1 == s->n_slots ? 0 : at + 1; }

/* The number of the string, -1: none. */
static inline int32_t pn_strings_find(const pn_strings *s, const pn_key *key)
{
    const uint32_t tag = pn_strings_tag(s, key->hash);
    for (uint32_t at = pn_strings_slot(s, key->hash);; at = pn_strings_next(s, at)) {
        const uint32_t slot = s->slot[at];
        if (!slot) return -1;
        if ((slot & ~s->number_mask) != tag) continue;
        const uint32_t i = (slot & s->number_mask) - 1;
        if (pn_key_is(key, pn_strings_at(s, i))) return (int32_t)i;
    }
}
/* Makes all strings findable: as they are, or as pairs split at the first space that is not the first byte (a string without one is left out). Empty
 * strings are left out. Of equal strings the first is found; *equal holds one of the others and its first (other UINT32_MAX: all are
 * distinct). An error: strings chosen to collide, so that opening would take quadratic time. */
typedef struct pn_equal { uint32_t first, other; } pn_equal;
pinch_status pn_strings_index(pn_strings *s, bool pairs, const char *key, pn_equal *equal, pinch_error *err);

#endif
