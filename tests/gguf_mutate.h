/* tests/gguf_mutate.h - hostile variants of a good GGUF file, one per seed: bits, lengths, counts, kinds, types, offsets, strings, floats, cuts.
 *
 * gguf_layout finds the fields of a good file once; gguf_mutate makes mutant number `seed` of it, the same on every machine. */
#ifndef PN_GGUF_MUTATE_H
#define PN_GGUF_MUTATE_H

#include "gguf_bytes.h"
#include "hostile_numbers.h"

typedef struct field {
    size_t at, width;
    bool is_float;
} field;

typedef struct layout {
    field *fields; /* lengths, counts, kinds, dimensions, types, offsets, scalar values */
    size_t n, capacity;
    field *texts;  /* at and length of strings */
    size_t n_texts, texts_capacity;
    size_t header; /* bytes before the data */
} layout;

static uint64_t load(const bytes *b, size_t at, size_t width)
{
    uint64_t v = 0;
    for (size_t i = 0; i < width; i++) v |= (uint64_t)b->p[at + i] << 8 * i;
    return v;
}

static void layout_note(field **list, size_t *n, size_t *capacity, size_t at, size_t width, bool is_float)
{
    if (*n == *capacity) {
        *capacity = *capacity ? *capacity * 2 : 256;
        *list = realloc(*list, *capacity * sizeof **list);
        if (!*list) exit(1);
    }
    (*list)[(*n)++] = (field){at, width, is_float};
}

static size_t layout_field(layout *l, size_t at, size_t width, bool is_float)
{
    layout_note(&l->fields, &l->n, &l->capacity, at, width, is_float);
    return at + width;
}

static size_t layout_string(layout *l, const bytes *b, size_t at)
{
    const size_t n = (size_t)load(b, at, 8);
    layout_field(l, at, 8, false);
    if (n) layout_note(&l->texts, &l->n_texts, &l->texts_capacity, at + 8, n, false);
    return at + 8 + n;
}

/* Of arrays the first items only: a vocabulary would crowd out all else. */
static size_t layout_items(layout *l, const bytes *b, size_t at, uint64_t kind, uint64_t count)
{
    static const uint8_t sizes[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    for (uint64_t i = 0; i < count; i++) {
        if (kind != PN_GGUF_STRING && i >= 4) return at + (size_t)(count - i) * sizes[kind];
        if (kind != PN_GGUF_STRING) at = layout_field(l, at, sizes[kind], kind == PN_GGUF_F32 || kind == PN_GGUF_F64);
        else if (i < 4) at = layout_string(l, b, at);
        else at += 8 + (size_t)load(b, at, 8);
    }
    return at;
}

static layout gguf_layout(const bytes *b)
{
    layout l = {0};
    const uint64_t n_tensors = load(b, 8, 8), n_values = load(b, 16, 8);
    size_t at = layout_field(&l, layout_field(&l, layout_field(&l, 4, 4, false), 8, false), 8, false);
    for (uint64_t i = 0; i < n_values; i++) {
        at = layout_string(&l, b, at);
        uint64_t kind = load(b, at, 4), count = 1;
        at = layout_field(&l, at, 4, false);
        if (kind == PN_GGUF_ARRAY) {
            kind = load(b, at, 4);
            count = load(b, at + 4, 8);
            at = layout_field(&l, layout_field(&l, at, 4, false), 8, false);
        }
        at = layout_items(&l, b, at, kind, count);
    }
    for (uint64_t i = 0; i < n_tensors; i++) {
        at = layout_string(&l, b, at);
        const uint64_t dims = load(b, at, 4);
        at = layout_field(&l, at, 4, false);
        for (uint64_t d = 0; d < dims; d++) at = layout_field(&l, at, 8, false);
        at = layout_field(&l, layout_field(&l, at, 4, false), 8, false);
    }
    l.header = at;
    return l;
}

static void layout_free(layout *l)
{
    free(l->fields);
    free(l->texts);
}

/* One change of *b; it may become shorter. */
static void mutate_once(bytes *b, const layout *l, unsigned long long *seed)
{
    const uint64_t r = pn_random(seed), s = pn_random(seed);
    const size_t header = l->header < b->n ? l->header : b->n, op = r % 16;
    if (!header) return;
    if (op < 9) {
        const field f = l->fields[s % l->n];
        if (f.at + f.width > b->n) return;
        const uint64_t v = f.is_float ? hostile_float(seed, f.width) : hostile_number(seed, load(b, f.at, f.width));
        for (size_t i = 0; i < f.width; i++) b->p[f.at + i] = (uint8_t)(v >> 8 * i);
    } else if (op == 9 || op == 10) {
        b->p[s % header] ^= (uint8_t)(1u << (r >> 8) % 8);
    } else if (op == 11) {
        b->p[s % b->n] ^= (uint8_t)(1u << (r >> 8) % 8);
    } else if (op == 12 && l->n_texts) {
        const field t = l->texts[s % l->n_texts];
        if (t.at + t.width <= b->n) b->p[t.at + (r >> 8) % t.width] = (uint8_t)(r >> 32);
    } else if (op == 13) {
        b->n = (size_t)((r >> 8) % 2 ? s % header : s % b->n);
    } else {
        const size_t n = (size_t)((r >> 8) % 64), from = (size_t)(s % header), to = (size_t)((s >> 32) % header);
        const size_t most = b->n - (from > to ? from : to);
        memmove(b->p + to, b->p + from, n < most ? n : most);
    }
}

/* Mutant of `good` into *out, whose buffer is as large and is reused. */
static void gguf_mutate(bytes *out, const bytes *good, const layout *l, unsigned long long seed)
{
    unsigned long long state = (seed + 1) * 0x9E3779B97F4A7C15ull;
    memcpy(out->p, good->p, good->n);
    out->n = good->n;
    for (uint64_t n = 1 + pn_random(&state) % 3; n > 0; n--) mutate_once(out, l, &state);
}

static bool bytes_read(bytes *b, const char *path)
{
    FILE *f = fopen(path, "rb");
    uint8_t piece[4096];
    size_t n;
    *b = (bytes){0};
    while (f && (n = fread(piece, 1, sizeof piece, f)) > 0) bytes_add(b, piece, n);
    if (f) fclose(f);
    return f != NULL;
}

#endif
