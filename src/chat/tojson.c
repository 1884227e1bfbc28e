/* chat/tojson.c - the filter tojson: what Python's json.dumps writes. */
#include "base/number.h"
#include "base/utf8.h"
#include "chat/value.h"

#include <stdio.h>

typedef struct dumper {
    render *st;
    buffer *b;
    const json_style *style;
} dumper;

static bool put(dumper *d, const char *data, size_t n)
{
    return pn_j_put(d->st, d->b, data, n);
}

static size_t unicode_escape(char *out, uint32_t unit)
{
    static const char hex[] = "0123456789abcdef";
    memcpy(out, "\\u", 2);
    for (int i = 0; i < 4; i++) out[2 + i] = hex[unit >> (12 - 4 * i) & 15];
    return 6;
}

static size_t escape(char *out, uint32_t c, bool ascii)
{
    static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
    const char *found = c && c < 0x80 ? strchr(values, (char)c) : NULL;
    if (found) {
        out[0] = '\\';
        out[1] = names[found - values];
        return 2;
    }
    if (c >= 0x20 && (!ascii || c < 0x7f)) return 0;
    if (c == 0x7f) return 0;
    if (c < 0x10000) return unicode_escape(out, c);
    size_t n = unicode_escape(out, 0xd800 + ((c - 0x10000) >> 10));
    return n + unicode_escape(out + n, 0xdc00 + (c & 0x3ff));
}

static bool put_text(dumper *d, const text *t)
{
    size_t plain = 0;
    char escaped[12];
    if (!pn_j_work(d->st, (uint64_t)t->n * 4) || !put(d, "\"", 1)) return false;
    for (size_t at = 0; at < t->n;) {
        uint32_t c;
        size_t length = pn_utf8_decode(t->data + at, t->n - at, &c), n = escape(escaped, c, d->style->ascii);
        at += length;
        if (!n) continue;
        if (!put(d, t->data + plain, at - length - plain) || !put(d, escaped, n)) return false;
        plain = at;
    }
    return put(d, t->data + plain, t->n - plain) && put(d, "\"", 1);
}

static bool put_float(dumper *d, double v)
{
    char line[32];
    if (v - v == 0) return pn_j_float_work(d->st, v) && put(d, line, pn_format_double(line, v));
    const char *word = v != v ? "NaN" : v < 0 ? "-Infinity" : "Infinity";
    return put(d, word, strlen(word));
}

static bool put_scalar(dumper *d, const value *v)
{
    char line[32];
    const char *word = v->kind == V_NONE ? "null" : v->kind == V_BOOL && v->as.boolean ? "true" : "false";
    switch (v->kind) {
    case V_INT: return put(d, line, (size_t)snprintf(line, sizeof line, "%" PRId64, v->as.integer));
    case V_BIG: return put(d, v->as.text->data, v->as.text->n);
    case V_FLOAT: return put_float(d, v->as.number);
    case V_STR: return put_text(d, v->as.text);
    case V_NONE:
    case V_BOOL: return put(d, word, strlen(word));
    default: return pn_j_fail(d->st, "a %s cannot be written as JSON", pn_j_type_name(v));
    }
}

static bool put_key(dumper *d, const value *key)
{
    if (key->kind == V_STR) return put_text(d, key->as.text);
    if (key->kind < V_NONE || key->kind > V_FLOAT) return pn_j_fail(d->st, "a %s cannot be a key in JSON", pn_j_type_name(key));
    return put(d, "\"", 1) && put_scalar(d, key) && put(d, "\"", 1);
}

static bool new_line(dumper *d, int level)
{
    if (!d->style->pretty) return true;
    if (!put(d, "\n", 1)) return false;
    for (int i = 0; i < level; i++) {
        if (!put(d, d->style->indent, d->style->n_indent)) return false;
    }
    return true;
}

static bool dump(dumper *d, const value *v, int level);

static bool put_list(dumper *d, const list *l, int level)
{
    if (!l->n) return put(d, "[]", 2);
    if (!put(d, "[", 1)) return false;
    for (size_t i = 0; i < l->n; i++) {
        if ((i && !put(d, d->style->item_separator, d->style->n_item)) || !new_line(d, level + 1) || !dump(d, &l->items[i], level + 1)) return false;
    }
    return new_line(d, level) && put(d, "]", 1);
}

/* Places in the order of their keys; a merge from below, stable. */
static bool sorted_places(dumper *d, const dict *from, uint32_t **out)
{
    uint32_t *a = pn_j_get(d->st, from->n, sizeof *a), *b = a ? pn_j_get(d->st, from->n, sizeof *b) : NULL;
    if (!b) return false;
    for (size_t i = 0; i < from->n; i++) a[i] = (uint32_t)i;
    for (size_t width = 1; width < from->n; width *= 2) {
        for (size_t low = 0; low < from->n; low += 2 * width) {
            size_t middle = low + width < from->n ? low + width : from->n, high = low + 2 * width < from->n ? low + 2 * width : from->n, i = low, k = middle;
            for (size_t to = low; to < high; to++) {
                bool right = i >= middle;
                if (i < middle && k < high && !pn_j_less(d->st, &from->keys[a[k]], &from->keys[a[i]], &right)) return false;
                b[to] = right ? a[k++] : a[i++];
            }
        }
        uint32_t *swap = a;
        a = b;
        b = swap;
    }
    *out = a;
    return true;
}

static bool put_dict(dumper *d, const dict *from, int level)
{
    uint32_t *order = NULL;
    if (!from->n) return put(d, "{}", 2);
    if (d->style->sort && !sorted_places(d, from, &order)) return false;
    if (!put(d, "{", 1)) return false;
    for (size_t i = 0; i < from->n; i++) {
        size_t place = order ? order[i] : i;
        if ((i && !put(d, d->style->item_separator, d->style->n_item)) || !new_line(d, level + 1) || !put_key(d, &from->keys[place])) return false;
        if (!put(d, d->style->key_separator, d->style->n_key) || !dump(d, &from->values[place], level + 1)) return false;
    }
    return new_line(d, level) && put(d, "}", 1);
}

static bool dump(dumper *d, const value *v, int level)
{
    if (!pn_j_step(d->st, 1)) return false;
    if (v->kind != V_LIST && v->kind != V_TUPLE && v->kind != V_DICT) return put_scalar(d, v);
    if (level >= J_MAX_NESTING) return pn_j_fail(d->st, "a value nested deeper than %d", J_MAX_NESTING);
    return v->kind == V_DICT ? put_dict(d, v->as.dict, level) : put_list(d, v->as.list, level);
}

bool pn_j_tojson(render *st, buffer *b, const value *v, const json_style *style)
{
    dumper d = {st, b, style};
    return dump(&d, v, 0);
}
