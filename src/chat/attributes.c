/* chat/attributes.c - x.name, x[key] and slices: methods, keys, indexes, and what templates may not touch. */
#include "chat/filters.h"
#include "chat/runtime.h"

static const text no_element = {.data = "such element", .n = 12};

/* ---- attributes of objects -------------------------------------------------------------------- */

static bool is_name(const text *t, const char *s)
{
    return t->n == strlen(s) && !memcmp(t->data, s, t->n);
}

static bool loop_flag(render *st, loop *l, const text *name_of, value *out, bool *found)
{
    value next;
    *found = true;
    if (is_name(name_of, "first")) return ((*out = v_bool(l->index0 == 0)), true);
    if (is_name(name_of, "last")) {
        int more = pn_j_loop_peek(st, l, &next);
        *out = v_bool(more == 0);
        return more >= 0;
    }
    if (is_name(name_of, "previtem")) {
        *out = l->index0 == 0 ? pn_j_undefined_hint(st, "there is no previous item") : l->before;
        return !st->failed;
    }
    if (is_name(name_of, "nextitem")) {
        int more = pn_j_loop_peek(st, l, out);
        if (!more) *out = pn_j_undefined_hint(st, "there is no next item");
        return more >= 0 && !st->failed;
    }
    *found = false;
    return true;
}

bool pn_j_loop_attribute(render *st, loop *l, const text *name_of, value *out, bool *found)
{
    static const struct { const char *name; int64_t sign, offset; bool length; } counters[] = { /* sign x index0 + offset, from the length or not */
        {"index0", 1, 0, false}, {"index", 1, 1, false}, {"revindex0", -1, -1, true}, {"revindex", -1, 0, true}, {"length", 0, 0, true},
    };
    *found = true;
    for (size_t i = 0; i < PN_COUNT(counters); i++) {
        int64_t n = 0;
        if (!is_name(name_of, counters[i].name)) continue;
        if (counters[i].length && !pn_j_loop_length(st, l, &n)) return false;
        *out = v_int(n + counters[i].sign * l->index0 + counters[i].offset);
        return true;
    }
    if (is_name(name_of, "depth0")) return ((*out = v_int(l->depth0)), true);
    if (is_name(name_of, "depth")) return ((*out = v_int(l->depth0 + 1)), true);
    return loop_flag(st, l, name_of, out, found);
}

static bool macro_attribute(render *st, const macro *m, const text *name_of, value *out, bool *found)
{
    const signature *s = m->of->x.signature;
    *found = true;
    if (is_name(name_of, "name")) {
        if (m->of->type != N_MACRO) return ((*out = v_none()), true);
        return pn_j_str_view(st, m->of->name->text.data, m->of->name->text.n, out);
    }
    if (is_name(name_of, "arguments")) {
        list *l = pn_j_list(st, s->parameters.n);
        for (uint32_t i = 0; l && i < s->parameters.n; i++) {
            const text *t = &s->parameters.at[i]->name->text;
            value v;
            if (!pn_j_str_view(st, t->data, t->n, &v) || !pn_j_push(st, l, v)) return false;
        }
        *out = v_tuple(l);
        return l != NULL;
    }
    if (is_name(name_of, "catch_kwargs")) return ((*out = v_bool(s->kwargs >= 0)), true);
    if (is_name(name_of, "catch_varargs")) return ((*out = v_bool(s->varargs >= 0)), true);
    if (is_name(name_of, "caller")) return ((*out = v_bool(s->caller >= 0)), true);
    *found = false;
    return true;
}

static void number_attribute(const value *v, const text *name_of, value *out, bool *found)
{
    bool integer = v->kind != V_FLOAT;
    *found = true;
    if (is_name(name_of, "real") || (integer && is_name(name_of, "numerator"))) *out = integer ? v_int(pn_j_as_int(v)) : *v;
    else if (is_name(name_of, "imag")) *out = integer ? v_int(0) : v_float(0);
    else if (integer && is_name(name_of, "denominator")) *out = v_int(1);
    else *found = false;
}

static void range_attribute(const range *r, const text *name_of, value *out, bool *found)
{
    *found = true;
    if (is_name(name_of, "start")) *out = v_int(r->start);
    else if (is_name(name_of, "stop")) *out = v_int(r->stop);
    else if (is_name(name_of, "step")) *out = v_int(r->step);
    else *found = false;
}

static bool cycler_attribute(render *st, const cycler *c, const text *name_of, value *out, bool *found)
{
    (void)st;
    *found = is_name(name_of, "current") || is_name(name_of, "items");
    if (*found) *out = name_of->data[0] == 'c' ? c->items->items[c->at] : v_tuple(c->items);
    return true;
}

