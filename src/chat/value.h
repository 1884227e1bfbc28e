/* chat/value.h - what a template computes with: values, texts, containers, iteration, and the state of one rendering.
 *
 * Only files of chat/ include this. Cross-file functions are named pn_j_ (j for Jinja); those that can fail return false after pn_j_fail.
 * All values live in the rendering's arena, so nothing is freed one by one and a value may be copied freely. */
#ifndef PN_CHAT_VALUE_H
#define PN_CHAT_VALUE_H

#include "base/arena.h"
#include "base/json.h"

/* bounds of a rendering: one hostile template must end within a second and 64 MiB */
enum {
    J_MAX_STEPS = 5000000,
    J_BYTES_PER_STEP = 16,      /* work on text counts as one step for so many bytes */
    J_MAX_TEXT = 16 << 20,      /* bytes of one string, and of the output */
    J_MAX_MEMORY = 48 << 20,    /* of arena and open captures; the rest of 64 MiB is for the template and the result */
    J_MAX_ITEMS = 100000,       /* of a list, range or dict */
    J_MAX_DEPTH = 900,          /* nested evaluation */
    J_MAX_CALLS = 64,           /* nested macros, callers and recursive loops */
    J_MAX_NESTING = 100,        /* of values in repr, tojson, comparison */
    J_MAX_WIDTH = 1024,         /* of padding and indentation */
};

typedef enum kind {
    V_MISSING, /* a variable's slot before it is set; never seen by a template */
    V_UNDEFINED, V_NONE, V_BOOL, V_INT, V_BIG, V_FLOAT, V_STR, V_BYTES, V_LIST, V_TUPLE, V_DICT, V_VIEW, V_RANGE, V_ITER, V_NAMESPACE, V_LOOP, V_MACRO, V_METHOD,
    V_FUNCTION, V_CYCLER, V_JOINER, V_KINDS
} kind;

typedef enum undefined_reason { U_NAME, U_ATTRIBUTE, U_UNSAFE, U_HINT } undefined_reason;
typedef enum view_part { VIEW_KEYS, VIEW_VALUES, VIEW_ITEMS } view_part;

/* Bytes of UTF-8, immutable. `room` is set while the text ends where its buffer is filled to: then a concatenation can go on in place. */
typedef struct text_room {
    char *data;
    uint32_t used, capacity;
} text_room;
#define J_UNCOUNTED UINT32_MAX
typedef struct text {
    const char *data;
    uint32_t n, chars; /* chars == n: ASCII; J_UNCOUNTED: not counted yet */
    text_room *room;
} text;

typedef struct value {
    uint8_t kind;
    bool marked;    /* str: safe text, which HTML-escapes what is added to it */
    uint8_t part;   /* undefined: reason; view: part */
    uint8_t of;     /* undefined: kind of the object that lacks the attribute */
    union {
        bool boolean;
        int64_t integer;
        double number;
        text *text;               /* str, bytes, big (decimal digits); undefined: name or hint */
        struct list *list;        /* list, tuple */
        struct dict *dict;        /* dict, view, namespace */
        struct range *range;
        struct generator *iter;
        struct loop *loop;
        struct macro *macro;
        struct bound_method *bound;
        const struct builtin *function;
        struct cycler *cycler;
    } as;
} value;

typedef struct list {
    value *items;
    size_t n, capacity;
} list;

/* Insertion-ordered; slots hold place + 1 by hash once there are more than a few. */
typedef struct dict {
    value *keys, *values;
    uint32_t *slots;
    size_t n, capacity, mask;
} dict;

typedef struct range { int64_t start, stop, step, n; } range;
typedef struct bound_method { value self; const struct builtin *function; } bound_method;
typedef struct cycler { list *items; value separator; size_t at; bool used; } cycler;

/* ---- the state of one rendering --------------------------------------------------------------- */

typedef struct buffer {
    char *data; /* malloc'ed */
    size_t n, capacity;
} buffer;

typedef struct frame {   /* the variables of one call of a template function */
    value *slots;
    struct frame *parent; /* the frame that the function was defined in */
} frame;

typedef struct render {
    const struct template_code *code;
    pn_arena arena;
    pinch_error *err;
    const struct node *at; /* where errors are reported */
    buffer *out;
    uint64_t steps_left, buffered; /* bytes of open captures */
    frame *frame, *root;
    dict *variables;       /* the caller's */
    int depth, calls;
    int64_t now;
    uint64_t random;       /* state of the random filter */
    value captured;        /* what the first filter of a filter or set block is applied to */
    bool failed, autoescape;
} render;

