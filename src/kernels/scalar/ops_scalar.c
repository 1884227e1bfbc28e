/* kernels/scalar/ops_scalar.c - the definition of every vector operation (pn_ops): rounding and order of sums as ops.def states them. */
#include "base/math.h"
#include "base/math_poly.h"
#include "kernels/registry.h"
#include "quant/codes.h"

#include <math.h>

/* ---- activation formats ---- */

static float largest_magnitude(const float *x, int n)
{
    float m = 0;
    for (int i = 0; i < n; i++) m = fabsf(x[i]) > m ? fabsf(x[i]) : m;
    return m;
}

static int8_t round_code(float x, float per_step)
{
    float t = x * per_step;
    t = t > -127.0f ? t : -127.0f;
    t = t < 127.0f ? t : 127.0f;
    return (int8_t)rintf(t);
}

/* Codes of n elements; returns the step. */
static float round_block(int8_t *q, const float *x, int n)
{
    const float m = largest_magnitude(x, n);
    if (!(m >= 1e-30f)) {
        memset(q, 0, (size_t)n);
        return 0;
    }
    const float per_step = 127.0f / m;
    for (int i = 0; i < n; i++) q[i] = round_code(x[i], per_step);
    return m / 127.0f;
}

static int sum_codes(const int8_t *q, int n)
{
    int sum = 0;
    for (int i = 0; i < n; i++) sum += q[i];
    return sum;
}

static void quantise_32(pn_act32 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 32, dst++) {
        dst->d = round_block(dst->q, x + i, 32);
        dst->sum = sum_codes(dst->q, 32);
        dst->s = dst->d * (float)dst->sum;
        dst->zero = 0;
    }
}

static void quantise_256(pn_act256 *dst, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i += 256, dst++) {
        dst->d = round_block(dst->q, x + i, 256);
        for (int j = 0; j < 16; j++) dst->bsum16[j] = (int16_t)sum_codes(dst->q + 16 * j, 16);
        for (int j = 0; j < 8; j++) {
            const int sum = dst->bsum16[2 * j] + dst->bsum16[2 * j + 1];
            dst->bsum32[j] = (int16_t)sum;
            dst->hi[j] = (int8_t)((sum + 4096 + 64) / 128 - 32); /* floor((sum + 64) / 128) */
            dst->lo[j] = (int8_t)(sum - 128 * dst->hi[j]);
        }
        memset(dst->zero, 0, sizeof dst->zero);
    }
}

/* ---- rows ---- */

enum { n_lanes = 16 };

/* Lanes meet as (l, l+8), (l, l+4), (l, l+2), (l, l+1). */
static float sum_lanes(float lane[n_lanes])
{
    for (int step = n_lanes / 2; step > 0; step /= 2)
        for (int l = 0; l < step; l++) lane[l] = lane[l] + lane[l + step];
    return lane[0];
}

static float sum_squares(const float *x, int64_t n)
{
    float lane[n_lanes] = {0};
    for (int64_t i = 0; i < n; i++) lane[i % n_lanes] = fmaf(x[i], x[i], lane[i % n_lanes]);
    return sum_lanes(lane);
}

static float dot(const float *x, const float *y, int64_t n)
{
    float lane[n_lanes] = {0};
    for (int64_t i = 0; i < n; i++) lane[i % n_lanes] = fmaf(x[i], y[i], lane[i % n_lanes]);
    return sum_lanes(lane);
}

static void norm_scale(float *y, const float *x, float scale, const float *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = w ? x[i] * scale * w[i] : x[i] * scale;
}

static void add(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = y[i] + x[i];
}

static void scale(float *y, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = y[i] * s;
}

static void add_scaled(float *y, const float *x, float s, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = y[i] + x[i] * s;
}

static void mul(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = y[i] * x[i];
}

static void silu_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = u ? pn_silu(g[i]) * u[i] : pn_silu(g[i]);
}

static void sigmoid_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = u ? pn_sigmoid(g[i]) * u[i] : pn_sigmoid(g[i]);
}

static void gelu_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = u ? pn_gelu(g[i]) * u[i] : pn_gelu(g[i]);
}

static void relu2_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const float r = g[i] > 0 ? g[i] : 0;
        y[i] = u ? r * r * u[i] : r * r;
    }
}

static void clamp(float *x, float low, float high, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = low > x[i] ? low : x[i];
        x[i] = high < x[i] ? high : x[i];
    }
}

static float clamped(float g)
{
    g = PN_CLAMPED_LIMIT < g ? PN_CLAMPED_LIMIT : g;
    return g / (1.0f + pn_expf(g * -PN_CLAMPED_ALPHA));
}

static float clamped_factor(float u)
{
    u = -PN_CLAMPED_LIMIT > u ? -PN_CLAMPED_LIMIT : u;
    return (PN_CLAMPED_LIMIT < u ? PN_CLAMPED_LIMIT : u) + 1.0f;
}

