/* chat/format.c - "..." % values and "...".format(values). */
#include "chat/numbers.h"
#include "chat/texts.h"

#include "base/casemap.h"
#include "base/utf8.h"

static bool check_width(render *st, int64_t width)
{
    return (width >= -J_MAX_WIDTH && width <= J_MAX_WIDTH) || pn_j_fail(st, "a width of more than %d", J_MAX_WIDTH);
}

static bool read_number(render *st, const text *t, size_t *at, int64_t *out)
{
    *out = 0;
    for (; *at < t->n && t->data[*at] >= '0' && t->data[*at] <= '9'; ++*at) {
        *out = *out * 10 + (t->data[*at] - '0');
        if (!check_width(st, *out)) return false;
    }
    return true;
}

/* repr with everything beyond ASCII escaped */
static bool put_ascii(render *st, buffer *b, const value *v)
{
    value shown;
    if (!pn_j_repr(st, v, &shown)) return false;
    const text *t = shown.as.text;
    for (size_t at = 0; at < t->n;) {
        static const char hex[] = "0123456789abcdef";
        uint32_t c;
        size_t length = pn_utf8_decode(t->data + at, t->n - at, &c), digits = c < 0x100 ? 2 : c < 0x10000 ? 4 : 8, n = 2;
        char escaped[12] = {'\\', digits == 2 ? 'x' : digits == 4 ? 'u' : 'U'};
        for (size_t k = digits; k > 0; k--) escaped[n++] = hex[c >> (4 * (k - 1)) & 15];
        if (!(c < 0x80 ? pn_j_put(st, b, t->data + at, 1) : pn_j_put(st, b, escaped, n))) return false;
        at += length;
    }
    return true;
}

static bool converted(render *st, const value *v, char how, value *out)
{
    buffer b = {0};
    if (how == 's') return pn_j_to_text(st, v, out);
    bool good = how == 'a' ? put_ascii(st, &b, v) : pn_j_put_repr(st, &b, v);
    return pn_j_take(st, &b, out) && good;
}

/* ---- "%" -------------------------------------------------------------------------------------- */

typedef struct percent {
    const text *t;
    size_t at;
    const value *args;
    size_t next; /* positional ones taken */
    bool marked;
} percent;

static bool is_mapping(const value *v)
{
    return v->kind == V_DICT || v->kind == V_LIST || v->kind == V_UNDEFINED || v->kind == V_RANGE || v->kind == V_BYTES;
}

static bool next_argument(render *st, percent *p, value *out)
{
    size_t n = p->args->kind == V_TUPLE ? p->args->as.list->n : 1;
    if (p->next >= n) return pn_j_fail(st, "not enough arguments for the format string");
    *out = p->args->kind == V_TUPLE ? p->args->as.list->items[p->next] : *p->args;
    p->next++;
    return true;
}

static bool keyed_argument(render *st, percent *p, value *out)
{
    size_t start = ++p->at, depth = 1;
    for (; p->at < p->t->n && depth; p->at++) depth += p->t->data[p->at] == '(' ? 1 : p->t->data[p->at] == ')' ? (size_t)-1 : 0;
    if (depth) return pn_j_fail(st, "an incomplete key in a format string");
    if (p->args->kind != V_DICT) return pn_j_fail(st, "a format string with keys needs a mapping");
    const value *v = pn_j_dict_find(p->args->as.dict, p->t->data + start, p->at - 1 - start);
    if (!v) return pn_j_fail(st, "no value for the key '%.*s'", (int)(p->at - 1 - start), p->t->data + start);
    *out = *v;
    return true;
}

static bool star_or_number(render *st, percent *p, int64_t *out)
{
    value v;
    if (p->at >= p->t->n || p->t->data[p->at] != '*') return read_number(st, p->t, &p->at, out);
    p->at++;
    return next_argument(st, p, &v) && pn_j_want_int(st, &v, "*", out) && check_width(st, *out);
}

