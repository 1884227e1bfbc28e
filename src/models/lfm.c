/* lfm2, lfm2moe and lfm3 (Liquid LFM2, LFM2.5, LFM3): most layers are short convolutions, the others attention; marked by no key-value heads. */
#include "models/arch.h"

static void common(pn_builder *b)
{
    pn_describe_decoder(b);
    pn_decoder *d = &b->d;
    d->qk_norm = PN_QK_HEAD;
    d->n_taps = (int32_t)pn_meta_int(b, "shortconv.l_cache", PN_REQUIRED);
    for (int32_t il = 0; il < d->n_layers; il++)
        if (d->layers[il].n_head_kv == 0) d->layers[il].mixer = pn_emit_short_conv;
}

/* The norm before the head has the name of one after the embedding. */
static void lfm2(pn_builder *b)
{
    common(b);
    b->d.output_norm = "token_embd_norm.weight";
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
}

/* A window, where there is one, is that of every attention layer. */
void pn_lfm2_describe(pn_builder *b)
{
    lfm2(b);
    const int32_t window = (int32_t)pn_meta_int(b, "attention.sliding_window", 0);
    for (int32_t il = 0; il < b->d.n_layers; il++) b->d.layers[il].window = window;
}

/* Weights are always normalised and never scaled, whatever the file says of it. */
void pn_lfm2moe_describe(pn_builder *b)
{
    lfm2(b);
    pn_describe_routing(b, 0);
    pn_decoder *d = &b->d;
    pn_need_experts(b);
    for (int32_t il = d->n_dense; il < d->n_layers; il++)
        if (!pn_has_tensor(b, il, "exp_probs_b.bias")) pn_build_fail(b, PINCH_ERR_FORMAT, "tensor 'blk.%d.exp_probs_b.bias' is missing", (int)il);
    d->routing.normalised = true;
    d->routing.scale = 1.0f;
    d->n_ff_shared = 0;
}

/* Pairs that `rope_freqs` would stop in layers that see everything; files without it mean the second half, as in the released model. */
static const float *still_pairs(pn_builder *b, int32_t n_pairs)
{
    const pinch_callbacks *c = &b->options->callbacks;
    if (c->log) c->log(c->user, PINCH_LOG_WARNING, "tensor 'rope_freqs.weight' is missing: half of each head turns in layers without a window");
    float *factor = pn_arena_get(&b->net->arena, (uint64_t)n_pairs, sizeof *factor);
    if (!factor) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for a rotary table");
    for (int32_t i = 0; factor && i < n_pairs; i++) factor[i] = i < n_pairs / 2 ? 1.0f : 1e30f;
    return factor;
}

void pn_lfm3_describe(pn_builder *b)
{
    common(b);
    pn_decoder *d = &b->d;
    const int32_t window = (int32_t)pn_meta_int_within(b, "attention.sliding_window", PN_REQUIRED, 1, INT32_MAX);
    if (!b->status && !pn_meta_is_array(b, "attention.sliding_window_pattern")) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks the array 'lfm3.attention.sliding_window_pattern'");
    pn_describe_windows(b, window, 0);
    const pn_rope_want whole = {.neox = true, .scaled = true, .factors = true}, slid = {.neox = true, .base = (double)pn_meta_float_required(b, "rope.freq_base_swa")};
    const int tables[2] = {pn_describe_rope(b, whole), pn_describe_rope(b, slid)};
    if (b->status) return;
    pn_rope *rope = &b->net->plan.ropes[tables[0]];
    if (!rope->factor) rope->factor = still_pairs(b, rope->n_pairs);
    if (pn_has_tensor(b, 0, "post_attention_norm.weight")) d->post_attn_norm = "post_attention_norm.weight";
    if (pn_has_tensor(b, 0, "post_ffw_norm.weight")) d->post_ffn_norm = "post_ffw_norm.weight";
    for (int32_t il = 0; il < d->n_layers; il++) {
        d->layers[il].rope = tables[d->layers[il].window > 0];
        d->layers[il].gated_heads = pn_has_tensor(b, il, "attn_gate.weight");
    }
}
