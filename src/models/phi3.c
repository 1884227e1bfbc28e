/* phi3: llama with NEOX rotation of a part of the channels, gate and up in one tensor, factors by context whatever the scaling type. */
#include "models/arch.h"

void pn_phi3_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    b->d.ignore_ffn_scales = true;
    b->d.gate_in_up = true;
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true, .factors = true, .factors_always = true});
}