static bool plain_attribute(render *st, const value *self, const text *name_of, value *out, bool *found)
{
    const value *v;
    *found = false;
    switch (self->kind) {
    case V_NAMESPACE:
        v = pn_j_dict_find(self->as.dict, name_of->data, name_of->n);
        if (v) *out = *v;
        *found = v != NULL;
        return true;
    case V_LOOP: return pn_j_loop_attribute(st, self->as.loop, name_of, out, found);
    case V_MACRO: return macro_attribute(st, self->as.macro, name_of, out, found);
    case V_BOOL:
    case V_INT:
    case V_FLOAT: number_attribute(self, name_of, out, found); return true;
    case V_RANGE: range_attribute(self->as.range, name_of, out, found); return true;
    case V_CYCLER: return cycler_attribute(st, self->as.cycler, name_of, out, found);
    case V_TUPLE: /* what groupby makes */
        *found = self->part && (is_name(name_of, "grouper") || is_name(name_of, "list"));
        if (*found) *out = self->as.list->items[name_of->data[0] == 'l'];
        return true;
    default: return true;
    }
}

/* Attributes and methods, not the keys of a dict. */
bool pn_j_own_attribute(render *st, const value *self, const text *name_of, value *out, bool *found)
{
    if (!pn_j_work(st, name_of->n) || !plain_attribute(st, self, name_of, out, found)) return false;
    if (*found) return true;
    const builtin *method = pn_j_method(self, name_of->data, name_of->n);
    if (method) {
        bound_method *bound = pn_j_get(st, 1, sizeof *bound);
        if (!bound) return false;
        *bound = (bound_method){.self = *self, .function = method};
        *out = (value){.kind = V_METHOD, .as.bound = bound};
        *found = true;
        return true;
    }
    *found = pn_j_is_unsafe(self, name_of->data, name_of->n);
    if (*found) *out = pn_j_undefined(U_UNSAFE, name_of, (kind)self->kind);
    return true;
}

bool pn_j_attribute(render *st, const value *self, const text *name_of, value *out)
{
    bool found;
    if (!pn_j_own_attribute(st, self, name_of, out, &found)) return false;
    if (found) return true;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    const value *v = self->kind == V_DICT ? pn_j_dict_find(self->as.dict, name_of->data, name_of->n) : NULL;
    *out = v ? *v : pn_j_undefined(U_ATTRIBUTE, name_of, (kind)self->kind);
    return true;
}

/* ---- items ------------------------------------------------------------------------------------ */

static bool text_item(render *st, const value *self, int64_t i, value *out, bool *found)
{
    text *t = self->as.text;
    int64_t n = (int64_t)pn_j_chars(st, t);
    if (i < 0) i += n;
    *found = i >= 0 && i < n;
    if (!*found) return true;
    size_t from = pn_j_offset(t, (size_t)i), to = pn_j_offset(t, (size_t)i + 1);
    if (t->chars != t->n && !pn_j_work(st, to)) return false;
    return pn_j_slice_text(st, self, from, to, out);
}

static bool indexed(render *st, const value *self, const value *key, value *out, bool *found)
{
    int64_t i = pn_j_as_int(key);
    *found = false;
    if (self->kind == V_STR) return text_item(st, self, i, out, found);
    if (self->kind == V_LIST || self->kind == V_TUPLE) {
        int64_t n = (int64_t)self->as.list->n;
        if (i < 0) i += n;
        *found = i >= 0 && i < n;
        if (*found) *out = self->as.list->items[i];
    } else if (self->kind == V_RANGE) {
        const range *r = self->as.range;
        if (i < 0) i += r->n;
        *found = i >= 0 && i < r->n;
        if (*found) *out = v_int(r->start + i * r->step);
    } else if (self->kind == V_BYTES) {
        int64_t n = self->as.text->n;
        if (i < 0) i += n;
        *found = i >= 0 && i < n;
        if (*found) *out = v_int((unsigned char)self->as.text->data[i]);
    }
    return true;
}

bool pn_j_item(render *st, const value *self, const value *key, value *out)
{
    bool found = false;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (self->kind == V_DICT && pn_j_hashable(key) && !pn_j_dict_get(st, self->as.dict, key, out, &found)) return false;
    if (!found && (key->kind == V_INT || key->kind == V_BOOL) && !indexed(st, self, key, out, &found)) return false;
    if (!found && key->kind == V_STR && !pn_j_own_attribute(st, self, key->as.text, out, &found)) return false;
    if (!found) *out = pn_j_undefined(U_ATTRIBUTE, key->kind == V_STR ? key->as.text : &no_element, (kind)self->kind);
    return true;
}

/* ---- slices ----------------------------------------------------------------------------------- */

typedef struct cut {
    int64_t start, stop, step, n;
} cut;

static bool bound_of(render *st, const value *v, int64_t otherwise, int64_t *out)
{
    *out = otherwise;
    if (v->kind == V_NONE) return true;
    if (v->kind == V_UNDEFINED) return pn_j_fail(st, "a slice bound that is undefined");
    if (v->kind != V_INT && v->kind != V_BOOL) return pn_j_fail(st, "slice bounds are integers or none, not %s", pn_j_type_name(v));
    *out = pn_j_as_int(v);
    return true;
}

static int64_t clamp(int64_t i, int64_t n, int64_t low, int64_t high)
{
    if (i < 0) i = i < -n ? -1 : i + n; /* cannot overflow: n >= 0 */
    return i < low ? low : i > high ? high : i;
}

