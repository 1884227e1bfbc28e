/* gguf/header.c - reads the header of one file. Everything in it is hostile until checked.
 *
 * Two steps. A scan goes through the file with a small window, checks every length against the bytes that are left before it is used, and
 * notes sizes; so nothing is allocated before the file has shown that it holds as much. Then the header is read as one block, and keys, names
 * and values are pointed into it by walking the noted sizes; lengths inside the block are not trusted again. */
#include "gguf/header.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 1 << 16, HEAD = 80, MAX_KEY = 65535 };
#define MAX_STRING (UINT64_C(1) << 30)
#define MAX_ITEMS (UINT64_C(1) << 30)
#define MAX_RECORDS (UINT64_C(1) << 20)
#define MAX_ALIGNMENT (UINT32_C(1) << 20)
/* Smallest records: a key of one byte with a value of one byte; a tensor of no name and no dimensions. */
enum { MIN_VALUE_RECORD = 8 + 1 + 4 + 1, MIN_TENSOR_RECORD = 8 + 4 + 4 + 8 };

static const struct { const char *name; uint32_t bytes; } kinds[] = {
    [PN_GGUF_U8] = {"u8", 1},   [PN_GGUF_I8] = {"i8", 1},   [PN_GGUF_U16] = {"u16", 2},   [PN_GGUF_I16] = {"i16", 2},       [PN_GGUF_U32] = {"u32", 4},
    [PN_GGUF_I32] = {"i32", 4}, [PN_GGUF_F32] = {"f32", 4}, [PN_GGUF_BOOL] = {"bool", 1}, [PN_GGUF_STRING] = {"string", 0}, [PN_GGUF_ARRAY] = {"array", 0},
    [PN_GGUF_U64] = {"u64", 8}, [PN_GGUF_I64] = {"i64", 8}, [PN_GGUF_F64] = {"f64", 8},
};

uint32_t pn_gguf_kind_bytes(uint32_t kind) { return kind < PN_COUNT(kinds) ? kinds[kind].bytes : 0; }
const char *pn_gguf_kind_name(uint32_t kind) { return kind < PN_COUNT(kinds) ? kinds[kind].name : "unknown"; }

/* ---- the window ------------------------------------------------------------------------------- */

typedef struct scan {
    const pn_file *file;
    pinch_error *err;
    pinch_status status; /* the first failure */
    uint64_t at, left;   /* position in the file, bytes behind it */
    uint64_t start, end; /* part of the file that the window holds */
    const char *section; /* for sentences: "metadata value", "tensor"; NULL before them */
    uint64_t index;
    char head[HEAD];     /* the first bytes of the last name read, as a C string */
    bool named;          /* head is the name of the current record */
    uint8_t window[WINDOW];
} scan;

/* "FILE: tensor 3 'name': ...". Returns false. */
static bool PN_PRINTF(3, 4) fail(scan *s, pinch_status status, const char *format, ...)
{
    char text[320], place[HEAD + 64] = "";
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (s->section && s->named) snprintf(place, sizeof place, ": %s %" PRIu64 " '%s'", s->section, s->index, s->head);
    else if (s->section) snprintf(place, sizeof place, ": %s %" PRIu64, s->section, s->index);
    s->status = pn_fail(s->err, status, "%s%s: %s", pn_file_name(s->file), place, text);
    return false;
}

static bool has_left(scan *s, uint64_t n, const char *what)
{
    if (n <= s->left) return true;
    return fail(s, PINCH_ERR_FORMAT, "%s needs %" PRIu64 " bytes, but only %" PRIu64 " are left in the file", what, n, s->left);
}

static bool skip(scan *s, uint64_t n, const char *what)
{
    if (!has_left(s, n, what)) return false;
    s->at += n;
    s->left -= n;
    return true;
}

