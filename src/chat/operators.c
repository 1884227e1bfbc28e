/* chat/operators.c - arithmetic by Python's rules, with integers of checked 64 bits. */
#include "chat/ast.h"
#include "chat/numbers.h"

#include <math.h>

static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**"};

static bool fail_operands(render *st, operator op, const value *a, const value *b)
{
    if (a->kind == V_UNDEFINED) return pn_j_undefined_error(st, a);
    if (b->kind == V_UNDEFINED) return pn_j_undefined_error(st, b);
    if (a->kind == V_BIG || b->kind == V_BIG) return pn_j_fail(st, "integers beyond 64 bits cannot be computed with");
    return pn_j_fail(st, "'%s' is not defined for a %s and a %s", signs[op], pn_j_type_name(a), pn_j_type_name(b));
}

static bool fail_overflow(render *st)
{
    return pn_j_fail(st, "an integer beyond 64 bits");
}

static bool fail_zero(render *st)
{
    return pn_j_fail(st, "division by zero");
}

static bool is_integer(const value *v)
{
    return v->kind == V_INT || v->kind == V_BOOL;
}

/* ---- texts and lists -------------------------------------------------------------------------- */

static bool add_texts(render *st, const value *a, const value *b, value *out)
{
    value left = *a, right = *b;
    bool marked = a->marked || b->marked;
    if (marked && (!pn_j_escape(st, a, &left) || !pn_j_escape(st, b, &right))) return false;
    if (!pn_j_concat(st, &left, &right, out)) return false;
    out->marked = marked;
    return true;
}

static bool add_lists(render *st, const value *a, const value *b, value *out)
{
    list *l = pn_j_list(st, a->as.list->n + b->as.list->n);
    if (!l || !pn_j_step(st, l->capacity)) return false;
    if (a->as.list->n) memcpy(l->items, a->as.list->items, a->as.list->n * sizeof *l->items);
    if (b->as.list->n) memcpy(l->items + a->as.list->n, b->as.list->items, b->as.list->n * sizeof *l->items);
    l->n = l->capacity;
    *out = *a;
    out->part = 0;
    out->as.list = l;
    return true;
}

static bool repeat_text(render *st, const value *v, int64_t times, value *out)
{
    const text *t = v->as.text;
    char *data;
    uint64_t n = 0;
    if (times < 0) times = 0;
    if (!pn_mul(t->n, (uint64_t)times, &n) || n > J_MAX_TEXT) return pn_j_fail(st, "a text of more than %d MiB", J_MAX_TEXT >> 20);
    bool marked = v->marked;
    if (!pn_j_str_room(st, (size_t)n, &data, out)) return false;
    for (size_t at = 0; at < n; at += t->n) memcpy(data + at, t->data, t->n);
    out->marked = marked;
    return true;
}

static bool repeat_list(render *st, const value *v, int64_t times, value *out)
{
    const list *from = v->as.list;
    uint64_t n = 0;
    if (times < 0) times = 0;
    if (!pn_mul(from->n, (uint64_t)times, &n) || n > J_MAX_ITEMS) return pn_j_fail(st, "a list of more than %d items", J_MAX_ITEMS);
    list *l = pn_j_list(st, (size_t)n);
    if (!l || !pn_j_step(st, n)) return false;
    for (; l->n < n; l->n += from->n) memcpy(l->items + l->n, from->items, from->n * sizeof *from->items);
    *out = *v;
    out->part = 0;
    out->as.list = l;
    return true;
}

static bool multiply_sequence(render *st, const value *a, const value *b, value *out)
{
    const value *sequence = is_integer(b) ? a : b, *times = is_integer(b) ? b : a;
    if (!is_integer(times)) return fail_operands(st, OP_MUL, a, b);
    if (sequence->kind == V_STR) return repeat_text(st, sequence, pn_j_as_int(times), out);
    if (sequence->kind == V_LIST || sequence->kind == V_TUPLE) return repeat_list(st, sequence, pn_j_as_int(times), out);
    return fail_operands(st, OP_MUL, a, b);
}

/* ---- integers --------------------------------------------------------------------------------- */

static bool floor_divide(render *st, int64_t a, int64_t b, int64_t *quotient, int64_t *rest)
{
    if (!b) return fail_zero(st);
    if (b == -1) {
        *rest = 0;
        return !__builtin_sub_overflow((int64_t)0, a, quotient) || fail_overflow(st);
    }
    *quotient = a / b;
    *rest = a % b;
    if (*rest && (*rest < 0) != (b < 0)) {
        --*quotient;
        *rest += b;
    }
    return true;
}

