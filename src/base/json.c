/* base/json.c - the strict reader (RFC 8259, UTF-8 only) and the writer.
 *
 * Owns nothing beyond a call: what is read lives in the caller's arena, what is written in the writer. Knows no schema. */
#include "base/json.h"

#include "base/number.h"
#include "base/utf8.h"

#include <stdlib.h>

#define MAX_DEPTH 100
#define MAX_KEYS_TO_SCAN 12 /* larger objects find repeated keys by hashing */

/* Members of the containers that are still open, innermost last; a closed container moves its part into the arena. */
typedef struct pending {
    pn_json *items;
    pn_json_key *keys;
    size_t n, capacity;
} pending;

typedef struct reader {
    const char *text;
    size_t n, at;
    pn_arena *arena;
    pinch_error *err;
    pending open;
} reader;

static pinch_status fail_at(reader *r, size_t at, const char *what)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < r->n; i++) {
        column++;
        if (r->text[i] == '\n') line++, column = 1;
    }
    return pn_fail(r->err, PINCH_ERR_FORMAT, "JSON, line %zu, column %zu: %s", line, column, what);
}

static pinch_status fail_memory(reader *r, uint64_t bytes)
{
    return pn_fail_memory(r->err, "JSON", bytes);
}

static void skip_space(reader *r)
{
    while (r->at < r->n && (r->text[r->at] == ' ' || r->text[r->at] == '\n' || r->text[r->at] == '\t' || r->text[r->at] == '\r')) r->at++;
}

static bool take(reader *r, char c)
{
    if (r->at >= r->n || r->text[r->at] != c) return false;
    r->at++;
    return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex4(const reader *r, size_t at, uint32_t *out)
{
    if (r->n - at < 4) return false;
    uint32_t v = 0;
    for (size_t i = 0; i < 4; i++) {
        int h = hex_value(r->text[at + i]);
        if (h < 0) return false;
        v = v << 4 | (uint32_t)h;
    }
    *out = v;
    return true;
}

/* Behind "\u"; joins a surrogate pair, a lone surrogate is U+FFFD. */
static pinch_status read_unicode_escape(reader *r, uint32_t *out)
{
    uint32_t high, low;
    if (!read_hex4(r, r->at, &high)) return fail_at(r, r->at, "\\u takes four hexadecimal digits");
    r->at += 4;
    *out = high;
    if (high < 0xd800 || high > 0xdbff || r->n - r->at < 6 || r->text[r->at] != '\\' || r->text[r->at + 1] != 'u') return PINCH_OK;
    if (!read_hex4(r, r->at + 2, &low) || low < 0xdc00 || low > 0xdfff) return PINCH_OK;
    *out = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
    r->at += 6;
    return PINCH_OK;
}

static pinch_status read_escape(reader *r, char *out, size_t *written)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char c = r->at < r->n ? r->text[r->at] : 0;
    if (c == 'u') {
        uint32_t point = 0;
        r->at++;
        pinch_status st = read_unicode_escape(r, &point);
        *written = pn_utf8_encode(out, point);
        return st;
    }
    const char *found = c ? strchr(names, c) : NULL;
    if (!found) return fail_at(r, r->at, "an escape that JSON does not have");
    r->at++;
    out[0] = values[found - names];
    *written = 1;
    return PINCH_OK;
}

/* Checks up to the closing quote, which `end` then names: no control characters, UTF-8 only. */
static pinch_status scan_string(reader *r, size_t *end)
{
    size_t i = r->at;
    while (i < r->n && r->text[i] != '"') {
        uint32_t c;
        size_t length = pn_utf8_decode(r->text + i, r->n - i, &c);
        if (c == PN_UTF8_INVALID) return fail_at(r, i, "a string that is not UTF-8");
        if (c < 0x20) return fail_at(r, i, "a control character in a string");
        i += length;
        if (c == '\\' && i < r->n) i++;
    }
    if (i >= r->n) return fail_at(r, r->at - 1, "a string that never ends");
    *end = i;
    return PINCH_OK;
}

