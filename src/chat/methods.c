/* chat/methods.c - methods of str, list, tuple, dict and the rest: Python's, as far as templates may call them. */
#include "base/casemap.h"
#include "base/utf8.h"
#include "chat/texts.h"

/* ---- str -------------------------------------------------------------------------------------- */

static bool str_case(render *st, const value *self, const parameters *p, value *out)
{
    return pn_j_case(st, self, (case_change)p->option, out);
}

static bool str_strip(render *st, const value *self, const parameters *p, value *out)
{
    return pn_j_strip(st, self, p->has[0] ? &p->at[0] : NULL, (strip_side)p->option, out);
}

static bool str_split(render *st, const value *self, const parameters *p, value *out)
{
    int64_t limit = -1;
    list *l;
    if (pn_j_given(p, 0) && !pn_j_want_str(st, &p->at[0], "a separator")) return false;
    if (p->has[1] && !pn_j_want_int(st, &p->at[1], "maxsplit", &limit)) return false;
    if (!pn_j_split(st, self, pn_j_given(p, 0) ? p->at[0].as.text : NULL, limit, p->option != 0, &l)) return false;
    *out = v_list(l);
    return true;
}

static bool str_splitlines(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    if (!pn_j_splitlines(st, self, p->has[0] && pn_j_truth(&p->at[0]), &l)) return false;
    *out = v_list(l);
    return true;
}

static bool str_replace(render *st, const value *self, const parameters *p, value *out)
{
    int64_t count = -1;
    value new_text = p->at[1];
    if (!pn_j_want_str(st, &p->at[0], "what is replaced") || !pn_j_want_str(st, &p->at[1], "a replacement")) return false;
    if (p->has[2] && !pn_j_want_int(st, &p->at[2], "count", &count)) return false;
    if (self->marked && !pn_j_escape(st, &p->at[1], &new_text)) return false;
    return pn_j_replace(st, self, p->at[0].as.text, new_text.as.text, count, out);
}

/* The part of the text that optional start and end leave, in bytes; false in *any when there is none. */
static bool window(render *st, const value *self, const parameters *p, size_t *from, size_t *to, bool *any)
{
    text *t = self->as.text;
    int64_t n = (int64_t)pn_j_chars(st, t), bounds[2] = {0, n};
    for (int i = 0; i < 2; i++) {
        if (!pn_j_given(p, i + 1)) continue;
        if (!pn_j_want_int(st, &p->at[i + 1], "a position", &bounds[i])) return false;
        if (bounds[i] < 0) bounds[i] = bounds[i] < -n ? 0 : bounds[i] + n;
        if (i && bounds[i] > n) bounds[i] = n;
    }
    *any = bounds[0] <= bounds[1];
    *from = *any ? pn_j_offset(t, (size_t)bounds[0]) : 0;
    *to = *any ? pn_j_offset(t, (size_t)bounds[1]) : 0;
    return pn_j_work(st, t->n);
}

typedef enum find_mode { FIND, RFIND, INDEX, RINDEX } find_mode;

static bool str_find(render *st, const value *self, const parameters *p, value *out)
{
    const text *t = self->as.text;
    size_t from, to;
    bool any, last = p->option == RFIND || p->option == RINDEX;
    if (!pn_j_want_str(st, &p->at[0], "what is searched") || !window(st, self, p, &from, &to, &any)) return false;
    const text *part = p->at[0].as.text;
    const char *hit = !any ? NULL : last ? pn_j_find_last(st, t->data + from, to - from, part->data, part->n) : pn_j_find(t->data + from, to - from, part->data, part->n);
    if (!hit && p->option >= INDEX) return pn_j_fail(st, "the text is not in it");
    *out = v_int(hit ? (int64_t)pn_j_char_index(t, (size_t)(hit - t->data)) : -1);
    return true;
}

static bool str_count(render *st, const value *self, const parameters *p, value *out)
{
    const text *t = self->as.text;
    size_t from, to;
    bool any;
    int64_t n = 0;
    if (!pn_j_want_str(st, &p->at[0], "what is counted") || !window(st, self, p, &from, &to, &any)) return false;
    const text *part = p->at[0].as.text;
    if (any && !part->n) n = (int64_t)(pn_j_char_index(t, to) - pn_j_char_index(t, from)) + 1;
    while (any && part->n) {
        const char *hit = pn_j_find(t->data + from, to - from, part->data, part->n);
        if (!hit) break;
        if (!pn_j_step(st, 1)) return false;
        n++;
        from = (size_t)(hit - t->data) + part->n;
    }
    *out = v_int(n);
    return true;
}

