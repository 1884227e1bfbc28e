/* chat/statements.c - statements and text: the other half of the parser. */
#include "chat/parser.h"

static bool parse_body(parser *p, nodes *out, const char *const *ends, size_t n_ends);

/* ---- targets ---------------------------------------------------------------------------------- */

static bool mark_target(parser *p, node *n, name_use use)
{
    if (n->type == N_NAME) {
        n->use = (uint8_t)use;
        return true;
    }
    if (n->type == N_NSREF) return true;
    if (n->type != N_TUPLE) return pn_j_parse_fail(p->p, n->line, n->column, "cannot assign to this expression");
    for (uint32_t i = 0; i < n->items.n; i++) {
        if (!mark_target(p, n->items.at[i], use)) return false;
    }
    return true;
}

static node *parse_target(parser *p, tuple_form form, name_use use)
{
    node *n = pn_j_tuple(p, form);
    return n && mark_target(p, n, use) ? n : NULL;
}

/* A single name that is assigned to. */
static node *parse_target_name(parser *p, name_use use)
{
    static const char *const reserved[] = {"true", "false", "none", "True", "False", "None"};
    token at = p->token;
    for (size_t i = 0; i < PN_COUNT(reserved); i++) {
        if (pn_j_at_word(p, reserved[i])) return pn_j_unexpected(p, "a name that can be assigned to"), NULL;
    }
    if (!pn_j_expect(p, T_NAME, "a name")) return NULL;
    node *n = pn_j_node(p, N_NAME, &at);
    if (!n) return NULL;
    n->name = at.name;
    n->use = (uint8_t)use;
    return n;
}

static bool skip_word(parser *p, const char *word, bool *found)
{
    *found = pn_j_at_word(p, word);
    return !*found || pn_j_advance(p);
}

/* ---- blocks ----------------------------------------------------------------------------------- */

static bool finish_with(parser *p, nodes *body, const char *end)
{
    return parse_body(p, body, &end, 1) && pn_j_advance(p);
}

static node *parse_set(parser *p, node *n)
{
    n->a = parse_target(p, TUPLE_TARGET_NAMESPACE, USE_STORE);
    if (!n->a) return NULL;
    if (p->token.type == T_ASSIGN) {
        n->b = pn_j_advance(p) ? pn_j_tuple(p, TUPLE_FULL) : NULL;
        return n->b ? n : NULL;
    }
    n->type = N_SET_BLOCK;
    if (p->token.type == T_PIPE && !(n->b = pn_j_filters(p, NULL, false))) return NULL;
    n->x.scope = pn_j_parse_get(p->p, 1, sizeof(scope));
    return n->x.scope && finish_with(p, &n->body, "endset") ? n : NULL;
}

static node *parse_for(parser *p, node *n)
{
    static const char *const ends[] = {"endfor", "else"};
    bool found;
    n->x.loop = pn_j_parse_get(p->p, 1, sizeof(for_extra));
    if (!n->x.loop || !(n->a = parse_target(p, TUPLE_TARGET, USE_STORE))) return NULL;
    if (!pn_j_at_word(p, "in")) return pn_j_unexpected(p, "'in'"), NULL;
    if (!pn_j_advance(p) || !(n->b = pn_j_tuple(p, TUPLE_NO_CONDITION))) return NULL;
    if (!skip_word(p, "if", &found) || (found && !(n->c = pn_j_expression(p, true)))) return NULL;
    if (!skip_word(p, "recursive", &n->flag)) return NULL;
    p->loops++;
    bool good = parse_body(p, &n->body, ends, 2);
    p->loops--;
    if (!good || !skip_word(p, "endfor", &found)) return NULL;
    if (found) return n;
    int loops = p->loops;
    if (n->flag) p->loops = 0; /* a recursive loop is a template function, its else block is part of it */
    good = pn_j_advance(p) && finish_with(p, &n->otherwise, "endfor");
    p->loops = loops;
    return good ? n : NULL;
}

static node *parse_if(parser *p, node *n)
{
    static const char *const ends[] = {"elif", "else", "endif"};
    growing tests = {0};
    uint32_t capacity = 0;
    for (bool more = true; more;) {
        if (!pn_j_add(p, &tests, pn_j_tuple(p, TUPLE_NO_CONDITION))) return NULL;
        if (tests.capacity != capacity) {
            nodes *bodies = pn_j_parse_get(p->p, tests.capacity, sizeof *bodies);
            if (!bodies) return NULL;
            if (capacity) memcpy(bodies, n->x.bodies, capacity * sizeof *bodies);
            n->x.bodies = bodies;
            capacity = tests.capacity;
        }
        if (!parse_body(p, &n->x.bodies[tests.list.n - 1], ends, 3) || !skip_word(p, "elif", &more)) return NULL;
    }
    n->items = tests.list;
    bool otherwise;
    if (!skip_word(p, "else", &otherwise)) return NULL;
    if (otherwise) return finish_with(p, &n->otherwise, "endif") ? n : NULL;
    return pn_j_advance(p) ? n : NULL;
}