static bool read_flags(render *st, percent *p, format_spec *spec)
{
    bool left = false, zero = false;
    for (; p->at < p->t->n; p->at++) {
        char c = p->t->data[p->at];
        if (c == '-') left = true;
        else if (c == '0') zero = true;
        else if (c == '#') spec->alternate = true;
        else if (c == '+') spec->sign = '+';
        else if (c == ' ') spec->sign = spec->sign ? spec->sign : ' ';
        else break;
    }
    if (!star_or_number(st, p, &spec->width)) return false;
    if (spec->width < 0) {
        left = true;
        spec->width = -spec->width;
    }
    spec->align = left ? '<' : zero ? '=' : '>';
    if (zero && !left) spec->fill[0] = '0';
    if (p->at >= p->t->n || p->t->data[p->at] != '.') return true;
    p->at++;
    if (!star_or_number(st, p, &spec->precision)) return false;
    if (spec->precision < 0) spec->precision = 0;
    return true;
}

static bool percent_text(render *st, percent *p, buffer *b, const value *v, format_spec *spec, char type)
{
    value shown;
    bool escape_it = p->marked && !(type == 's' && v->marked);
    if (!converted(st, v, type, &shown)) return false;
    shown.marked = false;
    if (escape_it && !pn_j_escape(st, &shown, &shown)) return false;
    text t = *shown.as.text;
    if (spec->precision >= 0) {
        pn_j_chars(st, shown.as.text);
        t.n = (uint32_t)pn_j_offset(shown.as.text, (size_t)spec->precision);
    }
    if (spec->fill[0] == '0') spec->fill[0] = ' ';
    if (spec->align == '=') spec->align = '>';
    return pn_j_put_padded(st, b, &t, spec, '>');
}

static bool percent_char(render *st, buffer *b, const value *v, format_spec *spec)
{
    char bytes[4];
    text t = {.data = bytes};
    if (v->kind == V_STR && pn_j_chars(st, v->as.text) == 1) t = *v->as.text;
    else if ((v->kind == V_INT || v->kind == V_BOOL) && pn_j_as_int(v) >= 0 && pn_j_as_int(v) <= 0x10ffff) t.n = (uint32_t)pn_utf8_encode(bytes, (uint32_t)pn_j_as_int(v));
    else return pn_j_fail(st, "%%c needs a character");
    return pn_j_put_padded(st, b, &t, spec, '>');
}

/* %d of a float cuts it off. */
static bool to_integer(render *st, const value *v, bool from_float, value *out)
{
    if (v->kind == V_UNDEFINED) return pn_j_undefined_error(st, v);
    if (v->kind == V_INT || v->kind == V_BOOL) return ((*out = v_int(pn_j_as_int(v))), true);
    if (v->kind != V_FLOAT || !from_float) return pn_j_fail(st, "a number is needed here, not a %s", pn_j_type_name(v));
    if (!(v->as.number > -9.2e18 && v->as.number < 9.2e18)) return pn_j_fail(st, "a float that is no 64-bit integer");
    *out = v_int((int64_t)v->as.number);
    return true;
}

static bool percent_number(render *st, buffer *b, const value *v, format_spec *spec)
{
    value number = *v;
    bool integer = strchr("diuoxX", spec->type) != NULL;
    if (integer) {
        if (!to_integer(st, v, strchr("diu", spec->type) != NULL, &number)) return false;
        if (strchr("iu", spec->type)) spec->type = 'd';
        spec->minimum_digits = spec->precision >= 0;
    } else {
        if (v->kind == V_UNDEFINED) return pn_j_undefined_error(st, v);
        if (!pn_j_is_number(v)) return pn_j_fail(st, "a number is needed here, not a %s", pn_j_type_name(v));
        number = v_float(pn_j_as_double(v));
    }
    return pn_j_put_number(st, b, &number, spec);
}

