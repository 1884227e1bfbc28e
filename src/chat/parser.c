/* chat/parser.c - expressions: from tokens to tree, in the reference's grammar.
 *
 * Statements are in statements.c; both share parser.h. Recursion is bounded by J_MAX_PARSE, the tree's height by J_MAX_TREE. */
#include "chat/parser.h"

bool pn_j_unexpected(parser *p, const char *wanted)
{
    char room[48];
    return pn_j_parse_fail(p->p, p->token.line, p->token.column, "expected %s, got %s", wanted, pn_j_token_name(&p->token, room, sizeof room));
}

bool pn_j_advance(parser *p)
{
    if (p->has_ahead) {
        p->token = p->ahead;
        p->has_ahead = false;
        return true;
    }
    return pn_j_lex(&p->lexer, &p->token);
}

/* The token behind the current one. */
static bool look_ahead(parser *p, token_type *type)
{
    if (!p->has_ahead && !pn_j_lex(&p->lexer, &p->ahead)) return false;
    p->has_ahead = true;
    *type = p->ahead.type;
    return true;
}

bool pn_j_at_word(const parser *p, const char *word)
{
    return p->token.type == T_NAME && p->token.n == strlen(word) && !memcmp(p->token.data, word, p->token.n);
}

bool pn_j_expect(parser *p, token_type type, const char *wanted)
{
    return p->token.type == type ? pn_j_advance(p) : pn_j_unexpected(p, wanted);
}

node *pn_j_node(parser *p, node_type type, const token *at)
{
    node *n = pn_j_parse_get(p->p, 1, sizeof *n);
    if (!n) return NULL;
    *n = (node){.type = (uint8_t)type, .line = at->line, .column = at->column, .height = 1};
    return n;
}

/* Keeps the height of a node above that of a child. */
static bool raise_over(parser *p, node *n, const node *child)
{
    if (!child || child->height < n->height) return true;
    if (child->height >= J_MAX_TREE) return pn_j_parse_fail(p->p, n->line, n->column, "an expression nested deeper than %d", J_MAX_TREE);
    n->height = (uint16_t)(child->height + 1);
    return true;
}

static node *parent_of(parser *p, node_type type, const token *at, node *a, node *b, node *c)
{
    node *n = pn_j_node(p, type, at);
    if (!n || !raise_over(p, n, a) || !raise_over(p, n, b) || !raise_over(p, n, c)) return NULL;
    n->a = a;
    n->b = b;
    n->c = c;
    return n;
}

bool pn_j_add(parser *p, growing *g, node *item)
{
    if (!item) return false;
    if (g->list.n == g->capacity) {
        uint32_t capacity = g->capacity ? g->capacity * 2 : 4;
        node **at = pn_j_parse_get(p->p, capacity, sizeof *at);
        if (!at) return false;
        if (g->list.n) memcpy(at, g->list.at, g->list.n * sizeof *at);
        g->list.at = at;
        g->capacity = capacity;
    }
    g->list.at[g->list.n++] = item;
    return true;
}

static bool raise_over_all(parser *p, node *n, const nodes *children)
{
    for (uint32_t i = 0; i < children->n; i++) {
        if (!raise_over(p, n, children->at[i])) return false;
    }
    return true;
}

static node *with_items(parser *p, node_type type, const token *at, const nodes *items)
{
    node *n = pn_j_node(p, type, at);
    if (!n || !raise_over_all(p, n, items)) return NULL;
    n->items = *items;
    return n;
}

bool pn_j_deeper(parser *p)
{
    if (++p->depth <= J_MAX_PARSE) return true;
    return pn_j_parse_fail(p->p, p->token.line, p->token.column, "nested deeper than %d", J_MAX_PARSE);
}

/* ---- primaries -------------------------------------------------------------------------------- */

static node *constant(parser *p, const token *at, value v)
{
    node *n = pn_j_node(p, N_CONST, at);
    if (n) n->constant = v;
    return n;
}

static node *text_constant(parser *p, const token *at, const char *data, size_t n)
{
    text *t = pn_j_parse_get(p->p, 1, sizeof *t);
    if (!t) return NULL;
    *t = (text){.data = data, .n = (uint32_t)n, .chars = J_UNCOUNTED};
    size_t chars = 0;
    for (size_t i = 0; i < n; i++) chars += ((unsigned char)data[i] & 0xc0) != 0x80;
    t->chars = (uint32_t)chars; /* counted here: the tree is shared by threads */
    return constant(p, at, v_text(t));
}

