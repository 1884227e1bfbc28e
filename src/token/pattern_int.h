/* token/pattern_int.h - what the parser of expressions hands to the maker of automata. Private to the two. */
#ifndef PN_TOKEN_PATTERN_INT_H
#define PN_TOKEN_PATTERN_INT_H

#include "base/unicode.h"
#include "token/pattern.h"

/* Our own expressions are the only input: what does not fit is an error of the table, reported when it is compiled. */
enum { PN_MAX_CODE = 512, PN_MAX_SETS = 32, PN_MAX_RANGES = 256 };

typedef struct pn_range {
    uint32_t low, high;
    bool minus; /* takes out */
} pn_range;
typedef struct pn_set {
    bool negated;
    uint16_t kinds, minus_kinds; /* bits of pn_kind */
    uint16_t first, n;           /* of pn_program.ranges */
} pn_set;
typedef enum pn_op {
    PN_OP_SET,    /* eats one character of set a */
    PN_OP_SPLIT,  /* goes on at +a, and failing that at +b */
    PN_OP_JUMP,   /* goes on at +a */
    PN_OP_BEFORE, /* passes where the text ends or its next character is of set a */
    PN_OP_MATCH
} pn_op;
typedef struct pn_instruction {
    pn_op op;
    int a, b;
} pn_instruction;
typedef struct pn_program {
    pn_instruction code[PN_MAX_CODE];
    int n_code;
    pn_set sets[PN_MAX_SETS];
    int n_sets;
    pn_range ranges[PN_MAX_RANGES];
    int n_ranges;
} pn_program;

pinch_status pn_pattern_parse(pn_program *out, const char *expression, pinch_error *err);
bool pn_set_holds(const pn_program *p, const pn_set *set, uint32_t c, pn_kind kind);

#endif
