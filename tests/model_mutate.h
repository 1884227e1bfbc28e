/* tests/model_mutate.h - hostile variants of a model file that are still well-formed GGUF: hyper-parameters, lists of layers, shapes, types and names of tensors,
 * alone and together, as a broken converter or an attacker would write them. gguf_mutate.h breaks the bytes.
 *
 * A recipe points into the good file and into its arena, which lives as long as the mutant. */
#ifndef PN_MODEL_MUTATE_H
#define PN_MODEL_MUTATE_H

#include "base/arena.h"
#include "gguf/gguf.h"
#include "hostile_numbers.h"

#include <ctype.h>
#include <stdarg.h>

enum { MOST_ENTRIES = 128, MOST_MATRICES = 512, MOST_DIMS = 5, ARENA_BYTES = 4 << 20, DATA_MORE = 1 << 20 };

typedef struct entry {
    pn_str key;
    uint32_t kind, item; /* item: as kind where it is no array */
    uint64_t count;
    const uint8_t *data;
    size_t bytes;
} entry;

typedef struct matrix {
    pn_str name;
    uint32_t type, n_dims;
    uint64_t ne[MOST_DIMS], offset;
    uint64_t source; /* where its data begins in the good file's */
} matrix;

typedef struct recipe {
    pn_arena arena;
    pn_str arch;
    entry entries[MOST_ENTRIES];
    matrix matrices[MOST_MATRICES];
    size_t n_entries, n_matrices, n_data;
    const uint8_t *data;
} recipe;

/* Keys of all architectures, without their prefixes. */
typedef struct key_pool {
    entry entries[4096];
    size_t n;
    pn_str archs[64];
    size_t n_archs;
} key_pool;

static const size_t kind_bytes[13] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static pn_str str_of(recipe *r, const char *format, ...) PN_PRINTF(2, 3);
static pn_str str_of(recipe *r, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return (pn_str){pn_arena_copy(&r->arena, text, (uint64_t)n), (size_t)n};
}

static bool starts(pn_str s, const char *p, size_t n) { return s.n >= n && !memcmp(s.p, p, n); }
static bool same_str(pn_str a, pn_str b) { return a.n == b.n && !memcmp(a.p, b.p, a.n); }

/* A hyper-parameter: its key has the architecture's prefix. */
static bool is_parameter(const recipe *r, const entry *e) { return starts(e->key, r->arch.p, r->arch.n) && e->key.n > r->arch.n + 1 && e->key.p[r->arch.n] == '.'; }
static bool is_integer(uint32_t kind) { return kind != PN_GGUF_F32 && kind != PN_GGUF_F64 && kind != PN_GGUF_STRING && kind != PN_GGUF_ARRAY; }

static entry entry_of(const pn_gguf_value *v) { return (entry){v->key, (uint32_t)v->kind, (uint32_t)v->item, v->count, v->data, (size_t)v->bytes}; }

static void recipe_fill(recipe *r, const pn_gguf *g, const uint8_t *data, size_t n_data, pn_str arch)
{
    pn_arena_init(&r->arena, ARENA_BYTES);
    r->arch = arch;
    r->data = data;
    r->n_data = n_data;
    r->n_entries = r->n_matrices = 0;
    for (size_t i = 0; i < pn_gguf_n_values(g) && i < MOST_ENTRIES - 16; i++) r->entries[r->n_entries++] = entry_of(pn_gguf_value_at(g, i));
    const uint64_t base = pn_gguf_n_tensors(g) ? pn_gguf_tensor_at(g, 0)->offset : 0;
    for (size_t i = 0; i < pn_gguf_n_tensors(g) && i < MOST_MATRICES - 16; i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        matrix *m = &r->matrices[r->n_matrices++];
        *m = (matrix){.name = t->name, .type = (uint32_t)t->type, .n_dims = (uint32_t)t->n_dims, .offset = t->offset - base, .source = t->offset - base};
        for (int d = 0; d < t->n_dims; d++) m->ne[d] = (uint64_t)t->ne[d];
    }
}

/* ---- numbers in entries ------------------------------------------------------------------------------------------ */

static uint64_t get_number(const uint8_t *p, size_t n)
{
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) v |= (uint64_t)p[i] << 8 * i;
    return v;
}

