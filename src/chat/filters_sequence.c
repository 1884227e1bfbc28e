/* chat/filters_sequence.c - filters that take a sequence at once. */
#include "chat/filters.h"

/* ---- paths ------------------------------------------------------------------------------------ */

static bool path_part(render *st, const char *s, size_t n, value *out)
{
    int64_t i;
    bool overflow;
    for (size_t k = 0; k < n; k++) {
        if (s[k] < '0' || s[k] > '9') return pn_j_str_view(st, s, n, out);
    }
    if (!n || !pn_j_parse_int(s, n, 10, &i, &overflow) || overflow) return pn_j_str_view(st, s, n, out);
    *out = v_int(i);
    return true;
}

static bool path_step(render *st, const value *key, const value *otherwise, value *item)
{
    value self = *item;
    if (!pn_j_item(st, &self, key, item)) return false;
    if (otherwise && otherwise->kind != V_NONE && item->kind == V_UNDEFINED) *item = *otherwise;
    return true;
}

bool pn_j_path(render *st, const value *item, const value *path, const value *otherwise, value *out)
{
    *out = *item;
    if (path->kind == V_NONE) return true;
    if (path->kind != V_STR) return path_step(st, path, otherwise, out);
    const text *t = path->as.text;
    for (size_t at = 0; at <= t->n;) {
        size_t end = at;
        value key;
        while (end < t->n && t->data[end] != '.') end++;
        if (!path_part(st, t->data + at, end - at, &key) || !path_step(st, &key, otherwise, out)) return false;
        at = end + 1;
    }
    return true;
}

bool pn_j_fold_case(render *st, const value *v, value *out)
{
    if (v->kind == V_STR) return pn_j_case(st, v, CASE_LOWER, out);
    *out = *v;
    return true;
}

/* ---- first, last, list, join, sum ---------------------------------------------------------------- */

static bool filter_first(render *st, const value *self, const parameters *p, value *out)
{
    iter it = {0};
    (void)p;
    if (!pn_j_iter(st, self, &it)) return false;
    int more = pn_j_next(st, &it, out);
    if (!more) *out = pn_j_undefined_hint(st, "no first item of an empty sequence");
    return more >= 0;
}

static bool filter_last(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    (void)p;
    if (self->kind == V_ITER || self->kind == V_BYTES) return pn_j_fail(st, "last needs a sequence, not a %s", pn_j_type_name(self));
    if (self->kind == V_STR && self->as.text->n) {
        value place = v_int(-1);
        value plain = *self;
        plain.marked = false;
        return pn_j_item(st, &plain, &place, out);
    }
    if (!pn_j_to_list(st, self, &l)) return false;
    *out = l->n ? l->items[l->n - 1] : pn_j_undefined_hint(st, "no last item of an empty sequence");
    return true;
}

static bool filter_list(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    (void)p;
    if (!pn_j_to_list(st, self, &l)) return false;
    *out = v_list(l);
    return true;
}

/* Under autoescape a marked item or separator makes the whole safe and escapes the others. */
static bool escape_parts(render *st, value *separator, list *l, bool *marked)
{
    *marked = separator->marked;
    for (size_t i = 0; i < l->n; i++) *marked |= l->items[i].marked;
    if (!*marked) return true;
    if (!pn_j_escape(st, separator, separator)) return false;
    for (size_t i = 0; i < l->n; i++) {
        if (!pn_j_escape(st, &l->items[i], &l->items[i])) return false;
    }
    return true;
}

static bool filter_join(render *st, const value *self, const parameters *p, value *out)
{
    list *l;
    value separator;
    bool marked = false;
    if (p->has[0] ? !pn_j_to_text(st, &p->at[0], &separator) : !pn_j_str_view(st, "", 0, &separator)) return false;
    if (!pn_j_to_list(st, self, &l)) return false;
    for (size_t i = 0; i < l->n; i++) {
        value item = l->items[i];
        if (pn_j_given(p, 1) && !pn_j_path(st, &l->items[i], &p->at[1], NULL, &item)) return false;
        if (!pn_j_to_text(st, &item, &l->items[i])) return false;
    }
    if (st->autoescape && !escape_parts(st, &separator, l, &marked)) return false;
    if (!pn_j_join(st, separator.as.text, l, out)) return false;
    out->marked = marked;
    return true;
}

static bool filter_sum(render *st, const value *self, const parameters *p, value *out)
{
    iter it = {0};
    value item, total = p->has[1] ? p->at[1] : v_int(0);
    int more;
    if (total.kind == V_STR) return pn_j_fail(st, "sum cannot add str: use join");
    if (!pn_j_iter(st, self, &it)) return false;
    while ((more = pn_j_next(st, &it, &item)) > 0) {
        value part = item, before = total;
        if (pn_j_given(p, 0) && !pn_j_path(st, &item, &p->at[0], NULL, &part)) return false;
        if (!pn_j_binary(st, OP_ADD, &before, &part, &total)) return false;
    }
    *out = total;
    return more == 0;
}

static const builtin rows[] = {
    {"first", filter_first, "", 0}, {"join", filter_join, "? d attribute", 0}, {"last", filter_last, "", 0}, {"list", filter_list, "", 0}, {"sum", filter_sum, "? attribute start", 0},
};
const filter_table pn_j_sequence_filters = {rows, PN_COUNT(rows)};
