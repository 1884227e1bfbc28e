/* chat/scope.c - gives every variable of a template its place, as the reference's compiler does.
 *
 * A scope is analysed as a whole before its statements are: a name that it assigns anywhere is its own everywhere in it, also in inner scopes
 * that read it earlier. What a variable holds when its scope is entered is a row of the scope's load table. Knows no values. */
#include "chat/ast.h"

typedef struct symbol {
    name *of;
    struct symbol *shadowed; /* of an outer scope */
    struct table *table;
    uint32_t row, slot;      /* row in the load table */
    bool stored;
} symbol;

typedef struct place { /* of a template function while it is resolved */
    struct place *outer;
    function *code;
    uint32_t next_slot;
} place;

typedef struct table { /* of a scope while it is resolved */
    struct table *outer;
    place *in;
    symbol **symbols, **stored; /* all; those assigned to, in the order of their first assignment */
    load *loads;
    uint32_t n, n_stored, capacity, first_slot;
} table;

typedef struct resolver {
    parse_state *p;
    table *scope;
    name *loop, *caller, *kwargs, *varargs; /* NULL: the template does not mention it */
    int loops;      /* for blocks around */
    bool in_block;
    nodes blocks;
    uint32_t blocks_capacity;
} resolver;

static bool visit(resolver *r, node *n, bool soft);

static bool fail_at(resolver *r, const node *n, const char *what)
{
    return pn_j_parse_fail(r->p, n->line, n->column, "%s", what);
}

/* ---- tables ----------------------------------------------------------------------------------- */

static bool open_scope(resolver *r, place *in)
{
    table *t = pn_j_parse_get(r->p, 1, sizeof *t);
    if (!t) return false;
    *t = (table){.outer = r->scope, .in = in, .first_slot = in->next_slot};
    r->scope = t;
    return true;
}

/* Moves the load table into the tree. Slots are free again for what follows, unless `keep`. */
static bool close_scope(resolver *r, scope *out, bool keep)
{
    table *t = r->scope;
    for (uint32_t i = t->n; i-- > 0;) {
        name *of = t->symbols[i]->of;
        if (r->in_block && t->loads[i].action == LOAD_RESOLVE && of->root_slot >= 0) t->loads[i].from = (uint32_t)of->root_slot + 1;
        of->top = t->symbols[i]->shadowed;
    }
    *out = (scope){t->loads, t->n};
    if (!keep) t->in->next_slot = t->first_slot;
    r->scope = t->outer;
    return true;
}

static bool grow(resolver *r, table *t)
{
    uint32_t capacity = t->capacity ? t->capacity * 2 : 8;
    symbol **symbols = pn_j_parse_get(r->p, capacity, 2 * sizeof *symbols);
    load *loads = symbols ? pn_j_parse_get(r->p, capacity, sizeof *loads) : NULL;
    if (!loads) return false;
    if (t->n) memcpy(symbols, t->symbols, t->n * sizeof *symbols);
    if (t->n_stored) memcpy(symbols + capacity, t->stored, t->n_stored * sizeof *symbols);
    if (t->n) memcpy(loads, t->loads, t->n * sizeof *loads);
    t->symbols = symbols;
    t->stored = symbols + capacity;
    t->loads = loads;
    t->capacity = capacity;
    return true;
}

static symbol *own(const resolver *r, const name *of)
{
    return of->top && of->top->table == r->scope ? of->top : NULL;
}

static uint16_t hops_to(const resolver *r, const symbol *s)
{
    uint16_t hops = 0;
    for (const place *p = r->scope->in; p != s->table->in; p = p->outer) hops++;
    return hops;
}

/* A variable of this scope starts as what an outer one holds, or is looked up in the context, or has nothing. */
static void set_load(const resolver *r, symbol *s, load_action otherwise)
{
    load *l = &s->table->loads[s->row];
    l->action = (uint8_t)otherwise;
    if (!s->shadowed) return;
    l->action = LOAD_ALIAS;
    l->hops = hops_to(r, s->shadowed);
    l->from = s->shadowed->slot;
}

static symbol *define(resolver *r, name *of)
{
    table *t = r->scope;
    symbol *s = t->n == t->capacity && !grow(r, t) ? NULL : pn_j_parse_get(r->p, 1, sizeof *s);
    if (!s) return NULL;
    *s = (symbol){.of = of, .shadowed = of->top, .table = t, .row = t->n, .slot = t->in->next_slot++};
    if (t->in->next_slot > t->in->code->n_slots) t->in->code->n_slots = t->in->next_slot;
    t->loads[t->n] = (load){.slot = s->slot, .name = of};
    t->symbols[t->n++] = s;
    of->top = s;
    return s;
}

