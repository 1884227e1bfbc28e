/* chat/texts.c - Python's string operations on UTF-8. */
#include "chat/texts.h"

#include "base/casemap.h"
#include "base/utf8.h"

bool pn_j_want_int(render *st, const value *v, const char *what, int64_t *out)
{
    if (v->kind == V_UNDEFINED) return pn_j_undefined_error(st, v);
    if (v->kind != V_INT && v->kind != V_BOOL) return pn_j_fail(st, "%s must be an integer, not a %s", what, pn_j_type_name(v));
    *out = pn_j_as_int(v);
    return true;
}

bool pn_j_want_str(render *st, const value *v, const char *what)
{
    return v->kind == V_STR || pn_j_fail(st, "%s must be a str, not a %s", what, pn_j_type_name(v));
}

bool pn_j_given(const parameters *p, int i)
{
    return p->has[i] && p->at[i].kind != V_NONE;
}

static bool decode(const text *t, size_t *at, uint32_t *c)
{
    if (*at >= t->n) return false;
    *at += pn_utf8_decode(t->data + *at, t->n - *at, c);
    return true;
}

static size_t previous(const text *t, size_t at)
{
    do at--;
    while (at && ((unsigned char)t->data[at] & 0xc0) == 0x80);
    return at;
}

static uint32_t char_at(const text *t, size_t at)
{
    uint32_t c = 0;
    pn_utf8_decode(t->data + at, t->n - at, &c);
    return c;
}

size_t pn_j_char_index(const text *t, size_t offset)
{
    size_t n = 0;
    for (size_t i = 0; i < offset; i++) n += ((unsigned char)t->data[i] & 0xc0) != 0x80;
    return n;
}

bool pn_j_all_chars(const text *t, unsigned classes)
{
    uint32_t c = 0;
    for (size_t at = 0; decode(t, &at, &c);) {
        if (!pn_char_is(c, classes)) return false;
    }
    return t->n > 0;
}

bool pn_j_is_cased(const text *t, unsigned wanted)
{
    uint32_t c = 0;
    bool seen = false;
    for (size_t at = 0; decode(t, &at, &c);) {
        if (pn_char_is(c, PN_CHAR_CASED & ~wanted)) return false;
        seen |= pn_char_is(c, wanted);
    }
    return seen;
}

/* ---- strip ------------------------------------------------------------------------------------ */

static bool strips(render *st, const text *chars, uint32_t c)
{
    uint32_t other;
    if (!pn_j_step(st, 1 + (chars ? chars->n / J_BYTES_PER_STEP : 0))) return false;
    if (!chars) return pn_char_is(c, PN_CHAR_SPACE);
    for (size_t at = 0; decode(chars, &at, &other);) {
        if (other == c) return true;
    }
    return false;
}

bool pn_j_strip(render *st, const value *self, const value *chars, strip_side side, value *out)
{
    const text *t = self->as.text, *set = NULL;
    size_t from = 0, to = t->n;
    if (chars && chars->kind != V_NONE) {
        if (!pn_j_want_str(st, chars, "what is stripped")) return false;
        set = chars->as.text;
    }
    for (size_t next = 0; (side & STRIP_LEFT) && from < to; from = next) {
        uint32_t c = 0;
        decode(t, &next, &c);
        if (!strips(st, set, c)) break;
    }
    while ((side & STRIP_RIGHT) && to > from && strips(st, set, char_at(t, previous(t, to)))) to = previous(t, to);
    return !st->failed && pn_j_slice_text(st, self, from, to, out);
}

/* ---- case ------------------------------------------------------------------------------------- */

#define SIGMA 0x3a3u
#define FINAL_SIGMA 0x3c2u

/* A capital sigma at the end of a word: a cased character before it and none behind, ignorable ones passed over. */
static bool ends_word(const text *t, size_t from, size_t at, size_t behind)
{
    uint32_t c = 0;
    bool before = false;
    while (at > from) {
        at = previous(t, at);
        c = char_at(t, at);
        if (pn_char_is(c, PN_CHAR_IGNORABLE)) continue;
        before = pn_char_is(c, PN_CHAR_CASED);
        break;
    }
    if (!before) return false;
    while (decode(t, &behind, &c)) {
        if (!pn_char_is(c, PN_CHAR_IGNORABLE)) return !pn_char_is(c, PN_CHAR_CASED);
    }
    return true;
}

typedef struct case_walk {
    const text *t;
    case_change how;
    bool first, after_cased, after_break;
    size_t word; /* CASE_WORDS: behind the first character of the word, which is lowered without it */
} case_walk;

static bool is_word_break(uint32_t c)
{
    return pn_char_is(c, PN_CHAR_SPACE) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
}

