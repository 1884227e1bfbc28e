/* tests/gguf_variant.h - a golden model of one file and F32 tensors, written again with something changed. */
#ifndef PN_GGUF_VARIANT_H
#define PN_GGUF_VARIANT_H

#include "gguf/gguf.h"
#include "test.h"

#include <unistd.h>

typedef struct variant {
    const char *what;
    const char *without;  /* tensors whose names hold this are left out; NULL: none */
    const char *keys[2];  /* 32-bit integers whose keys end so; NULL: none */
    int32_t more[2];      /* what is added to them */
    bool quantised;       /* matrices, by turns as q8_0 and q4_0, and as q4_k where rows allow it */
} variant;

static bool variant_ends(const pn_str *key, const char *end)
{
    const size_t n = end ? strlen(end) : 0;
    return n && key->n >= n && !memcmp(key->p + key->n - n, end, n);
}

static pinch_status variant_value(const variant *v, const pn_gguf_value *old, pn_gguf_writer *w, pinch_error *err)
{
    pn_gguf_value value = *old;
    uint8_t number[4];
    int64_t n;
    for (int i = 0; i < 2; i++) {
        if (!variant_ends(&old->key, v->keys[i]) || !pn_gguf_int_at(old, 0, &n)) continue;
        for (int k = 0; k < 4; k++) number[k] = (uint8_t)((uint64_t)(n + v->more[i]) >> 8 * k);
        value.data = number;
    }
    return pn_gguf_put(w, &value, err);
}

static bool variant_keeps(const variant *v, const pn_tensor *t)
{
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
    return !v->without || !strstr(name, v->without);
}

static pn_type variant_type(const variant *v, const pn_tensor *t, size_t i)
{
    if (!v->quantised || t->n_dims < 2 || t->ne[0] % 32) return t->type;
    return t->ne[0] % 256 == 0 ? PN_Q4_K : i % 2 ? PN_Q8_0 : PN_Q4_0;
}

static pinch_status variant_data(const pn_gguf *g, const pn_tensor *t, pn_type type, pn_gguf_writer *w, pinch_error *err)
{
    const int64_t k = t->ne[0], rows = t->ne[1] * t->ne[2] * t->ne[3];
    uint64_t row = 0;
    pn_row_bytes(type, (uint64_t)k, &row);
    float *from = malloc((size_t)t->bytes);
    uint8_t *to = malloc((size_t)(row * (uint64_t)rows));
    if (!from || !to) exit(1);
    pinch_status st = pn_gguf_read(g, t, 0, from, t->bytes, err);
    for (int64_t i = 0; i < rows && type != t->type; i++) pn_type_get((uint32_t)type)->quantise(to + (uint64_t)i * row, from + i * k, k, NULL);
    if (!st) st = pn_gguf_put_data(w, type == t->type ? (const void *)from : to, row * (uint64_t)rows, err);
    free(from);
    free(to);
    return st;
}

static pinch_status variant_put(const variant *v, const pn_gguf *g, pn_gguf_writer *w, pinch_error *err)
{
    pinch_status st = PINCH_OK;
    const size_t n = pn_gguf_n_tensors(g);
    for (size_t i = 0; i < pn_gguf_n_values(g) && !st; i++) st = variant_value(v, pn_gguf_value_at(g, i), w, err);
    for (size_t i = 0; i < n && !st; i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        char name[128];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
        if (variant_keeps(v, t)) st = pn_gguf_put_tensor(w, name, variant_type(v, t, i), t->n_dims, t->ne, err);
    }
    for (size_t i = 0; i < n && !st; i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        if (variant_keeps(v, t)) st = variant_data(g, t, variant_type(v, t, i), w, err);
    }
    return st;
}

/* The variant at `path`, which the caller removes. */
static bool variant_write(const variant *v, const char *model, const char *path)
{
    pn_gguf *g = NULL;
    pn_gguf_writer *w = NULL;
    pinch_error err = {0};
    pinch_status st = pn_gguf_open(&g, model, &err);
    if (!st) st = pn_gguf_writer_open(&w, path, &err);
    if (!st) {
        st = variant_put(v, g, w, &err);
        if (st) pn_gguf_writer_abandon(w);
        else st = pn_gguf_writer_finish(w, &err);
    }
    pn_gguf_close(g);
    return CHECK("a variant is written", st == PINCH_OK, "%s of %s: %s", v->what, model, err.message);
}

#endif
