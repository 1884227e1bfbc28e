/* Rotary tables from rope.* metadata: linear, YaRN, longrope and llama-3 factors. */
#include "models/arch.h"

#include "base/math.h"

#include <math.h>

typedef enum scaling { SCALING_NONE, SCALING_LINEAR, SCALING_YARN, SCALING_LONGROPE } scaling;

static scaling scaling_type(pn_builder *b)
{
    static const char *const names[] = {"none", "linear", "yarn", "longrope"};
    char key[160];
    pn_str text = {"linear", 6};
    bool found;
    if (b->status) return SCALING_NONE;
    memcpy(key, b->arch, strlen(b->arch) + 1);
    memcpy(key + strlen(key), ".rope.scaling.type", 19);
    b->status = pn_gguf_get_string(b->g, key, &text, &found, b->err);
    for (int i = 0; i < (int)PN_COUNT(names); i++)
        if (text.n == strlen(names[i]) && !memcmp(text.p, names[i], text.n)) return (scaling)i;
    pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "metadata '%s' is '%.*s'; known are none, linear, yarn and longrope", key, (int)(text.n < 40 ? text.n : 40), text.p);
    return SCALING_NONE;
}

/* Magnitude 1 + 0.1*k*ln s of YaRN, 1 where nothing is stretched. */
static double yarn_magnitude(double s, double k) { return s <= 1.0 ? 1.0 : 1.0 + 0.1 * k * pn_log(s); }

/* Pair at which a wavelength fits `turns` times into the original context. */
static double yarn_corner(double n_rot, double n_ctx, double turns, double base) { return n_rot * pn_log(n_ctx / (turns * 2.0 * 3.14159265358979323846)) / (2.0 * pn_log(base)); }

static void yarn(pn_builder *b, pn_rope *rope, pn_rope_want want, double base, double factor, int32_t n_ctx_orig)
{
    const double fast = want.yarn_betas ? (double)pn_meta_float(b, "rope.scaling.yarn_beta_fast", 32.0) : 32.0;
    const double slow = want.yarn_betas ? (double)pn_meta_float(b, "rope.scaling.yarn_beta_slow", 1.0) : 1.0;
    const double n_rot = rope->n_pairs * 2.0;
    const double low = fmax(0.0, floor(yarn_corner(n_rot, n_ctx_orig, fast, base)));
    const double high = fmin(n_rot - 1.0, ceil(yarn_corner(n_rot, n_ctx_orig, slow, base)));
    float *mix = pn_arena_get(&b->net->arena, (uint64_t)rope->n_pairs, sizeof *mix);
    if (!mix) {
        pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for a rotary table");
        return;
    }
    for (int32_t k = 0; k < rope->n_pairs; k++) {
        const float at = ((float)k - (float)low) / fmaxf(0.001f, (float)high - (float)low);
        mix[k] = 1.0f - fminf(1.0f, fmaxf(0.0f, at));
    }
    rope->mix = mix;
    if (want.yarn_log_multiplier == 0.0) rope->magnitude *= (float)yarn_magnitude(factor, 1.0);
    else rope->magnitude *= (float)(yarn_magnitude(factor, want.yarn_own_multiplier ? want.yarn_log_multiplier : 1.0) / yarn_magnitude(factor, want.yarn_log_multiplier));
}

static void factors(pn_builder *b, pn_rope *rope, pn_rope_want want, scaling type, int32_t n_ctx_orig)
{
    if (type != SCALING_LONGROPE && !want.factors_always) {
        rope->factor = pn_bind_vector(b, -1, "rope_freqs.weight", rope->n_pairs, false);
        return;
    }
    rope->factor = pn_bind_vector(b, -1, "rope_factors_short.weight", rope->n_pairs, false);
    rope->factor_long = pn_bind_vector(b, -1, "rope_factors_long.weight", rope->n_pairs, false);
    rope->long_beyond = n_ctx_orig / 256 * 256; /* the reference compares the context rounded up to a multiple of 256 */
}

int pn_describe_rope(pn_builder *b, pn_rope_want want)
{
    if (b->status) return PN_NONE;
    pn_plan *plan = &b->net->plan;
    const int32_t d_k = want.d_k ? want.d_k : b->d.layers[0].d_k;
    const int32_t n_rot = want.n_rot ? want.n_rot : (int32_t)pn_meta_int_within(b, "rope.dimension_count", d_k, 2, d_k);
    const int32_t n_ctx_orig = (int32_t)pn_meta_int(b, "rope.scaling.original_context_length", b->d.n_ctx_train);
    const double base = want.base > 0 ? want.base : (double)pn_meta_float(b, "rope.freq_base", 10000.0);
    double factor = (double)pn_meta_float(b, "rope.scaling.factor", 0.0);
    if (!pn_meta_has(b, "rope.scaling.factor")) factor = (double)pn_meta_float(b, "rope.scale_linear", 0.0); /* the key's old name */
    if (factor == 0.0) factor = 1.0;
    const scaling type = want.scaled ? scaling_type(b) : SCALING_NONE;
    if (b->status) return PN_NONE;
    if (n_rot % 2) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.rope.dimension_count' is %d, an odd number", b->arch, (int)n_rot);
    if (!(base > 1.0)) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.rope.freq_base' is %g, not above 1", b->arch, base);
    if (plan->n_ropes == (int)PN_COUNT(plan->ropes)) pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "more than %d rotary tables", plan->n_ropes);
    if (b->status) return PN_NONE;
    pn_rope *rope = &plan->ropes[plan->n_ropes];
    *rope = (pn_rope){.neox = want.neox, .n_pairs = n_rot / 2, .step = pn_powf((float)base, -2.0f / (float)n_rot), .freq_scale = 1.0f, .magnitude = 1.0f, .long_beyond = INT32_MAX};
    if (!want.plain) rope->magnitude = pn_meta_float(b, "rope.scaling.attn_factor", 1.0);
    if (type != SCALING_NONE) rope->freq_scale = 1.0f / (float)factor;
    if (type == SCALING_YARN) yarn(b, rope, want, base, factor, n_ctx_orig);
    if (want.factors) factors(b, rope, want, type, n_ctx_orig);
    return plan->n_ropes++;
}

void pn_rotate_sections(pn_builder *b, bool in_turns)
{
    int64_t section[4], total = 0;
    for (int i = 0; i < 4; i++) total += section[i] = pn_meta_item_int(b, "rope.dimension_sections", i, 4);
    if (!b->status && total == 0) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.rope.dimension_sections' is 0 throughout", b->arch);
    pn_rotate_all(b, (pn_rope_want){.neox = true, .scaled = true});
    if (b->status) return;
    pn_rope *rope = &b->net->plan.ropes[b->d.layers[0].rope];
    float *factor = pn_arena_get(&b->net->arena, (uint64_t)rope->n_pairs, sizeof *factor);
    if (!factor) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for a rotary table");
    for (int32_t p = 0; factor && p < rope->n_pairs; p++) {
        const int64_t z = p % total;
        const bool turns = in_turns ? z < 3 * section[z % 3] : z < total - section[3];
        factor[p] = turns ? 1.0f : INFINITY; /* an angle of 0 */
    }
    rope->factor = factor;
}
