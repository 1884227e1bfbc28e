/* Delta-rule layers: queries, keys and values through a causal convolution, the rule, norm and gate of each head. Gated DeltaNet of Qwen has a decay for each
 * head and SiLU gates, Kimi delta attention (KDA) a decay for each key channel and sigmoid gates. */
#include "models/build.h"

/* Columns of the buffer: [q | k | v], which the convolution passes over, then gate, beta and decay. */
typedef struct columns {
    int64_t key, value, gate, beta, decay, end;
} columns;

/* Matrices on the layer's input: at most four for q, k, v and gate, two for beta and decay. */
typedef struct inputs {
    const pn_weight *w[6];
    int64_t column[6];
    int n;
} inputs;

static void add(inputs *in, const pn_weight *w, int64_t column)
{
    in->w[in->n] = w;
    in->column[in->n++] = column;
}

/* Old files of qwen3next hold q, k, v and gate of a key head together. */
static void bind_old_qkvz(pn_builder *b, int32_t il, inputs *in, const columns *c)
{
    const pn_delta_dims *n = &b->d.delta;
    const int64_t E = b->d.n_embd, d = n->d, r = n->n_v / n->n_k * d, stride = 2 * d + 2 * r, total = stride * n->n_k;
    const pn_rows rows[4] = {{0, d, stride, n->n_k}, {d, d, stride, n->n_k}, {2 * d, r, stride, n->n_k}, {2 * d + r, r, stride, n->n_k}};
    const int64_t column[4] = {0, c->key, c->value, c->gate};
    for (int i = 0; i < 4; i++) add(in, pn_bind_runs(b, il, "ssm_in.weight", E, total, rows[i]), column[i]);
}

static void bind_beta_decay(pn_builder *b, int32_t il, inputs *in, const columns *c)
{
    const pn_delta_dims *n = &b->d.delta;
    const int64_t E = b->d.n_embd, r = n->n_v / n->n_k;
    if (!pn_has_tensor(b, il, "ssm_ba.weight")) {
        add(in, pn_bind(b, il, "ssm_beta.weight", E, n->n_v, true), c->beta);
        add(in, pn_bind(b, il, "ssm_alpha.weight", E, n->n_v, true), c->decay);
        return;
    }
    add(in, pn_bind_runs(b, il, "ssm_ba.weight", E, 2 * n->n_v, (pn_rows){0, r, 2 * r, n->n_k}), c->beta); /* both of a key head together */
    add(in, pn_bind_runs(b, il, "ssm_ba.weight", E, 2 * n->n_v, (pn_rows){r, r, 2 * r, n->n_k}), c->decay);
}

static void emit_inputs(pn_builder *b, int32_t il, int buffer, const columns *c)
{
    const int64_t E = b->d.n_embd;
    const float *norm = pn_bind_vector(b, il, b->d.attn_norm, E, true);
    inputs in = {.n = 0};
    if (pn_has_tensor(b, il, "ssm_in.weight") && !pn_has_tensor(b, il, "attn_qkv.weight")) {
        bind_old_qkvz(b, il, &in, c);
    } else {
        add(&in, pn_bind(b, il, "attn_qkv.weight", E, c->gate, true), 0);
        add(&in, pn_bind(b, il, "attn_gate.weight", E, c->beta - c->gate, true), c->gate);
    }
    bind_beta_decay(b, il, &in, c);
    pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, pn_formats_of(in.w, in.n)));
    for (int i = 0; i < in.n; i++) pn_emit_output(s, in.w[i], NULL, false, buffer, in.column[i]);
}

/* The convolution's tails come first in the layer's recurrent floats, then the heads' states, on a cache line of their own. */
static void emit_conv(pn_builder *b, int32_t il, int buffer, int64_t channels, const float *taps)
{
    pn_step *s = pn_emit(b, &pn_step_conv, il);
    if (s) s->u.conv = (pn_conv){.buffer = buffer, .layer = il, .channels = channels, .in_gate = PN_NONE, .out_gate = PN_NONE, .taps = taps, .n_taps = b->d.delta.n_taps, .silu = true};
}

