/* chat/compare.c - equality, order, membership and length, by Python's rules. */
#include "chat/ast.h"

/* An int against a float, exactly: -1, 0, 1; 2: not a number. */
static int compare_int_double(int64_t i, double d)
{
    if (d != d) return 2;
    if (d >= 9223372036854775808.0) return -1;
    if (d < -9223372036854775808.0) return 1;
    int64_t whole = (int64_t)d;
    if (i != whole) return i < whole ? -1 : 1;
    double rest = d - (double)whole;
    return rest > 0 ? -1 : rest < 0 ? 1 : 0;
}

static int compare_numbers(const value *a, const value *b)
{
    if (a->kind != V_FLOAT && b->kind != V_FLOAT) {
        int64_t x = pn_j_as_int(a), y = pn_j_as_int(b);
        return x < y ? -1 : x > y;
    }
    if (a->kind != V_FLOAT) return compare_int_double(pn_j_as_int(a), b->as.number);
    if (b->kind != V_FLOAT) {
        int c = compare_int_double(pn_j_as_int(b), a->as.number);
        return c == 2 ? 2 : -c;
    }
    double x = a->as.number, y = b->as.number;
    return x < y ? -1 : x > y ? 1 : x == y ? 0 : 2;
}

static bool lists_equal(render *st, const list *a, const list *b, bool *equal)
{
    *equal = a->n == b->n;
    for (size_t i = 0; *equal && i < a->n && i < b->n; i++) {
        if (!pn_j_equal(st, &a->items[i], &b->items[i], equal)) return false;
    }
    return true;
}

static bool dicts_equal(render *st, const dict *a, const dict *b, bool *equal)
{
    *equal = a->n == b->n;
    for (size_t i = 0; *equal && i < a->n; i++) {
        value other;
        if (!pn_j_dict_get(st, b, &a->keys[i], &other, equal)) return false;
        if (*equal && !pn_j_equal(st, &a->values[i], &other, equal)) return false;
    }
    return true;
}

/* Views of keys and of items are equal as sets, views of values only to themselves. */
static bool views_equal(render *st, const value *a, const value *b, bool *equal)
{
    const dict *x = a->as.dict, *y = b->as.dict;
    *equal = a->part == b->part && (x == y || (a->part != VIEW_VALUES && x->n == y->n));
    if (!*equal || x == y) return true;
    if (a->part == VIEW_ITEMS) return dicts_equal(st, x, y, equal);
    for (size_t i = 0; *equal && i < x->n; i++) {
        value ignored;
        if (!pn_j_dict_get(st, y, &x->keys[i], &ignored, equal)) return false;
    }
    return true;
}

static bool texts_equal(render *st, const value *a, const value *b, bool *equal)
{
    const text *x = a->as.text, *y = b->as.text;
    *equal = x->n == y->n && (x->data == y->data || !memcmp(x->data, y->data, x->n));
    return x->n != y->n || pn_j_work(st, x->n);
}

static bool equal_same_kind(render *st, const value *a, const value *b, bool *equal)
{
    switch (a->kind) {
    case V_UNDEFINED:
    case V_NONE: *equal = true; return true;
    case V_STR:
    case V_BIG:
    case V_BYTES: return texts_equal(st, a, b, equal);
    case V_LIST:
    case V_TUPLE: return a->as.list == b->as.list ? (*equal = true) : lists_equal(st, a->as.list, b->as.list, equal);
    case V_DICT: return a->as.dict == b->as.dict ? (*equal = true) : dicts_equal(st, a->as.dict, b->as.dict, equal);
    case V_RANGE:
        *equal = a->as.range->n == b->as.range->n && (!a->as.range->n || (a->as.range->start == b->as.range->start && (a->as.range->n == 1 || a->as.range->step == b->as.range->step)));
        return true;
    case V_VIEW: return views_equal(st, a, b, equal);
    case V_METHOD: *equal = false; return true;
    default: *equal = a->as.list == b->as.list; return true; /* identity: all are pointers */
    }
}

bool pn_j_equal(render *st, const value *a, const value *b, bool *equal)
{
    if (pn_j_is_number(a) && pn_j_is_number(b)) {
        *equal = compare_numbers(a, b) == 0;
        return true;
    }
    *equal = false;
    if (a->kind != b->kind) return true;
    if (!pn_j_step(st, 1)) return false;
    if (st->depth >= J_MAX_DEPTH) return pn_j_enter(st);
    st->depth += J_MAX_DEPTH / (J_MAX_NESTING * 2); /* values may nest less deeply than expressions */
    bool good = equal_same_kind(st, a, b, equal);
    st->depth -= J_MAX_DEPTH / (J_MAX_NESTING * 2);
    return good;
}

static bool fail_order(render *st, const value *a, const value *b)
{
    if (a->kind == V_UNDEFINED) return pn_j_undefined_error(st, a);
    if (b->kind == V_UNDEFINED) return pn_j_undefined_error(st, b);
    return pn_j_fail(st, "a %s and a %s have no order", pn_j_type_name(a), pn_j_type_name(b));
}

static bool less_lists(render *st, const list *a, const list *b, bool *less)
{
    for (size_t i = 0; i < a->n && i < b->n; i++) {
        bool equal;
        if (!pn_j_equal(st, &a->items[i], &b->items[i], &equal)) return false;
        if (!equal) return pn_j_less(st, &a->items[i], &b->items[i], less);
    }
    *less = a->n < b->n;
    return true;
}

