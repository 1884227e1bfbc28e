/* chat/values.c - making values, dicts, truth and names of types. */
#include "base/math.h"
#include "base/number.h"
#include "base/utf8.h"
#include "chat/ast.h"

const char *pn_j_type_name(const value *v)
{
    static const char *const names[V_KINDS] = {"missing", "Undefined", "NoneType", "bool", "int", "int", "float", "str", "bytes", "list", "tuple", "dict", "dict view", "range", "generator", "Namespace",
                                               "LoopContext", "Macro", "method", "function", "Cycler", "Joiner"};
    return names[v->kind];
}

value pn_j_undefined(undefined_reason reason, const text *of_name, kind of)
{
    value v = {.kind = V_UNDEFINED, .part = (uint8_t)reason, .of = (uint8_t)of};
    v.as.text = (text *)(uintptr_t)of_name;
    return v;
}

value pn_j_undefined_hint(render *st, const char *hint)
{
    text *t = pn_j_get(st, 1, sizeof *t);
    if (t) *t = (text){.data = hint, .n = (uint32_t)strlen(hint)};
    return pn_j_undefined(U_HINT, t, V_NONE);
}

bool pn_j_undefined_error(render *st, const value *v)
{
    const text *t = v->as.text;
    int n = t ? (int)(t->n < 100 ? t->n : 100) : 0;
    const char *name_of = t ? t->data : "";
    value owner = {.kind = v->of};
    switch ((undefined_reason)v->part) {
    case U_NAME: return pn_j_fail(st, "'%.*s' is undefined", n, name_of);
    case U_ATTRIBUTE: return pn_j_fail(st, "a %s has no '%.*s'", pn_j_type_name(&owner), n, name_of);
    case U_UNSAFE: return pn_j_fail(st, "'%.*s' of a %s is not for templates", n, name_of, pn_j_type_name(&owner));
    case U_HINT: break;
    }
    return pn_j_fail(st, "%.*s", n, name_of);
}

/* ---- texts ------------------------------------------------------------------------------------ */

static bool check_length(render *st, uint64_t n)
{
    return n <= J_MAX_TEXT || pn_j_fail(st, "a text of more than %d MiB", J_MAX_TEXT >> 20);
}

bool pn_j_str_view(render *st, const char *data, size_t n, value *out)
{
    text *t = check_length(st, n) ? pn_j_get(st, 1, sizeof *t) : NULL;
    if (!t) return false;
    *t = (text){.data = data, .n = (uint32_t)n, .chars = J_UNCOUNTED};
    *out = v_text(t);
    return true;
}

bool pn_j_str_room(render *st, size_t n, char **data, value *out)
{
    if (!check_length(st, n) || !pn_j_work(st, n)) return false;
    *data = pn_j_get(st, n + 1, 1);
    return *data && pn_j_str_view(st, *data, n, out);
}

bool pn_j_str(render *st, const char *data, size_t n, value *out)
{
    char *copy;
    if (!pn_j_str_room(st, n, &copy, out)) return false;
    if (n) memcpy(copy, data, n);
    return true;
}

/* A text that ends where its buffer is filled to grows in place, so that building one text by many concatenations stays linear. */
bool pn_j_concat(render *st, const value *a, const value *b, value *out)
{
    const text *left = a->as.text, *right = b->as.text;
    uint64_t n = (uint64_t)left->n + right->n;
    text_room *room = left->room;
    text *t = check_length(st, n) ? pn_j_get(st, 1, sizeof *t) : NULL;
    if (!t) return false;
    bool in_place = room && left->data + left->n == room->data + room->used && room->capacity - room->used >= right->n;
    if (!in_place) {
        room = pn_j_get(st, 1, sizeof *room);
        if (!room || !pn_j_work(st, n)) return false;
        uint32_t capacity = n < 256 ? (uint32_t)n : (uint32_t)(n + n / 2);
        *room = (text_room){.data = pn_j_get(st, (uint64_t)capacity + 1, 1), .used = left->n, .capacity = capacity};
        if (!room->data) return false;
        memcpy(room->data, left->data, left->n);
    }
    const char *start = in_place ? left->data : room->data;
    if (!pn_j_work(st, right->n)) return false;
    memcpy(room->data + room->used, right->data, right->n);
    room->used += right->n;
    *t = (text){.data = start, .n = (uint32_t)n, .chars = J_UNCOUNTED, .room = room};
    if (left->chars != J_UNCOUNTED && right->chars != J_UNCOUNTED) t->chars = left->chars + right->chars;
    *out = v_text(t);
    return true;
}