static bool affix(const char *data, size_t n, const text *part, bool end)
{
    return part->n <= n && !memcmp(end ? data + (n - part->n) : data, part->data, part->n);
}

static bool str_affix(render *st, const value *self, const parameters *p, value *out)
{
    const value *parts = &p->at[0];
    size_t from, to, n = 1;
    bool any, found = false;
    if (p->at[0].kind == V_TUPLE) {
        parts = p->at[0].as.list->items;
        n = p->at[0].as.list->n;
    }
    if (!window(st, self, p, &from, &to, &any)) return false;
    for (size_t i = 0; i < n && !found; i++) {
        if (!pn_j_want_str(st, &parts[i], "a prefix or suffix")) return false;
        found = any && affix(self->as.text->data + from, to - from, parts[i].as.text, p->option != 0);
    }
    *out = v_bool(found);
    return true;
}

static bool str_remove(render *st, const value *self, const parameters *p, value *out)
{
    const text *t = self->as.text;
    if (!pn_j_want_str(st, &p->at[0], "a prefix or suffix")) return false;
    const text *part = p->at[0].as.text;
    size_t cut = affix(t->data, t->n, part, p->option != 0) ? part->n : 0;
    return pn_j_slice_text(st, self, p->option ? 0 : cut, p->option ? t->n - cut : t->n, out);
}

static bool str_partition(render *st, const value *self, const parameters *p, value *out)
{
    const text *t = self->as.text;
    if (!pn_j_want_str(st, &p->at[0], "a separator")) return false;
    const text *part = p->at[0].as.text;
    if (!part->n) return pn_j_fail(st, "an empty separator");
    const char *hit = p->option ? pn_j_find_last(st, t->data, t->n, part->data, part->n) : pn_j_find(t->data, t->n, part->data, part->n);
    size_t at = hit ? (size_t)(hit - t->data) : p->option ? 0 : t->n, behind = hit ? at + part->n : at;
    list *l = pn_j_list(st, 3);
    if (!l || !pn_j_work(st, t->n)) return false;
    size_t cuts[] = {0, at, behind, t->n};
    for (int i = 0; i < 3; i++) {
        value v;
        if (!pn_j_slice_text(st, self, cuts[i], cuts[i + 1], &v) || !pn_j_push(st, l, v)) return false;
    }
    *out = v_tuple(l);
    return true;
}

static bool str_join(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    if (!pn_j_to_list(st, &p->at[0], &l)) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (!self->marked && !pn_j_want_str(st, &l->items[i], "what is joined")) return false;
        if (self->marked && !pn_j_escape(st, &l->items[i], &l->items[i])) return false;
    }
    if (!pn_j_join(st, self->as.text, l, out)) return false;
    out->marked = self->marked;
    return true;
}

static bool str_pad(render *st, const value *self, const parameters *p, value *out)
{
    int64_t width;
    value fill = {.kind = V_NONE};
    if (!pn_j_want_int(st, &p->at[0], "a width", &width)) return false;
    if (p->has[1]) {
        if (!pn_j_want_str(st, &p->at[1], "a fill character") || pn_j_chars(st, p->at[1].as.text) != 1) return pn_j_fail(st, "a fill character must be one character");
        fill = p->at[1];
        if (self->marked && !pn_j_escape(st, &p->at[1], &fill)) return false;
    }
    return pn_j_pad(st, self, width, fill.kind == V_STR ? fill.as.text : NULL, (pad_mode)p->option, out);
}

static bool str_zfill(render *st, const value *self, const parameters *p, value *out)
{
    static const text zero = {.data = "0", .n = 1, .chars = 1};
    const text *t = self->as.text;
    int64_t width;
    value sign, digits, padded;
    if (!pn_j_want_int(st, &p->at[0], "a width", &width)) return false;
    size_t signs = t->n && (t->data[0] == '+' || t->data[0] == '-');
    if (!pn_j_slice_text(st, self, 0, signs, &sign) || !pn_j_slice_text(st, self, signs, t->n, &digits)) return false;
    if (!pn_j_pad(st, &digits, width - (int64_t)signs, &zero, PAD_RIGHT, &padded) || !pn_j_concat(st, &sign, &padded, out)) return false;
    out->marked = self->marked;
    return true;
}

