/* xing4_0: DeepSeek's layers on four residual streams (hyper-connections), which every block gathers and spreads by weights of its own. */
#include "models/arch.h"

#include <stdio.h>

/* What is pending goes to the streams. */
static void emit_spread(pn_builder *b, int32_t il)
{
    const int64_t E = b->d.n_embd;
    const int streams = pn_emit_buffer(b, "streams", PN_STREAMS * E), weights = pn_emit_buffer(b, "stream weights", PN_STREAM_LOGITS - PN_STREAMS);
    pn_step *s = pn_emit(b, &pn_step_spread, il);
    if (s) s->u.spread = (pn_spread){.streams = streams, .weights = weights, .width = E, .update = b->pending};
    b->pending = (pn_update){.from = PN_NONE};
}

static const float *bind(pn_builder *b, int32_t il, const char *block, const char *what, int64_t n)
{
    char name[32];
    snprintf(name, sizeof name, "hc_%s_%s.weight", block, what);
    return pn_bind_vector(b, il, name, n, true);
}

/* The streams take up what is pending; then the block finds its input in the stream. */
static void emit_streams(pn_builder *b, int32_t il, const char *block)
{
    const int64_t E = b->d.n_embd;
    char name[32];
    emit_spread(b, il);
    snprintf(name, sizeof name, "hc_%s_fn.weight", block);
    const pn_weight *w = pn_bind(b, il, name, PN_STREAMS * E, PN_STREAM_LOGITS, true);
    const float *base = bind(b, il, block, "base", PN_STREAM_LOGITS), *scale = bind(b, il, block, "scale", 3);
    const int streams = pn_emit_buffer(b, "streams", 0), weights = pn_emit_buffer(b, "stream weights", 0), logits = pn_emit_buffer(b, "stream logits", PN_STREAM_LOGITS);
    const pn_prep prep = {.source = streams, .width = PN_STREAMS * E, .update = {.from = PN_NONE}, .norm = b->d.ones, .eps = b->d.eps, .formats = pn_formats_of(&w, 1)};
    pn_emit_output(pn_emit_matmul(b, il, prep), w, NULL, false, logits, 0);
    pn_step *s = pn_emit(b, &pn_step_gather, il);
    if (s) s->u.gather = (pn_gather){.streams = streams, .weights = weights, .logits = logits, .width = E, .scale = scale, .base = base, .iterations = b->d.sinkhorn_iterations, .eps = b->d.sinkhorn_eps};
}

static void mixer(pn_builder *b, int32_t il)
{
    emit_streams(b, il, "attn");
    pn_emit_mla(b, il);
}

static void feed_forward(pn_builder *b, int32_t il)
{
    emit_streams(b, il, "ffn");
    pn_emit_feed_forward(b, il);
}

static void end(pn_builder *b)
{
    emit_spread(b, -1);
    const int streams = pn_emit_buffer(b, "streams", 0);
    pn_step *s = pn_emit(b, &pn_step_gather, -1);
    if (s) s->u.gather = (pn_gather){.streams = streams, .weights = PN_NONE, .logits = PN_NONE, .width = b->d.n_embd};
}

void pn_xing4_0_describe(pn_builder *b)
{
    pn_describe_deepseek(b, false);
    pn_decoder *d = &b->d;
    pn_meta_int(b, "hyper_connection.count", PN_REQUIRED);
    d->sinkhorn_iterations = (int32_t)pn_meta_int(b, "hyper_connection.sinkhorn_iterations", PN_REQUIRED);
    d->sinkhorn_eps = pn_meta_float_required(b, "hyper_connection.epsilon");
    if (!b->status && d->sinkhorn_eps < 0) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.hyper_connection.epsilon' is negative", b->arch);
    if (b->status) return;
    float *ones = pn_arena_get(&b->net->arena, (uint64_t)d->n_embd * PN_STREAMS, sizeof *ones);
    if (!ones) {
        pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for %d streams of %d channels", PN_STREAMS, (int)d->n_embd);
        return;
    }
    for (int64_t i = 0; i < (int64_t)d->n_embd * PN_STREAMS; i++) ones[i] = 1.0f;
    d->ones = ones;
    d->end = end;
    d->drafting = PN_DRAFTS_OWN_ENDS; /* on a plain stream */
    for (int32_t il = 0; il < d->n_layers; il++) {
        d->layers[il].mixer = mixer;
        d->layers[il].feed_forward = feed_forward;
    }
}
