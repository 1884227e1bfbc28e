/* What recurrent layers carry: where it lies, and what of it is kept while a batch runs that may end early. */
#include "state/layout.h"

#include "base/pages.h"

bool pn_state_is_recurrent(const pn_state_options *o)
{
    for (int32_t i = 0; i < o->n_layers; i++)
        if (o->layers[i].recurrent > 0) return true;
    return false;
}

float *pn_state_recurrent(const pn_state *s, int32_t layer, int32_t seq) { return pn_layer_recurrent(s, &s->layers[layer], seq); }

/* ---- kept rows ----------------------------------------------------------------------------------------------------------------------- */

bool pn_state_kept_bytes(const pn_state_options *o, uint64_t *bytes)
{
    uint64_t total = 0, one = 0;
    for (int32_t i = 0; i < o->n_layers; i++) {
        pn_layer_place l;
        if (!pn_layer_plan(&l, &o->layers[i], o, &total)) return false;
        one += l.r_bytes; /* below the total, which fits */
    }
    return pn_mul(one, (uint64_t)pn_max64(0, o->n_kept), bytes) && *bytes <= SIZE_MAX / 2;
}

pinch_status pn_kept_open(pn_state *s, const pn_state_options *o, pinch_error *err)
{
    size_t one = 0;
    for (int32_t i = 0; i < s->n_layers; i++) {
        s->layers[i].kept = one;
        one += s->layers[i].r_bytes;
    }
    s->kept.slot_bytes = one;
    if (!pn_state_kept_bytes(o, &s->kept.bytes)) return pn_fail(err, PINCH_ERR_MEMORY, "what recurrent layers carry, kept %d times: it does not fit in an address space", (int)o->n_kept);
    if (s->kept.bytes == 0) return PINCH_OK;
    s->kept.memory = pn_pages_alloc(s->kept.bytes);
    return s->kept.memory ? PINCH_OK : pn_fail_memory(err, "what drafts may go back to", s->kept.bytes);
}

void pn_kept_close(pn_state *s) { pn_pages_free(s->kept.memory, s->kept.bytes); }

void pn_state_keep(pn_state *s, int32_t seq, int32_t n)
{
    s->kept.seq = seq;
    s->kept.first = s->seqs[seq].length;
    s->kept.n_rows = s->kept.memory ? n : 0;
}

static float *slot(const pn_state *s, const pn_layer_place *l, int32_t position)
{
    return (float *)(void *)(s->kept.memory + (size_t)(position - s->kept.first) * s->kept.slot_bytes + l->kept);
}

/* All rows of the batch but its last, whose floats stay in place. */
static bool keeps(const pn_state *s, int32_t seq, int32_t position) { return seq == s->kept.seq && position >= s->kept.first && position + 1 < s->kept.first + s->kept.n_rows; }

float *pn_state_kept(const pn_state *s, int32_t layer, int32_t seq, int32_t position) { return keeps(s, seq, position) ? slot(s, &s->layers[layer], position) : NULL; }

bool pn_kept_holds(const pn_state *s, int32_t seq, int32_t n) { return keeps(s, seq, n - 1); }

void pn_kept_restore(pn_state *s, int32_t seq, int32_t n)
{
    for (int32_t i = 0; i < s->n_layers; i++) {
        const pn_layer_place *l = &s->layers[i];
        memcpy(pn_layer_recurrent(s, l, seq), slot(s, l, n - 1), l->r_bytes);
    }
    s->seqs[seq].carried = n;
}

void pn_kept_drop(pn_state *s, int32_t seq)
{
    if (seq == s->kept.seq) s->kept.n_rows = 0;
}
