/* Dense mat-muls: up to six matrices on one input, their bias, scale and gate while the result is in cache; and the experts of a mixture. */
#include "graph/walk.h"

#include <math.h>

/* Where a row begins that is a multiple of PN_UNIT, and so of every layout's groups. */
static const uint8_t *weight_at(const pn_weight *w, int32_t expert, int64_t row)
{
    const uint8_t *matrix = w->data + (uint64_t)expert * w->matrix_bytes;
    if (w->kernel && w->kernel->group_bytes) return matrix + (uint64_t)(row / w->kernel->rows) * w->kernel->group_bytes(w->k);
    const pn_type_info *type = pn_type_get((uint32_t)w->type);
    return matrix + row * (w->k / type->block * type->bytes);
}

void pn_multiply(const pn_run *run, pn_lane *lane, const pn_weight *w, int32_t expert, const void *const *x, float *const *y, int64_t n_cols, int64_t row0, int64_t row1)
{
    const pn_mm mm = {.w = weight_at(w, expert, row0), .rows = row1 - row0, .k = w->k, .x = x, .y = y, .n_cols = n_cols};
    if (!w->kernel) {
        const pn_exact_mm exact = {.mm = mm, .type = w->type};
        run->ops->exact(&exact, 0, mm.rows, lane->scratch);
    } else {
        (n_cols == 1 ? w->kernel->gemv : w->kernel->gemm)(&mm, 0, mm.rows, lane->scratch);
    }
}

void pn_finish(const pn_run *run, const pn_output *out, int32_t expert, float *const *y, int64_t n_cols, int64_t row0, int64_t row1)
{
    const float *scale = out->w->scale;
    const float *bias = out->bias ? out->bias + expert * out->w->rows + row0 : NULL;
    if (!bias && !scale) return;
    for (int64_t c = 0; c < n_cols; c++) {
        if (bias && out->bias_first) run->ops->add(y[c], bias, row1 - row0);
        if (scale) run->ops->scale(y[c], scale[expert], row1 - row0);
        if (bias && !out->bias_first) run->ops->add(y[c], bias, row1 - row0);
    }
}

void pn_gate_rows(const pn_ops *ops, pn_gate gate, float clamp, float *const *y, float *const *u, int64_t n_cols, int64_t n)
{
    void (*const act[])(float *, const float *, const float *, int64_t) = {NULL, ops->silu_mul, ops->gelu_mul, ops->relu2_mul, ops->clamped_mul};
    if (gate == PN_GATE_NONE) return;
    for (int64_t c = 0; c < n_cols; c++) {
        act[gate](y[c], y[c], u && clamp == 0.0f ? u[c] : NULL, n);
        if (clamp == 0.0f) continue;
        ops->clamp(y[c], -INFINITY, clamp, n);
        if (!u) continue;
        ops->clamp(u[c], -clamp, clamp, n);
        ops->mul(y[c], u[c], n);
    }
}

float *pn_beside(const pn_run *run, const pn_lane *lane, int64_t n_cols, int64_t column) { return lane->beside + column * pn_beside_rows(run, n_cols); }

/* ---- dense ------------------------------------------------------------------------------------------------------------------------- */

static void point_outputs(const pn_run *run, const pn_lane *lane, const pn_output *out, float **y, int64_t row0)
{
    for (int32_t r = 0; r < run->n_rows; r++)
        y[r] = out->buffer == PN_NONE ? pn_beside(run, lane, run->n_rows, r) : pn_row(run, out->buffer, r) + out->column + row0;
}

static void point_inputs(const pn_run *run, pn_lane *lane, const pn_weight *w)
{
    const pn_act act = pn_weight_act(w);
    for (int32_t r = 0; r < run->n_rows; r++) lane->x[r] = pn_act_row(run, lane, act, r);
}

static void one_matrix(pn_run *run, pn_lane *lane, const pn_output *out, float **y, int64_t row0, int64_t row1)
{
    point_inputs(run, lane, out->w);
    point_outputs(run, lane, out, y, row0);
    pn_multiply(run, lane, out->w, 0, lane->x, y, run->n_rows, row0, row1);
    pn_finish(run, out, 0, y, run->n_rows, row0, row1);
}

static void finish_logits(const pn_run *run, const pn_matmul *m, float *const *y, int64_t n)
{
    for (int32_t r = 0; r < run->n_rows; r++) {
        if (m->scale != 1.0f) run->ops->scale(y[r], m->scale, n);
        if (m->softcap != 0.0f) run->ops->softcap(y[r], m->softcap, n);
    }
}

/* Gate and up go a few rows at a time together: the activation meets both while they are in cache, and up needs no buffer. */
static void paired(pn_run *run, pn_lane *lane, const pn_matmul *m, const pn_step *step)
{
    const int64_t rows = m->out[0].w->rows, units = (rows + PN_UNIT - 1) / PN_UNIT, step_rows = pn_beside_rows(run, run->n_rows);
    int64_t a, b;
    while (pn_grab_next(pn_step_grab(run, step), units, lane->n_threads, &a, &b)) {
        const int64_t end = pn_min64(b * PN_UNIT, rows);
        for (int64_t row0 = a * PN_UNIT, row1; row0 < end; row0 = row1) {
            row1 = pn_min64(row0 + step_rows, end);
            for (int i = 0; i < m->n; i++) one_matrix(run, lane, &m->out[i], lane->y[i], row0, row1);
            pn_gate_rows(run->ops, m->gate, m->clamp, lane->y[0], m->n == 2 ? lane->y[1] : NULL, run->n_rows, row1 - row0);
        }
    }
}

/* Matrices one after the other, one scale of units over all of them. */
static void in_turn(pn_run *run, pn_lane *lane, const pn_matmul *m, const pn_step *step)
{
    int64_t first[PN_COUNT(m->out) + 1] = {0};
    for (int i = 0; i < m->n; i++) first[i + 1] = first[i] + (m->out[i].w->rows + PN_UNIT - 1) / PN_UNIT;
    int64_t a, b;
    while (pn_grab_next(pn_step_grab(run, step), first[m->n], lane->n_threads, &a, &b)) {
        for (int i = 0; i < m->n; i++) {
            const int64_t from = pn_max64(a, first[i]) - first[i], to = pn_min64(b, first[i + 1]) - first[i];
            if (from >= to) continue;
            const int64_t row0 = from * PN_UNIT, row1 = pn_min64(to * PN_UNIT, m->out[i].w->rows);
            one_matrix(run, lane, &m->out[i], lane->y[0], row0, row1);
            finish_logits(run, m, lane->y[0], row1 - row0);
        }
    }
}

static bool matmul(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_matmul *m = &step->u.matmul;
    pn_prep_rows(run, lane, &m->prep);
    if (m->gate == PN_GATE_NONE) in_turn(run, lane, m, step);
    else paired(run, lane, m, step);
    return true;
}

/* Results that begin beyond column 0 add to a row that an earlier step has begun, unless this step writes its beginning too. */
static pn_uses matmul_uses(const pn_step *step)
{
    const pn_matmul *m = &step->u.matmul;
    pn_uses uses = {.reads = pn_prep_reads(&m->prep)};
    pn_buffer_set begun = 0;
    for (int i = 0; i < m->n; i++) {
        uses.weights += pn_weight_bytes(m->out[i].w);
        uses.writes |= pn_buffer_bit(m->out[i].buffer);
        if (m->out[i].column == 0) begun |= pn_buffer_bit(m->out[i].buffer);
    }
    uses.reads |= uses.writes & ~begun;
    return uses;
}

const pn_step_kind pn_step_matmul = {"matmul", matmul, matmul_uses};
