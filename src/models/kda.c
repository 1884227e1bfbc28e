/* bailingmoe3 (Ling 3.0) and kimi-linear: most layers are Kimi delta attention, the others latent attention; marked by no key-value heads. */
#include "models/arch.h"

static void describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_describe_routing(b, 0);
    pn_describe_mla(b);
    pn_need_experts(b);
    pn_decoder *d = &b->d;
    d->n_ff_shared = PN_WIDTH_OF_TENSOR;
    pn_delta_dims *n = &d->delta;
    n->n_taps = (int32_t)pn_meta_int(b, "ssm.conv_kernel", PN_REQUIRED);
    n->d = (int32_t)pn_meta_int(b, "kda.head_dim", PN_REQUIRED);
    n->n_k = n->n_v = (int32_t)pn_meta_int_within(b, "attention.head_count", PN_REQUIRED, 1, 4096);
    if (!b->status && !pn_meta_is_array(b, "attention.head_count_kv")) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks the array '%s.attention.head_count_kv'", b->arch);
    for (int32_t il = 0; il < d->n_layers && !b->status; il++)
        if (d->layers[il].n_head_kv == 0) d->layers[il].mixer = pn_emit_kda;
}

/* Limits below this do nothing. */
static float limit(pn_builder *b, const char *name, int32_t il)
{
    const float value = pn_meta_layer_float(b, name, il);
    return value > 1e-6f ? value : 0.0f;
}

/* Files of models that see bring sections, and with them other pairs. */
static bool has_sections(pn_builder *b)
{
    if (!pn_meta_has(b, "rope.dimension_sections")) return false;
    return pn_meta_item_int(b, "rope.dimension_sections", 0, 4) > 0 && pn_meta_item_int(b, "rope.dimension_sections", 1, 4) > 0;
}

void pn_bailingmoe3_describe(pn_builder *b)
{
    describe(b);
    pn_decoder *d = &b->d;
    if (!pn_meta_bool(b, "kda.safe_gate", true)) pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "metadata 'bailingmoe3.kda.safe_gate' is false; only bounded gates are known");
    d->delta.bound = pn_meta_float_required(b, "kda.gate_lower_bound");
    if (!b->status && !(d->delta.bound < 0.0f)) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata 'bailingmoe3.kda.gate_lower_bound' is %g, not below 0", (double)d->delta.bound);
    d->drafting = PN_DRAFTS_TRUNK_ENDS;
    for (int32_t il = 0; il < d->n_described && !b->status; il++) {
        d->layers[il].gated_heads = true;
        d->layers[il].clamp = limit(b, "swiglu_clamp_shexp", il);
        d->layers[il].clamp_experts = limit(b, "swiglu_clamp_exp", il);
    }
    if (has_sections(b)) pn_rotate_sections(b, false);
    else pn_rotate_all(b, (pn_rope_want){.scaled = true});
}

/* Knows no positions; weights are always normalised. */
void pn_kimi_linear_describe(pn_builder *b)
{
    describe(b);
    b->d.routing.normalised = true;
}