static bool parse_signature(parser *p, signature *s)
{
    growing names = {0}, defaults = {0};
    if (!pn_j_expect(p, T_LPAREN, "'('")) return false;
    while (p->token.type != T_RPAREN) {
        if (names.list.n && !pn_j_expect(p, T_COMMA, "',' or ')'")) return false;
        node *parameter = parse_target_name(p, USE_PARAMETER);
        if (!parameter) return false;
        for (uint32_t i = 0; i < names.list.n; i++) {
            if (names.list.at[i]->name == parameter->name) return pn_j_parse_fail(p->p, parameter->line, parameter->column, "a parameter of this name is there already");
        }
        if (p->token.type == T_ASSIGN) {
            if (!pn_j_advance(p) || !pn_j_add(p, &defaults, pn_j_expression(p, true))) return false;
        } else if (defaults.list.n) {
            return pn_j_parse_fail(p->p, parameter->line, parameter->column, "a parameter without a default behind one that has a default");
        }
        if (!pn_j_add(p, &names, parameter)) return false;
    }
    s->parameters = names.list;
    s->defaults = defaults.list;
    return pn_j_advance(p);
}

static signature *new_signature(parser *p, node *n)
{
    signature *s = pn_j_parse_get(p->p, 1, sizeof *s);
    if (!s) return NULL;
    *s = (signature){.caller = -1, .kwargs = -1, .varargs = -1};
    n->x.signature = s;
    return s;
}

/* The body of a template function: loops around it cannot be left from inside. */
static bool function_body(parser *p, nodes *body, const char *end)
{
    int loops = p->loops;
    p->loops = 0;
    bool good = finish_with(p, body, end);
    p->loops = loops;
    return good;
}

static node *parse_macro(parser *p, node *n)
{
    node *target = parse_target_name(p, USE_STORE);
    signature *s = target ? new_signature(p, n) : NULL;
    if (!s || !parse_signature(p, s)) return NULL;
    n->a = target;
    n->name = target->name;
    return function_body(p, &n->body, "endmacro") ? n : NULL;
}

static node *parse_call_block(parser *p, node *n)
{
    signature *s = new_signature(p, n);
    if (!s || (p->token.type == T_LPAREN && !parse_signature(p, s))) return NULL;
    n->a = pn_j_expression(p, true);
    if (!n->a) return NULL;
    if (n->a->type != N_CALL) return pn_j_parse_fail(p->p, n->line, n->column, "a call block needs a call"), NULL;
    return function_body(p, &n->body, "endcall") ? n : NULL;
}

static node *parse_generation(parser *p, node *n)
{
    return new_signature(p, n) && function_body(p, &n->body, "endgeneration") ? n : NULL;
}

static node *parse_filter_block(parser *p, node *n)
{
    n->a = pn_j_filters(p, NULL, true);
    n->x.scope = pn_j_parse_get(p->p, 1, sizeof(scope));
    return n->a && n->x.scope && finish_with(p, &n->body, "endfilter") ? n : NULL;
}

static node *parse_with(parser *p, node *n)
{
    growing targets = {0}, values = {0};
    n->x.scope = pn_j_parse_get(p->p, 1, sizeof(scope));
    if (!n->x.scope) return NULL;
    while (p->token.type != T_BLOCK_END) {
        if (targets.list.n && !pn_j_expect(p, T_COMMA, "','")) return NULL;
        if (!pn_j_add(p, &targets, parse_target(p, TUPLE_TARGET, USE_PARAMETER))) return NULL;
        if (!pn_j_expect(p, T_ASSIGN, "'='") || !pn_j_add(p, &values, pn_j_expression(p, true))) return NULL;
    }
    n->items = targets.list;
    n->otherwise = values.list;
    return finish_with(p, &n->body, "endwith") ? n : NULL;
}

static node *parse_block(parser *p, node *n)
{
    token at = p->token;
    bool required, repeated = false;
    if (!pn_j_expect(p, T_NAME, "a name")) return NULL;
    n->name = at.name;
    if (!skip_word(p, "scoped", &n->flag) || !skip_word(p, "required", &required)) return NULL;
    n->x.code = pn_j_parse_get(p->p, 1, sizeof(function));
    if (!n->x.code || !function_body(p, &n->body, "endblock")) return NULL;
    if (required) return pn_j_parse_fail(p->p, n->line, n->column, "a required block that nothing fills"), NULL;
    repeated = p->token.type == T_NAME && p->token.name == n->name;
    return !repeated || pn_j_advance(p) ? n : NULL;
}

static node *parse_autoescape(parser *p, node *n)
{
    n->x.scope = pn_j_parse_get(p->p, 1, sizeof(scope));
    n->a = pn_j_expression(p, true);
    return n->x.scope && n->a && finish_with(p, &n->body, "endautoescape") ? n : NULL;
}

static node *parse_print(parser *p, node *n)
{
    growing items = {0};
    while (p->token.type != T_BLOCK_END) {
        if (items.list.n && !pn_j_expect(p, T_COMMA, "','")) return NULL;
        if (!pn_j_add(p, &items, pn_j_expression(p, true))) return NULL;
    }
    n->items = items.list;
    return n;
}