bool pn_j_is_text(const value *v, const char *s)
{
    return v->kind == V_STR && v->as.text->n == strlen(s) && !memcmp(v->as.text->data, s, v->as.text->n);
}

size_t pn_j_chars(render *st, text *t)
{
    if (t->chars == J_UNCOUNTED) {
        size_t n = 0;
        for (size_t i = 0; i < t->n; i++) n += ((unsigned char)t->data[i] & 0xc0) != 0x80;
        t->chars = (uint32_t)n;
        pn_j_work(st, t->n);
    }
    return t->chars;
}

size_t pn_j_offset(const text *t, size_t index)
{
    if (t->chars == t->n) return index < t->n ? index : t->n;
    size_t at = 0;
    while (at < t->n) {
        if (!index--) return at;
        at++;
        while (at < t->n && ((unsigned char)t->data[at] & 0xc0) == 0x80) at++;
    }
    return t->n;
}

bool pn_j_slice_text(render *st, const value *v, size_t from, size_t to, value *out)
{
    bool marked = v->marked;
    if (!pn_j_str_view(st, v->as.text->data + from, to > from ? to - from : 0, out)) return false;
    if (v->as.text->chars == v->as.text->n) out->as.text->chars = out->as.text->n;
    out->marked = marked;
    return true;
}

const char *pn_j_find(const char *data, size_t n, const char *needle, size_t m)
{
    return m <= n ? memmem(data, n, needle, m) : NULL;
}

const char *pn_j_find_last(render *st, const char *data, size_t n, const char *needle, size_t m)
{
    if (m > n) return NULL;
    if (!m) return data + n;
    for (size_t end = n - m + 1; end;) {
        const char *at = memrchr(data, needle[0], end);
        if (!at || !pn_j_work(st, m)) return NULL;
        if (!memcmp(at, needle, m)) return at;
        end = (size_t)(at - data);
    }
    return NULL;
}

/* ---- lists ------------------------------------------------------------------------------------ */

list *pn_j_list(render *st, size_t capacity)
{
    list *l = capacity <= J_MAX_ITEMS ? pn_j_get(st, 1, sizeof *l) : NULL;
    if (capacity > J_MAX_ITEMS) pn_j_fail(st, "a list of more than %d items", J_MAX_ITEMS);
    if (!l) return NULL;
    *l = (list){.capacity = capacity};
    if (capacity && !(l->items = pn_j_get(st, capacity, sizeof *l->items))) return NULL;
    return l;
}

bool pn_j_push(render *st, list *l, value v)
{
    if (l->n == l->capacity) {
        size_t capacity = l->capacity ? l->capacity * 2 : 4;
        if (l->n >= J_MAX_ITEMS) return pn_j_fail(st, "a list of more than %d items", J_MAX_ITEMS);
        value *items = pn_j_get(st, capacity, sizeof *items);
        if (!items) return false;
        if (l->n) memcpy(items, l->items, l->n * sizeof *items);
        l->items = items;
        l->capacity = capacity;
    }
    l->items[l->n++] = v;
    return pn_j_step(st, 1);
}

bool pn_j_pair(render *st, value a, value b, value *out)
{
    list *l = pn_j_list(st, 2);
    if (!l) return false;
    l->items[0] = a;
    l->items[1] = b;
    l->n = 2;
    *out = v_tuple(l);
    return true;
}

/* ---- dicts ------------------------------------------------------------------------------------ */

enum { MAX_SCANNED_KEYS = 8 };

static uint64_t mix(uint64_t h)
{
    h ^= h >> 33;
    h *= 0xff51afd7ed558ccdu;
    return h ^ h >> 29;
}

static uint64_t hash_bytes(const char *data, size_t n)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)data[i]) * 1099511628211u;
    return mix(h);
}

/* Equal numbers hash alike, whatever their kind. */
static uint64_t hash_number(const value *v)
{
    const double d = pn_j_as_double(v);
    if (v->kind != V_FLOAT) return mix((uint64_t)pn_j_as_int(v));
    if (d >= -9.2e18 && d <= 9.2e18 && (double)(int64_t)d == d) return mix((uint64_t)(int64_t)d);
    return mix(pn_double_bits(d));
}

