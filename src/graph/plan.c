/* Plans as lists of steps and named buffers, while they are built; which buffers may share memory. Knows no step by kind. */
#include "graph/walk.h"

#include <stdlib.h>

void pn_plan_free(pn_plan *plan)
{
    free(plan->steps);
    free(plan->shapes);
    *plan = (pn_plan){0};
}

int pn_plan_buffer(pn_plan *plan, const char *name, int64_t width)
{
    int i = 0;
    while (i < plan->n_buffers && strcmp(plan->buffers[i].name, name)) i++;
    if (i == (int)PN_COUNT(plan->buffers)) return PN_NONE;
    if (i == plan->n_buffers) plan->buffers[plan->n_buffers++] = (pn_buffer){.name = name};
    if (plan->buffers[i].width < width) plan->buffers[i].width = width;
    return i;
}

pn_step *pn_plan_step(pn_plan *plan, const pn_step_kind *kind, int32_t layer)
{
    if (plan->n_steps == plan->capacity) {
        const int capacity = plan->capacity ? plan->capacity * 2 : 64;
        pn_step *steps = realloc(plan->steps, (size_t)capacity * sizeof *steps);
        if (!steps) return NULL;
        plan->steps = steps;
        plan->capacity = capacity;
    }
    pn_step *s = &plan->steps[plan->n_steps++];
    memset(s, 0, sizeof *s);
    s->kind = kind;
    s->layer = layer;
    return s;
}

int pn_plan_cut(const pn_plan *plan, int32_t layer)
{
    int cut = 0;
    for (int i = 0; i < plan->head; i++)
        if (plan->steps[i].layer == layer) cut = i + 1;
    return cut;
}

bool pn_plan_shares_keys(const pn_plan *plan, int cut, int32_t layer)
{
    for (int i = cut; i < plan->head; i++)
        if (plan->steps[i].kind->uses(&plan->steps[i]).keys_of == layer + 1) return pn_plan_cut(plan, layer) <= cut;
    return false;
}

/* ---- layout ------------------------------------------------------------------------------------------------------------------------ */

/* Floats that a buffer takes in a row: whole cache lines, so that every buffer of a batch begins with one. */
static int64_t room(const pn_buffer *b) { return (int64_t)pn_round_up((uint64_t)b->width, 16); }

/* Backwards: what a step reads is alive before it, what it writes and does not read is not. `after`: alive after the last step. Returns what is alive
 * before the head. */
static pn_buffer_set flow_back(pn_plan *plan, pn_buffer_set after)
{
    pn_buffer_set head = 0;
    for (int i = plan->n_steps - 1; i >= 0; i--) {
        pn_step *s = &plan->steps[i];
        const pn_uses uses = s->kind->uses(s);
        s->alive = after;
        after = (s->alive & ~uses.writes) | uses.reads;
        if (i == plan->head) head = after;
    }
    return head;
}

/* The first place beside those of `placed` that is wide enough. */
static int64_t first_gap(const pn_plan *plan, pn_buffer_set placed, int64_t width)
{
    int64_t at = 0;
    for (int i = 0; i < plan->n_buffers; i++) {
        const pn_buffer *b = &plan->buffers[i];
        if (!(placed & pn_buffer_bit(i)) || at + width <= b->offset || b->offset + room(b) <= at) continue;
        at = b->offset + room(b);
        i = -1; /* the earlier ones again */
    }
    return at;
}

static int widest(const pn_plan *plan, pn_buffer_set of)
{
    int best = PN_NONE;
    for (int i = 0; i < plan->n_buffers; i++)
        if (of & pn_buffer_bit(i) && (best == PN_NONE || plan->buffers[i].width > plan->buffers[best].width)) best = i;
    return best;
}

/* The head is walked several times over: what it finds before it, none of its steps may overwrite. What the trunk begins with is filled before each walk. */
void pn_plan_lay_out(pn_plan *plan)
{
    pn_buffer_set meets[PN_MAX_BUFFERS] = {0}, placed = 0;
    flow_back(plan, flow_back(plan, 0));
    for (int i = 0; i < plan->n_steps; i++) {
        const pn_step *s = &plan->steps[i];
        const pn_uses uses = s->kind->uses(s);
        const pn_buffer_set held = s->alive | uses.reads | uses.writes;
        for (int b = 0; b < plan->n_buffers; b++)
            if (held & pn_buffer_bit(b)) meets[b] |= held;
    }
    plan->row_floats = 0;
    for (pn_buffer_set left = ((UINT32_C(1) << plan->n_buffers) - 1) & ~pn_buffer_bit(plan->logits); left;) {
        const int i = widest(plan, left);
        pn_buffer *b = &plan->buffers[i];
        b->offset = first_gap(plan, placed & meets[i], room(b));
        plan->row_floats = pn_max64(plan->row_floats, b->offset + room(b));
        placed |= pn_buffer_bit(i);
        left &= ~pn_buffer_bit(i);
    }
}

uint64_t pn_plan_weight_bytes(const pn_plan *plan)
{
    uint64_t bytes = 0;
    for (int i = 0; i < plan->n_steps; i++) bytes += plan->steps[i].kind->uses(&plan->steps[i]).weights;
    return bytes;
}

const char *pn_step_name(const pn_step *step) { return step->kind->name; }
