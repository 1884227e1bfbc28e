/* base/utf8.h - one UTF-8 character at a time. Knows no properties of characters. */
#ifndef PN_UTF8_H
#define PN_UTF8_H

#include "base/base.h"

#define PN_UTF8_INVALID UINT32_MAX
#define PN_REPLACEMENT 0xfffdu

/* The character at bytes[0]; n >= 1. Returns its bytes, 1 .. 4. Bytes that are part of no character (overlong forms, surrogates and what
 * is beyond U+10FFFF included) give PN_UTF8_INVALID and the length of the longest beginning of a character that they could have been. */
static inline size_t pn_utf8_decode(const char *bytes, size_t n, uint32_t *out)
{
    const unsigned char *s = (const unsigned char *)bytes;
    if (s[0] < 0x80) {
        *out = s[0];
        return 1;
    }
    *out = PN_UTF8_INVALID;
    if (s[0] < 0xc2 || s[0] > 0xf4) return 1;
    size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    uint32_t c = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        unsigned low = 0x80, high = 0xbf; /* the second byte rules out overlong forms, surrogates and the end of the range */
        if (i == 1 && s[0] == 0xe0) low = 0xa0;
        if (i == 1 && s[0] == 0xed) high = 0x9f;
        if (i == 1 && s[0] == 0xf0) low = 0x90;
        if (i == 1 && s[0] == 0xf4) high = 0x8f;
        if (i >= n || s[i] < low || s[i] > high) return i;
        c = c << 6 | (s[i] & 0x3fu);
    }
    *out = c;
    return length;
}

/* Writes 1 .. 4 bytes; surrogates and what is beyond U+10FFFF become U+FFFD. */
static inline size_t pn_utf8_encode(char *out, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) c = PN_REPLACEMENT;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)((0xf00u >> length & 0xf0u) | c);
    return length;
}

#endif