static bool str_expandtabs(render *st, const value *self, const parameters *p, value *out)
{
    const text *t = self->as.text;
    int64_t size = 8, column = 0;
    buffer b = {0};
    bool good = !p->has[0] || pn_j_want_int(st, &p->at[0], "a tab size", &size);
    if (good && size > J_MAX_WIDTH) good = pn_j_fail(st, "a tab size of more than %d", J_MAX_WIDTH);
    for (size_t i = 0; good && i < t->n; i++) {
        if (t->data[i] != '\t') {
            good = pn_j_put(st, &b, t->data + i, 1);
            if (t->data[i] == '\n' || t->data[i] == '\r') column = 0;
            else column += ((unsigned char)t->data[i] & 0xc0) != 0x80;
            continue;
        }
        for (int64_t n = size > 0 ? size - column % size : 0; good && n > 0; n--, column++) good = pn_j_put(st, &b, " ", 1);
    }
    good = pn_j_take(st, &b, out) && good;
    out->marked = self->marked;
    return good;
}

static bool str_format(render *st, const value *self, const parameters *p, value *out)
{
    return pn_j_format(st, self, p->all, out);
}

static bool str_format_map(render *st, const value *self, const parameters *p, value *out)
{
    if (p->at[0].kind != V_DICT) return pn_j_fail(st, "format_map() needs a mapping");
    const dict *d = p->at[0].as.dict;
    arguments args = {.names = pn_j_get(st, d->n + 1, sizeof *args.names), .named = d->values};
    for (size_t i = 0; args.names && i < d->n; i++) {
        static const text no_name = {.data = "", .n = 0};
        args.names[i] = d->keys[i].kind == V_STR ? d->keys[i].as.text : &no_name;
    }
    args.n_named = d->n;
    return args.names && pn_j_format(st, self, &args, out);
}

static bool str_classes(render *st, const value *self, const parameters *p, value *out)
{
    *out = v_bool(pn_j_all_chars(self->as.text, (unsigned)p->option));
    return pn_j_work(st, (uint64_t)self->as.text->n * 4);
}

static bool str_islower(render *st, const value *self, const parameters *p, value *out)
{
    *out = v_bool(pn_j_is_cased(self->as.text, (unsigned)p->option));
    return pn_j_work(st, (uint64_t)self->as.text->n * 4);
}

static bool str_isascii(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    *out = v_bool(pn_j_chars(st, self->as.text) == self->as.text->n);
    return true;
}

static bool str_isprintable(render *st, const value *self, const parameters *p, value *out)
{
    (void)st;
    (void)p;
    *out = v_bool(!self->as.text->n || pn_j_all_chars(self->as.text, PN_CHAR_PRINTABLE));
    return true;
}

static bool str_isidentifier(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    value first;
    text *t = self->as.text;
    if (!pn_j_chars(st, t)) return ((*out = v_bool(false)), true);
    if (!pn_j_slice_text(st, self, 0, pn_j_offset(t, 1), &first)) return false;
    *out = v_bool(pn_j_all_chars(t, PN_CHAR_NAME) && pn_j_all_chars(first.as.text, PN_CHAR_NAME_START));
    return true;
}

static bool str_istitle(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    value titled;
    const text *t = self->as.text;
    bool cased = false;
    if (!pn_j_case(st, self, CASE_TITLE, &titled)) return false;
    for (size_t at = 0; at < t->n && !cased;) {
        uint32_t c;
        at += pn_utf8_decode(t->data + at, t->n - at, &c);
        cased = pn_char_is(c, PN_CHAR_CASED);
    }
    *out = v_bool(cased && titled.as.text->n == t->n && !memcmp(titled.as.text->data, t->data, t->n));
    return true;
}

static bool str_encode(render *st, const value *self, const parameters *p, value *out)
{
    if (p->has[0] && !pn_j_is_text(&p->at[0], "utf-8") && !pn_j_is_text(&p->at[0], "utf8") && !pn_j_is_text(&p->at[0], "UTF-8")) return pn_j_fail(st, "only utf-8 can be encoded to");
    *out = (value){.kind = V_BYTES, .as.text = self->as.text};
    return true;
}

static bool bytes_decode(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    return pn_j_str_view(st, self->as.text->data, self->as.text->n, out);
}

