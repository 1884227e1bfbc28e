/* chat/filters_lazy.c - filters that give one-shot iterators: nothing happens, and nothing fails, before they are asked for an item. */
#include "chat/filters.h"

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- map -------------------------------------------------------------------------------------- */

/* extra: the path of attribute=, or nothing; items[0]: the default */
static int next_mapped(render *st, generator *g, value *out)
{
    value item;
    if (!g->started) {
        g->started = true;
        if (!pn_j_truth(&g->subject)) return 0;
        if (!g->flag && !g->function) {
            pn_j_fail(st, "map needs the name of a filter that exists");
            return -1;
        }
        if (!pn_j_iter(st, &g->subject, &g->inner)) return -1;
    }
    int more = pn_j_next(st, &g->inner, &item);
    if (more <= 0) return more;
    bool good = g->flag ? pn_j_path(st, &item, &g->extra, &g->items->items[0], out) : pn_j_call_builtin(st, g->function, &item, g->arguments, out);
    return good ? 1 : -1;
}

static bool rest_of(render *st, const arguments *all, size_t skip, arguments **out)
{
    arguments *rest = pn_j_get(st, 1, sizeof *rest);
    if (!rest) return false;
    *rest = *all;
    rest->items = all->n > skip ? all->items + skip : NULL;
    rest->n = all->n > skip ? all->n - skip : 0;
    *out = rest;
    return true;
}

static bool map_by_attribute(render *st, const arguments *all, generator *g)
{
    g->flag = true;
    g->items = pn_j_list(st, 1);
    if (!g->items) return false;
    g->items->items[0] = v_none();
    for (size_t i = 0; i < all->n_named; i++) {
        const text *t = all->names[i];
        if (t->n == 9 && !memcmp(t->data, "attribute", 9)) g->extra = all->named[i];
        else if (t->n == 7 && !memcmp(t->data, "default", 7)) g->items->items[0] = all->named[i];
        else return pn_j_fail(st, "map has no argument '%.*s'", (int)t->n, t->data);
    }
    return true;
}

static bool names_attribute(const arguments *all)
{
    for (size_t i = 0; i < all->n_named; i++) {
        if (all->names[i]->n == 9 && !memcmp(all->names[i]->data, "attribute", 9)) return !all->n;
    }
    return false;
}

static bool filter_map(render *st, const value *self, const parameters *p, value *out)
{
    generator *g = pn_j_generator(st, "generator", next_mapped);
    if (!g) return false;
    g->subject = *self;
    *out = v_iter(g);
    if (names_attribute(p->all)) return map_by_attribute(st, p->all, g);
    const value *filter = p->all->n ? &p->all->items[0] : NULL;
    if (filter && filter->kind == V_STR) g->function = pn_j_filter(filter->as.text->data, filter->as.text->n);
    return rest_of(st, p->all, 1, &g->arguments);
}

/* ---- select, reject ------------------------------------------------------------------------------ */

enum { REJECT = 1, BY_ATTRIBUTE = 2 };

static bool passes(render *st, const generator *g, const value *item, bool *out)
{
    value subject = *item, result;
    if ((g->a & BY_ATTRIBUTE) && !pn_j_path(st, item, &g->extra, NULL, &subject)) return false;
    if (g->function) {
        if (!pn_j_call_builtin(st, g->function, &subject, g->arguments, &result)) return false;
    } else {
        result = subject;
    }
    *out = pn_j_truth(&result) != ((g->a & REJECT) != 0);
    return true;
}

static bool start_selection(render *st, generator *g)
{
    size_t attribute = (g->a & BY_ATTRIBUTE) != 0;
    const arguments *all = g->arguments;
    if (attribute && !all->n) return pn_j_fail(st, "selectattr and rejectattr need the name of an attribute");
    if (attribute) g->extra = all->items[0];
    if (all->n > attribute) {
        const value *test = &all->items[attribute];
        g->function = test->kind == V_STR ? pn_j_test(test->as.text->data, test->as.text->n) : NULL;
        if (!g->function) return pn_j_fail(st, "no test of this name");
    }
    return rest_of(st, all, attribute + 1, &g->arguments) && pn_j_iter(st, &g->subject, &g->inner);
}

static int next_selected(render *st, generator *g, value *out)
{
    bool taken = false;
    int more = 1;
    if (!g->started) {
        g->started = true;
        if (!pn_j_truth(&g->subject)) return 0;
        if (!start_selection(st, g)) return -1;
    }
    while (!taken && (more = pn_j_next(st, &g->inner, out)) > 0) {
        if (!passes(st, g, out, &taken)) return -1;
    }
    return more;
}

static bool filter_select(render *st, const value *self, const parameters *p, value *out)
{
    generator *g = pn_j_generator(st, "generator", next_selected);
    if (!g) return false;
    g->subject = *self;
    g->a = p->option;
    *out = v_iter(g);
    return rest_of(st, p->all, 0, &g->arguments);
}

/* ---- items, reverse, unique, batch, slice -------------------------------------------------------- */

static int next_pair(render *st, generator *g, value *out)
{
    if (!g->started) {
        g->started = true;
        if (g->subject.kind == V_UNDEFINED) return 0;
        if (g->subject.kind != V_DICT) {
            pn_j_fail(st, "items needs a mapping, not a %s", pn_j_type_name(&g->subject));
            return -1;
        }
        value view = {.kind = V_VIEW, .part = VIEW_ITEMS, .as.dict = g->subject.as.dict};
        if (!pn_j_iter(st, &view, &g->inner)) return -1;
    }
    return pn_j_next(st, &g->inner, out);
}