/* Behind the opening quote. An escape is never shorter than what it stands for, so the source length suffices. */
static pinch_status read_string(reader *r, const char **text, size_t *n)
{
    size_t end = 0, written = 0;
    pinch_status st = scan_string(r, &end);
    if (st) return st;
    char *out = pn_arena_get(r->arena, (uint64_t)(end - r->at) + 1, 1);
    if (!out) return fail_memory(r, end - r->at);
    while (r->at < end) {
        if (r->text[r->at] != '\\') {
            out[written++] = r->text[r->at++];
            continue;
        }
        size_t length = 0;
        r->at++;
        st = read_escape(r, out + written, &length);
        if (st) return st;
        written += length;
    }
    r->at = end + 1;
    out[written] = 0;
    *text = out;
    *n = written;
    return PINCH_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static size_t count_digits(const reader *r, size_t at)
{
    size_t n = 0;
    while (at + n < r->n && r->text[at + n] >= '0' && r->text[at + n] <= '9') n++;
    return n;
}

static pinch_status read_number(reader *r, pn_json *out)
{
    size_t start = r->at, at = start + (r->text[start] == '-'), whole = count_digits(r, at);
    if (!whole) return fail_at(r, start, "expected a value");
    if (whole > 1 && r->text[at] == '0') return fail_at(r, start, "a number that begins with 0");
    at += whole;
    bool integer = true;
    if (at < r->n && r->text[at] == '.') {
        size_t digits = count_digits(r, at + 1);
        if (!digits) return fail_at(r, at, "a point without digits behind it");
        at += 1 + digits;
        integer = false;
    }
    if (at < r->n && (r->text[at] == 'e' || r->text[at] == 'E')) {
        size_t sign = at + 1 < r->n && (r->text[at + 1] == '+' || r->text[at + 1] == '-'), digits = count_digits(r, at + 1 + sign);
        if (!digits) return fail_at(r, at, "an exponent without digits");
        at += 1 + sign + digits;
        integer = false;
    }
    r->at = at;
    out->kind = PN_JSON_INT;
    if (integer && pn_parse_int64(r->text + start, at - start, &out->integer)) return PINCH_OK;
    out->kind = PN_JSON_FLOAT;
    pn_parse_double(r->text + start, at - start, &out->number);
    return PINCH_OK;
}

/* ---- containers ------------------------------------------------------------------------------ */

static pinch_status push(reader *r, pn_json item, pn_json_key key)
{
    pending *p = &r->open;
    if (p->n == p->capacity) {
        size_t capacity = p->capacity ? p->capacity * 2 : 16;
        pn_json *items = realloc(p->items, capacity * sizeof *items);
        if (items) p->items = items;
        pn_json_key *keys = items ? realloc(p->keys, capacity * sizeof *keys) : NULL;
        if (!keys) return fail_memory(r, capacity * sizeof *items);
        p->keys = keys;
        p->capacity = capacity;
    }
    p->items[p->n] = item;
    p->keys[p->n++] = key;
    return PINCH_OK;
}

static bool same_key(pn_json_key a, pn_json_key b)
{
    return a.n == b.n && !memcmp(a.text, b.text, a.n);
}

static uint64_t hash_key(pn_json_key key)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < key.n; i++) h = (h ^ (unsigned char)key.text[i]) * 1099511628211u;
    return h ^ h >> 29;
}

/* The place of members[i]'s key among the first `kept`, or `kept`. slots: kept positions + 1 by hash, NULL for small objects. */
static size_t find_key(const pn_json_key *keys, size_t kept, pn_json_key key, size_t *slots, size_t mask)
{
    if (!slots) {
        size_t i = 0;
        while (i < kept && !same_key(keys[i], key)) i++;
        return i;
    }
    size_t s = (size_t)hash_key(key) & mask;
    while (slots[s] && !same_key(keys[slots[s] - 1], key)) s = (s + 1) & mask;
    if (slots[s]) return slots[s] - 1;
    slots[s] = kept + 1;
    return kept;
}

/* A repeated key keeps its first place and its last value. */
static pinch_status merge_repeated(reader *r, size_t first)
{
    size_t n = r->open.n - first, kept = 0, mask = 31;
    pn_json *items = r->open.items + first;
    pn_json_key *keys = r->open.keys + first;
    size_t *slots = NULL;
    if (n > MAX_KEYS_TO_SCAN) {
        while (mask < n * 2) mask = mask * 2 + 1;
        slots = pn_alloc_zero(mask + 1, sizeof *slots);
        if (!slots) return fail_memory(r, (mask + 1) * sizeof *slots);
    }
    for (size_t i = 0; i < n; i++) {
        size_t place = find_key(keys, kept, keys[i], slots, mask);
        items[place] = items[i];
        if (place == kept) keys[kept++] = keys[i];
    }
    free(slots);
    r->open.n = first + kept;
    return PINCH_OK;
}

