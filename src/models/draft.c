/* The block that drafts tokens (MTP, nextn), as a plan of its own: a token's embedding and the trunk's result at the position before become one row, which
 * goes through a layer and a head like the trunk's. Knows what the block's ends are called; its layer is the architecture's. */
#include "models/build.h"

/* Where the block has no tensor of its own, or an architecture knows none, the trunk's serves. */
typedef struct ends {
    const char *norm, *embedding, *head; /* NULL: the trunk's always */
    bool needs_norm;
} ends;

static const ends ends_of[] = {
    [PN_DRAFTS_OWN_ENDS] = {"nextn.shared_head_norm.weight", "nextn.embed_tokens.weight", "nextn.shared_head_head.weight", false},
    [PN_DRAFTS_TRUNK_ENDS] = {"layer_output_norm.weight", NULL, NULL, true},
};

/* False with a sentence: what there is cannot draft. */
static bool can_draft(pn_builder *b)
{
    const pn_decoder *d = &b->d;
    const int32_t n = d->n_blocks - d->n_layers;
    if (d->drafting == PN_DRAFTS_NOT) pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "architecture '%s' has no block that drafts tokens (MTP), or none that this build runs", b->arch);
    else if (n == 0) pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "holds no block that drafts tokens (MTP): '%s.nextn_predict_layers' counts none that is there", b->arch);
    else if (n > 1) pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "metadata '%s.nextn_predict_layers' is %d, and one block that drafts tokens is what this build runs", b->arch, (int)n);
    return !b->status;
}

/* Both norms of the row, one behind the other. */
static const float *bind_norms(pn_builder *b, int32_t il)
{
    const int64_t E = b->d.n_embd;
    const float *token = pn_bind_vector(b, il, "nextn.enorm.weight", E, true), *hidden = pn_bind_vector(b, il, "nextn.hnorm.weight", E, true);
    float *both = b->status ? NULL : pn_arena_get(&b->net->arena, (uint64_t)E * 2, sizeof *both);
    if (!both) {
        pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for the norms of block %d", (int)il);
        return NULL;
    }
    memcpy(both, token, (size_t)E * sizeof *both);
    memcpy(both + E, hidden, (size_t)E * sizeof *both);
    return both;
}

static void emit_pair(pn_builder *b, int32_t il)
{
    const int64_t width = (int64_t)b->d.n_embd * 2;
    const int pair = pn_emit_buffer(b, "pair", width);
    const pn_weight *w = pn_bind(b, il, "nextn.eh_proj.weight", width, b->d.n_embd, true);
    const pn_prep prep = {.source = pair, .width = width, .update = {.from = PN_NONE}, .norm = bind_norms(b, il), .groups = 2, .eps = b->d.eps, .formats = pn_formats_of(&w, 1)};
    pn_emit_to_stream(b, il, w, NULL, false, prep, NULL);
    b->net->draft.pair = pair;
}

static bool has(pn_builder *b, int32_t il, const char *name) { return name && pn_has_tensor(b, il, name); }

static void emit_ends(pn_builder *b, int32_t il, const ends *e)
{
    const pn_network *net = b->net;
    const pn_matmul *head = &net->plan.steps[net->plan.head].u.matmul;
    const int64_t E = b->d.n_embd;
    const bool own = has(b, il, e->head);
    const float *norm = e->needs_norm || has(b, il, e->norm) ? pn_bind_vector(b, il, e->norm, E, true) : head->prep.norm;
    const pn_weight *w = own ? pn_bind(b, il, e->head, E, net->plan.n_logits, true) : head->out[0].w;
    pn_emit_head(b, norm, w, own ? NULL : head->out[0].bias);
    b->net->draft.embedding = has(b, il, e->embedding) ? pn_bind_rows(b, il, e->embedding, E, net->n_vocab) : net->embedding;
}

/* Its layer is behind the trunk's in names and in the state. */
void pn_emit_draft(pn_builder *b)
{
    pn_network *net = b->net;
    const int32_t il = b->d.n_layers;
    if (b->status || !can_draft(b)) return;
    b->plan = &net->draft.plan;
    b->plan->n_ropes = net->plan.n_ropes;
    memcpy(b->plan->ropes, net->plan.ropes, sizeof b->plan->ropes);
    net->draft.layer = il;
    pn_emit_begin(b);
    emit_pair(b, il);
    if (!b->status) pn_emit_layer(b, il);
    if (!b->status) emit_ends(b, il, &ends_of[b->d.drafting]);
    net->plan.shapes[il].recurrent = b->d.n_embd;
    if (!b->status) pn_plan_lay_out(b->plan);
}
