/* chat/runtime.h - objects that only running templates have: macros and loops. Shared by eval.c, calls.c, attributes.c and print.c. */
#ifndef PN_CHAT_RUNTIME_H
#define PN_CHAT_RUNTIME_H

#include "chat/ast.h"

typedef struct macro {
    const node *of;   /* macro, call block, generation */
    frame *frame;     /* where it was defined */
} macro;

/* The special variable of a for block. One item may be read ahead. */
typedef struct loop {
    iter items;
    value before, current, after, changed;
    bool has_after, counted;
    int64_t index0, length, depth0;
    const node *of;   /* recursive: the for block, else NULL */
    frame *frame;     /* recursive: where it stands */
} loop;

typedef enum flow { FLOW_NEXT, FLOW_BREAK, FLOW_CONTINUE, FLOW_FAILED } flow;

bool pn_j_eval(render *st, const node *n, value *out);
flow pn_j_exec(render *st, const nodes *body);
bool pn_j_enter_scope(render *st, const scope *s);
bool pn_j_assign(render *st, const node *target, const value *v);
bool pn_j_assigned(render *st, const node *target, value *out); /* what a target holds: tuples are built anew */
frame *pn_j_frame(render *st, const function *code, frame *parent);
bool pn_j_call_macro(render *st, const macro *m, const arguments *args, value *out);
bool pn_j_recurse(render *st, const loop *l, const arguments *args, value *out);
bool pn_j_arguments(render *st, const call_arguments *a, const value *caller, arguments *out);
bool pn_j_run_for(render *st, const node *n, const value *iterable, int64_t depth0, flow *how);
int pn_j_loop_next(render *st, loop *l, value *out);  /* 1, 0, -1 as pn_j_next */
int pn_j_loop_peek(render *st, loop *l, value *out); /* 1: there is a next item */
bool pn_j_loop_attribute(render *st, loop *l, const text *attribute, value *out, bool *found);

#endif