static pinch_status close_container(reader *r, pn_json *out, size_t first)
{
    pinch_status st = out->kind == PN_JSON_OBJECT ? merge_repeated(r, first) : PINCH_OK;
    if (st) return st;
    size_t n = r->open.n - first;
    out->n = n;
    r->open.n = first;
    if (!n) return PINCH_OK;
    out->items = pn_arena_get(r->arena, n, sizeof *out->items);
    out->keys = out->kind == PN_JSON_OBJECT && out->items ? pn_arena_get(r->arena, n, sizeof *out->keys) : NULL;
    if (!out->items || (out->kind == PN_JSON_OBJECT && !out->keys)) return fail_memory(r, n * sizeof *out->items);
    memcpy(out->items, r->open.items + first, n * sizeof *out->items);
    if (out->keys) memcpy(out->keys, r->open.keys + first, n * sizeof *out->keys);
    return PINCH_OK;
}

static pinch_status read_value(reader *r, pn_json *out, int depth);

static pinch_status read_member_key(reader *r, pn_json_key *key)
{
    skip_space(r);
    if (!take(r, '"')) return fail_at(r, r->at, "expected a key in quotes");
    pinch_status st = read_string(r, &key->text, &key->n);
    if (st) return st;
    skip_space(r);
    return take(r, ':') ? PINCH_OK : fail_at(r, r->at, "expected ':' behind the key");
}