static void put_number(uint8_t *p, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) p[i] = (uint8_t)(v >> 8 * i);
}

/* Data of its own for `count` items, what stood there before and zeros. */
static uint8_t *own(recipe *r, entry *e, uint64_t count)
{
    const size_t bytes = (size_t)count * kind_bytes[e->item];
    uint8_t *p = pn_arena_get(&r->arena, bytes + 1, 1);
    if (!p) exit(1);
    memset(p, 0, bytes + 1);
    memcpy(p, e->data, e->bytes < bytes ? e->bytes : bytes);
    e->data = p;
    e->bytes = bytes;
    e->count = count;
    return p;
}

/* Mostly near what stood there: that passes bounds and must be consistent with the rest. */
static uint64_t near_number(unsigned long long *seed, uint64_t old)
{
    const uint64_t roll = pn_random(seed);
    if (roll % 3 == 0) return hostile_number(seed, old);
    const uint64_t small[] = {old + 1, old - 1, old * 2, old / 2, old / 4, old + 16, 0, 1, 2, (roll >> 8) % 9, (roll >> 8) % 65};
    return small[(roll >> 32) % PN_COUNT(small)];
}

static void change_item(recipe *r, entry *e, uint64_t i, unsigned long long *seed)
{
    const size_t n = kind_bytes[e->item];
    uint8_t *p = own(r, e, e->count) + i * n;
    const bool real = e->item == PN_GGUF_F32 || e->item == PN_GGUF_F64;
    put_number(p, e->item == PN_GGUF_BOOL ? !*p : real ? hostile_float(seed, n) : near_number(seed, get_number(p, n)), n);
}

static void set_string(recipe *r, entry *e, const char *text)
{
    const size_t n = strlen(text);
    uint8_t *p = pn_arena_get(&r->arena, n + 8, 1);
    if (!p) exit(1);
    put_number(p, n, 8);
    memcpy(p + 8, text, n);
    *e = (entry){e->key, PN_GGUF_STRING, PN_GGUF_STRING, 1, p, n + 8};
}

/* A hyper-parameter of the file. */
static entry *some_parameter(recipe *r, unsigned long long *seed)
{
    size_t n = 0, chosen = 0;
    for (size_t i = 0; i < r->n_entries; i++)
        if (is_parameter(r, &r->entries[i]) && pn_random(seed) % ++n == 0) chosen = i;
    return n ? &r->entries[chosen] : NULL;
}

static entry *find_parameter(recipe *r, const char *name)
{
    for (size_t i = 0; i < r->n_entries; i++) {
        entry *e = &r->entries[i];
        if (is_parameter(r, e) && e->key.n == r->arch.n + 1 + strlen(name) && !memcmp(e->key.p + r->arch.n + 1, name, strlen(name))) return e;
    }
    return NULL;
}

/* ---- changes of metadata --------------------------------------------------------------------------------------------- */

typedef void change_fn(recipe *r, const key_pool *pool, unsigned long long *seed);

static void change_value(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    static const char *const words[] = {"none", "linear", "yarn", "longrope", "", "su", "llama3"};
    entry *e = some_parameter(r, seed);
    (void)pool;
    if (!e || !e->count) return;
    if (e->item == PN_GGUF_STRING) set_string(r, e, words[pn_random(seed) % PN_COUNT(words)]);
    else change_item(r, e, pn_random(seed) % e->count, seed);
}

/* A list gets shorter, longer, empty, or one number; a number becomes a list, one item of it another. */
static void change_list(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    const entry *blocks = find_parameter(r, "block_count");
    entry *e = some_parameter(r, seed);
    (void)pool;
    if (!e || e->item == PN_GGUF_STRING || !blocks || blocks->kind == PN_GGUF_ARRAY) return;
    const uint64_t layers = get_number(blocks->data, kind_bytes[blocks->item]) % 600, counts[] = {0, 1, e->count + 1, e->count - 1, 2 * e->count, layers, layers + 1, 70000};
    const uint64_t count = counts[pn_random(seed) % PN_COUNT(counts)] % 100000;
    if (e->kind == PN_GGUF_ARRAY && pn_random(seed) % 4 == 0 && e->count) {
        own(r, e, 1);
        e->kind = e->item;
        return;
    }
    const uint64_t had = e->count;
    const size_t n = kind_bytes[e->item];
    uint8_t *p = own(r, e, e->kind == PN_GGUF_ARRAY ? count : layers);
    for (uint64_t i = had; had && i < e->count; i++) memcpy(p + i * n, p, n);
    e->kind = PN_GGUF_ARRAY;
    if (e->count && pn_random(seed) % 2) change_item(r, e, pn_random(seed) % e->count, seed);
}

