/* deepseek2 (DeepSeek V2, V3, R1, Kimi K2, GLM 4.7 Flash) and mistral4: latent attention, and mixtures after some dense layers. */
#include "models/arch.h"

#include "base/math.h"

/* Queries are scaled for what YaRN stretches: (1 + 0.1*m*ln f)^2, whose m converters store as a tenth. `own`: the rotary magnitude has the same m above and
 * below the line, else 1 above. */
static void rotate(pn_builder *b, bool own)
{
    pn_decoder *d = &b->d;
    const float multiplier = pn_meta_float(b, "rope.scaling.yarn_log_multiplier", 0.0) / 0.1f;
    pn_rotate_all(b, (pn_rope_want){.scaled = true, .yarn_log_multiplier = (double)multiplier, .yarn_own_multiplier = own});
    if (b->status) return;
    const pn_rope *rope = &b->net->plan.ropes[0];
    const float stretch = 0.1f * pn_logf(1.0f / rope->freq_scale);
    const float scale = rope->magnitude * (rope->mix ? 1.0f : 1.0f + stretch) * (1.0f + multiplier * stretch);
    d->q_scale *= scale * scale;
}

/* GLM 4.7 Flash was converted before the key of the gating existed, and is known by its size. */
static pn_gating unsaid_gating(const pn_builder *b)
{
    return b->net->n_vocab == 154880 && (b->d.n_layers == 47 || b->d.n_layers == 48) ? PN_GATING_SIGMOID : PN_GATING_SOFTMAX;
}

void pn_describe_deepseek(pn_builder *b, bool own)
{
    pn_describe_decoder(b);
    pn_describe_routing(b, unsaid_gating(b));
    pn_describe_mla(b);
    pn_decoder *d = &b->d;
    d->temperature = pn_meta_float(b, "attention.temperature_scale", 0.0);
    if (d->temperature != 0.0f) d->temperature_length = (float)pn_meta_int(b, "attention.temperature_length", PN_REQUIRED);
    rotate(b, own);
}

void pn_deepseek2_describe(pn_builder *b)
{
    pn_describe_deepseek(b, true);
    b->d.drafting = PN_DRAFTS_OWN_ENDS;
}

void pn_mistral4_describe(pn_builder *b) { pn_describe_deepseek(b, false); }
