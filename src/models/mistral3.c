/* mistral3: Ministral 3, Mistral Small 3 (text): llama with YaRN keys of its own and queries scaled by position. */
#include "models/arch.h"

void pn_mistral3_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_rotate_all(b, (pn_rope_want){.scaled = true, .factors = true, .yarn_betas = true, .yarn_log_multiplier = (double)pn_meta_float(b, "rope.scaling.yarn_log_multiplier", 0.0)});
    b->d.temperature = pn_meta_float(b, "attention.temperature_scale", 0.0);
    b->d.temperature_length = (float)pn_meta_int(b, "rope.scaling.original_context_length", b->d.n_ctx_train);
}