static node *parse_string(parser *p)
{
    token first = p->token;
    const char *data = first.data;
    size_t n = first.n;
    if (!pn_j_advance(p)) return NULL;
    while (p->token.type == T_STRING) { /* adjacent literals are one */
        char *both = pn_j_parse_get(p->p, n + p->token.n + 1, 1);
        if (!both) return NULL;
        memcpy(both, data, n);
        memcpy(both + n, p->token.data, p->token.n);
        data = both;
        n += p->token.n;
        if (!pn_j_advance(p)) return NULL;
    }
    return text_constant(p, &first, data, n);
}

static node *parse_name(parser *p, bool with_namespace)
{
    static const struct { const char *word; kind kind; bool truth; } words[] = {{"true", V_BOOL, true}, {"True", V_BOOL, true}, {"false", V_BOOL, false}, {"False", V_BOOL, false}, {"none", V_NONE, false}, {"None", V_NONE, false}};
    token at = p->token;
    for (size_t i = 0; i < PN_COUNT(words); i++) {
        if (!pn_j_at_word(p, words[i].word)) continue;
        return pn_j_advance(p) ? constant(p, &at, words[i].kind == V_BOOL ? v_bool(words[i].truth) : v_none()) : NULL;
    }
    if (!pn_j_advance(p)) return NULL;
    node *n = pn_j_node(p, N_NAME, &at);
    if (!n) return NULL;
    n->name = at.name;
    if (!with_namespace || p->token.type != T_DOT) return n;
    if (!pn_j_advance(p)) return NULL;
    token attribute = p->token;
    if (!pn_j_expect(p, T_NAME, "a name")) return NULL;
    node *ref = parent_of(p, N_NSREF, &at, n, NULL, NULL);
    if (ref) ref->name = attribute.name;
    return ref;
}

static node *parse_list(parser *p)
{
    token at = p->token;
    growing items = {0};
    if (!pn_j_advance(p)) return NULL;
    while (p->token.type != T_RBRACKET) {
        if (items.list.n && !pn_j_expect(p, T_COMMA, "',' or ']'")) return NULL;
        if (p->token.type == T_RBRACKET) break;
        if (!pn_j_add(p, &items, pn_j_expression(p, true))) return NULL;
    }
    return pn_j_advance(p) ? with_items(p, N_LIST, &at, &items.list) : NULL;
}

static node *parse_dict(parser *p)
{
    token at = p->token;
    growing items = {0};
    if (!pn_j_advance(p)) return NULL;
    while (p->token.type != T_RBRACE) {
        if (items.list.n && !pn_j_expect(p, T_COMMA, "',' or '}'")) return NULL;
        if (p->token.type == T_RBRACE) break;
        if (!pn_j_add(p, &items, pn_j_expression(p, true))) return NULL;
        if (!pn_j_expect(p, T_COLON, "':'")) return NULL;
        if (!pn_j_add(p, &items, pn_j_expression(p, true))) return NULL;
    }
    return pn_j_advance(p) ? with_items(p, N_DICT, &at, &items.list) : NULL;
}

static node *parse_primary(parser *p, bool with_namespace)
{
    token at = p->token;
    node *inner = NULL;
    switch (at.type) {
    case T_NAME: return parse_name(p, with_namespace);
    case T_STRING: return parse_string(p);
    case T_INTEGER:
    case T_FLOAT: return pn_j_advance(p) ? constant(p, &at, at.constant) : NULL;
    case T_LPAREN:
        if (pn_j_advance(p)) inner = pn_j_tuple(p, TUPLE_PARENTHESES);
        return inner && pn_j_expect(p, T_RPAREN, "')'") ? inner : NULL;
    case T_LBRACKET: return parse_list(p);
    case T_LBRACE: return parse_dict(p);
    default: pn_j_unexpected(p, "an expression"); return NULL;
    }
}

/* ---- calls, filters, tests -------------------------------------------------------------------- */

static bool add_name(parser *p, call_arguments *a, uint32_t *capacity, name *key)
{
    if (a->named.n > *capacity || !*capacity) {
        uint32_t larger = *capacity ? *capacity * 2 : 4;
        struct name **names = pn_j_parse_get(p->p, larger, sizeof *names);
        if (!names) return false;
        if (*capacity) memcpy(names, a->names, *capacity * sizeof *names);
        a->names = names;
        *capacity = larger;
    }
    a->names[a->named.n - 1] = key;
    return true;
}