/* n <= WINDOW. The bytes last until the next call. */
static const uint8_t *take(scan *s, uint64_t n, const char *what)
{
    if (!has_left(s, n, what)) return NULL;
    if (s->at < s->start || s->end - s->at < n || s->at > s->end) {
        uint64_t count = s->left < WINDOW ? s->left : WINDOW;
        s->status = pn_file_read(s->file, s->window, count, s->at, s->err);
        if (s->status) return NULL;
        s->start = s->at;
        s->end = s->at + count;
    }
    const uint8_t *p = s->window + (s->at - s->start);
    s->at += n;
    s->left -= n;
    return p;
}

static bool take_u32(scan *s, uint32_t *out, const char *what)
{
    const uint8_t *p = take(s, 4, what);
    if (p) *out = pn_gguf_u32(p);
    return p != NULL;
}

static bool take_u64(scan *s, uint64_t *out, const char *what)
{
    const uint8_t *p = take(s, 8, what);
    if (p) *out = pn_gguf_u64(p);
    return p != NULL;
}

/* Length and bytes of a key or tensor name; what sentences show is kept in s->head. */
static bool take_name(scan *s, size_t *length, uint64_t most, const char *what)
{
    uint64_t n;
    s->named = false;
    if (!take_u64(s, &n, what)) return false;
    if (n == 0) return fail(s, PINCH_ERR_FORMAT, "%s is empty", what);
    if (n > most) return fail(s, PINCH_ERR_FORMAT, "%s has %" PRIu64 " bytes, at most %" PRIu64 " are allowed", what, n, most);
    const uint8_t *p = take(s, n, what);
    if (!p) return false;
    if (memchr(p, 0, (size_t)n)) return fail(s, PINCH_ERR_FORMAT, "%s holds a zero byte", what);
    size_t shown = n < HEAD - 1 ? (size_t)n : HEAD - 1;
    memcpy(s->head, p, shown);
    s->head[shown] = 0;
    s->named = true;
    *length = (size_t)n;
    return true;
}

/* ---- metadata --------------------------------------------------------------------------------- */

static bool skip_string(scan *s, const char *what)
{
    uint64_t n;
    if (!take_u64(s, &n, what)) return false;
    if (n > MAX_STRING) return fail(s, PINCH_ERR_FORMAT, "%s has %" PRIu64 " bytes, at most 2^30 are allowed", what, n);
    return skip(s, n, what);
}

static bool scan_array(scan *s, pn_gguf_value *v)
{
    uint32_t item;
    if (!take_u32(s, &item, "the array's item kind") || !take_u64(s, &v->count, "the array's length")) return false;
    if (item == PN_GGUF_ARRAY) return fail(s, PINCH_ERR_UNSUPPORTED, "an array of arrays (%" PRIu64 " items), which no known model uses", v->count);
    if (item >= PN_COUNT(kinds)) return fail(s, PINCH_ERR_UNSUPPORTED, "array items of unknown kind %" PRIu32, item);
    if (v->count > MAX_ITEMS) return fail(s, PINCH_ERR_FORMAT, "an array of %" PRIu64 " items, at most 2^30 are allowed", v->count);
    v->item = (pn_gguf_kind)item;
    if (item != PN_GGUF_STRING) return skip(s, v->count * kinds[item].bytes, "the array");
    if (!has_left(s, v->count * 8, "the string array")) return false;
    for (uint64_t i = 0; i < v->count; i++)
        if (!skip_string(s, "a string of the array")) return false;
    return true;
}

static bool scan_alignment(scan *s, const pn_gguf_value *v, pn_gguf_header *h)
{
    if (v->kind != PN_GGUF_U32) return fail(s, PINCH_ERR_FORMAT, "is of kind %s, u32 is needed", kinds[v->kind].name);
    uint32_t n = 0;
    if (!take_u32(s, &n, "the alignment")) return false;
    if (n == 0 || (n & (n - 1)) != 0 || n > MAX_ALIGNMENT) return fail(s, PINCH_ERR_FORMAT, "%" PRIu32 " is no power of two up to %" PRIu32, n, MAX_ALIGNMENT);
    h->alignment = n;
    return true;
}

