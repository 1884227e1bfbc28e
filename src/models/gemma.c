/* gemma2 and gemma3: embeddings scaled by sqrt(E), GELU, norms after each block too, sliding windows.
 * The norm weights of the files include the original's +1. */
#include "models/arch.h"

#include <math.h>

static void common(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->ignore_ffn_scales = true;
    d->embedding_scale = sqrtf((float)d->n_embd);
    d->gate = PN_GATE_GELU;
    d->post_attn_norm = "post_attention_norm.weight";
    d->post_ffn_norm = "post_ffw_norm.weight";
}

/* The 27B models scale queries by the width of a head that E would give, not by the head they have. */
static void scale_queries(pn_builder *b, int32_t big_layers)
{
    if (!b->status && b->d.n_layers == big_layers && b->d.layers[0].n_head) b->d.q_scale = 1.0f / sqrtf((float)(b->d.n_embd / b->d.layers[0].n_head));
}

/* Sliding layers rotate with `slid`, the others with `whole`. */
static void rotate(pn_builder *b, pn_rope_want whole, pn_rope_want slid)
{
    const int tables[2] = {pn_describe_rope(b, whole), pn_describe_rope(b, slid)};
    for (int32_t il = 0; il < b->d.n_layers; il++) b->d.layers[il].rope = tables[b->d.layers[il].window > 0];
}

void pn_gemma2_describe(pn_builder *b)
{
    common(b);
    pn_decoder *d = &b->d;
    d->tied_always = true;
    d->attn_softcap = pn_meta_float(b, "attn_logit_softcapping", 50.0);
    d->final_softcap = pn_meta_float(b, "final_logit_softcapping", 30.0);
    scale_queries(b, 46);
    pn_describe_windows(b, (int32_t)pn_meta_int(b, "attention.sliding_window", 4096), 2);
    const double base = (double)pn_meta_float(b, "rope.freq_base", 10000.0);
    rotate(b, (pn_rope_want){.neox = true, .scaled = true}, (pn_rope_want){.neox = true, .scaled = true, .base = (double)pn_meta_float(b, "rope.freq_base_swa", base)});
}

void pn_gemma3_describe(pn_builder *b)
{
    common(b);
    b->d.qk_norm = PN_QK_HEAD;
    b->d.final_softcap = pn_meta_float(b, "final_logit_softcapping", 0.0);
    scale_queries(b, 62);
    pn_describe_windows(b, (int32_t)pn_meta_int(b, "attention.sliding_window", 0), 6);
    rotate(b, (pn_rope_want){.neox = true, .scaled = true}, (pn_rope_want){.neox = true, .base = (double)pn_meta_float(b, "rope.freq_base_swa", 10000.0)});
}