typedef struct argument_list {
    call_arguments *to;
    growing items, named;
    uint32_t names;
    token at;
} argument_list;

static bool argument_error(parser *p, const argument_list *a)
{
    return pn_j_parse_fail(p->p, a->at.line, a->at.column, "arguments in a wrong order: positional ones first, then keywords, then ** ");
}

static bool parse_star(parser *p, argument_list *a, node **to, bool allowed)
{
    if (!allowed) return argument_error(p, a);
    return pn_j_advance(p) && (*to = pn_j_expression(p, true)) != NULL;
}

static bool parse_argument(parser *p, argument_list *a)
{
    call_arguments *c = a->to;
    token_type next = T_END;
    if (p->token.type == T_MUL) return parse_star(p, a, &c->star, !c->star && !c->star_star);
    if (p->token.type == T_POW) return parse_star(p, a, &c->star_star, !c->star_star);
    if (p->token.type == T_NAME && !look_ahead(p, &next)) return false;
    if (next != T_ASSIGN) {
        if (c->star || c->star_star || a->named.list.n) return argument_error(p, a);
        return pn_j_add(p, &a->items, pn_j_expression(p, true));
    }
    name *key = p->token.name;
    if (c->star_star) return argument_error(p, a);
    for (uint32_t i = 0; i < a->named.list.n; i++) {
        if (c->names[i] == key) return pn_j_parse_fail(p->p, p->token.line, p->token.column, "the keyword argument '%.*s' is given twice", (int)key->text.n, key->text.data);
    }
    if (!pn_j_advance(p) || !pn_j_advance(p) || !pn_j_add(p, &a->named, pn_j_expression(p, true))) return false;
    c->named = a->named.list;
    return add_name(p, c, &a->names, key);
}

static call_arguments *parse_arguments(parser *p)
{
    argument_list a = {.to = pn_j_parse_get(p->p, 1, sizeof *a.to), .at = p->token};
    if (!a.to) return NULL;
    if (!pn_j_expect(p, T_LPAREN, "'('")) return NULL;
    for (bool first = true; p->token.type != T_RPAREN; first = false) {
        if (!first && !pn_j_expect(p, T_COMMA, "',' or ')'")) return NULL;
        if (!first && p->token.type == T_RPAREN) break;
        if (!parse_argument(p, &a)) return NULL;
    }
    a.to->items = a.items.list;
    return pn_j_advance(p) ? a.to : NULL;
}

static bool take_arguments(parser *p, node *n, call_arguments *a)
{
    n->x.arguments = a;
    return raise_over_all(p, n, &a->items) && raise_over_all(p, n, &a->named) && raise_over(p, n, a->star) && raise_over(p, n, a->star_star);
}

static call_arguments *no_arguments(parser *p)
{
    return pn_j_parse_get(p->p, 1, sizeof(call_arguments));
}

static node *parse_call(parser *p, node *callee)
{
    token at = p->token;
    node *n = parent_of(p, N_CALL, &at, callee, NULL, NULL);
    call_arguments *a = n ? parse_arguments(p) : NULL;
    return a && take_arguments(p, n, a) ? n : NULL;
}

/* A filter's or test's name; a dotted one is read and then unknown. */
static bool parse_library_name(parser *p, token *first, size_t *n)
{
    *first = p->token;
    if (!pn_j_expect(p, T_NAME, "a name")) return false;
    *n = first->n;
    while (p->token.type == T_DOT) {
        if (!pn_j_advance(p)) return false;
        *n = 0;
        if (!pn_j_expect(p, T_NAME, "a name")) return false;
    }
    return true;
}

node *pn_j_filters(parser *p, node *subject, bool inline_first)
{
    while (p->token.type == T_PIPE || inline_first) {
        token at;
        size_t n;
        if (!inline_first && !pn_j_advance(p)) return NULL;
        inline_first = false;
        if (!parse_library_name(p, &at, &n)) return NULL;
        node *filter = parent_of(p, N_FILTER, &at, subject, NULL, NULL);
        if (!filter) return NULL;
        filter->name = at.name;
        filter->builtin = n ? pn_j_filter(at.data, n) : NULL;
        call_arguments *a = p->token.type == T_LPAREN ? parse_arguments(p) : no_arguments(p);
        if (!a || !take_arguments(p, filter, a)) return NULL;
        subject = filter;
    }
    return subject;
}