static bool scan_value(scan *s, pn_gguf_value *v, pn_gguf_header *h)
{
    uint32_t kind;
    if (!take_name(s, &v->key.n, MAX_KEY, "the key") || !take_u32(s, &kind, "the value's kind")) return false;
    if (kind >= PN_COUNT(kinds)) return fail(s, PINCH_ERR_UNSUPPORTED, "a value of unknown kind %" PRIu32, kind);
    v->kind = v->item = (pn_gguf_kind)kind;
    v->count = 1;
    uint64_t start = s->at;
    if (kind == PN_GGUF_ARRAY) {
        start += 12;
        if (!scan_array(s, v)) return false;
    } else if (strcmp(s->head, "general.alignment") == 0) {
        if (!scan_alignment(s, v, h)) return false;
    } else if (!(kind == PN_GGUF_STRING ? skip_string(s, "the string") : skip(s, kinds[kind].bytes, "the value"))) {
        return false;
    }
    v->bytes = s->at - start;
    return true;
}

/* ---- tensors ---------------------------------------------------------------------------------- */

/* Ids that are, or were, types elsewhere, and what a user can do about them. */
static const struct { uint32_t first, last; const char *is; } foreign_types[] = {
    {4, 5, "Q4_2 or Q4_3, removed in 2023: quantise the original model again, as Q4_0 or Q4_K"},
    {31, 33, "Q4_0 interleaved for one CPU, removed in 2024: quantise the model as Q4_0, which is interleaved when it is loaded"},
    {36, 36, "IQ4_NL interleaved for one CPU (removed in 2024), or I2_S of the BitNet fork: quantise the model as IQ4_NL or TQ2_0"},
    {37, 38, "IQ4_NL interleaved for one CPU, removed in 2024: quantise the model as IQ4_NL"},
    {97, 99, "a type of the ik_llama.cpp fork: quantise the model with mainline llama.cpp"},
    {133, 141, "a type of the ik_llama.cpp fork: quantise the model with mainline llama.cpp"},
    {142, 142, "PQ2_0 of the PrismML fork (or a type of ik_llama.cpp): quantise the model as Q2_0"},
    {143, 143, "PTQ1_0 of the PrismML fork (or a type of ik_llama.cpp): quantise the model as TQ1_0"},
    {144, 158, "a type of the ik_llama.cpp fork: quantise the model with mainline llama.cpp"},
    {202, 399, "a type of the ik_llama.cpp fork: quantise the model with mainline llama.cpp"},
};

static bool fail_type(scan *s, uint32_t id)
{
    for (size_t i = 0; i < PN_COUNT(foreign_types); i++)
        if (id >= foreign_types[i].first && id <= foreign_types[i].last) return fail(s, PINCH_ERR_UNSUPPORTED, "type %" PRIu32 " is %s", id, foreign_types[i].is);
    return fail(s, PINCH_ERR_UNSUPPORTED, "type %" PRIu32 " is unknown; the newest known is %d: it takes a newer version of this program", id, PN_TYPE_COUNT - 1);
}

static bool scan_shape(scan *s, pn_tensor *t)
{
    uint32_t n;
    uint64_t elements = 1;
    if (!take_u32(s, &n, "the number of dimensions")) return false;
    if (n > PN_GGUF_MAX_DIMS) return fail(s, PINCH_ERR_FORMAT, "has %" PRIu32 " dimensions, at most %d are allowed", n, PN_GGUF_MAX_DIMS);
    t->n_dims = (int)n;
    for (uint32_t i = 0; i < PN_GGUF_MAX_DIMS; i++) {
        uint64_t d = 1;
        if (i < n && !take_u64(s, &d, "a dimension")) return false;
        if (d > INT64_MAX) return fail(s, PINCH_ERR_FORMAT, "dimension %" PRIu32 " is %" PRId64, i, (int64_t)d);
        if (!pn_mul(elements, d, &elements) || elements > INT64_MAX) return fail(s, PINCH_ERR_FORMAT, "dimension %" PRIu32 " of %" PRIu64 " makes more than 2^63 elements", i, d);
        t->ne[i] = (int64_t)d;
    }
    return true;
}