/* What becomes of the character c in its place. */
static pn_case choose_case(case_walk *w, uint32_t c)
{
    pn_case chosen = PN_CASE_LOWER;
    switch (w->how) {
    case CASE_UPPER: chosen = PN_CASE_UPPER; break;
    case CASE_LOWER: break;
    case CASE_FOLD: chosen = PN_CASE_FOLD; break;
    case CASE_SWAP: chosen = pn_char_is(c, PN_CHAR_UPPER) ? PN_CASE_LOWER : pn_char_is(c, PN_CHAR_LOWER) ? PN_CASE_UPPER : PN_CASE_FOLD; break;
    case CASE_CAPITALIZE: chosen = w->first ? PN_CASE_TITLE : PN_CASE_LOWER; break;
    case CASE_TITLE: chosen = w->after_cased ? PN_CASE_LOWER : PN_CASE_TITLE; break;
    case CASE_WORDS: chosen = w->after_break ? PN_CASE_UPPER : PN_CASE_LOWER; break;
    }
    w->first = false;
    w->after_cased = pn_char_is(c, PN_CHAR_CASED);
    w->after_break = is_word_break(c);
    return chosen;
}

static size_t map_char(case_walk *w, size_t at, size_t behind, uint32_t c, uint32_t to[3])
{
    if (w->how == CASE_WORDS && w->after_break) w->word = behind;
    pn_case chosen = choose_case(w, c);
    to[0] = c;
    if (w->how == CASE_SWAP && chosen == PN_CASE_FOLD) return 1; /* neither case */
    if (chosen == PN_CASE_LOWER && c == SIGMA && ends_word(w->t, w->word, at, behind)) {
        to[0] = FINAL_SIGMA;
        return 1;
    }
    return pn_char_case(c, chosen, to);
}

bool pn_j_case(render *st, const value *self, case_change how, value *out)
{
    case_walk w = {.t = self->as.text, .how = how, .first = true, .after_break = true};
    buffer b = {0};
    uint32_t c, to[3];
    bool good = pn_j_work(st, (uint64_t)w.t->n * 8), marked = self->marked;
    for (size_t at = 0, behind = 0; good && decode(w.t, &behind, &c); at = behind) {
        char bytes[12];
        size_t n = map_char(&w, at, behind, c, to), length = 0;
        for (size_t i = 0; i < n; i++) length += pn_utf8_encode(bytes + length, to[i]);
        good = pn_j_put(st, &b, bytes, length);
    }
    good = pn_j_take(st, &b, out) && good;
    out->marked = marked;
    return good;
}

/* ---- replace and split ------------------------------------------------------------------------ */

/* An empty pattern stands before every character and at the end. */
static bool insert_between(render *st, buffer *b, const text *t, const text *new_text, int64_t count)
{
    size_t at = 0;
    uint32_t c = 0;
    for (int64_t i = 0; count < 0 || i < count; i++) {
        size_t from = at;
        if (!pn_j_step(st, 1) || !pn_j_put(st, b, new_text->data, new_text->n)) return false;
        if (!decode(t, &at, &c)) return true;
        if (!pn_j_put(st, b, t->data + from, at - from)) return false;
    }
    return pn_j_put(st, b, t->data + at, t->n - at);
}

bool pn_j_replace(render *st, const value *self, const text *old, const text *new_text, int64_t count, value *out)
{
    const text *t = self->as.text;
    buffer b = {0};
    size_t at = 0;
    bool good = pn_j_work(st, t->n), marked = self->marked;
    if (!old->n) {
        good = good && insert_between(st, &b, t, new_text, count);
        at = t->n;
    }
    for (int64_t i = 0; good && old->n && (count < 0 || i < count); i++) {
        const char *hit = pn_j_find(t->data + at, t->n - at, old->data, old->n);
        if (!hit) break;
        good = pn_j_step(st, 1) && pn_j_put(st, &b, t->data + at, (size_t)(hit - t->data) - at) && pn_j_put(st, &b, new_text->data, new_text->n);
        at = (size_t)(hit - t->data) + old->n;
    }
    good = good && pn_j_put(st, &b, t->data + at, t->n - at);
    good = pn_j_take(st, &b, out) && good;
    out->marked = marked;
    return good;
}

static bool push_part(render *st, const value *self, size_t from, size_t to, list *l)
{
    value part;
    return pn_j_slice_text(st, self, from, to, &part) && pn_j_push(st, l, part);
}

static bool split_left(render *st, const value *self, const text *separator, int64_t limit, list *l)
{
    const text *t = self->as.text;
    size_t at = 0;
    for (; limit < 0 || limit--;) {
        const char *hit = pn_j_find(t->data + at, t->n - at, separator->data, separator->n);
        if (!hit) break;
        if (!push_part(st, self, at, (size_t)(hit - t->data), l)) return false;
        at = (size_t)(hit - t->data) + separator->n;
    }
    return push_part(st, self, at, t->n, l);
}

static bool split_right(render *st, const value *self, const text *separator, int64_t limit, list *l)
{
    const text *t = self->as.text;
    size_t end = t->n;
    for (; limit < 0 || limit--;) {
        const char *hit = pn_j_find_last(st, t->data, end, separator->data, separator->n);
        if (!hit) break;
        if (!push_part(st, self, (size_t)(hit - t->data) + separator->n, end, l)) return false;
        end = (size_t)(hit - t->data);
    }
    return push_part(st, self, 0, end, l);
}

