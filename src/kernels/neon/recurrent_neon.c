/* kernels/neon/recurrent_neon.c - convolutions and selective scans of recurrent layers on four lanes. Meaning and order of sums: ops.def. */
#include "kernels/neon/ops_neon.h"

#include "kernels/neon/math_neon.h"

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

enum { STRIP_VECTORS = PN_STRIP / 4, SCAN_ROWS = 2 };

/* One strip over n_rows rows: each value of the state is loaded and stored once for all of the rows. */
INLINE void ssm_strip(const pn_ssm_rows *s, int64_t strip, int64_t row, int n_rows)
{
    float32x4_t x[SCAN_ROWS][STRIP_VECTORS], y[SCAN_ROWS][STRIP_VECTORS];
    float *state = s->state + strip * s->d_state * PN_STRIP;
    for (int r = 0; r < n_rows; r++)
        for (int j = 0; j < STRIP_VECTORS; j++) {
            const int64_t at = strip * PN_STRIP + j * 4, left = pn_min64(pn_max64(s->n - at, 0), 4);
            x[r][j] = vmulq_n_f32(some(s->x + (row + r) * s->stride + at, left), s->step[row + r]);
            y[r][j] = vdupq_n_f32(0);
        }
    for (int i = 0; i < s->d_state; i++, state += PN_STRIP) {
        for (int j = 0; j < STRIP_VECTORS; j++) {
            float32x4_t v = vld1q_f32(state + j * 4);
            for (int r = 0; r < n_rows; r++) {
                const int64_t at = (row + r) * s->stride + i;
                v = vfmaq_n_f32(vmulq_n_f32(v, s->decay[row + r]), x[r][j], s->b[at]);
                y[r][j] = vfmaq_n_f32(y[r][j], v, s->c[at]);
            }
            vst1q_f32(state + j * 4, v);
        }
    }
    for (int r = 0; r < n_rows; r++)
        for (int j = 0; j < STRIP_VECTORS; j++) {
            const int64_t at = strip * PN_STRIP + j * 4, left = pn_min64(pn_max64(s->n - at, 0), 4), from = (row + r) * s->stride + at;
            put_some(s->y + from, left, vfmaq_n_f32(y[r][j], some(s->x + from, left), s->skip));
        }
}

void pn_neon_ssm(const pn_ssm_rows *s)
{
    for (int64_t strip = 0; strip * PN_STRIP < s->n; strip++) {
        int64_t row = 0;
        for (; row + SCAN_ROWS <= s->n_rows; row += SCAN_ROWS) ssm_strip(s, strip, row, SCAN_ROWS);
        for (; row < s->n_rows; row++) ssm_strip(s, strip, row, 1);
    }
}
