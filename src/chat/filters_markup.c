/* chat/filters_markup.c - filters for HTML and URLs. */
#include "base/casemap.h"
#include "base/utf8.h"
#include "chat/filters.h"

static bool filter_safe(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    if (!pn_j_to_text(st, self, out)) return false;
    out->marked = true;
    return true;
}

static bool filter_escape(render *st, const value *self, const parameters *p, value *out)
{
    value plain = *self;
    if (p->option) plain.marked = false;
    return pn_j_escape(st, &plain, out);
}

/* ---- striptags -------------------------------------------------------------------------------- */

/* Takes out what stands between two marks, again and again; stops at an opening one that is never closed. */
static bool remove_between(render *st, const text *t, const char *open, const char *close, value *out)
{
    buffer b = {0};
    size_t at = 0, n_open = strlen(open), n_close = strlen(close);
    bool good = true;
    while (good) {
        const char *from = pn_j_find(t->data + at, t->n - at, open, n_open);
        const char *to = from ? pn_j_find(from, t->n - (size_t)(from - t->data), close, n_close) : NULL;
        if (!to) break;
        good = pn_j_step(st, 1) && pn_j_put(st, &b, t->data + at, (size_t)(from - t->data) - at);
        at = (size_t)(to - t->data) + n_close;
    }
    good = good && pn_j_put(st, &b, t->data + at, t->n - at);
    return pn_j_take(st, &b, out) && good;
}

static size_t read_entity(const char *s, size_t n, uint32_t *c)
{
    static const struct { const char *name; uint32_t c; } names[] = {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}, {"nbsp", 0xa0}, {"raquo", 0xbb}, {"laquo", 0xab}, {"copy", 0xa9}, {"hellip", 0x2026}, {"ndash", 0x2013}, {"mdash", 0x2014}, {"euro", 0x20ac}};
    const char *end = memchr(s, ';', n < 12 ? n : 12);
    if (!end) return 0;
    size_t length = (size_t)(end - s);
    for (size_t i = 0; i < PN_COUNT(names); i++) {
        if (strlen(names[i].name) == length - 1 && !memcmp(s + 1, names[i].name, length - 1)) return ((*c = names[i].c), length + 1);
    }
    int64_t code;
    bool overflow, hex = length > 2 && (s[2] | 0x20) == 'x';
    size_t skip = hex ? 3 : 2;
    if (length <= skip || s[1] != '#' || !pn_j_parse_int(s + skip, length - skip, hex ? 16 : 10, &code, &overflow) || code <= 0 || code > 0x10ffff) return 0;
    *c = (uint32_t)code;
    return length + 1;
}

static bool unescape(render *st, const text *t, value *out)
{
    buffer b = {0};
    bool good = true;
    good = pn_j_work(st, (uint64_t)t->n * 4);
    for (size_t at = 0; good && at < t->n;) {
        char bytes[4];
        uint32_t c;
        size_t length = t->data[at] == '&' ? read_entity(t->data + at, t->n - at, &c) : 0;
        good = length ? pn_j_put(st, &b, bytes, pn_utf8_encode(bytes, c)) : pn_j_put(st, &b, t->data + at, 1);
        at += length ? length : 1;
    }
    return pn_j_take(st, &b, out) && good;
}

static bool filter_striptags(render *st, const value *self, const parameters *p, value *out)
{
    static const text blank = {.data = " ", .n = 1, .chars = 1};
    value v;
    list *words;
    (void)p;
    if (!pn_j_plain_text(st, self, &v) || !remove_between(st, v.as.text, "<!--", "-->", &v) || !remove_between(st, v.as.text, "<", ">", &v)) return false;
    return pn_j_split(st, &v, NULL, -1, false, &words) && pn_j_join(st, &blank, words, &v) && unescape(st, v.as.text, out);
}

/* ---- xmlattr, urlencode ------------------------------------------------------------------------- */