/* Reports once, with line and column; always false. */
bool pn_j_fail(render *st, const char *format, ...) PN_PRINTF(2, 3);
bool pn_j_raise(render *st, const text *message); /* fails with exactly this message */
bool pn_j_step(render *st, uint64_t steps);
bool pn_j_work(render *st, uint64_t bytes); /* steps for work on text */
bool pn_j_float_work(render *st, double v); /* of printing or reading it: far from 1 it takes long digits */
void *pn_j_get(render *st, uint64_t count, uint64_t size); /* arena; NULL after a failure was reported */
bool pn_j_enter(render *st); /* one level of nested evaluation; pair with pn_j_leave */
void pn_j_leave(render *st);

/* buffers: captured output */
bool pn_j_put(render *st, buffer *b, const char *data, size_t n);
void pn_j_buffer_free(render *st, buffer *b);
bool pn_j_put_value(render *st, buffer *b, const value *v);  /* its text, as printed */
bool pn_j_put_repr(render *st, buffer *b, const value *v);
bool pn_j_put_cstr(render *st, buffer *b, const char *s);
bool pn_j_take(render *st, buffer *b, value *out); /* the buffer's text as a str; frees the buffer */

/* ---- making values ---------------------------------------------------------------------------- */

static inline value v_none(void) { return (value){.kind = V_NONE}; }
static inline value v_bool(bool b) { return (value){.kind = V_BOOL, .as.boolean = b}; }
static inline value v_int(int64_t i) { return (value){.kind = V_INT, .as.integer = i}; }
static inline value v_float(double d) { return (value){.kind = V_FLOAT, .as.number = d}; }
static inline value v_list(list *l) { return (value){.kind = V_LIST, .as.list = l}; }
static inline value v_tuple(list *l) { return (value){.kind = V_TUPLE, .as.list = l}; }
static inline value v_iter(struct generator *g) { return (value){.kind = V_ITER, .as.iter = g}; }
static inline value v_text(text *t) { return (value){.kind = V_STR, .as.text = t}; }
static inline bool v_is(const value *v, kind k) { return v->kind == k; }

value pn_j_undefined(undefined_reason reason, const text *of_name, kind of);
value pn_j_undefined_hint(render *st, const char *hint);
bool pn_j_str(render *st, const char *data, size_t n, value *out);      /* copies */
bool pn_j_str_view(render *st, const char *data, size_t n, value *out); /* data outlives the rendering */
bool pn_j_str_room(render *st, size_t n, char **data, value *out);      /* n bytes to be filled at once */
bool pn_j_concat(render *st, const value *a, const value *b, value *out);
list *pn_j_list(render *st, size_t capacity);
bool pn_j_push(render *st, list *l, value v);
bool pn_j_pair(render *st, value a, value b, value *out); /* a tuple of two */
dict *pn_j_dict(render *st, size_t capacity);
bool pn_j_dict_set(render *st, dict *d, value key, value v);
bool pn_j_dict_get(render *st, const dict *d, const value *key, value *out, bool *found); /* an unhashable key fails */
bool pn_j_hashable(const value *v);
const value *pn_j_dict_find(const dict *d, const char *name, size_t n);
bool pn_j_from_json(render *st, const pn_json *json, value *out);

/* ---- asking values ---------------------------------------------------------------------------- */

const char *pn_j_type_name(const value *v);
bool pn_j_truth(const value *v);
bool pn_j_equal(render *st, const value *a, const value *b, bool *equal);
bool pn_j_less(render *st, const value *a, const value *b, bool *less);
bool pn_j_contains(render *st, const value *container, const value *item, bool *found);
bool pn_j_length(render *st, const value *v, int64_t *n); /* fails for what has none */
bool pn_j_has_length(const value *v);
bool pn_j_loop_length(render *st, struct loop *loop, int64_t *n);
value *pn_j_loop_changed(struct loop *loop); /* what loop.changed() was last asked with */
bool pn_j_to_text(render *st, const value *v, value *out); /* str(v): keeps a str, marked or not, as it is */
bool pn_j_repr(render *st, const value *v, value *out);
bool pn_j_is_number(const value *v); /* bool, int or float */
int64_t pn_j_as_int(const value *v); /* of a bool or int */
double pn_j_as_double(const value *v);
bool pn_j_is_text(const value *v, const char *s);
bool pn_j_undefined_error(render *st, const value *v); /* fails with what is undefined */
bool pn_j_escape(render *st, const value *v, value *out); /* a marked text */

/* ---- text ------------------------------------------------------------------------------------- */

