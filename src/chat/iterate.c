/* chat/iterate.c - iteration over every kind that can be iterated; one-shot iterators are generators made elsewhere. */
#include "base/utf8.h"
#include "chat/runtime.h"

bool pn_j_iterable(const value *v)
{
    return v->kind == V_UNDEFINED || (v->kind >= V_STR && v->kind <= V_ITER) || v->kind == V_LOOP;
}

bool pn_j_iter(render *st, const value *v, iter *it)
{
    if (!pn_j_iterable(v)) return pn_j_fail(st, "a %s cannot be iterated", pn_j_type_name(v));
    *it = (iter){.source = *v};
    return true;
}

static int next_char(render *st, iter *it, value *out)
{
    const text *t = it->source.as.text;
    if (it->at >= t->n) return 0;
    uint32_t c;
    size_t length = pn_utf8_decode(t->data + it->at, t->n - it->at, &c);
    if (!pn_j_str_view(st, t->data + it->at, length, out)) return -1;
    out->as.text->chars = 1;
    it->at += length;
    return 1;
}

static int next_of_view(render *st, iter *it, value *out)
{
    const dict *d = it->source.as.dict;
    if (it->at >= d->n) return 0;
    size_t i = it->at++;
    view_part part = it->source.kind == V_DICT ? VIEW_KEYS : (view_part)it->source.part;
    if (part == VIEW_ITEMS) return pn_j_pair(st, d->keys[i], d->values[i], out) ? 1 : -1;
    *out = part == VIEW_KEYS ? d->keys[i] : d->values[i];
    return 1;
}

static int next_of_generator(render *st, generator *g, value *out)
{
    if (g->done) return 0;
    if (!pn_j_enter(st)) return -1;
    int more = g->next(st, g, out);
    if (more <= 0) g->done = true;
    pn_j_leave(st);
    return more;
}

/* A loop is an iterator over its own rest, in pairs with itself. */
static int next_of_loop(render *st, const value *self, value *out)
{
    value item;
    int more = pn_j_loop_next(st, self->as.loop, &item);
    return more <= 0 ? more : pn_j_pair(st, item, *self, out) ? 1 : -1;
}

int pn_j_next(render *st, iter *it, value *out)
{
    if (!pn_j_step(st, 1)) return -1;
    switch (it->source.kind) {
    case V_STR: return next_char(st, it, out);
    case V_LIST:
    case V_TUPLE:
        if (it->at >= it->source.as.list->n) return 0;
        *out = it->source.as.list->items[it->at++];
        return 1;
    case V_DICT:
    case V_VIEW: return next_of_view(st, it, out);
    case V_RANGE:
        if (it->at >= (size_t)it->source.as.range->n) return 0;
        *out = v_int(it->source.as.range->start + (int64_t)it->at++ * it->source.as.range->step);
        return 1;
    case V_BYTES:
        if (it->at >= it->source.as.text->n) return 0;
        *out = v_int((unsigned char)it->source.as.text->data[it->at++]);
        return 1;
    case V_ITER: return next_of_generator(st, it->source.as.iter, out);
    case V_LOOP: return next_of_loop(st, &it->source, out);
    default: return 0;
    }
}

bool pn_j_to_list(render *st, const value *v, list **out)
{
    iter it = {0};
    value item;
    int more;
    *out = pn_j_list(st, 0);
    if (!*out || !pn_j_iter(st, v, &it)) return false;
    while ((more = pn_j_next(st, &it, &item)) > 0) {
        if (!pn_j_push(st, *out, item)) return false;
    }
    return more == 0;
}

generator *pn_j_generator(render *st, const char *type, int (*next)(render *, generator *, value *))
{
    generator *g = pn_j_get(st, 1, sizeof *g);
    if (g) *g = (generator){.next = next, .type = type};
    return g;
}
