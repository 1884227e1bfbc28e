/* gguf/gguf.c - a model's file or files as one: parts, lookups, typed reads. Knows no key but those of splitting. */
#include "gguf/header.h"

#include "base/math.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct part {
    pn_file *file;
    pn_gguf_header header; /* of later parts only block and version are kept: their values say nothing but the part's number */
} part;

struct pn_gguf {
    part *parts;
    int n_parts;
    const pn_gguf_value *values; /* of the first part */
    size_t n_values;
    pn_tensor *tensors; /* of all parts; owned */
    size_t n_tensors;
    pn_name_entry *keys;  /* sorted */
    pn_name_entry *names; /* sorted */
    uint64_t dropped;     /* bytes of the header that are given back */
};

static pn_str text_of(const char *s) { return (pn_str){s, strlen(s)}; }

/* ---- opening ---------------------------------------------------------------------------------- */

/* The end of a split file's name, as llama-gguf-split writes it. */
enum { SPLIT_SUFFIX = 20, MAX_PARTS = 99999 };
static void split_suffix(char buffer[SPLIT_SUFFIX + 13], int number, int count) { snprintf(buffer, SPLIT_SUFFIX + 13, "-%05d-of-%05d.gguf", number + 1, count); }

/* Adds the file as the next part. Takes `file` over, also on failure. */
static pinch_status add_part(pn_gguf *g, pn_file *file, pinch_error *err)
{
    part *p = realloc(g->parts, ((size_t)g->n_parts + 1) * sizeof *p);
    if (!p) {
        pn_file_close(file);
        return pn_fail_memory(err, "the list of files", sizeof *p);
    }
    g->parts = p;
    p += g->n_parts;
    *p = (part){.file = file};
    pinch_status status = pn_gguf_header_read(&p->header, file, g->n_parts, err);
    if (status) pn_file_close(file);
    else g->n_parts++;
    return status;
}

static void drop_parts(pn_gguf *g)
{
    for (int i = 0; i < g->n_parts; i++) {
        pn_gguf_header_free(&g->parts[i].header);
        pn_file_close(g->parts[i].file);
    }
    free(g->parts);
    g->parts = NULL;
    g->n_parts = 0;
}

/* An integer of a part's own metadata, or `otherwise` where it is absent. */
static pinch_status split_number(const part *p, const char *key, int64_t otherwise, int64_t *out, pinch_error *err)
{
    *out = otherwise;
    for (size_t i = 0; i < p->header.n_values; i++) {
        const pn_gguf_value *v = &p->header.values[i];
        if (pn_str_compare(v->key, text_of(key)) != 0) continue;
        if (v->kind == PN_GGUF_ARRAY || !pn_gguf_int_at(v, 0, out))
            return pn_fail(err, PINCH_ERR_FORMAT, "%s: %s is of kind %s, an integer is needed", pn_file_name(p->file), key, pn_gguf_kind_name(v->kind));
        return PINCH_OK;
    }
    return PINCH_OK;
}

static pinch_status check_part(const part *p, int number, int count, pinch_error *err)
{
    int64_t own_number, own_count;
    pinch_status status = split_number(p, "split.no", -1, &own_number, err);
    if (!status) status = split_number(p, "split.count", -1, &own_count, err);
    if (!status && (own_number != number || own_count != count))
        status = pn_fail(err, PINCH_ERR_FORMAT, "%s: split.no %" PRId64 " of split.count %" PRId64 ", but its name says %d of %d (from 0)", pn_file_name(p->file), own_number, own_count, number, count);
    return status;
}

/* Replaces the one part that was opened by all, found by name. */
static pinch_status open_split(pn_gguf *g, const char *path, int64_t number, int count, pinch_error *err)
{
    char suffix[SPLIT_SUFFIX + 13];
    const size_t n = strlen(path);
    split_suffix(suffix, (int)number, count);
    const size_t m = strlen(suffix);
    if (n < m || strcmp(path + n - m, suffix) != 0)
        return pn_fail(err, PINCH_ERR_FORMAT, "%s: is part %" PRId64 " of %d of a split model, so its name must end in \"%s\" to find the others", pn_file_name(g->parts[0].file), number + 1, count, suffix);
    char *name = pn_alloc(1, n + 1);
    if (!name) return pn_fail_memory(err, "a file's name", n + 1);
    drop_parts(g);
    pinch_status status = PINCH_OK;
    for (int i = 0; i < count && !status; i++) {
        pn_file *file = NULL;
        memcpy(name, path, n - m);
        split_suffix(suffix, i, count);
        memcpy(name + n - m, suffix, m + 1);
        status = pn_file_open(&file, name, err);
        if (!status) status = add_part(g, file, err);
        if (!status) status = check_part(&g->parts[i], i, count, err);
    }
    free(name);
    return status;
}

