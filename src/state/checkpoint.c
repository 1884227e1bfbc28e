/* Checkpoints: what rings and recurrent layers held at a position, so that going back need not compute everything again. */
#include "state/layout.h"

#include "base/pages.h"

#include <stdlib.h>

bool pn_state_checkpoint_bytes(const pn_state_options *o, uint64_t *bytes)
{
    pn_totals t;
    if (!pn_layers_plan(o, NULL, &t)) return false;
    *bytes = t.rings + t.carried;
    return true;
}

pinch_status pn_checkpoints_open(pn_state *s, const pn_state_options *o, pinch_error *err)
{
    uint64_t all;
    if (o->n_checkpoints <= 0 || !pn_state_checkpoint_bytes(o, &s->checkpoint_bytes) || s->checkpoint_bytes == 0) return PINCH_OK;
    if (!pn_mul(s->checkpoint_bytes, (uint64_t)o->n_checkpoints, &all) || all > SIZE_MAX / 2)
        return pn_fail(err, PINCH_ERR_MEMORY, "%d checkpoints of %" PRIu64 " bytes do not fit in an address space", (int)o->n_checkpoints, s->checkpoint_bytes);
    s->n_checkpoints = o->n_checkpoints;
    s->checkpoints = pn_alloc((uint64_t)o->n_checkpoints, sizeof *s->checkpoints);
    s->checkpoint_memory = pn_pages_alloc(all);
    if (!s->checkpoints || !s->checkpoint_memory) return pn_fail_memory(err, "checkpoints", all);
    for (int32_t i = 0; i < s->n_checkpoints; i++) s->checkpoints[i] = (pn_checkpoint){.seq = -1};
    return PINCH_OK;
}

void pn_checkpoints_close(pn_state *s)
{
    pn_pages_free(s->checkpoint_memory, s->checkpoint_bytes * (uint64_t)s->n_checkpoints);
    free(s->checkpoints);
}

static uint8_t *memory_of(const pn_state *s, const pn_checkpoint *c) { return s->checkpoint_memory + (uint64_t)(c - s->checkpoints) * s->checkpoint_bytes; }

static const pn_checkpoint *newest(const pn_state *s, int32_t seq, int32_t n)
{
    const pn_checkpoint *best = NULL;
    for (int32_t i = 0; i < s->n_checkpoints; i++) {
        const pn_checkpoint *c = &s->checkpoints[i];
        if (c->seq == seq && c->as.length <= n && (!best || c->as.length > best->as.length)) best = c;
    }
    return best;
}

int32_t pn_checkpoint_before(const pn_state *s, int32_t seq, int32_t n)
{
    const pn_checkpoint *c = newest(s, seq, n);
    return c ? c->as.length : 0;
}

void pn_checkpoints_drop(pn_state *s, int32_t seq, int32_t beyond)
{
    for (int32_t i = 0; i < s->n_checkpoints; i++)
        if (s->checkpoints[i].seq == seq && s->checkpoints[i].as.length > beyond) s->checkpoints[i] = (pn_checkpoint){.seq = -1};
}

/* A free one, else the one that was made or gone back to longest ago. */
static pn_checkpoint *place(pn_state *s)
{
    pn_checkpoint *best = &s->checkpoints[0];
    for (int32_t i = 1; i < s->n_checkpoints; i++)
        if (s->checkpoints[i].used < best->used) best = &s->checkpoints[i];
    return best;
}

static void move_part(uint8_t *part, uint8_t **kept, size_t n, bool take)
{
    memcpy(take ? *kept : part, take ? part : *kept, n);
    *kept += n;
}

/* What going on changes: rings, and what recurrent layers carry. */
static void move(const pn_state *s, int32_t seq, uint8_t *kept, bool take)
{
    for (int32_t i = 0; i < s->n_layers; i++)
        if (s->layers[i].forgets) move_part(pn_layer_at(s, &s->layers[i], seq), &kept, pn_layer_bytes(&s->layers[i]), take);
    if (s->recurrent) move_part(pn_carried_block(s, seq), &kept, s->carried.block_bytes, take);
}

bool pn_state_keeps_checkpoints(const pn_state *s) { return s->n_checkpoints > 0; }

void pn_state_checkpoint(pn_state *s, int32_t seq)
{
    const pn_seq *q = &s->seqs[seq];
    if (s->n_checkpoints == 0 || q->length == 0 || pn_checkpoint_before(s, seq, q->length) == q->length) return;
    pn_checkpoint *c = place(s);
    *c = (pn_checkpoint){.seq = seq, .as = *q, .used = ++s->clock};
    move(s, seq, memory_of(s, c), true);
}

void pn_checkpoint_restore(pn_state *s, int32_t seq, int32_t position)
{
    const pn_checkpoint *c = newest(s, seq, position);
    move(s, seq, memory_of(s, c), false);
    s->seqs[seq] = c->as;
    s->checkpoints[c - s->checkpoints].used = ++s->clock;
}
