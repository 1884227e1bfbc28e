/* chat/eval.c - expressions. Statements are in exec.c, calls in calls.c. */
#include "chat/runtime.h"

static value *variable(render *st, const node *n)
{
    frame *f = st->frame;
    for (uint16_t i = 0; i < n->hops; i++) f = f->parent;
    return &f->slots[n->slot];
}

static bool eval_name(render *st, const node *n, value *out)
{
    *out = *variable(st, n);
    if (out->kind == V_MISSING) *out = pn_j_undefined(U_NAME, &n->name->text, V_NONE);
    return true;
}

static bool eval_items(render *st, const nodes *items, list **out)
{
    *out = pn_j_list(st, items->n);
    for (uint32_t i = 0; *out && i < items->n; i++) {
        value v;
        if (!pn_j_eval(st, items->at[i], &v) || !pn_j_push(st, *out, v)) return false;
    }
    return *out != NULL;
}

static bool eval_sequence(render *st, const node *n, value *out)
{
    list *l;
    if (!eval_items(st, &n->items, &l)) return false;
    *out = n->type == N_LIST ? v_list(l) : v_tuple(l);
    return true;
}

static bool eval_dict(render *st, const node *n, value *out)
{
    dict *d = pn_j_dict(st, n->items.n / 2);
    for (uint32_t i = 0; d && i < n->items.n; i += 2) {
        value key, v;
        if (!pn_j_eval(st, n->items.at[i], &key) || !pn_j_eval(st, n->items.at[i + 1], &v) || !pn_j_dict_set(st, d, key, v)) return false;
    }
    *out = (value){.kind = V_DICT, .as.dict = d};
    return d != NULL;
}

static bool eval_condition(render *st, const node *n, value *out)
{
    value test;
    if (!pn_j_eval(st, n->a, &test)) return false;
    if (pn_j_truth(&test)) return pn_j_eval(st, n->b, out);
    if (n->c) return pn_j_eval(st, n->c, out);
    *out = pn_j_undefined_hint(st, "an inline if was false and has no else");
    return !st->failed;
}

static bool eval_logic(render *st, const node *n, value *out)
{
    if (!pn_j_eval(st, n->a, out)) return false;
    return pn_j_truth(out) == (n->type == N_OR) || pn_j_eval(st, n->b, out);
}

static bool eval_not(render *st, const node *n, value *out)
{
    if (!pn_j_eval(st, n->a, out)) return false;
    *out = v_bool(!pn_j_truth(out));
    return true;
}

static bool eval_compare(render *st, const node *n, value *out)
{
    value left, right;
    bool result = true;
    if (!pn_j_eval(st, n->a, &left)) return false;
    for (uint32_t i = 0; result && i < n->items.n; i++) {
        const node *operand = n->items.at[i];
        if (!pn_j_eval(st, operand->a, &right)) return false;
        st->at = operand;
        if (!pn_j_compare(st, (operator)operand->op, &left, &right, &result)) return false;
        left = right;
    }
    *out = v_bool(result);
    return true;
}

static bool eval_binary(render *st, const node *n, value *out)
{
    value left, right;
    if (!pn_j_eval(st, n->a, &left) || !pn_j_eval(st, n->b, &right)) return false;
    st->at = n;
    return pn_j_binary(st, (operator)n->op, &left, &right, out);
}

/* "~" joins texts; only under autoescape a marked one makes it escape the others. */
static bool eval_concat(render *st, const node *n, value *out)
{
    list *l;
    bool marked = false;
    if (!eval_items(st, &n->items, &l)) return false;
    for (size_t i = 0; i < l->n; i++) marked |= l->items[i].marked;
    marked = marked && st->autoescape;
    for (size_t i = 0; i < l->n; i++) {
        value part;
        if (!(marked ? pn_j_escape(st, &l->items[i], &part) : pn_j_to_text(st, &l->items[i], &part))) return false;
        if (!i) *out = part;
        else if (!pn_j_concat(st, out, &part, out)) return false;
    }
    out->marked = marked;
    return true;
}

static bool eval_sign(render *st, const node *n, value *out)
{
    value v;
    if (!pn_j_eval(st, n->a, &v)) return false;
    st->at = n;
    if (n->type == N_NEGATE) return pn_j_negate(st, &v, out);
    if (v.kind == V_UNDEFINED) return pn_j_undefined_error(st, &v);
    if (!pn_j_is_number(&v) && v.kind != V_BIG) return pn_j_fail(st, "a %s has no sign", pn_j_type_name(&v));
    *out = v.kind == V_BOOL ? v_int(v.as.boolean) : v;
    return true;
}

static bool eval_library(render *st, const node *n, value *out)
{
    value subject = st->captured;
    arguments args;
    if (n->a && !pn_j_eval(st, n->a, &subject)) return false;
    if (!pn_j_arguments(st, n->x.arguments, NULL, &args)) return false;
    st->at = n;
    if (!n->builtin) return pn_j_fail(st, "no %s named '%.*s'", n->type == N_FILTER ? "filter" : "test", (int)n->name->text.n, n->name->text.data);
    return pn_j_call_builtin(st, n->builtin, &subject, &args, out);
}

