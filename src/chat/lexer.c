/* chat/lexer.c - a template's text to tokens: white space control, literals, balanced brackets.
 *
 * Works on the normalised source (LF only, the last one dropped). Knows no grammar. */
#include "base/casemap.h"
#include "base/number.h"
#include "base/utf8.h"
#include "chat/ast.h"

enum { IN_TEXT, IN_BLOCK, IN_VARIABLE };

static bool fail_here(lexer *l, const char *what, size_t at)
{
    return pn_j_parse_fail(l->p, l->line, (uint32_t)(at - l->line_start) + 1, "%s", what);
}

static void advance(lexer *l, size_t to)
{
    for (; l->at < to; l->at++) {
        if (l->source[l->at] == '\n') l->line++, l->line_start = l->at + 1;
    }
}

static void start_token(const lexer *l, token *t, token_type type)
{
    *t = (token){.type = (uint8_t)type, .line = l->line, .column = (uint32_t)(l->at - l->line_start) + 1, .data = l->source + l->at};
}

static bool looking_at(const lexer *l, size_t at, const char *what)
{
    size_t n = strlen(what);
    return l->n - at >= n && at <= l->n && !memcmp(l->source + at, what, n);
}

static size_t skip_space(const lexer *l, size_t at)
{
    while (at < l->n) {
        uint32_t c;
        size_t length = pn_utf8_decode(l->source + at, l->n - at, &c);
        if (!pn_char_is(c, PN_CHAR_SPACE)) break;
        at += length;
    }
    return at;
}

/* The end of data[0 .. n) without the white space at its end. */
static size_t strip_right(const char *data, size_t n)
{
    while (n) {
        size_t last = n - 1;
        while (last && ((unsigned char)data[last] & 0xc0) == 0x80) last--;
        uint32_t c;
        pn_utf8_decode(data + last, n - last, &c);
        if (!pn_char_is(c, PN_CHAR_SPACE)) break;
        n = last;
    }
    return n;
}

/* ---- text, comments and raw blocks ------------------------------------------------------------ */

/* Applies '-' or lstrip_blocks to the text before a tag and returns what stays of it. */
static size_t strip_before_tag(const lexer *l, size_t from, size_t to, char sign, bool variable)
{
    const char *data = l->source + from;
    size_t n = to - from;
    if (sign == '-') return from + strip_right(data, n);
    if (sign == '+' || variable) return to;
    size_t line = n;
    while (line && data[line - 1] != '\n') line--;
    if (!line && !l->line_starting) return to;
    return strip_right(data + line, n - line) == 0 ? from + line : to;
}

static char sign_at(const lexer *l, size_t at)
{
    return at < l->n && (l->source[at] == '-' || l->source[at] == '+') ? l->source[at] : 0;
}

/* A tag's end at `at`: its length with the white space that belongs to it, 0: none. */
static size_t tag_end(const lexer *l, size_t at, const char *end, bool trim_newline)
{
    if (at < l->n && l->source[at] == '-' && looking_at(l, at + 1, end)) return skip_space(l, at + 3) - at;
    if (trim_newline && at < l->n && l->source[at] == '+' && looking_at(l, at + 1, end)) return 3;
    if (!looking_at(l, at, end)) return 0;
    return trim_newline && at + 2 < l->n && l->source[at + 2] == '\n' ? 3 : 2;
}

static bool skip_comment(lexer *l, size_t begin)
{
    size_t at = begin + 2 + (sign_at(l, begin + 2) != 0);
    if (at == l->n) return advance(l, at), true; /* nothing behind it: the reference lets it pass */
    for (; at < l->n; at++) {
        size_t length = tag_end(l, at, "#}", true);
        if (!length) continue;
        advance(l, at + length);
        l->line_starting = l->source[l->at - 1] == '\n';
        return true;
    }
    return fail_here(l, "a comment that never ends", begin);
}

static size_t skip_word(const lexer *l, size_t at, const char *word)
{
    at = skip_space(l, at);
    return looking_at(l, at, word) ? skip_space(l, at + strlen(word)) : 0;
}