static void clamped_mul(float *y, const float *g, const float *u, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = u ? clamped(g[i]) * clamped_factor(u[i]) : clamped(g[i]);
}

static void softcap(float *x, float cap, int64_t n)
{
    const float inverse = 1.0f / cap;
    for (int64_t i = 0; i < n; i++) x[i] = cap * pn_tanhf(x[i] * inverse);
}

static float max(const float *x, int64_t n)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < n; i++) m = x[i] > m ? x[i] : m;
    return m;
}

static float exp_sum(float *x, float largest, int64_t n)
{
    float lane[n_lanes] = {0};
    for (int64_t i = 0; i < n; i++) {
        x[i] = pn_expf(x[i] - largest);
        lane[i % n_lanes] = lane[i % n_lanes] + x[i];
    }
    return sum_lanes(lane);
}

/* ---- rotary positions ---- */

static void rotate(float *a, float *b, float c, float s)
{
    const float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

static void rope_norm(float *x, const float *cs, int64_t n_pairs)
{
    for (int64_t k = 0; k < n_pairs; k++) rotate(&x[2 * k], &x[2 * k + 1], cs[2 * k], cs[2 * k + 1]);
}

static void rope_neox(float *x, const float *cs, int64_t n_pairs)
{
    for (int64_t k = 0; k < n_pairs; k++) rotate(&x[k], &x[k + n_pairs], cs[2 * k], cs[2 * k + 1]);
}

/* ---- half precision ---- */

static void f16_from_f32(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = pn_f32_to_f16(x[i]);
}

static void f32_from_f16(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = pn_f16_to_f32(x[i]);
}

/* ---- attention: scores of one query with one position, then over all queries and positions ---- */

enum { tile = 16 }; /* positions of a tile of K */

static float qk_one_f32(const uint8_t *k, const float *q, int p, int d)
{
    float acc = 0;
    for (int c = 0; c < d; c++) acc = fmaf(q[c], pn_load_f32(k + 4 * (c * tile + p)), acc);
    return acc;
}

static float qk_one_f16(const uint8_t *k, const float *q, int p, int d)
{
    float acc = 0;
    for (int c = 0; c < d; c++) acc = fmaf(q[c], pn_load_f16(k + 2 * (c * tile + p)), acc);
    return acc;
}

static float qk_one_q8_0(const uint8_t *k, const float *q, int p, int d)
{
    float acc = 0;
    for (int c = 0; c < d; c += 32, k += 2 * tile + 32 * tile) {
        float u = 0;
        for (int i = 0; i < 32; i++) u = fmaf(q[c + i], (float)(int8_t)k[2 * tile + i * tile + p], u);
        acc = fmaf(u, pn_load_f16(k + 2 * p), acc);
    }
    return acc;
}

#define QK(type)                                                                                                                                   \
    static void qk_##type(float *scores, int64_t ld, const void *k, size_t tile_bytes, int64_t n_tiles, const float *const *q, int n_q, int d)      \
    {                                                                                                                                              \
        for (int i = 0; i < n_q; i++)                                                                                                              \
            for (int64_t t = 0; t < n_tiles; t++)                                                                                                  \
                for (int p = 0; p < tile; p++) scores[i * ld + t * tile + p] = qk_one_##type((const uint8_t *)k + (size_t)t * tile_bytes, q[i], p, d); \
    }
QK(f32)
QK(f16)
QK(q8_0)

static float value_f32(const uint8_t *v, int c) { return pn_load_f32(v + 4 * c); }
static float value_f16(const uint8_t *v, int c) { return pn_load_f16(v + 2 * c); }
static float value_q8_0(const uint8_t *v, int c)
{
    const uint8_t *block = v + c / 32 * 34;
    return (float)(int8_t)block[2 + c % 32] * pn_load_f16(block);
}

#define PV(type)                                                                                                                               \
    static void pv_##type(float *const *o, const float *p, int64_t ld, const void *v, size_t row_bytes, int64_t n_pos, int n_q, int d)          \
    {                                                                                                                                          \
        for (int i = 0; i < n_q; i++)                                                                                                          \
            for (int64_t j = 0; j < n_pos; j++)                                                                                                \
                for (int c = 0; c < d; c++) o[i][c] = fmaf(p[i * ld + j], value_##type((const uint8_t *)v + (size_t)j * row_bytes, c), o[i][c]); \
    }
PV(f32)
PV(f16)
PV(q8_0)

static float key_f32(const uint8_t *k, int c, int p) { return pn_load_f32(k + 4 * (c * tile + p)); }
static float key_f16(const uint8_t *k, int c, int p) { return pn_load_f16(k + 2 * (c * tile + p)); }
static float key_q8_0(const uint8_t *k, int c, int p)
{
    const uint8_t *block = k + (size_t)(c / 32) * 34 * tile;
    return (float)(int8_t)block[2 * tile + c % 32 * tile + p] * pn_load_f16(block + 2 * p);
}

#define K_ROWS(type)                                                                                \
    static void k_rows_##type(float *y, int64_t ld, const void *k, int d)                           \
    {                                                                                               \
        for (int p = 0; p < tile; p++)                                                              \
            for (int c = 0; c < d; c++) y[p * ld + c] = key_##type((const uint8_t *)k, c, p);       \
    }
K_ROWS(f32)
K_ROWS(f16)
K_ROWS(q8_0)

/* ---- recurrent layers ---- */

static float conv_one(const pn_conv_rows *c, int64_t row, int64_t i)
{
    const float *taps = c->taps + i, x = c->x[row * c->x_stride + i], u = c->in_gate ? c->in_gate[row * c->x_stride + i] * x : x;
    float *tail = c->tail + i, acc = 0;
    for (int k = 0; k < c->n_taps - 1; k++) acc = fmaf(taps[k * c->stride], tail[k * c->stride], acc);
    acc = fmaf(taps[(c->n_taps - 1) * c->stride], u, acc);
    for (int k = 0; k < c->n_taps - 2; k++) tail[k * c->stride] = tail[(k + 1) * c->stride];
    tail[(c->n_taps - 2) * c->stride] = u;
    if (c->bias) acc = acc + c->bias[i];
    if (c->silu) acc = pn_silu(acc);
    return c->out_gate ? c->out_gate[row * c->x_stride + i] * acc : acc;
}

static void conv(const pn_conv_rows *c)
{
    for (int64_t row = 0; row < c->n_rows; row++)
        for (int64_t i = 0; i < c->n; i++) c->y[row * c->y_stride + i] = conv_one(c, row, i);
}

/* ---- delta rule ---- */

/* One value channel of one token; `s` are its d_k values of the state, 16 floats apart. */
static float delta_channel(float *s, const pn_delta_token *t, float v, int d_k)
{
    const float *decayed_key = t->keys, *decayed_query = t->keys + d_k, *key = t->keys + 2 * d_k, *decay = t->keys + 3 * d_k;
    float p = 0, r = 0;
    for (int i = 0; i < d_k; i++) {
        p = fmaf(s[i * 16], decayed_key[i], p);
        r = fmaf(s[i * 16], decayed_query[i], r);
    }
    const float delta = (v - p) * t->beta;
    for (int i = 0; i < d_k; i++) s[i * 16] = fmaf(key[i], delta, s[i * 16] * decay[i]);
    return fmaf(t->key_query, delta, r) * t->scale;
}

static void delta_rule(float *state, const pn_delta_token *tokens, int64_t n_tokens, int d_k, int d_v)
{
    const int padded = (d_v + 15) / 16 * 16;
    for (int64_t t = 0; t < n_tokens; t++)
        for (int j = 0; j < padded; j++) {
            float *s = state + (int64_t)(j / 16) * d_k * 16 + j % 16;
            const float o = delta_channel(s, &tokens[t], j < d_v ? tokens[t].v[j] : 0.0f, d_k);
            if (j < d_v) tokens[t].out[j] = o;
        }
}

static float ssm_one(const pn_ssm_rows *s, int64_t row, int j)
{
    const float *b = s->b + row * s->stride, *c = s->c + row * s->stride, x = j < s->n ? s->x[row * s->stride + j] : 0, v = x * s->step[row];
    float *state = s->state + (int64_t)(j / PN_STRIP) * s->d_state * PN_STRIP + j % PN_STRIP, y = 0;
    for (int i = 0; i < s->d_state; i++) {
        state[i * PN_STRIP] = fmaf(b[i], v, state[i * PN_STRIP] * s->decay[row]);
        y = fmaf(state[i * PN_STRIP], c[i], y);
    }
    return fmaf(x, s->skip, y);
}

static void ssm(const pn_ssm_rows *s)
{
    for (int64_t row = 0; row < s->n_rows; row++)
        for (int j = 0; j < (s->n + PN_STRIP - 1) / PN_STRIP * PN_STRIP; j++) {
            const float y = ssm_one(s, row, j);
            if (j < s->n) s->y[row * s->stride + j] = y;
        }
}

/* ---- exact path ---- */

static void exact(const pn_exact_mm *e, int64_t row0, int64_t row1, void *scratch)
{
    const pn_mm *mm = &e->mm;
    const pn_type_info *type = pn_type_get((uint32_t)e->type);
    const int64_t row_bytes = mm->k / type->block * type->bytes;
    float *w = scratch;
    for (int64_t r = row0; r < row1; r++) {
        type->dequantise(w, (const uint8_t *)mm->w + r * row_bytes, mm->k);
        for (int64_t c = 0; c < mm->n_cols; c++) {
            const float *x = mm->x[c];
            float acc = 0;
            for (int64_t k = 0; k < mm->k; k++) acc = fmaf(w[k], x[k], acc);
            mm->y[c][r] = acc;
        }
    }
}

const pn_ops pn_ops_scalar = {
    .isa = "scalar",
#include "kernels/ops_members.h"
};
