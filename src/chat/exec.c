/* chat/exec.c - statements: scopes, loops, captures. */
#include "chat/runtime.h"

/* ---- scopes ----------------------------------------------------------------------------------- */

frame *pn_j_frame(render *st, const function *code, frame *parent)
{
    frame *f = pn_j_get(st, 1, sizeof *f);
    if (!f) return NULL;
    *f = (frame){.slots = pn_j_get(st, code->n_slots, sizeof *f->slots), .parent = parent};
    if (!f->slots) return NULL;
    memset(f->slots, 0, code->n_slots * sizeof *f->slots); /* V_MISSING */
    return f;
}

/* The caller's variables, then the globals of the language. */
static value look_up(const render *st, const load *l)
{
    const text *t = &l->name->text;
    if (l->from && st->root->slots[l->from - 1].kind != V_MISSING) return st->root->slots[l->from - 1];
    const value *v = pn_j_dict_find(st->variables, t->data, t->n);
    if (v) return *v;
    const builtin *b = pn_j_global(t->data, t->n);
    return b ? (value){.kind = V_FUNCTION, .as.function = b} : (value){.kind = V_MISSING};
}

bool pn_j_enter_scope(render *st, const scope *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        const load *l = &s->loads[i];
        frame *f = st->frame;
        switch ((load_action)l->action) {
        case LOAD_PARAMETER: break;
        case LOAD_RESOLVE: st->frame->slots[l->slot] = look_up(st, l); break;
        case LOAD_UNDEFINED: st->frame->slots[l->slot] = (value){.kind = V_MISSING}; break;
        case LOAD_ALIAS:
            for (uint16_t k = 0; k < l->hops; k++) f = f->parent;
            st->frame->slots[l->slot] = f->slots[l->from];
            break;
        }
    }
    return pn_j_step(st, s->n);
}

/* ---- captures --------------------------------------------------------------------------------- */

/* Runs a body into a text of its own. */
static flow capture(render *st, const nodes *body, value *out)
{
    buffer b = {0}, *outer = st->out;
    st->out = &b;
    flow how = pn_j_exec(st, body);
    st->out = outer;
    if (!pn_j_take(st, &b, out)) return FLOW_FAILED;
    out->marked = st->autoescape;
    return how;
}

static bool emit(render *st, const value *v)
{
    value escaped;
    if (!st->autoescape) return pn_j_put_value(st, st->out, v);
    return pn_j_escape(st, v, &escaped) && pn_j_put_value(st, st->out, &escaped);
}

static flow ended(bool good)
{
    return good ? FLOW_NEXT : FLOW_FAILED;
}

static flow exec_output(render *st, const node *n)
{
    for (uint32_t i = 0; i < n->items.n; i++) {
        value v;
        if (!pn_j_eval(st, n->items.at[i], &v)) return FLOW_FAILED;
        st->at = n->items.at[i];
        if (!emit(st, &v)) return FLOW_FAILED;
    }
    return FLOW_NEXT;
}

static flow exec_set(render *st, const node *n)
{
    value v;
    return ended(pn_j_eval(st, n->b, &v) && pn_j_assign(st, n->a, &v));
}

static flow exec_set_block(render *st, const node *n)
{
    value v;
    if (!pn_j_enter_scope(st, n->x.scope)) return FLOW_FAILED;
    flow how = capture(st, &n->body, &v);
    if (how != FLOW_NEXT) return how;
    st->captured = v;
    if (n->b && !pn_j_eval(st, n->b, &v)) return FLOW_FAILED;
    return ended(pn_j_assign(st, n->a, &v));
}

static flow exec_filter_block(render *st, const node *n)
{
    value v;
    if (!pn_j_enter_scope(st, n->x.scope)) return FLOW_FAILED;
    flow how = capture(st, &n->body, &v);
    if (how != FLOW_NEXT) return how;
    st->captured = v;
    return ended(pn_j_eval(st, n->a, &v) && emit(st, &v));
}

static flow exec_with(render *st, const node *n)
{
    if (!pn_j_enter_scope(st, n->x.scope)) return FLOW_FAILED;
    for (uint32_t i = 0; i < n->items.n; i++) {
        value v;
        if (!pn_j_eval(st, n->otherwise.at[i], &v) || !pn_j_assign(st, n->items.at[i], &v)) return FLOW_FAILED;
    }
    return pn_j_exec(st, &n->body);
}

