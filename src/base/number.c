/* base/number.c - decimal numbers to binary and back, exactly, whatever the locale.
 *
 * Owns the one exact decimal type of the project: digits in base 10^9 with a point that moves in whole limbs. Every double has a finite
 * expansion of at most 1,074 fraction digits, so shortest, fixed and parsed forms all come from exact digits and no table of powers is needed. */
#include "base/number.h"

#include "base/math.h"

#define BASE 1000000000u
#define BASE_DIGITS 9
#define MAX_LIMBS 288       /* 35 before the point, 120 behind it, and 800 digits of input shifted by 1,074 bits */
#define MAX_INPUT_DIGITS 800 /* 767 decide any double; what follows only matters as "more" */
#define MAX_SHIFT 29        /* BASE << 29 and its carry fit 64 bits */

/* value = 0.L0 L1 L2 ... x BASE^point, with L0 != 0; n == 0 is zero. `more`: non-zero digits follow the last limb. */
typedef struct decimal {
    uint32_t limb[MAX_LIMBS];
    int n, point;
    bool more;
} decimal;

static void trim(decimal *d)
{
    int lead = 0;
    while (lead < d->n && !d->limb[lead]) lead++;
    if (lead) {
        memmove(d->limb, d->limb + lead, (size_t)(d->n - lead) * sizeof d->limb[0]);
        d->n -= lead;
        d->point -= lead;
    }
    while (d->n && !d->limb[d->n - 1]) d->n--;
    if (!d->n) d->point = 0;
}

static void push_front(decimal *d, uint32_t limb)
{
    if (d->n == MAX_LIMBS) d->more |= d->limb[--d->n] != 0;
    memmove(d->limb + 1, d->limb, (size_t)d->n * sizeof d->limb[0]);
    d->limb[0] = limb;
    d->n++;
    d->point++;
}

static void push_back(decimal *d, uint32_t limb)
{
    if (d->n == MAX_LIMBS) {
        d->more |= limb != 0;
        return;
    }
    d->limb[d->n++] = limb;
}

static void shift_left_step(decimal *d, int bits)
{
    uint64_t carry = 0;
    for (int i = d->n - 1; i >= 0; i--) {
        uint64_t t = ((uint64_t)d->limb[i] << bits) + carry;
        d->limb[i] = (uint32_t)(t % BASE);
        carry = t / BASE;
    }
    if (carry) push_front(d, (uint32_t)carry);
    trim(d);
}

static void shift_right_step(decimal *d, int bits)
{
    uint64_t mask = ((uint64_t)1 << bits) - 1, rest = 0;
    for (int i = 0; i < d->n; i++) {
        uint64_t t = rest * BASE + d->limb[i];
        d->limb[i] = (uint32_t)(t >> bits);
        rest = t & mask;
    }
    while (rest) {
        uint64_t t = rest * BASE;
        push_back(d, (uint32_t)(t >> bits));
        rest = t & mask;
    }
    trim(d);
}

/* d x 2^bits */
static void scale(decimal *d, int bits)
{
    while (bits && d->n) {
        int step = bits > MAX_SHIFT ? MAX_SHIFT : bits < -MAX_SHIFT ? -MAX_SHIFT : bits;
        if (step > 0) shift_left_step(d, step);
        else shift_right_step(d, -step);
        bits -= step;
    }
}

static void set_integer(decimal *d, uint64_t v)
{
    d->n = d->point = 0;
    d->more = false;
    if (!v) return;
    uint32_t parts[3] = {(uint32_t)(v / BASE / BASE), (uint32_t)(v / BASE % BASE), (uint32_t)(v % BASE)};
    memcpy(d->limb, parts, sizeof parts);
    d->n = d->point = 3;
    trim(d);
}

static uint64_t integer_part(const decimal *d) /* point <= 2 */
{
    uint64_t v = 0;
    for (int i = 0; i < d->point; i++) v = v * BASE + (i < d->n ? d->limb[i] : 0);
    return v;
}

/* -1, 0, 1: the fraction against one half */
static int fraction_against_half(const decimal *d)
{
    if (d->point < 0) return -1;
    if (d->point >= d->n) return -1;
    uint32_t first = d->limb[d->point];
    if (first != BASE / 2) return first < BASE / 2 ? -1 : 1;
    return d->n > d->point + 1 || d->more ? 1 : 0;
}

/* ---- digits ---------------------------------------------------------------------------------- */