static node *parse_postfix(parser *p, node *n);

/* An argument without parentheses: "x is divisibleby 3". */
static bool has_bare_argument(parser *p, bool *chained)
{
    *chained = pn_j_at_word(p, "is");
    switch (p->token.type) {
    case T_NAME: return !pn_j_at_word(p, "else") && !pn_j_at_word(p, "or") && !pn_j_at_word(p, "and");
    case T_STRING:
    case T_INTEGER:
    case T_FLOAT:
    case T_LBRACKET:
    case T_LBRACE: return true;
    default: return false;
    }
}

static call_arguments *bare_argument(parser *p)
{
    growing items = {0};
    call_arguments *a = no_arguments(p);
    node *argument = a ? parse_primary(p, false) : NULL;
    if (argument) argument = parse_postfix(p, argument);
    if (!pn_j_add(p, &items, argument)) return NULL;
    a->items = items.list;
    return a;
}

static node *parse_test(parser *p, node *subject)
{
    token is = p->token, at;
    size_t n;
    bool chained = false;
    if (!pn_j_advance(p)) return NULL;
    bool negated = pn_j_at_word(p, "not");
    if (negated && !pn_j_advance(p)) return NULL;
    if (!parse_library_name(p, &at, &n)) return NULL;
    node *test = parent_of(p, N_TEST, &is, subject, NULL, NULL);
    if (!test) return NULL;
    test->name = at.name;
    test->builtin = n ? pn_j_test(at.data, n) : NULL;
    call_arguments *a;
    if (p->token.type == T_LPAREN) a = parse_arguments(p);
    else if (!has_bare_argument(p, &chained)) a = no_arguments(p);
    else if (chained) return pn_j_unexpected(p, "no second 'is'"), NULL;
    else a = bare_argument(p);
    if (!a || !take_arguments(p, test, a)) return NULL;
    return negated ? parent_of(p, N_NOT, &is, test, NULL, NULL) : test;
}

/* ---- subscripts ------------------------------------------------------------------------------- */

static bool ends_subscript(const parser *p)
{
    return p->token.type == T_RBRACKET || p->token.type == T_COMMA;
}

static node *none_constant(parser *p)
{
    return constant(p, &p->token, v_none());
}

static node *parse_bound(parser *p)
{
    return p->token.type == T_COLON || ends_subscript(p) ? none_constant(p) : pn_j_expression(p, true);
}

static node *parse_subscribed(parser *p)
{
    token at = p->token;
    node *start = p->token.type == T_COLON ? none_constant(p) : pn_j_expression(p, true), *stop, *step;
    if (!start || p->token.type != T_COLON) return start;
    if (!pn_j_advance(p) || !(stop = parse_bound(p))) return NULL;
    if (p->token.type == T_COLON) {
        if (!pn_j_advance(p)) return NULL;
        step = ends_subscript(p) ? none_constant(p) : pn_j_expression(p, true);
    } else {
        step = none_constant(p);
    }
    return step ? parent_of(p, N_SLICE, &at, start, stop, step) : NULL;
}

static node *parse_brackets(parser *p, node *subject, const token *at)
{
    growing items = {0};
    while (p->token.type != T_RBRACKET) {
        if (items.list.n && !pn_j_expect(p, T_COMMA, "',' or ']'")) return NULL;
        if (!pn_j_add(p, &items, parse_subscribed(p))) return NULL;
    }
    if (!pn_j_advance(p)) return NULL;
    node *key = items.list.n == 1 ? items.list.at[0] : with_items(p, N_TUPLE, at, &items.list);
    return key ? parent_of(p, N_ITEM, at, subject, key, NULL) : NULL;
}

static node *parse_dot(parser *p, node *subject, const token *at)
{
    token attribute = p->token;
    if (attribute.type != T_NAME && attribute.type != T_INTEGER) return pn_j_unexpected(p, "a name or a number"), NULL;
    if (!pn_j_advance(p)) return NULL;
    if (attribute.type == T_INTEGER) {
        node *index = constant(p, &attribute, attribute.constant);
        return index ? parent_of(p, N_ITEM, at, subject, index, NULL) : NULL;
    }
    node *n = parent_of(p, N_ATTRIBUTE, at, subject, NULL, NULL);
    if (n) n->name = attribute.name;
    return n;
}

