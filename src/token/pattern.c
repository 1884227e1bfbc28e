/* token/pattern.c - code of an expression to an automaton, and the automaton's run.
 *
 * Characters fall into classes: two of one class are in the same sets. Class 0 is the end of the text. A state is the ordered list of places in the code where
 * a backtracking machine could be, the preferred first. A step on class k follows jumps and splits (lookahead sees k), drops whatever is less
 * preferred than a match, notes that match (MATCH_BEFORE: it ends before the character of k), and moves over the sets that hold k. So the last
 * match noted is the one that backtracking would find, and no character is read twice from one start. */
#include "token/pattern.h"

#include <stdlib.h>

#include "base/arena.h"
#include "token/pattern_int.h"
#include "token/text.h"

enum { MAX_CLASSES = 64, MAX_STATES = 1024, MAX_ROWS = 16, DEAD = 0, START = 1, MATCH_BEFORE = 0x8000, END_CLASS = 0 };

struct pn_pattern {
    uint16_t *next;     /* [n_states][n_classes]: state, and MATCH_BEFORE */
    uint32_t *boundary; /* ascending: code points above ASCII where a range of some set begins or has ended */
    uint8_t *row;       /* of the code points from boundary[i] on; those below boundary[0] are of row 0 */
    int n_states, n_classes, n_boundaries;
    uint8_t ascii[128];                       /* class */
    uint8_t kind_class[MAX_ROWS][PN_N_KINDS]; /* class by row and kind */
};

/* Everything that is gone after compilation; the lists of states are in an arena. */
typedef struct maker {
    pn_program program;
    pn_arena arena;
    uint32_t signature[MAX_CLASSES]; /* bit s: the class is in set s */
    int n_classes;
    struct state {
        uint16_t *place;
        int n;
    } states[MAX_STATES];
    int n_states;
    uint16_t *next;
    uint16_t list[PN_MAX_CODE]; /* the list being made; `listed` has a mark for each place on it */
    bool listed[PN_MAX_CODE];
    int n_list;
    const char *failure;
} maker;

/* ---- classes --------------------------------------------------------------------------------- */

static uint8_t class_of(maker *m, uint32_t c, pn_kind kind)
{
    uint32_t signature = 0;
    for (int i = 0; i < m->program.n_sets; i++) signature |= (uint32_t)pn_set_holds(&m->program, &m->program.sets[i], c, kind) << i;
    for (int i = 1; i < m->n_classes; i++)
        if (m->signature[i] == signature) return (uint8_t)i;
    if (m->n_classes == MAX_CLASSES) {
        m->failure = "too many classes of characters";
        return 0;
    }
    m->signature[m->n_classes] = signature;
    return (uint8_t)m->n_classes++;
}
static int compare_u32(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}
static bool make_boundaries(maker *m, pn_pattern *p)
{
    p->boundary = pn_alloc(2 * (uint64_t)m->program.n_ranges, sizeof *p->boundary);
    p->row = pn_alloc(2 * (uint64_t)m->program.n_ranges, sizeof *p->row);
    if (!p->boundary || !p->row) return false;
    int n = 0;
    for (int i = 0; i < m->program.n_ranges; i++) {
        const pn_range *r = &m->program.ranges[i];
        if (r->high < 0x80) continue;
        p->boundary[n++] = r->low < 0x80 ? 0x80 : r->low;
        p->boundary[n++] = r->high + 1;
    }
    if (n) qsort(p->boundary, (size_t)n, sizeof *p->boundary, compare_u32);
    for (int i = 0; i < n; i++)
        if (!p->n_boundaries || p->boundary[p->n_boundaries - 1] != p->boundary[i]) p->boundary[p->n_boundaries++] = p->boundary[i];
    return true;
}
static bool make_classes(maker *m, pn_pattern *p)
{
    if (!make_boundaries(m, p)) return false;
    m->n_classes = 1;
    for (uint32_t c = 0; c < 128; c++) p->ascii[c] = class_of(m, c, pn_unicode_kind(c));
    int n_rows = 0;
    for (int i = -1; i < p->n_boundaries && !m->failure; i++) {
        uint8_t row[PN_N_KINDS];
        for (int kind = 0; kind < PN_N_KINDS; kind++) row[kind] = class_of(m, i < 0 ? 0x80 : p->boundary[i], (pn_kind)kind);
        int r = 0;
        while (r < n_rows && memcmp(p->kind_class[r], row, sizeof row) != 0) r++;
        if (r == MAX_ROWS) m->failure = "too many kinds of ranges";
        else memcpy(p->kind_class[r], row, sizeof row);
        if (r == n_rows) n_rows++;
        if (i >= 0) p->row[i] = (uint8_t)r;
    }
    return true;
}

/* ---- states ---------------------------------------------------------------------------------- */