static int compare_texts(const text *a, const text *b) /* bytes of UTF-8 order as characters do */
{
    int c = memcmp(a->data, b->data, a->n < b->n ? a->n : b->n);
    return c ? c : a->n < b->n ? -1 : a->n > b->n;
}

bool pn_j_less(render *st, const value *a, const value *b, bool *less)
{
    *less = false;
    if (!pn_j_step(st, 1)) return false;
    if (pn_j_is_number(a) && pn_j_is_number(b)) {
        *less = compare_numbers(a, b) == -1;
        return true;
    }
    if (a->kind != b->kind) return fail_order(st, a, b);
    if (a->kind == V_STR || a->kind == V_BYTES) {
        *less = compare_texts(a->as.text, b->as.text) < 0;
        return pn_j_work(st, a->as.text->n);
    }
    if (a->kind != V_LIST && a->kind != V_TUPLE) return fail_order(st, a, b);
    if (!pn_j_enter(st)) return false;
    bool good = less_lists(st, a->as.list, b->as.list, less);
    pn_j_leave(st);
    return good;
}

bool pn_j_compare(render *st, operator op, const value *a, const value *b, bool *result)
{
    bool equal, less, nan = (a->kind == V_FLOAT && a->as.number != a->as.number) || (b->kind == V_FLOAT && b->as.number != b->as.number);
    switch (op) {
    case OP_EQ: return pn_j_equal(st, a, b, result);
    case OP_NE: return pn_j_equal(st, a, b, &equal) && ((*result = !equal) || true);
    case OP_LT: return pn_j_less(st, a, b, result);
    case OP_GT: return pn_j_less(st, b, a, result);
    case OP_LE: return pn_j_less(st, b, a, &less) && ((*result = !less && !nan) || true);
    case OP_GE: return pn_j_less(st, a, b, &less) && ((*result = !less && !nan) || true);
    case OP_IN: return pn_j_contains(st, b, a, result);
    case OP_NOT_IN: return pn_j_contains(st, b, a, &equal) && ((*result = !equal) || true);
    default: return pn_j_fail(st, "no comparison");
    }
}

/* ---- membership ------------------------------------------------------------------------------- */

static bool text_contains(render *st, const value *container, const value *item, bool *found)
{
    const text *t = container->as.text, *part = item->as.text;
    if (item->kind == V_UNDEFINED || item->kind != container->kind) return pn_j_fail(st, "'in' needs a str on its left here, not a %s", pn_j_type_name(item));
    *found = pn_j_find(t->data, t->n, part->data, part->n) != NULL;
    return pn_j_work(st, t->n);
}

static bool range_contains(render *st, const range *r, const value *item, bool *found)
{
    (void)st;
    *found = false;
    if (!pn_j_is_number(item)) return true;
    double d = pn_j_as_double(item);
    if (item->kind == V_FLOAT && (d != d || d < -9e18 || d > 9e18 || (double)(int64_t)d != d)) return true;
    int64_t i = item->kind == V_FLOAT ? (int64_t)d : pn_j_as_int(item), first = r->start, last = r->start + (r->n - 1) * r->step;
    int64_t low = r->step > 0 ? first : last, high = r->step > 0 ? last : first;
    *found = r->n && i >= low && i <= high && (i - first) % r->step == 0;
    return true;
}

static bool iterated_contains(render *st, const value *container, const value *item, bool *found)
{
    iter it = {0};
    value v;
    int more;
    if (!pn_j_iter(st, container, &it)) return false;
    while ((more = pn_j_next(st, &it, &v)) > 0) {
        if (!pn_j_equal(st, item, &v, found)) return false;
        if (*found) return true;
    }
    return more == 0;
}

bool pn_j_contains(render *st, const value *container, const value *item, bool *found)
{
    value ignored;
    *found = false;
    switch (container->kind) {
    case V_STR: return text_contains(st, container, item, found);
    case V_RANGE: return range_contains(st, container->as.range, item, found);
    case V_DICT: return pn_j_dict_get(st, container->as.dict, item, &ignored, found);
    case V_VIEW:
        if (container->part == VIEW_KEYS) return pn_j_dict_get(st, container->as.dict, item, &ignored, found);
        return iterated_contains(st, container, item, found);
    default: return iterated_contains(st, container, item, found);
    }
}

/* ---- length ----------------------------------------------------------------------------------- */

bool pn_j_has_length(const value *v)
{
    return v->kind == V_UNDEFINED || (v->kind >= V_STR && v->kind <= V_RANGE) || v->kind == V_LOOP;
}

bool pn_j_length(render *st, const value *v, int64_t *n)
{
    switch (v->kind) {
    case V_UNDEFINED: *n = 0; return true;
    case V_STR: *n = (int64_t)pn_j_chars(st, v->as.text); return !st->failed;
    case V_BYTES: *n = v->as.text->n; return true;
    case V_LIST:
    case V_TUPLE: *n = (int64_t)v->as.list->n; return true;
    case V_DICT:
    case V_VIEW: *n = (int64_t)v->as.dict->n; return true;
    case V_RANGE: *n = v->as.range->n; return true;
    case V_LOOP: return pn_j_loop_length(st, v->as.loop, n);
    default: return pn_j_fail(st, "a %s has no length", pn_j_type_name(v));
    }
}
