/* gpt-oss: sinks in the softmax of attention, sliding windows on every other layer, biases everywhere, experts with a clamped activation. */
#include "models/arch.h"

void pn_gpt_oss_describe(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_need_experts(b);
    pn_decoder *d = &b->d;
    d->ffn_norm = "post_attention_norm.weight"; /* a norm before the block, whatever its name says */
    d->sinks = true;
    d->gate = PN_GATE_CLAMPED;
    d->n_ff_expert = (int32_t)pn_meta_int(b, "expert_feed_forward_length", d->n_ff_expert);
    d->routing = (pn_routing){.gating = PN_GATING_CHOSEN_SOFTMAX, .scale = 1.0f};
    pn_describe_windows(b, (int32_t)pn_meta_int(b, "attention.sliding_window", PN_REQUIRED), 2);
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}