static bool size_of(scan *s, pn_tensor *t)
{
    const pn_type_info *info = pn_type_get((uint32_t)t->type);
    if (t->ne[0] % info->block) return fail(s, PINCH_ERR_FORMAT, "rows of %" PRId64 " elements are no multiple of %s's block of %" PRIu32, t->ne[0], info->name, info->block);
    uint64_t bytes = (uint64_t)(t->ne[0] / info->block);
    bool fits = pn_mul(bytes, info->bytes, &bytes);
    for (int i = 1; i < PN_GGUF_MAX_DIMS; i++) fits = fits && pn_mul(bytes, (uint64_t)t->ne[i], &bytes);
    if (!fits || bytes > INT64_MAX) return fail(s, PINCH_ERR_FORMAT, "its size overflows 63 bits (%s, rows of %" PRId64 ")", info->name, t->ne[0]);
    t->bytes = bytes;
    return true;
}

/* Where the next tensor must begin, from the start of the data. */
typedef struct chain {
    uint64_t next;     /* padded */
    uint64_t old_next; /* the same if Q2_0 were PrismML's old one: 34 bytes for 128 elements */
    bool has_q2_0;
} chain;

static bool advance(uint64_t *next, uint64_t bytes, uint64_t alignment)
{
    if (!pn_add(*next, bytes, next) || *next > INT64_MAX - MAX_ALIGNMENT) return false;
    *next = pn_round_up(*next, alignment);
    return true;
}

static uint64_t old_q2_0_bytes(const pn_tensor *t) { return t->type == PN_Q2_0 ? t->bytes / 36 * 34 : t->bytes; }

static bool scan_tensor(scan *s, pn_tensor *t, chain *c, const pn_gguf_header *h)
{
    uint32_t type;
    size_t name_length;
    if (!take_name(s, &name_length, PN_GGUF_MAX_NAME, "the name") || !scan_shape(s, t)) return false;
    if (!take_u32(s, &type, "the type") || !take_u64(s, &t->offset, "the offset")) return false;
    if (!pn_type_get(type)) return fail_type(s, type);
    t->name.n = name_length;
    t->type = (pn_type)type;
    if (!size_of(s, t)) return false;
    if (t->offset != c->next && c->has_q2_0 && t->offset == c->old_next)
        return fail(s, PINCH_ERR_UNSUPPORTED, "its offset %" PRIu64 " shows that the tensors before it are the PrismML fork's old Q2_0 (34 bytes for 128 weights): quantise the model again, as Q2_0", t->offset);
    if (t->offset != c->next)
        return fail(s, PINCH_ERR_FORMAT, "its offset is %" PRIu64 ", the tensors before it end at %" PRIu64 ": gaps, overlaps and other orders are not allowed", t->offset, c->next);
    c->has_q2_0 |= t->type == PN_Q2_0;
    if (!advance(&c->next, t->bytes, h->alignment) || !advance(&c->old_next, old_q2_0_bytes(t), h->alignment))
        return fail(s, PINCH_ERR_FORMAT, "offset %" PRIu64 " and %" PRIu64 " bytes overflow 63 bits", t->offset, t->bytes);
    return true;
}

/* Makes offsets count from the start of the file. Only the last tensor's end needs comparing: the others lie before it. */
static bool place_tensors(scan *s, pn_gguf_header *h, const chain *c)
{
    if (!h->n_tensors) return true;
    const uint64_t data = pn_round_up(h->bytes, h->alignment), size = pn_file_size(s->file);
    const pn_tensor *last = &h->tensors[h->n_tensors - 1];
    uint64_t end;
    s->index = h->n_tensors - 1;
    if (!pn_add(data, last->offset, &end) || !pn_add(end, last->bytes, &end)) return fail(s, PINCH_ERR_FORMAT, "offset %" PRIu64 " overflows", last->offset);
    if (end > size && c->has_q2_0 && data + last->offset + old_q2_0_bytes(last) <= size && data + c->old_next >= size)
        return fail(s, PINCH_ERR_UNSUPPORTED, "the file's %" PRIu64 " bytes fit the PrismML fork's old Q2_0 (34 bytes for 128 weights): quantise the model again, as Q2_0", size);
    if (end > size) return fail(s, PINCH_ERR_FORMAT, "ends at byte %" PRIu64 ", the file at %" PRIu64 ": it is cut off", end, size);
    for (size_t i = 0; i < h->n_tensors; i++) h->tensors[i].offset += data;
    return true;
}