static size_t skip_spaces(const text *t, size_t at, bool spaces)
{
    uint32_t c = 0;
    for (size_t next = at; decode(t, &next, &c); at = next) {
        if (pn_char_is(c, PN_CHAR_SPACE) != spaces) break;
    }
    return at;
}

static bool split_spaces(render *st, const value *self, int64_t limit, list *l)
{
    const text *t = self->as.text;
    for (size_t at = skip_spaces(t, 0, true); at < t->n;) {
        size_t end = skip_spaces(t, at, false);
        if (limit >= 0 && !limit--) end = t->n;
        if (!push_part(st, self, at, end, l)) return false;
        at = skip_spaces(t, end, true);
    }
    return true;
}

static size_t skip_spaces_back(const text *t, size_t end, bool spaces)
{
    while (end && pn_char_is(char_at(t, previous(t, end)), PN_CHAR_SPACE) == spaces) end = previous(t, end);
    return end;
}

static bool split_spaces_right(render *st, const value *self, int64_t limit, list *l)
{
    const text *t = self->as.text;
    for (size_t end = skip_spaces_back(t, t->n, true); end;) {
        size_t from = skip_spaces_back(t, end, false);
        if (limit >= 0 && !limit--) from = 0;
        if (!push_part(st, self, from, end, l)) return false;
        end = skip_spaces_back(t, from, true);
    }
    return true;
}

static void reverse_list(list *l)
{
    for (size_t i = 0; i < l->n / 2; i++) {
        value v = l->items[i];
        l->items[i] = l->items[l->n - 1 - i];
        l->items[l->n - 1 - i] = v;
    }
}

bool pn_j_split(render *st, const value *self, const text *separator, int64_t limit, bool from_right, list **out)
{
    *out = pn_j_list(st, 0);
    if (!*out || !pn_j_work(st, (uint64_t)self->as.text->n * 4)) return false;
    if (separator && !separator->n) return pn_j_fail(st, "an empty separator");
    bool good;
    if (!from_right) good = separator ? split_left(st, self, separator, limit, *out) : split_spaces(st, self, limit, *out);
    else good = separator ? split_right(st, self, separator, limit, *out) : split_spaces_right(st, self, limit, *out);
    if (from_right) reverse_list(*out);
    return good;
}

static bool is_line_end(uint32_t c)
{
    return (c >= 0xa && c <= 0xd) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

bool pn_j_splitlines(render *st, const value *self, bool keep_ends, list **out)
{
    const text *t = self->as.text;
    size_t start = 0, at = 0;
    *out = pn_j_list(st, 0);
    if (!*out || !pn_j_work(st, (uint64_t)t->n * 4)) return false;
    while (at < t->n) {
        uint32_t c = 0;
        size_t line = at;
        decode(t, &at, &c);
        if (!is_line_end(c)) continue;
        if (c == '\r' && at < t->n && t->data[at] == '\n') at++;
        if (!push_part(st, self, start, keep_ends ? at : line, *out)) return false;
        start = at;
    }
    return start == t->n || push_part(st, self, start, t->n, *out);
}

/* ---- padding, joining, reversing -------------------------------------------------------------- */

static bool put_fill(render *st, buffer *b, const text *fill, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (!pn_j_put(st, b, fill->data, fill->n)) return false;
    }
    return true;
}

bool pn_j_pad(render *st, const value *self, int64_t width, const text *fill, pad_mode mode, value *out)
{
    static const text blank = {.data = " ", .n = 1, .chars = 1};
    int64_t n = (int64_t)pn_j_chars(st, self->as.text), missing = width - n;
    if (!fill) fill = &blank;
    if (width > J_MAX_WIDTH) return pn_j_fail(st, "a width of %" PRId64 ": at most %d is allowed", width, J_MAX_WIDTH);
    if (width <= n) {
        *out = *self;
        return true;
    }
    int64_t left = mode == PAD_LEFT ? 0 : mode == PAD_RIGHT ? missing : missing / 2 + (missing & width & 1);
    buffer b = {0};
    bool marked = self->marked, good = put_fill(st, &b, fill, left) && pn_j_put(st, &b, self->as.text->data, self->as.text->n) && put_fill(st, &b, fill, missing - left);
    good = pn_j_take(st, &b, out) && good;
    out->marked = marked;
    return good;
}

bool pn_j_join(render *st, const text *separator, list *parts, value *out)
{
    buffer b = {0};
    bool good = true;
    for (size_t i = 0; good && i < parts->n; i++) {
        const text *t = parts->items[i].as.text;
        good = (!i || pn_j_put(st, &b, separator->data, separator->n)) && pn_j_put(st, &b, t->data, t->n);
    }
    return pn_j_take(st, &b, out) && good;
}

bool pn_j_reverse_text(render *st, const value *self, value *out)
{
    const text *t = self->as.text;
    char *data;
    bool marked = self->marked;
    if (!pn_j_str_room(st, t->n, &data, out)) return false;
    for (size_t at = 0, next = 0; at < t->n; at = next) {
        uint32_t c = 0;
        decode(t, &next, &c);
        memcpy(data + t->n - next, t->data + at, next - at);
    }
    out->marked = marked;
    return true;
}
