/* Hyper-connections: several residual streams instead of one. A block reads one weighted sum of them, and its result goes back to all of them while they
 * mix. The weights come from the streams themselves, row by row; the mixing block is made doubly stochastic (Sinkhorn). */
#include "graph/walk.h"

#include "base/math.h"

enum { N = PN_STREAMS, CHUNK = 256 };

/* ---- a block's result into the streams ------------------------------------------------------------------------------------------------------ */

/* Channels [first, first + n) of a row: X'[d] = value * post[d] + sum over s of mix[d][s] * X[s], s ascending. */
static void take_up(const pn_run *run, const pn_spread *s, int32_t row, int64_t first, int64_t n)
{
    float sum[CHUNK], next[N][CHUNK], *x = pn_row(run, s->streams, row) + first;
    const float *value = pn_update_value(run, &s->update, row, s->width, first, n, sum);
    const float *post = pn_row(run, s->weights, row), *mix = post + N;
    for (int d = 0; d < N; d++) {
        run->ops->norm_scale(next[d], value, post[d], NULL, n);
        for (int from = 0; from < N; from++) run->ops->add_scaled(next[d], x + from * s->width, mix[d * N + from], n);
    }
    for (int d = 0; d < N; d++) memcpy(x + d * s->width, next[d], (size_t)n * sizeof(float));
}

static void spread_part(const pn_run *run, const pn_lane *lane, const pn_spread *s, int32_t row, int64_t begin, int64_t end)
{
    if (s->update.from == PN_NONE) {
        const float *stream = pn_stream_row(run, lane, row);
        for (int d = 0; d < N; d++) memcpy(pn_row(run, s->streams, row) + d * s->width + begin, stream + begin, (size_t)(end - begin) * sizeof(float));
        return;
    }
    for (int64_t i = begin; i < end; i += CHUNK) take_up(run, s, row, i, pn_min64(CHUNK, end - i));
}

/* Threads share the channels of a single row, and else the rows. */
static bool spread(pn_run *run, pn_lane *lane, const pn_step *step)
{
    const pn_spread *s = &step->u.spread;
    int64_t begin, end;
    if (pn_private(run)) {
        pn_share(lane, (s->width + 15) / 16, &begin, &end);
        spread_part(run, lane, s, 0, begin * 16, pn_min64(end * 16, s->width));
        return true;
    }
    pn_share(lane, run->n_rows, &begin, &end);
    for (int32_t r = (int32_t)begin; r < end; r++) spread_part(run, lane, s, r, 0, s->width);
    return true;
}

static pn_uses spread_uses(const pn_step *step)
{
    const pn_spread *s = &step->u.spread;
    const pn_buffer_set streams = pn_buffer_bit(s->streams);
    if (s->update.from == PN_NONE) return (pn_uses){.reads = pn_buffer_bit(PN_STREAM), .writes = streams};
    return (pn_uses){.reads = streams | pn_buffer_bit(s->weights) | pn_update_reads(&s->update), .writes = streams};
}

const pn_step_kind pn_step_spread = {"spread", spread, spread_uses};

/* ---- the streams into one -------------------------------------------------------------------------------------------------------------------- */

/* Rows of the block become a softmax each; then rows and columns are divided by their sums in turn, columns last. */
static void sinkhorn(float *m, int32_t iterations, float eps)
{
    for (int d = 0; d < N; d++) {
        float max = m[d * N];
        for (int s = 1; s < N; s++) max = m[d * N + s] > max ? m[d * N + s] : max;
        for (int s = 0; s < N; s++) m[d * N + s] = pn_expf(m[d * N + s] - max);
    }
    for (int32_t i = 0; i < iterations; i++) {
        for (int d = 0; d < N; d++) {
            float sum = 0;
            for (int s = 0; s < N; s++) sum += m[d * N + s];
            for (int s = 0; s < N; s++) m[d * N + s] /= sum + eps;
        }
        for (int s = 0; s < N; s++) {
            float sum = 0;
            for (int d = 0; d < N; d++) sum += m[d * N + s];
            for (int d = 0; d < N; d++) m[d * N + s] /= sum + eps;
        }
    }
}

/* From a row's logits: what a stream gives to the block, what it takes from its result, how streams mix. */
static void weigh(const pn_gather *s, const float *logits, float pre[N], float weights[N + N * N])
{
    for (int i = 0; i < N; i++) {
        pre[i] = pn_sigmoid(logits[i] * s->scale[0] + s->base[i]);
        weights[i] = 2.0f * pn_sigmoid(logits[N + i] * s->scale[1] + s->base[N + i]);
    }
    for (int i = 0; i < N * N; i++) {
        const float z = logits[2 * N + i] * s->scale[2] + s->base[2 * N + i];
        weights[N + i] = z < -30.0f ? -30.0f : z > 30.0f ? 30.0f : z; /* bounds of the model, not of its file */
    }
    sinkhorn(weights + N, s->iterations, s->eps);
}

static void gather_row(const pn_run *run, const pn_lane *lane, const pn_gather *s, int32_t row)
{
    float pre[N] = {1, 1, 1, 1}, weights[N + N * N], *y = pn_stream_row(run, lane, row);
    const float *x = pn_row(run, s->streams, row);
    if (s->logits != PN_NONE) {
        weigh(s, pn_row(run, s->logits, row), pre, weights);
        if (!pn_private(run) || lane->thread == 0) memcpy(pn_row(run, s->weights, row), weights, sizeof weights);
    }
    run->ops->norm_scale(y, x, pre[0], NULL, s->width);
    for (int i = 1; i < N; i++) run->ops->add_scaled(y, x + i * s->width, pre[i], s->width);
    if (s->logits != PN_NONE) return;
    run->ops->scale(y, 1.0f / N, s->width);
    if (pn_private(run) && lane->thread == 0) memcpy(pn_row(run, PN_STREAM, 0), y, (size_t)s->width * sizeof *y);
}

/* With one row each thread has its own stream, as other steps expect. The barrier is for what shares memory with the logits and is written next. */
static bool gather(pn_run *run, pn_lane *lane, const pn_step *step)
{
    int64_t begin = 0, end = 1;
    if (!pn_private(run)) pn_share(lane, run->n_rows, &begin, &end);
    for (int32_t r = (int32_t)begin; r < end; r++) gather_row(run, lane, &step->u.gather, r);
    return true;
}

static pn_uses gather_uses(const pn_step *step)
{
    const pn_gather *s = &step->u.gather;
    return (pn_uses){.reads = pn_buffer_bit(s->streams) | pn_buffer_bit(s->logits), .writes = pn_buffer_bit(PN_STREAM) | pn_buffer_bit(s->weights)};
}

const pn_step_kind pn_step_gather = {"gather", gather, gather_uses};