/* "{% raw %}": the end of the tag, or 0. */
static size_t raw_begin(const lexer *l, size_t begin)
{
    size_t at = skip_word(l, begin + 2 + (sign_at(l, begin + 2) != 0), "raw");
    if (!at) return 0;
    size_t length = tag_end(l, at, "%}", false);
    return length ? at + length : 0;
}

static bool read_raw(lexer *l, token *out)
{
    size_t start = l->at;
    l->line_starting = l->source[start - 1] == '\n';
    if (start == l->n) return start_token(l, out, T_DATA), true; /* nothing behind it, as with comments */
    for (size_t at = start; at + 1 < l->n; at++) {
        if (l->source[at] != '{' || l->source[at + 1] != '%') continue;
        char sign = sign_at(l, at + 2);
        size_t word = skip_word(l, at + 2 + (sign != 0), "endraw"), length = word ? tag_end(l, word, "%}", true) : 0;
        if (!length) continue;
        start_token(l, out, T_DATA);
        out->n = strip_before_tag(l, start, at, sign, false) - start;
        advance(l, word + length);
        l->line_starting = l->source[l->at - 1] == '\n';
        return true;
    }
    return fail_here(l, "a raw block that never ends", start);
}

/* The tag at `begin`, whose text before it is already taken. */
static bool enter_tag(lexer *l, size_t begin, token *tag, bool *is_text)
{
    *is_text = false;
    advance(l, begin);
    if (l->source[begin + 1] == '#') {
        tag->type = T_DATA;
        return skip_comment(l, begin);
    }
    size_t raw = l->source[begin + 1] == '%' ? raw_begin(l, begin) : 0;
    if (raw) {
        *is_text = true;
        advance(l, raw);
        return read_raw(l, tag);
    }
    bool block = l->source[begin + 1] == '%';
    start_token(l, tag, block ? T_BLOCK_BEGIN : T_VARIABLE_BEGIN);
    l->state = block ? IN_BLOCK : IN_VARIABLE;
    advance(l, begin + 2 + (sign_at(l, begin + 2) != 0));
    l->line_starting = false;
    return true;
}

static size_t find_tag(const lexer *l)
{
    for (size_t at = l->at; at + 1 < l->n; at++) {
        if (l->source[at] == '{' && (l->source[at + 1] == '{' || l->source[at + 1] == '%' || l->source[at + 1] == '#')) return at;
    }
    return l->n;
}

/* Text up to the next tag; the tag then waits in `pending`. Empty texts are passed over. */
static bool lex_text(lexer *l, token *out)
{
    while (l->at < l->n) {
        size_t begin = find_tag(l), end = begin;
        start_token(l, out, T_DATA);
        if (begin < l->n) end = strip_before_tag(l, l->at, begin, sign_at(l, begin + 2), l->source[begin + 1] == '{');
        out->n = end - l->at;
        if (begin == l->n) {
            advance(l, l->n);
            return true;
        }
        bool is_text = false;
        token tag = {0};
        if (!enter_tag(l, begin, &tag, &is_text)) return false;
        bool has = is_text ? tag.n > 0 : tag.type != T_DATA;
        if (!out->n && !has) continue;
        if (!out->n) {
            *out = tag;
            return true;
        }
        l->pending = tag;
        l->has_pending = has;
        return true;
    }
    start_token(l, out, T_END);
    return true;
}

/* ---- numbers ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool in_base(char c, int base)
{
    if (base <= 10) return c >= '0' && c < '0' + base;
    return is_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

/* Digits with single underscores between them; `leading`: one may stand before the first. */
static size_t scan_digits(const lexer *l, size_t at, int base, bool leading)
{
    size_t start = at;
    for (;;) {
        bool bar = at < l->n && l->source[at] == '_' && (leading || at > start);
        size_t digit = at + bar;
        if (digit >= l->n || !in_base(l->source[digit], base)) return at;
        at = digit + 1;
    }
}

