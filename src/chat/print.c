/* chat/print.c - values as text: Python's str() and repr(). */
#include "base/casemap.h"
#include "base/number.h"
#include "base/utf8.h"
#include "chat/runtime.h"

#include <stdio.h>

static size_t hex_escape(char *out, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    size_t digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8, n = 0;
    out[n++] = '\\';
    out[n++] = digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
    while (digits) out[n++] = hex[c >> (4 * --digits) & 15];
    return n;
}

static size_t short_escape(char *out, uint32_t c, char quote)
{
    static const char names[] = "nrt", values[] = "\n\r\t";
    const char *found = c && c < 0x80 ? strchr(values, (char)c) : NULL;
    if (!found && c != '\\' && c != (uint32_t)quote) return 0;
    out[0] = '\\';
    out[1] = found ? names[found - values] : (char)c;
    return 2;
}

static bool repr_text(render *st, buffer *b, const text *t)
{
    char quote = memchr(t->data, '\'', t->n) && !memchr(t->data, '"', t->n) ? '"' : '\'', escaped[12];
    size_t plain = 0, i = 0;
    if (!pn_j_work(st, (uint64_t)t->n * 4) || !pn_j_put(st, b, &quote, 1)) return false;
    while (i < t->n) {
        uint32_t c;
        size_t length = pn_utf8_decode(t->data + i, t->n - i, &c), n = short_escape(escaped, c, quote);
        if (!n && !pn_char_is(c, PN_CHAR_PRINTABLE)) n = hex_escape(escaped, c);
        i += length;
        if (!n) continue;
        if (!pn_j_put(st, b, t->data + plain, i - length - plain) || !pn_j_put(st, b, escaped, n)) return false;
        plain = i;
    }
    return pn_j_put(st, b, t->data + plain, t->n - plain) && pn_j_put(st, b, &quote, 1);
}

static bool repr_bytes(render *st, buffer *b, const text *t)
{
    char quote = memchr(t->data, '\'', t->n) && !memchr(t->data, '"', t->n) ? '"' : '\'', escaped[12], prefix[2] = {'b', quote};
    if (!pn_j_work(st, (uint64_t)t->n * 4) || !pn_j_put(st, b, prefix, 2)) return false;
    for (size_t i = 0; i < t->n; i++) {
        unsigned char c = (unsigned char)t->data[i];
        size_t n = short_escape(escaped, c, quote);
        if (!n && (c < 0x20 || c > 0x7e)) n = hex_escape(escaped, c);
        if (!(n ? pn_j_put(st, b, escaped, n) : pn_j_put(st, b, t->data + i, 1))) return false;
    }
    return pn_j_put(st, b, &quote, 1);
}

static bool repr_items(render *st, buffer *b, const value *items, size_t n, const char *open, const char *close)
{
    if (!pn_j_put_cstr(st, b, open)) return false;
    for (size_t i = 0; i < n; i++) {
        if ((i && !pn_j_put(st, b, ", ", 2)) || !pn_j_put_repr(st, b, &items[i])) return false;
    }
    return pn_j_put_cstr(st, b, close);
}

static bool repr_dict(render *st, buffer *b, const dict *d)
{
    if (!pn_j_put(st, b, "{", 1)) return false;
    for (size_t i = 0; i < d->n; i++) {
        if ((i && !pn_j_put(st, b, ", ", 2)) || !pn_j_put_repr(st, b, &d->keys[i]) || !pn_j_put(st, b, ": ", 2) || !pn_j_put_repr(st, b, &d->values[i])) return false;
    }
    return pn_j_put(st, b, "}", 1);
}

static bool repr_view(render *st, buffer *b, const value *v)
{
    static const char *const open[] = {"dict_keys([", "dict_values([", "dict_items(["};
    const dict *d = v->as.dict;
    if (v->part == VIEW_KEYS) return repr_items(st, b, d->keys, d->n, open[v->part], "])");
    if (v->part == VIEW_VALUES) return repr_items(st, b, d->values, d->n, open[v->part], "])");
    if (!pn_j_put_cstr(st, b, open[v->part])) return false;
    for (size_t i = 0; i < d->n; i++) {
        if ((i && !pn_j_put(st, b, ", ", 2)) || !pn_j_put(st, b, "(", 1) || !pn_j_put_repr(st, b, &d->keys[i]) || !pn_j_put(st, b, ", ", 2)) return false;
        if (!pn_j_put_repr(st, b, &d->values[i]) || !pn_j_put(st, b, ")", 1)) return false;
    }
    return pn_j_put_cstr(st, b, "])");
}

static bool repr_loop(render *st, buffer *b, loop *l)
{
    char line[80];
    int64_t n;
    if (!pn_j_loop_length(st, l, &n)) return false;
    snprintf(line, sizeof line, "<LoopContext %" PRId64 "/%" PRId64 ">", l->index0 + 1, n);
    return pn_j_put_cstr(st, b, line);
}

static bool repr_macro(render *st, buffer *b, const macro *m)
{
    if (m->of->type != N_MACRO) return pn_j_put_cstr(st, b, "<Macro anonymous>");
    return pn_j_put_cstr(st, b, "<Macro '") && pn_j_put(st, b, m->of->name->text.data, m->of->name->text.n) && pn_j_put_cstr(st, b, "'>");
}

