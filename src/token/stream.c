/* token/stream.c - bytes of tokens in, whole UTF-8 characters out. Holds at most the 3 bytes of a character that its last byte is missing of. */
#include "base/utf8.h"
#include "token/token.h"

/* Bytes at the end of p[0 .. n) that begin a character and do not complete it: 0 .. 3. */
static size_t unfinished(const char *p, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char lead = (unsigned char)p[n - back];
        if (lead < 0x80) return 0;
        if (lead < 0xc0) continue;
        uint32_t c;
        const bool beginning = lead >= 0xc2 && lead <= 0xf4;
        return beginning && pn_utf8_decode(p + n - back, back, &c) == back && c == PN_UTF8_INVALID ? back : 0;
    }
    return 0;
}

size_t pn_stream_put(pn_stream *s, const char *bytes, size_t n, char *out)
{
    const size_t held = (size_t)s->n_held;
    memmove(out + held, bytes, n);
    memcpy(out, s->held, held);
    const size_t keep = unfinished(out, held + n);
    memcpy(s->held, out + held + n - keep, keep);
    s->n_held = (int)keep;
    return held + n - keep;
}

size_t pn_stream_end(pn_stream *s, char *out)
{
    const size_t n = (size_t)s->n_held;
    memcpy(out, s->held, n);
    s->n_held = 0;
    return n;
}
