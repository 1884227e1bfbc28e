/* chat/predicates.c - the tests behind "is". */
#include "base/casemap.h"
#include "chat/texts.h"

typedef enum kind_group { IS_DEFINED, IS_UNDEFINED, IS_NONE, IS_BOOLEAN, IS_TRUE, IS_FALSE, IS_INTEGER, IS_FLOAT, IS_NUMBER, IS_STRING, IS_MAPPING, IS_ITERABLE, IS_SEQUENCE, IS_CALLABLE, IS_ESCAPED } kind_group;

static bool is_callable(const value *v)
{
    return v->kind == V_UNDEFINED || v->kind == V_MACRO || v->kind == V_METHOD || v->kind == V_FUNCTION || v->kind == V_LOOP || v->kind == V_JOINER;
}

static bool in_group(const value *v, kind_group group)
{
    switch (group) {
    case IS_DEFINED: return v->kind != V_UNDEFINED;
    case IS_UNDEFINED: return v->kind == V_UNDEFINED;
    case IS_NONE: return v->kind == V_NONE;
    case IS_BOOLEAN: return v->kind == V_BOOL;
    case IS_TRUE: return v->kind == V_BOOL && v->as.boolean;
    case IS_FALSE: return v->kind == V_BOOL && !v->as.boolean;
    case IS_INTEGER: return v->kind == V_INT || v->kind == V_BIG;
    case IS_FLOAT: return v->kind == V_FLOAT;
    case IS_NUMBER: return pn_j_is_number(v) || v->kind == V_BIG;
    case IS_STRING: return v->kind == V_STR;
    case IS_MAPPING: return v->kind == V_DICT;
    case IS_ITERABLE: return pn_j_iterable(v);
    case IS_SEQUENCE: return v->kind == V_UNDEFINED || (v->kind >= V_STR && v->kind <= V_DICT) || v->kind == V_RANGE;
    case IS_CALLABLE: return is_callable(v);
    case IS_ESCAPED: return v->kind == V_STR && v->marked;
    }
    return false;
}

static bool test_kind(render *st, const value *self, const parameters *p, value *out)
{
    (void)st;
    *out = v_bool(in_group(self, (kind_group)p->option));
    return true;
}

/* odd, even, divisibleby: whatever "%" does, also on a str */
static bool test_remainder(render *st, const value *self, const parameters *p, value *out)
{
    value divisor = p->has[0] ? p->at[0] : v_int(2), wanted = v_int(p->option), rest;
    bool equal;
    if (!pn_j_binary(st, OP_MOD, self, &divisor, &rest) || !pn_j_equal(st, &rest, &wanted, &equal)) return false;
    *out = v_bool(equal);
    return true;
}

static bool test_case(render *st, const value *self, const parameters *p, value *out)
{
    value shown;
    if (!pn_j_to_text(st, self, &shown)) return false;
    *out = v_bool(pn_j_is_cased(shown.as.text, (unsigned)p->option));
    return pn_j_work(st, (uint64_t)shown.as.text->n * 4);
}

static bool test_compare(render *st, const value *self, const parameters *p, value *out)
{
    bool result;
    if (!pn_j_compare(st, (operator)p->option, self, &p->at[0], &result)) return false;
    *out = v_bool(result);
    return true;
}

static bool same_object(const value *a, const value *b)
{
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case V_NONE: return true;
    case V_BOOL: return a->as.boolean == b->as.boolean;
    case V_INT: return a->as.integer == b->as.integer;
    case V_FLOAT: return a->as.number == b->as.number;
    case V_STR: return a->as.text->n == b->as.text->n && !memcmp(a->as.text->data, b->as.text->data, a->as.text->n);
    default: return a->as.text == b->as.text;
    }
}

static bool test_same(render *st, const value *self, const parameters *p, value *out)
{
    (void)st;
    *out = v_bool(same_object(self, &p->at[0]));
    return true;
}

static bool test_library(render *st, const value *self, const parameters *p, value *out)
{
    if (!pn_j_hashable(self)) return pn_j_fail(st, "a %s cannot be a name", pn_j_type_name(self));
    const builtin *b = self->kind != V_STR ? NULL : p->option ? pn_j_test(self->as.text->data, self->as.text->n) : pn_j_filter(self->as.text->data, self->as.text->n);
    *out = v_bool(b != NULL);
    return true;
}

const builtin *pn_j_test(const char *name_of, size_t n)
{
    static const builtin tests[] = {
        {"defined", test_kind, "", IS_DEFINED}, {"undefined", test_kind, "", IS_UNDEFINED}, {"none", test_kind, "", IS_NONE}, {"boolean", test_kind, "", IS_BOOLEAN}, {"true", test_kind, "", IS_TRUE},
        {"false", test_kind, "", IS_FALSE}, {"integer", test_kind, "", IS_INTEGER}, {"float", test_kind, "", IS_FLOAT}, {"number", test_kind, "", IS_NUMBER}, {"string", test_kind, "", IS_STRING},
        {"mapping", test_kind, "", IS_MAPPING}, {"iterable", test_kind, "", IS_ITERABLE}, {"sequence", test_kind, "", IS_SEQUENCE}, {"callable", test_kind, "", IS_CALLABLE}, {"escaped", test_kind, "", IS_ESCAPED},
        {"odd", test_remainder, "", 1}, {"even", test_remainder, "", 0}, {"divisibleby", test_remainder, "num", 0}, {"lower", test_case, "", PN_CHAR_LOWER}, {"upper", test_case, "", PN_CHAR_UPPER},
        {"sameas", test_same, "other", 0}, {"filter", test_library, "", 0}, {"test", test_library, "", 1}, {"in", test_compare, "seq", OP_IN},
        {"==", test_compare, "/ other", OP_EQ}, {"eq", test_compare, "/ other", OP_EQ}, {"equalto", test_compare, "/ other", OP_EQ}, {"!=", test_compare, "/ other", OP_NE}, {"ne", test_compare, "/ other", OP_NE},
        {">", test_compare, "/ other", OP_GT}, {"gt", test_compare, "/ other", OP_GT}, {"greaterthan", test_compare, "/ other", OP_GT}, {">=", test_compare, "/ other", OP_GE}, {"ge", test_compare, "/ other", OP_GE},
        {"<", test_compare, "/ other", OP_LT}, {"lt", test_compare, "/ other", OP_LT}, {"lessthan", test_compare, "/ other", OP_LT}, {"<=", test_compare, "/ other", OP_LE}, {"le", test_compare, "/ other", OP_LE},
    };
    for (size_t i = 0; i < PN_COUNT(tests); i++) {
        if (strlen(tests[i].name) == n && !memcmp(tests[i].name, name_of, n)) return &tests[i];
    }
    return NULL;
}
