/* qwen35, qwen35moe (Qwen 3.5 to 3.8) and qwen3next: most layers are Gated DeltaNet, the others attention with a gate for each channel of its result. */
#include "models/arch.h"

enum { INTERVAL = 4 }; /* every fourth layer is attention where the file does not say */

static void describe_delta(pn_builder *b, bool tiled)
{
    pn_delta_dims *n = &b->d.delta;
    n->tiled = tiled;
    n->n_taps = (int32_t)pn_meta_int(b, "ssm.conv_kernel", PN_REQUIRED);
    n->d = (int32_t)pn_meta_int(b, "ssm.state_size", PN_REQUIRED);
    n->n_k = (int32_t)pn_meta_int(b, "ssm.group_count", PN_REQUIRED);
    n->n_v = (int32_t)pn_meta_int(b, "ssm.time_step_rank", PN_REQUIRED);
    const int64_t inner = pn_meta_int(b, "ssm.inner_size", PN_REQUIRED);
    if (b->status) return;
    if (n->n_v % n->n_k)
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.ssm.time_step_rank' is %d, no multiple of the %d key heads of 'ssm.group_count'", b->arch, (int)n->n_v, (int)n->n_k);
    else if (inner != (int64_t)n->n_v * n->d)
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.ssm.inner_size' is %lld, and %d heads of %d channels make %lld", b->arch, (long long)inner, (int)n->n_v, (int)n->d,
                      (long long)n->n_v * n->d);
}

static bool is_recurrent(pn_builder *b, int32_t il)
{
    if (pn_meta_has(b, "attention.recurrent_layers")) return pn_meta_layer_int(b, "attention.recurrent_layers", il, 0) != 0;
    return (il + 1) % pn_meta_int(b, "full_attention_interval", INTERVAL) != 0;
}

static void hybrid(pn_builder *b, bool tiled)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->qk_norm = PN_QK_HEAD;
    d->ffn_norm = "post_attention_norm.weight";
    d->drafting = PN_DRAFTS_OWN_ENDS;
    describe_delta(b, tiled);
    for (int32_t il = 0; il < d->n_described && !b->status; il++) {
        pn_layer *l = &d->layers[il];
        l->gated_channels = true;
        if (il < d->n_layers && is_recurrent(b, il)) l->mixer = pn_emit_gated_delta;
        else if (l->d_k != l->d_v) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.attention.value_length' is %d, and gated heads have the %d channels of their keys", b->arch, (int)l->d_v, (int)l->d_k);
    }
}

static void mixture(pn_builder *b)
{
    pn_decoder *d = &b->d;
    pn_need_experts(b);
    if (b->status) return;
    const int32_t n_ff = d->layers[0].n_ff;
    d->n_ff_expert = (int32_t)pn_meta_int(b, "expert_feed_forward_length", 0);
    if (d->n_ff_expert == 0) d->n_ff_expert = n_ff / d->n_used;
    d->n_ff_shared = (int32_t)pn_meta_int_within(b, "expert_shared_feed_forward_length", n_ff, 1, PN_MAX_FF);
    d->gated_shared = true;
}

void pn_qwen35_describe(pn_builder *b)
{
    hybrid(b, true);
    pn_rotate_sections(b, true);
}

void pn_qwen35moe_describe(pn_builder *b)
{
    pn_qwen35_describe(b);
    mixture(b);
}

void pn_qwen3next_describe(pn_builder *b)
{
    hybrid(b, false);
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
    mixture(b);
}