static size_t scan_exponent(const lexer *l, size_t at)
{
    if (at >= l->n || (l->source[at] | 0x20) != 'e') return at;
    size_t digits = at + 1 + (sign_at(l, at + 1) != 0), end = scan_digits(l, digits, 10, false);
    return end > digits ? end : at;
}

static size_t scan_float(const lexer *l)
{
    size_t whole = scan_digits(l, l->at, 10, false), end = whole;
    if (whole + 1 < l->n && l->source[whole] == '.' && is_digit(l->source[whole + 1])) end = scan_digits(l, whole + 1, 10, false);
    end = scan_exponent(l, end);
    return end > whole && (!l->at || l->source[l->at - 1] != '.') ? end : 0;
}

static size_t scan_integer(const lexer *l, int *base)
{
    static const struct { char letter; int base; } prefixes[] = {{'b', 2}, {'o', 8}, {'x', 16}};
    *base = 10;
    if (l->source[l->at] != '0') return scan_digits(l, l->at, 10, false);
    for (size_t i = 0; i < PN_COUNT(prefixes); i++) {
        if (l->at + 1 >= l->n || (l->source[l->at + 1] | 0x20) != prefixes[i].letter) continue;
        size_t end = scan_digits(l, l->at + 2, prefixes[i].base, true);
        if (end == l->at + 2) continue;
        *base = prefixes[i].base;
        return end;
    }
    size_t at = l->at + 1; /* only zeros may follow a zero */
    while (at < l->n && (l->source[at] == '0' || (l->source[at] == '_' && at + 1 < l->n && l->source[at + 1] == '0'))) at++;
    return at;
}

static size_t copy_digits(const lexer *l, size_t end, char *out)
{
    size_t n = 0;
    for (size_t i = l->at; i < end; i++) {
        if (l->source[i] != '_') out[n++] = l->source[i];
    }
    return n;
}

/* An integer beyond 64 bits keeps its decimal digits: it can be printed, not computed with. */
static bool big_integer(lexer *l, const char *digits, size_t n, int base, token *out)
{
    if (base != 10) return fail_here(l, "an integer literal beyond 64 bits", l->at);
    if (n > 4300) return fail_here(l, "an integer literal of more than 4300 digits", l->at);
    text *t = pn_j_parse_get(l->p, 1, sizeof *t);
    if (!t) return false;
    *t = (text){.data = digits, .n = (uint32_t)n, .chars = (uint32_t)n};
    out->constant = (value){.kind = V_BIG, .as.text = t};
    return true;
}

static bool lex_number(lexer *l, token *out)
{
    size_t end = scan_float(l);
    int base = 10;
    start_token(l, out, end ? T_FLOAT : T_INTEGER);
    if (!end) end = scan_integer(l, &base);
    char *digits = pn_j_parse_get(l->p, end - l->at + 1, 1);
    if (!digits) return false;
    size_t n = copy_digits(l, end, digits);
    out->n = end - l->at;
    bool overflow = false, good = true;
    if (out->type == T_FLOAT) {
        out->constant = v_float(0);
        pn_parse_double(digits, n, &out->constant.as.number);
    } else {
        out->constant = v_int(0);
        pn_j_parse_int(digits, n, base == 10 ? 10 : 0, &out->constant.as.integer, &overflow);
        if (overflow) good = big_integer(l, digits, n, base, out);
    }
    advance(l, end);
    return good;
}

/* ---- strings ---------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (is_digit(c)) return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char *s, size_t n, size_t digits, uint32_t *out)
{
    uint32_t v = 0;
    if (n < digits) return false;
    for (size_t i = 0; i < digits; i++) {
        int h = hex_digit(s[i]);
        if (h < 0) return false;
        v = v << 4 | (uint32_t)h;
    }
    *out = v;
    return v <= 0x10ffff;
}

/* A backslash before a character beyond ASCII: the reference spells that character out first and so escapes its spelling. */
static size_t spell_out(char *out, uint32_t c)
{
    static const char hex[] = "0123456789abcdef";
    size_t digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8, n = 0;
    out[n++] = '\\';
    out[n++] = digits == 2 ? 'x' : digits == 4 ? 'u' : 'U';
    while (digits) out[n++] = hex[c >> (4 * --digits) & 15];
    return n;
}

