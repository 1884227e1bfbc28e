/* tests/base_number.c - numbers to text and back against the C library (in its C locale) and fixed vectors. */
#include "base/math.h"
#include "base/number.h"

#include "test.h"

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

static const struct { double v; const char *text; } shortest_cases[] = {
    {0.0, "0.0"}, {-0.0, "-0.0"}, {1.0, "1.0"}, {-1.5, "-1.5"}, {0.1, "0.1"}, {0.1 + 0.2, "0.30000000000000004"}, {1e15, "1000000000000000.0"},
    {1e16, "1e+16"}, {0.0001, "0.0001"}, {0.00001, "1e-05"}, {1.25e-5, "1.25e-05"}, {123456789.123, "123456789.123"}, {1e22, "1e+22"}, {1e23, "1e+23"}, {9007199254740993.0, "9007199254740992.0"},
    {5e-324, "5e-324"}, {2.2250738585072014e-308, "2.2250738585072014e-308"}, {2.2250738585072011e-308, "2.225073858507201e-308"}, {1.7976931348623157e308, "1.7976931348623157e+308"},
    {9.5367431640625e-07, "9.5367431640625e-07"}, {4.35, "4.35"}, {2e-7, "2e-07"}, {99999999999999990.0, "9.999999999999998e+16"}, {9999999999999998.0, "9999999999999998.0"}, {9.999999999999999e22, "1e+23"}, {8.41e21, "8.41e+21"},
    {5.764607523034235e+17, "5.764607523034235e+17"}, {1.152921504606847e+18, "1.152921504606847e+18"}, {__builtin_inf(), "inf"}, {-__builtin_inf(), "-inf"}, {__builtin_nan(""), "nan"},
};

static void check_shortest(void)
{
    char text[32];
    for (size_t i = 0; i < PN_COUNT(shortest_cases); i++) {
        size_t n = pn_format_double(text, shortest_cases[i].v);
        bool ok = strcmp(text, shortest_cases[i].text) == 0 && n == strlen(text);
        CHECK("a double prints as Python prints it", ok, "%.17g gave %s, not %s", shortest_cases[i].v, text, shortest_cases[i].text);
    }
    static const struct { float v; const char *text; } floats[] = {{0.1f, "0.1"}, {16777216.0f, "16777216.0"}, {1e-45f, "1e-45"}, {3.4028235e38f, "3.4028235e+38"}, {0.3f, "0.3"}, {1.17549435e-38f, "1.1754944e-38"}, {8.5f, "8.5"}};
    for (size_t i = 0; i < PN_COUNT(floats); i++) {
        pn_format_float(text, floats[i].v);
        CHECK("a float prints its own shortest form", strcmp(text, floats[i].text) == 0, "%s, not %s", text, floats[i].text);
    }
}

/* Reads back, and no text with one digit fewer does. */
static bool shortest_round_trip(double v, char *text)
{
    size_t n = pn_format_double(text, v);
    double back;
    if (pn_parse_double(text, n, &back) != n || !same(back, v) || !same(strtod(text, NULL), v)) return false;
    int digits = 0, zeros = 0;
    for (const char *c = text; *c && *c != 'e'; c++) {
        if (*c < '0' || *c > '9' || (!digits && *c == '0')) continue;
        digits++;
        zeros = *c == '0' ? zeros + 1 : 0;
    }
    digits -= zeros;
    if (digits < 2) return true;
    char fewer[64];
    snprintf(fewer, sizeof fewer, "%.*e", digits - 2, v);
    return !same(strtod(fewer, NULL), v);
}

static void check_random_doubles(unsigned long long seed)
{
    unsigned long long state = seed;
    int rounds = getenv("PINCH_LONG") ? 2000000 : 60000, bad_trip = 0, bad_fixed = 0, bad_digits = 0;
    double trip = 0, fixed = 0;
    for (int i = 0; i < rounds; i++) {
        unsigned long long bits = pn_random(&state);
        if (i % 4 == 1) bits = (bits & 0x800fffffffffffffull) | (1000 + bits % 46) << 52;
        if (i % 4 == 2) bits &= 0xfff0000000000000ull | (1ull << bits % 52);
        double v = pn_bits_double(bits);
        if (v != v || v - v != 0) continue;
        char text[32], mine[400], theirs[400], digits[40];
        if (!shortest_round_trip(v, text)) bad_trip++, trip = v;
        int places = (int)(pn_random(&state) % 20), exponent;
        pn_format_fixed(mine, v, places);
        snprintf(theirs, sizeof theirs, "%.*f", places, v);
        if (strcmp(mine, theirs)) bad_fixed++, fixed = v;
        pn_format_digits(digits, v, places + 1, &exponent);
        snprintf(theirs, sizeof theirs, "%.*e", places, v < 0 ? -v : v);
        snprintf(mine, sizeof mine, "%c%s%se%+03d", digits[0], places ? "." : "", digits + 1, exponent);
        bad_digits += strcmp(mine, theirs) != 0;
    }
    CHECK("random doubles read back from their shortest text", !bad_trip, "seed %llu: %d wrong, one is %.17g", seed, bad_trip, trip);
    CHECK("fixed point equals the C library's", !bad_fixed, "seed %llu: %d wrong, one is %.17g", seed, bad_fixed, fixed);
    CHECK("significant digits equal the C library's", !bad_digits, "seed %llu: %d wrong", seed, bad_digits);
}

