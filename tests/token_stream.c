/* The stream decoder: characters come out whole, every byte comes out, in order, however the text is cut. */
#include "base/utf8.h"
#include "test.h"
#include "token/token.h"

#include <string.h>

/* Whether p[0 .. n) may end inside a character: some bytes after it could complete its end to one that is well-formed. */
static bool ends_inside(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        char longer[8];
        memcpy(longer, p + n - back, back);
        for (int more = 1; back + (size_t)more <= 4; more++) {
            static const unsigned char second[] = {0x80, 0x90, 0xa0, 0xbf}; /* one of them is allowed after every lead byte */
            for (size_t k = 0; k < sizeof second; k++) {
                memset(longer + back, 0x80, (size_t)more);
                longer[back] = (char)second[k];
                uint32_t c;
                if (pn_utf8_decode(longer, back + (size_t)more, &c) == back + (size_t)more && c != PN_UTF8_INVALID) return true;
            }
        }
    }
    return false;
}
/* Whether a character of the text lies on both sides of `at`. */
static bool splits_character(const char *text, size_t n, size_t at)
{
    for (size_t back = 1; back <= 3 && back <= at; back++) {
        uint32_t c;
        if (at < n && pn_utf8_decode(text + at - back, n - at + back, &c) > back && c != PN_UTF8_INVALID) return true;
    }
    return false;
}
static bool cut_at_random(const char *text, size_t n, unsigned long long *r)
{
    pn_stream s = {0};
    char out[512], joined[512];
    size_t total = 0;
    for (size_t at = 0; at < n;) {
        size_t step = (size_t)(pn_random(r) >> 13) % 5;
        if (step > n - at) step = n - at;
        const size_t got = pn_stream_put(&s, text + at, step, out);
        if (got > step + 8) return false;
        memcpy(joined + total, out, got);
        total += got;
        at += step;
        if (splits_character(text, n, total)) return false;
        if (total < at && !ends_inside(text, at)) return false; /* a byte is held without need */
    }
    total += pn_stream_end(&s, joined + total);
    return total == n && memcmp(joined, text, n) == 0 && pn_stream_end(&s, out) == 0;
}

static void examples(void)
{
    static const struct { const char *put[4], *out[4], *end; } cases[] = {
        {{"abc", "", "d"}, {"abc", "", "d"}, ""},
        {{"\xe2\x82", "\xac"}, {"", "\xe2\x82\xac"}, ""},
        {{"x\xf0", "\x9f", "\x98", "\x80y"}, {"x", "", "", "\xf0\x9f\x98\x80y"}, ""},
        {{"\xe2\x82", "a"}, {"", "\xe2\x82" "a"}, ""},
        {{"\x80", "\xff"}, {"\x80", "\xff"}, ""},
        {{"\xc1", "\xf5", "\xed\xa0"}, {"\xc1", "\xf5", "\xed\xa0"}, ""}, /* begin no character that there is */
        {{"a\xe2\x82"}, {"a"}, "\xe2\x82"},
        {{"\xf0\x9f\x98", "\xc3", "\xa9"}, {"", "\xf0\x9f\x98", "\xc3\xa9"}, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pn_stream s = {0};
        char out[64];
        size_t n;
        for (int k = 0; k < 4 && cases[i].put[k]; k++) {
            n = pn_stream_put(&s, cases[i].put[k], strlen(cases[i].put[k]), out);
            CHECK("what comes out of a piece", n == strlen(cases[i].out[k]) && memcmp(out, cases[i].out[k], n) == 0, "case %zu, piece %d: \"%.*s\"", i, k, (int)n, out);
        }
        n = pn_stream_end(&s, out);
        CHECK("what is held at the end", n == strlen(cases[i].end) && memcmp(out, cases[i].end, n) == 0, "case %zu: %zu bytes", i, n);
    }
}

int main(void)
{
    static const char *const atoms[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\x80", "\xe2", "\xf0\x9f", "\xff", "\xed\xa0\x80", "\xc0\x80", "\xf4\x90", "\xe0\x80"};
    unsigned long long r = 7;
    examples();
    for (int i = 0; i < 20000; i++) {
        char text[128];
        size_t n = 0;
        for (size_t k = (size_t)(pn_random(&r) >> 13) % 20; k > 0; k--) {
            const char *atom = atoms[(size_t)(pn_random(&r) >> 13) % (sizeof atoms / sizeof *atoms)];
            memcpy(text + n, atom, strlen(atom));
            n += strlen(atom);
        }
        CHECK("any text, cut anywhere", cut_at_random(text, n, &r), "text %d: \"%.*s\"", i, (int)n, text);
    }
    return pn_done();
}