/* Makes one table of the parts' tensors; the first part's values stay. */
static pinch_status join_parts(pn_gguf *g, pinch_error *err)
{
    uint64_t n = 0;
    for (int i = 0; i < g->n_parts; i++) n += g->parts[i].header.n_tensors;
    g->values = g->parts[0].header.values;
    g->n_values = g->parts[0].header.n_values;
    g->tensors = pn_alloc(n, sizeof *g->tensors);
    if (!g->tensors) return pn_fail_memory(err, "the table of tensors", n * sizeof *g->tensors);
    for (int i = 0; i < g->n_parts; i++) {
        pn_gguf_header *h = &g->parts[i].header;
        if (h->n_tensors) memcpy(g->tensors + g->n_tensors, h->tensors, h->n_tensors * sizeof *h->tensors);
        g->n_tensors += h->n_tensors;
        free(h->tensors);
        h->tensors = NULL;
        if (i == 0) continue;
        free(h->values);
        h->values = NULL;
    }
    return PINCH_OK;
}

static pinch_status check_total(const pn_gguf *g, pinch_error *err)
{
    int64_t total;
    if (g->n_parts == 1) return PINCH_OK;
    pinch_status status = split_number(&g->parts[0], "split.tensors.count", -1, &total, err);
    if (!status && (total < 0 || (uint64_t)total != g->n_tensors))
        status = pn_fail(err, PINCH_ERR_FORMAT, "%s: split.tensors.count is %" PRId64 ", the %d files hold %zu tensors", pn_gguf_name(g), total, g->n_parts, g->n_tensors);
    return status;
}

/* `path` NULL: opened by descriptor, so the other parts of a split model cannot be found. Takes `file` over. */
static pinch_status open_all(pn_gguf **out, pn_file *file, const char *path, pinch_error *err)
{
    pn_gguf *g = pn_alloc_zero(1, sizeof *g);
    if (!g) {
        pn_file_close(file);
        return pn_fail_memory(err, "an open model file", sizeof *g);
    }
    int64_t number = 0, count = 1;
    pinch_status status = add_part(g, file, err);
    if (!status) status = split_number(&g->parts[0], "split.count", 1, &count, err);
    if (!status) status = split_number(&g->parts[0], "split.no", 0, &number, err);
    if (!status && (count < 0 || count > MAX_PARTS || number < 0 || (count > 1 && number >= count)))
        status = pn_fail(err, PINCH_ERR_FORMAT, "%s: split.no %" PRId64 " of split.count %" PRId64, pn_gguf_name(g), number, count);
    if (!status && count > 1 && !path)
        status = pn_fail(err, PINCH_ERR_UNSUPPORTED, "%s: is part %" PRId64 " of %" PRId64 " of a split model, which opens only by its path", pn_gguf_name(g), number + 1, count);
    if (!status && count > 1) status = open_split(g, path, number, (int)count, err);
    if (!status) status = join_parts(g, err);
    if (!status) status = check_total(g, err);
    if (!status) status = pn_index_values(&g->keys, g->values, g->n_values, pn_gguf_name(g), err);
    if (!status) status = pn_index_tensors(&g->names, g->tensors, g->n_tensors, pn_gguf_name(g), err);
    if (status) pn_gguf_close(g);
    else *out = g;
    return status;
}

pinch_status pn_gguf_open(pn_gguf **out, const char *path, pinch_error *err)
{
    pn_file *file;
    pinch_status status = pn_file_open(&file, path, err);
    return status ? status : open_all(out, file, path, err);
}