static void set_stored(symbol *s)
{
    if (s->stored) return;
    s->stored = true;
    s->table->stored[s->table->n_stored++] = s;
}

static bool note_load(resolver *r, name *of)
{
    if (of->top) return true;
    symbol *s = define(r, of);
    if (s) set_load(r, s, LOAD_RESOLVE);
    return s != NULL;
}

static bool note_store(resolver *r, name *of)
{
    symbol *s = own(r, of);
    if (!s) {
        s = define(r, of);
        if (s) set_load(r, s, LOAD_UNDEFINED);
    }
    if (s) set_stored(s);
    return s != NULL;
}

static bool note_parameter(resolver *r, name *of)
{
    symbol *s = own(r, of);
    if (!s) s = define(r, of);
    if (!s) return false;
    set_stored(s);
    r->scope->loads[s->row].action = LOAD_PARAMETER;
    return true;
}

/* ---- analysis: which names a scope reads and assigns, not looking into inner scopes ------------- */

static bool note(resolver *r, const node *n);

static bool note_all(resolver *r, const nodes *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        if (!note(r, all->at[i])) return false;
    }
    return true;
}

static bool note_arguments(resolver *r, const call_arguments *a)
{
    return note_all(r, &a->items) && note_all(r, &a->named) && note(r, a->star) && note(r, a->star_star);
}

static bool note_target(resolver *r, const node *n) /* of a for block */
{
    if (n->type == N_NAME) return note_parameter(r, n->name);
    for (uint32_t i = 0; i < n->items.n; i++) {
        if (!note_target(r, n->items.at[i])) return false;
    }
    return true;
}

/* What only some branches assign keeps its outer value in the others. */
static bool note_if(resolver *r, const node *n)
{
    uint32_t before = r->scope->n_stored;
    if (!note_all(r, &n->items)) return false;
    for (uint32_t i = 0; i < n->items.n; i++) {
        if (!note_all(r, &n->x.bodies[i])) return false;
    }
    if (!note_all(r, &n->otherwise)) return false;
    for (uint32_t i = before; i < r->scope->n_stored; i++) set_load(r, r->scope->stored[i], LOAD_RESOLVE);
    return true;
}

static bool note_name(resolver *r, const node *n)
{
    if (n->use == USE_LOAD) return note_load(r, n->name);
    return n->use == USE_STORE ? note_store(r, n->name) : note_parameter(r, n->name);
}

static bool note(resolver *r, const node *n)
{
    if (!n) return true;
    switch ((node_type)n->type) {
    case N_NAME: return note_name(r, n);
    case N_FILTER:
    case N_TEST:
    case N_CALL: return note(r, n->a) && note_arguments(r, n->x.arguments);
    case N_FOR: return note(r, n->b);
    case N_IF: return note_if(r, n);
    case N_MACRO: return note_store(r, n->name);
    case N_SET: return note(r, n->b) && note(r, n->a);
    case N_WITH: return note_all(r, &n->otherwise);
    case N_SET_BLOCK:
    case N_CALL_BLOCK:
    case N_FILTER_BLOCK: return note(r, n->a);
    case N_AUTOESCAPE:
    case N_GENERATION:
    case N_BLOCK: return true;
    default: return note(r, n->a) && note(r, n->b) && note(r, n->c) && note_all(r, &n->items);
    }
}

/* ---- is a name read that nothing around it has set? -------------------------------------------- */

/* 1: read, -1: assigned first, 0: not mentioned. Looks into inner scopes, not into blocks. */
static int first_use(const node *n, const name *of);

static int first_use_all(const nodes *all, const name *of)
{
    for (uint32_t i = 0; i < all->n; i++) {
        int use = first_use(all->at[i], of);
        if (use) return use;
    }
    return 0;
}

static int either(int a, int b)
{
    return a ? a : b;
}

static int first_use_arguments(const call_arguments *a, const name *of)
{
    int use = either(first_use_all(&a->items, of), first_use_all(&a->named, of));
    return either(either(use, first_use(a->star, of)), first_use(a->star_star, of));
}

static int first_use_signature(const node *n, const name *of)
{
    int use = either(first_use_all(&n->x.signature->parameters, of), first_use_all(&n->x.signature->defaults, of));
    return either(use, first_use_all(&n->body, of));
}

