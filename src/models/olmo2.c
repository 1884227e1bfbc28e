/* olmo2: OLMo 2 and 3: norms only after the blocks; queries and keys normed as whole vectors; OLMo 3 slides. */
#include "models/arch.h"

void pn_olmo2_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->ignore_ffn_scales = true;
    d->attn_norm = d->ffn_norm = NULL;
    d->post_attn_norm = "post_attention_norm.weight";
    d->post_ffn_norm = "post_ffw_norm.weight";
    d->qk_norm = PN_QK_WHOLE;
    pn_describe_windows(b, (int32_t)pn_meta_int(b, "attention.sliding_window", 0), 4);
    const int whole = pn_describe_rope(b, (pn_rope_want){.neox = true, .scaled = true}), slid = pn_describe_rope(b, (pn_rope_want){.neox = true, .plain = true});
    for (int32_t il = 0; il < d->n_layers; il++) d->layers[il].rope = d->layers[il].window > 0 ? slid : whole;
}