pinch_status pn_gguf_open_fd(pn_gguf **out, int fd, const char *name, pinch_error *err)
{
    pn_file *file;
    pinch_status status = pn_file_open_fd(&file, fd, name, err);
    return status ? status : open_all(out, file, NULL, err);
}

void pn_gguf_close(pn_gguf *g)
{
    if (!g) return;
    drop_parts(g);
    free(g->tensors);
    free(g->keys);
    free(g->names);
    free(g);
}

/* ---- what is there ---------------------------------------------------------------------------- */

const char *pn_gguf_name(const pn_gguf *g) { return pn_file_name(g->parts[0].file); }
uint32_t pn_gguf_version(const pn_gguf *g) { return g->parts[0].header.version; }
int pn_gguf_n_parts(const pn_gguf *g) { return g->n_parts; }
const pn_file *pn_gguf_file(const pn_gguf *g, int number) { return g->parts[number].file; }
size_t pn_gguf_n_values(const pn_gguf *g) { return g->n_values; }
const pn_gguf_value *pn_gguf_value_at(const pn_gguf *g, size_t i) { return &g->values[i]; }
size_t pn_gguf_n_tensors(const pn_gguf *g) { return g->n_tensors; }
const pn_tensor *pn_gguf_tensor_at(const pn_gguf *g, size_t i) { return &g->tensors[i]; }

const pn_gguf_value *pn_gguf_find(const pn_gguf *g, const char *key)
{
    const pn_name_entry *e = pn_index_find(g->keys, g->n_values, text_of(key));
    return e ? &g->values[e->index] : NULL;
}

const pn_tensor *pn_gguf_tensor(const pn_gguf *g, const char *name)
{
    const pn_name_entry *e = pn_index_find(g->names, g->n_tensors, text_of(name));
    return e ? &g->tensors[e->index] : NULL;
}

uint64_t pn_gguf_header_bytes(const pn_gguf *g)
{
    uint64_t bytes = sizeof *g + (uint64_t)g->n_values * (sizeof *g->values + sizeof *g->keys) + (uint64_t)g->n_tensors * (sizeof *g->tensors + sizeof *g->names);
    for (int i = 0; i < g->n_parts; i++) bytes += sizeof *g->parts + g->parts[i].header.bytes;
    return bytes - g->dropped;
}

void pn_gguf_drop(pn_gguf *g, const char *key)
{
    const pn_name_entry *hit = pn_index_find(g->keys, g->n_values, text_of(key));
    pn_gguf_header *h = &g->parts[0].header;
    if (!hit || h->values[hit->index].kind != PN_GGUF_ARRAY) return;
    pn_gguf_value *v = &h->values[hit->index];
    g->dropped += pn_pages_drop(h->block + (v->data - h->block), v->bytes);
    v->count = v->bytes = 0;
}

pinch_status pn_gguf_read(const pn_gguf *g, const pn_tensor *t, uint64_t offset, void *dst, uint64_t n, pinch_error *err)
{
    if (offset > t->bytes || n > t->bytes - offset)
        return pn_fail(err, PINCH_ERR_ARGUMENT, "%s: tensor '%.*s' has %" PRIu64 " bytes, %" PRIu64 " at %" PRIu64 " are wanted", pn_gguf_name(g), PN_SHOWN(t->name), t->bytes, n, offset);
    return pn_file_read(g->parts[t->part].file, dst, n, t->offset + offset, err);
}

/* ---- typed reads ------------------------------------------------------------------------------ */

/* Item i of a value whose items have a fixed size; NULL otherwise. The scan has made bytes and count agree. */
static const uint8_t *item_at(const pn_gguf_value *v, uint64_t i)
{
    const uint32_t size = pn_gguf_kind_bytes(v->item);
    return size && i < v->count ? v->data + i * size : NULL;
}

