/* base/arena.h - a growing arena with a cap: many small objects of one lifetime, freed at once. */
#ifndef PN_ARENA_H
#define PN_ARENA_H

#include "base/base.h"

typedef struct pn_arena_block pn_arena_block;
typedef struct pn_arena {
    pn_arena_block *head;
    uint64_t used;  /* bytes handed out */
    uint64_t limit; /* pn_arena_get returns NULL beyond */
} pn_arena;

void pn_arena_init(pn_arena *arena, uint64_t limit);
void pn_arena_free(pn_arena *arena);
/* 16-byte aligned, not zeroed; NULL: limit or memory exhausted. */
void *pn_arena_get(pn_arena *arena, uint64_t count, uint64_t size);
char *pn_arena_copy(pn_arena *arena, const void *bytes, uint64_t n); /* with a NUL added */

#endif