static int limb_digits(uint32_t limb)
{
    int n = 1;
    while (limb >= 10) {
        limb /= 10;
        n++;
    }
    return n;
}

/* digit i counts from the first non-zero one, 0 behind the last */
typedef struct digit_reader {
    const decimal *d;
    int at, left; /* limb and digits left in it */
    uint32_t limb;
} digit_reader;

static digit_reader read_digits(const decimal *d)
{
    digit_reader r = {d, 0, 0, 0};
    if (d->n) {
        r.limb = d->limb[0];
        r.left = limb_digits(r.limb);
    }
    return r;
}

static const uint32_t power10[BASE_DIGITS] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static int next_digit(digit_reader *r)
{
    if (!r->left) {
        if (++r->at >= r->d->n) return 0;
        r->limb = r->d->limb[r->at];
        r->left = BASE_DIGITS;
    }
    uint32_t unit = power10[--r->left];
    int digit = (int)(r->limb / unit);
    r->limb %= unit;
    return digit;
}

static bool more_digits(const digit_reader *r)
{
    return r->limb != 0 || r->at + 1 < r->d->n;
}

/* decimal exponent of the first digit: 1.5 has 0 */
static int exponent10(const decimal *d)
{
    return d->n ? (d->point - 1) * BASE_DIGITS + limb_digits(d->limb[0]) - 1 : 0;
}

typedef struct binary {
    uint64_t mantissa;
    int exponent;  /* value = mantissa x 2^exponent */
    bool negative;
    bool boundary; /* the gap below is half the gap above */
} binary;

static binary split_double(double v)
{
    const uint64_t bits = pn_double_bits(v);
    uint64_t fraction = bits & (((uint64_t)1 << 52) - 1);
    int field = (int)(bits >> 52 & 0x7ff);
    binary b = {field ? fraction | (uint64_t)1 << 52 : fraction, (field ? field : 1) - 1075, bits >> 63 != 0, !fraction && field > 1};
    return b;
}

static binary split_float(float v)
{
    const uint32_t bits = pn_float_bits(v);
    uint32_t fraction = bits & ((1u << 23) - 1);
    int field = (int)(bits >> 23 & 0xff);
    binary b = {field ? fraction | 1u << 23 : fraction, (field ? field : 1) - 150, bits >> 31 != 0, !fraction && field > 1};
    return b;
}

static void set_scaled(decimal *d, uint64_t mantissa, int exponent)
{
    set_integer(d, mantissa);
    scale(d, exponent);
}

/* Adds one in the last of n digits; a carry out of the first leaves "1" and raises the exponent. */
static int round_up(char *digits, int n, int *exponent)
{
    while (n && digits[n - 1] == '9') n--;
    if (!n) {
        digits[0] = '1';
        ++*exponent;
        return 1;
    }
    digits[n - 1]++;
    return n;
}

static int strip_zeros(const char *digits, int n)
{
    while (n > 1 && digits[n - 1] == '0') n--;
    return n;
}

/* A digit reader over `d` that starts at the place of exponent `top` (>= the own one). */
typedef struct aligned_reader {
    digit_reader r;
    int zeros;
} aligned_reader;

static aligned_reader align(const decimal *d, int top)
{
    aligned_reader a = {read_digits(d), d->n ? top - exponent10(d) : 0};
    return a;
}

static int next_aligned(aligned_reader *a)
{
    if (a->zeros) {
        a->zeros--;
        return 0;
    }
    return next_digit(&a->r);
}

static bool more_aligned(const aligned_reader *a)
{
    return a->zeros > 0 || more_digits(&a->r);
}

/* The shortest digits between the midpoints to both neighbours, the nearest of these to the value: digits are taken from the value while
 * neither cutting nor raising the last one stays between the midpoints. An even mantissa owns its midpoints. */