static bool integer_power(render *st, int64_t base, int64_t exponent, value *out)
{
    int64_t result = 1;
    while (exponent) {
        if ((exponent & 1) && __builtin_mul_overflow(result, base, &result)) return fail_overflow(st);
        exponent >>= 1;
        if (exponent && __builtin_mul_overflow(base, base, &base)) return fail_overflow(st);
    }
    *out = v_int(result);
    return true;
}

static bool float_power(render *st, double a, double b, value *out)
{
    if (a == 0 && b < 0) return fail_zero(st);
    double r = pn_j_power(a, b);
    if (r != r && a == a && b == b) return pn_j_fail(st, "a power that is no real number");
    if (r - r != 0 && a - a == 0 && b - b == 0) return pn_j_fail(st, "a power that is too large");
    *out = v_float(r);
    return true;
}

static bool integers(render *st, operator op, int64_t a, int64_t b, value *out)
{
    int64_t r = 0, rest = 0;
    switch (op) {
    case OP_ADD: return __builtin_add_overflow(a, b, &r) ? fail_overflow(st) : ((*out = v_int(r)), true);
    case OP_SUB: return __builtin_sub_overflow(a, b, &r) ? fail_overflow(st) : ((*out = v_int(r)), true);
    case OP_MUL: return __builtin_mul_overflow(a, b, &r) ? fail_overflow(st) : ((*out = v_int(r)), true);
    case OP_DIV:
        if (!b) return fail_zero(st);
        *out = v_float((double)a / (double)b);
        return true;
    case OP_FLOORDIV:
        if (!floor_divide(st, a, b, &r, &rest)) return false;
        *out = v_int(r);
        return true;
    case OP_MOD:
        if (b == -1) return ((*out = v_int(0)), true);
        if (!floor_divide(st, a, b, &r, &rest)) return false;
        *out = v_int(rest);
        return true;
    default: return b < 0 ? float_power(st, (double)a, (double)b, out) : integer_power(st, a, b, out);
    }
}

/* ---- floats ----------------------------------------------------------------------------------- */

static double float_mod(double a, double b)
{
    double m = fmod(a, b);
    if (m == 0) return copysign(0.0, b);
    return (b < 0) != (m < 0) ? m + b : m;
}

static double float_floor_divide(double a, double b)
{
    double m = fmod(a, b), quotient = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) quotient -= 1;
    if (quotient == 0) return copysign(0.0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static bool floats(render *st, operator op, double a, double b, value *out)
{
    if ((op == OP_DIV || op == OP_FLOORDIV || op == OP_MOD) && b == 0) return fail_zero(st);
    switch (op) {
    case OP_ADD: *out = v_float(a + b); return true;
    case OP_SUB: *out = v_float(a - b); return true;
    case OP_MUL: *out = v_float(a * b); return true;
    case OP_DIV: *out = v_float(a / b); return true;
    case OP_FLOORDIV: *out = v_float(float_floor_divide(a, b)); return true;
    case OP_MOD: *out = v_float(float_mod(a, b)); return true;
    default: return float_power(st, a, b, out);
    }
}

bool pn_j_binary(render *st, operator op, const value *a, const value *b, value *out)
{
    if (op == OP_MOD && a->kind == V_STR) return pn_j_percent(st, a, b, out);
    if (is_integer(a) && is_integer(b)) return integers(st, op, pn_j_as_int(a), pn_j_as_int(b), out);
    if (pn_j_is_number(a) && pn_j_is_number(b)) return floats(st, op, pn_j_as_double(a), pn_j_as_double(b), out);
    if (op == OP_ADD && a->kind == V_STR && b->kind == V_STR) return add_texts(st, a, b, out);
    if (op == OP_ADD && a->kind == b->kind && (a->kind == V_LIST || a->kind == V_TUPLE)) return add_lists(st, a, b, out);
    if (op == OP_MUL && a->kind != V_UNDEFINED && b->kind != V_UNDEFINED) return multiply_sequence(st, a, b, out);
    return fail_operands(st, op, a, b);
}

bool pn_j_negate(render *st, const value *v, value *out)
{
    int64_t r;
    if (v->kind == V_UNDEFINED) return pn_j_undefined_error(st, v);
    if (v->kind == V_FLOAT) return ((*out = v_float(-v->as.number)), true);
    if (v->kind == V_BIG) return fail_overflow(st);
    if (!is_integer(v)) return pn_j_fail(st, "a %s has no sign", pn_j_type_name(v));
    if (__builtin_sub_overflow((int64_t)0, pn_j_as_int(v), &r)) return fail_overflow(st);
    *out = v_int(r);
    return true;
}
