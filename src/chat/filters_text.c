/* chat/filters_text.c - filters on text. */
#include "base/casemap.h"
#include "base/utf8.h"
#include "chat/filters.h"

static bool filter_case(render *st, const value *self, const parameters *p, value *out)
{
    value v;
    if (!pn_j_soft_text(st, self, &v) || !pn_j_case(st, &v, (case_change)p->option, out)) return false;
    if (p->option == CASE_WORDS) out->marked = false;
    return true;
}

static bool filter_trim(render *st, const value *self, const parameters *p, value *out)
{
    value v;
    return pn_j_soft_text(st, self, &v) && pn_j_strip(st, &v, p->has[0] ? &p->at[0] : NULL, STRIP_BOTH, out);
}

static bool filter_string(render *st, const value *self, const parameters *p, value *out)
{
    (void)p;
    return pn_j_soft_text(st, self, out);
}

static bool filter_center(render *st, const value *self, const parameters *p, value *out)
{
    value v;
    int64_t width = 80;
    if (p->has[0] && !pn_j_want_int(st, &p->at[0], "a width", &width)) return false;
    return pn_j_soft_text(st, self, &v) && pn_j_pad(st, &v, width, NULL, PAD_CENTER, out);
}

static bool filter_replace(render *st, const value *self, const parameters *p, value *out)
{
    value v, old, new_text;
    int64_t count = -1;
    if (pn_j_given(p, 2) && !pn_j_want_int(st, &p->at[2], "count", &count)) return false;
    if (!pn_j_soft_text(st, self, &v) || !pn_j_soft_text(st, &p->at[0], &old) || !pn_j_soft_text(st, &p->at[1], &new_text)) return false;
    if (!st->autoescape) v.marked = false;
    else if ((old.marked || new_text.marked) && !v.marked && !pn_j_escape(st, &v, &v)) return false;
    if (v.marked && !pn_j_escape(st, &new_text, &new_text)) return false;
    return pn_j_replace(st, &v, old.as.text, new_text.as.text, count, out);
}

static bool indentation(render *st, const value *width, value *out)
{
    int64_t n = 4;
    char *blanks;
    if (width && width->kind == V_STR) return ((*out = *width), true);
    if (width && !pn_j_want_int(st, width, "an indentation", &n)) return false;
    if (n > J_MAX_WIDTH) return pn_j_fail(st, "an indentation of %" PRId64 ": at most %d is allowed", n, J_MAX_WIDTH);
    if (!pn_j_str_room(st, n > 0 ? (size_t)n : 0, &blanks, out)) return false;
    memset(blanks, ' ', out->as.text->n);
    return true;
}

static bool filter_indent(render *st, const value *self, const parameters *p, value *out)
{
    bool first = p->has[1] && pn_j_truth(&p->at[1]), blank = p->has[2] && pn_j_truth(&p->at[2]), marked = self->marked;
    value space, whole, line_end;
    list *lines;
    buffer b = {0};
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (!pn_j_want_str(st, self, "what is indented") || !indentation(st, p->has[0] ? &p->at[0] : NULL, &space)) return false;
    if (marked && p->has[0] && p->at[0].kind == V_STR) space.marked = true;
    if (!pn_j_str_view(st, "\n", 1, &line_end) || !pn_j_concat(st, self, &line_end, &whole) || !pn_j_splitlines(st, &whole, false, &lines)) return false;
    bool good = true;
    for (size_t i = 0; good && i < lines->n; i++) {
        const text *t = lines->items[i].as.text;
        good = (!i || pn_j_put(st, &b, "\n", 1)) && (!(i ? blank || t->n : first) || pn_j_put_value(st, &b, &space)) && pn_j_put(st, &b, t->data, t->n);
    }
    good = pn_j_take(st, &b, out) && good;
    out->marked = marked;
    return good;
}