/* The same number as another kind, which may not hold it. */
static void change_kind(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    entry *e = some_parameter(r, seed);
    (void)pool;
    if (!e || e->item == PN_GGUF_STRING) return;
    const uint64_t old = e->count ? get_number(e->data, kind_bytes[e->item]) : 0;
    const uint32_t kinds[] = {PN_GGUF_U8, PN_GGUF_I8, PN_GGUF_U32, PN_GGUF_I32, PN_GGUF_U64, PN_GGUF_I64, PN_GGUF_F32, PN_GGUF_F64, PN_GGUF_BOOL, PN_GGUF_STRING};
    const uint32_t kind = kinds[pn_random(seed) % PN_COUNT(kinds)];
    const bool list = e->kind == PN_GGUF_ARRAY;
    const uint64_t count = e->count;
    if (kind == PN_GGUF_STRING) {
        set_string(r, e, "8");
        return;
    }
    *e = (entry){e->key, list ? PN_GGUF_ARRAY : kind, kind, 0, (const uint8_t *)"", 0};
    uint8_t *p = own(r, e, count);
    for (uint64_t i = 0; i < count; i++) put_number(p + i * kind_bytes[kind], kind == PN_GGUF_F32 ? hostile_float(seed, 4) : old, kind_bytes[kind]);
}

static void remove_value(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    entry *e = some_parameter(r, seed);
    (void)pool;
    if (e) *e = r->entries[--r->n_entries];
}

/* Two hyper-parameters change places. */
static void swap_values(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    entry *a = some_parameter(r, seed), *b = some_parameter(r, seed);
    (void)pool;
    if (!a || !b) return;
    const pn_str key = a->key;
    a->key = b->key;
    b->key = key;
}

/* A key that some architecture knows, as it is there or with another number. */
static void add_value(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    if (r->n_entries == MOST_ENTRIES || !pool->n) return;
    entry e = pool->entries[pn_random(seed) % pool->n];
    char name[128];
    snprintf(name, sizeof name, "%.*s", (int)e.key.n, e.key.p);
    entry *old = find_parameter(r, name);
    e.key = str_of(r, "%.*s.%s", (int)r->arch.n, r->arch.p, name);
    if (e.item != PN_GGUF_STRING && e.count && pn_random(seed) % 2) change_item(r, &e, pn_random(seed) % e.count, seed);
    *(old ? old : &r->entries[r->n_entries++]) = e;
}

/* The file calls itself one of another architecture, with all its keys. */
static void change_arch(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    if (!pool->n_archs) return;
    const pn_str to = pool->archs[pn_random(seed) % pool->n_archs];
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)to.n, to.p);
    for (size_t i = 0; i < r->n_entries; i++) {
        entry *e = &r->entries[i];
        if (is_parameter(r, e)) e->key = str_of(r, "%s%.*s", text, (int)(e->key.n - r->arch.n), e->key.p + r->arch.n);
        else if (e->key.n == 20 && starts(e->key, "general.architecture", 20)) set_string(r, e, text);
    }
    r->arch = to;
}

/* ---- changes of tensors -------------------------------------------------------------------------------------------------- */

static matrix *some_matrix(recipe *r, unsigned long long *seed) { return r->n_matrices ? &r->matrices[pn_random(seed) % r->n_matrices] : NULL; }

static void change_shape(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    matrix *m = some_matrix(r, seed);
    (void)pool;
    if (!m || !m->n_dims) return;
    const uint64_t roll = pn_random(seed), d = (roll >> 8) % m->n_dims;
    const uint64_t old = m->ne[d];
    if (roll % 4 == 0 && m->n_dims > 1) {
        m->ne[d] = m->ne[0];
        m->ne[0] = old;
    } else if (roll % 4 == 1) {
        m->n_dims = (uint32_t)((roll >> 16) % (MOST_DIMS + 1));
        for (uint32_t i = 0; i < m->n_dims; i++) m->ne[i] = m->ne[i] ? m->ne[i] : 1;
    } else {
        m->ne[d] = near_number(seed, old);
    }
}

