/* Hyper-parameters: typed, bounded reads with the architecture's prefix; the first error sticks. */
#include "models/build.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void pn_build_fail(pn_builder *b, pinch_status status, const char *format, ...)
{
    if (b->status) return;
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    b->status = pn_fail(b->err, status, "%s: %s", pn_gguf_name(b->g), text);
}

/* ---- bounds ---------------------------------------------------------------------------------------------------------------------------- */

typedef struct bounds {
    const char *key;
    double least, most; /* which hold every 32-bit integer */
} bounds;

static bounds bounds_of(pn_builder *b, const char *name)
{
    static const bounds table[] = {
#define INT(key, least, most) {key, (double)(least), (double)(most)},
#define REAL(key, least, most) {key, (double)(least), (double)(most)},
#include "models/keys.def"
#undef INT
#undef REAL
    };
    for (size_t i = 0; i < PN_COUNT(table); i++)
        if (!strcmp(table[i].key, name)) return table[i];
    pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "metadata '%s.%s' has no bounds", b->arch, name);
    return (bounds){name, 0, 0};
}

/* ---- reading --------------------------------------------------------------------------------------------------------------------------- */

static void full_key(const pn_builder *b, const char *name, char key[160]) { snprintf(key, 160, "%s.%s", b->arch, name); }

bool pn_meta_has(pn_builder *b, const char *name)
{
    char key[160];
    full_key(b, name, key);
    return pn_gguf_find(b->g, key) != NULL;
}

bool pn_meta_is_array(pn_builder *b, const char *name)
{
    char key[160];
    full_key(b, name, key);
    const pn_gguf_value *v = pn_gguf_find(b->g, key);
    return v && v->kind == PN_GGUF_ARRAY;
}

/* The integer at `index` of key (a scalar serves every index). */
static int64_t int_at(pn_builder *b, const char *name, uint64_t index, int64_t fallback, int64_t least, int64_t most)
{
    char key[160];
    full_key(b, name, key);
    if (b->status) return least;
    const pn_gguf_value *v = pn_gguf_find(b->g, key);
    if (!v) {
        if (fallback == PN_REQUIRED) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks '%s'", key);
        return fallback == PN_REQUIRED ? least : fallback;
    }
    int64_t value;
    if (!pn_gguf_int_at(v, v->kind == PN_GGUF_ARRAY ? index : 0, &value)) {
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s' is no integer", key);
        return least;
    }
    if (value < least || value > most) {
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s' is %lld, outside %lld..%lld", key, (long long)value, (long long)least, (long long)most);
        return least;
    }
    return value;
}

static int64_t bounded_int_at(pn_builder *b, const char *name, uint64_t index, int64_t fallback)
{
    const bounds of = bounds_of(b, name);
    return int_at(b, name, index, fallback, (int64_t)of.least, (int64_t)of.most);
}

int64_t pn_meta_int(pn_builder *b, const char *name, int64_t fallback)
{
    const bounds of = bounds_of(b, name);
    return pn_meta_int_within(b, name, fallback, (int64_t)of.least, (int64_t)of.most);
}

int64_t pn_meta_int_within(pn_builder *b, const char *name, int64_t fallback, int64_t least, int64_t most)
{
    if (!b->status && pn_meta_is_array(b, name)) {
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.%s' is an array where one number is wanted", b->arch, name);
        return least;
    }
    return int_at(b, name, 0, fallback, least, most);
}

/* Whether an array has an item for each block of the file; a sentence if not. */
static bool layers_fit(pn_builder *b, const char *name)
{
    char key[160];
    full_key(b, name, key);
    const pn_gguf_value *v = pn_gguf_find(b->g, key);
    if (!v || v->kind != PN_GGUF_ARRAY || v->count == (uint64_t)b->d.n_blocks) return true;
    pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s' has %llu items for %d layers", key, (unsigned long long)v->count, (int)b->d.n_blocks);
    return false;
}

int64_t pn_meta_layer_int(pn_builder *b, const char *name, int32_t layer, int64_t fallback)
{
    return layers_fit(b, name) ? bounded_int_at(b, name, (uint64_t)layer, fallback) : 0;
}

static float bounded_real(pn_builder *b, const char *name, double value)
{
    const bounds of = bounds_of(b, name);
    if (!isfinite((float)value)) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.%s' is not a finite number", b->arch, name);
    else if (value < of.least || value > of.most) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.%s' is %g, outside %g..%g", b->arch, name, value, of.least, of.most);
    return (float)value;
}