static void emit_rule(pn_builder *b, int32_t il, pn_delta rule, int64_t channels)
{
    const pn_delta_dims *n = &b->d.delta;
    rule.layer = il;
    rule.state = (int64_t)pn_round_up((uint64_t)(channels * (n->n_taps - 1)), 16);
    rule.n_k = n->n_k;
    rule.n_v = n->n_v;
    rule.d_k = rule.d_v = n->d;
    rule.eps = b->d.eps;
    pn_step *s = pn_emit(b, &pn_step_delta, il);
    if (s) s->u.delta = rule;
    b->net->plan.shapes[il] = (pn_layer_shape){.recurrent = rule.state + (int64_t)n->n_v * n->d * (int64_t)pn_round_up((uint64_t)n->d, 16)};
}

static void emit_out(pn_builder *b, int32_t il, const char *name, int heads)
{
    const int64_t width = (int64_t)b->d.delta.n_v * b->d.delta.d;
    const pn_weight *w = pn_bind(b, il, name, width, b->d.n_embd, true);
    const pn_prep prep = {.source = heads, .width = width, .update = {.from = PN_NONE}, .formats = pn_formats_of(&w, 1)};
    pn_emit_to_stream(b, il, w, NULL, false, prep, b->d.post_attn_norm);
}

void pn_emit_gated_delta(pn_builder *b, int32_t il)
{
    static const char *const taps_name = "ssm_conv1d.weight";
    const pn_delta_dims *n = &b->d.delta;
    const int64_t keys = (int64_t)n->n_k * n->d, values = (int64_t)n->n_v * n->d, channels = 2 * keys + values;
    const columns c = {.key = keys, .value = 2 * keys, .gate = channels, .beta = channels + values, .decay = channels + values + n->n_v, .end = channels + values + 2 * n->n_v};
    const int buffer = pn_emit_buffer(b, "delta", c.end), heads = pn_emit_buffer(b, "heads", values);
    if (b->status) return;
    emit_inputs(b, il, buffer, &c);
    emit_conv(b, il, buffer, channels, pn_bind_taps(b, il, &taps_name, &channels, 1, n->n_taps));
    const pn_delta rule = {.buffer = buffer, .out = heads, .query = 0, .key = c.key, .value = c.value, .gate = c.gate, .beta = c.beta, .decay = c.decay, .tiled = n->tiled,
                           .decay_of = PN_DECAY_SOFTPLUS, .a = pn_bind_vector(b, il, "ssm_a", n->n_v, true), .dt = pn_bind_vector(b, il, "ssm_dt.bias", n->n_v, true),
                           .norm = pn_bind_vector(b, il, "ssm_norm.weight", n->d, true)};
    emit_rule(b, il, rule, channels);
    emit_out(b, il, "ssm_out.weight", heads);
}

/* ---- KDA ------------------------------------------------------------------------------------------------------------------------------ */

/* A projection in one matrix, or in two by way of a few channels. */
typedef struct projection {
    const pn_weight *first, *second; /* second NULL: one */
    int low;                         /* buffer between the two */
    int64_t column;
} projection;

static projection bind_projection(pn_builder *b, int32_t il, const char *const names[3], const char *buffer, int64_t width, int64_t column)
{
    enum { MAX_LOW = 1 << 16 };
    projection p = {.low = PN_NONE, .column = column};
    const char *first = pn_has_tensor(b, il, names[0]) ? names[0] : names[1];
    if (!pn_has_tensor(b, il, names[2])) {
        p.first = pn_bind(b, il, first, b->d.n_embd, width, true);
        return p;
    }
    const int64_t low = pn_tensor_rows(b, il, first, MAX_LOW);
    p.first = pn_bind(b, il, first, b->d.n_embd, low, true);
    p.second = pn_bind(b, il, names[2], low, width, true);
    p.low = pn_emit_buffer(b, buffer, low);
    return p;
}

