/* chat/state.c - one rendering's bounds, errors and captured output. */
#include "chat/ast.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool pn_j_fail(render *st, const char *format, ...)
{
    char what[400];
    va_list args;
    if (st->failed) return false;
    st->failed = true;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (st->at) pn_fail(st->err, PINCH_ERR_FORMAT, "chat template, line %u, column %u: %s", (unsigned)st->at->line, (unsigned)st->at->column, what);
    else pn_fail(st->err, PINCH_ERR_FORMAT, "chat template: %s", what);
    return false;
}

bool pn_j_raise(render *st, const text *message)
{
    if (st->failed) return false;
    st->failed = true;
    pn_fail(st->err, PINCH_ERR_FORMAT, "%.*s", (int)(message->n < 4096 ? message->n : 4096), message->data);
    return false;
}

bool pn_j_step(render *st, uint64_t steps)
{
    if (st->failed) return false;
    if (steps > st->steps_left) return pn_j_fail(st, "it takes more than %d steps", J_MAX_STEPS);
    st->steps_left -= steps;
    return true;
}

bool pn_j_work(render *st, uint64_t bytes)
{
    return pn_j_step(st, bytes / J_BYTES_PER_STEP);
}

bool pn_j_float_work(render *st, double v)
{
    double size = v < 0 ? -v : v;
    return pn_j_step(st, size > 1e30 || (size < 1e-30 && size > 0) ? 150 : 4);
}

bool pn_j_enter(render *st)
{
    if (st->depth >= J_MAX_DEPTH) return pn_j_fail(st, "evaluation nested deeper than %d", J_MAX_DEPTH);
    st->depth++;
    return true;
}

void pn_j_leave(render *st)
{
    st->depth--;
}

static bool fail_memory(render *st)
{
    return pn_j_fail(st, "it needs more than %d MiB of memory", J_MAX_MEMORY >> 20);
}

void *pn_j_get(render *st, uint64_t count, uint64_t size)
{
    uint64_t bytes, total;
    void *p = NULL;
    if (pn_mul(count, size, &bytes) && pn_add(bytes, st->buffered + st->arena.used, &total) && total <= J_MAX_MEMORY) p = pn_arena_get(&st->arena, count, size);
    if (!p) fail_memory(st);
    return p;
}

/* ---- buffers ---------------------------------------------------------------------------------- */

static bool grow(render *st, buffer *b, size_t more)
{
    size_t capacity = b->capacity ? b->capacity : 256;
    if (more > J_MAX_TEXT || b->n + more > J_MAX_TEXT) return pn_j_fail(st, "a text of more than %d MiB", J_MAX_TEXT >> 20);
    while (capacity - b->n < more) capacity *= 2;
    if (capacity == b->capacity) return true;
    if (st->arena.used + st->buffered + capacity - b->capacity > J_MAX_MEMORY) return fail_memory(st);
    char *data = realloc(b->data, capacity);
    if (!data) return fail_memory(st);
    st->buffered += capacity - b->capacity;
    b->data = data;
    b->capacity = capacity;
    return true;
}

bool pn_j_put(render *st, buffer *b, const char *data, size_t n)
{
    if (st->failed || !grow(st, b, n) || !pn_j_work(st, n)) return false;
    if (n) memcpy(b->data + b->n, data, n);
    b->n += n;
    return true;
}

bool pn_j_put_cstr(render *st, buffer *b, const char *s)
{
    return pn_j_put(st, b, s, strlen(s));
}

void pn_j_buffer_free(render *st, buffer *b)
{
    free(b->data);
    st->buffered -= b->capacity;
    *b = (buffer){0};
}

bool pn_j_take(render *st, buffer *b, value *out)
{
    bool good = !st->failed && pn_j_str(st, b->data, b->n, out);
    pn_j_buffer_free(st, b);
    return good;
}
