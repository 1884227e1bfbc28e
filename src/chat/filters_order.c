/* chat/filters_order.c - filters that sort or compare. */
#include "chat/filters.h"

/* ---- sorting ---------------------------------------------------------------------------------- */

typedef struct sorter {
    render *st;
    const value *keys;
    bool reverse;
} sorter;

/* Does the later of two places go first? */
static bool goes_first(const sorter *s, size_t later, size_t earlier, bool *first)
{
    return s->reverse ? pn_j_less(s->st, &s->keys[earlier], &s->keys[later], first) : pn_j_less(s->st, &s->keys[later], &s->keys[earlier], first);
}

static bool merge(const sorter *s, const uint32_t *from, uint32_t *to, size_t low, size_t middle, size_t high)
{
    size_t i = low, k = middle;
    for (size_t at = low; at < high; at++) {
        bool right = i >= middle;
        if (i < middle && k < high && !goes_first(s, from[k], from[i], &right)) return false;
        to[at] = right ? from[k++] : from[i++];
    }
    return true;
}

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static bool merge_all(const sorter *s, uint32_t **order, uint32_t *other, size_t n)
{
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t low = 0; low < n; low += 2 * width) {
            if (!merge(s, *order, other, low, at_most(low + width, n), at_most(low + 2 * width, n))) return false;
        }
        uint32_t *swap = *order;
        *order = other;
        other = swap;
    }
    return true;
}

bool pn_j_sort(render *st, value *keys, value *items, size_t n, bool reverse)
{
    uint32_t *order = pn_j_get(st, n, 2 * sizeof *order);
    value *copy = order ? pn_j_get(st, n, sizeof *copy) : NULL;
    sorter s = {st, keys, reverse};
    if (!copy) return false;
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    if (!merge_all(&s, &order, order + n, n)) return false;
    for (int pass = 0; pass < 2; pass++) {
        value *of = pass ? items : keys;
        for (size_t i = 0; i < n; i++) copy[i] = of[order[i]];
        if (n) memcpy(of, copy, n * sizeof *of);
    }
    return true;
}

static bool sort_key(render *st, const value *item, const value *path, const value *otherwise, bool fold, value *out)
{
    value v;
    if (!pn_j_path(st, item, path, otherwise, &v)) return false;
    *out = v;
    return !fold || pn_j_fold_case(st, &v, out);
}

/* By several paths, "a,b": a list of the values. One path gives a list too: values that are equal need no order then. */
static bool multiple_key(render *st, const value *item, const value *paths, bool fold, value *out)
{
    static const text none = {.data = "", .n = 0};
    const text *t = paths->kind == V_STR ? paths->as.text : &none;
    list *l = pn_j_list(st, 1);
    if (l && paths->kind != V_STR) {
        l->n = 1;
        *out = v_list(l);
        return sort_key(st, item, paths, NULL, fold, &l->items[0]);
    }
    for (size_t at = 0; l && at <= t->n;) {
        size_t end = at;
        value path, key;
        while (end < t->n && t->data[end] != ',') end++;
        if (!pn_j_str_view(st, t->data + at, end - at, &path) || !sort_key(st, item, &path, NULL, fold, &key) || !pn_j_push(st, l, key)) return false;
        at = end + 1;
    }
    *out = v_list(l);
    return l != NULL;
}

static bool make_keys(render *st, const list *l, const value *path, const value *otherwise, bool fold, bool several, value **out)
{
    value *keys = pn_j_get(st, l->n, sizeof *keys);
    for (size_t i = 0; keys && i < l->n; i++) {
        bool good = several ? multiple_key(st, &l->items[i], path, fold, &keys[i]) : sort_key(st, &l->items[i], path, otherwise, fold, &keys[i]);
        if (!good) return false;
    }
    *out = keys;
    return keys != NULL;
}

static bool flag(const parameters *p, int i)
{
    return p->has[i] && pn_j_truth(&p->at[i]);
}

static value argument(const parameters *p, int i)
{
    return p->has[i] ? p->at[i] : v_none();
}

static bool filter_sort(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    value *keys, path = argument(p, 2);
    if (!pn_j_to_list(st, self, &l) || !make_keys(st, l, &path, NULL, !flag(p, 1), true, &keys) || !pn_j_sort(st, keys, l->items, l->n, flag(p, 0))) return false;
    *out = v_list(l);
    return true;
}

static bool filter_dictsort(render *st, const value *self, const parameters *p, value *out)
{
    bool by_value = p->has[1] && pn_j_is_text(&p->at[1], "value");
    value view = {.kind = V_VIEW, .part = VIEW_ITEMS, .as.dict = self->as.dict}, place = v_int(by_value), *keys;
    list *l;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (self->kind != V_DICT) return pn_j_fail(st, "dictsort needs a mapping, not a %s", pn_j_type_name(self));
    if (p->has[1] && !by_value && !pn_j_is_text(&p->at[1], "key")) return pn_j_fail(st, "dictsort sorts by key or by value");
    if (!pn_j_to_list(st, &view, &l) || !make_keys(st, l, &place, NULL, !flag(p, 0), false, &keys) || !pn_j_sort(st, keys, l->items, l->n, flag(p, 2))) return false;
    *out = v_list(l);
    return true;
}

/* ---- min, max, groupby -------------------------------------------------------------------------- */

static bool filter_extreme(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    value *keys, path = argument(p, 1);
    size_t best = 0;
    if (!pn_j_to_list(st, self, &l) || !make_keys(st, l, &path, NULL, !flag(p, 0), false, &keys)) return false;
    if (!l->n) return ((*out = pn_j_undefined_hint(st, "the sequence is empty")), true);
    for (size_t i = 1; i < l->n; i++) {
        bool better;
        if (!(p->option ? pn_j_less(st, &keys[best], &keys[i], &better) : pn_j_less(st, &keys[i], &keys[best], &better))) return false;
        if (better) best = i;
    }
    *out = l->items[best];
    return true;
}

static bool add_group(render *st, list *groups, value key, list *members)
{
    value group;
    if (!pn_j_pair(st, key, v_list(members), &group)) return false;
    group.part = 1; /* its parts have names: grouper and list */
    return pn_j_push(st, groups, group);
}

static bool filter_groupby(render *st, const value *self, const parameters *p, value *out)
{
    list *l, *groups, *members = NULL;
    value *keys, otherwise = argument(p, 1);
    bool fold = !flag(p, 2), equal = false;
    if (!pn_j_to_list(st, self, &l) || !make_keys(st, l, &p->at[0], &otherwise, fold, false, &keys) || !pn_j_sort(st, keys, l->items, l->n, false)) return false;
    if (!(groups = pn_j_list(st, 0))) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (i && !pn_j_equal(st, &keys[i - 1], &keys[i], &equal)) return false;
        if (!i || !equal) {
            value key;
            if (!(members = pn_j_list(st, 0)) || !pn_j_path(st, &l->items[i], &p->at[0], &otherwise, &key) || !add_group(st, groups, key, members)) return false;
        }
        if (!pn_j_push(st, members, l->items[i])) return false;
    }
    *out = v_list(groups);
    return true;
}

static const builtin rows[] = {
    {"dictsort", filter_dictsort, "? case_sensitive by reverse", 0}, {"groupby", filter_groupby, "attribute ? default case_sensitive", 0}, {"max", filter_extreme, "? case_sensitive attribute", 1},
    {"min", filter_extreme, "? case_sensitive attribute", 0}, {"sort", filter_sort, "? reverse case_sensitive attribute", 0},
};
const filter_table pn_j_order_filters = {rows, PN_COUNT(rows)};
