/* Emits a decoder as steps: what the architectures' descriptions have in common. */
#include "models/build.h"

int pn_emit_buffer(pn_builder *b, const char *name, int64_t width)
{
    const int id = pn_plan_buffer(b->plan, name, width);
    if (id == PN_NONE) pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "the plan has more buffers than it may");
    return id;
}

pn_step *pn_emit(pn_builder *b, const pn_step_kind *kind, int32_t layer)
{
    if (b->status) return NULL;
    pn_step *s = pn_plan_step(b->plan, kind, layer);
    if (!s) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for the plan");
    return s;
}

pn_prep pn_emit_prep(pn_builder *b, const float *norm, unsigned formats)
{
    const pn_prep prep = {.source = PN_STREAM, .width = b->d.n_embd, .update = b->pending, .norm = norm, .eps = b->d.eps, .formats = formats};
    b->pending = (pn_update){.from = PN_NONE};
    return prep;
}

unsigned pn_formats_of(const pn_weight *const *w, int n)
{
    unsigned bits = 0;
    for (int i = 0; i < n; i++)
        if (w[i]) bits |= pn_act_bit(pn_weight_act(w[i]));
    return bits;
}

pn_step *pn_emit_matmul(pn_builder *b, int32_t layer, pn_prep prep)
{
    pn_step *s = pn_emit(b, &pn_step_matmul, layer);
    if (s) s->u.matmul = (pn_matmul){.prep = prep, .scale = 1.0f};
    return s;
}

void pn_emit_output(pn_step *s, const pn_weight *w, const float *bias, bool bias_first, int buffer, int64_t column)
{
    if (s && w) s->u.matmul.out[s->u.matmul.n++] = (pn_output){.w = w, .bias = bias, .bias_first = bias_first, .buffer = buffer, .column = column};
}

void pn_emit_begin(pn_builder *b)
{
    pn_emit_buffer(b, "stream", b->d.n_embd);
    b->pending = (pn_update){.from = PN_NONE};
    pn_emit(b, &pn_step_begin, -1);
}

/* ---- attention ------------------------------------------------------------------------------------------------------------------------ */

/* Where the query's rows of attn_q hold gates beside them: q, k, v and the gates, from one fused tensor or three. */
static void emit_gated_qkv(pn_builder *b, int32_t il, int buffer, const float *norm, unsigned also)
{
    const pn_layer *l = &b->d.layers[il];
    const int64_t E = b->d.n_embd, q = (int64_t)l->n_head * l->d_k, k = (int64_t)l->n_head_kv * l->d_k, v = (int64_t)l->n_head_kv * l->d_v;
    const bool fused = pn_has_tensor(b, il, "attn_qkv.weight");
    const char *q_name = fused ? "attn_qkv.weight" : "attn_q.weight";
    const int64_t total = fused ? 2 * q + k + v : 2 * q;
    const pn_weight *w[4] = {pn_bind_runs(b, il, q_name, E, total, (pn_rows){0, l->d_k, 2 * l->d_k, l->n_head}),
                             fused ? pn_bind_runs(b, il, q_name, E, total, (pn_rows){2 * q, k, k, 1}) : pn_bind(b, il, "attn_k.weight", E, k, true),
                             fused ? pn_bind_runs(b, il, q_name, E, total, (pn_rows){2 * q + k, v, v, 1}) : pn_bind(b, il, "attn_v.weight", E, v, true),
                             pn_bind_runs(b, il, q_name, E, total, (pn_rows){l->d_k, l->d_k, 2 * l->d_k, l->n_head})};
    const int64_t column[4] = {0, q, q + k, q + k + v};
    pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, pn_formats_of(w, 4) | also));
    for (int i = 0; i < 4; i++) pn_emit_output(s, w[i], NULL, false, buffer, column[i]);
}

static bool values_are_keys(pn_builder *b, int32_t il)
{
    return b->d.layers[il].v_normed && !pn_has_tensor(b, il, "attn_v.weight") && !pn_has_tensor(b, il, "attn_qkv.weight");
}

