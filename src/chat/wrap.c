/* chat/wrap.c - the filter wordwrap: Python's textwrap, paragraph by paragraph. */
#include "base/casemap.h"
#include "base/utf8.h"
#include "chat/filters.h"

typedef struct chunk { /* characters from .. to of the paragraph: blanks, or a word, or a part of one up to a hyphen */
    uint32_t from, to;
    bool blank;
} chunk;

typedef struct wrapper {
    buffer *b;
    const text *paragraph, *line_end;
    uint32_t *chars, *offsets; /* characters and their byte offsets, one offset more */
    uint32_t n;
    int64_t width;
    bool break_words, break_hyphens;
} wrapper;

static bool is_blank(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(uint32_t c)
{
    return c == '_' || pn_char_is(c, PN_CHAR_ALNUM);
}

static bool is_letter(uint32_t c)
{
    return is_word(c) && !pn_char_is(c, PN_CHAR_DECIMAL);
}

static bool is_word_or_point(uint32_t c)
{
    return is_word(c) || (c && c < 0x80 && strchr("!\"'&.,?", (char)c));
}

static uint32_t char_at(const wrapper *w, uint32_t i)
{
    return i < w->n ? w->chars[i] : 0;
}

/* Two or more hyphens before a word character: how many, else 0. */
static uint32_t dash(const wrapper *w, uint32_t at)
{
    uint32_t end = at;
    while (char_at(w, end) == '-') end++;
    return end - at >= 2 && is_word(char_at(w, end)) ? end - at : 0;
}

/* A hyphen at `at` that a line may end with: between words of two letters, or of one on a second hyphen. */
static bool breaking_hyphen(const wrapper *w, uint32_t at)
{
    if (char_at(w, at) != '-' || at < 2 || !is_letter(w->chars[at - 1])) return false;
    bool before = is_letter(w->chars[at - 2]) || (at >= 3 && w->chars[at - 2] == '-' && is_letter(w->chars[at - 3]));
    uint32_t second = at + 2 + (char_at(w, at + 2) == '-');
    return before && is_letter(char_at(w, at + 1)) && is_letter(char_at(w, second));
}

static uint32_t chunk_end(const wrapper *w, uint32_t at)
{
    uint32_t end = at;
    bool blank = is_blank(w->chars[at]);
    if (blank || !w->break_hyphens) {
        while (end < w->n && is_blank(w->chars[end]) == blank) end++;
        return end;
    }
    if (at && is_word_or_point(w->chars[at - 1]) && dash(w, at)) return at + dash(w, at);
    for (end = at + 1; end < w->n && !is_blank(w->chars[end]); end++) {
        if (breaking_hyphen(w, end)) return end + 1;
        if (is_word_or_point(w->chars[end - 1]) && dash(w, end)) break;
    }
    return end;
}

static bool cut(render *st, wrapper *w, chunk **out, uint32_t *n_chunks)
{
    chunk *all = pn_j_get(st, (uint64_t)w->n + 1, sizeof *all);
    uint32_t n = 0;
    for (uint32_t at = 0; all && at < w->n; at = all[n++].to) all[n] = (chunk){at, chunk_end(w, at), is_blank(w->chars[at])};
    *out = all;
    *n_chunks = n;
    return all && pn_j_step(st, w->n);
}

/* How much of a chunk that is longer than a line still goes on the current one. */
static uint32_t long_part(const wrapper *w, const chunk *c, int64_t room)
{
    uint32_t n = c->to - c->from, end = room < (int64_t)n ? (uint32_t)room : n;
    if (!w->break_hyphens || (int64_t)n <= room) return end;
    for (uint32_t hyphen = end; hyphen-- > 1;) {
        if (w->chars[c->from + hyphen] != '-') continue;
        for (uint32_t i = 0; i < hyphen; i++) {
            if (w->chars[c->from + i] != '-') return hyphen + 1;
        }
        break;
    }
    return end;
}

static bool put_line(render *st, wrapper *w, uint32_t from, uint32_t to, bool first)
{
    return pn_j_step(st, 1) && (first || pn_j_put(st, w->b, w->line_end->data, w->line_end->n)) && pn_j_put(st, w->b, w->paragraph->data + w->offsets[from], w->offsets[to] - w->offsets[from]);
}

static bool wrap_chunks(render *st, wrapper *w, chunk *c, uint32_t n)
{
    bool first = true;
    for (uint32_t i = 0; i < n;) {
        if (c[i].blank && !first) i++; /* a line does not begin with blanks */
        if (i == n) break;
        uint32_t from = c[i].from, to = from, trimmed = from;
        int64_t length = 0;
        bool any = false;
        for (; i < n && length + (c[i].to - c[i].from) <= w->width; i++) {
            length += c[i].to - c[i].from;
            to = c[i].to;
            if (!c[i].blank) trimmed = to;
            any = true;
        }
        if (i < n && c[i].to - c[i].from > w->width && (w->break_words || !any)) {
            uint32_t part = w->break_words ? long_part(w, &c[i], w->width - length) : c[i].to - c[i].from;
            to = c[i].from += part;
            if (!c[i].blank) trimmed = to; /* even an empty part keeps the blanks before it */
            i += c[i].from == c[i].to;
        }
        if (trimmed == from) continue;
        if (!put_line(st, w, from, trimmed, first)) return false;
        first = false;
    }
    return true;
}

static bool wrap_paragraph(render *st, wrapper *w, const text *paragraph)
{
    chunk *chunks;
    uint32_t n;
    w->paragraph = paragraph;
    w->n = 0;
    w->chars = pn_j_get(st, (uint64_t)paragraph->n + 1, sizeof *w->chars);
    w->offsets = w->chars ? pn_j_get(st, (uint64_t)paragraph->n + 1, sizeof *w->offsets) : NULL;
    if (!w->offsets) return false;
    for (size_t at = 0; at < paragraph->n;) {
        w->offsets[w->n] = (uint32_t)at;
        at += pn_utf8_decode(paragraph->data + at, paragraph->n - at, &w->chars[w->n++]);
    }
    w->offsets[w->n] = paragraph->n;
    return cut(st, w, &chunks, &n) && wrap_chunks(st, w, chunks, n);
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
        good = (!i || pn_j_put(st, &b, w.line_end->data, w.line_end->n)) && wrap_paragraph(st, &w, lines->items[i].as.text);
    }
    return pn_j_take(st, &b, out) && good;
}

static const builtin rows[] = {{"wordwrap", filter_wordwrap, "? width break_long_words wrapstring break_on_hyphens", 0}};
const filter_table pn_j_wrap_filters = {rows, PN_COUNT(rows)};
