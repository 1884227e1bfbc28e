/* token/decode.c - tokens to bytes: one piece, or a whole text as the reference's detokeniser cleans it up. */
#include <stdio.h>
#include <stdlib.h>

#include "token/token_int.h"

/* Writes while there is room, counts always. */
typedef struct sink {
    char *out;
    size_t capacity, n;
} sink;
static void put(sink *s, const char *p, size_t n)
{
    if (s->n < s->capacity) memcpy(s->out + s->n, p, n < s->capacity - s->n ? n : s->capacity - s->n);
    s->n += n;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void put_unescaped(sink *s, pn_str text)
{
    for (size_t i = 0; i < text.n;) {
        const bool space = text.n - i >= PN_ESCAPED_BYTES && memcmp(text.p + i, PN_ESCAPED_SPACE, PN_ESCAPED_BYTES) == 0;
        put(s, space ? " " : text.p + i, 1);
        i += space ? PN_ESCAPED_BYTES : 1;
    }
}
static void put_from_byte_alphabet(sink *s, pn_str text)
{
    for (size_t i = 0; i < text.n;) {
        uint32_t c;
        i += pn_text_decode((const unsigned char *)text.p + i, text.n - i, &c);
        const int byte = pn_char_to_byte(c);
        if (byte >= 0) {
            const char b = (char)byte;
            put(s, &b, 1);
            continue;
        }
        char utf8[4], hex[3];
        const size_t length = pn_text_encode(utf8, c);
        put(s, "[UNK_BYTE_0x", 12);
        for (size_t k = 0; k < length; k++) {
            snprintf(hex, sizeof hex, "%02x", (unsigned)(unsigned char)utf8[k]);
            put(s, hex, 2);
        }
        put(s, text.p, text.n);
        put(s, "]", 1);
    }
}
static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}
/* "<0xXX>"; anything else shows nothing. */
static void put_byte(sink *s, pn_str text)
{
    if (text.n != 6 || memcmp(text.p, "<0x", 3) != 0 || text.p[5] != '>') return;
    const int high = hex_digit(text.p[3]), low = hex_digit(text.p[4]);
    const char byte = (char)(high << 4 | low);
    if (high >= 0 && low >= 0) put(s, &byte, 1);
}
static void put_piece(sink *s, const pn_vocab *v, pinch_token id, bool special)
{
    const pn_str text = pn_vocab_text(v, id);
    const unsigned attributes = id >= 0 && id < pn_vocab_size(v) ? v->attributes[id] : 0;
    if (attributes & (PN_ATTR_CONTROL | PN_ATTR_UNKNOWN)) {
        if (special) put(s, text.p, text.n);
    } else if (attributes & PN_ATTR_USER) {
        put(s, text.p, text.n);
    } else if (attributes & PN_ATTR_NORMAL) {
        if (v->escape_spaces) put_unescaped(s, text);
        else put_from_byte_alphabet(s, text);
    } else if (attributes & PN_ATTR_BYTE) {
        put_byte(s, text);
    }
}

size_t pn_piece(const pn_vocab *v, pinch_token id, bool special, char *out, size_t capacity)
{
    sink s = {out, capacity, 0};
    put_piece(&s, v, id, special);
    return s.n;
}

/* ---- whole texts ----------------------------------------------------------------------------- */

/* The three passes look at bytes as they were before the pass; each returns the length that is left. */
static size_t drop_spaces_before_marks(char *s, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && out && s[i - 1] == ' ' && memchr("?!.,", s[i], 4)) out--;
        s[out++] = s[i];
    }
    return out;
}
static size_t drop_spaces_around_apostrophes(char *s, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        const bool alone = i && i + 1 < n && s[i] == '\'' && s[i - 1] == ' ' && s[i + 1] == ' ';
        if (alone) out--;
        s[out++] = s[i];
        if (alone) s[++i] = '\0'; /* the space is gone, also for the apostrophe that may follow it */
    }
    return out;
}
static bool joins(const char *s, size_t n)
{
    if (n < 2 || s[0] != '\'') return false;
    return s[1] == 's' || s[1] == 'm' || (n > 2 && (s[1] == 'r' || s[1] == 'v') && s[2] == 'e');
}
static size_t drop_spaces_before_contractions(char *s, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        if (i && s[i - 1] == ' ' && joins(s + i, n - i)) out--;
        s[out++] = s[i];
    }
    return out;
}

pinch_status pn_decode(const pn_vocab *v, const pinch_token *ids, size_t n, bool remove_special, bool special, char **out, size_t *n_out, pinch_error *err)
{
    bool strip_space = v->space_prefix;
    if (remove_special && v->special.add_bos && n && ids[0] == v->special.bos) {
        strip_space = false;
        ids++;
        n--;
    }
    if (remove_special && v->special.add_eos && n && ids[n - 1] == v->special.eos) n--;
    sink size = {NULL, 0, 0};
    for (size_t i = 0; i < n; i++) put_piece(&size, v, ids[i], special);
    char *text = pn_alloc(size.n, 1);
    if (!text) return pn_fail_memory(err, "decoding tokens", size.n);
    sink s = {text, size.n, 0};
    for (size_t i = 0; i < n; i++) {
        put_piece(&s, v, ids[i], special);
        if (i > 0 || !strip_space || !s.n || text[0] != ' ') continue;
        memmove(text, text + 1, --s.n);
    }
    if (v->clean_spaces) {
        s.n = drop_spaces_before_marks(text, s.n);
        s.n = drop_spaces_around_apostrophes(text, s.n);
        s.n = drop_spaces_before_contractions(text, s.n);
    }
    *out = text;
    *n_out = s.n;
    return PINCH_OK;
}