float pn_meta_layer_float(pn_builder *b, const char *name, int32_t layer)
{
    char key[160];
    full_key(b, name, key);
    const pn_gguf_value *v = pn_gguf_find(b->g, key);
    double value = 0;
    if (b->status || !v || !layers_fit(b, name)) return 0.0f;
    if (!pn_gguf_float_at(v, v->kind == PN_GGUF_ARRAY ? (uint64_t)layer : 0, &value)) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s' is no number for layer %d", key, (int)layer);
    return bounded_real(b, name, value);
}

int64_t pn_meta_item_int(pn_builder *b, const char *name, int32_t i, int32_t n)
{
    char key[160];
    full_key(b, name, key);
    const pn_gguf_value *v = pn_gguf_find(b->g, key);
    if (v && (v->kind != PN_GGUF_ARRAY || v->count != (uint64_t)n)) {
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s' is no array of %d numbers", key, (int)n);
        return 0;
    }
    return bounded_int_at(b, name, (uint64_t)i, PN_REQUIRED);
}

static float read_float(pn_builder *b, const char *name, double fallback, bool required)
{
    char key[160];
    full_key(b, name, key);
    if (b->status) return (float)fallback;
    double value = fallback;
    bool found = false;
    const pinch_status st = pn_gguf_get_float(b->g, key, &value, &found, b->err);
    if (st) b->status = st;
    else if (!found && required) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks '%s'", key);
    return found && !b->status ? bounded_real(b, name, value) : (float)value;
}

float pn_meta_float(pn_builder *b, const char *name, double fallback) { return read_float(b, name, fallback, false); }
float pn_meta_float_required(pn_builder *b, const char *name) { return read_float(b, name, 1.0, true); }

bool pn_meta_bool(pn_builder *b, const char *name, bool fallback)
{
    char key[160];
    full_key(b, name, key);
    bool value = fallback, found = false;
    if (b->status) return fallback;
    b->status = pn_gguf_get_bool(b->g, key, &value, &found, b->err);
    return value;
}

/* ---- the keys that all decoders share ------------------------------------------------------------------------------------------------- */

static void describe_layer(pn_builder *b, int32_t il)
{
    pn_layer *l = &b->d.layers[il];
    l->mixer = pn_emit_attention;
    l->feed_forward = pn_emit_feed_forward;
    l->n_head = (int32_t)pn_meta_layer_int(b, "attention.head_count", il, PN_REQUIRED);
    l->n_head_kv = (int32_t)pn_meta_layer_int(b, "attention.head_count_kv", il, l->n_head); /* 0 marks a layer without attention in some families */
    const int32_t first = b->d.layers[0].n_head, head = first ? b->d.n_embd / first : 0; /* one size for all layers: rotary tables and the query scale are shared */
    l->d_k = (int32_t)pn_meta_int(b, "attention.key_length", head);
    l->d_v = (int32_t)pn_meta_int(b, "attention.value_length", head);
    l->n_ff = (int32_t)pn_meta_layer_int(b, "feed_forward_length", il, 0);
    l->rope = PN_NONE;
    l->kv_layer = il;
    if (b->status) return;
    if (l->n_head_kv && l->n_head % l->n_head_kv)
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.attention.head_count' is %d, no multiple of the %d key-value heads", b->arch, (int)l->n_head, (int)l->n_head_kv);
    else if (l->n_head && (l->d_k == 0 || l->d_v == 0))
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.embedding_length' of %d leaves no channels for %d heads", b->arch, (int)b->d.n_embd, (int)l->n_head);
}

/* Groups count only where there are several. */
static void describe_groups(pn_builder *b)
{
    pn_decoder *d = &b->d;
    const int32_t n = (int32_t)pn_meta_int(b, "expert_group_count", 0);
    if (b->status || n <= 1 || d->n_experts == 0) return;
    if (n >= d->n_experts || d->n_experts % n)
        pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.expert_group_count' is %d, which does not divide %d experts into groups of two or more", b->arch, (int)n, (int)d->n_experts);
    d->routing.n_groups = n;
    d->routing.n_groups_used = (int32_t)pn_meta_int_within(b, "expert_group_used_count", PN_REQUIRED, 1, n - 1);
}

static void describe_experts(pn_builder *b)
{
    pn_decoder *d = &b->d;
    d->routing = (pn_routing){.gating = PN_GATING_SOFTMAX, .normalised = true, .scale = 1.0f};
    d->n_experts = (int32_t)pn_meta_int(b, "expert_count", 0);
    d->n_used = (int32_t)pn_meta_int_within(b, "expert_used_count", 0, d->n_experts ? 1 : 0, d->n_experts);
    if (d->n_experts && !d->n_used) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks '%s.expert_used_count', and there are %d experts", b->arch, (int)d->n_experts);
    d->n_ff_expert = d->layers ? d->layers[0].n_ff : 0;
    describe_groups(b);
}