static int first_use_if(const node *n, const name *of)
{
    for (uint32_t i = 0; i < n->items.n; i++) {
        int use = either(first_use(n->items.at[i], of), first_use_all(&n->x.bodies[i], of));
        if (use) return use;
    }
    return first_use_all(&n->otherwise, of);
}

static int first_use(const node *n, const name *of)
{
    if (!n) return 0;
    switch ((node_type)n->type) {
    case N_NAME: return n->name != of ? 0 : n->use == USE_LOAD ? 1 : -1;
    case N_NSREF:
    case N_BLOCK: return 0;
    case N_FILTER:
    case N_TEST:
    case N_CALL: return either(first_use(n->a, of), first_use_arguments(n->x.arguments, of));
    case N_IF: return first_use_if(n, of);
    case N_FOR: {
        int use = either(either(first_use(n->a, of), first_use(n->b, of)), first_use_all(&n->body, of));
        return either(either(use, first_use_all(&n->otherwise, of)), first_use(n->c, of));
    }
    case N_MACRO: return first_use_signature(n, of);
    case N_CALL_BLOCK: return either(first_use(n->a, of), first_use_signature(n, of));
    case N_FILTER_BLOCK: return either(first_use_all(&n->body, of), first_use(n->a, of));
    case N_SET: return either(first_use(n->a, of), first_use(n->b, of));
    case N_WITH: return either(either(first_use_all(&n->items, of), first_use_all(&n->otherwise, of)), first_use_all(&n->body, of));
    default: {
        int use = either(either(first_use(n->a, of), first_use(n->b, of)), first_use(n->c, of));
        return either(either(use, first_use_all(&n->items, of)), first_use_all(&n->body, of));
    }
    }
}

static bool reads(const nodes *body, const name *of)
{
    return of && first_use_all(body, of) > 0;
}

/* ---- visiting: names get their slots ------------------------------------------------------------ */

static bool visit_all(resolver *r, const nodes *all, bool soft)
{
    for (uint32_t i = 0; i < all->n; i++) {
        if (!visit(r, all->at[i], soft)) return false;
    }
    return true;
}

static bool visit_name(resolver *r, node *n)
{
    const symbol *s = n->name->top;
    if (n->use == USE_STORE && n->name == r->loop && r->loops) return fail_at(r, n, "cannot assign to the special variable 'loop' in a for block");
    if (!s) return pn_j_parse_fail(r->p, n->line, n->column, "the variable '%.*s' is not known here", (int)n->name->text.n, n->name->text.data);
    n->slot = s->slot;
    n->hops = hops_to(r, s);
    return true;
}

static bool visit_library(resolver *r, node *n, bool soft)
{
    const char *what = n->type == N_FILTER ? "filter" : "test";
    const call_arguments *a = n->x.arguments;
    if (!n->builtin && !soft) return pn_j_parse_fail(r->p, n->line, n->column, "no %s named '%.*s'", what, (int)n->name->text.n, n->name->text.data);
    return visit(r, n->a, soft) && visit_all(r, &a->items, soft) && visit_all(r, &a->named, soft) && visit(r, a->star, soft) && visit(r, a->star_star, soft);
}

static bool visit_call(resolver *r, node *n, bool soft)
{
    const call_arguments *a = n->x.arguments;
    return visit(r, n->a, soft) && visit_all(r, &a->items, soft) && visit_all(r, &a->named, soft) && visit(r, a->star, soft) && visit(r, a->star_star, soft);
}

static node *copy_target(resolver *r, const node *n)
{
    node *copy = pn_j_parse_get(r->p, 1, sizeof *copy);
    if (!copy) return NULL;
    *copy = *n;
    if (!n->items.n) return copy;
    copy->items.at = pn_j_parse_get(r->p, n->items.n, sizeof *copy->items.at);
    for (uint32_t i = 0; copy->items.at && i < n->items.n; i++) {
        if (!(copy->items.at[i] = copy_target(r, n->items.at[i]))) return NULL;
    }
    return copy->items.at ? copy : NULL;
}

static bool visit_loop_test(resolver *r, node *n, place *in)
{
    for_extra *x = n->x.loop;
    if (!n->c) return true;
    if (!open_scope(r, in)) return false;
    x->test_target = copy_target(r, n->a);
    if (!x->test_target || !note_target(r, x->test_target) || !note(r, n->c)) return false;
    return visit(r, x->test_target, false) && visit(r, n->c, false) && close_scope(r, &x->test, true);
}