static bool eval_attribute(render *st, const node *n, value *out)
{
    value self;
    if (!pn_j_eval(st, n->a, &self)) return false;
    st->at = n;
    if (!pn_j_attribute(st, &self, &n->name->text, out)) return false;
    /* append and pop are for lists that a variable holds (the reference refuses them all) */
    if (n->a->type == N_LIST && pn_j_is_change(out)) *out = pn_j_undefined(U_UNSAFE, &n->name->text, V_LIST);
    return true;
}

/* The reference computes what is constant when it compiles, by a way on which a wrong slice is undefined rather than an error. */
static bool is_constant(const node *n)
{
    for (uint32_t i = 0; i < n->items.n; i++) {
        if (!is_constant(n->items.at[i])) return false;
    }
    switch ((node_type)n->type) {
    case N_CONST:
    case N_LIST:
    case N_TUPLE:
    case N_DICT:
    case N_CONCAT: return true;
    case N_NEGATE:
    case N_PLUS:
    case N_NOT: return is_constant(n->a);
    case N_BINARY: return is_constant(n->a) && is_constant(n->b);
    case N_SLICE: return is_constant(n->a) && is_constant(n->b) && is_constant(n->c);
    default: return false;
    }
}

static bool eval_item(render *st, const node *n, value *out)
{
    value self, key, bounds[3];
    if (!pn_j_eval(st, n->a, &self)) return false;
    if (n->b->type == N_SLICE) {
        const node *parts[] = {n->b->a, n->b->b, n->b->c};
        for (int i = 0; i < 3; i++) {
            if (!pn_j_eval(st, parts[i], &bounds[i])) return false;
        }
        st->at = n;
        if (pn_j_sliceable(&self, bounds) || !is_constant(n->a) || !is_constant(n->b)) return pn_j_slice(st, &self, bounds, out);
        *out = pn_j_undefined_hint(st, "a constant that cannot be sliced");
        return !st->failed;
    }
    if (!pn_j_eval(st, n->b, &key)) return false;
    st->at = n;
    return pn_j_item(st, &self, &key, out);
}

static bool eval_call(render *st, const node *n, value *out)
{
    value callee;
    arguments args;
    if (!pn_j_eval(st, n->a, &callee) || !pn_j_arguments(st, n->x.arguments, NULL, &args)) return false;
    st->at = n;
    return pn_j_call(st, &callee, &args, out);
}

static bool eval_node(render *st, const node *n, value *out)
{
    switch ((node_type)n->type) {
    case N_CONST: *out = n->constant; return true;
    case N_NAME: return eval_name(st, n, out);
    case N_TUPLE:
    case N_LIST: return eval_sequence(st, n, out);
    case N_DICT: return eval_dict(st, n, out);
    case N_CONDITION: return eval_condition(st, n, out);
    case N_OR:
    case N_AND: return eval_logic(st, n, out);
    case N_NOT: return eval_not(st, n, out);
    case N_COMPARE: return eval_compare(st, n, out);
    case N_BINARY: return eval_binary(st, n, out);
    case N_CONCAT: return eval_concat(st, n, out);
    case N_NEGATE:
    case N_PLUS: return eval_sign(st, n, out);
    case N_FILTER:
    case N_TEST: return eval_library(st, n, out);
    case N_ATTRIBUTE: return eval_attribute(st, n, out);
    case N_ITEM: return eval_item(st, n, out);
    case N_CALL: return eval_call(st, n, out);
    default: return pn_j_fail(st, "a slice outside of a subscript");
    }
}

bool pn_j_eval(render *st, const node *n, value *out)
{
    st->at = n;
    if (!pn_j_step(st, 1) || !pn_j_enter(st)) return false;
    bool good = eval_node(st, n, out);
    pn_j_leave(st);
    return good;
}

/* ---- assignment ------------------------------------------------------------------------------- */

static bool assign_attribute(render *st, const node *target, const value *v)
{
    const value *owner = variable(st, target->a);
    if (owner->kind != V_NAMESPACE) return pn_j_fail(st, "only attributes of a namespace can be assigned, '%.*s' is none", (int)target->a->name->text.n, target->a->name->text.data);
    if (target->name->text.data[0] == '_') return pn_j_fail(st, "an attribute that begins with '_' cannot be assigned");
    value key;
    return pn_j_str_view(st, target->name->text.data, target->name->text.n, &key) && pn_j_dict_set(st, owner->as.dict, key, *v);
}

static bool unpack(render *st, const node *target, const value *v)
{
    list *l;
    if (!pn_j_to_list(st, v, &l)) return false;
    if (l->n != target->items.n) return pn_j_fail(st, "%zu values cannot be unpacked into %u names", l->n, (unsigned)target->items.n);
    for (uint32_t i = 0; i < target->items.n; i++) {
        if (!pn_j_assign(st, target->items.at[i], &l->items[i])) return false;
    }
    return true;
}

bool pn_j_assigned(render *st, const node *target, value *out)
{
    list *l;
    if (target->type != N_TUPLE) return eval_name(st, target, out);
    if (!(l = pn_j_list(st, target->items.n))) return false;
    for (uint32_t i = 0; i < target->items.n; i++) {
        if (!pn_j_assigned(st, target->items.at[i], &l->items[i])) return false;
        l->n++;
    }
    *out = v_tuple(l);
    return true;
}

bool pn_j_assign(render *st, const node *target, const value *v)
{
    st->at = target;
    if (target->type == N_TUPLE) return unpack(st, target, v);
    if (target->type == N_NSREF) return assign_attribute(st, target, v);
    *variable(st, target) = *v;
    return true;
}