bool pn_gguf_int_at(const pn_gguf_value *v, uint64_t i, int64_t *out)
{
    const uint8_t *p = item_at(v, i);
    if (!p) return false;
    switch (v->item) {
    case PN_GGUF_BOOL: *out = *p != 0; return true;
    case PN_GGUF_U8: *out = *p; return true;
    case PN_GGUF_I8: *out = (int8_t)*p; return true;
    case PN_GGUF_U16: *out = p[0] | p[1] << 8; return true;
    case PN_GGUF_I16: *out = (int16_t)(p[0] | p[1] << 8); return true;
    case PN_GGUF_U32: *out = pn_gguf_u32(p); return true;
    case PN_GGUF_I32: *out = (int32_t)pn_gguf_u32(p); return true;
    case PN_GGUF_I64: *out = (int64_t)pn_gguf_u64(p); return true;
    case PN_GGUF_U64:
        if (pn_gguf_u64(p) > INT64_MAX) return false;
        *out = (int64_t)pn_gguf_u64(p);
        return true;
    default: return false;
    }
}

bool pn_gguf_float_at(const pn_gguf_value *v, uint64_t i, double *out)
{
    const uint8_t *p = item_at(v, i);
    int64_t whole;
    if (p && v->item == PN_GGUF_F32) {
        *out = (double)pn_bits_float(pn_gguf_u32(p));
        return true;
    }
    if (p && v->item == PN_GGUF_F64) {
        *out = pn_bits_double(pn_gguf_u64(p));
        return true;
    }
    if (!p || v->item == PN_GGUF_BOOL || !pn_gguf_int_at(v, i, &whole)) return false;
    *out = (double)whole;
    return true;
}

bool pn_gguf_next_string(const pn_gguf_value *v, uint64_t *cursor, pn_str *out)
{
    if (v->item != PN_GGUF_STRING || *cursor > v->bytes || v->bytes - *cursor < 8) return false;
    const uint64_t n = pn_gguf_u64(v->data + *cursor);
    if (n > v->bytes - *cursor - 8) return false; /* the file changed between scan and read */
    *out = (pn_str){(const char *)v->data + *cursor + 8, (size_t)n};
    *cursor += 8 + n;
    return true;
}

static pinch_status wrong_kind(const pn_gguf *g, const pn_gguf_value *v, const char *needed, pinch_error *err)
{
    const bool array = v->kind == PN_GGUF_ARRAY;
    return pn_fail(err, PINCH_ERR_FORMAT, "%s: metadata key '%.*s' is %s%s, %s is needed", pn_gguf_name(g), PN_SHOWN(v->key), array ? "an array of " : "of kind ",
                   pn_gguf_kind_name(v->item), needed);
}

pinch_status pn_gguf_get_int(const pn_gguf *g, const char *key, int64_t *out, bool *found, pinch_error *err)
{
    const pn_gguf_value *v = pn_gguf_find(g, key);
    *found = v != NULL;
    if (!v || (v->kind != PN_GGUF_ARRAY && v->kind != PN_GGUF_BOOL && pn_gguf_int_at(v, 0, out))) return PINCH_OK;
    if (v->kind == PN_GGUF_U64) return pn_fail(err, PINCH_ERR_FORMAT, "%s: metadata key '%s' is %" PRIu64 ", beyond 2^63", pn_gguf_name(g), key, pn_gguf_u64(v->data));
    return wrong_kind(g, v, "an integer", err);
}

pinch_status pn_gguf_get_float(const pn_gguf *g, const char *key, double *out, bool *found, pinch_error *err)
{
    const pn_gguf_value *v = pn_gguf_find(g, key);
    *found = v != NULL;
    if (!v || (v->kind != PN_GGUF_ARRAY && pn_gguf_float_at(v, 0, out))) return PINCH_OK;
    return wrong_kind(g, v, "a number", err);
}

pinch_status pn_gguf_get_bool(const pn_gguf *g, const char *key, bool *out, bool *found, pinch_error *err)
{
    const pn_gguf_value *v = pn_gguf_find(g, key);
    *found = v != NULL;
    if (!v) return PINCH_OK;
    if (v->kind != PN_GGUF_BOOL) return wrong_kind(g, v, "a bool", err);
    *out = *v->data != 0;
    return PINCH_OK;
}

pinch_status pn_gguf_get_string(const pn_gguf *g, const char *key, pn_str *out, bool *found, pinch_error *err)
{
    const pn_gguf_value *v = pn_gguf_find(g, key);
    uint64_t cursor = 0;
    *found = v != NULL;
    if (!v || (v->kind == PN_GGUF_STRING && pn_gguf_next_string(v, &cursor, out))) return PINCH_OK;
    return wrong_kind(g, v, "a string", err);
}
