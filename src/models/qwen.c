/* qwen2 (Qwen 1.5, 2, 2.5), qwen3 and qwen3moe: NEOX rotation; qwen3 norms each head of queries and keys. */
#include "models/arch.h"

void pn_qwen2_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    b->d.ignore_ffn_scales = true;
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}

void pn_qwen3_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    b->d.qk_norm = PN_QK_HEAD;
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}

void pn_qwen3moe_describe(pn_builder *b)
{
    pn_qwen3_describe(b);
    pn_decoder *d = &b->d;
    pn_need_experts(b);
    if (b->status) return;
    d->n_ff_expert = (int32_t)pn_meta_int(b, "expert_feed_forward_length", 0);
    if (d->n_ff_expert == 0) d->n_ff_expert = d->layers[0].n_ff / d->n_used;
}