static bool make_cut(render *st, const value *bounds, int64_t n, cut *out)
{
    int64_t start, stop, step;
    if (!bound_of(st, &bounds[2], 1, &step)) return false;
    if (!step) return pn_j_fail(st, "a slice step of zero");
    if (step < -INT64_MAX) step = -INT64_MAX;
    int64_t low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    if (!bound_of(st, &bounds[0], 0, &start) || !bound_of(st, &bounds[1], 0, &stop)) return false;
    start = bounds[0].kind == V_NONE ? (step < 0 ? high : low) : clamp(start, n, low, high);
    stop = bounds[1].kind == V_NONE ? (step < 0 ? low : high) : clamp(stop, n, low, high);
    int64_t distance = step < 0 ? start - stop : stop - start, size = step < 0 ? -step : step;
    *out = (cut){.start = start, .stop = stop, .step = step, .n = distance > 0 ? (distance - 1) / size + 1 : 0};
    return true;
}

static bool slice_list(render *st, const value *self, const cut *c, value *out)
{
    list *l = pn_j_list(st, (size_t)c->n);
    for (int64_t i = 0; l && i < c->n; i++) l->items[l->n++] = self->as.list->items[c->start + i * c->step];
    *out = self->kind == V_LIST ? v_list(l) : v_tuple(l);
    return l && pn_j_step(st, (uint64_t)c->n);
}

static bool slice_ascii(render *st, const value *self, const cut *c, value *out)
{
    char *data;
    bool marked = self->marked;
    const char *from = self->as.text->data;
    if (!pn_j_str_room(st, (size_t)c->n, &data, out)) return false;
    for (int64_t i = 0; i < c->n; i++) data[i] = from[c->start + i * c->step];
    out->marked = marked;
    return true;
}

/* Characters of several bytes, in steps: their offsets first. */
static bool slice_characters(render *st, const value *self, const cut *c, value *out)
{
    const text *t = self->as.text;
    uint32_t *offsets = pn_j_get(st, (uint64_t)t->chars + 1, sizeof *offsets);
    buffer b = {0};
    bool good = offsets && pn_j_work(st, t->n), marked = self->marked;
    for (size_t i = 0, k = 0; good && i <= t->n; i++) {
        if (i == t->n || ((unsigned char)t->data[i] & 0xc0) != 0x80) offsets[k++] = (uint32_t)i;
    }
    for (int64_t i = 0; good && i < c->n; i++) {
        int64_t at = c->start + i * c->step;
        good = pn_j_put(st, &b, t->data + offsets[at], offsets[at + 1] - offsets[at]);
    }
    good = pn_j_take(st, &b, out) && good;
    out->marked = marked;
    return good;
}

static bool slice_text(render *st, const value *self, const cut *c, value *out)
{
    const text *t = self->as.text;
    if (c->step == 1 || c->n == 0) {
        size_t from = c->n ? pn_j_offset(t, (size_t)c->start) : 0, to = c->n ? pn_j_offset(t, (size_t)(c->start + c->n)) : 0;
        return pn_j_work(st, t->chars == t->n ? 0 : to) && pn_j_slice_text(st, self, from, to, out);
    }
    return t->chars == t->n ? slice_ascii(st, self, c, out) : slice_characters(st, self, c, out);
}

/* Only the places before the end are sure to fit; the end itself may wrap. */
static int64_t range_at(const range *r, int64_t place)
{
    return (int64_t)((uint64_t)r->start + (uint64_t)place * (uint64_t)r->step);
}

static bool slice_range(render *st, const value *self, const cut *c, value *out)
{
    const range *r = self->as.range;
    range *s = pn_j_get(st, 1, sizeof *s);
    if (!s) return false;
    *s = (range){.start = range_at(r, c->start), .stop = range_at(r, c->stop), .n = c->n};
    if (__builtin_mul_overflow(r->step, c->step, &s->step)) return pn_j_fail(st, "a step of a range that is too large");
    *out = (value){.kind = V_RANGE, .as.range = s};
    return true;
}

/* Can it be sliced by these bounds at all? */
bool pn_j_sliceable(const value *self, const value *bounds)
{
    for (int i = 0; i < 3; i++) {
        if (bounds[i].kind != V_NONE && bounds[i].kind != V_INT && bounds[i].kind != V_BOOL) return false;
    }
    return self->kind == V_STR || self->kind == V_LIST || self->kind == V_TUPLE || self->kind == V_RANGE;
}

bool pn_j_slice(render *st, const value *self, const value *bounds, value *out)
{
    int64_t n = 0;
    cut c = {0};
    value from = *self;
    if (self->kind == V_UNDEFINED) return pn_j_undefined_error(st, self);
    if (self->kind != V_STR && self->kind != V_LIST && self->kind != V_TUPLE && self->kind != V_RANGE) return pn_j_fail(st, "a %s cannot be sliced", pn_j_type_name(self));
    if (!pn_j_length(st, self, &n) || !make_cut(st, bounds, n, &c)) return false;
    if (self->kind == V_STR) return slice_text(st, &from, &c, out);
    return self->kind == V_RANGE ? slice_range(st, &from, &c, out) : slice_list(st, &from, &c, out);
}