static bool has_scoped_block(const nodes *all)
{
    for (uint32_t i = 0; i < all->n; i++) {
        const node *n = all->at[i];
        if ((n->type == N_BLOCK && n->flag) || has_scoped_block(&n->body)) return true;
        if (n->type != N_WITH && n->type > N_CALL && has_scoped_block(&n->otherwise)) return true;
        for (uint32_t k = 0; n->type == N_IF && k < n->items.n; k++) {
            if (has_scoped_block(&n->x.bodies[k])) return true;
        }
    }
    return false;
}

static bool visit_loop_body(resolver *r, node *n, place *in)
{
    for_extra *x = n->x.loop;
    if (!open_scope(r, in)) return false;
    x->loop_slot = -1;
    bool extended = n->flag || reads(&n->body, r->loop) || has_scoped_block(&n->body);
    if (extended && r->loop) {
        if (!note_parameter(r, r->loop)) return false;
        x->loop_slot = (int32_t)r->loop->top->slot;
    }
    if (!note_target(r, n->a) || !note_all(r, &n->body)) return false;
    return visit(r, n->a, false) && visit_all(r, &n->body, false) && close_scope(r, &x->body, false);
}

static bool visit_loop_else(resolver *r, node *n, place *in)
{
    if (!n->otherwise.n) return true;
    if (!open_scope(r, in)) return false;
    return note_all(r, &n->otherwise) && visit_all(r, &n->otherwise, false) && close_scope(r, &n->x.loop->otherwise, false);
}

static bool visit_for(resolver *r, node *n, bool soft)
{
    if (!visit(r, n->b, soft)) return false;
    place recursive = {.outer = r->scope->in, .code = &n->x.loop->code}, *in = n->flag ? &recursive : r->scope->in;
    uint32_t first_slot = in->next_slot;
    r->loops++;
    bool good = visit_loop_test(r, n, in) && visit_loop_body(r, n, in) && visit_loop_else(r, n, in);
    r->loops--;
    in->next_slot = first_slot;
    return good;
}

static bool special_parameter(resolver *r, const node *n, name *of, int32_t *slot)
{
    if (!reads(&n->body, of)) return true;
    for (uint32_t i = 0; i < n->x.signature->parameters.n; i++) {
        if (n->x.signature->parameters.at[i]->name == of) return true;
    }
    if (!note_parameter(r, of)) return false;
    *slot = (int32_t)of->top->slot;
    return true;
}

static bool check_explicit_caller(resolver *r, const node *n)
{
    signature *s = n->x.signature;
    for (uint32_t i = 0; i < s->parameters.n; i++) {
        if (!r->caller || s->parameters.at[i]->name != r->caller) continue;
        s->explicit_caller = true;
        if (reads(&n->body, r->caller) && i + s->defaults.n < s->parameters.n) return fail_at(r, n, "the special parameter 'caller' needs a default or must be left out");
    }
    return true;
}

static bool visit_signature(resolver *r, node *n)
{
    signature *s = n->x.signature;
    place in = {.outer = r->scope->in, .code = &s->code};
    if (!open_scope(r, &in)) return false;
    if (!note_all(r, &s->parameters) || !note_all(r, &s->defaults) || !note_all(r, &n->body) || !check_explicit_caller(r, n)) return false;
    if (!special_parameter(r, n, r->caller, &s->caller) || !special_parameter(r, n, r->kwargs, &s->kwargs) || !special_parameter(r, n, r->varargs, &s->varargs)) return false;
    return visit_all(r, &s->parameters, false) && visit_all(r, &s->defaults, false) && visit_all(r, &n->body, false) && close_scope(r, &s->code.scope, false);
}

static bool visit_block_body(resolver *r, node *n, place *outer)
{
    place in = {.outer = outer, .code = n->x.code};
    if (!open_scope(r, &in)) return false;
    return note_all(r, &n->body) && visit_all(r, &n->body, false) && close_scope(r, &n->x.code->scope, false);
}

