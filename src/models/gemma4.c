/* gemma4: head sizes that differ between sliding and other layers, last layers that read the keys and values of earlier ones, values normed without
 * weights, experts beside a dense block, and a part of the token's second embedding for each layer. */
#include "models/arch.h"

#include <math.h>

/* A row of per_layer_token_embd and a projection of the embedding, each normed part of it for one layer. */
static void emit_layer_inputs(pn_builder *b)
{
    const pn_decoder *d = &b->d;
    pn_network *net = b->net;
    const int64_t width = (int64_t)d->n_layer_input * d->n_layers;
    net->layer_embedding = pn_bind_rows(b, -1, "per_layer_token_embd.weight", width, net->n_vocab);
    net->layer_scale = sqrtf((float)d->n_layer_input);
    const pn_weight *w = pn_bind(b, -1, "per_layer_model_proj.weight", d->n_embd, width, true);
    const float *norm = pn_bind_vector(b, -1, "per_layer_proj_norm.weight", d->n_layer_input, true);
    if (b->status) return;
    net->layer_buffer = pn_emit_buffer(b, "layer inputs", width);
    const int projected = pn_emit_buffer(b, "projected", width);
    pn_step *s = pn_emit_matmul(b, -1, pn_emit_prep(b, NULL, pn_formats_of(&w, 1)));
    pn_emit_output(s, w, NULL, false, projected, 0);
    if (s) s->u.matmul.scale = 1.0f / sqrtf((float)d->n_embd);
    s = pn_emit(b, &pn_step_blend, -1);
    if (s) s->u.blend = (pn_blend){.y = net->layer_buffer, .x = projected, .width = d->n_layer_input, .parts = d->n_layers, .x_norm = norm, .eps = d->eps,
                              .scale = 1.0f / sqrtf(2.0f)};
}

static void mixer(pn_builder *b, int32_t il)
{
    if (il == 0 && b->d.n_layer_input) emit_layer_inputs(b);
    pn_emit_attention(b, il);
}

/* The router's norm has no weights; its scale and 1/sqrt(E) take their place. */
static const float *router_norm(pn_builder *b, int32_t il)
{
    const float *scale = pn_bind_vector(b, il, "ffn_gate_inp.scale", b->d.n_embd, true);
    float *norm = scale ? pn_arena_get(&b->net->arena, (uint64_t)b->d.n_embd, sizeof *norm) : NULL;
    if (scale && !norm) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for a router");
    for (int32_t i = 0; norm && i < b->d.n_embd; i++) norm[i] = scale[i] / sqrtf((float)b->d.n_embd);
    return norm;
}

/* Experts on the same stream as the dense block, whose pending result takes up theirs. */
static void emit_experts(pn_builder *b, int32_t il)
{
    const pn_decoder *d = &b->d;
    const pn_matrices shape = {.k = d->n_embd, .total = d->n_experts, .rows = d->n_experts, .n = 1, .joined = true}; /* joined: the .scale beside it is no weight's */
    const pn_weight *router = pn_bind_matrices(b, il, "ffn_gate_inp.weight", shape);
    const float *norm = pn_bind_vector(b, il, "pre_ffw_norm_2.weight", d->n_embd, true);
    const float *dense_norm = pn_bind_vector(b, il, "post_ffw_norm_1.weight", d->n_embd, true);
    const float *experts_norm = pn_bind_vector(b, il, "post_ffw_norm_2.weight", d->n_embd, true);
    const int experts = pn_emit_experts_beside(b, il, router, router_norm(b, il), norm);
    pn_step *s = pn_emit(b, &pn_step_blend, il);
    if (s) s->u.blend = (pn_blend){.y = b->pending.from, .x = experts, .width = d->n_embd, .parts = 1, .n_used = d->n_used,
                              .weights = pn_emit_buffer(b, "expert weights", d->n_used), .y_norm = dense_norm, .x_norm = experts_norm, .eps = d->eps, .scale = 1.0f};
}

static void emit_layer_input(pn_builder *b, int32_t il)
{
    const int64_t E = b->d.n_embd, n = b->d.n_layer_input;
    const pn_weight *gate = pn_bind(b, il, "inp_gate.weight", E, n, true), *proj = pn_bind(b, il, "proj.weight", n, E, true);
    const int gates = pn_emit_buffer(b, "layer gate", n);
    pn_emit_output(pn_emit_matmul(b, il, pn_emit_prep(b, NULL, pn_formats_of(&gate, 1))), gate, NULL, false, gates, 0);
    const pn_prep prep = {.source = gates, .width = n, .update = {.from = PN_NONE}, .gate = PN_GATE_GELU, .beside = b->net->layer_buffer, .beside_column = il * n,
                          .formats = pn_formats_of(&proj, 1)};
    pn_emit_to_stream(b, il, proj, NULL, false, prep, "post_norm.weight");
}