static int shortest(char *digits, int *exponent, binary b)
{
    decimal value, low, high;
    set_scaled(&value, b.mantissa, b.exponent);
    set_scaled(&high, b.mantissa * 2 + 1, b.exponent - 1);
    if (b.boundary) set_scaled(&low, b.mantissa * 4 - 1, b.exponent - 2);
    else set_scaled(&low, b.mantissa * 2 - 1, b.exponent - 1);
    bool inclusive = !(b.mantissa & 1);
    int top = exponent10(&high), n = 0;
    aligned_reader l = align(&low, top), v = align(&value, top), h = align(&high, top);
    *exponent = top;
    int above = 0; /* 0: value and high agree so far; 1: high is one unit above; 2: further */
    bool below = false;
    for (;;) {
        int dl = next_aligned(&l), dv = next_aligned(&v), dh = next_aligned(&h);
        above = above >= 2 ? 2 : above * 10 + dh - dv;
        if (above > 2) above = 2;
        below |= dl != dv;
        bool cut = below || (inclusive && !more_aligned(&l));
        bool raise = above >= 2 || (above == 1 && (inclusive || more_aligned(&h)));
        digits[n++] = (char)('0' + dv);
        if (!cut && !raise) continue;
        if (cut && raise) {
            int next = next_aligned(&v);
            raise = next > 5 || (next == 5 && (more_aligned(&v) || (dv & 1)));
        }
        if (raise) n = round_up(digits, n, exponent);
        break;
    }
    int lead = 0;
    while (lead < n - 1 && digits[lead] == '0') lead++;
    memmove(digits, digits + lead, (size_t)(n - lead));
    *exponent -= lead;
    return strip_zeros(digits, n - lead);
}

/* n digits, rounded half to even; *exponent belongs to the first. n == 0: none, or one that rounding up made; n < 0: none. */
static int rounded(char *digits, int *exponent, const decimal *d, int n)
{
    digit_reader r = read_digits(d);
    *exponent = exponent10(d);
    if (n < 0 || !d->n) return 0;
    for (int i = 0; i < n; i++) digits[i] = (char)('0' + next_digit(&r));
    int next = next_digit(&r);
    bool odd = n && (digits[n - 1] & 1);
    if (next < 5 || (next == 5 && !more_digits(&r) && !odd)) return n;
    int kept = round_up(digits, n, exponent), total = n ? n : 1;
    memset(digits + kept, '0', (size_t)(total - kept));
    return total;
}

/* ---- text ------------------------------------------------------------------------------------ */

static size_t put_text(char *buffer, const char *text)
{
    size_t n = strlen(text);
    memcpy(buffer, text, n + 1);
    return n;
}

static size_t put_exponent(char *out, int exponent)
{
    size_t n = 0;
    unsigned e = (unsigned)(exponent < 0 ? -exponent : exponent);
    out[n++] = 'e';
    out[n++] = exponent < 0 ? '-' : '+';
    if (e >= 100) out[n++] = (char)('0' + e / 100);
    out[n++] = (char)('0' + e / 10 % 10);
    out[n++] = (char)('0' + e % 10);
    return n;
}

/* Python's repr: positional for exponents -4 .. 15, always with a point or an exponent. */
static size_t put_repr(char *out, const char *digits, int n, int exponent)
{
    size_t at = 0;
    if (exponent < -4 || exponent > 15) {
        out[at++] = digits[0];
        if (n > 1) out[at++] = '.';
        memcpy(out + at, digits + 1, (size_t)(n - 1));
        at += (size_t)(n - 1);
        at += put_exponent(out + at, exponent);
    } else {
        int first = exponent < 0 ? exponent : 0, last = n - 1 > exponent + 1 ? n - 1 : exponent + 1;
        for (int i = first; i <= last; i++) {
            out[at++] = i >= 0 && i < n ? digits[i] : '0';
            if (i == (exponent < 0 ? first : exponent)) out[at++] = '.';
        }
    }
    out[at] = 0;
    return at;
}

static size_t put_special(char *buffer, bool negative, bool nan)
{
    return put_text(buffer, nan ? "nan" : negative ? "-inf" : "inf");
}

static size_t format_shortest(char *buffer, binary b)
{
    char digits[40];
    size_t sign = 0;
    if (b.negative) buffer[sign++] = '-';
    if (!b.mantissa) return sign + put_text(buffer + sign, "0.0");
    int exponent, n = shortest(digits, &exponent, b);
    return sign + put_repr(buffer + sign, digits, n, exponent);
}

size_t pn_format_double(char *buffer, double v)
{
    binary b = split_double(v);
    if (b.exponent == 0x7ff - 1075) return put_special(buffer, b.negative, v != v);
    return format_shortest(buffer, b);
}

size_t pn_format_float(char *buffer, float v)
{
    binary b = split_float(v);
    if (b.exponent == 0xff - 150) return put_special(buffer, b.negative, v != v);
    return format_shortest(buffer, b);
}