/* q, k, v and the heads' gates into one buffer, from one fused tensor or three; `also`: formats that the next step wants of the same input. */
static void emit_qkv(pn_builder *b, int32_t il, int buffer, unsigned also)
{
    const pn_layer *l = &b->d.layers[il];
    const int64_t E = b->d.n_embd, q = (int64_t)l->n_head * l->d_k, k = (int64_t)l->n_head_kv * l->d_k, v = (int64_t)l->n_head_kv * l->d_v;
    const float *norm = b->d.attn_norm ? pn_bind_vector(b, il, b->d.attn_norm, E, true) : NULL;
    if (l->gated_channels) {
        emit_gated_qkv(b, il, buffer, norm, also);
        return;
    }
    const pn_weight *gate = l->gated_heads ? pn_bind(b, il, "attn_gate.weight", E, l->n_head, true) : NULL;
    if (pn_has_tensor(b, il, "attn_qkv.weight")) {
        const pn_weight *w[2] = {pn_bind(b, il, "attn_qkv.weight", E, q + k + v, true), gate};
        pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, also | pn_formats_of(w, 2)));
        pn_emit_output(s, w[0], pn_bind_vector(b, il, "attn_qkv.bias", q + k + v, false), false, buffer, 0);
        pn_emit_output(s, gate, NULL, false, buffer, q + k + v);
        return;
    }
    const bool own = l->kv_layer == il, has_v = own && !values_are_keys(b, il);
    const pn_weight *w[4] = {pn_bind(b, il, "attn_q.weight", E, q, true), own ? pn_bind(b, il, "attn_k.weight", E, k, true) : NULL,
                             has_v ? pn_bind(b, il, "attn_v.weight", E, v, true) : NULL, gate};
    const float *bias[4] = {pn_bind_vector(b, il, "attn_q.bias", q, false), pn_bind_vector(b, il, "attn_k.bias", k, false), pn_bind_vector(b, il, "attn_v.bias", v, false)};
    const int64_t column[4] = {0, q, q + k, q + k + v};
    pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, also | pn_formats_of(w, 4)));
    for (int i = 0; i < 4; i++) pn_emit_output(s, w[i], bias[i], false, buffer, column[i]);
}

static void emit_rope_kv(pn_builder *b, int32_t il, int buffer)
{
    const pn_decoder *d = &b->d;
    const pn_layer *l = &d->layers[il];
    const float *norms[2] = {NULL, NULL};
    const bool own = l->kv_layer == il, v_of_k = own && values_are_keys(b, il);
    if (v_of_k && l->d_k != l->d_v)
        pn_build_fail(b, PINCH_ERR_FORMAT, "tensor 'blk.%d.attn_v.weight' is missing, and keys of %d channels are no values of %d", (int)il, (int)l->d_k, (int)l->d_v);
    if (d->qk_norm != PN_QK_NONE) {
        const bool whole = d->qk_norm == PN_QK_WHOLE;
        norms[0] = pn_bind_vector(b, il, "attn_q_norm.weight", whole ? (int64_t)l->n_head * l->d_k : l->d_k, true);
        if (own) norms[1] = pn_bind_vector(b, il, "attn_k_norm.weight", whole ? (int64_t)l->n_head_kv * l->d_k : l->d_k, true);
    }
    pn_step *s = pn_emit(b, &pn_step_rope_kv, il);
    if (!s) return;
    s->u.rope_kv = (pn_rope_kv){.buffer = buffer, .layer = il, .n_head = l->n_head, .n_head_kv = own ? l->n_head_kv : 0, .d_k = l->d_k, .d_v = l->d_v,
                                .q_norm = norms[0], .k_norm = norms[1],
                                .norm_whole = d->qk_norm == PN_QK_WHOLE, .eps = d->eps, .rope = l->rope, .q_scale = d->q_scale, .temperature = d->temperature,
                                .temperature_length = d->temperature_length, .v_normed = l->v_normed, .v_of_k = v_of_k};
    if (own) b->net->plan.shapes[il] = (pn_layer_shape){.n_head = l->n_head_kv, .d_k = l->d_k, .d_v = l->d_v, .window = l->window};
}

