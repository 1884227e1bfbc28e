/* What recurrent layers carry: where it lies, and what of it is kept while a batch runs that may end early. */
#include "state/layout.h"

#include "base/pages.h"

#include <stdlib.h>

bool pn_state_is_recurrent(const pn_state_options *o)
{
    for (int32_t i = 0; i < o->n_layers; i++)
        if (o->layers[i].recurrent > 0) return true;
    return false;
}

bool pn_state_kept_bytes(const pn_state_options *o, uint64_t *bytes)
{
    pn_totals t;
    return pn_layers_plan(o, NULL, &t) && pn_mul(t.carried, (uint64_t)o->n_kept, bytes) && *bytes <= SIZE_MAX / 4;
}

pinch_status pn_carried_open(pn_state *s, const pn_state_options *o, uint64_t block_bytes, pinch_error *err)
{
    pn_carried *c = &s->carried;
    uint64_t kept;
    if (block_bytes == 0) return PINCH_OK;
    if (!pn_state_kept_bytes(o, &kept)) return pn_fail(err, PINCH_ERR_MEMORY, "what recurrent layers carry, kept %d times: it does not fit in an address space", (int)o->n_kept);
    const int32_t n = o->n_seq + o->n_kept;
    c->n_kept = o->n_kept;
    c->block_bytes = (size_t)block_bytes;
    c->bytes = block_bytes * (uint64_t)n;
    c->block = pn_alloc((uint64_t)n, sizeof *c->block);
    c->memory = pn_pages_alloc_huge(c->bytes); /* touched whole for each token, whereas keys and values fill up little by little */
    if (!c->block || !c->memory) return pn_fail_memory(err, "what recurrent layers carry", c->bytes);
    for (int32_t i = 0; i < n; i++) c->block[i] = i;
    return PINCH_OK;
}

void pn_carried_close(pn_state *s)
{
    pn_pages_free(s->carried.memory, s->carried.bytes);
    free(s->carried.block);
}

/* Of a sequence, or of a kept row behind them. */
static float *floats(const pn_state *s, int32_t layer, int32_t index) { return (float *)(void *)(pn_carried_block(s, index) + s->layers[layer].r_offset); }

float *pn_state_recurrent(const pn_state *s, int32_t layer, int32_t seq) { return floats(s, layer, seq); }

/* ---- kept rows ----------------------------------------------------------------------------------------------------------------------- */

void pn_state_keep(pn_state *s, int32_t seq, int32_t n)
{
    s->carried.seq = seq;
    s->carried.first = s->seqs[seq].length;
    s->carried.n_rows = s->carried.n_kept ? n : 0;
}

/* All rows of the batch but its last, whose floats stay in place. */
static bool keeps(const pn_carried *c, int32_t seq, int32_t position) { return seq == c->seq && position >= c->first && position + 1 < c->first + c->n_rows; }

static int32_t row_of(const pn_state *s, int32_t position) { return s->n_seq + position - s->carried.first; }

float *pn_state_kept(const pn_state *s, int32_t layer, int32_t seq, int32_t position) { return keeps(&s->carried, seq, position) ? floats(s, layer, row_of(s, position)) : NULL; }

bool pn_kept_holds(const pn_state *s, int32_t seq, int32_t n) { return keeps(&s->carried, seq, n - 1); }

void pn_kept_restore(pn_state *s, int32_t seq, int32_t n)
{
    int32_t *own = &s->carried.block[seq], *kept = &s->carried.block[row_of(s, n - 1)];
    const int32_t left = *own;
    *own = *kept;
    *kept = left;
    s->seqs[seq].carried = n;
}

void pn_kept_drop(pn_state *s, int32_t seq)
{
    if (seq == s->carried.seq) s->carried.n_rows = 0;
}
