/* smollm3: llama whose every fourth layer knows no positions. */
#include "models/arch.h"

enum { UNROTATED_STEP = 4 }; /* a constant of the architecture: no file stores it */

void pn_smollm3_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    b->d.ignore_ffn_scales = true;
    pn_rotate_all(b, (pn_rope_want){.scaled = true});
    for (int32_t il = UNROTATED_STEP - 1; il < b->d.n_layers; il += UNROTATED_STEP) b->d.layers[il].rope = PN_NONE;
}
