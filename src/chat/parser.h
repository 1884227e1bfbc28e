/* chat/parser.h - what parser.c (expressions) and statements.c share. */
#ifndef PN_CHAT_PARSER_H
#define PN_CHAT_PARSER_H

#include "chat/ast.h"

typedef struct parser {
    parse_state *p;
    lexer lexer;
    token token, ahead;
    bool has_ahead;
    int depth;
    int loops; /* for blocks around, within the same template function: break and continue need one */
} parser;

typedef struct growing {
    nodes list;
    uint32_t capacity;
} growing;

typedef enum tuple_form { TUPLE_FULL, TUPLE_NO_CONDITION, TUPLE_PARENTHESES, TUPLE_TARGET, TUPLE_TARGET_NAMESPACE } tuple_form;

bool pn_j_advance(parser *p);
bool pn_j_at_word(const parser *p, const char *word);
bool pn_j_expect(parser *p, token_type type, const char *wanted);
bool pn_j_unexpected(parser *p, const char *wanted); /* fails: expected ..., got ... */
bool pn_j_deeper(parser *p);                         /* one level of recursion; undone by depth-- */
node *pn_j_node(parser *p, node_type type, const token *at);
bool pn_j_add(parser *p, growing *g, node *item);    /* false also for a NULL item */
node *pn_j_expression(parser *p, bool with_condition);
node *pn_j_tuple(parser *p, tuple_form form);
node *pn_j_filters(parser *p, node *subject, bool inline_first);

#endif