static flow exec_autoescape(render *st, const node *n)
{
    value v;
    bool before = st->autoescape;
    if (!pn_j_enter_scope(st, n->x.scope) || !pn_j_eval(st, n->a, &v)) return FLOW_FAILED;
    st->autoescape = pn_j_truth(&v);
    flow how = pn_j_exec(st, &n->body);
    st->autoescape = before;
    return how;
}

static flow exec_if(render *st, const node *n)
{
    for (uint32_t i = 0; i < n->items.n; i++) {
        value test;
        if (!pn_j_eval(st, n->items.at[i], &test)) return FLOW_FAILED;
        if (pn_j_truth(&test)) return pn_j_exec(st, &n->x.bodies[i]);
    }
    return pn_j_exec(st, &n->otherwise);
}

/* ---- loops ------------------------------------------------------------------------------------ */

/* Items of a for block that pass its test. Runs ahead of the body only as far as it is asked to. */
static int next_tested(render *st, generator *g, value *out)
{
    frame *running = st->frame;
    const for_extra *x = g->node->x.loop;
    int more;
    st->frame = g->frame;
    if (!g->started && !pn_j_enter_scope(st, &x->test)) more = -1;
    else more = 1;
    g->started = true;
    while (more > 0 && (more = pn_j_next(st, &g->inner, out)) > 0) {
        value test;
        if (!pn_j_assign(st, x->test_target, out) || !pn_j_eval(st, g->node->c, &test)) more = -1;
        else if (pn_j_truth(&test)) more = pn_j_assigned(st, x->test_target, out) ? 2 : -1;
        if (more == 2) break;
    }
    st->frame = running;
    return more == 2 ? 1 : more;
}

static bool open_items(render *st, const node *n, const value *iterable, iter *items)
{
    if (!pn_j_iter(st, iterable, items)) return false;
    if (!n->c) return true;
    generator *g = pn_j_generator(st, "generator", next_tested);
    if (!g) return false;
    g->inner = *items;
    g->node = n;
    g->frame = st->frame;
    value tested = v_iter(g);
    return pn_j_iter(st, &tested, items);
}

int pn_j_loop_peek(render *st, loop *l, value *out)
{
    if (!l->has_after) {
        int more = pn_j_next(st, &l->items, &l->after);
        if (more <= 0) return more;
        l->has_after = true;
    }
    *out = l->after;
    return 1;
}

int pn_j_loop_next(render *st, loop *l, value *out)
{
    int more = pn_j_loop_peek(st, l, out);
    if (more <= 0) return more;
    l->has_after = false;
    l->before = l->current;
    l->current = *out;
    l->index0++;
    return 1;
}

/* Counting an iterator without a length reads all of it. */
bool pn_j_loop_length(render *st, loop *l, int64_t *n)
{
    if (!l->counted) {
        list *rest;
        if (pn_j_has_length(&l->items.source)) {
            if (!pn_j_length(st, &l->items.source, &l->length)) return false;
        } else {
            if (!pn_j_to_list(st, &l->items.source, &rest)) return false;
            l->length = (int64_t)rest->n + l->index0 + 1 + l->has_after;
            l->items = (iter){.source = v_list(rest)};
        }
        l->counted = true;
    }
    *n = l->length;
    return true;
}

value *pn_j_loop_changed(loop *l)
{
    return &l->changed;
}

/* One iteration; `finished` is set when the body came to its end. */
static flow run_body(render *st, const node *n, const value *item, loop *l, bool *finished)
{
    const for_extra *x = n->x.loop;
    if (!pn_j_assign(st, n->a, item)) return FLOW_FAILED;
    if (x->loop_slot >= 0) st->frame->slots[x->loop_slot] = (value){.kind = V_LOOP, .as.loop = l};
    if (!pn_j_enter_scope(st, &x->body)) return FLOW_FAILED;
    flow how = pn_j_exec(st, &n->body);
    *finished |= how == FLOW_NEXT;
    return how;
}

static loop *new_loop(render *st, const node *n, iter items, int64_t depth0)
{
    loop *l = pn_j_get(st, 1, sizeof *l);
    if (l) *l = (loop){.items = items, .index0 = -1, .depth0 = depth0, .of = n->flag ? n : NULL, .frame = n->flag ? st->frame->parent : NULL};
    return l;
}