static bool percent_field(render *st, percent *p, buffer *b)
{
    format_spec spec = {.fill = {' '}, .n_fill = 1, .precision = -1};
    value v;
    bool keyed = p->at < p->t->n && p->t->data[p->at] == '(';
    if (p->at < p->t->n && p->t->data[p->at] == '%') return p->at++, pn_j_put(st, b, "%", 1);
    if (keyed && !keyed_argument(st, p, &v)) return false;
    if (!read_flags(st, p, &spec)) return false;
    if (p->at < p->t->n && p->t->data[p->at] && strchr("hlL", p->t->data[p->at])) p->at++;
    if (p->at >= p->t->n) return pn_j_fail(st, "an incomplete format string");
    spec.type = p->t->data[p->at++];
    if (!spec.type || !strchr("sradiuoxXeEfFgGc", spec.type)) return pn_j_fail(st, "an unknown conversion '%%%c'", spec.type);
    if (!keyed && !next_argument(st, p, &v)) return false;
    if (spec.type == 's' || spec.type == 'r' || spec.type == 'a') return percent_text(st, p, b, &v, &spec, spec.type);
    return spec.type == 'c' ? percent_char(st, b, &v, &spec) : percent_number(st, b, &v, &spec);
}

static bool percent_all(render *st, percent *p, buffer *b)
{
    while (p->at < p->t->n) {
        if (!pn_j_step(st, 1)) return false;
        const char *rest = p->t->data + p->at, *sign = memchr(rest, '%', p->t->n - p->at);
        size_t n = sign ? (size_t)(sign - rest) : p->t->n - p->at;
        if (!pn_j_put(st, b, rest, n)) return false;
        p->at += n + (sign != NULL);
        if (sign && !percent_field(st, p, b)) return false;
    }
    size_t given = p->args->kind == V_TUPLE ? p->args->as.list->n : 1;
    if (p->next < given && !is_mapping(p->args)) return pn_j_fail(st, "more arguments than the format string takes");
    return true;
}

bool pn_j_percent(render *st, const value *format, const value *args, value *out)
{
    percent p = {.t = format->as.text, .args = args, .marked = format->marked};
    buffer b = {0};
    bool good = percent_all(st, &p, &b);
    good = pn_j_take(st, &b, out) && good;
    out->marked = p.marked;
    return good;
}

/* ---- format() --------------------------------------------------------------------------------- */

typedef struct formatter {
    const arguments *args;
    int64_t next; /* automatic numbering; -1: numbers are given */
    bool marked;
} formatter;

static bool is_align(char c)
{
    return c == '<' || c == '>' || c == '^' || c == '=';
}

static void read_align(const text *t, size_t *at, format_spec *spec)
{
    uint32_t c;
    if (!t->n) return;
    size_t length = pn_utf8_decode(t->data, t->n, &c);
    if (length < t->n && is_align(t->data[length])) {
        memcpy(spec->fill, t->data, length);
        spec->n_fill = (uint8_t)length;
        spec->align = t->data[length];
        *at = length + 1;
    } else if (is_align(t->data[0])) {
        spec->align = t->data[0];
        *at = 1;
    }
}

static bool take_char(const text *t, size_t *at, char c)
{
    if (*at >= t->n || t->data[*at] != c) return false;
    ++*at;
    return true;
}

static bool parse_spec(render *st, const text *t, bool for_number, format_spec *spec)
{
    size_t at = 0;
    read_align(t, &at, spec);
    if (at < t->n && (t->data[at] == '+' || t->data[at] == '-' || t->data[at] == ' ')) spec->sign = t->data[at++];
    spec->alternate = take_char(t, &at, '#');
    if (take_char(t, &at, '0') && !spec->align) {
        spec->fill[0] = '0';
        spec->n_fill = 1;
        spec->align = for_number ? '=' : 0;
    }
    if (!read_number(st, t, &at, &spec->width)) return false;
    if (take_char(t, &at, ',')) spec->grouping = ',';
    else if (take_char(t, &at, '_')) spec->grouping = '_';
    if (take_char(t, &at, '.')) {
        size_t digits = at;
        if (!read_number(st, t, &at, &spec->precision)) return false;
        if (at == digits) return pn_j_fail(st, "a format without the digits of its precision");
    }
    if (at < t->n) spec->type = t->data[at++];
    return at == t->n || pn_j_fail(st, "an invalid format '%.*s'", (int)(t->n < 60 ? t->n : 60), t->data);
}

