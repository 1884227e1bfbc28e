/* falcon-h1: attention and a Mamba-2 mixer side by side in every layer, on one input, their results added. */
#include "models/arch.h"

static void emit_both(pn_builder *b, int32_t il)
{
    const pn_weight *in = pn_bind_mamba_in(b, il);
    const int value = pn_emit_buffer(b, "value", b->d.n_embd), second = pn_emit_buffer(b, "second value", b->d.n_embd);
    pn_emit_attention_in(b, il, pn_formats_of(&in, 1));
    pn_emit_mamba_in(b, il, in, (pn_prep){.source = PN_NONE, .update = {.from = PN_NONE}});
    pn_emit_attention_out(b, il, value);
    pn_emit_mamba_out(b, il, second);
    b->pending = (pn_update){.from = value, .shared = second, .shared_gate = PN_NONE, .scale = b->d.residual_scale};
}

void pn_falcon_h1_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_describe_mamba(b);
    pn_decoder *d = &b->d;
    if (pn_has_tensor(b, 0, "ffn_norm")) d->ffn_norm = "ffn_norm"; /* so the released files */
    for (int32_t il = 0; il < d->n_layers; il++) d->layers[il].mixer = emit_both;
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}