void pn_need_experts(pn_builder *b)
{
    if (!b->status && b->d.n_experts == 0) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata lacks '%s.expert_count'", b->arch);
}

void pn_describe_routing(pn_builder *b, pn_gating fallback)
{
    pn_decoder *d = &b->d;
    const int64_t gating = pn_meta_int(b, "expert_gating_func", 0);
    const float scale = pn_meta_float(b, "expert_weights_scale", 0.0);
    d->routing.gating = gating ? (pn_gating)gating : fallback;
    if (!d->routing.gating) pn_build_fail(b, PINCH_ERR_FORMAT, "metadata '%s.expert_gating_func' is %s", b->arch, pn_meta_has(b, "expert_gating_func") ? "0" : "missing");
    d->routing.normalised = pn_meta_bool(b, "expert_weights_norm", false);
    d->routing.scale = scale != 0.0f ? scale : 1.0f;
    d->n_dense = (int32_t)pn_meta_int_within(b, "leading_dense_block_count", 0, 0, d->n_blocks);
    d->n_ff_expert = (int32_t)pn_meta_int(b, "expert_feed_forward_length", 0);
    d->n_ff_shared = pn_meta_int(b, "expert_shared_count", 0) ? PN_WIDTH_OF_TENSOR : 0;
}

/* Blocks that draft tokens come last and are no layers. Some converters count them without writing any: then the last block is a layer. */
static int32_t layers_of(pn_builder *b, int32_t n_blocks)
{
    const int32_t n_draft = (int32_t)pn_meta_int_within(b, "nextn_predict_layers", 0, 0, n_blocks - 1), n = n_blocks - n_draft;
    const bool there = n_draft > 0 && pn_has_tensor(b, n, "nextn.eh_proj.weight");
    if (there && !pn_has_tensor(b, 0, "attn_norm.weight"))
        pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "holds only the block that drafts tokens (MTP) for the model of another file; 'blk.0.attn_norm.weight' is missing");
    return n_draft > 0 && !there && pn_has_tensor(b, n, "attn_norm.weight") ? n_blocks : n;
}

void pn_describe_decoder(pn_builder *b)
{
    pn_decoder *d = &b->d;
    *d = (pn_decoder){.q_scale = 1.0f, .residual_scale = 1.0f, .embedding_scale = 1.0f, .logit_scale = 1.0f, .gate = PN_GATE_SILU, .attn_norm = "attn_norm.weight",
                      .ffn_norm = "ffn_norm.weight", .output_norm = "output_norm.weight"};
    d->n_ctx_train = (int32_t)pn_meta_int(b, "context_length", PN_REQUIRED);
    d->n_embd = (int32_t)pn_meta_int(b, "embedding_length", PN_REQUIRED);
    d->n_blocks = (int32_t)pn_meta_int(b, "block_count", PN_REQUIRED);
    const int32_t n = layers_of(b, d->n_blocks);
    const bool plain = !pn_meta_has(b, "attention.layer_norm_rms_epsilon") && pn_meta_has(b, "attention.layer_norm_epsilon"); /* nemotron_h has either */
    d->eps = pn_meta_float_required(b, plain ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon");
    if (b->status) return;
    const int32_t n_described = n + (b->options->draft && d->n_blocks == n + 1);
    d->layers = pn_arena_get(&b->net->arena, (uint64_t)n_described, sizeof *d->layers);
    if (!d->layers) {
        pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for %d layers", (int)n);
        return;
    }
    memset(d->layers, 0, (size_t)n_described * sizeof *d->layers);
    d->n_layers = n;
    d->n_described = n_described;
    for (int32_t il = 0; il < d->n_described && !b->status; il++) describe_layer(b, il);
    describe_experts(b);
    if (!b->status) d->q_scale = 1.0f / sqrtf((float)d->layers[0].d_k);
}

void pn_describe_windows(pn_builder *b, int32_t window, int32_t period)
{
    if (b->status || window <= 0) return;
    const bool listed = pn_meta_is_array(b, "attention.sliding_window_pattern");
    if (!listed) period = (int32_t)pn_meta_int_within(b, "attention.sliding_window_pattern", period, 0, INT32_MAX);
    for (int32_t il = 0; il < b->d.n_layers; il++) {
        const bool slides = listed ? pn_meta_layer_int(b, "attention.sliding_window_pattern", il, 0) != 0 : period == 0 || il % period < period - 1;
        if (slides) b->d.layers[il].window = window;
    }
}