static size_t octal_escape(const char *s, size_t n, uint32_t *c)
{
    size_t i = 0;
    for (*c = 0; i < 3 && i < n && s[i] >= '0' && s[i] <= '7'; i++) *c = *c * 8 + (uint32_t)(s[i] - '0');
    return i;
}

/* s[0] follows a backslash. Returns the bytes read, 0: a broken escape. Writes at most 10 bytes. */
static size_t unescape(const char *s, size_t n, char *out, size_t *written)
{
    static const char names[] = "\\'\"abfnrtv", values[] = "\\'\"\a\b\f\n\r\t\v";
    static const struct { char letter; size_t digits; } codes[] = {{'x', 2}, {'u', 4}, {'U', 8}};
    uint32_t c;
    const char *simple = *s ? strchr(names, *s) : NULL;
    *written = 0;
    if (simple) {
        out[(*written)++] = values[simple - names];
        return 1;
    }
    if (*s == '\n') return 1;
    for (size_t i = 0; i < PN_COUNT(codes); i++) {
        if (*s != codes[i].letter) continue;
        if (!read_hex(s + 1, n - 1, codes[i].digits, &c)) return 0;
        *written = pn_utf8_encode(out, c);
        return 1 + codes[i].digits;
    }
    size_t octal = octal_escape(s, n, &c);
    if (octal) {
        *written = pn_utf8_encode(out, c);
        return octal;
    }
    if (*s == 'N') return 0; /* names of characters are not kept here */
    size_t length = pn_utf8_decode(s, n, &c);
    if (c >= 0x80) {
        *written = spell_out(out, c);
        return length;
    }
    out[0] = '\\';
    out[1] = *s;
    *written = 2;
    return 1;
}

static size_t string_end(const lexer *l)
{
    char quote = l->source[l->at];
    for (size_t at = l->at + 1; at < l->n; at++) {
        if (l->source[at] == '\\') at++;
        else if (l->source[at] == quote) return at;
    }
    return 0;
}

static bool lex_string(lexer *l, token *out)
{
    size_t end = string_end(l);
    if (!end) return fail_here(l, "a string that never ends", l->at);
    start_token(l, out, T_STRING);
    size_t from = l->at + 1, written = 0;
    char *data = pn_j_parse_get(l->p, (end - from) * 5 + 16, 1); /* an escape of two bytes spells out at most ten */
    if (!data) return false;
    while (from < end) {
        if (l->source[from] != '\\') {
            data[written++] = l->source[from++];
            continue;
        }
        size_t n, read = unescape(l->source + from + 1, end - from - 1, data + written, &n);
        if (!read) return fail_here(l, "a broken escape in a string", from);
        from += 1 + read;
        written += n;
    }
    out->data = data;
    out->n = written;
    advance(l, end + 1);
    return true;
}

/* ---- names and operators ---------------------------------------------------------------------- */

static bool lex_name(lexer *l, token *out)
{
    size_t at = l->at;
    while (at < l->n) {
        uint32_t c;
        size_t length = pn_utf8_decode(l->source + at, l->n - at, &c);
        if (!pn_char_is(c, at == l->at ? PN_CHAR_NAME_START : PN_CHAR_NAME)) break;
        at += length;
    }
    if (at == l->at) return fail_here(l, "an unexpected character", at);
    start_token(l, out, T_NAME);
    out->n = at - l->at;
    out->name = pn_j_intern(l->p, out->data, out->n);
    advance(l, at);
    return out->name != NULL;
}

