/* kernels/neon/delta_neon.c - the delta rule of ops.def, bit-equal to scalar.
 *
 * A strip of 16 value channels (d_k lines of 64 bytes) goes through all tokens and stays in the first-level cache meanwhile; a token's update and the
 * next token's sums share one pass over it. */
#include "kernels/neon/ops_neon.h"

#include "kernels/neon/lines.h"

#define INLINE static inline __attribute__((always_inline))

typedef struct strip {
    float32x4_t p[4], r[4], delta[4];
} strip;

/* Parts of a pass besides those of lines.h: SUM adds a line to the sums; DECAY and UPDATE: x = x*decay, then + key*delta. */
#define SUM(v, x, line) V_FMLA_LANE(p[v], x[v], decayed_key, line); V_FMLA_LANE(r[v], x[v], decayed_query, line);
#define DECAY(v, x, line) V_FMUL_LANE(x[v], x[v], decay, line);
#define UPDATE(v, x, line) V_FMLA_LANE(x[v], delta[v], key, line);
#define SUM_AND_LOAD(v, x, line, w, after) SUM(v, x, line) LOAD(v, w, after)
#define DECAY_AND_STORE(v, x, line, w, before) DECAY(v, x, line) STORE(v, w, before)
#define DECAY_SUM_STORE(v, x, line, w, before) DECAY(v, x, line) SUM(v, w, before) STORE(v, w, before)

/* One line at a time: what is left over of d_k. */
INLINE void line_sums(const float *s, float decayed_key, float decayed_query, strip *t)
{
    for (int v = 0; v < 4; v++) {
        const float32x4_t x = vld1q_f32(s + 4 * v);
        t->p[v] = vfmaq_n_f32(t->p[v], x, decayed_key);
        t->r[v] = vfmaq_n_f32(t->r[v], x, decayed_query);
    }
}

INLINE void line_update(float *s, float key, float decay, const strip *t)
{
    for (int v = 0; v < 4; v++) vst1q_f32(s + 4 * v, vfmaq_n_f32(vmulq_n_f32(vld1q_f32(s + 4 * v), decay), t->delta[v], key));
}

static void sums(const float *s, const float *next, strip *t, int d_k)
{
    float32x4_t p[4], r[4], x[4], w[4], decayed_key, decayed_query;
    int i = 0;
    for (int v = 0; v < 4; v++) p[v] = r[v] = vdupq_n_f32(0);
    for (; i + 4 <= d_k; i += 4, s += 64) {
        decayed_key = vld1q_f32(next + i);
        decayed_query = vld1q_f32(next + d_k + i);
        EACH(LOAD, x, 0)
        EACH(SUM_AND_LOAD, x, 0, w, 1)
        EACH(SUM_AND_LOAD, w, 1, x, 2)
        EACH(SUM_AND_LOAD, x, 2, w, 3)
        EACH(SUM, w, 3)
    }
    for (int v = 0; v < 4; v++) t->p[v] = p[v], t->r[v] = r[v];
    for (; i < d_k; i++, s += 16) line_sums(s, next[i], next[d_k + i], t);
}

static void update(float *s, const float *keys, const strip *t, int d_k)
{
    float32x4_t x[4], w[4], key, decay, delta[4];
    int i = 0;
    for (int v = 0; v < 4; v++) delta[v] = t->delta[v];
    for (; i + 4 <= d_k; i += 4, s += 64) {
        key = vld1q_f32(keys + 2 * d_k + i);
        decay = vld1q_f32(keys + 3 * d_k + i);
        FOUR_LINES(DECAY_AND_STORE)
        EACH(STORE, w, 3)
    }
    for (; i < d_k; i++, s += 16) line_update(s, keys[2 * d_k + i], keys[3 * d_k + i], t);
}

static void update_and_sums(float *s, const float *keys, const float *next, strip *t, int d_k)
{
    float32x4_t p[4], r[4], x[4], w[4], delta[4], key, decay, decayed_key, decayed_query;
    int i = 0;
    for (int v = 0; v < 4; v++) p[v] = r[v] = vdupq_n_f32(0), delta[v] = t->delta[v];
    for (; i + 4 <= d_k; i += 4, s += 64) {
        key = vld1q_f32(keys + 2 * d_k + i);
        decay = vld1q_f32(keys + 3 * d_k + i);
        decayed_key = vld1q_f32(next + i);
        decayed_query = vld1q_f32(next + d_k + i);
        FOUR_LINES(DECAY_SUM_STORE)
        EACH(SUM, w, 3)
        EACH(STORE, w, 3)
    }
    for (int v = 0; v < 4; v++) t->p[v] = p[v], t->r[v] = r[v];
    for (; i < d_k; i++, s += 16) {
        line_update(s, keys[2 * d_k + i], keys[3 * d_k + i], t);
        line_sums(s, next[i], next[d_k + i], t);
    }
}

/* The token's deltas and results of value channels `channel` .. + n - 1. */
static void results(strip *t, const pn_delta_token *token, int channel, int n)
{
    float v[16] = {0}, out[16];
    memcpy(v, token->v + channel, (size_t)n * sizeof *v);
    for (int j = 0; j < 4; j++) {
        t->delta[j] = vmulq_n_f32(vsubq_f32(vld1q_f32(v + 4 * j), t->p[j]), token->beta);
        vst1q_f32(out + 4 * j, vmulq_n_f32(vfmaq_n_f32(t->r[j], t->delta[j], token->key_query), token->scale));
    }
    memcpy(token->out + channel, out, (size_t)n * sizeof *out);
}

void pn_neon_delta_rule(float *state, const pn_delta_token *tokens, int64_t n_tokens, int d_k, int d_v)
{
    if (n_tokens == 0) return;
    for (int j = 0; j < d_v; j += 16) {
        float *s = state + (int64_t)j * d_k;
        strip t;
        sums(s, tokens[0].keys, &t, d_k);
        for (int64_t i = 0; i < n_tokens; i++) {
            results(&t, &tokens[i], j, (int)pn_min64(16, d_v - j));
            if (i + 1 < n_tokens) update_and_sums(s, tokens[i].keys, tokens[i + 1].keys, &t, d_k);
            else update(s, tokens[i].keys, &t, d_k);
        }
    }
}
