/* Latent attention (MLA): what its keys mean, and the steps of a layer. */
#include "models/build.h"

#include <math.h>

enum { MAX_RANK = 1 << 14 };

/* Files of the first layout have no keys of their own for the heads outside of the latent space. */
void pn_describe_mla(pn_builder *b)
{
    pn_decoder *d = &b->d;
    const bool own = pn_meta_has(b, "attention.key_length_mla");
    const int32_t d_k = (int32_t)pn_meta_int_within(b, own ? "attention.key_length_mla" : "attention.key_length", PN_REQUIRED, 2, PN_MAX_HEAD);
    const int32_t d_v = (int32_t)pn_meta_int(b, own ? "attention.value_length_mla" : "attention.value_length", PN_REQUIRED);
    d->mla.rank = (int32_t)pn_meta_int(b, "attention.kv_lora_rank", PN_REQUIRED);
    d->mla.n_rot = (int32_t)pn_meta_int_within(b, "rope.dimension_count", PN_REQUIRED, 2, d_k - 1);
    for (int32_t il = 0; !b->status && il < d->n_described; il++) {
        pn_layer *l = &d->layers[il];
        l->d_k = d_k;
        l->d_v = d_v;
        l->mixer = pn_emit_mla;
    }
    if (!b->status) d->q_scale = 1.0f / sqrtf((float)d_k);
}

typedef struct matrices {
    const pn_weight *q, *q_a, *q_b, *kv_a, *gate, *k_b, *v_b;
    bool k_b_turned;
} matrices;

/* Both ways from and to the latent space: a tensor each, or (the first layout) rows of one, a head's keys before its values. */
static void bind_heads(pn_builder *b, int32_t il, matrices *m)
{
    const pn_layer *l = &b->d.layers[il];
    const int64_t rank = b->d.mla.rank, plain = l->d_k - b->d.mla.n_rot, total = plain + l->d_v;
    m->k_b_turned = pn_has_tensor(b, il, "attn_kv_b.weight");
    if (m->k_b_turned) {
        m->k_b = pn_bind_matrices(b, il, "attn_kv_b.weight", (pn_matrices){.k = rank, .total = total, .rows = plain, .n = l->n_head, .joined = true, .plain = true});
        m->v_b = pn_bind_matrices(b, il, "attn_kv_b.weight", (pn_matrices){.k = rank, .total = total, .first = plain, .rows = l->d_v, .n = l->n_head, .joined = true});
    } else {
        m->k_b = pn_bind_experts(b, il, "attn_k_b.weight", plain, rank, l->n_head, true);
        m->v_b = pn_bind_experts(b, il, "attn_v_b.weight", rank, l->d_v, l->n_head, true);
    }
}

static matrices bind_matrices(pn_builder *b, int32_t il)
{
    const pn_layer *l = &b->d.layers[il];
    const int64_t E = b->d.n_embd, q = (int64_t)l->n_head * l->d_k;
    matrices m = {.kv_a = pn_bind(b, il, "attn_kv_a_mqa.weight", E, (int64_t)b->d.mla.rank + b->d.mla.n_rot, true)};
    if (pn_has_tensor(b, il, "attn_q_a.weight")) {
        const int64_t rank = pn_tensor_rows(b, il, "attn_q_a.weight", MAX_RANK);
        m.q_a = pn_bind(b, il, "attn_q_a.weight", E, rank, true);
        m.q_b = pn_bind(b, il, "attn_q_b.weight", rank, q, true);
    } else {
        m.q = pn_bind(b, il, "attn_q.weight", E, q, true);
    }
    if (l->gated_heads) m.gate = pn_bind(b, il, "attn_gate.weight", E, l->n_head, true);
    bind_heads(b, il, &m);
    return m;
}

/* Queries (or their latent), keys' latent and gate on one input; then queries out of their latent. */
static void emit_inputs(pn_builder *b, int32_t il, const matrices *m, int query, int latent, int gate)
{
    const pn_decoder *d = &b->d;
    const float *norm = d->attn_norm ? pn_bind_vector(b, il, d->attn_norm, d->n_embd, true) : NULL;
    const int low = m->q_a ? pn_emit_buffer(b, "query latent", m->q_a->rows) : PN_NONE;
    const pn_weight *w[3] = {m->q_a ? m->q_a : m->q, m->kv_a, m->gate};
    pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, pn_formats_of(w, 3)));
    pn_emit_output(s, w[0], NULL, false, m->q_a ? low : query, 0);
    pn_emit_output(s, w[1], NULL, false, latent, 0);
    pn_emit_output(s, w[2], NULL, false, gate, 0);
    if (!m->q_a || b->status) return;
    const pn_prep prep = {.source = low, .width = m->q_a->rows, .update = {.from = PN_NONE}, .norm = pn_bind_vector(b, il, "attn_q_a_norm.weight", m->q_a->rows, true), .eps = d->eps,
                          .formats = pn_formats_of(&m->q_b, 1)};
    pn_emit_output(pn_emit_matmul(b, il, prep), m->q_b, NULL, false, query, 0);
}

void pn_emit_mla(pn_builder *b, int32_t il)
{
    const pn_decoder *d = &b->d;
    const pn_layer *l = &d->layers[il];
    const int32_t rank = d->mla.rank, n_rot = d->mla.n_rot;
    const int64_t width = (int64_t)l->n_head * l->d_v;
    if (!b->status && l->n_head == 0) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata gives layer %d of '%s' no attention heads", (int)il, b->arch);
    if (b->status) return;
    const matrices m = bind_matrices(b, il);
    const int query = pn_emit_buffer(b, "query", (int64_t)l->n_head * l->d_k), latent = pn_emit_buffer(b, "latent", (int64_t)rank + n_rot);
    const int gate = l->gated_heads ? pn_emit_buffer(b, "head gate", l->n_head) : PN_NONE, heads = pn_emit_buffer(b, "heads", width);
    if (b->status) return;
    emit_inputs(b, il, &m, query, latent, gate);
    const float *norm = pn_bind_vector(b, il, "attn_kv_a_norm.weight", rank, true);
    pn_step *s = pn_emit(b, &pn_step_latent, il);
    if (s) s->u.latent = (pn_latent){.buffer = latent, .layer = il, .rank = rank, .n_rot = n_rot, .norm = norm, .eps = d->eps, .rope = l->rope};
    s = pn_emit(b, &pn_step_mla, il);
    if (!s) return;
    s->u.mla = (pn_mla){.query = query, .out = heads, .gate = gate, .layer = il, .n_head = l->n_head, .n_plain = l->d_k - n_rot, .n_rot = n_rot, .rank = rank, .d_v = l->d_v, .k_b = m.k_b,
                        .k_b_turned = m.k_b_turned, .v_b = m.v_b, .rope = l->rope, .q_scale = d->q_scale, .temperature = d->temperature, .temperature_length = d->temperature_length};
    b->net->plan.shapes[il] = (pn_layer_shape){.n_head = 1, .d_k = rank + n_rot, .d_v = 0};
    const pn_weight *w = pn_bind(b, il, "attn_output.weight", width, d->n_embd, true);
    const pn_prep prep = {.source = heads, .width = width, .update = {.from = PN_NONE}, .formats = pn_formats_of(&w, 1)};
    pn_emit_to_stream(b, il, w, NULL, false, prep, d->post_attn_norm);
}
