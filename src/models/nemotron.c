/* nemotron_h, nemotron_h_moe: a layer is a Mamba-2 mixer, attention without positions, or a feed-forward block; the arrays of heads and of widths say which. */
#include "models/arch.h"

static void common(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_describe_mamba(b);
    pn_decoder *d = &b->d;
    d->mamba.normed = true;
    d->ffn_norm = d->attn_norm;
    d->gate = PN_GATE_RELU2;
    d->ungated = true;
    for (int32_t il = 0; il < d->n_layers; il++) {
        pn_layer *l = &d->layers[il];
        if (l->n_ff > 0) l->mixer = NULL;
        else l->feed_forward = NULL;
        if (l->n_ff == 0 && l->n_head_kv == 0) l->mixer = pn_emit_mamba;
    }
}

void pn_nemotron_h_describe(pn_builder *b)
{
    common(b);
    b->d.n_experts = 0;
}

void pn_nemotron_h_moe_describe(pn_builder *b)
{
    common(b);
    pn_describe_routing(b, PN_GATING_SIGMOID);
    pn_decoder *d = &b->d;
    pn_need_experts(b);
    d->routing.gating = PN_GATING_SIGMOID;
    d->n_dense = 0;
}
