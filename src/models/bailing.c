/* bailingmoe (Ling lite, plus) and bailingmoe2 (Ling 2.0): mixtures with shared experts; the second normalises heads and routes by sigmoid and groups. */
#include "models/arch.h"

#include <math.h>

/* Every layer is a mixture, whatever leading_dense_block_count says, and heads turn whole. */
void pn_bailingmoe_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_describe_routing(b, PN_GATING_SOFTMAX);
    pn_decoder *d = &b->d;
    if (b->status) return;
    d->routing.gating = PN_GATING_SOFTMAX;
    d->n_dense = 0;
    const int32_t head = (int32_t)pn_meta_int(b, "rope.dimension_count", d->layers[0].d_k);
    for (int32_t il = 0; il < d->n_layers; il++) d->layers[il].d_k = d->layers[il].d_v = head;
    d->q_scale = 1.0f / sqrtf((float)head);
    pn_need_experts(b);
    pn_rotate_all(b, (pn_rope_want){.scaled = true});
}

void pn_bailingmoe2_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_describe_routing(b, 0);
    b->d.qk_norm = PN_QK_HEAD;
    pn_need_experts(b);
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}