void pn_emit_to_stream(pn_builder *b, int32_t il, const pn_weight *w, const float *bias, bool bias_first, pn_prep prep, const char *post_norm)
{
    const int value = pn_emit_buffer(b, "value", b->d.n_embd);
    pn_emit_output(pn_emit_matmul(b, il, prep), w, bias, bias_first, value, 0);
    b->pending = (pn_update){.from = value, .shared = PN_NONE, .post_norm = post_norm ? pn_bind_vector(b, il, post_norm, b->d.n_embd, true) : NULL, .scale = b->d.residual_scale};
}

static int64_t qkv_width(const pn_layer *l) { return ((int64_t)l->n_head + l->n_head_kv) * l->d_k + (int64_t)l->n_head_kv * l->d_v; }

static int64_t gates_width(const pn_layer *l) { return l->gated_channels ? (int64_t)l->n_head * l->d_v : l->gated_heads ? l->n_head : 0; }

void pn_emit_attention_in(pn_builder *b, int32_t il, unsigned also)
{
    const pn_layer *l = &b->d.layers[il];
    if (!b->status && (l->n_head == 0 || l->n_head_kv == 0)) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata gives layer %d of '%s' no attention heads", (int)il, b->arch);
    if (b->status) return;
    const int qkv = pn_emit_buffer(b, "qkv", qkv_width(l) + gates_width(l));
    if (!b->status) emit_qkv(b, il, qkv, also);
}

void pn_emit_attention_out(pn_builder *b, int32_t il, int value)
{
    const pn_layer *l = &b->d.layers[il];
    if (b->status) return;
    const int64_t width = (int64_t)l->n_head * l->d_v;
    const int qkv = pn_emit_buffer(b, "qkv", 0), heads = pn_emit_buffer(b, "heads", width);
    emit_rope_kv(b, il, qkv);
    const pn_weight *w = pn_bind(b, il, "attn_output.weight", width, b->d.n_embd, true);
    const float *bias = pn_bind_vector(b, il, "attn_output.bias", b->d.n_embd, false), *norm = b->d.heads_norm ? pn_bind_vector(b, il, b->d.heads_norm, width, true) : NULL;
    const pn_prep prep = {.source = heads, .width = width, .update = {.from = PN_NONE}, .norm = norm, .eps = b->d.eps, .formats = pn_formats_of(&w, 1), .in_attention = true};
    const float *sinks = b->d.sinks ? pn_bind_vector(b, il, "attn_sinks.weight", l->n_head, true) : NULL;
    pn_step *s = pn_emit(b, &pn_step_attention, il);
    if (!s) return;
    s->u.attention = (pn_attention){.buffer = qkv, .out = heads, .layer = l->kv_layer, .n_head = l->n_head, .n_head_kv = l->n_head_kv, .d_k = l->d_k, .d_v = l->d_v,
                                    .softcap = b->d.attn_softcap,
                                    .gate_column = gates_width(l) ? qkv_width(l) : PN_NONE, .gated_channels = l->gated_channels, .sinks = sinks, .emit = prep};
    pn_emit_output(pn_emit_matmul(b, il, prep), w, bias, false, value, 0);
}

void pn_emit_attention(pn_builder *b, int32_t il)
{
    pn_emit_attention_in(b, il, 0);
    const int value = pn_emit_buffer(b, "value", b->d.n_embd);
    pn_emit_attention_out(b, il, value);
    const float *post_norm = b->d.post_attn_norm ? pn_bind_vector(b, il, b->d.post_attn_norm, b->d.n_embd, true) : NULL;
    b->pending = (pn_update){.from = value, .shared = PN_NONE, .post_norm = post_norm, .scale = b->d.residual_scale};
}

/* ---- feed-forward --------------------------------------------------------------------------------------------------------------------- */

/* Gate and up on one input, multiplied into buffer "hidden"; up NULL: what would be the gate alone. */
static void emit_gated(pn_builder *b, int32_t il, const pn_weight *gate, const pn_weight *up, const float *gate_bias, const float *up_bias, pn_prep prep)
{
    const int hidden = pn_emit_buffer(b, "hidden", gate ? gate->rows : 0);
    pn_step *s = pn_emit_matmul(b, il, prep);
    if (!s) return;
    s->u.matmul.gate = b->d.gate;
    s->u.matmul.clamp = b->d.layers[il].clamp;
    pn_emit_output(s, gate, gate_bias, true, hidden, 0);
    pn_emit_output(s, up, up_bias, true, PN_NONE, 0);
}

