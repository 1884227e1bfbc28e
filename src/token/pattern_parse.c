/* token/pattern_parse.c - expressions to code for a backtracking machine; jumps are relative, so that a block may be moved and copied. */
#include "token/pattern_int.h"

#define SPACE_KINDS (1u << PN_KIND_Z | 1u << PN_KIND_CONTROL_SPACE)

typedef struct parser {
    const char *at;
    pn_program *out;
    bool failed;
} parser;

static bool take(parser *p, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(p->at, text, n) != 0) return false;
    p->at += n;
    return true;
}
static void fail(parser *p) { p->failed = true; }

static void emit(parser *p, pn_op op, int a, int b)
{
    if (p->out->n_code == PN_MAX_CODE) {
        fail(p);
        return;
    }
    p->out->code[p->out->n_code++] = (pn_instruction){op, a, b};
}
static void insert(parser *p, int at, pn_op op, int a, int b)
{
    emit(p, op, a, b);
    if (p->failed) return;
    pn_instruction *code = p->out->code;
    memmove(&code[at + 1], &code[at], (size_t)(p->out->n_code - 1 - at) * sizeof *code);
    code[at] = (pn_instruction){op, a, b};
}

/* ---- sets ------------------------------------------------------------------------------------ */

static pn_set *new_set(parser *p)
{
    if (p->out->n_sets == PN_MAX_SETS) {
        fail(p);
        return &p->out->sets[0];
    }
    pn_set *set = &p->out->sets[p->out->n_sets++];
    *set = (pn_set){.first = (uint16_t)p->out->n_ranges};
    return set;
}
static void add_kinds(pn_set *set, unsigned kinds, bool minus)
{
    if (minus) set->minus_kinds |= (uint16_t)kinds;
    else set->kinds |= (uint16_t)kinds;
}
static void add_range(parser *p, pn_set *set, uint32_t low, uint32_t high, bool minus)
{
    if (p->out->n_ranges == PN_MAX_RANGES || low > high) {
        fail(p);
        return;
    }
    p->out->ranges[p->out->n_ranges++] = (pn_range){low, high, minus};
    set->n++;
}
static uint32_t hex(parser *p)
{
    uint32_t c = 0;
    int digits = 0;
    for (; digits < 6; digits++, p->at++) {
        const char x = *p->at;
        if (x >= '0' && x <= '9') c = c << 4 | (uint32_t)(x - '0');
        else if (x >= 'A' && x <= 'F') c = c << 4 | (uint32_t)(x - 'A' + 10);
        else break;
    }
    if (!digits) fail(p);
    return c;
}
/* After "\x{": hexadecimal ranges up to "}". */
static void hex_ranges(parser *p, pn_set *set, bool minus)
{
    do {
        const uint32_t low = hex(p), high = take(p, "-") ? hex(p) : low;
        add_range(p, set, low, high, minus);
    } while (take(p, " ") && !p->failed);
    if (!take(p, "}")) fail(p);
}
/* A class escape (\s, \p{.}, \x{...}), added to the set; false: none here. */
static bool class_escape(parser *p, pn_set *set, bool minus)
{
    static const char names[] = "?LNPSMZC";
    if (take(p, "\\s")) {
        add_kinds(set, SPACE_KINDS, minus);
        return true;
    }
    if (take(p, "\\x{")) {
        hex_ranges(p, set, minus);
        return true;
    }
    if (!take(p, "\\p{")) return false;
    const char *name = *p->at ? strchr(names, *p->at) : NULL;
    if (!name || p->at[1] != '}') fail(p);
    else add_kinds(set, 1u << (name - names) | (*p->at == 'C' ? 1u << PN_KIND_CONTROL_SPACE : 0), minus), p->at += 2;
    return true;
}
static uint32_t literal(parser *p)
{
    if (take(p, "\\r")) return '\r';
    if (take(p, "\\n")) return '\n';
    take(p, "\\");
    if (!*p->at || (unsigned char)*p->at >= 0x80) fail(p); /* above ASCII: \x{...} */
    return p->failed ? 0 : (uint32_t)*p->at++;
}
/* After "[": up to "]". */
static void bracket(parser *p, pn_set *set)
{
    bool minus = false;
    set->negated = take(p, "^");
    while (!take(p, "]") && !p->failed) {
        if (take(p, "--")) minus = true;
        if (class_escape(p, set, minus)) continue;
        const uint32_t low = literal(p);
        const bool range = p->at[0] == '-' && p->at[1] != '-' && p->at[1] != ']';
        if (range) p->at++;
        add_range(p, set, low, range ? literal(p) : low, minus);
    }
}
static bool same_set(const pn_program *o, const pn_set *x, const pn_set *y)
{
    if (x->negated != y->negated || x->kinds != y->kinds || x->minus_kinds != y->minus_kinds || x->n != y->n) return false;
    for (int i = 0; i < x->n; i++) {
        const pn_range *a = &o->ranges[x->first + i], *b = &o->ranges[y->first + i];
        if (a->low != b->low || a->high != b->high || a->minus != b->minus) return false;
    }
    return true;
}
/* The index of the last set, or of an earlier one that is the same; then the last is dropped. */
static int settle(parser *p)
{
    pn_program *o = p->out;
    const int last = o->n_sets - 1;
    for (int i = 0; i < last; i++) {
        if (!same_set(o, &o->sets[i], &o->sets[last])) continue;
        o->n_ranges = o->sets[last].first;
        o->n_sets--;
        return i;
    }
    return last;
}
static int set_here(parser *p)
{
    pn_set *set = new_set(p);
    if (take(p, "[")) bracket(p, set);
    else if (take(p, "\\S")) set->negated = true, add_kinds(set, SPACE_KINDS, false);
    else if (!class_escape(p, set, false)) {
        const uint32_t c = literal(p);
        add_range(p, set, c, c, false);
    }
    return p->failed ? 0 : settle(p);
}