/* A scoped block sees the variables around it; another one only those of the top level, and is resolved after that. */
static bool visit_block(resolver *r, node *n)
{
    for (uint32_t i = 0; i < r->blocks.n; i++) {
        if (r->blocks.at[i]->name == n->name) return pn_j_parse_fail(r->p, n->line, n->column, "the block '%.*s' is defined twice", (int)n->name->text.n, n->name->text.data);
    }
    if (r->blocks.n == r->blocks_capacity) {
        uint32_t capacity = r->blocks_capacity ? r->blocks_capacity * 2 : 8;
        node **at = pn_j_parse_get(r->p, capacity, sizeof *at);
        if (!at) return false;
        if (r->blocks.n) memcpy(at, r->blocks.at, r->blocks.n * sizeof *at);
        r->blocks.at = at;
        r->blocks_capacity = capacity;
    }
    r->blocks.at[r->blocks.n++] = n;
    return !n->flag || visit_block_body(r, n, r->scope->in);
}

static bool visit_inner(resolver *r, node *n, scope *out)
{
    bool filter_block = n->type == N_FILTER_BLOCK;
    if (!open_scope(r, r->scope->in)) return false;
    if (n->type == N_WITH && !note_all(r, &n->items)) return false;
    if (n->type == N_AUTOESCAPE && !note(r, n->a)) return false;
    if (!note_all(r, &n->body) || (filter_block && !note(r, n->a))) return false;
    if (n->type == N_WITH && !visit_all(r, &n->items, false)) return false;
    if ((filter_block || n->type == N_AUTOESCAPE) && !visit(r, n->a, false)) return false;
    if (n->type == N_SET_BLOCK && !visit(r, n->b, false)) return false;
    return visit_all(r, &n->body, false) && close_scope(r, out, false);
}

static bool visit_if(resolver *r, const node *n)
{
    for (uint32_t i = 0; i < n->items.n; i++) {
        if (!visit(r, n->items.at[i], true) || !visit_all(r, &n->x.bodies[i], true)) return false;
    }
    return visit_all(r, &n->otherwise, true);
}

/* `soft`: in the body of an if or in a conditional expression, where a filter may be unknown as long as it is not reached. */
static bool visit(resolver *r, node *n, bool soft)
{
    if (!n) return true;
    switch ((node_type)n->type) {
    case N_NAME: return visit_name(r, n);
    case N_FILTER:
    case N_TEST: return visit_library(r, n, soft);
    case N_CALL: return visit_call(r, n, soft);
    case N_CONDITION: return visit(r, n->a, true) && visit(r, n->b, true) && visit(r, n->c, true);
    case N_FOR: return visit_for(r, n, soft);
    case N_IF: return visit_if(r, n);
    case N_MACRO: return visit_signature(r, n) && visit(r, n->a, soft);
    case N_CALL_BLOCK: return visit_signature(r, n) && visit(r, n->a, soft);
    case N_GENERATION: return visit_signature(r, n);
    case N_FILTER_BLOCK:
    case N_AUTOESCAPE: return visit_inner(r, n, n->x.scope);
    case N_WITH: return visit_all(r, &n->otherwise, soft) && visit_inner(r, n, n->x.scope);
    case N_SET_BLOCK: return visit_inner(r, n, n->x.scope) && visit(r, n->a, soft);
    case N_BLOCK: return visit_block(r, n);
    default: return visit(r, n->a, soft) && visit(r, n->b, soft) && visit(r, n->c, soft) && visit_all(r, &n->items, soft);
    }
}

static name *known_name(const template_code *code, const char *word)
{
    for (size_t i = 0; i <= code->names_mask && code->names; i++) {
        for (name *n = code->names[i]; n; n = n->next) {
            if (n->text.n == strlen(word) && !memcmp(n->text.data, word, n->text.n)) return n;
        }
    }
    return NULL;
}

static bool resolve_blocks(resolver *r)
{
    place nowhere = {0};
    table outside = {.in = &nowhere};
    r->in_block = true;
    for (uint32_t i = 0; i < r->blocks.n; i++) {
        r->scope = &outside;
        if (!r->blocks.at[i]->flag && !visit_block_body(r, r->blocks.at[i], NULL)) return false;
    }
    return true;
}

bool pn_j_resolve(parse_state *p)
{
    template_code *code = p->code;
    resolver r = {.p = p, .loop = known_name(code, "loop"), .caller = known_name(code, "caller"), .kwargs = known_name(code, "kwargs"), .varargs = known_name(code, "varargs")};
    place root = {.code = &code->root};
    if (!open_scope(&r, &root) || !note_all(&r, &code->body) || !visit_all(&r, &code->body, false)) return false;
    for (uint32_t i = 0; i < r.scope->n_stored; i++) r.scope->stored[i]->of->root_slot = (int32_t)r.scope->stored[i]->slot;
    return close_scope(&r, &code->root.scope, false) && resolve_blocks(&r);
}
