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

/* ---- wordwrap --------------------------------------------------------------------------------- */

typedef struct wrapper {
    buffer *b;
    const char *data;   /* the paragraph */
    size_t n;
    int64_t width;
    const text *line_end;
    bool break_words, break_hyphens;
    int64_t column;     /* characters on the line; -1: no line yet */
    size_t pending, pending_end; /* white space that is written only before another word */
} wrapper;

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_letter(char c)
{
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (unsigned char)c >= 0x80;
}

/* The end of the piece that begins at `at`: a run of blanks, or a word up to a hyphen between letters. */
static size_t piece_end(const wrapper *w, size_t at)
{
    size_t end = at;
    if (is_blank(w->data[at])) {
        while (end < w->n && is_blank(w->data[end])) end++;
        return end;
    }
    while (end < w->n && !is_blank(w->data[end])) {
        end++;
        bool hyphen = w->data[end - 1] == '-' && end - at >= 3 && is_letter(w->data[end - 2]) && is_letter(w->data[end - 3]) && end + 1 < w->n && is_letter(w->data[end]) && is_letter(w->data[end + 1]);
        if (w->break_hyphens && hyphen) break;
    }
    return end;
}

static int64_t count_chars(const char *data, size_t n)
{
    int64_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += ((unsigned char)data[i] & 0xc0) != 0x80;
    return chars;
}

static bool new_wrapped_line(render *st, wrapper *w)
{
    bool good = w->column < 0 || pn_j_put(st, w->b, w->line_end->data, w->line_end->n);
    w->column = 0;
    w->pending_end = w->pending = 0;
    return good;
}

/* A word longer than a line goes on in the next one. */
static bool put_long_word(render *st, wrapper *w, size_t at, size_t end)
{
    while (at < end) {
        int64_t room = w->width - w->column;
        size_t to = at;
        while (to < end && room > 0) {
            to++;
            while (to < end && ((unsigned char)w->data[to] & 0xc0) == 0x80) to++;
            room--;
        }
        if (!pn_j_put(st, w->b, w->data + at, to - at)) return false;
        w->column += count_chars(w->data + at, to - at);
        at = to;
        if (at < end && !new_wrapped_line(st, w)) return false;
    }
    return true;
}

static bool put_word(render *st, wrapper *w, size_t at, size_t end)
{
    int64_t blanks = (int64_t)(w->pending_end - w->pending), n = count_chars(w->data + at, end - at);
    bool fits = w->column >= 0 && w->column + blanks + n <= w->width, breaks = n > w->width && w->break_words;
    bool starts = w->column < 0 || (!fits && !(breaks && w->column + blanks < w->width));
    if (starts && !(w->column < 0 && w->pending_end) && !new_wrapped_line(st, w)) return false;
    if (w->column < 0) w->column = 0;
    if (w->pending_end > w->pending && !pn_j_put(st, w->b, w->data + w->pending, w->pending_end - w->pending)) return false;
    w->column += (int64_t)(w->pending_end - w->pending);
    w->pending = w->pending_end = 0;
    if (breaks) return put_long_word(st, w, at, end);
    w->column += n;
    return pn_j_put(st, w->b, w->data + at, end - at);
}

static bool wrap_paragraph(render *st, wrapper *w)
{
    w->column = -1;
    w->pending = w->pending_end = 0;
    for (size_t at = 0, end; at < w->n; at = end) {
        end = piece_end(w, at);
        if (!is_blank(w->data[at])) {
            if (!put_word(st, w, at, end)) return false;
        } else {
            w->pending = at;
            w->pending_end = end;
        }
    }
    return true;
}

static bool filter_wordwrap(render *st, const value *self, const parameters *p, value *out)
{
    buffer b = {0};
    value line_end;
    list *lines;
    wrapper w = {.b = &b, .width = 79, .break_words = !p->has[1] || pn_j_truth(&p->at[1]), .break_hyphens = !p->has[3] || pn_j_truth(&p->at[3])};
    if (p->has[0] && !pn_j_want_int(st, &p->at[0], "a width", &w.width)) return false;
    if (w.width <= 0) return pn_j_fail(st, "a width of %" PRId64 ": it must be above 0", w.width);
    if (!pn_j_want_str(st, self, "what is wrapped") || !pn_j_splitlines(st, self, false, &lines)) return false;
    if (pn_j_given(p, 2)) line_end = p->at[2];
    else if (!pn_j_str_view(st, "\n", 1, &line_end)) return false;
    if (!pn_j_want_str(st, &line_end, "a line's end")) return false;
    w.line_end = line_end.as.text;
    bool good = true;
    for (size_t i = 0; good && i < lines->n; i++) {
        w.data = lines->items[i].as.text->data;
        w.n = lines->items[i].as.text->n;
        good = (!i || pn_j_put(st, &b, w.line_end->data, w.line_end->n)) && wrap_paragraph(st, &w);
    }
    return pn_j_take(st, &b, out) && good;
}

static const builtin rows[] = {
    {"capitalize", filter_case, "", CASE_CAPITALIZE}, {"center", filter_center, "? width", 0}, {"format", filter_format, "*", 0}, {"indent", filter_indent, "? width first blank", 0},
    {"lower", filter_case, "", CASE_LOWER}, {"replace", filter_replace, "old new ? count", 0}, {"string", filter_string, "", 0}, {"title", filter_case, "", CASE_WORDS}, {"trim", filter_trim, "? chars", 0},
    {"truncate", filter_truncate, "? length killwords end leeway", 0}, {"upper", filter_case, "", CASE_UPPER}, {"wordcount", filter_wordcount, "", 0},
    {"wordwrap", filter_wordwrap, "? width break_long_words wrapstring break_on_hyphens", 0},
};
const filter_table pn_j_text_filters = {rows, PN_COUNT(rows)};