/* False: an unhashable kind. */
static bool hash_value(const value *v, uint64_t *out, int depth)
{
    switch (v->kind) {
    case V_STR:
    case V_BIG:
    case V_BYTES: *out = hash_bytes(v->as.text->data, v->as.text->n); return true;
    case V_BOOL:
    case V_INT:
    case V_FLOAT: *out = hash_number(v); return true;
    case V_LIST:
    case V_DICT:
    case V_VIEW: return false;
    case V_TUPLE:
        *out = 7;
        for (size_t i = 0; i < v->as.list->n; i++) {
            uint64_t h;
            if (depth >= J_MAX_NESTING || !hash_value(&v->as.list->items[i], &h, depth + 1)) return false;
            *out = mix(*out * 31 + h);
        }
        return true;
    default: *out = v->kind; return true; /* few of these are ever keys */
    }
}

bool pn_j_hashable(const value *v)
{
    uint64_t hash;
    return hash_value(v, &hash, 0);
}

static bool same_text(const value *a, const value *b)
{
    return a->as.text->n == b->as.text->n && !memcmp(a->as.text->data, b->as.text->data, a->as.text->n);
}

static bool same_key(render *st, const value *a, const value *b, bool *same)
{
    if (a->kind == V_STR && b->kind == V_STR) {
        *same = same_text(a, b);
        return true;
    }
    return pn_j_equal(st, a, b, same);
}

static bool key_work(render *st, const value *key)
{
    return key->kind != V_STR || pn_j_work(st, (uint64_t)key->as.text->n * 2);
}

/* Sets *place to the key's place or to d->n. */
static bool look_up(render *st, const dict *d, const value *key, uint64_t hash, size_t *place)
{
    bool same = false;
    *place = d->n;
    if (!d->slots) {
        for (size_t i = 0; i < d->n && !same; i++) {
            if (!same_key(st, &d->keys[i], key, &same)) return false;
            if (same) *place = i;
        }
        return true;
    }
    for (size_t s = (size_t)hash & d->mask; d->slots[s]; s = (s + 1) & d->mask) {
        if (!pn_j_step(st, 1) || !same_key(st, &d->keys[d->slots[s] - 1], key, &same)) return false;
        if (!same) continue;
        *place = d->slots[s] - 1;
        return true;
    }
    return true;
}

dict *pn_j_dict(render *st, size_t capacity)
{
    dict *d = pn_j_get(st, 1, sizeof *d);
    if (!d) return NULL;
    *d = (dict){.capacity = capacity};
    if (!capacity) return d;
    d->keys = pn_j_get(st, capacity, sizeof *d->keys);
    d->values = d->keys ? pn_j_get(st, capacity, sizeof *d->values) : NULL;
    return d->values ? d : NULL;
}

static void insert_slot(dict *d, uint64_t hash, size_t place)
{
    size_t s = (size_t)hash & d->mask;
    while (d->slots[s]) s = (s + 1) & d->mask;
    d->slots[s] = (uint32_t)place + 1;
}

static bool rehash(render *st, dict *d)
{
    size_t mask = 31;
    while (mask < d->capacity * 2) mask = mask * 2 + 1;
    d->slots = pn_j_get(st, mask + 1, sizeof *d->slots);
    if (!d->slots) return false;
    memset(d->slots, 0, (mask + 1) * sizeof *d->slots);
    d->mask = mask;
    for (size_t i = 0; i < d->n; i++) {
        uint64_t hash = 0;
        hash_value(&d->keys[i], &hash, 0);
        insert_slot(d, hash, i);
    }
    return pn_j_step(st, d->n);
}

static bool grow_dict(render *st, dict *d)
{
    dict larger = *d;
    larger.capacity = d->capacity ? d->capacity * 2 : 4;
    if (d->n >= J_MAX_ITEMS) return pn_j_fail(st, "a dict of more than %d items", J_MAX_ITEMS);
    larger.keys = pn_j_get(st, larger.capacity, sizeof *larger.keys);
    larger.values = larger.keys ? pn_j_get(st, larger.capacity, sizeof *larger.values) : NULL;
    if (!larger.values) return false;
    if (d->n) memcpy(larger.keys, d->keys, d->n * sizeof *d->keys);
    if (d->n) memcpy(larger.values, d->values, d->n * sizeof *d->values);
    larger.slots = NULL;
    *d = larger;
    return true;
}

