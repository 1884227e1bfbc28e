/* The short convolution of the LFM families: [b | c | x] = in_proj(h), y = c * conv(b * x), out_proj(y). */
#include "models/build.h"

void pn_emit_short_conv(pn_builder *b, int32_t il)
{
    static const char *const taps_name = "shortconv.conv.weight";
    const int64_t E = b->d.n_embd;
    const int32_t n_taps = b->d.n_taps;
    const float *norm = pn_bind_vector(b, il, b->d.attn_norm, E, true);
    const pn_weight *in = pn_bind(b, il, "shortconv.in_proj.weight", E, 3 * E, true), *out = pn_bind(b, il, "shortconv.out_proj.weight", E, E, true);
    const float *taps = pn_bind_taps(b, il, &taps_name, &E, 1, n_taps);
    const int buffer = pn_emit_buffer(b, "conv", 3 * E);
    pn_emit_output(pn_emit_matmul(b, il, pn_emit_prep(b, norm, pn_formats_of(&in, 1))), in, NULL, false, buffer, 0);
    pn_step *s = pn_emit(b, &pn_step_conv, il);
    if (!s) return;
    s->u.conv = (pn_conv){.buffer = buffer, .layer = il, .column = 2 * E, .out = 0, .channels = E, .in_gate = 0, .out_gate = E, .taps = taps, .n_taps = n_taps};
    b->net->plan.shapes[il] = (pn_layer_shape){.recurrent = E * (n_taps - 1)};
    const pn_prep prep = {.source = buffer, .width = E, .update = {.from = PN_NONE}, .formats = pn_formats_of(&out, 1)};
    pn_emit_to_stream(b, il, out, NULL, false, prep, b->d.post_attn_norm);
}
