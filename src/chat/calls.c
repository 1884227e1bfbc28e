/* chat/calls.c - arguments, macros, recursive loops and the functions of the language. */
#include "chat/runtime.h"

/* ---- arguments -------------------------------------------------------------------------------- */

static bool add_named(render *st, arguments *out, const text *key, const value *v)
{
    for (size_t i = 0; i < out->n_named; i++) {
        if (out->names[i]->n == key->n && !memcmp(out->names[i]->data, key->data, key->n)) return pn_j_fail(st, "the keyword argument '%.*s' is given twice", (int)key->n, key->data);
    }
    out->names[out->n_named] = key;
    out->named[out->n_named++] = *v;
    return pn_j_step(st, out->n_named);
}

static bool eval_positional(render *st, const call_arguments *a, arguments *out)
{
    list *l = pn_j_list(st, a->items.n);
    value v;
    if (!l) return false;
    for (uint32_t i = 0; i < a->items.n; i++) {
        if (!pn_j_eval(st, a->items.at[i], &v) || !pn_j_push(st, l, v)) return false;
    }
    if (a->star) {
        iter it;
        int more;
        if (!pn_j_eval(st, a->star, &v) || !pn_j_iter(st, &v, &it)) return false;
        while ((more = pn_j_next(st, &it, &v)) > 0) {
            if (!pn_j_push(st, l, v)) return false;
        }
        if (more < 0) return false;
    }
    out->items = l->items;
    out->n = l->n;
    return true;
}

static bool add_mapping(render *st, const value *mapping, arguments *out)
{
    const dict *d = mapping->as.dict;
    for (size_t i = 0; i < d->n; i++) {
        if (d->keys[i].kind != V_STR) return pn_j_fail(st, "keywords must be str, not %s", pn_j_type_name(&d->keys[i]));
        if (!add_named(st, out, d->keys[i].as.text, &d->values[i])) return false;
    }
    return true;
}

/* `caller`: of a call block, or NULL. */
bool pn_j_arguments(render *st, const call_arguments *a, const value *caller, arguments *out)
{
    static const text caller_name = {.data = "caller", .n = 6, .chars = 6};
    value mapping = v_none();
    *out = (arguments){0};
    if (!a->items.n && !a->named.n && !a->star && !a->star_star && !caller) return true;
    if (!eval_positional(st, a, out)) return false;
    value *named = pn_j_get(st, a->named.n + 1, sizeof *named);
    for (uint32_t i = 0; named && i < a->named.n; i++) {
        if (!pn_j_eval(st, a->named.at[i], &named[i])) return false;
    }
    if (!named || (a->star_star && !pn_j_eval(st, a->star_star, &mapping))) return false;
    if (a->star_star && mapping.kind != V_DICT) return pn_j_fail(st, "a mapping is needed behind **, not a %s", pn_j_type_name(&mapping));
    size_t more = a->named.n + (a->star_star ? mapping.as.dict->n : 0) + 1;
    out->names = pn_j_get(st, more, sizeof *out->names);
    out->named = out->names ? pn_j_get(st, more, sizeof *out->named) : NULL;
    if (!out->named) return false;
    for (uint32_t i = 0; i < a->named.n; i++) {
        if (!add_named(st, out, &a->names[i]->text, &named[i])) return false;
    }
    if (caller && !add_named(st, out, &caller_name, caller)) return false;
    return !a->star_star || add_mapping(st, &mapping, out);
}

/* ---- macros ----------------------------------------------------------------------------------- */

static bool enter_call(render *st)
{
    if (st->calls >= J_MAX_CALLS) return pn_j_fail(st, "calls nested deeper than %d", J_MAX_CALLS);
    st->calls++;
    return true;
}

static bool take_named(const arguments *args, bool *used, const text *key, value *out)
{
    for (size_t i = 0; i < args->n_named; i++) {
        if (used[i] || args->names[i]->n != key->n || memcmp(args->names[i]->data, key->data, key->n)) continue;
        used[i] = true;
        *out = args->named[i];
        return true;
    }
    return false;
}

static bool set_rest(render *st, const macro *m, const arguments *args, const bool *used, frame *f)
{
    const signature *s = m->of->x.signature;
    dict *d = pn_j_dict(st, 0);
    list *l = pn_j_list(st, 0);
    if (!d || !l) return false;
    for (size_t i = 0; i < args->n_named; i++) {
        if (used[i]) continue;
        if (s->kwargs < 0) return pn_j_fail(st, "a macro has no parameter '%.*s'", (int)args->names[i]->n, args->names[i]->data);
        value key = v_text((text *)(uintptr_t)args->names[i]);
        if (!pn_j_dict_set(st, d, key, args->named[i])) return false;
    }
    for (size_t i = s->parameters.n; i < args->n; i++) {
        if (s->varargs < 0) return pn_j_fail(st, "a macro takes %u arguments, not %zu", (unsigned)s->parameters.n, args->n);
        if (!pn_j_push(st, l, args->items[i])) return false;
    }
    if (s->kwargs >= 0) f->slots[s->kwargs] = (value){.kind = V_DICT, .as.dict = d};
    if (s->varargs >= 0) f->slots[s->varargs] = v_tuple(l);
    return true;
}

static bool bind(render *st, const macro *m, const arguments *args, frame *f)
{
    static const text caller_name = {.data = "caller", .n = 6, .chars = 6};
    const signature *s = m->of->x.signature;
    bool *used = pn_j_get(st, args->n_named + 1, 1);
    if (!used) return false;
    memset(used, 0, args->n_named + 1);
    for (uint32_t i = 0; i < s->parameters.n; i++) {
        const node *p = s->parameters.at[i];
        if (i < args->n) f->slots[p->slot] = args->items[i];
        else take_named(args, used, &p->name->text, &f->slots[p->slot]);
    }
    if (s->caller >= 0 && !take_named(args, used, &caller_name, &f->slots[s->caller])) f->slots[s->caller] = pn_j_undefined_hint(st, "no caller was given");
    return set_rest(st, m, args, used, f);
}