static const struct { const char *text; token_type type; } operators[] = { /* longest first */
    {"//", T_FLOORDIV}, {"**", T_POW}, {"==", T_EQ}, {"!=", T_NE}, {">=", T_GE}, {"<=", T_LE}, {"+", T_ADD}, {"-", T_SUB}, {"/", T_DIV}, {"*", T_MUL}, {"%", T_MOD}, {"~", T_TILDE},
    {"[", T_LBRACKET}, {"]", T_RBRACKET}, {"(", T_LPAREN}, {")", T_RPAREN}, {"{", T_LBRACE}, {"}", T_RBRACE}, {">", T_GT}, {"<", T_LT}, {"=", T_ASSIGN}, {".", T_DOT}, {":", T_COLON},
    {"|", T_PIPE}, {",", T_COMMA}, {";", T_SEMICOLON},
};

/* Every bracket must close the one opened last: only so is it known which "}}" ends an expression. */
static bool balance(lexer *l, token_type type)
{
    static const struct { token_type open, close; char end; } pairs[] = {{T_LBRACKET, T_RBRACKET, ']'}, {T_LPAREN, T_RPAREN, ')'}, {T_LBRACE, T_RBRACE, '}'}};
    for (size_t i = 0; i < PN_COUNT(pairs); i++) {
        if (type == pairs[i].open) {
            if (l->n_open == sizeof l->open) return fail_here(l, "brackets nested deeper than 200", l->at);
            l->open[l->n_open++] = pairs[i].end;
        }
        if (type == pairs[i].close && (!l->n_open || l->open[--l->n_open] != pairs[i].end)) return fail_here(l, "a closing bracket that closes nothing here", l->at);
    }
    return true;
}

static bool lex_operator(lexer *l, token *out, bool *found)
{
    *found = false;
    for (size_t i = 0; i < PN_COUNT(operators); i++) {
        if (!looking_at(l, l->at, operators[i].text)) continue;
        *found = true;
        start_token(l, out, operators[i].type);
        out->n = strlen(operators[i].text);
        if (!balance(l, operators[i].type)) return false;
        advance(l, l->at + out->n);
        return true;
    }
    return true;
}

static bool lex_expression(lexer *l, token *out)
{
    bool block = l->state == IN_BLOCK, found;
    for (;;) {
        size_t end = l->n_open ? 0 : tag_end(l, l->at, block ? "%}" : "}}", block);
        if (end) {
            start_token(l, out, block ? T_BLOCK_END : T_VARIABLE_END);
            advance(l, l->at + end);
            l->line_starting = l->source[l->at - 1] == '\n';
            l->state = IN_TEXT;
            return true;
        }
        size_t space = skip_space(l, l->at);
        if (space == l->at) break;
        advance(l, space);
    }
    if (l->at >= l->n) {
        start_token(l, out, T_END);
        return true;
    }
    char c = l->source[l->at];
    if (is_digit(c)) return lex_number(l, out);
    if (c == '\'' || c == '"') return lex_string(l, out);
    if (!lex_operator(l, out, &found)) return false;
    return found || lex_name(l, out);
}

bool pn_j_lex(lexer *l, token *out)
{
    if (l->has_pending) {
        *out = l->pending;
        l->has_pending = false;
        return true;
    }
    if (++l->n_tokens > J_MAX_TOKENS) return fail_here(l, "more than 200000 tokens", l->at);
    return l->state == IN_TEXT ? lex_text(l, out) : lex_expression(l, out);
}

const char *pn_j_token_name(const token *t, char *room, size_t n)
{
    switch (t->type) {
    case T_END: return "the end of the template";
    case T_DATA: return "text";
    case T_VARIABLE_BEGIN: return "'{{'";
    case T_VARIABLE_END: return "'}}'";
    case T_BLOCK_BEGIN: return "'{%'";
    case T_BLOCK_END: return "'%}'";
    case T_STRING: return "a string";
    default: break;
    }
    size_t length = t->n < n - 3 ? t->n : n - 3;
    room[0] = room[length + 1] = '\'';
    memcpy(room + 1, t->data, length);
    room[length + 2] = 0;
    return room;
}