static void list_add(maker *m, int place)
{
    if (m->listed[place]) return;
    m->listed[place] = true;
    m->list[m->n_list++] = (uint16_t)place;
}
/* The number of the state whose list is m->list; a new one where there is none yet. */
static int list_state(maker *m)
{
    memset(m->listed, 0, sizeof m->listed);
    const size_t bytes = (size_t)m->n_list * sizeof *m->list;
    for (int i = 0; i < m->n_states; i++)
        if (m->states[i].n == m->n_list && (!bytes || memcmp(m->states[i].place, m->list, bytes) == 0)) return i;
    uint16_t *place = pn_arena_get(&m->arena, bytes + 1, 1);
    if (m->n_states == MAX_STATES || !place) {
        m->failure = "too many states";
        return DEAD;
    }
    memcpy(place, m->list, bytes);
    m->states[m->n_states] = (struct state){place, m->n_list};
    return m->n_states++;
}
/* Follows the code from `place` on, preferred ways first. True: a match, nothing after it counts. */
static bool follow(maker *m, bool *seen, int place, int class)
{
    while (!seen[place]) {
        seen[place] = true;
        const pn_instruction *x = &m->program.code[place];
        const bool holds = class != END_CLASS && (m->signature[class] >> (x->op == PN_OP_SET || x->op == PN_OP_BEFORE ? x->a : 0) & 1);
        switch (x->op) {
        case PN_OP_MATCH: return true;
        case PN_OP_SET:
            if (holds) list_add(m, place + 1);
            return false;
        case PN_OP_BEFORE:
            if (class != END_CLASS && !holds) return false;
            place++;
            break;
        case PN_OP_JUMP: place += x->a; break;
        case PN_OP_SPLIT:
            if (follow(m, seen, place + x->a, class)) return true;
            place += x->b;
            break;
        }
    }
    return false;
}
static uint16_t step(maker *m, int state, int class)
{
    bool seen[PN_MAX_CODE] = {false}, match = false;
    m->n_list = 0;
    for (int i = 0; i < m->states[state].n && !match; i++) match = follow(m, seen, m->states[state].place[i], class);
    return (uint16_t)(list_state(m) | (match ? MATCH_BEFORE : 0));
}
static bool make_states(maker *m)
{
    uint64_t room = 0;
    m->n_list = 0;
    list_state(m); /* DEAD: nowhere */
    list_add(m, 0);
    list_state(m); /* START: the beginning of the code */
    for (int state = 0; state < m->n_states && !m->failure; state++) {
        if ((uint64_t)m->n_states > room) {
            room = 2 * (uint64_t)m->n_states;
            uint16_t *grown = realloc(m->next, (size_t)room * (size_t)m->n_classes * sizeof *grown);
            if (!grown) return false;
            m->next = grown;
        }
        for (int class = 0; class < m->n_classes; class++) m->next[state * m->n_classes + class] = step(m, state, class);
    }
    return true;
}

pinch_status pn_pattern_compile(pn_pattern **out, const char *expression, pinch_error *err)
{
    maker *m = pn_alloc_zero(1, sizeof *m);
    pn_pattern *p = pn_alloc_zero(1, sizeof *p);
    if (!m || !p) {
        free(m);
        free(p);
        return pn_fail_memory(err, "a pre-tokenizer", sizeof *m + sizeof *p);
    }
    pn_arena_init(&m->arena, 1 << 20);
    pinch_status st = pn_pattern_parse(&m->program, expression, err);
    if (!st && (!make_classes(m, p) || !make_states(m))) st = pn_fail_memory(err, "a pre-tokenizer", sizeof *m);
    if (!st && m->failure) st = pn_fail(err, PINCH_ERR_ARGUMENT, "pre-tokenizer expression \"%.40s\": %s", expression, m->failure);
    p->next = m->next;
    p->n_states = m->n_states;
    p->n_classes = m->n_classes;
    pn_arena_free(&m->arena);
    free(m);
    if (st) pn_pattern_free(p);
    else *out = p;
    return st;
}

void pn_pattern_free(pn_pattern *p)
{
    if (!p) return;
    free(p->next);
    free(p->boundary);
    free(p->row);
    free(p);
}

uint64_t pn_pattern_bytes(const pn_pattern *p)
{
    return sizeof *p + (uint64_t)p->n_states * (uint64_t)p->n_classes * sizeof *p->next + (uint64_t)p->n_boundaries * (sizeof *p->boundary + 1);
}

/* ---- the run --------------------------------------------------------------------------------- */

static uint8_t class_at(const pn_pattern *p, uint32_t c)
{
    int low = 0, high = p->n_boundaries;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (p->boundary[middle] <= c) low = middle + 1;
        else high = middle;
    }
    return p->kind_class[low ? p->row[low - 1] : 0][pn_unicode_kind(c)];
}
/* Where the match that begins at `at` ends; `at` itself: none. */
static size_t match_end(const pn_pattern *p, const unsigned char *s, size_t at, size_t end)
{
    size_t best = at;
    for (uint32_t state = START; state != DEAD;) {
        size_t length = 1;
        uint8_t class = END_CLASS;
        if (at < end && s[at] < 0x80) {
            class = p->ascii[s[at]];
        } else if (at < end) {
            uint32_t c;
            length = pn_text_decode(s + at, end - at, &c);
            class = c < 0x80 ? p->ascii[c] : class_at(p, c); /* an overlong form may be ASCII */
        }
        const uint32_t next = p->next[state * (uint32_t)p->n_classes + class];
        if (next & MATCH_BEFORE) best = at;
        state = next & ~(uint32_t)MATCH_BEFORE;
        at += length;
    }
    return best;
}

bool pn_pattern_find(const pn_pattern *p, const char *text, size_t at, size_t end, size_t *from, size_t *to)
{
    const unsigned char *s = (const unsigned char *)text;
    while (at < end) {
        const size_t stop = match_end(p, s, at, end);
        if (stop > at) {
            *from = at;
            *to = stop;
            return true;
        }
        uint32_t c;
        at += pn_text_decode(s + at, end - at, &c);
    }
    return false;
}