size_t pn_j_chars(render *st, text *t);
size_t pn_j_offset(const text *t, size_t index); /* byte offset of a character; t is counted */
bool pn_j_slice_text(render *st, const value *v, size_t from, size_t to, value *out); /* byte range; keeps the mark */
const char *pn_j_find(const char *data, size_t n, const char *needle, size_t m);
const char *pn_j_find_last(render *st, const char *data, size_t n, const char *needle, size_t m); /* its work is counted; NULL also after a failure */

/* ---- iteration -------------------------------------------------------------------------------- */

typedef struct iter {
    value source;
    size_t at;
} iter;
bool pn_j_iter(render *st, const value *v, iter *it); /* fails for what cannot be iterated */
bool pn_j_iterable(const value *v);
int pn_j_next(render *st, iter *it, value *out);      /* 1: an item, 0: the end, -1: failed */
bool pn_j_to_list(render *st, const value *v, list **out); /* always a new one */

/* A one-shot iterator. `next` gets its own data. */
typedef struct generator generator;
struct generator {
    int (*next)(render *st, generator *g, value *out);
    const char *type; /* as it prints */
    iter inner;
    value subject, extra;
    const struct node *node;
    frame *frame;
    const struct builtin *function;
    struct arguments *arguments;
    list *items;
    int64_t a, b;
    bool started, done, flag;
};
generator *pn_j_generator(render *st, const char *type, int (*next)(render *, generator *, value *));

/* ---- calls ------------------------------------------------------------------------------------ */

typedef struct arguments {
    value *items;
    size_t n;
    const text **names; /* of keyword arguments */
    value *named;
    size_t n_named;
} arguments;

enum { J_MAX_PARAMETERS = 8 };
typedef struct parameters {
    value at[J_MAX_PARAMETERS];
    bool has[J_MAX_PARAMETERS];
    const arguments *all;
    int option; /* of the builtin */
} parameters;

/* A filter, test, method or global. `takes` names the parameters, separated by blanks; those behind '?' may be left out; behind a leading '/'
 * none can be given by keyword; "*" takes any (only `all` is set). */
typedef struct builtin {
    const char *name;
    bool (*call)(render *st, const value *self, const parameters *p, value *out);
    const char *takes;
    int option; /* lets one function serve several names */
} builtin;
bool pn_j_call_builtin(render *st, const builtin *b, const value *self, const arguments *args, value *out);
bool pn_j_call(render *st, const value *callee, const arguments *args, value *out);
bool pn_j_call_joiner(render *st, struct cycler *joiner, const arguments *args, value *out);

const builtin *pn_j_filter(const char *name, size_t n);
const builtin *pn_j_test(const char *name, size_t n);
const builtin *pn_j_global(const char *name, size_t n);
const builtin *pn_j_method(const value *self, const char *name, size_t n); /* NULL: no such method */
bool pn_j_is_unsafe(const value *self, const char *name, size_t n);       /* exists, but templates may not touch it */
bool pn_j_is_change(const value *method);                                  /* append or pop of a list */
bool pn_j_attribute(render *st, const value *self, const text *name, value *out);  /* x.name */
bool pn_j_item(render *st, const value *self, const value *key, value *out);       /* x[key] */
bool pn_j_sliceable(const value *self, const value *bounds);
bool pn_j_slice(render *st, const value *self, const value *bounds, value *out);   /* x[a:b:c], none for what is left out */

typedef struct json_style {
    bool ascii, sort, pretty;
    const char *indent; /* one level */
    size_t n_indent;
    const char *item_separator, *key_separator;
    size_t n_item, n_key;
} json_style;

/* ---- operators and formatting ------------------------------------------------------------------ */

typedef enum operator { OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD, OP_POW, OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE, OP_IN, OP_NOT_IN } operator;
bool pn_j_binary(render *st, operator op, const value *a, const value *b, value *out);
bool pn_j_negate(render *st, const value *v, value *out);
bool pn_j_compare(render *st, operator op, const value *a, const value *b, bool *result);
bool pn_j_percent(render *st, const value *format, const value *args, value *out); /* "..." % args */
bool pn_j_format(render *st, const value *format, const arguments *args, value *out); /* "...".format() */
bool pn_j_tojson(render *st, buffer *b, const value *v, const json_style *style);
bool pn_j_strftime(render *st, const text *format, value *out);
bool pn_j_parse_int(const char *s, size_t n, int base, int64_t *out, bool *overflow); /* int("..."): blanks, sign, underscores */
bool pn_j_parse_float(const char *s, size_t n, double *out);

#endif