static bool repr_range(render *st, buffer *b, const range *r)
{
    char line[100];
    snprintf(line, sizeof line, r->step == 1 ? "range(%" PRId64 ", %" PRId64 ")" : "range(%" PRId64 ", %" PRId64 ", %" PRId64 ")", r->start, r->stop, r->step);
    return pn_j_put_cstr(st, b, line);
}

static bool repr_scalar(render *st, buffer *b, const value *v)
{
    char line[40];
    switch (v->kind) {
    case V_NONE: return pn_j_put_cstr(st, b, "None");
    case V_BOOL: return pn_j_put_cstr(st, b, v->as.boolean ? "True" : "False");
    case V_INT: return pn_j_put(st, b, line, (size_t)snprintf(line, sizeof line, "%" PRId64, v->as.integer));
    case V_BIG: return pn_j_put(st, b, v->as.text->data, v->as.text->n);
    case V_FLOAT: return pn_j_float_work(st, v->as.number) && pn_j_put(st, b, line, pn_format_double(line, v->as.number));
    default: return pn_j_put_cstr(st, b, "Undefined");
    }
}

static bool repr_nested(render *st, buffer *b, const value *v)
{
    switch (v->kind) {
    case V_BYTES: return repr_bytes(st, b, v->as.text);
    case V_LIST: return repr_items(st, b, v->as.list->items, v->as.list->n, "[", "]");
    case V_TUPLE: return repr_items(st, b, v->as.list->items, v->as.list->n, "(", v->as.list->n == 1 ? ",)" : ")");
    case V_DICT: return repr_dict(st, b, v->as.dict);
    case V_VIEW: return repr_view(st, b, v);
    case V_RANGE: return repr_range(st, b, v->as.range);
    case V_NAMESPACE: return pn_j_put_cstr(st, b, "<Namespace ") && repr_dict(st, b, v->as.dict) && pn_j_put(st, b, ">", 1);
    case V_LOOP: return repr_loop(st, b, v->as.loop);
    case V_MACRO: return repr_macro(st, b, v->as.macro);
    case V_ITER: return pn_j_put_cstr(st, b, "<") && pn_j_put_cstr(st, b, v->as.iter->type) && pn_j_put_cstr(st, b, " object>");
    case V_FUNCTION: return pn_j_put_cstr(st, b, "<function ") && pn_j_put_cstr(st, b, v->as.function->name) && pn_j_put_cstr(st, b, ">");
    default: return pn_j_put_cstr(st, b, "<") && pn_j_put_cstr(st, b, pn_j_type_name(v)) && pn_j_put_cstr(st, b, ">");
    }
}

bool pn_j_put_repr(render *st, buffer *b, const value *v)
{
    if (!pn_j_step(st, 1)) return false;
    if (v->kind < V_STR) return repr_scalar(st, b, v);
    if (v->kind == V_STR && v->marked) return pn_j_put_cstr(st, b, "Markup(") && repr_text(st, b, v->as.text) && pn_j_put(st, b, ")", 1);
    if (v->kind == V_STR) return repr_text(st, b, v->as.text);
    if (st->depth + J_MAX_DEPTH / J_MAX_NESTING > J_MAX_DEPTH) return pn_j_fail(st, "a value nested deeper than %d", J_MAX_NESTING);
    st->depth += J_MAX_DEPTH / J_MAX_NESTING;
    bool good = repr_nested(st, b, v);
    st->depth -= J_MAX_DEPTH / J_MAX_NESTING;
    return good;
}

bool pn_j_put_value(render *st, buffer *b, const value *v)
{
    if (v->kind == V_STR) return pn_j_put(st, b, v->as.text->data, v->as.text->n);
    return v->kind == V_UNDEFINED || pn_j_put_repr(st, b, v);
}

bool pn_j_to_text(render *st, const value *v, value *out)
{
    buffer b = {0};
    if (v->kind == V_STR) {
        *out = *v;
        return true;
    }
    bool good = pn_j_put_value(st, &b, v);
    return pn_j_take(st, &b, out) && good;
}

bool pn_j_repr(render *st, const value *v, value *out)
{
    buffer b = {0};
    bool good = pn_j_put_repr(st, &b, v);
    return pn_j_take(st, &b, out) && good;
}

bool pn_j_escape(render *st, const value *v, value *out)
{
    static const struct { char c; const char *as; } entities[] = {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'\'', "&#39;"}, {'"', "&#34;"}};
    value whole;
    if (!pn_j_to_text(st, v, &whole)) return false;
    if (whole.marked) {
        *out = whole;
        return true;
    }
    const text *t = whole.as.text;
    buffer b = {0};
    size_t plain = 0;
    bool good = pn_j_work(st, (uint64_t)t->n * 4);
    for (size_t i = 0; good && i < t->n; i++) {
        for (size_t k = 0; k < PN_COUNT(entities); k++) {
            if (t->data[i] != entities[k].c) continue;
            good = pn_j_put(st, &b, t->data + plain, i - plain) && pn_j_put_cstr(st, &b, entities[k].as);
            plain = i + 1;
        }
    }
    good = good && pn_j_put(st, &b, t->data + plain, t->n - plain);
    if (!pn_j_take(st, &b, out) || !good) return false;
    out->marked = true;
    return true;
}
