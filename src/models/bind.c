/* Tensors: found by name, checked against the shape that the metadata promises, given a kernel and a home. */
#include "models/build.h"

#include <stdio.h>
#include <stdlib.h>

enum { NAME_BYTES = 96, MAPPED_ALIGNMENT = 16 };

static void full_name(int32_t layer, const char *name, char out[NAME_BYTES])
{
    if (layer < 0) snprintf(out, NAME_BYTES, "%s", name);
    else snprintf(out, NAME_BYTES, "blk.%d.%s", (int)layer, name);
}

bool pn_has_tensor(pn_builder *b, int32_t layer, const char *name)
{
    char full[NAME_BYTES];
    full_name(layer, name, full);
    return pn_gguf_tensor(b->g, full) != NULL;
}

int64_t pn_tensor_rows(pn_builder *b, int32_t layer, const char *name, int64_t most)
{
    char full[NAME_BYTES];
    full_name(layer, name, full);
    if (b->status) return 0;
    const pn_tensor *t = pn_gguf_tensor(b->g, full);
    if (t && t->ne[1] >= 1 && t->ne[1] <= most) return t->ne[1];
    if (t) pn_build_fail(b, PINCH_ERR_FORMAT, "tensor '%s' has %lld rows, outside 1..%lld", full, (long long)t->ne[1], (long long)most);
    else pn_build_fail(b, PINCH_ERR_FORMAT, "tensor '%s' is missing", full);
    return 0;
}

/* The tensor of exactly this shape; NULL if it is absent (an error if required) or does not fit. */
static const pn_tensor *find(pn_builder *b, int32_t layer, const char *name, const int64_t want[3], bool required)
{
    char full[NAME_BYTES];
    full_name(layer, name, full);
    if (b->status) return NULL;
    const pn_tensor *t = pn_gguf_tensor(b->g, full);
    if (!t) {
        if (required) pn_build_fail(b, PINCH_ERR_FORMAT, "tensor '%s' is missing", full);
        return NULL;
    }
    if (t->ne[0] == want[0] && t->ne[1] == want[1] && t->ne[2] == want[2] && t->ne[3] == 1) return t;
    pn_build_fail(b, PINCH_ERR_FORMAT, "tensor '%s' is %lld x %lld x %lld, and the metadata asks for %lld x %lld x %lld", full, (long long)t->ne[0], (long long)t->ne[1],
                  (long long)t->ne[2], (long long)want[0], (long long)want[1], (long long)want[2]);
    return NULL;
}

const pn_tensor *pn_bind_rows(pn_builder *b, int32_t layer, const char *name, int64_t width, int64_t rows)
{
    const pn_tensor *t = find(b, layer, name, (const int64_t[3]){width, rows, 1}, true);
    if (!t || pn_type_get((uint32_t)t->type)->dequantise) return t;
    pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "tensor '%s' has type %s, which is no number to compute with", name, pn_type_get((uint32_t)t->type)->name);
    return NULL;
}

/* Chooses kernel and layout. False after an error. */
static bool choose_kernel(pn_builder *b, pn_source *s, bool plain)
{
    pn_weight *w = &s->weight;
    const pn_type_info *info = pn_type_get((uint32_t)w->type);
    const pn_weights_options *o = b->options;
    if (!plain) w->kernel = o->forced[w->type] ? o->forced[w->type] : pn_kernel_best(w->type, o->features);
    if (!info || (plain ? !info->dequantise : !w->kernel)) {
        pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "tensor '%.*s' has type %s, which nothing here multiplies", (int)s->tensor->name.n, s->tensor->name.p, info ? info->name : "unknown");
        return false;
    }
    const bool packs = w->kernel && w->kernel->group_bytes;
    uint64_t row = 0;
    bool fits = pn_row_bytes(w->type, (uint64_t)w->k, &row);
    if (packs) fits = fits && pn_kernel_matrix_bytes(w->kernel, w->rows, w->k, &w->matrix_bytes);
    else fits = fits && pn_mul(row, (uint64_t)w->rows, &w->matrix_bytes);
    fits = fits && pn_mul(w->matrix_bytes, (uint64_t)w->n_experts, &s->bytes);
    s->mapped = !packs && o->use_mapping && s->run == w->rows && (s->tensor->offset + (uint64_t)s->first_row * row) % MAPPED_ALIGNMENT == 0;
    if (s->mapped) fits = fits && pn_mul(row, (uint64_t)s->stride, &w->matrix_bytes); /* from a part of one matrix to that of the next */
    if (!fits) {
        pn_build_fail(b, PINCH_ERR_FORMAT, "tensor '%.*s' is too large", (int)s->tensor->name.n, s->tensor->name.p);
        return false;
    }
    return true;
}

static bool add_bytes(pn_builder *b, pn_source *s)
{
    pn_network *net = b->net;
    s->offset = net->resident_bytes;
    uint64_t *total = s->mapped ? &net->mapped_bytes : &net->resident_bytes;
    if (pn_add(*total, pn_round_up(s->bytes, 64), total) && *total <= SIZE_MAX / 2) return true;
    pn_build_fail(b, PINCH_ERR_MEMORY, "the weights do not fit in an address space");
    return false;
}

static pn_weight *add_source(pn_builder *b, const pn_tensor *t, const pn_matrices *m)
{
    pn_network *net = b->net;
    pn_source *s = pn_arena_get(&net->arena, 1, sizeof *s);
    if (!s) {
        pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for the list of tensors");
        return NULL;
    }
    *s = (pn_source){.weight = {.type = t->type, .rows = m->one ? m->rows * m->n : m->rows, .k = m->k, .n_experts = m->one ? 1 : m->n}, .tensor = t, .first_row = m->first, .run = m->rows,
                     .stride = m->total};
    if (!choose_kernel(b, s, b->options->exact || m->plain) || !add_bytes(b, s)) return NULL;
    if (net->last) net->last->next = s;
    else net->first = s;
    net->last = s;
    net->n_sources++;
    return &s->weight;
}

