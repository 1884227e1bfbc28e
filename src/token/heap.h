/* token/heap.h - a binary heap of 64-bit keys, least first: what is done next when tokens are matched and merged. */
#ifndef PN_TOKEN_HEAP_H
#define PN_TOKEN_HEAP_H

#include <stdlib.h>

#include "base/base.h"

typedef struct pn_heap {
    uint64_t *key;
    size_t n, capacity;
} pn_heap;

static inline uint64_t pn_heap_key(uint32_t priority, uint32_t place) { return (uint64_t)priority << 32 | place; }

/* False: out of memory. */
static inline bool pn_heap_push(pn_heap *h, uint64_t key)
{
    if (h->n == h->capacity) {
        const size_t capacity = h->capacity ? 2 * h->capacity : 64;
        uint64_t *grown = capacity <= SIZE_MAX / sizeof *grown ? realloc(h->key, capacity * sizeof *grown) : NULL;
        if (!grown) return false;
        h->key = grown;
        h->capacity = capacity;
    }
    size_t at = h->n++;
    while (at > 0 && h->key[(at - 1) / 2] > key) {
        h->key[at] = h->key[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    h->key[at] = key;
    return true;
}
/* h->n > 0. */
static inline uint64_t pn_heap_pop(pn_heap *h)
{
    const uint64_t least = h->key[0], last = h->key[--h->n];
    size_t at = 0;
    for (size_t child = 1; child < h->n; child = 2 * at + 1) {
        if (child + 1 < h->n && h->key[child + 1] < h->key[child]) child++;
        if (h->key[child] >= last) break;
        h->key[at] = h->key[child];
        at = child;
    }
    h->key[at] = last;
    return least;
}

#endif