static pinch_status read_container(reader *r, pn_json *out, int depth)
{
    bool object = r->text[r->at] == '{';
    char end = object ? '}' : ']';
    size_t first = r->open.n;
    if (depth >= MAX_DEPTH) return fail_at(r, r->at, "nested deeper than 100");
    out->kind = object ? PN_JSON_OBJECT : PN_JSON_ARRAY;
    r->at++;
    skip_space(r);
    if (take(r, end)) return PINCH_OK;
    for (;;) {
        pn_json item;
        pn_json_key key = {"", 0};
        pinch_status st = object ? read_member_key(r, &key) : PINCH_OK;
        if (!st) st = read_value(r, &item, depth + 1);
        if (!st) st = push(r, item, key);
        if (st) return st;
        skip_space(r);
        if (take(r, end)) return close_container(r, out, first);
        if (!take(r, ',')) return fail_at(r, r->at, object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
}

static bool take_word(reader *r, const char *word)
{
    size_t n = strlen(word);
    if (r->n - r->at < n || memcmp(r->text + r->at, word, n)) return false;
    r->at += n;
    return true;
}

static pinch_status read_value(reader *r, pn_json *out, int depth)
{
    memset(out, 0, sizeof *out);
    skip_space(r);
    if (r->at >= r->n) return fail_at(r, r->at, "expected a value, got the end");
    char c = r->text[r->at];
    if (c == '{' || c == '[') return read_container(r, out, depth);
    if (c == '"') {
        r->at++;
        out->kind = PN_JSON_STRING;
        return read_string(r, &out->text, &out->n);
    }
    if (take_word(r, "null")) return PINCH_OK;
    out->kind = PN_JSON_BOOL;
    out->boolean = c == 't';
    if (take_word(r, "true") || take_word(r, "false")) return PINCH_OK;
    out->boolean = false;
    return read_number(r, out);
}

pinch_status pn_json_parse(pn_json *out, pn_arena *arena, const char *text, size_t n, pinch_error *err)
{
    reader r = {.text = text, .n = n, .arena = arena, .err = err};
    pinch_status st = read_value(&r, out, 0);
    if (!st) skip_space(&r);
    if (!st && r.at < n) st = fail_at(&r, r.at, "text behind the value");
    free(r.open.items);
    free(r.open.keys);
    return st;
}

const pn_json *pn_json_member(const pn_json *object, const char *key)
{
    if (!object || object->kind != PN_JSON_OBJECT) return NULL;
    pn_json_key wanted = {key, strlen(key)};
    for (size_t i = 0; i < object->n; i++) {
        if (same_key(object->keys[i], wanted)) return &object->items[i];
    }
    return NULL;
}

/* ---- writer ---------------------------------------------------------------------------------- */

static char *reserve(pn_json_writer *w, size_t more)
{
    if (w->failed) return NULL;
    if (more > SIZE_MAX / 4 - w->n) {
        w->failed = true;
        return NULL;
    }
    if (w->capacity - w->n <= more) { /* one byte is kept for a NUL */
        size_t capacity = w->capacity ? w->capacity : 256;
        while (capacity - w->n <= more) capacity *= 2;
        char *data = realloc(w->data, capacity);
        if (!data) {
            w->failed = true;
            return NULL;
        }
        w->data = data;
        w->capacity = capacity;
    }
    return w->data + w->n;
}

static void put(pn_json_writer *w, const char *bytes, size_t n)
{
    char *out = reserve(w, n);
    if (!out) return;
    memcpy(out, bytes, n);
    w->n += n;
    w->data[w->n] = 0;
}

static void separate(pn_json_writer *w)
{
    if (w->comma) put(w, ",", 1);
    w->comma = true;
}

static void open_level(pn_json_writer *w, const char *bracket)
{
    separate(w);
    put(w, bracket, 1);
    w->comma = false;
    w->depth++;
}

static void close_level(pn_json_writer *w, const char *bracket)
{
    put(w, bracket, 1);
    w->comma = true;
    w->depth--;
}

void pn_json_writer_free(pn_json_writer *w)
{
    free(w->data);
    memset(w, 0, sizeof *w);
}

void pn_json_object(pn_json_writer *w) { open_level(w, "{"); }
void pn_json_object_end(pn_json_writer *w) { close_level(w, "}"); }
void pn_json_array(pn_json_writer *w) { open_level(w, "["); }
void pn_json_array_end(pn_json_writer *w) { close_level(w, "]"); }

static size_t escape_ascii(char *out, char c)
{
    static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t", hex[] = "0123456789abcdef";
    const char *found = c ? strchr(values, c) : NULL;
    if (found) {
        out[0] = '\\';
        out[1] = names[found - values];
        return 2;
    }
    memcpy(out, "\\u00", 4);
    out[4] = hex[c >> 4 & 15];
    out[5] = hex[c & 15];
    return 6;
}

static void put_string(pn_json_writer *w, const char *text, size_t n)
{
    put(w, "\"", 1);
    for (size_t i = 0; i < n;) {
        size_t plain = i;
        uint32_t c = 0;
        size_t length = 0;
        while (plain < n) {
            length = pn_utf8_decode(text + plain, n - plain, &c);
            if (c == PN_UTF8_INVALID || c < 0x20 || c == '"' || c == '\\') break;
            plain += length;
        }
        put(w, text + i, plain - i);
        if (plain == n) break;
        char escaped[6];
        if (c == PN_UTF8_INVALID) put(w, "\xef\xbf\xbd", 3);
        else put(w, escaped, escape_ascii(escaped, text[plain]));
        i = plain + length;
    }
    put(w, "\"", 1);
}

void pn_json_put_key(pn_json_writer *w, const char *key)
{
    separate(w);
    put_string(w, key, strlen(key));
    put(w, ":", 1);
    w->comma = false;
}

void pn_json_string(pn_json_writer *w, const char *text, size_t n)
{
    separate(w);
    put_string(w, text, n);
}

void pn_json_cstring(pn_json_writer *w, const char *text)
{
    pn_json_string(w, text, strlen(text));
}

void pn_json_base64(pn_json_writer *w, const void *bytes, size_t n)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = bytes;
    separate(w);
    put(w, "\"", 1);
    for (size_t i = 0; i < n; i += 3) {
        size_t have = n - i < 3 ? n - i : 3;
        uint32_t group = (uint32_t)in[i] << 16 | (have > 1 ? (uint32_t)in[i + 1] << 8 : 0) | (have > 2 ? in[i + 2] : 0u);
        char out[4];
        for (size_t k = 0; k < 4; k++) out[k] = k <= have ? alphabet[group >> (18 - 6 * k) & 63] : '=';
        put(w, out, 4);
    }
    put(w, "\"", 1);
}

static void put_unsigned(pn_json_writer *w, uint64_t v, bool negative)
{
    char digits[24];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + v % 10);
    while (v /= 10);
    if (negative) digits[--at] = '-';
    separate(w);
    put(w, digits + at, sizeof digits - at);
}

void pn_json_int(pn_json_writer *w, int64_t v)
{
    put_unsigned(w, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

void pn_json_uint(pn_json_writer *w, uint64_t v)
{
    put_unsigned(w, v, false);
}

static void put_word(pn_json_writer *w, const char *word)
{
    separate(w);
    put(w, word, strlen(word));
}

void pn_json_double(pn_json_writer *w, double v)
{
    char text[32];
    pn_format_double(text, v);
    put_word(w, v - v == 0 ? text : "null");
}

void pn_json_float(pn_json_writer *w, float v)
{
    char text[32];
    pn_format_float(text, v);
    put_word(w, v - v == 0 ? text : "null");
}

void pn_json_bool(pn_json_writer *w, bool v) { put_word(w, v ? "true" : "false"); }
void pn_json_null(pn_json_writer *w) { put_word(w, "null"); }
