/* The Mamba-2 mixer: [z | x | B | C | dt] = ssm_in(h), convolution of x, B and C, selective scan, silu(z) times its result, norm by groups, ssm_out. */
#include "models/build.h"

void pn_describe_mamba(pn_builder *b)
{
    pn_mamba *m = &b->d.mamba;
    m->n_taps = (int32_t)pn_meta_int(b, "ssm.conv_kernel", PN_REQUIRED);
    m->inner = (int32_t)pn_meta_int(b, "ssm.inner_size", PN_REQUIRED);
    m->d_state = (int32_t)pn_meta_int(b, "ssm.state_size", PN_REQUIRED);
    m->n_head = (int32_t)pn_meta_int(b, "ssm.time_step_rank", PN_REQUIRED);
    m->n_groups = (int32_t)pn_meta_int(b, "ssm.group_count", PN_REQUIRED);
    if (!b->status && m->inner % m->n_head)
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.ssm.inner_size' is %d, no multiple of the %d heads of 'ssm.time_step_rank'", b->arch, (int)m->inner, (int)m->n_head);
    if (!b->status && m->n_head % m->n_groups)
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.ssm.time_step_rank' is %d, no multiple of the %d groups of 'ssm.group_count'", b->arch, (int)m->n_head, (int)m->n_groups);
}

static int64_t channels_of(const pn_mamba *m) { return m->inner + 2 * (int64_t)m->n_groups * m->d_state; }
static int64_t width_of(const pn_mamba *m) { return m->inner + channels_of(m) + m->n_head; }

const pn_weight *pn_bind_mamba_in(pn_builder *b, int32_t il) { return pn_bind(b, il, "ssm_in.weight", b->d.n_embd, width_of(&b->d.mamba), true); }

void pn_emit_mamba_in(pn_builder *b, int32_t il, const pn_weight *in, pn_prep prep)
{
    pn_emit_output(pn_emit_matmul(b, il, prep), in, NULL, false, pn_emit_buffer(b, "ssm", width_of(&b->d.mamba)), 0);
}

static void emit_conv(pn_builder *b, int32_t il, int buffer)
{
    static const char *const name = "ssm_conv1d.weight";
    const pn_mamba *m = &b->d.mamba;
    const int64_t channels = channels_of(m);
    const float *taps = pn_bind_taps(b, il, &name, &channels, 1, m->n_taps), *bias = pn_bind_vector(b, il, "ssm_conv1d.bias", channels, false);
    pn_step *s = pn_emit(b, &pn_step_conv, il);
    if (s)
        s->u.conv = (pn_conv){.buffer = buffer, .layer = il, .column = m->inner, .out = m->inner, .channels = channels, .in_gate = PN_NONE, .out_gate = PN_NONE, .taps = taps,
                              .bias = bias, .n_taps = m->n_taps, .silu = true};
}

/* Recurrent floats: the convolution's tail, whole cache lines of it, then the heads' states. */
static void emit_scan(pn_builder *b, int32_t il, int buffer)
{
    const pn_mamba *m = &b->d.mamba;
    const int64_t tail = (int64_t)pn_round_up((uint64_t)(channels_of(m) * (m->n_taps - 1)), 16), head = m->inner / m->n_head;
    const float *dt_bias = pn_bind_vector(b, il, "ssm_dt.bias", m->n_head, true), *a = pn_bind_table(b, il, "ssm_a", 1, m->n_head, true);
    const float *skip = pn_bind_table(b, il, "ssm_d", 1, m->n_head, true);
    pn_step *s = pn_emit(b, &pn_step_ssm, il);
    if (!s) return;
    s->u.ssm = (pn_ssm){.buffer = buffer, .layer = il, .state = tail, .n_head = m->n_head, .head = (int32_t)head, .n_groups = m->n_groups, .d_state = m->d_state, .dt_bias = dt_bias,
                        .a = a, .skip = skip};
    b->net->plan.shapes[il].recurrent = tail + m->n_head * pn_ssm_floats(head, m->d_state);
}

void pn_emit_mamba_out(pn_builder *b, int32_t il, int value)
{
    const pn_mamba *m = &b->d.mamba;
    const int buffer = pn_emit_buffer(b, "ssm", 0);
    emit_conv(b, il, buffer);
    emit_scan(b, il, buffer);
    const float *norm = pn_bind_table(b, il, "ssm_norm.weight", m->inner / m->n_groups, m->n_groups, m->normed);
    const pn_weight *out = pn_bind(b, il, "ssm_out.weight", m->inner, b->d.n_embd, true);
    const pn_prep prep = {.source = buffer, .width = m->inner, .update = {.from = PN_NONE}, .norm = norm, .groups = m->n_groups, .eps = b->d.eps, .formats = pn_formats_of(&out, 1)};
    pn_emit_output(pn_emit_matmul(b, il, prep), out, NULL, false, value, 0);
}

void pn_emit_mamba(pn_builder *b, int32_t il)
{
    const float *norm = pn_bind_vector(b, il, b->d.attn_norm, b->d.n_embd, true);
    const pn_weight *in = pn_bind_mamba_in(b, il);
    const int value = pn_emit_buffer(b, "value", b->d.n_embd);
    pn_emit_mamba_in(b, il, in, pn_emit_prep(b, norm, pn_formats_of(&in, 1)));
    pn_emit_mamba_out(b, il, value);
    b->pending = (pn_update){.from = value, .shared = PN_NONE, .scale = b->d.residual_scale};
}