bool pn_j_dict_set(render *st, dict *d, value key, value v)
{
    uint64_t hash;
    size_t place;
    if (!hash_value(&key, &hash, 0)) return pn_j_fail(st, "a %s cannot be a key", pn_j_type_name(&key));
    if (!pn_j_step(st, 1) || !key_work(st, &key) || !look_up(st, d, &key, hash, &place)) return false;
    if (place < d->n) {
        d->values[place] = v;
        return true;
    }
    if (d->n == d->capacity && !grow_dict(st, d)) return false;
    d->keys[d->n] = key;
    d->values[d->n++] = v;
    if (d->slots) insert_slot(d, hash, d->n - 1);
    else if (d->n > MAX_SCANNED_KEYS) return rehash(st, d);
    return true;
}

bool pn_j_dict_get(render *st, const dict *d, const value *key, value *out, bool *found)
{
    uint64_t hash;
    size_t place;
    *found = false;
    if (!hash_value(key, &hash, 0)) return pn_j_fail(st, "a %s cannot be a key", pn_j_type_name(key));
    if (!key_work(st, key) || !look_up(st, d, key, hash, &place)) return false;
    *found = place < d->n;
    if (*found) *out = d->values[place];
    return true;
}

const value *pn_j_dict_find(const dict *d, const char *key, size_t n)
{
    size_t s = d->slots ? (size_t)hash_bytes(key, n) & d->mask : 0;
    for (size_t i = 0; d->slots ? d->slots[s] != 0 : i < d->n; i++, s = (s + 1) & d->mask) {
        size_t place = d->slots ? d->slots[s] - 1 : i;
        const value *k = &d->keys[place];
        if (k->kind == V_STR && k->as.text->n == n && !memcmp(k->as.text->data, key, n)) return &d->values[place];
    }
    return NULL;
}

/* ---- from JSON -------------------------------------------------------------------------------- */

static bool from_object(render *st, const pn_json *json, value *out)
{
    dict *d = pn_j_dict(st, json->n);
    for (size_t i = 0; d && i < json->n; i++) {
        value key, item;
        if (!pn_j_str_view(st, json->keys[i].text, json->keys[i].n, &key) || !pn_j_from_json(st, &json->items[i], &item) || !pn_j_dict_set(st, d, key, item)) return false;
    }
    *out = (value){.kind = V_DICT, .as.dict = d};
    return d != NULL;
}

static bool from_array(render *st, const pn_json *json, value *out)
{
    list *l = pn_j_list(st, json->n);
    for (size_t i = 0; l && i < json->n; i++) {
        value item;
        if (!pn_j_from_json(st, &json->items[i], &item) || !pn_j_push(st, l, item)) return false;
    }
    *out = v_list(l);
    return l != NULL;
}

bool pn_j_from_json(render *st, const pn_json *json, value *out)
{
    if (!pn_j_enter(st)) return false;
    bool good = true;
    switch (json->kind) {
    case PN_JSON_NULL: *out = v_none(); break;
    case PN_JSON_BOOL: *out = v_bool(json->boolean); break;
    case PN_JSON_INT: *out = v_int(json->integer); break;
    case PN_JSON_FLOAT: *out = v_float(json->number); break;
    case PN_JSON_STRING: good = pn_j_str_view(st, json->text, json->n, out); break;
    case PN_JSON_ARRAY: good = from_array(st, json, out); break;
    case PN_JSON_OBJECT: good = from_object(st, json, out); break;
    }
    pn_j_leave(st);
    return good;
}

/* ---- truth and numbers ------------------------------------------------------------------------ */

bool pn_j_truth(const value *v)
{
    switch (v->kind) {
    case V_MISSING:
    case V_UNDEFINED:
    case V_NONE: return false;
    case V_BOOL: return v->as.boolean;
    case V_INT: return v->as.integer != 0;
    case V_FLOAT: return v->as.number != 0;
    case V_STR:
    case V_BYTES: return v->as.text->n != 0;
    case V_LIST:
    case V_TUPLE: return v->as.list->n != 0;
    case V_DICT:
    case V_VIEW: return v->as.dict->n != 0;
    case V_RANGE: return v->as.range->n != 0;
    default: return true;
    }
}

bool pn_j_is_number(const value *v)
{
    return v->kind == V_BOOL || v->kind == V_INT || v->kind == V_FLOAT;
}

int64_t pn_j_as_int(const value *v)
{
    return v->kind == V_BOOL ? v->as.boolean : v->as.integer;
}

double pn_j_as_double(const value *v)
{
    return v->kind == V_FLOAT ? v->as.number : (double)pn_j_as_int(v);
}