static node *parse_postfix(parser *p, node *n)
{
    while (n) {
        token at = p->token;
        if (at.type == T_LPAREN) {
            n = parse_call(p, n);
        } else if (at.type == T_DOT || at.type == T_LBRACKET) {
            if (!pn_j_advance(p)) return NULL;
            n = at.type == T_DOT ? parse_dot(p, n, &at) : parse_brackets(p, n, &at);
        } else {
            break;
        }
    }
    return n;
}

static node *parse_filters_and_tests(parser *p, node *n)
{
    while (n) {
        if (p->token.type == T_PIPE) n = pn_j_filters(p, n, false);
        else if (pn_j_at_word(p, "is")) n = parse_test(p, n);
        else if (p->token.type == T_LPAREN) n = parse_call(p, n);
        else break;
    }
    return n;
}

/* ---- operators, from tight to loose ------------------------------------------------------------- */

static node *parse_unary(parser *p, bool with_filters)
{
    token at = p->token;
    node *n;
    if (!pn_j_deeper(p)) return NULL;
    if (at.type == T_SUB || at.type == T_ADD) {
        n = pn_j_advance(p) ? parse_unary(p, false) : NULL;
        if (n) n = parent_of(p, at.type == T_SUB ? N_NEGATE : N_PLUS, &at, n, NULL, NULL);
    } else {
        n = parse_primary(p, false);
    }
    n = parse_postfix(p, n);
    if (n && with_filters) n = parse_filters_and_tests(p, n);
    p->depth--;
    return n;
}

typedef struct level { /* left-associative operators of one strength */
    struct { token_type token; operator op; } ops[4];
    int n;
} level;

static const level powers = {{{T_POW, OP_POW}}, 1}, products = {{{T_MUL, OP_MUL}, {T_DIV, OP_DIV}, {T_FLOORDIV, OP_FLOORDIV}, {T_MOD, OP_MOD}}, 4}, sums = {{{T_ADD, OP_ADD}, {T_SUB, OP_SUB}}, 2};

static int find_operator(const level *l, token_type type)
{
    for (int i = 0; i < l->n; i++) {
        if (l->ops[i].token == type) return i;
    }
    return -1;
}

static node *parse_concat(parser *p);

static node *parse_level(parser *p, const level *l)
{
    const level *inner = l == &products ? &powers : NULL;
    node *left = l == &sums ? parse_concat(p) : inner ? parse_level(p, inner) : parse_unary(p, true);
    for (int i; left && (i = find_operator(l, p->token.type)) >= 0;) {
        token at = p->token;
        if (!pn_j_advance(p)) return NULL;
        node *right = l == &sums ? parse_concat(p) : inner ? parse_level(p, inner) : parse_unary(p, true);
        if (!right) return NULL;
        left = parent_of(p, N_BINARY, &at, left, right, NULL);
        if (left) left->op = (uint8_t)l->ops[i].op;
    }
    return left;
}

static node *parse_concat(parser *p)
{
    token at = p->token;
    growing items = {0};
    node *first = parse_level(p, &products);
    if (!first || p->token.type != T_TILDE) return first;
    if (!pn_j_add(p, &items, first)) return NULL;
    while (p->token.type == T_TILDE) {
        if (!pn_j_advance(p) || !pn_j_add(p, &items, parse_level(p, &products))) return NULL;
    }
    return with_items(p, N_CONCAT, &at, &items.list);
}

/* The comparison at the current token: true and skipped when there is one. */
static bool take_comparison(parser *p, operator *op, bool *found)
{
    static const struct { token_type token; operator op; } signs[] = {{T_EQ, OP_EQ}, {T_NE, OP_NE}, {T_LT, OP_LT}, {T_LE, OP_LE}, {T_GT, OP_GT}, {T_GE, OP_GE}};
    token_type next = T_END;
    *found = true;
    for (size_t i = 0; i < PN_COUNT(signs); i++) {
        if (p->token.type != signs[i].token) continue;
        *op = signs[i].op;
        return pn_j_advance(p);
    }
    *op = OP_IN;
    if (pn_j_at_word(p, "in")) return pn_j_advance(p);
    *op = OP_NOT_IN;
    *found = false;
    if (!pn_j_at_word(p, "not")) return true;
    if (!look_ahead(p, &next)) return false;
    if (next != T_NAME || p->ahead.n != 2 || memcmp(p->ahead.data, "in", 2)) return true;
    *found = true;
    return pn_j_advance(p) && pn_j_advance(p);
}