static pn_prep hidden_prep(pn_builder *b, const pn_weight *down, const float *norm)
{
    return (pn_prep){.source = pn_emit_buffer(b, "hidden", 0), .width = down ? down->k : 0, .update = {.from = PN_NONE}, .norm = norm, .eps = b->d.eps, .formats = pn_formats_of(&down, 1)};
}

/* w[0] with its bias goes through the activation; w[1], NULL where nothing is gated, multiplies the result. */
static void bind_up(pn_builder *b, int32_t il, int64_t F, const pn_weight *w[2], const float *bias[2])
{
    const int64_t E = b->d.n_embd;
    w[1] = NULL;
    bias[0] = bias[1] = NULL;
    if (b->d.gate_in_up) {
        w[0] = pn_bind_part(b, il, "ffn_up.weight", E, 2 * F, 0, F);
        w[1] = pn_bind_part(b, il, "ffn_up.weight", E, 2 * F, F, F);
        return;
    }
    const int up = b->d.ungated ? 0 : 1;
    if (up) {
        w[0] = pn_bind(b, il, "ffn_gate.weight", E, F, true);
        bias[0] = pn_bind_vector(b, il, "ffn_gate.bias", F, false);
    }
    w[up] = pn_bind(b, il, "ffn_up.weight", E, F, true);
    bias[up] = pn_bind_vector(b, il, "ffn_up.bias", F, false);
}

static void emit_dense(pn_builder *b, int32_t il, const float *norm)
{
    const int64_t E = b->d.n_embd, F = b->d.layers[il].n_ff;
    if (F == 0) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks '%s.feed_forward_length'", b->arch);
    const pn_weight *w[2];
    const float *bias[2];
    bind_up(b, il, F, w, bias);
    emit_gated(b, il, w[0], w[1], bias[0], bias[1], pn_emit_prep(b, norm, pn_formats_of(w, 2)));
    const pn_weight *down = pn_bind(b, il, "ffn_down.weight", F, E, true);
    const float *hidden_norm = b->d.hidden_norm ? pn_bind_vector(b, il, b->d.hidden_norm, F, true) : NULL;
    pn_emit_to_stream(b, il, down, pn_bind_vector(b, il, "ffn_down.bias", E, false), true, hidden_prep(b, down, hidden_norm), b->d.post_ffn_norm);
}

typedef struct mixture {
    const float *bias;        /* of the choice */
    const float *router_bias, *gate_bias, *up_bias, *down_bias;
    const pn_weight *router, *gate, *up, *down;
    const pn_weight *shared_gate, *shared_up, *shared_down, *shared_share; /* without a gate up stands in its place */
    const pn_weight *latent_down, *latent_up; /* before and after the experts, which are narrower than the stream */
    int64_t width;            /* of an expert's input and result */
    const float *norm;        /* of the stream as the experts' own input; NULL: what the router got */
} mixture;

static void bind_experts(pn_builder *b, int32_t il, int64_t F, mixture *m)
{
    const pn_decoder *d = &b->d;
    if (pn_has_tensor(b, il, "ffn_gate_up_exps.weight")) {
        m->gate = pn_bind_matrices(b, il, "ffn_gate_up_exps.weight", (pn_matrices){.k = m->width, .total = 2 * F, .rows = F, .n = d->n_experts});
        m->up = pn_bind_matrices(b, il, "ffn_gate_up_exps.weight", (pn_matrices){.k = m->width, .total = 2 * F, .first = F, .rows = F, .n = d->n_experts});
    } else {
        m->gate = pn_bind_experts(b, il, "ffn_gate_exps.weight", m->width, F, d->n_experts, false);
        m->up = pn_bind_experts(b, il, "ffn_up_exps.weight", m->width, F, d->n_experts, true);
        m->gate_bias = pn_bind_table(b, il, "ffn_gate_exps.bias", F, d->n_experts, false);
        m->up_bias = pn_bind_table(b, il, "ffn_up_exps.bias", F, d->n_experts, false);
    }
    m->down = pn_bind_experts(b, il, "ffn_down_exps.weight", F, m->width, d->n_experts, true);
    m->down_bias = pn_bind_table(b, il, "ffn_down_exps.bias", m->width, d->n_experts, false);
}