static void feed_forward(pn_builder *b, int32_t il)
{
    pn_emit_feed_forward(b, il);
    if (b->d.n_experts) emit_experts(b, il);
    if (b->d.n_layer_input) emit_layer_input(b, il);
    b->pending.stream_scale = pn_bind_vector(b, il, "layer_output_scale.weight", 1, false);
}

/* The last layers have no keys and values: they read those of the last layer of their kind before them, which must be one of the last two. */
static void share_kv(pn_builder *b)
{
    pn_layer *layers = b->d.layers;
    const int32_t n = (int32_t)pn_meta_int_within(b, "attention.shared_kv_layers", 0, 0, b->d.n_layers - 1), first = b->d.n_layers - n;
    for (int32_t il = first; il < b->d.n_layers && !b->status; il++) {
        const bool slides = layers[il].window > 0;
        const int32_t from = first - (slides ? 2 : 1);
        if (from < 0 || (layers[from].window > 0) != slides) {
            pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.attention.shared_kv_layers' is %d, and no layer of its kind has keys and values for layer %d", b->arch, (int)n,
                          (int)il);
            return;
        }
        layers[il].kv_layer = from;
        layers[il].n_head_kv = layers[from].n_head_kv;
        if (layers[il].n_head_kv == 0 || layers[il].n_head % layers[il].n_head_kv)
            pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.attention.head_count' is %d in layer %d, no multiple of the %d key-value heads that it shares", b->arch,
                          (int)layers[il].n_head, (int)il, (int)layers[il].n_head_kv);
    }
}

static void describe_layers(pn_builder *b)
{
    pn_decoder *d = &b->d;
    const int32_t whole = b->status ? 1 : d->layers[0].d_k, n_rot = (int32_t)pn_meta_int_within(b, "rope.dimension_count", whole, 2, whole);
    const int32_t d_k = (int32_t)pn_meta_int(b, "attention.key_length_swa", PN_REQUIRED);
    const int32_t d_v = (int32_t)pn_meta_int(b, "attention.value_length_swa", PN_REQUIRED);
    const int32_t n_rot_slid = (int32_t)pn_meta_int_within(b, "rope.dimension_count_swa", n_rot, 2, d_k);
    if (!pn_meta_is_array(b, "attention.sliding_window_pattern"))
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks the list '%s.attention.sliding_window_pattern'", b->arch);
    pn_describe_windows(b, (int32_t)pn_meta_int_within(b, "attention.sliding_window", PN_REQUIRED, 1, INT32_MAX), 0);
    const double base_slid = (double)pn_meta_float(b, "rope.freq_base_swa", 10000.0);
    const int ropes[2] = {pn_describe_rope(b, (pn_rope_want){.neox = true, .scaled = true, .factors = true, .d_k = whole, .n_rot = n_rot}),
                          pn_describe_rope(b, (pn_rope_want){.neox = true, .scaled = true, .base = base_slid, .d_k = d_k, .n_rot = n_rot_slid})};
    for (int32_t il = 0; il < d->n_layers && !b->status; il++) {
        pn_layer *l = &d->layers[il];
        l->mixer = mixer;
        l->feed_forward = feed_forward;
        l->v_normed = true;
        l->rope = ropes[l->window > 0];
        if (l->window > 0) l->d_k = d_k;
        if (l->window > 0) l->d_v = d_v;
    }
}

void pn_gemma4_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->embedding_scale = sqrtf((float)d->n_embd);
    d->gate = PN_GATE_GELU;
    d->qk_norm = PN_QK_HEAD;
    d->q_scale = 1.0f;
    d->post_attn_norm = "post_attention_norm.weight";
    d->post_ffn_norm = "post_ffw_norm.weight";
    d->final_softcap = pn_meta_float(b, "final_logit_softcapping", 30.0);
    d->n_dense = d->n_layers; /* experts stand beside the dense block */
    d->n_ff_expert = (int32_t)pn_meta_int_within(b, "expert_feed_forward_length", d->n_experts ? PN_REQUIRED : 0, d->n_experts ? 1 : 0, PN_MAX_FF);
    d->n_layer_input = (int32_t)pn_meta_int(b, "embedding_length_per_layer_input", PN_REQUIRED);
    describe_layers(b);
    if (!b->status) share_kv(b);
}
