/* input.c - whole files, lists of token ids, text to ids, escapes. */
#include "cli/cli.h"

#include "base/number.h"
#include "engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static bool read_stream(const cli_settings *s, FILE *f, const char *name, cli_text *out)
{
    size_t capacity = 1 << 16, n = 0;
    char *data = malloc(capacity);
    errno = 0;
    for (size_t got = 1; data && got;) {
        if (n + 1 == capacity) {
            char *grown = capacity > SIZE_MAX / 2 ? NULL : realloc(data, capacity * 2);
            if (!grown) break;
            data = grown;
            capacity *= 2;
        }
        got = fread(data + n, 1, capacity - 1 - n, f);
        n += got;
    }
    if (!data || !feof(f)) {
        cli_fail(s, "%s: cannot be read: %s", name, errno ? strerror(errno) : "out of memory");
        free(data);
        return false;
    }
    data[n] = 0;
    *out = (cli_text){data, n};
    return true;
}

bool cli_read_file(const cli_settings *s, const char *path, cli_text *out)
{
    if (!strcmp(path, "-")) return read_stream(s, stdin, "standard input", out);
    FILE *f = fopen(path, "rb");
    if (!f) return cli_fail(s, "%s: cannot be opened: %s", path, strerror(errno)), false;
    const bool ok = read_stream(s, f, path, out);
    fclose(f);
    return ok;
}

static bool is_separator(char c) { return c == ',' || c == ' ' || (c >= '\t' && c <= '\r'); }

/* An id takes at least two bytes, so ids never outnumber bytes. */
static bool parse_ids(const cli_settings *s, const char *path, const cli_text *text, cli_ids *out)
{
    size_t at = 0;
    while (true) {
        while (at < text->n && is_separator(text->data[at])) at++;
        if (at == text->n) return true;
        size_t end = at;
        while (end < text->n && !is_separator(text->data[end])) end++;
        int64_t id;
        if (pn_parse_int64(text->data + at, end - at, &id) != end - at || id < 0 || id > INT32_MAX) {
            const size_t shown = end - at < 40 ? end - at : 40;
            return cli_fail(s, "%s: entry %zu is \"%.*s\", not a token id", path, out->n + 1, (int)shown, text->data + at), false;
        }
        out->data[out->n++] = (pinch_token)id;
        at = end;
    }
}

bool cli_read_ids(const cli_settings *s, const char *path, cli_ids *out)
{
    cli_text text;
    if (!cli_read_file(s, path, &text)) return false;
    *out = (cli_ids){pn_alloc(text.n / 2 + 1, sizeof(pinch_token)), 0};
    const bool ok = out->data ? parse_ids(s, path, &text, out) : (cli_fail(s, "%s: out of memory for its ids", path), false);
    if (!ok) free(out->data);
    free(text.data);
    return ok;
}

bool cli_tokenize_text(const cli_settings *s, const pinch_model *model, const char *text, size_t n, bool add_special, bool parse_special, cli_ids *out)
{
    pinch_error err = {PINCH_OK, ""};
    *out = (cli_ids){NULL, 0};
    if (!pn_text_encode(model, text, n, add_special, parse_special, &out->data, &out->n, &err)) return true;
    cli_error(s, &err);
    return false;
}

/* ---- escapes --------------------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that the escape at text (after the backslash) names; *n: how many bytes it takes, 0: none. */
static char escaped(const char *text, size_t left, size_t *n)
{
    static const char letters[] = "ntr0\\\"'", bytes[] = "\n\t\r\0\\\"'";
    *n = 0;
    if (left >= 3 && text[0] == 'x' && hex_digit(text[1]) >= 0 && hex_digit(text[2]) >= 0) {
        *n = 3;
        return (char)(unsigned char)(hex_digit(text[1]) * 16 + hex_digit(text[2]));
    }
    const char *letter = left ? memchr(letters, text[0], sizeof letters - 1) : NULL;
    if (!letter) return 0;
    *n = 1;
    return bytes[letter - letters];
}

void cli_unescape(char *text, size_t *n)
{
    size_t to = 0;
    for (size_t at = 0; at < *n;) {
        size_t taken = 0;
        if (text[at] == '\\') {
            const char c = escaped(text + at + 1, *n - at - 1, &taken);
            if (taken) text[to++] = c;
        }
        if (!taken) text[to++] = text[at];
        at += 1 + taken;
    }
    text[to] = 0;
    *n = to;
}