static node *parse_jump(parser *p, node *n)
{
    if (!p->loops) return pn_j_parse_fail(p->p, n->line, n->column, "break or continue outside of a for block"), NULL;
    return n;
}

/* include, import, from, extends: there are no other templates, so they fail where they are reached. */
static node *parse_import(parser *p, node *n)
{
    n->a = pn_j_expression(p, true);
    while (n->a && p->token.type != T_BLOCK_END) {
        if (p->token.type != T_NAME && p->token.type != T_COMMA) return pn_j_unexpected(p, "'%}'"), NULL;
        if (!pn_j_advance(p)) return NULL;
    }
    return n->a ? n : NULL;
}

static const struct { const char *word; node_type type; node *(*parse)(parser *, node *); } statements[] = {
    {"for", N_FOR, parse_for}, {"if", N_IF, parse_if}, {"set", N_SET, parse_set}, {"macro", N_MACRO, parse_macro}, {"call", N_CALL_BLOCK, parse_call_block},
    {"generation", N_GENERATION, parse_generation}, {"filter", N_FILTER_BLOCK, parse_filter_block}, {"with", N_WITH, parse_with}, {"block", N_BLOCK, parse_block},
    {"autoescape", N_AUTOESCAPE, parse_autoescape}, {"print", N_OUTPUT, parse_print}, {"break", N_BREAK, parse_jump}, {"continue", N_CONTINUE, parse_jump},
    {"include", N_IMPORT, parse_import}, {"import", N_IMPORT, parse_import}, {"from", N_IMPORT, parse_import}, {"extends", N_IMPORT, parse_import},
};

static node *parse_statement(parser *p)
{
    token at = p->token;
    if (at.type != T_NAME) return pn_j_unexpected(p, "the name of a tag"), NULL;
    for (size_t i = 0; i < PN_COUNT(statements); i++) {
        if (!pn_j_at_word(p, statements[i].word)) continue;
        node *n = pn_j_advance(p) ? pn_j_node(p, statements[i].type, &at) : NULL;
        return n ? statements[i].parse(p, n) : NULL;
    }
    pn_j_parse_fail(p->p, at.line, at.column, "a tag '%.*s' that is unknown here", (int)(at.n < 40 ? at.n : 40), at.data);
    return NULL;
}

/* ---- text and output -------------------------------------------------------------------------- */

/* Line breaks of raw blocks and texts are those of the source already. */
static node *parse_data(parser *p)
{
    token at = p->token;
    node *n = pn_j_node(p, N_DATA, &at);
    text *t = n ? pn_j_parse_get(p->p, 1, sizeof *t) : NULL;
    if (!t) return NULL;
    *t = (text){.data = at.data, .n = (uint32_t)at.n, .chars = J_UNCOUNTED};
    n->constant = v_text(t);
    return pn_j_advance(p) ? n : NULL;
}

static node *parse_output(parser *p)
{
    token at = p->token;
    growing items = {0};
    if (!pn_j_advance(p) || !pn_j_add(p, &items, pn_j_tuple(p, TUPLE_FULL))) return NULL;
    node *n = pn_j_expect(p, T_VARIABLE_END, "'}}'") ? pn_j_node(p, N_OUTPUT, &at) : NULL;
    if (n) n->items = items.list;
    return n;
}

static bool at_end(const parser *p, const char *const *ends, size_t n_ends)
{
    for (size_t i = 0; i < n_ends; i++) {
        if (pn_j_at_word(p, ends[i])) return true;
    }
    return false;
}

/* Up to "{%" and one of the end words, which is then the current token; without end words up to the end. */
static bool parse_sequence(parser *p, nodes *out, const char *const *ends, size_t n_ends)
{
    growing items = {0};
    while (p->token.type != T_END) {
        node *n;
        if (p->token.type == T_DATA) {
            n = parse_data(p);
        } else if (p->token.type == T_VARIABLE_BEGIN) {
            n = parse_output(p);
        } else {
            if (!pn_j_advance(p)) return false;
            if (at_end(p, ends, n_ends)) break;
            n = parse_statement(p);
            if (n && !pn_j_expect(p, T_BLOCK_END, "'%}'")) return false;
        }
        if (!pn_j_add(p, &items, n)) return false;
    }
    *out = items.list;
    return true;
}

static bool parse_body(parser *p, nodes *out, const char *const *ends, size_t n_ends)
{
    if (p->token.type == T_COLON && !pn_j_advance(p)) return false;
    if (!pn_j_expect(p, T_BLOCK_END, "'%}'") || !pn_j_deeper(p)) return false;
    bool good = parse_sequence(p, out, ends, n_ends);
    p->depth--;
    if (!good) return false;
    return p->token.type != T_END || pn_j_parse_fail(p->p, p->token.line, p->token.column, "the template ends before {%% %s %%}", ends[n_ends - 1]);
}

bool pn_j_parse(parse_state *state)
{
    parser p = {.p = state, .lexer = {.p = state, .source = state->code->source, .n = state->code->n, .line = 1, .line_starting = true}};
    return pn_j_advance(&p) && parse_sequence(&p, &state->code->body, NULL, 0);
}
