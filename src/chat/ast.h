/* chat/ast.h - the tree of a parsed template and what belongs to the template rather than to a rendering.
 *
 * Only files of chat/ include this. Immutable once a template is open, so that threads can share it. */
#ifndef PN_CHAT_AST_H
#define PN_CHAT_AST_H

#include "chat/chat.h"
#include "chat/value.h"

enum {
    J_MAX_SOURCE = 1 << 20,
    J_MAX_TOKENS = 200000,
    J_MAX_PARSE = 200,   /* nested brackets, operators and blocks */
    J_MAX_TREE = 400,    /* height of an expression; operators of one level stack up without nesting the parser */
};

typedef enum node_type {
    N_CONST, N_NAME, N_NSREF, N_TUPLE, N_LIST, N_DICT, N_CONDITION, N_OR, N_AND, N_NOT, N_COMPARE, N_OPERAND, N_BINARY, N_CONCAT, N_NEGATE, N_PLUS, N_FILTER, N_TEST,
    N_ATTRIBUTE, N_ITEM, N_SLICE, N_CALL, /* expressions up to here */
    N_OUTPUT, N_DATA, N_FOR, N_IF, N_MACRO, N_CALL_BLOCK, N_GENERATION, N_FILTER_BLOCK, N_SET, N_SET_BLOCK, N_WITH, N_BLOCK, N_AUTOESCAPE, N_BREAK, N_CONTINUE, N_IMPORT
} node_type;

typedef enum name_use { USE_LOAD, USE_STORE, USE_PARAMETER } name_use;

typedef struct node node;
typedef struct nodes {
    node **at;
    uint32_t n;
} nodes;

typedef struct name { /* every identifier of a template once */
    text text;
    struct symbol *top; /* while scopes are resolved: the innermost definition */
    struct name *next;  /* of its hash chain */
    int32_t root_slot;  /* the root's variable of this name, -1: none */
} name;

/* What a scope does when it is entered, one row per variable (the reference calls these load instructions). */
typedef enum load_action { LOAD_PARAMETER, LOAD_RESOLVE, LOAD_ALIAS, LOAD_UNDEFINED } load_action;
typedef struct load {
    uint32_t slot;
    uint8_t action;
    uint16_t hops;        /* alias: frames outward */
    uint32_t from;        /* alias: slot there; resolve, inside a block: 1 + the root's slot that goes before the context */
    const struct name *name;
} load;
typedef struct scope {
    load *loads;
    uint32_t n;
} scope;

/* A template function: root, macro, call block, block, or the body of a recursive loop. */
typedef struct function {
    uint32_t n_slots;
    scope scope;
} function;

typedef struct call_arguments { /* of a call, filter or test */
    nodes items;
    struct name **names;
    nodes named;
    node *star, *star_star;
} call_arguments;

typedef struct signature { /* of a macro or call block */
    nodes parameters; /* names */
    nodes defaults;   /* of the last ones */
    function code;
    int32_t caller, kwargs, varargs; /* slots of the special parameters, -1: not used */
    bool explicit_caller;
} signature;

struct node {
    uint8_t type, op, use;
    bool flag;          /* for: recursive; block: scoped; filter, test: may be unknown until reached; if: nothing */
    uint16_t height;
    uint16_t hops;      /* name: frames outward */
    uint32_t slot;      /* name */
    uint32_t line, column;
    node *a, *b, *c;    /* operands in source order; for: target, iterable, test */
    nodes items;        /* tuple, list, dict (key, value, ...), compare (operands), concat, output; with: targets; if: tests */
    nodes body, otherwise; /* with: otherwise holds the values */
    name *name;
    value constant;
    union {
        call_arguments *arguments;
        signature *signature;
        struct for_extra *loop;
        nodes *bodies;  /* if: one body per test */
        function *code; /* block */
        scope *scope;   /* filter block, set block, with */
    } x;
    const builtin *builtin; /* filter, test: NULL when unknown */
};

typedef struct for_extra {
    scope body, test, otherwise;
    node *test_target; /* the target once more: the test runs ahead of the body and has variables of its own */
    function code;     /* recursive: the loop's own */
    int32_t loop_slot; /* -1: `loop` is not used */
} for_extra;

typedef struct template_code {
    pn_arena arena;
    char *source;
    size_t n;
    nodes body;
    function root;
    name **names; /* hash table */
    size_t n_names, names_mask;
    nodes blocks; /* in order of appearance */
} template_code;

typedef struct parse_state {
    template_code *code;
    pinch_error *err;
    bool failed;
} parse_state;

bool pn_j_parse_fail(parse_state *p, uint32_t line, uint32_t column, const char *format, ...) PN_PRINTF(4, 5);
void *pn_j_parse_get(parse_state *p, uint64_t count, uint64_t size); /* zeroed; NULL after a failure was reported */
name *pn_j_intern(parse_state *p, const char *data, size_t n);
bool pn_j_parse(parse_state *p);
bool pn_j_resolve(parse_state *p);       /* gives every variable its place */
bool pn_j_run(render *st);

/* ---- lexer ------------------------------------------------------------------------------------ */

typedef enum token_type {
    T_END, T_DATA, T_VARIABLE_BEGIN, T_VARIABLE_END, T_BLOCK_BEGIN, T_BLOCK_END, T_NAME, T_STRING, T_INTEGER, T_FLOAT,
    T_ADD, T_SUB, T_MUL, T_DIV, T_FLOORDIV, T_MOD, T_POW, T_TILDE, T_LBRACKET, T_RBRACKET, T_LPAREN, T_RPAREN, T_LBRACE, T_RBRACE,
    T_EQ, T_NE, T_LT, T_LE, T_GT, T_GE, T_ASSIGN, T_DOT, T_COLON, T_PIPE, T_COMMA, T_SEMICOLON
} token_type;

typedef struct token {
    uint8_t type;
    uint32_t line, column;
    const char *data; /* source text; of data and strings the final text */
    size_t n;
    value constant;
    name *name;
} token;

typedef struct lexer {
    parse_state *p;
    const char *source;
    size_t n, at, line_start;
    uint32_t line, n_tokens;
    uint8_t state;
    bool line_starting; /* what was read last ended a line */
    token pending;      /* the tag that ended a run of text */
    bool has_pending;
    char open[J_MAX_PARSE];
    uint32_t n_open;
} lexer;
bool pn_j_lex(lexer *l, token *out);
const char *pn_j_token_name(const token *t, char *room, size_t n);

#endif