static void check_random_floats(unsigned long long seed)
{
    unsigned long long state = seed;
    int bad = 0, rounds = getenv("PINCH_LONG") ? 1000000 : 60000;
    for (int i = 0; i < rounds; i++) {
        const float v = pn_bits_float((uint32_t)pn_random(&state));
        if (v != v || v - v != 0) continue;
        char text[32], fewer[32];
        pn_format_float(text, v);
        int digits = 1;
        while (snprintf(fewer, sizeof fewer, "%.*e", digits - 1, (double)v), strtof(fewer, NULL) != v) digits++;
        int mine = 0, zeros = 0;
        for (const char *c = text; *c && *c != 'e'; c++) {
            if (*c < '0' || *c > '9' || (!mine && *c == '0')) continue;
            mine++;
            zeros = *c == '0' ? zeros + 1 : 0;
        }
        bad += strtof(text, NULL) != v || (v != 0 && mine - zeros > digits);
    }
    CHECK("random floats read back from their shortest text", !bad, "seed %llu: %d wrong", seed, bad);
}

static void check_parse_text(const char *text)
{
    double mine = -1;
    size_t n = strlen(text), read = pn_parse_double(text, n, &mine);
    CHECK("a decimal parses to the nearest double", read == n && same(mine, strtod(text, NULL)), "%.60s: read %zu of %zu, %.17g, not %.17g", text, read, n, mine, strtod(text, NULL));
}

static void check_parse(unsigned long long seed)
{
    static const char *const cases[] = {
        "0", "-0", "1e999", "-1e999", "1e-999", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072012e-308", "1.7976931348623158e308", "1.7976931348623159e308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880",
        "9007199254740993", "9007199254740993.0000000000000000000000000000000000000001", "6929495644600919.5", "3.518437208883201171875e13", "62.5364939768271845828", "8.10109172351e-10", "1.50000000000000011102230246251565", "00012.5E+0003", "123456789012345678901234567890",
    };
    for (size_t i = 0; i < PN_COUNT(cases); i++) check_parse_text(cases[i]);
    unsigned long long state = seed;
    int bad = 0;
    char text[1200], last[1200] = "";
    for (int i = 0; i < 20000; i++) {
        int n = 0, digits = 1 + (int)(pn_random(&state) % (i % 50 ? 25 : 1000)), point = (int)(pn_random(&state) % (unsigned)(digits + 1));
        for (int k = 0; k < digits; k++) {
            if (k && k == point) text[n++] = '.';
            text[n++] = (char)('0' + pn_random(&state) % 10);
        }
        n += snprintf(text + n, 20, "e%d", (int)(pn_random(&state) % 700) - 350);
        double mine;
        if (pn_parse_double(text, (size_t)n, &mine) != (size_t)n || !same(mine, strtod(text, NULL))) bad++, memcpy(last, text, sizeof last);
    }
    CHECK("random decimals parse to the nearest double", !bad, "seed %llu: %d wrong, one is %.80s", seed, bad, last);
    for (int i = 0; i < 20000; i++) { /* the exact middle between two neighbours, and a hair above it */
        double v = pn_bits_double(pn_random(&state) % 0x7fe0000000000000ull);
        snprintf(text, sizeof text, "%.*e", 40, v);
        double mine;
        size_t n = strlen(text);
        if (pn_parse_double(text, n, &mine) != n || !same(mine, v)) bad++;
    }
    CHECK("long expansions parse back", !bad, "%d wrong", bad);
}

static void check_bounds(void)
{
    double d = 7;
    int64_t i = 7;
    uint64_t u = 7;
    CHECK("no number reads nothing", !pn_parse_double("x", 1, &d) && !pn_parse_double("", 0, &d) && !pn_parse_double("-", 1, &d) && !pn_parse_double(".5", 2, &d), "%g", d);
    CHECK("a point without digits is left", pn_parse_double("5.", 2, &d) == 1 && pn_parse_double("5.e3", 4, &d) == 1 && pn_parse_double("5e", 2, &d) == 1 && pn_parse_double("5e+", 3, &d) == 1, "%g", d);
    CHECK("length bounds the text", pn_parse_double("12345", 2, &d) == 2 && d == 12, "%g", d);
    CHECK("inf and nan in any case", pn_parse_double("-Infinity", 9, &d) == 9 && d < 0 && d - d != 0 && pn_parse_double("NaN", 3, &d) == 3 && d != d, "%g", d);
    CHECK("int64 to its ends", pn_parse_int64("-9223372036854775808", 20, &i) == 20 && i == INT64_MIN && pn_parse_int64("9223372036854775807", 19, &i) == 19 && i == INT64_MAX, "%" PRId64, i);
    CHECK("int64 not beyond", !pn_parse_int64("9223372036854775808", 19, &i) && !pn_parse_int64("-9223372036854775809", 20, &i) && !pn_parse_int64("+", 1, &i), "%" PRId64, i);
    CHECK("uint64 to its end, not beyond", pn_parse_uint64("18446744073709551615", 20, &u) == 20 && u == UINT64_MAX && !pn_parse_uint64("18446744073709551616", 20, &u), "%" PRIu64, u);
}

int main(void)
{
    check_shortest();
    check_random_doubles(20260102);
    check_random_floats(3);
    check_parse(5);
    check_bounds();
    return pn_done();
}
