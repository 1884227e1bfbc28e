/* Causal convolution of columns. Threads share the channels; a thread takes the rows of a batch in order, those of one sequence together. */
#include "graph/walk.h"

/* Rows that are convolved together: the lines of all of them that 16 channels meet stay in a core's cache. */
enum { CONV_ROWS = 8 };

static void conv_rows(const pn_run *run, const pn_conv *s, int32_t row, int32_t n_rows, int64_t first, int64_t n)
{
    float *base = pn_row(run, s->buffer, row) + first;
    const int64_t stride = run->plan->buffers[s->buffer].width;
    const pn_conv_rows c = {.y = base + s->out, .x = base + s->column, .in_gate = s->in_gate == PN_NONE ? NULL : base + s->in_gate,
                            .out_gate = s->out_gate == PN_NONE ? NULL : base + s->out_gate, .y_stride = stride, .x_stride = stride,
                            .tail = pn_state_recurrent(run->state, s->layer, run->places[row].seq) + s->state + first, .taps = s->taps + first,
                            .bias = s->bias ? s->bias + first : NULL, .stride = s->channels, .n_rows = n_rows, .n = n, .n_taps = s->n_taps, .silu = s->silu};
    run->ops->conv(&c);
    for (int t = 0; t < s->n_taps - 1; t++) pn_keep_row(run, s->layer, row, s->state + t * s->channels + first, n);
}

static bool conv(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_conv *s = &step->u.conv;
    int64_t begin, end;
    pn_share(lane, (s->channels + PN_UNIT - 1) / PN_UNIT, &begin, &end);
    begin *= PN_UNIT;
    end = pn_min64(end * PN_UNIT, s->channels);
    if (begin >= end) return true;
    for (int32_t row = 0, n; row < run->n_rows; row += n) {
        n = pn_carried_rows(run, s->layer, row, CONV_ROWS);
        conv_rows(run, s, row, n, begin, end - begin);
    }
    return true;
}

static pn_uses conv_uses(const pn_step *step) { return (pn_uses){.reads = pn_buffer_bit(step->u.conv.buffer)}; }

const pn_step_kind pn_step_conv = {"conv", conv, conv_uses};
