/* chat/numbers.c - numbers in Python's format mini-language: digits, grouping, sign, padding. Parsing of numbers too. */
#include "chat/numbers.h"

#include "base/casemap.h"
#include "base/number.h"
#include "base/utf8.h"

/* ---- assembling ------------------------------------------------------------------------------- */

typedef struct pieces { /* sign and prefix, digits before the point, the rest */
    char lead[4], whole[400], rest[200];
    size_t n_lead, n_whole, n_rest;
} pieces;

static bool put_times(render *st, buffer *b, const char *data, size_t n, int64_t times)
{
    for (; times > 0; times--) {
        if (!pn_j_put(st, b, data, n)) return false;
    }
    return true;
}

static bool put_grouped(render *st, buffer *b, const pieces *p, size_t zeros, char grouping, size_t group)
{
    size_t n = zeros + p->n_whole;
    for (size_t i = 0; i < n; i++) {
        if (grouping && i && (n - i) % group == 0 && !pn_j_put(st, b, &grouping, 1)) return false;
        if (!pn_j_put(st, b, i < zeros ? "0" : &p->whole[i - zeros], 1)) return false;
    }
    return true;
}

static size_t grouped_length(size_t digits, char grouping, size_t group)
{
    return digits + (grouping && digits ? (digits - 1) / group : 0);
}

static bool put_pieces(render *st, buffer *b, const pieces *p, const format_spec *spec, size_t group)
{
    bool zero_fill = spec->align == '=' && spec->n_fill == 1 && spec->fill[0] == '0';
    size_t fixed = p->n_lead + p->n_rest, zeros = 0, width = spec->width > 0 ? (size_t)spec->width : 0;
    while (zero_fill && fixed + grouped_length(p->n_whole + zeros, spec->grouping, group) < width) zeros++;
    size_t length = fixed + grouped_length(p->n_whole + zeros, spec->grouping, group);
    int64_t missing = length < width ? (int64_t)(width - length) : 0;
    char align = spec->align ? spec->align : '>';
    int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0, inner = align == '=' ? missing : 0;
    return put_times(st, b, spec->fill, spec->n_fill, left) && pn_j_put(st, b, p->lead, p->n_lead) && put_times(st, b, spec->fill, spec->n_fill, inner) &&
           put_grouped(st, b, p, zeros, spec->grouping, group) && pn_j_put(st, b, p->rest, p->n_rest) && put_times(st, b, spec->fill, spec->n_fill, missing - left - inner);
}

bool pn_j_put_padded(render *st, buffer *b, const text *t, const format_spec *spec, char otherwise)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++) n += ((unsigned char)t->data[i] & 0xc0) != 0x80;
    int64_t missing = spec->width > (int64_t)n ? spec->width - (int64_t)n : 0;
    char align = spec->align ? spec->align : otherwise;
    int64_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
    return put_times(st, b, spec->fill, spec->n_fill, left) && pn_j_put(st, b, t->data, t->n) && put_times(st, b, spec->fill, spec->n_fill, missing - left);
}

static void set_sign(pieces *p, bool negative, const format_spec *spec)
{
    if (negative) p->lead[p->n_lead++] = '-';
    else if (spec->sign == '+' || spec->sign == ' ') p->lead[p->n_lead++] = spec->sign;
}

/* ---- integers --------------------------------------------------------------------------------- */

static bool put_integer(render *st, buffer *b, int64_t v, const format_spec *spec)
{
    static const struct { char type; unsigned base; } bases[] = {{'b', 2}, {'o', 8}, {'x', 16}, {'X', 16}};
    pieces p = {.n_lead = 0};
    unsigned base = 10;
    char reversed[64];
    size_t n = 0;
    for (size_t i = 0; i < PN_COUNT(bases); i++) {
        if (spec->type == bases[i].type) base = bases[i].base;
    }
    const char *digits = spec->type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do reversed[n++] = digits[u % base];
    while (u /= base);
    set_sign(&p, v < 0, spec);
    if (spec->alternate && base != 10) {
        p.lead[p.n_lead++] = '0';
        p.lead[p.n_lead++] = spec->type;
    }
    if (spec->minimum_digits && spec->precision > 300) return pn_j_fail(st, "a precision of more than 300 digits");
    while (spec->minimum_digits && p.n_whole + n < (size_t)(spec->precision > 0 ? spec->precision : 0)) p.whole[p.n_whole++] = '0';
    while (n) p.whole[p.n_whole++] = reversed[--n];
    return put_pieces(st, b, &p, spec, base == 10 ? 3 : 4);
}