static void emit_second(pn_builder *b, int32_t il, const projection *p, int buffer)
{
    if (!p->second) return;
    const pn_prep prep = {.source = p->low, .width = p->second->k, .update = {.from = PN_NONE}, .formats = pn_formats_of(&p->second, 1)};
    pn_emit_output(pn_emit_matmul(b, il, prep), p->second, NULL, false, buffer, p->column);
}

static void emit_kda_inputs(pn_builder *b, int32_t il, int buffer, const columns *c)
{
    static const char *const qkv[3] = {"attn_q.weight", "attn_k.weight", "attn_v.weight"};
    static const char *const decay[3] = {"ssm_f_a.weight", "ssm_f.weight", "ssm_f_b.weight"}, *const gate[3] = {"ssm_g_a.weight", "ssm_g.weight", "ssm_g_b.weight"};
    const int64_t E = b->d.n_embd, D = c->key;
    const float *norm = pn_bind_vector(b, il, b->d.attn_norm, E, true);
    const pn_weight *w[6];
    for (int i = 0; i < 3; i++) w[i] = pn_bind(b, il, qkv[i], E, D, true);
    const projection f = bind_projection(b, il, decay, "decay latent", D, c->decay), g = bind_projection(b, il, gate, "gate latent", D, c->gate);
    w[3] = f.first;
    w[4] = g.first;
    w[5] = pn_bind(b, il, "ssm_beta.weight", E, b->d.delta.n_v, true);
    const int to[6] = {buffer, buffer, buffer, f.second ? f.low : buffer, g.second ? g.low : buffer, buffer};
    const int64_t column[6] = {0, c->key, c->value, f.second ? 0 : c->decay, g.second ? 0 : c->gate, c->beta};
    pn_step *s = pn_emit_matmul(b, il, pn_emit_prep(b, norm, pn_formats_of(w, 6)));
    for (int i = 0; i < 6; i++) pn_emit_output(s, w[i], NULL, false, to[i], column[i]);
    emit_second(b, il, &f, buffer);
    emit_second(b, il, &g, buffer);
}

void pn_emit_kda(pn_builder *b, int32_t il)
{
    static const char *const taps_names[3] = {"ssm_conv1d_q.weight", "ssm_conv1d_k.weight", "ssm_conv1d_v.weight"};
    const pn_delta_dims *n = &b->d.delta;
    const int64_t D = (int64_t)n->n_v * n->d, channels[3] = {D, D, D};
    const columns c = {.key = D, .value = 2 * D, .gate = 3 * D, .decay = 4 * D, .beta = 5 * D, .end = 5 * D + n->n_v};
    const int buffer = pn_emit_buffer(b, "delta", c.end), heads = pn_emit_buffer(b, "heads", D);
    if (b->status) return;
    emit_kda_inputs(b, il, buffer, &c);
    emit_conv(b, il, buffer, 3 * D, pn_bind_taps(b, il, taps_names, channels, 3, n->n_taps));
    const pn_delta rule = {.buffer = buffer, .out = heads, .query = 0, .key = c.key, .value = c.value, .gate = c.gate, .beta = c.beta, .decay = c.decay, .decay_channels = true,
                           .decay_of = n->bound < 0.0f ? PN_DECAY_BOUNDED : PN_DECAY_SOFTPLUS, .bound = n->bound, .a = pn_bind_table(b, il, "ssm_a", 1, n->n_v, true),
                           .dt = pn_bind_vector(b, il, "ssm_dt.bias", D, true), .norm = pn_bind_vector(b, il, "ssm_norm.weight", n->d, true), .sigmoid_gate = true};
    emit_rule(b, il, rule, 3 * D);
    emit_out(b, il, "attn_output.weight", heads);
}
