/* chat/template.c - opening, rendering and closing templates. */
#include "base/utf8.h"
#include "chat/ast.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct pn_template {
    template_code code;
};

/* What models without a template get. */
const char pn_template_chatml[] =
    "{%- for message in messages -%}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}";

enum { MAX_TEMPLATE_MEMORY = 64 << 20 };

bool pn_j_parse_fail(parse_state *p, uint32_t line, uint32_t column, const char *format, ...)
{
    char what[400];
    va_list args;
    if (p->failed) return false;
    p->failed = true;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    pn_fail(p->err, PINCH_ERR_FORMAT, "chat template, line %u, column %u: %s", (unsigned)line, (unsigned)column, what);
    return false;
}

void *pn_j_parse_get(parse_state *p, uint64_t count, uint64_t size)
{
    void *memory = pn_arena_get(&p->code->arena, count, size);
    if (memory) return memset(memory, 0, (size_t)(count * size));
    if (!p->failed) pn_fail_memory(p->err, "a chat template", count * size);
    p->failed = true;
    return NULL;
}

/* ---- names ------------------------------------------------------------------------------------ */

static size_t hash_name(const char *data, size_t n)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)data[i]) * 16777619u;
    return h ^ h >> 15;
}

static bool grow_names(parse_state *p)
{
    template_code *c = p->code;
    size_t mask = c->names ? c->names_mask * 2 + 1 : 63;
    name **larger = pn_j_parse_get(p, mask + 1, sizeof *larger);
    if (!larger) return false;
    for (size_t i = 0; c->names && i <= c->names_mask; i++) {
        for (name *n = c->names[i], *next; n; n = next) {
            name **chain = &larger[hash_name(n->text.data, n->text.n) & mask];
            next = n->next;
            n->next = *chain;
            *chain = n;
        }
    }
    c->names = larger;
    c->names_mask = mask;
    return true;
}

name *pn_j_intern(parse_state *p, const char *data, size_t n)
{
    template_code *c = p->code;
    if ((!c->names || c->n_names > c->names_mask) && !grow_names(p)) return NULL;
    name **chain = &c->names[hash_name(data, n) & c->names_mask];
    for (name *old = *chain; old; old = old->next) {
        if (old->text.n == n && !memcmp(old->text.data, data, n)) return old;
    }
    name *made = pn_j_parse_get(p, 1, sizeof *made);
    if (!made) return NULL;
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += ((unsigned char)data[i] & 0xc0) != 0x80;
    *made = (name){.text = {.data = data, .n = (uint32_t)n, .chars = (uint32_t)chars}, .next = *chain, .root_slot = -1};
    *chain = made;
    c->n_names++;
    return made;
}

/* ---- opening ---------------------------------------------------------------------------------- */

static bool check_utf8(parse_state *p, const char *source, size_t n)
{
    uint32_t line = 1, column = 1, c;
    for (size_t at = 0; at < n; column++) {
        size_t length = pn_utf8_decode(source + at, n - at, &c);
        if (c == PN_UTF8_INVALID) return pn_j_parse_fail(p, line, column, "a byte that is no UTF-8");
        if (c == '\n') line++, column = 0;
        at += length;
    }
    return true;
}

/* A copy with LF for every line end, the last one dropped. */
static bool copy_source(parse_state *p, const char *source, size_t n)
{
    template_code *c = p->code;
    c->source = pn_j_parse_get(p, n + 1, 1);
    if (!c->source) return false;
    for (size_t i = 0; i < n; i++) {
        if (source[i] == '\n' && i && source[i - 1] == '\r') continue;
        c->source[c->n++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (c->n && c->source[c->n - 1] == '\n') c->n--;
    return true;
}

pinch_status pn_template_open(pn_template **out, const char *source, size_t n, pinch_error *err)
{
    if (n > J_MAX_SOURCE) return pn_fail(err, PINCH_ERR_FORMAT, "chat template: %zu bytes, at most %d are allowed", n, J_MAX_SOURCE);
    pn_template *t = pn_alloc_zero(1, sizeof *t);
    if (!t) return pn_fail_memory(err, "a chat template", sizeof *t);
    pinch_error own = {.status = PINCH_ERR_FORMAT};
    parse_state p = {.code = &t->code, .err = &own};
    pn_arena_init(&t->code.arena, MAX_TEMPLATE_MEMORY);
    if (check_utf8(&p, source, n) && copy_source(&p, source, n) && pn_j_parse(&p) && pn_j_resolve(&p)) {
        *out = t;
        return PINCH_OK;
    }
    pn_template_close(t);
    if (err) *err = own;
    return own.status;
}

void pn_template_close(pn_template *t)
{
    if (!t) return;
    pn_arena_free(&t->code.arena);
    free(t);
}

/* ---- rendering -------------------------------------------------------------------------------- */

static bool load_variables(render *st, const pn_json *context)
{
    value v;
    if (context->kind != PN_JSON_OBJECT) return pn_j_fail(st, "its variables must be a JSON object");
    if (!pn_j_from_json(st, context, &v)) return false;
    st->variables = v.as.dict;
    return true;
}

pinch_status pn_template_render(const pn_template *t, const pn_json *context, int64_t now, char **out, size_t *n_out, pinch_error *err)
{
    buffer b = {0};
    pinch_error own = {.status = PINCH_ERR_FORMAT};
    render st = {.code = &t->code, .err = &own, .out = &b, .steps_left = J_MAX_STEPS, .now = now, .random = 88172645463325252u};
    pn_arena_init(&st.arena, J_MAX_MEMORY);
    bool good = load_variables(&st, context) && pn_j_run(&st) && pn_j_put(&st, &b, "", 0);
    pn_arena_free(&st.arena);
    if (!good) {
        free(b.data);
        if (err) *err = own;
        return own.status;
    }
    *out = b.data;
    *n_out = b.n;
    return PINCH_OK;
}