static void change_type(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    matrix *m = some_matrix(r, seed);
    (void)pool;
    if (m) m->type = (uint32_t)(pn_random(seed) % 45);
}

static void change_offset(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    matrix *m = some_matrix(r, seed);
    (void)pool;
    if (m) m->offset = pn_random(seed) % 3 ? some_matrix(r, seed)->offset : near_number(seed, m->offset);
}

/* A tensor goes, comes twice, changes places with another, or moves to another layer. */
static void change_name(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    const uint64_t roll = pn_random(seed);
    matrix *m = some_matrix(r, seed), *other = some_matrix(r, seed);
    (void)pool;
    if (!m) return;
    const pn_str name = m->name;
    if (roll % 4 == 0) {
        *m = r->matrices[--r->n_matrices];
    } else if (roll % 4 == 1) {
        m->name = other->name;
        other->name = name;
    } else if (roll % 4 == 2 && r->n_matrices < MOST_MATRICES) {
        r->matrices[r->n_matrices] = *other;
        r->matrices[r->n_matrices++].name = name;
    } else if (starts(name, "blk.", 4) && name.n > 5 && isdigit((unsigned char)name.p[4])) {
        m->name = str_of(r, "blk.%d%.*s", (int)((roll >> 8) % 12), (int)(name.n - 5), name.p + 5);
    }
}

/* ---- changes of both, which belong together -------------------------------------------------------------------------------- */

/* A number of the metadata, and with it every dimension (or nearly) that is as large. */
static void change_size(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    entry *e = some_parameter(r, seed);
    (void)pool;
    if (!e || e->kind == PN_GGUF_ARRAY || !is_integer(e->kind) || e->kind == PN_GGUF_BOOL) return;
    const size_t n = kind_bytes[e->item];
    const uint64_t old = get_number(e->data, n), sizes[] = {old / 2, old - 1, old + 1, old / 4, old - 16, old * 2, 1}, now = sizes[pn_random(seed) % PN_COUNT(sizes)];
    if (old < 2 || old > 4096) return;
    put_number(own(r, e, 1), now, n);
    const bool all = pn_random(seed) % 4 != 0;
    for (size_t i = 0; i < r->n_matrices; i++)
        for (uint32_t d = 0; d < r->matrices[i].n_dims; d++)
            if (r->matrices[i].ne[d] == old && (all || pn_random(seed) % 8)) r->matrices[i].ne[d] = now;
}

/* Fewer or more layers, and lists that are as long as that. */
static void change_layers(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    entry *e = find_parameter(r, "block_count");
    (void)pool;
    if (!e || !is_integer(e->kind)) return;
    const size_t n = kind_bytes[e->item];
    const uint64_t old = get_number(e->data, n), now = (old + pn_random(seed) % 7 - 3) % 600;
    put_number(own(r, e, 1), now, n);
    for (size_t i = 0; i < r->n_entries; i++) {
        entry *list = &r->entries[i];
        if (!is_parameter(r, list) || list->kind != PN_GGUF_ARRAY || list->item == PN_GGUF_STRING || list->count != old) continue;
        uint8_t *p = own(r, list, now);
        for (uint64_t k = old; k < now; k++) memcpy(p + k * kind_bytes[list->item], p + (k - old) * kind_bytes[list->item], kind_bytes[list->item]);
    }
}

/* ---- the mutant ------------------------------------------------------------------------------------------------------------------ */

static change_fn *const changes[] = {change_value, change_value, change_value, change_value, change_list, change_list, change_kind, remove_value, swap_values, add_value, add_value, change_arch,
                                     change_shape, change_shape, change_type, change_offset, change_name, change_size, change_size, change_layers};

static void recipe_change(recipe *r, const key_pool *pool, unsigned long long *seed)
{
    static const int how_many[] = {1, 1, 1, 2, 2, 3, 5};
    for (int n = how_many[pn_random(seed) % PN_COUNT(how_many)]; n > 0; n--) changes[pn_random(seed) % PN_COUNT(changes)](r, pool, seed);
}

typedef struct sink {
    uint8_t *p;
    size_t n, capacity;
} sink;

