/* base/arena.c - blocks in a list, newest first; the newest serves, the others are full or too small. */
#include "base/arena.h"

#include <stdlib.h>

enum { ALIGN = 16, FIRST_BLOCK = 4096, LARGEST_STEP = 1 << 20 };

struct pn_arena_block {
    pn_arena_block *next;
    uint64_t size, used; /* of data */
    unsigned char *data; /* behind this, aligned here: some 32-bit mallocs align to 8 */
};

void pn_arena_init(pn_arena *arena, uint64_t limit) { *arena = (pn_arena){.limit = limit}; }

void pn_arena_free(pn_arena *arena)
{
    for (pn_arena_block *b = arena->head, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    arena->head = NULL;
    arena->used = 0;
}

/* Blocks double up to LARGEST_STEP, so that small arenas stay small and large ones take few calls. */
static pn_arena_block *grow(pn_arena *arena, uint64_t bytes)
{
    uint64_t size = arena->head ? arena->head->size * 2 : FIRST_BLOCK, total;
    if (size > LARGEST_STEP) size = LARGEST_STEP;
    if (size < bytes) size = bytes;
    if (!pn_add(size, sizeof(pn_arena_block) + ALIGN - 1, &total)) return NULL;
    pn_arena_block *b = pn_alloc(1, total);
    if (!b) return NULL;
    unsigned char *data = (unsigned char *)(b + 1);
    data += (ALIGN - (uintptr_t)data % ALIGN) % ALIGN;
    *b = (pn_arena_block){.next = arena->head, .size = size, .data = data};
    arena->head = b;
    return b;
}

void *pn_arena_get(pn_arena *arena, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!pn_mul(count, size, &bytes) || bytes > UINT64_MAX - ALIGN) return NULL;
    uint64_t step = pn_round_up(bytes ? bytes : 1, ALIGN);
    if (step > arena->limit - arena->used) return NULL;
    pn_arena_block *b = arena->head;
    if (!b || b->size - b->used < step) b = grow(arena, step);
    if (!b) return NULL;
    void *p = b->data + b->used;
    b->used += step;
    arena->used += step;
    return p;
}

char *pn_arena_copy(pn_arena *arena, const void *bytes, uint64_t n)
{
    uint64_t size;
    char *p = pn_add(n, 1, &size) ? pn_arena_get(arena, size, 1) : NULL;
    if (!p) return NULL;
    if (n) memcpy(p, bytes, (size_t)n);
    p[n] = 0;
    return p;
}