static bool put_attribute(render *st, buffer *b, const value *key, const value *v)
{
    value name_text, content;
    if (!pn_j_want_str(st, key, "an attribute's name")) return false;
    for (size_t i = 0; i < key->as.text->n; i++) {
        char c = key->as.text->data[i];
        if (c == ' ' || (c >= '\t' && c <= '\r') || c == '/' || c == '>' || c == '=') return pn_j_fail(st, "an attribute's name with a character that ends it");
    }
    if (!pn_j_escape(st, key, &name_text) || !pn_j_escape(st, v, &content)) return false;
    return (!b->n || pn_j_put(st, b, " ", 1)) && pn_j_put_value(st, b, &name_text) && pn_j_put_cstr(st, b, "=\"") && pn_j_put_value(st, b, &content) && pn_j_put(st, b, "\"", 1);
}

static bool filter_xmlattr(render *st, const value *self, const parameters *p, value *out)
{
    buffer b = {0};
    value attributes, blank;
    bool good = true, space = !p->has[0] || pn_j_truth(&p->at[0]);
    if (self->kind != V_DICT) return pn_j_fail(st, "xmlattr needs a mapping, not a %s", pn_j_type_name(self));
    const dict *d = self->as.dict;
    for (size_t i = 0; good && i < d->n; i++) {
        if (d->values[i].kind != V_NONE && d->values[i].kind != V_UNDEFINED) good = put_attribute(st, &b, &d->keys[i], &d->values[i]);
    }
    if (!pn_j_take(st, &b, &attributes) || !good) return false;
    bool marked = st->autoescape;
    if (!space || !attributes.as.text->n) *out = attributes;
    else if (!pn_j_str_view(st, " ", 1, &blank) || !pn_j_concat(st, &blank, &attributes, out)) return false;
    out->marked = marked;
    return true;
}

static bool quote(render *st, buffer *b, const value *v, bool in_query)
{
    static const char hex[] = "0123456789ABCDEF", plain[] = "_.-~";
    value shown;
    if (!pn_j_to_text(st, v, &shown) || !pn_j_work(st, (uint64_t)shown.as.text->n * 4)) return false;
    for (size_t i = 0; i < shown.as.text->n; i++) {
        char c = shown.as.text->data[i], coded[3] = {'%', hex[(unsigned char)c >> 4], hex[c & 15]};
        bool stays = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (c && strchr(plain, c)) || (c == '/' && !in_query);
        bool good = stays ? pn_j_put(st, b, &c, 1) : c == ' ' && in_query ? pn_j_put(st, b, "+", 1) : pn_j_put(st, b, coded, 3);
        if (!good) return false;
    }
    return true;
}

static bool quote_pairs(render *st, buffer *b, const value *pairs)
{
    iter it = {0};
    value pair;
    int more;
    if (!pn_j_iter(st, pairs, &it)) return false;
    while ((more = pn_j_next(st, &it, &pair)) > 0) {
        list *l;
        if (!pn_j_to_list(st, &pair, &l)) return false;
        if (l->n != 2) return pn_j_fail(st, "urlencode needs pairs");
        if ((b->n && !pn_j_put(st, b, "&", 1)) || !quote(st, b, &l->items[0], true) || !pn_j_put(st, b, "=", 1) || !quote(st, b, &l->items[1], true)) return false;
    }
    return more == 0;
}

static bool filter_urlencode(render *st, const value *self, const parameters *p, value *out)
{
    buffer b = {0};
    value pairs = *self;
    (void)p;
    if (self->kind == V_DICT) pairs = (value){.kind = V_VIEW, .part = VIEW_ITEMS, .as.dict = self->as.dict};
    bool good = self->kind == V_STR || !pn_j_iterable(self) ? quote(st, &b, self, false) : quote_pairs(st, &b, &pairs);
    return pn_j_take(st, &b, out) && good;
}

static const builtin rows[] = {
    {"e", filter_escape, "", 0}, {"escape", filter_escape, "", 0}, {"forceescape", filter_escape, "", 1}, {"safe", filter_safe, "", 0}, {"striptags", filter_striptags, "", 0},
    {"urlencode", filter_urlencode, "", 0}, {"xmlattr", filter_xmlattr, "? autospace", 0},
};
const filter_table pn_j_markup_filters = {rows, PN_COUNT(rows)};