static mixture bind_mixture(pn_builder *b, int32_t il)
{
    const pn_decoder *d = &b->d;
    const int64_t E = d->n_embd, F = d->n_ff_expert, S = d->n_ff_shared == PN_WIDTH_OF_TENSOR ? pn_tensor_rows(b, il, "ffn_up_shexp.weight", PN_MAX_FF) : d->n_ff_shared;
    if (F == 0) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata gives experts no width: '%s.feed_forward_length' or '%s.expert_feed_forward_length'", b->arch, b->arch);
    mixture m = {.router = pn_bind(b, il, "ffn_gate_inp.weight", E, d->n_experts, true), .bias = pn_bind_vector(b, il, "exp_probs_b.bias", d->n_experts, false), .width = E,
                 .router_bias = pn_bind_vector(b, il, "ffn_gate_inp.bias", d->n_experts, false)};
    if (pn_has_tensor(b, il, "ffn_latent_down.weight")) {
        m.width = pn_tensor_rows(b, il, "ffn_latent_down.weight", PN_MAX_FF);
        m.latent_down = pn_bind(b, il, "ffn_latent_down.weight", E, m.width, true);
        m.latent_up = pn_bind(b, il, "ffn_latent_up.weight", m.width, E, true);
    }
    bind_experts(b, il, F, &m);
    if (S > 0) {
        const pn_weight *up = pn_bind(b, il, "ffn_up_shexp.weight", E, S, true);
        m.shared_gate = d->ungated ? up : pn_bind(b, il, "ffn_gate_shexp.weight", E, S, true);
        m.shared_up = d->ungated ? NULL : up;
        m.shared_down = pn_bind(b, il, "ffn_down_shexp.weight", S, E, true);
        if (d->gated_shared) m.shared_share = pn_bind(b, il, "ffn_gate_inp_shexp.weight", E, 1, true);
    }
    return m;
}

/* The chosen experts' results, each m->width floats, in the buffer that is returned. */
static int emit_experts(pn_builder *b, int32_t il, const mixture *m)
{
    const pn_decoder *d = &b->d;
    const int hidden = pn_emit_buffer(b, "expert hidden", d->n_ff_expert * d->n_used), out = pn_emit_buffer(b, "expert value", m->width * d->n_used);
    const pn_weight *inputs[2] = {m->gate, m->up};
    pn_prep prep = {.source = PN_NONE, .update = {.from = PN_NONE}};
    if (m->norm) prep = (pn_prep){.source = PN_STREAM, .width = m->width, .update = {.from = PN_NONE}, .norm = m->norm, .eps = d->eps, .formats = pn_formats_of(inputs, 2)};
    if (m->latent_down) prep = (pn_prep){.source = pn_emit_buffer(b, "latent", 0), .width = m->width, .update = {.from = PN_NONE}, .formats = pn_formats_of(inputs, 2)};
    pn_step *s = pn_emit(b, &pn_step_experts_up, il);
    if (!s) return out;
    s->u.up = (pn_experts_up){.prep = prep, .gate = {.w = m->gate, .bias = m->gate_bias, .buffer = hidden},
                              .up = {.w = m->up, .bias = m->up_bias, .buffer = m->gate ? PN_NONE : hidden}, .act = d->gate, .n_used = d->n_used,
                              .clamp = d->layers[il].clamp_experts};
    const pn_experts_down down = {.source = hidden, .out = {.w = m->down, .bias = m->down_bias, .buffer = out}, .n_used = d->n_used};
    s = pn_emit(b, &pn_step_experts_round, il);
    if (s) s->u.down = down;
    s = pn_emit(b, &pn_step_experts_down, il);
    if (s) s->u.down = down;
    return out;
}

static int expert_weights(pn_builder *b) { return pn_emit_buffer(b, "expert weights", b->d.n_used); }