static node *parse_comparison(parser *p)
{
    token at = p->token;
    growing items = {0};
    node *first = parse_level(p, &sums);
    while (first) {
        operator op;
        bool found;
        token sign = p->token;
        if (!take_comparison(p, &op, &found)) return NULL;
        if (!found) break;
        node *right = parse_level(p, &sums), *operand = right ? parent_of(p, N_OPERAND, &sign, right, NULL, NULL) : NULL;
        if (!pn_j_add(p, &items, operand)) return NULL;
        operand->op = (uint8_t)op;
    }
    if (!first || !items.list.n) return first;
    node *n = with_items(p, N_COMPARE, &at, &items.list);
    if (!n || !raise_over(p, n, first)) return NULL;
    n->a = first;
    return n;
}

static node *parse_not(parser *p)
{
    token at = p->token;
    if (!pn_j_at_word(p, "not")) return parse_comparison(p);
    if (!pn_j_deeper(p) || !pn_j_advance(p)) return NULL;
    node *inner = parse_not(p);
    p->depth--;
    return inner ? parent_of(p, N_NOT, &at, inner, NULL, NULL) : NULL;
}

static node *parse_and(parser *p)
{
    node *left = parse_not(p);
    while (left && pn_j_at_word(p, "and")) {
        token at = p->token;
        node *right = pn_j_advance(p) ? parse_not(p) : NULL;
        left = right ? parent_of(p, N_AND, &at, left, right, NULL) : NULL;
    }
    return left;
}

static node *parse_or(parser *p)
{
    node *left = parse_and(p);
    while (left && pn_j_at_word(p, "or")) {
        token at = p->token;
        node *right = pn_j_advance(p) ? parse_and(p) : NULL;
        left = right ? parent_of(p, N_OR, &at, left, right, NULL) : NULL;
    }
    return left;
}

static node *parse_condition(parser *p)
{
    node *n = parse_or(p);
    while (n && pn_j_at_word(p, "if")) {
        token at = p->token;
        node *test = pn_j_advance(p) ? parse_or(p) : NULL, *otherwise = NULL;
        if (!test) return NULL;
        if (pn_j_at_word(p, "else")) {
            otherwise = pn_j_advance(p) && pn_j_deeper(p) ? parse_condition(p) : NULL;
            p->depth--;
            if (!otherwise) return NULL;
        }
        n = parent_of(p, N_CONDITION, &at, test, n, otherwise);
    }
    return n;
}

node *pn_j_expression(parser *p, bool with_condition)
{
    if (!pn_j_deeper(p)) return NULL;
    node *n = with_condition ? parse_condition(p) : parse_or(p);
    p->depth--;
    return n;
}

/* ---- tuples ----------------------------------------------------------------------------------- */

static bool ends_tuple(const parser *p)
{
    return p->token.type == T_VARIABLE_END || p->token.type == T_BLOCK_END || p->token.type == T_RPAREN;
}

static node *tuple_item(parser *p, tuple_form form)
{
    if (form == TUPLE_TARGET || form == TUPLE_TARGET_NAMESPACE) {
        if (!pn_j_deeper(p)) return NULL;
        node *n = parse_primary(p, form == TUPLE_TARGET_NAMESPACE);
        p->depth--;
        return n;
    }
    return pn_j_expression(p, form != TUPLE_NO_CONDITION);
}

node *pn_j_tuple(parser *p, tuple_form form)
{
    token at = p->token;
    growing items = {0};
    bool tuple = false;
    for (;;) {
        if (items.list.n && !pn_j_expect(p, T_COMMA, "','")) return NULL;
        if (ends_tuple(p)) break;
        if (!pn_j_add(p, &items, tuple_item(p, form))) return NULL;
        if (p->token.type != T_COMMA) break;
        tuple = true;
    }
    if (!tuple && items.list.n) return items.list.at[0];
    if (!tuple && form != TUPLE_PARENTHESES) return pn_j_unexpected(p, "an expression"), NULL;
    return with_items(p, N_TUPLE, &at, &items.list);
}