size_t pn_format_fixed(char *buffer, double v, int decimals)
{
    binary b = split_double(v);
    if (b.exponent == 0x7ff - 1075) return put_special(buffer, b.negative, v != v);
    decimals = decimals < 0 ? 0 : decimals > PN_FIXED_DECIMALS ? PN_FIXED_DECIMALS : decimals;
    char digits[400];
    decimal d;
    set_scaled(&d, b.mantissa, b.exponent);
    int exponent, n = rounded(digits, &exponent, &d, exponent10(&d) + 1 + decimals);
    size_t at = 0;
    if (b.negative) buffer[at++] = '-';
    int first = n && exponent > 0 ? exponent : 0;
    for (int place = first; place >= -decimals; place--) {
        int i = exponent - place;
        buffer[at++] = i >= 0 && i < n ? digits[i] : '0';
        if (!place && decimals) buffer[at++] = '.';
    }
    buffer[at] = 0;
    return at;
}

size_t pn_format_digits(char *digits, double v, int n, int *exponent)
{
    binary b = split_double(v);
    *exponent = 0;
    n = n < 1 ? 1 : n > PN_FIXED_DECIMALS ? PN_FIXED_DECIMALS : n;
    memset(digits, '0', (size_t)n);
    digits[n] = 0;
    if (!b.mantissa || b.exponent == 0x7ff - 1075) return (size_t)n;
    decimal d;
    set_scaled(&d, b.mantissa, b.exponent);
    rounded(digits, exponent, &d, n);
    return (size_t)n;
}

/* ---- parsing --------------------------------------------------------------------------------- */

typedef struct scanned {
    decimal d;
    int64_t exponent; /* of 10, to be applied to d */
    bool negative;
} scanned;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Digits collect as one integer in `d`, the first MAX_INPUT_DIGITS significant ones; `exponent` says where the point was. */
static size_t scan_digits(const char *text, size_t n, scanned *s)
{
    uint32_t limb = 0;
    int in_limb = 0, significant = 0;
    bool seen = false, point = false;
    size_t i = 0;
    for (; i < n; i++) {
        if (text[i] == '.' && !point && i + 1 < n && is_digit(text[i + 1]) && seen) {
            point = true;
            continue;
        }
        if (!is_digit(text[i])) break;
        seen = true;
        uint32_t digit = (uint32_t)(text[i] - '0');
        if (significant || digit) significant += significant <= MAX_INPUT_DIGITS;
        if (significant > MAX_INPUT_DIGITS) {
            s->d.more |= digit != 0;
            s->exponent += !point;
            continue;
        }
        s->exponent -= point;
        if (!significant) continue;
        limb = limb * 10 + digit;
        if (++in_limb == BASE_DIGITS) {
            push_back(&s->d, limb);
            limb = 0;
            in_limb = 0;
        }
    }
    if (in_limb) {
        s->exponent -= BASE_DIGITS - in_limb;
        push_back(&s->d, limb * power10[BASE_DIGITS - in_limb]);
    }
    s->d.point = s->d.n;
    trim(&s->d);
    return seen ? i : 0;
}

static size_t scan_exponent(const char *text, size_t n, int64_t *exponent)
{
    size_t i = 1;
    if (!n || (text[0] != 'e' && text[0] != 'E')) return 0;
    bool negative = i < n && text[i] == '-';
    if (i < n && (text[i] == '-' || text[i] == '+')) i++;
    if (i >= n || !is_digit(text[i])) return 0;
    int64_t e = 0;
    for (; i < n && is_digit(text[i]); i++) {
        if (e < 100000000) e = e * 10 + (text[i] - '0');
    }
    *exponent += negative ? -e : e;
    return i;
}

/* d x 10^exponent: whole limbs move the point, the rest multiplies. */
static void apply_exponent(decimal *d, int64_t exponent)
{
    int64_t limbs = exponent >= 0 ? exponent / BASE_DIGITS : -((-exponent + BASE_DIGITS - 1) / BASE_DIGITS);
    uint32_t factor = power10[exponent - limbs * BASE_DIGITS];
    uint64_t carry = 0;
    for (int i = d->n - 1; i >= 0; i--) {
        uint64_t t = (uint64_t)d->limb[i] * factor + carry;
        d->limb[i] = (uint32_t)(t % BASE);
        carry = t / BASE;
    }
    if (carry) push_front(d, (uint32_t)carry);
    d->point += (int)limbs;
    trim(d);
}