/* The experts' weighted sum, back to the width of the stream. */
static int emit_latent_up(pn_builder *b, int32_t il, const mixture *m, int experts)
{
    const int value = pn_emit_buffer(b, "latent value", b->d.n_embd);
    const pn_prep prep = {.source = experts, .width = m->width, .n_used = b->d.n_used, .weights = expert_weights(b), .update = {.from = PN_NONE}, .formats = pn_formats_of(&m->latent_up, 1)};
    pn_emit_output(pn_emit_matmul(b, il, prep), m->latent_up, NULL, false, value, 0);
    return value;
}

static void emit_route(pn_builder *b, int32_t il, int logits, const float *bias)
{
    pn_step *s = pn_emit(b, &pn_step_route, il);
    if (s) s->u.route = (pn_route){.buffer = logits, .weights = expert_weights(b), .n_experts = b->d.n_experts, .n_used = b->d.n_used, .bias = bias, .how = b->d.routing};
}

int pn_emit_experts_beside(pn_builder *b, int32_t il, const pn_weight *router, const float *router_norm, const float *norm)
{
    const int logits = pn_emit_buffer(b, "router", b->d.n_experts);
    mixture m = {.width = b->d.n_embd, .norm = norm};
    bind_experts(b, il, b->d.n_ff_expert, &m);
    const pn_prep prep = {.source = PN_STREAM, .width = m.width, .update = {.from = PN_NONE}, .norm = router_norm, .eps = b->d.eps, .formats = pn_formats_of(&router, 1)};
    pn_emit_output(pn_emit_matmul(b, il, prep), router, NULL, false, logits, 0);
    emit_route(b, il, logits, NULL);
    return emit_experts(b, il, &m);
}

static void emit_mixture(pn_builder *b, int32_t il, const float *norm)
{
    const pn_decoder *d = &b->d;
    const mixture m = bind_mixture(b, il);
    const pn_weight *inputs[6] = {m.router, m.latent_down ? m.latent_down : m.gate, m.latent_down ? NULL : m.up, m.shared_gate, m.shared_up, m.shared_share};
    const int share = m.shared_share ? pn_emit_buffer(b, "share", 1) : PN_NONE;
    const int logits = pn_emit_buffer(b, "router", d->n_experts), value = pn_emit_buffer(b, "value", d->n_embd);
    pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, pn_formats_of(inputs, 6)));
    pn_emit_output(s, m.router, m.router_bias, false, logits, 0);
    pn_emit_output(s, m.shared_share, NULL, false, share, 0);
    if (m.latent_down) pn_emit_output(s, m.latent_down, NULL, false, pn_emit_buffer(b, "latent", m.width), 0);
    emit_route(b, il, logits, m.bias);
    const pn_prep same = {.source = PN_NONE, .update = {.from = PN_NONE}};
    if (m.shared_gate) emit_gated(b, il, m.shared_gate, m.shared_up, NULL, NULL, same);
    const int experts = emit_experts(b, il, &m);
    if (m.shared_down) pn_emit_output(pn_emit_matmul(b, il, hidden_prep(b, m.shared_down, NULL)), m.shared_down, NULL, false, value, 0);
    b->pending = (pn_update){.from = experts, .n_used = d->n_used, .weights = expert_weights(b), .shared = m.shared_down ? value : PN_NONE, .shared_gate = share, .scale = d->residual_scale};
    if (m.latent_up) {
        b->pending.from = emit_latent_up(b, il, &m, experts);
        b->pending.n_used = 0;
    }
    if (d->post_ffn_norm) b->pending.post_norm = pn_bind_vector(b, il, d->post_ffn_norm, d->n_embd, true);
}

void pn_emit_feed_forward(pn_builder *b, int32_t il)
{
    const float *norm = b->d.ffn_norm ? pn_bind_vector(b, il, b->d.ffn_norm, b->d.n_embd, true) : NULL;
    if (b->status) return;
    if (b->d.n_experts > 0 && il >= b->d.n_dense) emit_mixture(b, il, norm);
    else emit_dense(b, il, norm);
}

/* ---- ends ------------------------------------------------------------------------------------------------------------------------------- */

