/* chat/globals.c - the functions that every template sees. */
#include "chat/texts.h"

static bool check_attribute(render *st, const text *t)
{
    return !t->n || t->data[0] != '_' || pn_j_fail(st, "a namespace takes no attribute that begins with '_', such as '%.*s'", (int)(t->n < 60 ? t->n : 60), t->data);
}

static bool add_pair(render *st, dict *d, const value *pair)
{
    list *l;
    if (!pn_j_to_list(st, pair, &l)) return false;
    if (l->n != 2) return pn_j_fail(st, "a dict is made of pairs, not of %zu values", l->n);
    return pn_j_dict_set(st, d, l->items[0], l->items[1]);
}

/* dict(mapping or pairs, keywords) */
static bool fill_dict(render *st, dict *d, const arguments *args)
{
    iter it = {0};
    value item;
    int more = 0;
    if (args->n > 1) return pn_j_fail(st, "at most one argument without a keyword is expected, not %zu", args->n);
    if (args->n && args->items[0].kind == V_DICT) {
        const dict *from = args->items[0].as.dict;
        for (size_t i = 0; i < from->n; i++) {
            if (!pn_j_dict_set(st, d, from->keys[i], from->values[i])) return false;
        }
    } else if (args->n && args->items[0].kind == V_UNDEFINED) {
        return pn_j_undefined_error(st, &args->items[0]);
    } else if (args->n) {
        if (!pn_j_iter(st, &args->items[0], &it)) return false;
        while ((more = pn_j_next(st, &it, &item)) > 0) {
            if (!add_pair(st, d, &item)) return false;
        }
    }
    for (size_t i = 0; more >= 0 && i < args->n_named; i++) {
        if (!pn_j_str_view(st, args->names[i]->data, args->names[i]->n, &item) || !pn_j_dict_set(st, d, item, args->named[i])) return false;
    }
    return more >= 0;
}

static bool make_dict(render *st, const value *self, const parameters *p, value *out)
{
    dict *d = pn_j_dict(st, p->all->n_named);
    (void)self;
    *out = (value){.kind = V_DICT, .as.dict = d};
    return d && fill_dict(st, d, p->all);
}

static bool make_namespace(render *st, const value *self, const parameters *p, value *out)
{
    if (!make_dict(st, self, p, out)) return false;
    for (size_t i = 0; i < out->as.dict->n; i++) {
        if (out->as.dict->keys[i].kind == V_STR && !check_attribute(st, out->as.dict->keys[i].as.text)) return false;
    }
    out->kind = V_NAMESPACE;
    return true;
}

static bool make_range(render *st, const value *self, const parameters *p, value *out)
{
    int64_t numbers[3] = {0, 0, 1};
    (void)self;
    for (int i = 0; i < 3; i++) {
        if (p->has[i] && !pn_j_want_int(st, &p->at[i], "an argument of range()", &numbers[i])) return false;
    }
    if (!p->has[1]) {
        numbers[1] = numbers[0];
        numbers[0] = 0;
    }
    if (!numbers[2]) return pn_j_fail(st, "a range with a step of zero");
    bool up = numbers[2] > 0;
    uint64_t low = (uint64_t)numbers[up ? 0 : 1], high = (uint64_t)numbers[up ? 1 : 0], step = up ? (uint64_t)numbers[2] : 0 - (uint64_t)numbers[2];
    uint64_t n = (up ? numbers[0] < numbers[1] : numbers[1] < numbers[0]) ? (high - low - 1) / step + 1 : 0;
    if (n > J_MAX_ITEMS) return pn_j_fail(st, "a range of more than %d items", J_MAX_ITEMS);
    range *r = pn_j_get(st, 1, sizeof *r);
    if (!r) return false;
    *r = (range){.start = numbers[0], .stop = numbers[1], .step = numbers[2], .n = (int64_t)n};
    *out = (value){.kind = V_RANGE, .as.range = r};
    return true;
}

static bool raise_exception(render *st, const value *self, const parameters *p, value *out)
{
    value message;
    (void)self;
    (void)out;
    return pn_j_to_text(st, &p->at[0], &message) && pn_j_raise(st, message.as.text);
}

static bool strftime_now(render *st, const value *self, const parameters *p, value *out)
{
    (void)self;
    return pn_j_want_str(st, &p->at[0], "a date format") && pn_j_strftime(st, p->at[0].as.text, out);
}

static bool make_cycler(render *st, const value *self, const parameters *p, value *out)
{
    cycler *c = pn_j_get(st, 1, sizeof *c);
    list *l = c ? pn_j_list(st, p->all->n) : NULL;
    (void)self;
    if (!l) return false;
    if (!p->all->n) return pn_j_fail(st, "a cycler needs items");
    for (size_t i = 0; i < p->all->n; i++) l->items[l->n++] = p->all->items[i];
    *c = (cycler){.items = l};
    *out = (value){.kind = V_CYCLER, .as.cycler = c};
    return true;
}

static bool make_joiner(render *st, const value *self, const parameters *p, value *out)
{
    cycler *c = pn_j_get(st, 1, sizeof *c);
    (void)self;
    if (!c) return false;
    *c = (cycler){.separator = p->at[0]};
    if (!p->has[0] && !pn_j_str_view(st, ", ", 2, &c->separator)) return false;
    *out = (value){.kind = V_JOINER, .as.cycler = c};
    return true;
}

bool pn_j_call_joiner(render *st, cycler *joiner, const arguments *args, value *out)
{
    if (args->n || args->n_named) return pn_j_fail(st, "a joiner takes no arguments");
    if (joiner->used) *out = joiner->separator;
    else if (!pn_j_str_view(st, "", 0, out)) return false;
    joiner->used = true;
    return true;
}

const builtin *pn_j_global(const char *name_of, size_t n)
{
    static const builtin globals[] = {
        {"namespace", make_namespace, "*", 0}, {"range", make_range, "/ start ? stop step", 0}, {"raise_exception", raise_exception, "message", 0},
        {"strftime_now", strftime_now, "format", 0}, {"dict", make_dict, "*", 0}, {"cycler", make_cycler, "*", 0}, {"joiner", make_joiner, "? sep", 0},
    };
    for (size_t i = 0; i < PN_COUNT(globals); i++) {
        if (strlen(globals[i].name) == n && !memcmp(globals[i].name, name_of, n)) return &globals[i];
    }
    return NULL;
}