/* Defaults are evaluated in the macro's own scope, in order, so that they see earlier parameters. */
static bool fill_defaults(render *st, const signature *s)
{
    for (uint32_t i = 0; i < s->parameters.n; i++) {
        value *slot = &st->frame->slots[s->parameters.at[i]->slot];
        if (slot->kind != V_MISSING) continue;
        value v = pn_j_undefined_hint(st, "a parameter was not given");
        if (i + s->defaults.n >= s->parameters.n && !pn_j_eval(st, s->defaults.at[i + s->defaults.n - s->parameters.n], &v)) return false;
        *slot = v;
    }
    return !st->failed;
}

bool pn_j_call_macro(render *st, const macro *m, const arguments *args, value *out)
{
    const signature *s = m->of->x.signature;
    frame *outer = st->frame, *f = pn_j_frame(st, &s->code, m->frame);
    buffer b = {0}, *outer_out = st->out;
    if (!f || !bind(st, m, args, f) || !enter_call(st)) return false;
    st->frame = f;
    st->out = &b;
    bool good = pn_j_enter_scope(st, &s->code.scope) && fill_defaults(st, s) && pn_j_exec(st, &m->of->body) == FLOW_NEXT;
    st->frame = outer;
    st->out = outer_out;
    st->calls--;
    good = pn_j_take(st, &b, out) && good;
    out->marked = st->autoescape;
    return good;
}

bool pn_j_recurse(render *st, const loop *l, const arguments *args, value *out)
{
    if (!l->of) return pn_j_fail(st, "only a loop marked recursive can be called");
    if (args->n != 1 || args->n_named) return pn_j_fail(st, "a loop is called with one argument");
    frame *outer = st->frame, *f = pn_j_frame(st, &l->of->x.loop->code, l->frame);
    buffer b = {0}, *outer_out = st->out;
    flow how;
    if (!f || !enter_call(st)) return false;
    st->frame = f;
    st->out = &b;
    bool good = pn_j_run_for(st, l->of, &args->items[0], l->depth0 + 1, &how);
    st->frame = outer;
    st->out = outer_out;
    st->calls--;
    good = pn_j_take(st, &b, out) && good;
    out->marked = st->autoescape;
    return good;
}

/* ---- functions of the language ------------------------------------------------------------------ */

typedef struct takes { /* reads the list of parameters of a builtin */
    const char *at;
    bool optional, nameless;
} takes;

static bool next_parameter(takes *t, const char **word, size_t *n)
{
    for (;;) {
        while (*t->at == ' ') t->at++;
        if (!*t->at) return false;
        *word = t->at;
        *n = strcspn(t->at, " ");
        t->at += *n;
        if (*n == 1 && **word == '?') t->optional = true;
        else if (*n == 1 && **word == '/') t->nameless = true;
        else return true;
    }
}

static bool find_named(const arguments *args, const char *word, size_t n, size_t *place)
{
    for (*place = 0; *place < args->n_named; ++*place) {
        if (args->names[*place]->n == n && !memcmp(args->names[*place]->data, word, n)) return true;
    }
    return false;
}

static bool bind_builtin(render *st, const builtin *b, const arguments *args, parameters *p)
{
    takes t = {.at = b->takes};
    const char *word;
    size_t n, i = 0, by_name = 0, place = 0;
    for (; next_parameter(&t, &word, &n); i++) {
        bool named = !t.nameless && find_named(args, word, n, &place);
        if (i < args->n && named) return pn_j_fail(st, "%s() got '%.*s' twice", b->name, (int)n, word);
        p->has[i] = i < args->n || named;
        if (!p->has[i] && !t.optional) return pn_j_fail(st, "%s() needs the argument '%.*s'", b->name, (int)n, word);
        if (p->has[i]) p->at[i] = i < args->n ? args->items[i] : args->named[place];
        by_name += named;
    }
    if (args->n > i) return pn_j_fail(st, "%s() takes at most %zu arguments, not %zu", b->name, i, args->n);
    return by_name == args->n_named || pn_j_fail(st, "%s() got a keyword argument that it does not have", b->name);
}

bool pn_j_call_builtin(render *st, const builtin *b, const value *self, const arguments *args, value *out)
{
    parameters p = {.all = args};
    if (strcmp(b->takes, "*") && !bind_builtin(st, b, args, &p)) return false;
    p.option = b->option;
    return b->call(st, self, &p, out) && !st->failed;
}

bool pn_j_call(render *st, const value *callee, const arguments *args, value *out)
{
    if (!pn_j_enter(st)) return false;
    bool good = false;
    switch (callee->kind) {
    case V_FUNCTION: good = pn_j_call_builtin(st, callee->as.function, callee, args, out); break;
    case V_METHOD: good = pn_j_call_builtin(st, callee->as.bound->function, &callee->as.bound->self, args, out); break;
    case V_MACRO: good = pn_j_call_macro(st, callee->as.macro, args, out); break;
    case V_LOOP: good = pn_j_recurse(st, callee->as.loop, args, out); break;
    case V_JOINER: good = pn_j_call_joiner(st, callee->as.cycler, args, out); break;
    case V_UNDEFINED: good = pn_j_undefined_error(st, callee); break;
    default: good = pn_j_fail(st, "a %s cannot be called", pn_j_type_name(callee)); break;
    }
    pn_j_leave(st);
    return good;
}
