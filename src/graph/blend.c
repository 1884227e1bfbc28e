/* Two rows, each normed part by part, become one: a dense block beside experts, and what layers get of the token beside the stream. */
#include "graph/walk.h"

static void blend_part(const pn_run *run, pn_lane *lane, const pn_blend *s, int32_t row, int64_t first)
{
    const pn_update from = {.from = s->x, .n_used = s->n_used, .weights = s->weights, .shared = PN_NONE};
    const float *x = pn_update_value(run, &from, row, s->width * s->parts, first, s->width, lane->work);
    float *y = pn_row(run, s->y, row) + first;
    if (s->x_norm) {
        pn_rms_norm(run->ops, lane->work, x, s->x_norm, s->eps, s->width);
        x = lane->work;
    }
    if (s->y_norm) pn_rms_norm(run->ops, y, y, s->y_norm, s->eps, s->width);
    run->ops->add(y, x, s->width);
    if (s->scale != 1.0f) run->ops->scale(y, s->scale, s->width);
}

static bool blend(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_blend *s = &step->u.blend;
    int64_t begin, end;
    pn_share(lane, (int64_t)run->n_rows * s->parts, &begin, &end);
    for (int64_t i = begin; i < end; i++) blend_part(run, lane, s, (int32_t)(i / s->parts), i % s->parts * s->width);
    return true;
}

static pn_uses blend_uses(const pn_step *step)
{
    const pn_blend *s = &step->u.blend;
    return (pn_uses){.reads = pn_buffer_bit(s->y) | pn_buffer_bit(s->x) | (s->n_used ? pn_buffer_bit(s->weights) : 0)};
}

const pn_step_kind pn_step_blend = {"blend", blend, blend_uses};