/* ---- floats ----------------------------------------------------------------------------------- */

static void put_char(pieces *p, char c)
{
    if (p->n_rest < sizeof p->rest) p->rest[p->n_rest++] = c;
}

static void put_exponent(pieces *p, int exponent, bool upper)
{
    unsigned e = (unsigned)(exponent < 0 ? -exponent : exponent);
    put_char(p, upper ? 'E' : 'e');
    put_char(p, exponent < 0 ? '-' : '+');
    if (e >= 100) put_char(p, (char)('0' + e / 100));
    put_char(p, (char)('0' + e / 10 % 10));
    put_char(p, (char)('0' + e % 10));
}

static void scientific(pieces *p, double v, int precision, bool alternate, bool upper)
{
    char digits[PN_FIXED_DECIMALS + 2];
    int exponent;
    pn_format_digits(digits, v, precision + 1, &exponent);
    p->whole[p->n_whole++] = digits[0];
    if (precision || alternate) put_char(p, '.');
    for (int i = 1; i <= precision; i++) put_char(p, digits[i]);
    put_exponent(p, exponent, upper);
}

static void fixed(pieces *p, double v, int precision, bool alternate)
{
    char all[400];
    size_t n = pn_format_fixed(all, v < 0 ? -v : v, precision), at = all[0] == '-';
    while (at < n && all[at] != '.') p->whole[p->n_whole++] = all[at++];
    for (; at < n; at++) put_char(p, all[at]);
    if (!precision && alternate) put_char(p, '.');
}

static void strip_zeros(pieces *p, bool keep_one)
{
    size_t n = p->n_rest;
    while (n > 1 && p->rest[n - 1] == '0' && !(keep_one && n == 2)) n--;
    p->n_rest = n == 1 ? 0 : n;
}

/* 'g' and, with `dot` set, the form without a type: like g, but whole numbers keep ".0". */
static void general(pieces *p, double v, int precision, const format_spec *spec, bool dot)
{
    char digits[PN_FIXED_DECIMALS + 2];
    int exponent;
    if (!precision) precision = 1;
    pn_format_digits(digits, v, precision, &exponent);
    if (exponent >= -4 && exponent < precision - dot) {
        fixed(p, v, precision - 1 - exponent, spec->alternate);
        if (!spec->alternate && p->n_rest) strip_zeros(p, dot);
        if (dot && !p->n_rest) put_char(p, '.'), put_char(p, '0');
        return;
    }
    int kept = precision;
    while (!spec->alternate && kept > 1 && digits[kept - 1] == '0') kept--;
    scientific(p, v, kept - 1, spec->alternate, spec->type == 'G');
}

static void repr_pieces(pieces *p, double v)
{
    char all[32];
    size_t n = pn_format_double(all, v < 0 ? -v : v), at = all[0] == '-';
    while (at < n && all[at] >= '0' && all[at] <= '9') p->whole[p->n_whole++] = all[at++];
    while (at < n) put_char(p, all[at++]);
}