bool pn_j_run_for(render *st, const node *n, const value *iterable, int64_t depth0, flow *how)
{
    iter items;
    loop *l = NULL;
    value item;
    bool finished = false;
    int more;
    *how = FLOW_NEXT;
    st->at = n;
    if (!open_items(st, n, iterable, &items)) return false;
    if (n->x.loop->loop_slot >= 0 && !(l = new_loop(st, n, items, depth0))) return false;
    while ((more = l ? pn_j_loop_next(st, l, &item) : pn_j_next(st, &items, &item)) > 0) {
        flow step = run_body(st, n, &item, l, &finished);
        if (step == FLOW_FAILED) return false;
        if (step == FLOW_BREAK) break;
    }
    if (more < 0) return false;
    if (finished || !n->otherwise.n) return true;
    if (!pn_j_enter_scope(st, &n->x.loop->otherwise)) return false;
    *how = pn_j_exec(st, &n->otherwise);
    return *how != FLOW_FAILED;
}

static flow exec_for(render *st, const node *n)
{
    value iterable, rendered;
    flow how;
    if (!pn_j_eval(st, n->b, &iterable)) return FLOW_FAILED;
    if (!n->flag) return pn_j_run_for(st, n, &iterable, 0, &how) ? how : FLOW_FAILED;
    loop outermost = {.of = n, .frame = st->frame, .depth0 = -1};
    arguments args = {.items = &iterable, .n = 1};
    return ended(pn_j_recurse(st, &outermost, &args, &rendered) && emit(st, &rendered));
}

/* ---- macros and blocks ------------------------------------------------------------------------ */

static bool new_macro(render *st, const node *n, value *out)
{
    macro *m = pn_j_get(st, 1, sizeof *m);
    if (!m) return false;
    *m = (macro){.of = n, .frame = st->frame};
    *out = (value){.kind = V_MACRO, .as.macro = m};
    return true;
}

static flow exec_macro(render *st, const node *n)
{
    value v;
    return ended(new_macro(st, n, &v) && pn_j_assign(st, n->a, &v));
}

static flow exec_call_block(render *st, const node *n)
{
    value caller, callee, v;
    arguments args;
    if (!new_macro(st, n, &caller) || !pn_j_eval(st, n->a->a, &callee) || !pn_j_arguments(st, n->a->x.arguments, &caller, &args)) return FLOW_FAILED;
    st->at = n->a;
    return ended(pn_j_call(st, &callee, &args, &v) && emit(st, &v));
}

static flow exec_generation(render *st, const node *n)
{
    value caller, v;
    arguments none = {0};
    return ended(new_macro(st, n, &caller) && pn_j_call(st, &caller, &none, &v) && emit(st, &v));
}

static flow exec_block(render *st, const node *n)
{
    frame *outer = st->frame, *f = pn_j_frame(st, n->x.code, n->flag ? outer : NULL);
    if (!f) return FLOW_FAILED;
    st->frame = f;
    flow how = pn_j_enter_scope(st, &n->x.code->scope) ? pn_j_exec(st, &n->body) : FLOW_FAILED;
    st->frame = outer;
    return how;
}

static flow exec_node(render *st, const node *n)
{
    switch ((node_type)n->type) {
    case N_DATA: return ended(pn_j_put(st, st->out, n->constant.as.text->data, n->constant.as.text->n));
    case N_OUTPUT: return exec_output(st, n);
    case N_FOR: return exec_for(st, n);
    case N_IF: return exec_if(st, n);
    case N_SET: return exec_set(st, n);
    case N_SET_BLOCK: return exec_set_block(st, n);
    case N_MACRO: return exec_macro(st, n);
    case N_CALL_BLOCK: return exec_call_block(st, n);
    case N_GENERATION: return exec_generation(st, n);
    case N_FILTER_BLOCK: return exec_filter_block(st, n);
    case N_WITH: return exec_with(st, n);
    case N_BLOCK: return exec_block(st, n);
    case N_AUTOESCAPE: return exec_autoescape(st, n);
    case N_BREAK: return FLOW_BREAK;
    case N_CONTINUE: return FLOW_CONTINUE;
    default: return ended(pn_j_fail(st, "there are no other templates to include"));
    }
}

flow pn_j_exec(render *st, const nodes *body)
{
    if (!pn_j_enter(st)) return FLOW_FAILED;
    flow how = FLOW_NEXT;
    for (uint32_t i = 0; how == FLOW_NEXT && i < body->n; i++) {
        st->at = body->at[i];
        how = pn_j_step(st, 1) ? exec_node(st, body->at[i]) : FLOW_FAILED;
    }
    pn_j_leave(st);
    return how;
}

bool pn_j_run(render *st)
{
    st->root = pn_j_frame(st, &st->code->root, NULL);
    st->frame = st->root;
    return st->frame && pn_j_enter_scope(st, &st->code->root.scope) && pn_j_exec(st, &st->code->body) == FLOW_NEXT;
}