/* ---- the whole -------------------------------------------------------------------------------- */

/* What people try to open instead of a GGUF file. */
static const struct { const char *start, *is; } other_files[] = {
    {"PK\x03\x04", "a zip or PyTorch file: convert the model to GGUF"},
    {"lmgg", "a GGML file of 2023: convert the original model to GGUF"},
    {"tjgg", "a GGML (ggjt) file of 2023: convert the original model to GGUF"},
    {"fmgg", "a GGML (ggmf) file of 2023: convert the original model to GGUF"},
    {"FUGG", "a GGUF file in big-endian order: convert it to little-endian"},
    {"vers", "perhaps a Git LFS pointer: fetch the file itself with git lfs pull"},
    {"<!DO", "an HTML page: the download failed"},
    {"<htm", "an HTML page: the download failed"},
};

static bool fail_magic(scan *s, const uint8_t *p)
{
    for (size_t i = 0; i < PN_COUNT(other_files); i++)
        if (memcmp(p, other_files[i].start, 4) == 0) return fail(s, PINCH_ERR_FORMAT, "is no GGUF file but %s", other_files[i].is);
    return fail(s, PINCH_ERR_FORMAT, "is no GGUF file: it begins with bytes %02x %02x %02x %02x", p[0], p[1], p[2], p[3]);
}

static bool fail_version(scan *s, uint32_t v)
{
    if (v && (v & 0xFFFF) == 0)
        return fail(s, PINCH_ERR_UNSUPPORTED, "version %" PRIu32 " is %" PRIu32 " in big-endian order: convert the file to little-endian", v, v >> 24);
    if (v == 1) return fail(s, PINCH_ERR_UNSUPPORTED, "GGUF version 1 (August 2023) is not read, versions 2 and 3 are: convert the original model again");
    return fail(s, PINCH_ERR_UNSUPPORTED, "GGUF version %" PRIu32 " is unknown, versions 2 and 3 are read: it takes a newer version of this program", v);
}

/* Counts are compared with what the file could hold, and with what a sane one would. */
static bool check_count(scan *s, uint64_t n, uint64_t record, const char *what)
{
    if (n > INT64_MAX || n > s->left / record) return fail(s, PINCH_ERR_FORMAT, "%" PRId64 " %s cannot fit into %" PRIu64 " bytes", (int64_t)n, what, s->left);
    if (n > MAX_RECORDS) return fail(s, PINCH_ERR_UNSUPPORTED, "%" PRIu64 " %s, at most %" PRIu64 " are read", n, what, MAX_RECORDS);
    return true;
}

static bool scan_prefix(scan *s, pn_gguf_header *h, uint64_t *n_values, uint64_t *n_tensors)
{
    if (s->left < PN_GGUF_PREFIX) return fail(s, PINCH_ERR_FORMAT, "is no GGUF file: it has %" PRIu64 " bytes, the prefix alone takes %d", s->left, PN_GGUF_PREFIX);
    const uint8_t *p = take(s, PN_GGUF_PREFIX, "the prefix");
    if (!p) return false;
    if (memcmp(p, "GGUF", 4) != 0) return fail_magic(s, p);
    h->version = pn_gguf_u32(p + 4);
    if (h->version != 2 && h->version != 3) return fail_version(s, h->version);
    *n_tensors = pn_gguf_u64(p + 8);
    *n_values = pn_gguf_u64(p + 16);
    return check_count(s, *n_values, MIN_VALUE_RECORD, "metadata values") && check_count(s, *n_tensors, MIN_TENSOR_RECORD, "tensors");
}