static bool start_list(render *st, generator *g)
{
    if (g->started) return true;
    g->started = true;
    return pn_j_to_list(st, &g->subject, &g->items);
}

static int next_reversed(render *st, generator *g, value *out)
{
    if (!start_list(st, g)) return -1;
    if ((size_t)g->a >= g->items->n) return 0;
    *out = g->items->items[g->items->n - 1 - (size_t)g->a++];
    return 1;
}

static int next_unique(render *st, generator *g, value *out)
{
    value key, folded, seen;
    bool found = true;
    int more = 1;
    if (!g->started) {
        g->started = true;
        dict *d = pn_j_dict(st, 0);
        if (!d || !pn_j_iter(st, &g->subject, &g->inner)) return -1;
        g->subject = (value){.kind = V_DICT, .as.dict = d};
    }
    while (found && (more = pn_j_next(st, &g->inner, out)) > 0) {
        if (!pn_j_path(st, out, &g->extra, NULL, &key)) return -1;
        folded = key;
        if (!g->flag && !pn_j_fold_case(st, &key, &folded)) return -1;
        if (!pn_j_dict_get(st, g->subject.as.dict, &folded, &seen, &found) || (!found && !pn_j_dict_set(st, g->subject.as.dict, folded, v_none()))) return -1;
    }
    return more;
}

/* a: items of a batch; extra: what fills the last one */
static int next_batch(render *st, generator *g, value *out)
{
    if (!start_list(st, g)) return -1;
    size_t n = g->items->n, at = (size_t)g->b, size = g->a > 0 ? (size_t)g->a : n;
    list *l = at < n ? pn_j_list(st, 0) : NULL;
    if (at >= n) return 0;
    for (; l && l->n < size && at < n; at++) {
        if (!pn_j_push(st, l, g->items->items[at])) return -1;
    }
    while (l && g->a > 0 && l->n < size && g->extra.kind != V_NONE) {
        if (!pn_j_push(st, l, g->extra)) return -1;
    }
    g->b = (int64_t)at;
    *out = v_list(l);
    return l ? 1 : -1;
}

/* a: number of slices; b: those given */
static int next_slice(render *st, generator *g, value *out)
{
    if (!start_list(st, g)) return -1;
    if (!g->a) {
            pn_j_fail(st, "slice into zero parts");
            return -1;
        }
    if (g->b >= g->a) return 0;
    size_t n = g->items->n, parts = (size_t)g->a, i = (size_t)g->b++, size = n / parts, longer = n % parts;
    size_t from = i * size + at_most(i, longer), count = size + (i < longer);
    list *l = pn_j_list(st, 0);
    for (size_t k = 0; l && k < count; k++) {
        if (!pn_j_push(st, l, g->items->items[from + k])) return -1;
    }
    if (l && g->extra.kind != V_NONE && i >= longer && !pn_j_push(st, l, g->extra)) return -1;
    *out = v_list(l);
    return l ? 1 : -1;
}

static bool filter_items(render *st, const value *self, const parameters *p, value *out)
{
    generator *g = pn_j_generator(st, "generator", next_pair);
    (void)p;
    if (!g) return false;
    g->subject = *self;
    *out = v_iter(g);
    return true;
}

static bool filter_reverse(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    (void)p;
    if (self->kind == V_STR) return pn_j_reverse_text(st, self, out);
    if (self->kind == V_ITER) {
        if (!pn_j_to_list(st, self, &l)) return false;
        for (size_t i = 0; i < l->n / 2; i++) {
            value v = l->items[i];
            l->items[i] = l->items[l->n - 1 - i];
            l->items[l->n - 1 - i] = v;
        }
        *out = v_list(l);
        return true;
    }
    if (!pn_j_iterable(self)) return pn_j_fail(st, "a %s cannot be reversed", pn_j_type_name(self));
    generator *g = pn_j_generator(st, "reversed", next_reversed);
    if (!g) return false;
    g->subject = *self;
    *out = v_iter(g);
    return true;
}

static bool filter_unique(render *st, const value *self, const parameters *p, value *out)
{
    generator *g = pn_j_generator(st, "generator", next_unique);
    if (!g) return false;
    g->subject = *self;
    g->flag = p->has[0] && pn_j_truth(&p->at[0]);
    g->extra = p->has[1] ? p->at[1] : v_none();
    *out = v_iter(g);
    return true;
}

static bool filter_parts(render *st, const value *self, const parameters *p, value *out)
{
    generator *g = pn_j_generator(st, "generator", p->option ? next_slice : next_batch);
    if (!g || !pn_j_want_int(st, &p->at[0], "a number of items", &g->a)) return false;
    if (g->a > J_MAX_ITEMS) return pn_j_fail(st, "more than %d parts", J_MAX_ITEMS);
    g->subject = *self;
    g->extra = p->has[1] ? p->at[1] : v_none();
    *out = v_iter(g);
    return true;
}

static const builtin rows[] = {
    {"batch", filter_parts, "linecount ? fill_with", 0}, {"items", filter_items, "", 0}, {"map", filter_map, "*", 0}, {"reject", filter_select, "*", REJECT}, {"rejectattr", filter_select, "*", REJECT | BY_ATTRIBUTE},
    {"reverse", filter_reverse, "", 0}, {"select", filter_select, "*", 0}, {"selectattr", filter_select, "*", BY_ATTRIBUTE}, {"slice", filter_parts, "slices ? fill_with", 1},
    {"unique", filter_unique, "? case_sensitive attribute", 0},
};
const filter_table pn_j_lazy_filters = {rows, PN_COUNT(rows)};