/* A pruned head has fewer rows than the vocabulary and says in `output_ids` which token each row is. Returns its rows. */
static int64_t head_rows(pn_builder *b)
{
    const pn_tensor *t = pn_gguf_tensor(b->g, "output_ids");
    if (!t || b->status) return b->net->n_vocab;
    if (t->type != PN_I32 || t->ne[1] != 1 || t->ne[2] != 1 || t->ne[3] != 1 || t->ne[0] < 1 || t->ne[0] > b->net->n_vocab) {
        pn_build_fail(b, PINCH_ERR_FORMAT, "tensor 'output_ids' is no list of 1 to %d 32-bit token ids", (int)b->net->n_vocab);
        return 0;
    }
    int32_t *ids = pn_arena_get(&b->net->arena, (uint64_t)t->ne[0], sizeof *ids);
    if (!ids) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for 'output_ids'");
    else b->status = pn_gguf_read(b->g, t, 0, ids, t->bytes, b->err);
    for (int64_t i = 0; !b->status && i < t->ne[0]; i++)
        if (ids[i] < 0 || ids[i] >= b->net->n_vocab) pn_build_fail(b, PINCH_ERR_FORMAT, "tensor 'output_ids' holds %d, and the vocabulary has %d tokens", (int)ids[i], (int)b->net->n_vocab);
    b->net->logit_ids = ids;
    return t->ne[0];
}

static void bind_embedding(pn_builder *b)
{
    b->net->embedding = pn_bind_rows(b, -1, "token_embd.weight", b->d.n_embd, b->net->n_vocab);
    b->net->embedding_scale = b->d.embedding_scale;
}

/* So that the stream alone is alive before the head. */
static void emit_settle(pn_builder *b)
{
    if (b->pending.from == PN_NONE) return;
    pn_step *s = pn_emit(b, &pn_step_settle, -1);
    if (s) s->u.settle = pn_emit_prep(b, NULL, 0);
}

void pn_emit_head(pn_builder *b, const float *norm, const pn_weight *w, const float *bias)
{
    pn_plan *plan = b->plan;
    const int64_t rows = w ? w->rows : 0;
    emit_settle(b);
    plan->head = plan->n_steps;
    plan->logits = pn_emit_buffer(b, "logits", rows);
    plan->n_logits = rows;
    plan->n_embd = b->d.n_embd;
    pn_step *s = pn_emit_matmul(b, -1, pn_emit_prep(b, norm, pn_formats_of(&w, 1)));
    pn_emit_output(s, w, bias, false, plan->logits, 0);
    if (!s) return;
    s->u.matmul.scale = b->d.logit_scale;
    s->u.matmul.softcap = b->d.final_softcap;
}

static void emit_trunk_head(pn_builder *b)
{
    const int64_t rows = head_rows(b);
    const bool own = !b->d.tied_always && pn_has_tensor(b, -1, "output.weight");
    const pn_weight *w = pn_bind(b, -1, own ? "output.weight" : "token_embd.weight", b->d.n_embd, rows, true);
    const float *norm = pn_bind_vector(b, -1, b->d.output_norm, b->d.n_embd, true);
    pn_emit_head(b, norm, w, pn_bind_vector(b, -1, "output.bias", rows, false));
}

void pn_emit_layer(pn_builder *b, int32_t il)
{
    const pn_layer *l = &b->d.layers[il];
    if (l->mixer) l->mixer(b, il);
    if (l->feed_forward) l->feed_forward(b, il);
}

/* The block that drafts has a layer's place in the state. */
static void open_shapes(pn_builder *b)
{
    pn_plan *plan = &b->net->plan;
    plan->n_layers = b->d.n_described;
    plan->shapes = pn_alloc_zero((uint64_t)plan->n_layers, sizeof *plan->shapes);
    if (!plan->shapes) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for %d layers", (int)plan->n_layers);
}

void pn_emit_decoder(pn_builder *b)
{
    bind_embedding(b);
    if (b->status) return;
    open_shapes(b);
    b->plan = &b->net->plan;
    pn_emit_begin(b);
    for (int32_t il = 0; il < b->d.n_layers && !b->status; il++) pn_emit_layer(b, il);
    if (b->d.end) b->d.end(b);
    emit_trunk_head(b);
    if (!b->status) pn_plan_lay_out(b->plan);
    if (b->options->draft) pn_emit_draft(b);
}
