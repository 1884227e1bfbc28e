/* kernels/neon/recurrent_neon.c - convolutions and selective scans of recurrent layers on four lanes. Meaning and order of sums: ops.def. */
#include "kernels/neon/ops_neon.h"

#include "kernels/neon/math_neon.h"
#include "kernels/neon/lines.h"

#define INLINE static inline __attribute__((always_inline))

/* The first n of four. */
INLINE float32x4_t some(const float *p, int64_t n)
{
    if (n == 4) return vld1q_f32(p);
    float part[4] = {0};
    for (int64_t i = 0; i < n; i++) part[i] = p[i];
    return vld1q_f32(part);
}

INLINE void put_some(float *p, int64_t n, float32x4_t v)
{
    if (n == 4) {
        vst1q_f32(p, v);
        return;
    }
    float part[4];
    vst1q_f32(part, v);
    for (int64_t i = 0; i < n; i++) p[i] = part[i];
}

INLINE float32x4_t conv_input(const pn_conv_rows *c, int64_t row, int64_t i, int64_t n)
{
    const int64_t at = row * c->x_stride + i;
    const float32x4_t x = some(c->x + at, n);
    return c->in_gate ? vmulq_f32(some(c->in_gate + at, n), x) : x;
}

INLINE void conv_output(const pn_conv_rows *c, int64_t row, int64_t i, int64_t n, float32x4_t acc)
{
    if (c->bias) acc = vaddq_f32(acc, some(c->bias + i, n));
    if (c->silu) acc = neon_silu(acc);
    if (c->out_gate) acc = vmulq_f32(some(c->out_gate + row * c->x_stride + i, n), acc);
    put_some(c->y + row * c->y_stride + i, n, acc);
}

/* Channels i .. i+3, taps and tail in registers. */
INLINE void conv_lanes(const pn_conv_rows *c, int64_t i, int n_taps)
{
    float32x4_t taps[PN_MAX_TAPS], u[PN_MAX_TAPS];
    for (int k = 0; k < n_taps; k++) taps[k] = vld1q_f32(c->taps + k * c->stride + i);
    for (int k = 0; k < n_taps - 1; k++) u[k] = vld1q_f32(c->tail + k * c->stride + i);
    for (int64_t row = 0; row < c->n_rows; row++) {
        float32x4_t acc = vdupq_n_f32(0);
        u[n_taps - 1] = conv_input(c, row, i, 4);
        for (int k = 0; k < n_taps; k++) acc = vfmaq_f32(acc, taps[k], u[k]);
        for (int k = 0; k < n_taps - 1; k++) u[k] = u[k + 1];
        conv_output(c, row, i, 4, acc);
    }
    for (int k = 0; k < n_taps - 1; k++) vst1q_f32(c->tail + k * c->stride + i, u[k]);
}

/* Any number of taps, channels i .. i+n-1: the tail moves up in memory. */
static void conv_any(const pn_conv_rows *c, int64_t i, int64_t n)
{
    const int last = c->n_taps - 1;
    for (int64_t row = 0; row < c->n_rows; row++) {
        const float32x4_t x = conv_input(c, row, i, n);
        float32x4_t acc = vdupq_n_f32(0);
        for (int k = 0; k < last; k++) {
            const float32x4_t u = some(c->tail + k * c->stride + i, n);
            acc = vfmaq_f32(acc, some(c->taps + k * c->stride + i, n), u);
            if (k > 0) put_some(c->tail + (k - 1) * c->stride + i, n, u);
        }
        acc = vfmaq_f32(acc, some(c->taps + last * c->stride + i, n), x);
        put_some(c->tail + (last - 1) * c->stride + i, n, x);
        conv_output(c, row, i, n, acc);
    }
}

void pn_neon_conv(const pn_conv_rows *c)
{
    for (int64_t i = 0; i < c->n; i += 4) {
        const int64_t n = pn_min64(c->n - i, 4);
        if (n < 4) conv_any(c, i, n);
        else if (c->n_taps == 3) conv_lanes(c, i, 3); /* LFM2 */
        else if (c->n_taps == 4) conv_lanes(c, i, 4); /* Mamba-2, DeltaNet */
        else if (c->n_taps == 7) conv_lanes(c, i, 7); /* LFM3 */
        else conv_any(c, i, 4);
    }
}

/* Parts of a pass over a strip of states: lines.h. */
#define DECAY(v, x, line) V_FMUL(x[v], x[v], decay);
#define UPDATE(v, x, line) V_FMLA_LANE(x[v], in[v], b, line);
#define SUM_AND_STORE(v, x, line) V_FMLA_LANE(y[v], x[v], c, line); STORE(v, x, line)
#define DECAY_SUM_STORE(v, x, line, w, before) DECAY(v, x, line) SUM_AND_STORE(v, w, before)

typedef struct strip {
    float32x4_t in[4], y[4], decay;
} strip;

/* One row on one strip of d_state lines. */
static void scan(float *s, const float *from, const float *to, strip *t, int d_state)
{
    float32x4_t x[4], w[4], in[4], y[4], b, c, decay = t->decay;
    int i = 0;
    for (int v = 0; v < 4; v++) in[v] = t->in[v], y[v] = vdupq_n_f32(0);
    for (; i + 4 <= d_state; i += 4, s += 4 * PN_STRIP) {
        b = vld1q_f32(from + i);
        c = vld1q_f32(to + i);
        FOUR_LINES(DECAY_SUM_STORE)
        EACH(SUM_AND_STORE, w, 3)
    }
    for (int v = 0; v < 4; v++) t->y[v] = y[v];
    for (; i < d_state; i++, s += PN_STRIP)
        for (int v = 0; v < 4; v++) {
            const float32x4_t value = vfmaq_n_f32(vmulq_f32(vld1q_f32(s + 4 * v), decay), t->in[v], from[i]);
            vst1q_f32(s + 4 * v, value);
            t->y[v] = vfmaq_n_f32(t->y[v], value, to[i]);
        }
}

/* Channels channel .. + n - 1 of a row. */
static void scan_row(const pn_ssm_rows *r, int64_t row, int channel, int n)
{
    const int64_t at = row * r->stride;
    float x[PN_STRIP] = {0};
    strip t;
    memcpy(x, r->x + at + channel, (size_t)n * sizeof *x);
    t.decay = vdupq_n_f32(r->decay[row]);
    for (int v = 0; v < 4; v++) t.in[v] = vmulq_n_f32(vld1q_f32(x + 4 * v), r->step[row]);
    scan(r->state + (int64_t)channel * r->d_state, r->b + at, r->c + at, &t, r->d_state);
    for (int v = 0; v < 4; v++) vst1q_f32(x + 4 * v, vfmaq_n_f32(t.y[v], vld1q_f32(x + 4 * v), r->skip));
    memcpy(r->y + at + channel, x, (size_t)n * sizeof *x);
}

/* A strip stays in the first-level cache while all rows pass over it. */
void pn_neon_ssm(const pn_ssm_rows *r)
{
    for (int channel = 0; channel < r->n; channel += PN_STRIP)
        for (int64_t row = 0; row < r->n_rows; row++) scan_row(r, row, channel, (int)pn_min64(PN_STRIP, r->n - channel));
}