static bool filter_truncate(render *st, const value *self, const parameters *p, value *out)
{
    int64_t length = 255, leeway = 5, n;
    value end, kept, parts[3] = {v_none(), v_none(), v_none()};
    bool kill = p->has[1] && pn_j_truth(&p->at[1]);
    if (p->has[0] && !pn_j_want_int(st, &p->at[0], "a length", &length)) return false;
    if (p->has[2]) end = p->at[2];
    else if (!pn_j_str_view(st, "...", 3, &end)) return false;
    if (!pn_j_want_str(st, &end, "an end") || (pn_j_given(p, 3) && !pn_j_want_int(st, &p->at[3], "a leeway", &leeway))) return false;
    int64_t cut = length - (int64_t)pn_j_chars(st, end.as.text);
    if (cut < 0 || leeway < 0) return pn_j_fail(st, "truncate to less than its end, or with a negative leeway");
    if (!pn_j_length(st, self, &n)) return false;
    if (length > INT64_MAX - leeway || n <= length + leeway) return ((*out = *self), true);
    parts[1] = v_int(cut);
    if (!pn_j_want_str(st, self, "what is truncated") || !pn_j_slice(st, self, parts, &kept)) return false;
    const text *t = kept.as.text;
    const char *blank = kill ? NULL : pn_j_find_last(st, t->data, t->n, " ", 1);
    if (blank && !pn_j_slice_text(st, &kept, 0, (size_t)(blank - t->data), &kept)) return false;
    return pn_j_binary(st, OP_ADD, &kept, &end, out);
}

static bool filter_format(render *st, const value *self, const parameters *p, value *out)
{
    value v, args;
    list *l = pn_j_list(st, p->all->n);
    if (p->all->n && p->all->n_named) return pn_j_fail(st, "format takes positional or keyword arguments, not both");
    if (!l || !pn_j_soft_text(st, self, &v)) return false;
    for (size_t i = 0; i < p->all->n; i++) l->items[l->n++] = p->all->items[i];
    args = v_tuple(l);
    if (p->all->n_named) {
        dict *d = pn_j_dict(st, p->all->n_named);
        for (size_t i = 0; d && i < p->all->n_named; i++) {
            value key;
            if (!pn_j_str_view(st, p->all->names[i]->data, p->all->names[i]->n, &key) || !pn_j_dict_set(st, d, key, p->all->named[i])) return false;
        }
        if (!d) return false;
        args = (value){.kind = V_DICT, .as.dict = d};
    }
    return pn_j_percent(st, &v, &args, out);
}

static bool filter_wordcount(render *st, const value *self, const parameters *p, value *out)
{
    value v;
    int64_t n = 0;
    bool in_word = false;
    (void)p;
    if (!pn_j_soft_text(st, self, &v)) return false;
    for (size_t at = 0; at < v.as.text->n;) {
        uint32_t c;
        at += pn_utf8_decode(v.as.text->data + at, v.as.text->n - at, &c);
        bool word = c == '_' || pn_char_is(c, PN_CHAR_ALNUM);
        n += word && !in_word;
        in_word = word;
    }
    *out = v_int(n);
    return pn_j_work(st, (uint64_t)v.as.text->n * 4);
}

static const builtin rows[] = {
    {"capitalize", filter_case, "", CASE_CAPITALIZE}, {"center", filter_center, "? width", 0}, {"format", filter_format, "*", 0}, {"indent", filter_indent, "? width first blank", 0},
    {"lower", filter_case, "", CASE_LOWER}, {"replace", filter_replace, "old new ? count", 0}, {"string", filter_string, "", 0}, {"title", filter_case, "", CASE_WORDS}, {"trim", filter_trim, "? chars", 0},
    {"truncate", filter_truncate, "? length killwords end leeway", 0}, {"upper", filter_case, "", CASE_UPPER}, {"wordcount", filter_wordcount, "", 0},
};
const filter_table pn_j_text_filters = {rows, PN_COUNT(rows)};
