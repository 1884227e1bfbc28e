/* Plans as lists of steps and named buffers, while they are built. Knows no step by kind. */
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

const char *pn_step_name(const pn_step *step) { return step->kind->name; }
