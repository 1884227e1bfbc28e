/* tests/gguf_bytes.h - small GGUF files from recipes, for tests of the reader.
 *
 * A recipe is words: GGUF, u8:N u16:N u32:N u64:N (negative numbers wrap), f32:BITS, s:TEXT (length and bytes), x:TEXT (bytes alone), s*N (length N and
 * N letters), zero:N. */
#ifndef PN_GGUF_BYTES_H
#define PN_GGUF_BYTES_H

#include "gguf/gguf.h"
#include "test.h"

#include <unistd.h>

typedef struct bytes {
    uint8_t *p;
    size_t n;
} bytes;

static void bytes_add(bytes *b, const void *p, size_t n)
{
    b->p = realloc(b->p, b->n + n + 1);
    if (!b->p) exit(1);
    if (n) memcpy(b->p + b->n, p, n);
    b->n += n;
}

static void bytes_number(bytes *b, uint64_t v, size_t n)
{
    uint8_t p[8];
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(v >> 8 * i);
    bytes_add(b, p, n);
}

static void bytes_fill(bytes *b, int c, size_t n)
{
    for (size_t i = 0; i < n; i++) bytes_number(b, (uint64_t)c, 1);
}

static void bytes_word(bytes *b, const char *word)
{
    const char *colon = strpbrk(word, ":*");
    const uint64_t v = colon ? (uint64_t)strtoll(colon + 1, NULL, 0) : 0;
    if (strncmp(word, "s:", 2) == 0 || strncmp(word, "x:", 2) == 0) {
        if (*word == 's') bytes_number(b, strlen(word + 2), 8);
        bytes_add(b, word + 2, strlen(word + 2));
    } else if (strncmp(word, "s*", 2) == 0) {
        bytes_number(b, v, 8);
        bytes_fill(b, 'x', (size_t)v);
    } else if (strncmp(word, "zero:", 5) == 0) {
        bytes_fill(b, 0, (size_t)v);
    } else if (*word == 'u' || *word == 'f') {
        bytes_number(b, v, (size_t)atoi(word + 1) / 8);
    } else {
        bytes_add(b, word, strlen(word));
    }
}

__attribute__((unused)) static bytes bytes_of(const char *recipe)
{
    bytes b = {0};
    char word[256];
    while (*recipe) {
        size_t n = strcspn(recipe, " ");
        snprintf(word, sizeof word, "%.*s", (int)n, recipe);
        if (n) bytes_word(&b, word);
        recipe += n;
        if (*recipe) recipe++;
    }
    return b;
}

/* A file without a name, rewritten for every case. */
__attribute__((unused)) static bool bytes_write(int fd, const bytes *b)
{
    return ftruncate(fd, 0) == 0 && pwrite(fd, b->p, b->n, 0) == (ssize_t)b->n;
}

#endif
