/* A network: an architecture's plan with its weights. Builds it from a file, loads the matrices, reads embeddings. */
#include "models/arch.h"

#include <stdlib.h>

static const pn_arch archs[] = {
#define ARCH(name) {#name, pn_##name##_describe},
#define ARCH_AS(name, text) {text, pn_##name##_describe},
#include "models/arch.def"
#undef ARCH
#undef ARCH_AS
};

static const pn_arch *find_arch(pn_str name)
{
    for (size_t i = 0; i < PN_COUNT(archs); i++)
        if (strlen(archs[i].name) == name.n && !memcmp(archs[i].name, name.p, name.n)) return &archs[i];
    return NULL;
}

void pn_rotate_all(pn_builder *b, pn_rope_want want)
{
    const int table = pn_describe_rope(b, want);
    for (int32_t il = 0; il < b->d.n_described; il++) b->d.layers[il].rope = table;
}

/* Weights in a rotated basis look like any others and would run to garbage: only this key tells. */
static pinch_status refuse_rotated(const pn_gguf *g, pinch_error *err)
{
    static const char prefix[] = "prism.hadamard.";
    for (size_t i = 0; i < pn_gguf_n_values(g); i++) {
        const pn_str key = pn_gguf_value_at(g, i)->key;
        if (key.n >= sizeof prefix - 1 && !memcmp(key.p, prefix, sizeof prefix - 1))
            return pn_fail(err, PINCH_ERR_UNSUPPORTED, "%s: metadata '%.*s' asks for Hadamard-rotated activations, which this build does not compute", pn_gguf_name(g), (int)(key.n < 80 ? key.n : 80), key.p);
    }
    return PINCH_OK;
}

pinch_status pn_network_build(pn_network *net, const pn_gguf *g, const pn_weights_options *options, pinch_error *err)
{
    *net = (pn_network){.g = g, .n_vocab = options->n_vocab};
    pn_arena_init(&net->arena, UINT64_MAX);
    pn_str name;
    bool found;
    pinch_status st = refuse_rotated(g, err);
    if (!st) st = pn_gguf_get_string(g, "general.architecture", &name, &found, err);
    if (st) return st;
    if (!found) return pn_fail(err, PINCH_ERR_FORMAT, "%s: metadata lacks 'general.architecture'", pn_gguf_name(g));
    const pn_arch *arch = find_arch(name);
    if (!arch)
        return pn_fail(err, PINCH_ERR_UNSUPPORTED, "%s: architecture '%.*s' is not one that this build runs (README lists them)", pn_gguf_name(g), (int)(name.n < 60 ? name.n : 60), name.p);
    pn_builder b = {.g = g, .options = options, .net = net, .arch = arch->name, .err = err};
    arch->describe(&b);
    if (!b.status) pn_emit_decoder(&b);
    net->arch = arch->name;
    net->n_embd = b.d.n_embd;
    net->n_ctx_train = b.d.n_ctx_train;
    return b.status;
}

static uint64_t table_row_bytes(const pn_tensor *table)
{
    uint64_t bytes = 0;
    return table && pn_row_bytes(table->type, (uint64_t)table->ne[0], &bytes) ? bytes : 0;
}

uint64_t pn_network_raw_bytes(const pn_network *net)
{
    const pn_tensor *tables[] = {net->embedding, net->layer_embedding, net->draft.embedding};
    uint64_t most = 0;
    for (size_t i = 0; i < PN_COUNT(tables); i++)
        if (table_row_bytes(tables[i]) > most) most = table_row_bytes(tables[i]);
    return most;
}

pn_token_bytes pn_network_token_bytes(const pn_network *net)
{
    pn_token_bytes bytes = {.weights = pn_plan_weight_bytes(&net->plan) + table_row_bytes(net->embedding) + table_row_bytes(net->layer_embedding)};
    for (int32_t i = 0; i < net->plan.n_layers; i++) bytes.state += 2 * sizeof(float) * (uint64_t)net->plan.shapes[i].recurrent;
    return bytes;
}

static pinch_status read_row(const pn_network *net, const pn_tensor *table, float scale, pinch_token token, void *raw, float *out, pinch_error *err)
{
    const uint64_t bytes = table_row_bytes(table);
    const pinch_status st = pn_gguf_read(net->g, table, (uint64_t)token * bytes, raw, bytes, err);
    if (st) return st;
    pn_type_get((uint32_t)table->type)->dequantise(out, raw, table->ne[0]);
    for (int64_t i = 0; scale != 1.0f && i < table->ne[0]; i++) out[i] *= scale;
    return PINCH_OK;
}

pinch_status pn_network_embed(const pn_network *net, pinch_token token, void *raw, pn_run *run, int32_t row, pinch_error *err)
{
    const pinch_status st = read_row(net, net->embedding, net->embedding_scale, token, raw, pn_run_stream(run, row), err);
    if (st || !net->layer_embedding) return st;
    return read_row(net, net->layer_embedding, net->layer_scale, token, raw, pn_run_row(run, net->layer_buffer, row), err);
}

/* The stream begins at zero: the first matrix's result is added to it. */
pinch_status pn_draft_embed(const pn_network *net, pinch_token token, void *raw, pn_run *run, int32_t row, pinch_error *err)
{
    memset(pn_run_stream(run, row), 0, (size_t)net->n_embd * sizeof(float));
    return read_row(net, net->draft.embedding, net->embedding_scale, token, raw, pn_run_row(run, net->draft.pair, row), err);
}

float *pn_draft_hidden(const pn_network *net, pn_run *run, int32_t row) { return pn_run_row(run, net->draft.pair, row) + net->n_embd; }
