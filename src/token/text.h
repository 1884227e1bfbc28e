/* token/text.h - bytes of a text as the tokenizers see them: lenient UTF-8, the byte alphabet of BPE files, a hash. Inline, knows no vocabulary. */
#ifndef PN_TOKEN_TEXT_H
#define PN_TOKEN_TEXT_H

#include "base/hash.h"
#include "base/utf8.h"

/* U+2581, which stands for a space in vocabularies that escape spaces. */
#define PN_ESCAPED_SPACE "\xe2\x96\x81"
enum { PN_ESCAPED_BYTES = 3 };

/* Bytes of a character by its first one, as SPM takes it whatever follows. */
static inline size_t pn_lead_bytes(unsigned char lead)
{
    static const uint8_t bytes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    return bytes[lead >> 4];
}
/* The character at s[0], n >= 1, as llama.cpp's BPE reads it: overlong forms and surrogates pass; a byte that begins nothing, or nothing whole, is
 * U+FFFD and 1 byte; a value above U+10FFFF is U+FFFD. Returns its bytes, 1 .. 4. */
static inline size_t pn_text_decode(const unsigned char *s, size_t n, uint32_t *out)
{
    *out = s[0];
    if (s[0] < 0x80) return 1;
    *out = PN_REPLACEMENT;
    if (s[0] < 0xc0 || s[0] > 0xf7) return 1;
    const size_t length = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    if (length > n) return 1;
    uint32_t c = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80) return 1;
        c = c << 6 | (s[i] & 0x3fu);
    }
    if (c <= 0x10ffff) *out = c;
    return length;
}
/* Like pn_utf8_encode, but surrogates stay what they are: they come from pn_text_decode and must look as they did. */
static inline size_t pn_text_encode(char *out, uint32_t c)
{
    if (c < 0xd800 || c > 0xdfff) return pn_utf8_encode(out, c);
    out[0] = (char)0xed;
    out[1] = (char)(0x80 | (c >> 6 & 0x3f));
    out[2] = (char)(0x80 | (c & 0x3f));
    return 3;
}

/* The alphabet of byte-level BPE: printable Latin-1 bytes are themselves, the other 68 are U+0100 .. U+0143 in order. */
static inline uint32_t pn_byte_to_char(unsigned char b)
{
    if (b <= 0x20) return 0x100u + b;
    if (b >= 0x7f && b <= 0xa0) return 0x121u + b - 0x7fu;
    return b == 0xad ? 0x143 : b;
}
/* -1: not in the alphabet. */
static inline int pn_char_to_byte(uint32_t c)
{
    if (c < 0x100) return pn_byte_to_char((unsigned char)c) == c ? (int)c : -1;
    if (c <= 0x120) return (int)(c - 0x100);
    if (c <= 0x142) return (int)(c - 0x121 + 0x7f);
    return c == 0x143 ? 0xad : -1;
}

static inline uint64_t pn_text_hash(const char *p, size_t n)
{
    uint64_t h = n, word = 0;
    uint32_t low, high;
    if (n > 8) {
        for (size_t at = 0; at + 8 < n; at += 8) {
            memcpy(&word, p + at, 8);
            h = pn_hash_step(h, word);
        }
        memcpy(&word, p + n - 8, 8); /* may overlap the word before: every byte is in, and n tells which lengths */
    } else if (n >= 4) {
        memcpy(&low, p, 4);
        memcpy(&high, p + n - 4, 4);
        word = (uint64_t)high << 32 | low;
    } else if (n) {
        word = (uint64_t)(unsigned char)p[0] << 16 | (uint64_t)(unsigned char)p[n / 2] << 8 | (unsigned char)p[n - 1];
    }
    return pn_hash_step(pn_hash_step(h, word), n);
}

#endif