static double make_double(uint64_t mantissa, int exponent, bool negative)
{
    uint64_t field = mantissa >> 52 ? (uint64_t)(exponent + 1075) : 0;
    return pn_bits_double((mantissa & (((uint64_t)1 << 52) - 1)) | field << 52 | (uint64_t)negative << 63);
}

static int bit_length(uint64_t v)
{
    return v ? 64 - __builtin_clzll(v) : 0;
}

static double round_to_double(decimal *d, bool negative)
{
    double infinity = make_double((uint64_t)1 << 52, 0x7ff - 1075, negative);
    int exponent = 0;
    if (!d->n || d->point < -40) return make_double(0, 0, negative);
    if (d->point > 40) return infinity;
    for (; d->point > 2; exponent += MAX_SHIFT) scale(d, -MAX_SHIFT);
    for (; d->point <= 0 || integer_part(d) < (uint64_t)1 << 24; exponent -= MAX_SHIFT) scale(d, MAX_SHIFT);
    int fit = bit_length(integer_part(d)) - 53;
    if (exponent + fit < -1074) fit = -1074 - exponent;
    scale(d, -fit);
    exponent += fit;
    uint64_t mantissa = d->n ? integer_part(d) : 0;
    int half = fraction_against_half(d);
    mantissa += half > 0 || (!half && (mantissa & 1));
    if (mantissa >> 53) {
        mantissa >>= 1;
        exponent++;
    }
    return exponent > 971 ? infinity : make_double(mantissa, exponent, negative);
}

/* At most 15 digits and a power of ten that a double holds exactly: one rounding, so right. */
static bool parse_small(const scanned *s, double *out)
{
    static const double exact[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (s->d.n > s->d.point || s->d.point > 2 || s->d.more || s->exponent < -22 || s->exponent > 22) return false;
    uint64_t integer = integer_part(&s->d);
    if (integer >> 53) return false;
    double v = (double)integer;
    v = s->exponent < 0 ? v / exact[-s->exponent] : v * exact[s->exponent];
    *out = s->negative ? -v : v;
    return true;
}

static bool starts_with(const char *text, size_t n, const char *word)
{
    size_t length = strlen(word);
    if (n < length) return false;
    for (size_t i = 0; i < length; i++) {
        if ((text[i] | 0x20) != word[i]) return false;
    }
    return true;
}

static size_t parse_special(const char *text, size_t n, bool negative, double *out)
{
    double infinity = make_double((uint64_t)1 << 52, 0x7ff - 1075, negative);
    bool nan = starts_with(text, n, "nan");
    if (!nan && !starts_with(text, n, "inf")) return 0;
    *out = nan ? __builtin_nan("") : infinity;
    return !nan && starts_with(text, n, "infinity") ? 8 : 3;
}

size_t pn_parse_double(const char *text, size_t n, double *out)
{
    scanned s;
    s.d.n = s.d.point = 0;
    s.d.more = false;
    s.exponent = 0;
    size_t sign = n && (text[0] == '-' || text[0] == '+');
    s.negative = sign && text[0] == '-';
    size_t read = scan_digits(text + sign, n - sign, &s);
    if (!read) {
        read = parse_special(text + sign, n - sign, s.negative, out);
        return read ? sign + read : 0;
    }
    read += sign;
    read += scan_exponent(text + read, n - read, &s.exponent);
    if (parse_small(&s, out)) return read;
    int64_t bound = (MAX_LIMBS + 100) * BASE_DIGITS;
    s.exponent = s.exponent > bound ? bound : s.exponent < -bound ? -bound : s.exponent;
    apply_exponent(&s.d, s.exponent);
    *out = round_to_double(&s.d, s.negative);
    return read;
}

size_t pn_parse_uint64(const char *text, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;
    for (; i < n && is_digit(text[i]); i++) {
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) || __builtin_add_overflow(v, (uint64_t)(text[i] - '0'), &v)) return 0;
    }
    if (i) *out = v;
    return i;
}

size_t pn_parse_int64(const char *text, size_t n, int64_t *out)
{
    size_t sign = n && (text[0] == '-' || text[0] == '+');
    bool negative = sign && text[0] == '-';
    uint64_t v;
    size_t read = pn_parse_uint64(text + sign, n - sign, &v);
    if (!read || v > (uint64_t)INT64_MAX + negative) return 0;
    *out = negative ? (int64_t)(0 - v) : (int64_t)v;
    return sign + read;
}
