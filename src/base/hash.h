/* base/hash.h - a 64-bit sum of bytes against damage and mix-ups, not against malice. Bytes may come in pieces of any size. */
#ifndef PN_HASH_H
#define PN_HASH_H

#include "base/base.h"

typedef struct pn_hash {
    uint64_t sum;
    uint64_t n;      /* bytes so far */
    uint8_t word[8]; /* the last n % 8 of them */
} pn_hash;

/* One step is a bijection of the sum for each word and of the word for each sum: a single changed word always changes the result. */
static inline uint64_t pn_hash_step(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio, odd */
    return sum ^ sum >> 32;
}

static inline void pn_hash_add(pn_hash *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    while (n) {
        const size_t have = (size_t)(h->n % 8), take = n < 8 - have ? n : 8 - have;
        memcpy(h->word + have, p, take);
        h->n += take;
        p += take;
        n -= take;
        if (h->n % 8) return;
        uint64_t word;
        memcpy(&word, h->word, 8);
        h->sum = pn_hash_step(h->sum, word);
    }
}

static inline uint64_t pn_hash_end(const pn_hash *h)
{
    uint64_t word = 0;
    memcpy(&word, h->word, (size_t)(h->n % 8));
    return pn_hash_step(pn_hash_step(h->sum, word), h->n);
}

#endif
