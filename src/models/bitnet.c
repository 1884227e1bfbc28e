/* bitnet (BitNet b1.58): llama with norms before both output matrices; ternary weights, whose magnitude is in their blocks or in a `.scale` tensor. */
#include "models/arch.h"

void pn_bitnet_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    b->d.heads_norm = "attn_sub_norm.weight";
    b->d.hidden_norm = "ffn_sub_norm.weight";
    b->d.tied_always = true;
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}