/* "attn_q.weight" has its scale in "attn_q.scale", [n_experts]. */
static void bind_scale(pn_builder *b, pn_weight *w, int32_t layer, const char *name)
{
    char scale[NAME_BYTES];
    const char *dot = strrchr(name, '.');
    if (!dot || strcmp(dot, ".weight") || (b->d.ignore_ffn_scales && !strncmp(name, "ffn_", 4))) return;
    snprintf(scale, sizeof scale, "%.*s.scale", (int)(dot - name), name);
    w->scale = pn_bind_vector(b, layer, scale, w->n_experts, false);
}

const pn_weight *pn_bind_matrices(pn_builder *b, int32_t layer, const char *name, pn_matrices m)
{
    const int64_t shape[3] = {m.k, m.joined ? m.total * m.n : m.total, m.joined ? 1 : m.n};
    const pn_tensor *t = find(b, layer, name, shape, !m.optional);
    pn_weight *w = t ? add_source(b, t, &m) : NULL;
    if (w && !m.joined) bind_scale(b, w, layer, name);
    return w;
}

const pn_weight *pn_bind_experts(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t rows, int32_t n, bool required)
{
    return pn_bind_matrices(b, layer, name, (pn_matrices){.k = k, .total = rows, .rows = rows, .n = n, .optional = !required});
}

const pn_weight *pn_bind(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t rows, bool required)
{
    return pn_bind_experts(b, layer, name, k, rows, 1, required);
}

const pn_weight *pn_bind_part(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t total, int64_t first, int64_t rows)
{
    const pn_tensor *t = find(b, layer, name, (const int64_t[3]){k, total, 1}, true);
    return t ? add_source(b, t, &(pn_matrices){.k = k, .total = total, .first = first, .rows = rows, .n = 1}) : NULL;
}

const pn_weight *pn_bind_runs(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t total, pn_rows rows)
{
    const pn_tensor *t = find(b, layer, name, (const int64_t[3]){k, total, 1}, true);
    pn_weight *w = t ? add_source(b, t, &(pn_matrices){.k = k, .total = rows.stride, .first = rows.first, .rows = rows.run, .n = rows.n_runs, .one = true}) : NULL;
    if (w) bind_scale(b, w, layer, name);
    return w;
}

/* A tensor's values as floats, in file order. */
static float *read_floats(pn_builder *b, const pn_tensor *t, int64_t n)
{
    if (!t) return NULL;
    const pn_type_info *info = pn_type_get((uint32_t)t->type);
    if (!info || !info->dequantise) {
        pn_build_fail(b, PINCH_ERR_UNSUPPORTED, "tensor '%.*s' has type %s, which is no number to compute with", (int)t->name.n, t->name.p, info ? info->name : "unknown");
        return NULL;
    }
    float *values = pn_arena_get(&b->net->arena, (uint64_t)n, sizeof *values);
    void *raw = pn_alloc(t->bytes, 1);
    if (!values || !raw) {
        pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for tensor '%.*s'", (int)t->name.n, t->name.p);
    } else {
        b->status = pn_gguf_read(b->g, t, 0, raw, t->bytes, b->err);
        if (!b->status) info->dequantise(values, raw, n);
    }
    free(raw);
    return b->status ? NULL : values;
}

const float *pn_bind_vector(pn_builder *b, int32_t layer, const char *name, int64_t n, bool required)
{
    return read_floats(b, find(b, layer, name, (const int64_t[3]){n, 1, 1}, required), n);
}

const float *pn_bind_table(pn_builder *b, int32_t layer, const char *name, int64_t k, int64_t rows, bool required)
{
    return read_floats(b, find(b, layer, name, (const int64_t[3]){k, rows, 1}, required), k * rows);
}

/* Some files have a middle dimension of 1: [channels][1][n_taps]. */
static const float *bind_channel_taps(pn_builder *b, int32_t layer, const char *name, int64_t channels, int32_t n_taps)
{
    char full[NAME_BYTES];
    full_name(layer, name, full);
    const pn_tensor *t = b->status ? NULL : pn_gguf_tensor(b->g, full);
    const bool middle = t && t->ne[1] == 1 && channels != 1;
    return read_floats(b, find(b, layer, name, (const int64_t[3]){n_taps, middle ? 1 : channels, middle ? channels : 1}, true), channels * n_taps);
}

const float *pn_bind_taps(pn_builder *b, int32_t layer, const char *const *names, const int64_t *channels, int n, int32_t n_taps)
{
    int64_t total = 0, first = 0;
    for (int i = 0; i < n; i++) total += channels[i];
    float *taps = NULL;
    for (int i = 0; i < n; first += channels[i], i++) {
        const float *from = bind_channel_taps(b, layer, names[i], channels[i], n_taps);
        if (from && !taps) taps = pn_arena_get(&b->net->arena, (uint64_t)total * (uint64_t)n_taps, sizeof *taps);
        if (from && !taps) pn_build_fail(b, PINCH_ERR_MEMORY, "out of memory for the taps of layer %d", (int)layer);
        if (b->status) return NULL;
        for (int64_t c = 0; c < channels[i]; c++)
            for (int32_t k = 0; k < n_taps; k++) taps[k * total + first + c] = from[c * n_taps + k];
    }
    return taps;
}
