/* granite and granitemoe: llama with four scalars; granite may know no positions, granitemoe may have a shared expert. */
#include "models/arch.h"

static void common(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->ignore_ffn_scales = true;
    const float logit = pn_meta_float_required(b, "logit_scale"), embedding = pn_meta_float(b, "embedding_scale", 0.0);
    const float residual = pn_meta_float(b, "residual_scale", 0.0), attention = pn_meta_float(b, "attention.scale", 0.0);
    if (!b->status && logit == 0.0f) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.logit_scale' is 0", b->arch);
    d->logit_scale = 1.0f / logit;
    if (embedding != 0.0f) d->embedding_scale = embedding;
    if (residual != 0.0f) d->residual_scale = residual;
    if (attention != 0.0f) d->q_scale = attention;
}

void pn_granite_describe(pn_builder *b)
{
    common(b);
    if (pn_meta_bool(b, "rope.scaling.finetuned", true)) pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true});
}

void pn_granitemoe_describe(pn_builder *b)
{
    common(b);
    b->d.n_ff_shared = (int32_t)pn_meta_int(b, "expert_shared_feed_forward_length", 0, 0, 1 << 20);
    pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true}); /* the reference ignores rope.scaling.finetuned here */
}