static bool put_float(render *st, buffer *b, double v, const format_spec *spec)
{
    pieces p = {.n_lead = 0};
    bool negative = v < 0 || (v == 0 && 1 / v < 0), upper = spec->type == 'E' || spec->type == 'F' || spec->type == 'G';
    int precision = spec->precision < 0 ? 6 : (int)spec->precision;
    if (!pn_j_float_work(st, v)) return false;
    if (spec->precision > PN_FIXED_DECIMALS) return pn_j_fail(st, "a precision of more than %d digits", PN_FIXED_DECIMALS);
    set_sign(&p, negative, spec);
    if (spec->type == '%') v *= 100;
    if (v - v != 0) {
        memcpy(p.rest, v != v ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf"), 3);
        p.n_rest = 3;
    } else if (spec->type == 'e' || spec->type == 'E') {
        scientific(&p, v, precision < PN_FIXED_DECIMALS ? precision : PN_FIXED_DECIMALS - 1, spec->alternate, upper);
    } else if (spec->type == 'f' || spec->type == 'F' || spec->type == '%') {
        fixed(&p, v, precision, spec->alternate);
    } else if (!spec->type && spec->precision < 0) {
        repr_pieces(&p, v);
    } else {
        general(&p, v, precision, spec, !spec->type);
    }
    if (spec->type == '%') put_char(&p, '%');
    return put_pieces(st, b, &p, spec, 3);
}

bool pn_j_put_number(render *st, buffer *b, const value *v, const format_spec *spec)
{
    if (v->kind != V_FLOAT && (!spec->type || strchr("bdoxXn", spec->type))) return put_integer(st, b, pn_j_as_int(v), spec);
    return put_float(st, b, pn_j_as_double(v), spec);
}

/* ---- parsing ---------------------------------------------------------------------------------- */

static size_t strip_spaces(const char **s, size_t n)
{
    uint32_t c;
    for (size_t length; n; n -= length, *s += length) {
        length = pn_utf8_decode(*s, n, &c);
        if (!pn_char_is(c, PN_CHAR_SPACE)) break;
    }
    while (n) {
        size_t last = n - 1;
        while (last && ((unsigned char)(*s)[last] & 0xc0) == 0x80) last--;
        pn_utf8_decode(*s + last, n - last, &c);
        if (!pn_char_is(c, PN_CHAR_SPACE)) break;
        n = last;
    }
    return n;
}

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'z' ? c - 'a' + 10 : 99;
}

/* "0x" and the like: skipped where the base takes it; base 0 takes the base from it. */
static size_t skip_prefix(const char *s, size_t n, int *base)
{
    static const struct { char letter; int base; } prefixes[] = {{'b', 2}, {'o', 8}, {'x', 16}};
    for (size_t i = 0; n > 2 && s[0] == '0' && i < PN_COUNT(prefixes); i++) {
        if ((s[1] | 0x20) != prefixes[i].letter || (*base && *base != prefixes[i].base)) continue;
        *base = prefixes[i].base;
        return s[2] == '_' ? 3 : 2;
    }
    if (!*base) *base = 10;
    return 0;
}

bool pn_j_parse_int(const char *s, size_t n, int base, int64_t *out, bool *overflow)
{
    n = strip_spaces(&s, n);
    bool negative = n && s[0] == '-', zero_base = !base;
    size_t at = n && (s[0] == '-' || s[0] == '+');
    size_t prefix = skip_prefix(s + at, n - at, &base);
    int64_t v = 0;
    at += prefix;
    bool digit = false, nothing = at >= n, leading_zero = zero_base && !prefix && at < n && s[at] == '0';
    *overflow = false;
    for (; at < n; at++) {
        if (s[at] == '_' && digit && at + 1 < n) {
            digit = false;
            continue;
        }
        int d = digit_of(s[at]);
        if (d >= base) return false;
        digit = true;
        if (__builtin_mul_overflow(v, (int64_t)base, &v) || __builtin_sub_overflow(v, (int64_t)d, &v)) *overflow = true, v = 0;
    }
    if (nothing || !digit || (leading_zero && v)) return false;
    if (!negative && v == INT64_MIN) *overflow = true;
    *out = negative ? v : *overflow ? 0 : -v;
    return true;
}

bool pn_j_parse_float(const char *s, size_t n, double *out)
{
    char plain[512]; /* the parser wants digits on both sides of the point and no underscores */
    size_t m = 0;
    n = strip_spaces(&s, n);
    if (!n || n > sizeof plain / 2) return false;
    for (size_t i = 0; i < n; i++) {
        bool before = i && s[i - 1] >= '0' && s[i - 1] <= '9', behind = i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '9';
        if (s[i] == '_' && before && behind) continue;
        if (s[i] == '.' && !before) plain[m++] = '0';
        plain[m++] = s[i];
        if (s[i] == '.' && !behind) plain[m++] = '0';
        if (s[i] == '.' && !before && !behind) return false;
    }
    return pn_parse_double(plain, m, out) == m;
}