/* Room for one record more in an array that doubles: memory follows what was read, not what the file claims. */
static void *grow(scan *s, void *array, uint64_t used, size_t *capacity, size_t size)
{
    if (used < *capacity) return array;
    uint64_t bytes, count = *capacity ? (uint64_t)*capacity * 2 : 64;
    void *p = pn_mul(count, size, &bytes) && bytes <= PTRDIFF_MAX ? realloc(array, (size_t)bytes) : NULL;
    if (!p) s->status = pn_fail_memory(s->err, "the table of metadata and tensors", bytes);
    else *capacity = (size_t)count;
    return p;
}

static bool scan_values(scan *s, pn_gguf_header *h, uint64_t n)
{
    size_t capacity = 0;
    s->section = "metadata value";
    for (s->index = 0; s->index < n; s->index++) {
        void *p = grow(s, h->values, h->n_values, &capacity, sizeof *h->values);
        if (!p) return false;
        h->values = p;
        h->values[h->n_values] = (pn_gguf_value){0};
        s->named = false;
        if (!scan_value(s, &h->values[h->n_values], h)) return false;
        h->n_values++;
    }
    return true;
}

static bool scan_tensors(scan *s, pn_gguf_header *h, uint64_t n, int part)
{
    size_t capacity = 0;
    chain c = {0};
    s->section = "tensor";
    for (s->index = 0; s->index < n; s->index++) {
        void *p = grow(s, h->tensors, h->n_tensors, &capacity, sizeof *h->tensors);
        if (!p) return false;
        h->tensors = p;
        h->tensors[h->n_tensors] = (pn_tensor){.part = part};
        s->named = false;
        if (!scan_tensor(s, &h->tensors[h->n_tensors], &c, h)) return false;
        h->n_tensors++;
    }
    h->bytes = s->at;
    return place_tensors(s, h, &c);
}

/* Reads the block and points keys, names and values into it: records follow each other without gaps. */
static pinch_status load_block(pn_gguf_header *h, const pn_file *file, pinch_error *err)
{
    h->block = pn_alloc(1, h->bytes);
    if (!h->block) return pn_fail_memory(err, "the metadata", h->bytes);
    pinch_status status = pn_file_read(file, h->block, h->bytes, 0, err);
    if (status) return status;
    const uint8_t *at = h->block + PN_GGUF_PREFIX;
    for (size_t i = 0; i < h->n_values; i++) {
        pn_gguf_value *v = &h->values[i];
        v->key.p = (const char *)at + 8;
        v->data = at + 8 + v->key.n + 4 + (v->kind == PN_GGUF_ARRAY ? 12 : 0);
        at = v->data + v->bytes;
    }
    for (size_t i = 0; i < h->n_tensors; i++) {
        pn_tensor *t = &h->tensors[i];
        t->name.p = (const char *)at + 8;
        at += 8 + t->name.n + 4 + 8 * (size_t)t->n_dims + 4 + 8;
    }
    return PINCH_OK;
}

pinch_status pn_gguf_header_read(pn_gguf_header *out, const pn_file *file, int part, pinch_error *err)
{
    *out = (pn_gguf_header){.alignment = PN_GGUF_ALIGNMENT};
    scan *s = pn_alloc_zero(1, sizeof *s);
    if (!s) return pn_fail_memory(err, "reading metadata", sizeof *s);
    s->file = file;
    s->err = err;
    s->left = pn_file_size(file);
    uint64_t n_values = 0, n_tensors = 0;
    bool good = scan_prefix(s, out, &n_values, &n_tensors) && scan_values(s, out, n_values) && scan_tensors(s, out, n_tensors, part);
    pinch_status status = good ? load_block(out, file, err) : s->status;
    free(s);
    if (status) pn_gguf_header_free(out);
    return status;
}

void pn_gguf_header_free(pn_gguf_header *h)
{
    free(h->block);
    free(h->values);
    free(h->tensors);
    *h = (pn_gguf_header){0};
}