static void sink_add(sink *s, const void *p, size_t n)
{
    if (n > s->capacity - s->n) exit(1);
    if (n) memcpy(s->p + s->n, p, n);
    s->n += n;
}

static void sink_number(sink *s, uint64_t v, size_t n)
{
    uint8_t p[8];
    put_number(p, v, n);
    sink_add(s, p, n);
}

static void sink_string(sink *s, pn_str text)
{
    sink_number(s, text.n, 8);
    sink_add(s, text.p, text.n);
}

/* 0: not to be known, or beyond what a mutant may hold. */
static uint64_t matrix_bytes(const matrix *m)
{
    const pn_type_info *type = pn_type_get(m->type);
    uint64_t n = 1;
    for (uint32_t d = 0; d < m->n_dims; d++) {
        if (m->ne[d] == 0 || m->ne[d] > DATA_MORE || n > DATA_MORE) return 0;
        n *= m->ne[d];
    }
    return type ? n / type->block * type->bytes : 0;
}

/* Offsets one after the other, as a converter writes them, so that more than the file's layout is looked at. False: too much, and nothing is changed. */
static bool recipe_lay_out(recipe *r)
{
    uint64_t total = 0;
    for (size_t i = 0; i < r->n_matrices; i++) {
        const uint64_t bytes = matrix_bytes(&r->matrices[i]);
        total += pn_round_up(bytes, 32);
        if (bytes == 0 || total > r->n_data + DATA_MORE) return false;
    }
    total = 0;
    for (size_t i = 0; i < r->n_matrices; i++) {
        r->matrices[i].offset = total;
        total += pn_round_up(matrix_bytes(&r->matrices[i]), 32);
    }
    return true;
}

/* Each tensor's own data; where it has become larger, what follows and then zeros. */
static void write_data(const recipe *r, sink *s)
{
    for (size_t i = 0; i < r->n_matrices; i++) {
        const uint64_t bytes = matrix_bytes(&r->matrices[i]), left = r->n_data - r->matrices[i].source, copied = bytes < left ? bytes : left;
        sink_add(s, r->data + r->matrices[i].source, (size_t)copied);
        for (uint64_t n = copied; n < pn_round_up(bytes, 32); n++) sink_number(s, 0, 1);
    }
}

static void write_header(const recipe *r, sink *s)
{
    s->n = 0;
    sink_add(s, "GGUF\3\0\0\0", 8);
    sink_number(s, r->n_matrices, 8);
    sink_number(s, r->n_entries, 8);
    for (size_t i = 0; i < r->n_entries; i++) {
        const entry *e = &r->entries[i];
        sink_string(s, e->key);
        sink_number(s, e->kind, 4);
        if (e->kind == PN_GGUF_ARRAY) sink_number(s, e->item, 4);
        if (e->kind == PN_GGUF_ARRAY) sink_number(s, e->count, 8);
        sink_add(s, e->data, e->bytes);
    }
    for (size_t i = 0; i < r->n_matrices; i++) {
        const matrix *m = &r->matrices[i];
        sink_string(s, m->name);
        sink_number(s, m->n_dims, 4);
        for (uint32_t d = 0; d < m->n_dims; d++) sink_number(s, m->ne[d], 8);
        sink_number(s, m->type, 4);
        sink_number(s, m->offset, 8);
    }
    while (s->n % 32) sink_number(s, 0, 1);
}

/* The file. Mostly its tensors lie where they should; where weights are broken, some become what no converter writes. */
static void recipe_write(recipe *r, sink *s, unsigned long long *seed)
{
    static const uint8_t odd[] = {0x00, 0x7f, 0x80, 0xff, 0x7c, 0xfc};
    const bool laid_out = pn_random(seed) % 16 != 0 && recipe_lay_out(r);
    write_header(r, s);
    const size_t header = s->n;
    if (laid_out) write_data(r, s);
    else sink_add(s, r->data, r->n_data);
    const bool broken = pn_random(seed) % 8 == 0 && s->n - header >= 4;
    for (int i = 0; broken && i < 64; i++) {
        const uint64_t roll = pn_random(seed);
        memset(s->p + header + roll % (s->n - header - 3), odd[(roll >> 40) % PN_COUNT(odd)], 1 + (roll >> 50) % 4);
    }
}

#endif