static const builtin str_methods[] = {
    {"capitalize", str_case, "", CASE_CAPITALIZE}, {"casefold", str_case, "", CASE_FOLD}, {"center", str_pad, "/ width ? fillchar", PAD_CENTER}, {"count", str_count, "/ sub ? start end", 0},
    {"encode", str_encode, "? encoding errors", 0}, {"endswith", str_affix, "/ suffix ? start end", 1}, {"expandtabs", str_expandtabs, "? tabsize", 0}, {"find", str_find, "/ sub ? start end", FIND},
    {"format", str_format, "*", 0}, {"format_map", str_format_map, "/ mapping", 0}, {"index", str_find, "/ sub ? start end", INDEX}, {"isalnum", str_classes, "", PN_CHAR_ALNUM},
    {"isalpha", str_classes, "", PN_CHAR_ALPHA}, {"isascii", str_isascii, "", 0}, {"isdecimal", str_classes, "", PN_CHAR_DECIMAL}, {"isdigit", str_classes, "", PN_CHAR_DIGIT},
    {"isidentifier", str_isidentifier, "", 0}, {"islower", str_islower, "", PN_CHAR_LOWER}, {"isnumeric", str_classes, "", PN_CHAR_NUMERIC}, {"isprintable", str_isprintable, "", 0},
    {"isspace", str_classes, "", PN_CHAR_SPACE}, {"istitle", str_istitle, "", 0}, {"isupper", str_islower, "", PN_CHAR_UPPER}, {"join", str_join, "/ iterable", 0},
    {"ljust", str_pad, "/ width ? fillchar", PAD_LEFT}, {"lower", str_case, "", CASE_LOWER}, {"lstrip", str_strip, "/ ? chars", STRIP_LEFT}, {"partition", str_partition, "/ sep", 0},
    {"removeprefix", str_remove, "/ prefix", 0}, {"removesuffix", str_remove, "/ suffix", 1}, {"replace", str_replace, "/ old new ? count", 0}, {"rfind", str_find, "/ sub ? start end", RFIND},
    {"rindex", str_find, "/ sub ? start end", RINDEX}, {"rjust", str_pad, "/ width ? fillchar", PAD_RIGHT}, {"rpartition", str_partition, "/ sep", 1}, {"rsplit", str_split, "? sep maxsplit", 1},
    {"rstrip", str_strip, "/ ? chars", STRIP_RIGHT}, {"split", str_split, "? sep maxsplit", 0}, {"splitlines", str_splitlines, "? keepends", 0}, {"startswith", str_affix, "/ prefix ? start end", 0},
    {"strip", str_strip, "/ ? chars", STRIP_BOTH}, {"swapcase", str_case, "", CASE_SWAP}, {"title", str_case, "", CASE_TITLE}, {"upper", str_case, "", CASE_UPPER}, {"zfill", str_zfill, "/ width", 0},
};
static const builtin bytes_methods[] = {{"decode", bytes_decode, "? encoding errors", 0}};

/* ---- list and tuple --------------------------------------------------------------------------- */

static bool list_append(render *st, const value *self, const parameters *p, value *out)
{
    *out = v_none();
    return pn_j_push(st, self->as.list, p->at[0]);
}

static bool list_pop(render *st, const value *self, const parameters *p, value *out)
{
    list *l = self->as.list;
    int64_t n = (int64_t)l->n, i = -1;
    if (p->has[0] && !pn_j_want_int(st, &p->at[0], "an index", &i)) return false;
    if (i < 0) i += n;
    if (i < 0 || i >= n) return pn_j_fail(st, n ? "pop index out of range" : "pop from an empty list");
    *out = l->items[i];
    memmove(l->items + i, l->items + i + 1, (size_t)(n - 1 - i) * sizeof *l->items);
    l->n--;
    return pn_j_step(st, (uint64_t)(n - i));
}

static bool list_index(render *st, const value *self, const parameters *p, value *out)
{
    const list *l = self->as.list;
    int64_t n = (int64_t)l->n, bounds[2] = {0, n};
    bool equal = false;
    for (int i = 0; i < 2; i++) {
        if (p->has[i + 1] && !pn_j_want_int(st, &p->at[i + 1], "a position", &bounds[i])) return false;
        if (bounds[i] < 0) bounds[i] = bounds[i] < -n ? 0 : bounds[i] + n;
    }
    for (int64_t i = bounds[0]; i < bounds[1] && i < n; i++) {
        if (!pn_j_equal(st, &l->items[i], &p->at[0], &equal)) return false;
        if (equal) return ((*out = v_int(i)), true);
    }
    return pn_j_fail(st, "the value is not in the list");
}