bool pn_set_holds(const pn_program *p, const pn_set *set, uint32_t c, pn_kind kind)
{
    bool in = set->kinds >> kind & 1, out = set->minus_kinds >> kind & 1;
    for (int i = set->first; i < set->first + set->n; i++) {
        const pn_range *r = &p->ranges[i];
        if (c < r->low || c > r->high) continue;
        if (r->minus) out = true;
        else in = true;
    }
    return (in && !out) != set->negated;
}

/* ---- code ------------------------------------------------------------------------------------ */

static void alternatives(parser *p);

static void atom(parser *p)
{
    if (take(p, "(?:")) {
        alternatives(p);
        if (!take(p, ")")) fail(p);
    } else if (take(p, "(?!\\S)")) {
        pn_set *set = new_set(p);
        add_kinds(set, SPACE_KINDS, false);
        if (!p->failed) emit(p, PN_OP_BEFORE, settle(p), 0);
    } else {
        const int set = set_here(p);
        emit(p, PN_OP_SET, set, 0);
    }
}
/* x{m,n}: the block from `start` on is the first of m copies, then up to n - m more, each only after the one before. */
static void repeat(parser *p, int start, int least, int most)
{
    const int length = p->out->n_code - start, end = start + most * length + (most - least);
    for (int copy = 1; copy < most && !p->failed; copy++) {
        if (copy >= least) emit(p, PN_OP_SPLIT, 1, end - p->out->n_code);
        for (int i = 0; i < length && !p->failed; i++) {
            const pn_instruction x = p->out->code[start + i];
            emit(p, x.op, x.a, x.b);
        }
    }
}
static void quantified(parser *p)
{
    const int start = p->out->n_code;
    atom(p);
    const int length = p->out->n_code - start;
    if (take(p, "?")) {
        insert(p, start, PN_OP_SPLIT, 1, length + 1);
    } else if (take(p, "*")) {
        insert(p, start, PN_OP_SPLIT, 1, length + 2);
        emit(p, PN_OP_JUMP, -(length + 1), 0);
    } else if (take(p, "+")) {
        emit(p, PN_OP_SPLIT, -length, 1);
    } else if (p->at[0] == '{') {
        const int least = p->at[1] - '0', most = p->at[2] == ',' ? p->at[3] - '0' : -1;
        if (least < 1 || most < least || most > 9 || p->at[4] != '}') {
            fail(p);
            return;
        }
        p->at += 5;
        repeat(p, start, least, most);
    }
}
static void alternatives(parser *p)
{
    const int start = p->out->n_code;
    while (*p->at && *p->at != '|' && *p->at != ')' && !p->failed) quantified(p);
    if (p->failed || !take(p, "|")) return;
    insert(p, start, PN_OP_SPLIT, 1, p->out->n_code - start + 2);
    const int jump = p->out->n_code;
    emit(p, PN_OP_JUMP, 0, 0);
    alternatives(p);
    if (!p->failed) p->out->code[jump].a = p->out->n_code - jump;
}

pinch_status pn_pattern_parse(pn_program *out, const char *expression, pinch_error *err)
{
    parser p = {expression, out, false};
    out->n_code = out->n_sets = out->n_ranges = 0;
    alternatives(&p);
    if (*p.at) fail(&p);
    emit(&p, PN_OP_MATCH, 0, 0);
    if (p.failed) return pn_fail(err, PINCH_ERR_ARGUMENT, "pre-tokenizer expression: not understood at \"%.20s\"", p.at);
    return PINCH_OK;
}