static bool format_text(render *st, buffer *b, const value *v, const format_spec *spec)
{
    text t = *v->as.text;
    if ((spec->type && spec->type != 's') || spec->align == '=' || spec->sign || spec->alternate || spec->grouping) return pn_j_fail(st, "a format that a str does not have");
    if (spec->precision >= 0) {
        pn_j_chars(st, v->as.text);
        t.n = (uint32_t)pn_j_offset(v->as.text, (size_t)spec->precision);
    }
    return pn_j_put_padded(st, b, &t, spec, '<');
}

static bool format_number(render *st, buffer *b, const value *v, format_spec *spec)
{
    bool integer = v->kind != V_FLOAT;
    char code[4];
    if (!spec->type && integer && v->kind != V_BOOL && spec->precision < 0) spec->type = 'd';
    if (integer && spec->type == 'c') {
        if (pn_j_as_int(v) < 0 || pn_j_as_int(v) > 0x10ffff) return pn_j_fail(st, "no character has this number");
        text t = {.data = code, .n = (uint32_t)pn_utf8_encode(code, (uint32_t)pn_j_as_int(v))};
        return pn_j_put_padded(st, b, &t, spec, '<');
    }
    bool known = !spec->type || strchr(integer ? "bdoxXneEfFgG%" : "eEfFgG%n", spec->type);
    if (!known) return pn_j_fail(st, "the format '%c' is not for a %s", spec->type, pn_j_type_name(v));
    if (integer && spec->precision >= 0 && (!spec->type || strchr("bdoxXn", spec->type))) return pn_j_fail(st, "an integer has no precision");
    if (!integer && spec->type == 'n') spec->type = 'g';
    return pn_j_put_number(st, b, v, spec);
}

static bool format_value(render *st, buffer *b, const value *v, const text *spec_text)
{
    format_spec spec = {.fill = {' '}, .n_fill = 1, .precision = -1};
    if (!spec_text->n) return pn_j_put_value(st, b, v);
    if (!parse_spec(st, spec_text, pn_j_is_number(v), &spec)) return false;
    if (v->kind == V_STR) return format_text(st, b, v, &spec);
    if (pn_j_is_number(v)) return format_number(st, b, v, &spec);
    return pn_j_fail(st, "a %s has no formats", pn_j_type_name(v));
}

/* The argument that a field names first: a number, a keyword, or nothing for the next one. */
static bool first_argument(render *st, formatter *f, const char *s, size_t n, value *out)
{
    int64_t i = 0;
    bool overflow, number = n > 0 && s[0] >= '0' && s[0] <= '9' && pn_j_parse_int(s, n, 10, &i, &overflow);
    if (!n || number) {
        if ((!n && f->next < 0) || (number && f->next > 0)) return pn_j_fail(st, "automatic and given field numbers in one format");
        if (!n) i = f->next++;
        else f->next = -1;
        if (i < 0 || (uint64_t)i >= f->args->n) return pn_j_fail(st, "no argument %" PRId64 " for the format", i);
        *out = f->args->items[i];
        return true;
    }
    for (size_t k = 0; k < f->args->n_named; k++) {
        if (f->args->names[k]->n != n || memcmp(f->args->names[k]->data, s, n)) continue;
        *out = f->args->named[k];
        return true;
    }
    return pn_j_fail(st, "no argument '%.*s' for the format", (int)(n < 60 ? n : 60), s);
}

static bool field_key(render *st, const char *s, size_t n, value *out)
{
    bool overflow;
    int64_t i;
    if (n && s[0] >= '0' && s[0] <= '9' && pn_j_parse_int(s, n, 10, &i, &overflow)) return ((*out = v_int(i)), true);
    return pn_j_str(st, s, n, out);
}

static bool field_value(render *st, formatter *f, const char *s, size_t n, value *out)
{
    size_t at = 0;
    while (at < n && s[at] != '.' && s[at] != '[') at++;
    if (!first_argument(st, f, s, at, out)) return false;
    while (at < n) {
        bool dot = s[at] == '.';
        size_t start = ++at;
        value key, self = *out;
        while (at < n && (dot ? s[at] != '.' && s[at] != '[' : s[at] != ']')) at++;
        if (at == start || (!dot && at >= n)) return pn_j_fail(st, "an empty attribute in a format");
        if (!(dot ? pn_j_str(st, s + start, at - start, &key) : field_key(st, s + start, at - start, &key))) return false;
        if (!(dot ? pn_j_attribute(st, &self, key.as.text, out) : pn_j_item(st, &self, &key, out))) return false;
        at += !dot;
        if (!dot && at < n && s[at] != '.' && s[at] != '[') return pn_j_fail(st, "only '.' or '[' may follow ']' in a format");
    }
    return true;
}