static bool list_count(render *st, const value *self, const parameters *p, value *out)
{
    const list *l = self->as.list;
    int64_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        bool equal;
        if (!pn_j_equal(st, &l->items[i], &p->at[0], &equal)) return false;
        n += equal;
    }
    *out = v_int(n);
    return true;
}

static bool list_copy(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    (void)p;
    if (!pn_j_to_list(st, self, &l)) return false;
    *out = v_list(l);
    return true;
}

static const builtin list_methods[] = {
    {"append", list_append, "/ object", 0}, {"copy", list_copy, "", 0}, {"count", list_count, "/ value", 0}, {"index", list_index, "/ value ? start stop", 0}, {"pop", list_pop, "/ ? index", 0},
};
static const builtin tuple_methods[] = {{"count", list_count, "/ value", 0}, {"index", list_index, "/ value ? start stop", 0}};

/* ---- dict, numbers, range, cycler --------------------------------------------------------------- */

static bool dict_get(render *st, const value *self, const parameters *p, value *out)
{
    bool found;
    if (!pn_j_dict_get(st, self->as.dict, &p->at[0], out, &found)) return false;
    if (!found) *out = p->has[1] ? p->at[1] : v_none();
    return true;
}

static bool dict_view(render *st, const value *self, const parameters *p, value *out)
{
    (void)st;
    *out = (value){.kind = V_VIEW, .part = (uint8_t)p->option, .as.dict = self->as.dict};
    return true;
}

static bool dict_copy(render *st, const value *self, const parameters *p, value *out)
{
    const dict *from = self->as.dict;
    dict *d = pn_j_dict(st, from->n);
    (void)p;
    for (size_t i = 0; d && i < from->n; i++) {
        if (!pn_j_dict_set(st, d, from->keys[i], from->values[i])) return false;
    }
    *out = (value){.kind = V_DICT, .as.dict = d};
    return d != NULL;
}

static bool dict_fromkeys(render *st, const value *self, const parameters *p, value *out)
{
    dict *d = pn_j_dict(st, 0);
    iter it = {0};
    value key;
    int more;
    (void)self;
    if (!d || !pn_j_iter(st, &p->at[0], &it)) return false;
    while ((more = pn_j_next(st, &it, &key)) > 0) {
        if (!pn_j_dict_set(st, d, key, p->has[1] ? p->at[1] : v_none())) return false;
    }
    *out = (value){.kind = V_DICT, .as.dict = d};
    return more == 0;
}

static bool int_bit_length(render *st, const value *self, const parameters *p, value *out)
{
    int64_t v = pn_j_as_int(self);
    uint64_t size = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    (void)st;
    (void)p;
    *out = v_int(size ? 64 - __builtin_clzll(size) : 0);
    return true;
}

static bool number_itself(render *st, const value *self, const parameters *p, value *out)
{
    (void)st;
    (void)p;
    *out = self->kind == V_FLOAT ? *self : v_int(pn_j_as_int(self));
    return true;
}

static bool float_is_integer(render *st, const value *self, const parameters *p, value *out)
{
    double d = self->as.number;
    (void)st;
    (void)p;
    *out = v_bool(d - d == 0 && ((d <= -9e15 || d >= 9e15) || (double)(int64_t)d == d));
    return true;
}

static bool range_index(render *st, const value *self, const parameters *p, value *out)
{
    const range *r = self->as.range;
    bool found;
    if (!pn_j_contains(st, self, &p->at[0], &found)) return false;
    if (p->option) return ((*out = v_int(found)), true);
    if (!found) return pn_j_fail(st, "the value is not in the range");
    *out = v_int(((int64_t)pn_j_as_double(&p->at[0]) - r->start) / r->step);
    return true;
}

static bool cycler_next(render *st, const value *self, const parameters *p, value *out)
{
    cycler *c = self->as.cycler;
    (void)st;
    *out = c->items->items[c->at];
    c->at = p->option ? (c->at + 1) % c->items->n : 0;
    if (!p->option) *out = v_none();
    return true;
}

static bool loop_cycle(render *st, const value *self, const parameters *p, value *out)
{
    static const text index0 = {.data = "index0", .n = 6, .chars = 6};
    value at;
    if (!p->all->n) return pn_j_fail(st, "loop.cycle() needs items");
    if (!pn_j_attribute(st, self, &index0, &at)) return false;
    *out = p->all->items[(size_t)at.as.integer % p->all->n];
    return true;
}

