/* Mamba-2's selective scan. Threads share the heads; a head takes the rows of a batch in order, those of one sequence together, its state in cache. */
#include "graph/walk.h"

#include "base/math.h"

enum { SSM_ROWS = 64 }; /* rows of one sequence that are scanned together */

/* Rows [row, row + n) of head h. */
static void scan_rows(const pn_run *run, const pn_ssm *s, int32_t h, int32_t row, int32_t n)
{
    const int64_t inner = (int64_t)s->n_head * s->head, width = run->plan->buffers[s->buffer].width, channels = inner + 2 * (int64_t)s->n_groups * s->d_state;
    float *z = pn_row(run, s->buffer, row) + (int64_t)h * s->head, *x = z + inner;
    const float *b = pn_row(run, s->buffer, row) + 2 * inner + (int64_t)(h / (s->n_head / s->n_groups)) * s->d_state;
    const float *dt = pn_row(run, s->buffer, row) + inner + channels + h;
    const int64_t floats = pn_ssm_floats(s->head, s->d_state);
    float decay[SSM_ROWS], step[SSM_ROWS];
    for (int32_t r = 0; r < n; r++) {
        step[r] = pn_softplus(dt[r * width] + s->dt_bias[h]);
        decay[r] = pn_expf(step[r] * s->a[h]);
    }
    const pn_ssm_rows rows = {.y = x, .x = x, .b = b, .c = b + (int64_t)s->n_groups * s->d_state, .stride = width, .decay = decay, .step = step, .skip = s->skip[h],
                              .state = pn_state_recurrent(run->state, s->layer, run->places[row].seq) + s->state + h * floats,
                              .n_rows = n, .n = s->head, .d_state = s->d_state};
    run->ops->ssm(&rows);
    pn_keep_row(run, s->layer, row, s->state + h * floats, floats);
    for (int32_t r = 0; r < n; r++) run->ops->silu_mul(z + r * width, z + r * width, x + r * width, s->head);
}

static bool ssm(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_ssm *s = &step->u.ssm;
    int64_t a, b;
    while (pn_grab_next(pn_step_grab(run, step), s->n_head, lane->n_threads, &a, &b)) {
        for (; a < b; a++) {
            for (int32_t row = 0, n; row < run->n_rows; row += n) {
                n = pn_carried_rows(run, s->layer, row, SSM_ROWS);
                scan_rows(run, s, (int32_t)a, row, n);
            }
        }
    }
    return true;
}

static pn_uses ssm_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.ssm.buffer)}; }

const pn_step_kind pn_step_ssm = {"ssm", ssm, ssm_uses};