static bool format_all(render *st, formatter *f, const text *t, buffer *b, int nesting);

/* The end of a field whose '{' is behind us: the matching '}'. */
static bool field_end(render *st, const text *t, size_t at, size_t *end)
{
    size_t depth = 1;
    for (; at < t->n; at++) {
        depth += t->data[at] == '{';
        if (t->data[at] == '}' && !--depth) break;
    }
    *end = at;
    return at < t->n || pn_j_fail(st, "a format field that never ends");
}

static bool put_field(render *st, formatter *f, buffer *b, const value *v, const text *spec)
{
    value shown = *v;
    buffer one = {0};
    if (f->marked && v->marked) {
        if (spec->n) return pn_j_fail(st, "a safe text takes no format");
        return pn_j_put_value(st, b, v);
    }
    if (!f->marked) return format_value(st, b, v, spec);
    bool good = format_value(st, &one, v, spec);
    if (!pn_j_take(st, &one, &shown) || !good || !pn_j_escape(st, &shown, &shown)) return false;
    return pn_j_put_value(st, b, &shown);
}

static bool format_field(render *st, formatter *f, const char *s, size_t n, buffer *b, int nesting)
{
    size_t name_end = 0;
    char conversion = 0;
    value v, spec;
    buffer inner = {0};
    for (bool bracket = false; name_end < n; name_end++) {
        if (s[name_end] == '[') bracket = true;
        if (s[name_end] == ']') bracket = false;
        if (!bracket && (s[name_end] == ':' || s[name_end] == '!')) break;
        if (s[name_end] == '{') return pn_j_fail(st, "'{' in the name of a format field");
    }
    size_t at = name_end;
    if (at < n && s[at] == '!') {
        if (at + 1 >= n || !strchr("sra", s[at + 1]) || (at + 2 < n && s[at + 2] != ':')) return pn_j_fail(st, "an unknown conversion in a format");
        conversion = s[at + 1];
        at += 2;
    }
    at += at < n;
    if (!field_value(st, f, s, name_end, &v) || (conversion && !converted(st, &v, conversion, &v))) return false;
    text raw = {.data = s + at, .n = (uint32_t)(n - at)};
    bool good = format_all(st, f, &raw, &inner, nesting + 1);
    if (!pn_j_take(st, &inner, &spec) || !good) return false;
    return put_field(st, f, b, &v, spec.as.text);
}

static bool format_all(render *st, formatter *f, const text *t, buffer *b, int nesting)
{
    if (!pn_j_work(st, (uint64_t)t->n * 2)) return false;
    if (nesting > 2) return pn_j_fail(st, "formats nested too deeply");
    for (size_t at = 0, plain = 0;; at++) {
        bool brace = at < t->n && (t->data[at] == '{' || t->data[at] == '}');
        if (at < t->n && !brace) continue;
        if (!pn_j_put(st, b, t->data + plain, at - plain)) return false;
        if (at >= t->n) return true;
        plain = at + 1;
        if (at + 1 < t->n && t->data[at + 1] == t->data[at]) { /* a doubled brace stands for itself */
            at++;
            continue;
        }
        if (t->data[at] == '}') return pn_j_fail(st, "a single '}' in a format");
        size_t end;
        if (!field_end(st, t, at + 1, &end) || !format_field(st, f, t->data + at + 1, end - at - 1, b, nesting)) return false;
        at = end;
        plain = end + 1;
    }
}

bool pn_j_format(render *st, const value *format, const arguments *args, value *out)
{
    formatter f = {.args = args, .marked = format->marked};
    buffer b = {0};
    bool good = format_all(st, &f, format->as.text, &b, 0);
    good = pn_j_take(st, &b, out) && good;
    out->marked = f.marked;
    return good;
}
