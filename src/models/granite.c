/* granite, granitemoe, granitehybrid: llama with four scalars; granite and granitehybrid may know no positions, mixtures may have a shared expert; most
 * layers of granitehybrid are Mamba-2 mixers, marked by no key-value heads. */
#include "models/arch.h"

/* Of the three only granitehybrid may lack logit_scale. */
static void common(pn_builder *b, bool must_scale)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->ignore_ffn_scales = true;
    const float logit = must_scale ? pn_meta_float_required(b, "logit_scale") : pn_meta_float(b, "logit_scale", 0.0), embedding = pn_meta_float(b, "embedding_scale", 0.0);
    const float residual = pn_meta_float(b, "residual_scale", 0.0), attention = pn_meta_float(b, "attention.scale", 0.0);
    if (!b->status && must_scale && logit == 0.0f) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.logit_scale' is 0", b->arch);
    if (logit != 0.0f) d->logit_scale = 1.0f / logit;
    if (embedding != 0.0f) d->embedding_scale = embedding;
    if (residual != 0.0f) d->residual_scale = residual;
    if (attention != 0.0f) d->q_scale = attention;
}

void pn_granite_describe(pn_builder *b)
{
    common(b, true);
    if (pn_meta_bool(b, "rope.scaling.finetuned", true)) pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true});
}

void pn_granitemoe_describe(pn_builder *b)
{
    common(b, true);
    b->d.n_ff_shared = (int32_t)pn_meta_int(b, "expert_shared_feed_forward_length", 0);
    pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true}); /* the reference ignores rope.scaling.finetuned here */
}

void pn_granitehybrid_describe(pn_builder *b)
{
    common(b, false);
    pn_decoder *d = &b->d;
    pn_describe_mamba(b);
    d->mamba.normed = true;
    d->n_ff_shared = d->n_experts ? (int32_t)pn_meta_int(b, "expert_shared_feed_forward_length", 0) : 0;
    if (pn_meta_bool(b, "rope.scaling.finetuned", true)) pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true});
    for (int32_t il = 0; il < d->n_layers; il++)
        if (d->layers[il].n_head_kv == 0) d->layers[il].mixer = pn_emit_mamba;
}