static bool loop_changed(render *st, const value *self, const parameters *p, value *out)
{
    list *l = pn_j_list(st, p->all->n);
    value *last;
    bool equal = false;
    if (!l) return false;
    for (size_t i = 0; i < p->all->n; i++) l->items[l->n++] = p->all->items[i];
    value now = v_tuple(l);
    last = pn_j_loop_changed(self->as.loop);
    if (last->kind == V_TUPLE && !pn_j_equal(st, last, &now, &equal)) return false;
    if (!equal) *last = now;
    *out = v_bool(!equal);
    return true;
}

static const builtin dict_methods[] = {
    {"copy", dict_copy, "", 0}, {"fromkeys", dict_fromkeys, "/ iterable ? value", 0}, {"get", dict_get, "/ key ? default", 0}, {"items", dict_view, "", VIEW_ITEMS},
    {"keys", dict_view, "", VIEW_KEYS}, {"values", dict_view, "", VIEW_VALUES},
};
static const builtin int_methods[] = {{"bit_length", int_bit_length, "", 0}, {"conjugate", number_itself, "", 0}};
static const builtin float_methods[] = {{"conjugate", number_itself, "", 0}, {"is_integer", float_is_integer, "", 0}};
static const builtin range_methods[] = {{"count", range_index, "/ value", 1}, {"index", range_index, "/ value", 0}};
static const builtin cycler_methods[] = {{"next", cycler_next, "", 1}, {"reset", cycler_next, "", 0}};
static const builtin loop_methods[] = {{"changed", loop_changed, "*", 0}, {"cycle", loop_cycle, "*", 0}};

/* ---- lookup ----------------------------------------------------------------------------------- */

static const struct { const builtin *rows; size_t n; } tables[V_KINDS] = {
    [V_STR] = {str_methods, PN_COUNT(str_methods)}, [V_BYTES] = {bytes_methods, PN_COUNT(bytes_methods)}, [V_LIST] = {list_methods, PN_COUNT(list_methods)},
    [V_TUPLE] = {tuple_methods, PN_COUNT(tuple_methods)}, [V_DICT] = {dict_methods, PN_COUNT(dict_methods)}, [V_BOOL] = {int_methods, PN_COUNT(int_methods)},
    [V_INT] = {int_methods, PN_COUNT(int_methods)}, [V_FLOAT] = {float_methods, PN_COUNT(float_methods)}, [V_RANGE] = {range_methods, PN_COUNT(range_methods)},
    [V_CYCLER] = {cycler_methods, PN_COUNT(cycler_methods)}, [V_LOOP] = {loop_methods, PN_COUNT(loop_methods)},
};

const builtin *pn_j_method(const value *self, const char *name_of, size_t n)
{
    for (size_t i = 0; i < tables[self->kind].n; i++) {
        const builtin *b = &tables[self->kind].rows[i];
        if (strlen(b->name) == n && !memcmp(b->name, name_of, n)) return b;
    }
    return NULL;
}

bool pn_j_is_change(const value *method)
{
    return method->kind == V_METHOD && (method->as.bound->function->call == list_append || method->as.bound->function->call == list_pop);
}

static bool is_one_of(const char *const *words, size_t n_words, const char *name_of, size_t n)
{
    for (size_t i = 0; i < n_words; i++) {
        if (strlen(words[i]) == n && !memcmp(words[i], name_of, n)) return true;
    }
    return false;
}

/* Methods that change their object, and Python's own attributes. */
bool pn_j_is_unsafe(const value *self, const char *name_of, size_t n)
{
    static const char *const list_words[] = {"clear", "extend", "insert", "remove", "reverse", "sort"}, *const dict_words[] = {"clear", "pop", "popitem", "setdefault", "update"};
    static const char *const undefined_words[] = {"__class__", "__doc__", "__init__", "__module__"}; /* other attributes of what is undefined fail */
    if (self->kind == V_LIST && is_one_of(list_words, PN_COUNT(list_words), name_of, n)) return true;
    if (self->kind == V_DICT && is_one_of(dict_words, PN_COUNT(dict_words), name_of, n)) return true;
    if (self->kind == V_UNDEFINED) return is_one_of(undefined_words, PN_COUNT(undefined_words), name_of, n);
    return n > 4 && !memcmp(name_of, "__", 2) && !memcmp(name_of + n - 2, "__", 2);
}
