/* kernels/prove_ops.c - proofs of the vector operations (pn_ops) against the scalar table.
 *
 * Each member is an entry of one of three tables: operations on rows, attention, and the exact product. An entry says how to call
 * the member; the drivers make shapes and fills, run both tables on the same input and compare all that was written. */
#include "kernels/prove_work.h"

#include <math.h>
#include <stdio.h>

/* What a call sees. y, a and b are guarded; y holds the first operand before and the result after. */
typedef struct operands {
    float *y;
    const void *a, *b;
    const float *const *q; /* attention: queries, or */
    float *const *o;       /* outputs */
    int64_t n;             /* elements, pairs, tiles or positions */
    int n_q, d;
    int64_t ld;
    size_t stride; /* bytes from one tile or position to the next */
    float scalar;
} operands;

typedef float (*call_fn)(const pn_ops *ops, const operands *w);

static float call_quantise_32(const pn_ops *ops, const operands *w) { return ops->quantise_32((pn_act32 *)(void *)w->y, w->a, w->n), 0.0f; }
static float call_quantise_256(const pn_ops *ops, const operands *w) { return ops->quantise_256((pn_act256 *)(void *)w->y, w->a, w->n), 0.0f; }
static float call_sum_squares(const pn_ops *ops, const operands *w) { return ops->sum_squares(w->a, w->n); }
static float call_dot(const pn_ops *ops, const operands *w) { return ops->dot(w->a, w->b, w->n); }
static float call_norm(const pn_ops *ops, const operands *w) { return ops->norm_scale(w->y, w->y, w->scalar, w->a, w->n), 0.0f; }
static float call_norm_plain(const pn_ops *ops, const operands *w) { return ops->norm_scale(w->y, w->a, w->scalar, NULL, w->n), 0.0f; }
static float call_add(const pn_ops *ops, const operands *w) { return ops->add(w->y, w->a, w->n), 0.0f; }
static float call_scale(const pn_ops *ops, const operands *w) { return ops->scale(w->y, w->scalar, w->n), 0.0f; }
static float call_add_scaled(const pn_ops *ops, const operands *w) { return ops->add_scaled(w->y, w->a, w->scalar, w->n), 0.0f; }
static float call_mul(const pn_ops *ops, const operands *w) { return ops->mul(w->y, w->a, w->n), 0.0f; }
static float call_silu(const pn_ops *ops, const operands *w) { return ops->silu_mul(w->y, w->a, NULL, w->n), 0.0f; }
static float call_silu_mul(const pn_ops *ops, const operands *w) { return ops->silu_mul(w->y, w->y, w->a, w->n), 0.0f; }
static float call_sigmoid(const pn_ops *ops, const operands *w) { return ops->sigmoid_mul(w->y, w->a, NULL, w->n), 0.0f; }
static float call_sigmoid_mul(const pn_ops *ops, const operands *w) { return ops->sigmoid_mul(w->y, w->a, w->y, w->n), 0.0f; }
static float call_gelu(const pn_ops *ops, const operands *w) { return ops->gelu_mul(w->y, w->a, NULL, w->n), 0.0f; }
static float call_gelu_mul(const pn_ops *ops, const operands *w) { return ops->gelu_mul(w->y, w->a, w->y, w->n), 0.0f; }
static float call_relu2(const pn_ops *ops, const operands *w) { return ops->relu2_mul(w->y, w->y, NULL, w->n), 0.0f; }
static float call_relu2_mul(const pn_ops *ops, const operands *w) { return ops->relu2_mul(w->y, w->a, w->b, w->n), 0.0f; }
static float call_clamp(const pn_ops *ops, const operands *w) { return ops->clamp(w->y, -w->scalar, w->scalar, w->n), 0.0f; }
static float call_clamped(const pn_ops *ops, const operands *w) { return ops->clamped_mul(w->y, w->a, NULL, w->n), 0.0f; }
static float call_clamped_mul(const pn_ops *ops, const operands *w) { return ops->clamped_mul(w->y, w->a, w->y, w->n), 0.0f; }
static float call_softcap(const pn_ops *ops, const operands *w) { return ops->softcap(w->y, 30.0f, w->n), 0.0f; }
static float call_max(const pn_ops *ops, const operands *w) { return ops->max(w->a, w->n) + 0.0f; } /* the sign of a zero is free */
static float call_exp_sum(const pn_ops *ops, const operands *w) { return ops->exp_sum(w->y, w->scalar, w->n); }
static float call_rope_norm(const pn_ops *ops, const operands *w) { return ops->rope_norm(w->y, w->a, w->n / 2), 0.0f; }
static float call_rope_neox(const pn_ops *ops, const operands *w) { return ops->rope_neox(w->y, w->a, w->n / 2), 0.0f; }
static float call_f16_from_f32(const pn_ops *ops, const operands *w) { return ops->f16_from_f32((uint16_t *)(void *)w->y, w->a, w->n), 0.0f; }
static float call_f32_from_f16(const pn_ops *ops, const operands *w) { return ops->f32_from_f16(w->y, w->a, w->n), 0.0f; }

/* How the bytes of y are compared. */
typedef enum y_kind { Y_FLOATS, Y_BYTES } y_kind;

static const struct row_op {
    const char *name;
    call_fn call;
    int unit;      /* n is a multiple of it */
    int y_bytes;   /* of y, per unit */
    y_kind y_kind;
} row_ops[] = {
    {"quantise_32", call_quantise_32, 32, sizeof(pn_act32), Y_BYTES},
    {"quantise_256", call_quantise_256, 256, sizeof(pn_act256), Y_BYTES},
    {"sum_squares", call_sum_squares, 1, 0, Y_FLOATS},
    {"dot", call_dot, 1, 0, Y_FLOATS},
    {"norm_scale", call_norm, 1, 4, Y_FLOATS},
    {"norm_scale_plain", call_norm_plain, 1, 4, Y_FLOATS},
    {"add", call_add, 1, 4, Y_FLOATS},
    {"scale", call_scale, 1, 4, Y_FLOATS},
    {"add_scaled", call_add_scaled, 1, 4, Y_FLOATS},
    {"mul", call_mul, 1, 4, Y_FLOATS},
    {"silu", call_silu, 1, 4, Y_FLOATS},
    {"silu_mul", call_silu_mul, 1, 4, Y_FLOATS},
    {"sigmoid", call_sigmoid, 1, 4, Y_FLOATS},
    {"sigmoid_mul", call_sigmoid_mul, 1, 4, Y_FLOATS},
    {"gelu", call_gelu, 1, 4, Y_FLOATS},
    {"gelu_mul", call_gelu_mul, 1, 4, Y_FLOATS},
    {"relu2", call_relu2, 1, 4, Y_FLOATS},
    {"relu2_mul", call_relu2_mul, 1, 4, Y_FLOATS},
    {"clamp", call_clamp, 1, 4, Y_FLOATS},
    {"clamped", call_clamped, 1, 4, Y_FLOATS},
    {"clamped_mul", call_clamped_mul, 1, 4, Y_FLOATS},
    {"softcap", call_softcap, 1, 4, Y_FLOATS},
    {"max", call_max, 1, 0, Y_FLOATS},
    {"exp_sum", call_exp_sum, 1, 4, Y_FLOATS},
    {"rope_norm", call_rope_norm, 2, 8, Y_FLOATS},
    {"rope_neox", call_rope_neox, 2, 8, Y_FLOATS},
    {"f16_from_f32", call_f16_from_f32, 1, 2, Y_BYTES},
    {"f32_from_f16", call_f32_from_f16, 1, 4, Y_FLOATS},
};

#define QK(kind)                                                                            \
    static float call_qk_##kind(const pn_ops *ops, const operands *w)                       \
    {                                                                                       \
        ops->qk[kind](w->y, w->ld, w->a, w->stride, w->n, w->q, w->n_q, w->d);              \
        return 0;                                                                           \
    }                                                                                       \
    static float call_pv_##kind(const pn_ops *ops, const operands *w)                       \
    {                                                                                       \
        ops->pv[kind](w->o, w->b, w->ld, w->a, w->stride, w->n, w->n_q, w->d);              \
        return 0;                                                                           \
    }
QK(0)
QK(1)
QK(2)

static const struct attention_op {
    const char *name;
    call_fn call;
    int kind; /* 0: f32, 1: f16, 2: q8_0 */
    bool values; /* pv: n counts positions; qk: tiles of 16 */
} attention_ops[] = {
    {"qk_f32", call_qk_0, 0, false}, {"qk_f16", call_qk_1, 1, false}, {"qk_q8_0", call_qk_2, 2, false},
    {"pv_f32", call_pv_0, 0, true},  {"pv_f16", call_pv_1, 1, true},  {"pv_q8_0", call_pv_2, 2, true},
};

enum { max_n = 4096, max_d = 256, max_q = 9, max_tiles = 4, max_k = 512, buffer_bytes = 256 * 1024 };

/* One table of operations under proof. got and wanted hold y of both; a and b are the inputs. */
typedef struct bench {
    const pn_prove_options *options;
    const pn_ops *ops, *scalar;
    pn_guarded got, wanted, a, b, q[max_q];
    uint64_t random;
} bench;

static void bench_close(bench *b)
{
    pn_guarded *all[] = {&b->got, &b->wanted, &b->a, &b->b};
    for (size_t i = 0; i < PN_COUNT(all); i++) pn_guarded_close(all[i]);
    for (int i = 0; i < max_q; i++) pn_guarded_close(&b->q[i]);
}

static pinch_status bench_open(bench *b, pinch_error *err)
{
    pn_guarded *all[] = {&b->got, &b->wanted, &b->a, &b->b};
    pinch_status status = PINCH_OK;
    for (size_t i = 0; i < PN_COUNT(all) && !status; i++) status = pn_guarded_open(all[i], buffer_bytes, err);
    for (int i = 0; i < max_q && !status; i++) status = pn_guarded_open(&b->q[i], max_k * sizeof(float), err);
    if (status) bench_close(b);
    return status;
}

static void compare_bytes(pn_proof *proof, const uint8_t *got, const uint8_t *wanted, size_t n)
{
    proof->floats += n / 4;
    for (size_t i = 0; i < n; i++) proof->differing += got[i] != wanted[i];
    if (memcmp(got, wanted, n) != 0) proof->largest = 1;
}

/* y of both tables, `n` bytes at `got` and `wanted`, and what the calls returned. */
static void judge(pn_proof *proof, const bench *b, y_kind kind, const void *got, const void *wanted, size_t n, float got_value, float wanted_value, const char *what)
{
    const uint64_t before = proof->differing;
    if (kind == Y_FLOATS) pn_prove_compare(proof, got, wanted, (int64_t)(n / 4));
    else compare_bytes(proof, got, wanted, n);
    pn_prove_compare(proof, &got_value, &wanted_value, 1);
    proof->cases++;
    if (!pn_guarded_intact(&b->got, got, n)) pn_prove_failure(proof, "%s: writes beside its result", what);
    if (proof->differing != before) pn_prove_failure(proof, "%s: %" PRIu64 " differ", what, proof->differing - before);
}

/* ---- operations on rows ---- */

static void row_case(pn_proof *proof, bench *b, const struct row_op *op, int64_t n, int fill, int fill_a)
{
    static const float scalars[pn_n_float_fills] = {0.37f, 1, -1, 0, 3e-39f, 88, INFINITY, 1e30f};
    const size_t y_bytes = (size_t)(n / op->unit) * (size_t)op->y_bytes, y_align = op->y_bytes % 16 == 0 && op->y_bytes ? 16 : op->y_bytes == 2 ? 2 : 4;
    float *a = pn_guarded_place(&b->a, (size_t)n * sizeof(float), 4), *second = pn_guarded_place(&b->b, (size_t)n * sizeof(float), 4);
    void *got = pn_guarded_place(&b->got, y_bytes, y_align), *wanted = pn_guarded_place(&b->wanted, y_bytes, y_align);
    pn_fill_floats(a, n, fill_a, &b->random);
    pn_fill_floats(second, n, fill, &b->random);
    if (op->y_kind == Y_FLOATS) pn_fill_floats(wanted, (int64_t)(y_bytes / 4), fill, &b->random);
    else memset(wanted, 0, y_bytes);
    memcpy(got, wanted, y_bytes);
    operands w = {.y = got, .a = a, .b = second, .n = n, .scalar = scalars[fill]};
    const float got_value = op->call(b->ops, &w);
    w.y = wanted;
    const float wanted_value = op->call(b->scalar, &w);
    char what[120];
    snprintf(what, sizeof what, "n = %" PRId64 ", y %s, x %s", n, pn_float_fill_name(fill), pn_float_fill_name(fill_a));
    judge(proof, b, op->y_kind, got, wanted, y_bytes, got_value, wanted_value, what);
}

typedef struct timed {
    const pn_ops *ops;
    call_fn call;
    operands w;
    volatile float sink; /* keeps returned values alive */
} timed;

static void call_timed(void *user)
{
    timed *t = user;
    t->sink = t->call(t->ops, &t->w);
}

/* Thousand millions of `items` a second with each table. */
static void measure(pn_proof *proof, const bench *b, call_fn call, const operands *w, double items)
{
    if (!(b->options->seconds > 0)) return;
    timed t = {b->ops, call, *w, 0};
    proof->speed_one = items / pn_prove_time(call_timed, &t, b->options->seconds / 4) * 1e-9;
    t.ops = b->scalar;
    proof->ratio_one = b->ops == b->scalar ? 1 : proof->speed_one / (items / pn_prove_time(call_timed, &t, b->options->seconds / 4) * 1e-9);
}

static void prove_row_op(pn_proof *proof, bench *b, const struct row_op *op)
{
    const int64_t last = b->options->thorough ? 300 : 70;
    for (int64_t i = 0; i <= last; i++) {
        const int64_t n = i * op->unit;
        if (n > max_n) break;
        for (int fill = 0; fill < pn_n_float_fills; fill++) row_case(proof, b, op, n, fill, (int)((fill + i) % pn_n_float_fills));
    }
    for (int fill = 0; fill < pn_n_float_fills; fill++) row_case(proof, b, op, max_n, fill, fill);
    /* Scaling by 1 of zeros is timed: neither denormals nor infinities arise, however often it is repeated. */
    float *a = pn_guarded_place(&b->a, max_n * sizeof(float), 16), *second = pn_guarded_place(&b->b, max_n * sizeof(float), 16);
    void *y = pn_guarded_place(&b->got, max_n * sizeof(float) * 2, 16);
    pn_fill_floats(a, max_n, 1, &b->random);
    memset(second, 0, max_n * sizeof(float));
    memset(y, 0, max_n * sizeof(float) * 2);
    const operands w = {.y = y, .a = a, .b = second, .n = max_n, .scalar = 1};
    measure(proof, b, op->call, &w, max_n);
}

/* ---- attention ---- */

typedef struct attention_shape {
    int d, n_q;
    int64_t n;
    int fill;
    bool timed;
} attention_shape;

/* Bytes of a tile of K or of a row of V. */
static size_t cache_bytes(const struct attention_op *op, int d)
{
    const size_t positions = op->values ? 1 : 16, elements = (size_t)d * positions;
    return op->kind == 0 ? elements * 4 : op->kind == 1 ? elements * 2 : elements + (size_t)d / 32 * positions * 2;
}

/* Whether byte i of a cache is the high byte of a half: of an element, or of a scale that stands before 32 codes (of 16 positions). */
static bool high_byte_of_half(const struct attention_op *op, size_t i)
{
    const size_t positions = op->values ? 1 : 16;
    return i % 2 == 1 && (op->kind == 1 || i % (34 * positions) < 2 * positions);
}

/* Halves below 2 in magnitude, codes of any value; with the last fill any bits. */
static void fill_cache(uint8_t *p, size_t n, const struct attention_op *op, int fill, uint64_t *random)
{
    if (op->kind == 0) {
        pn_fill_floats((float *)(void *)p, (int64_t)(n / 4), fill, random);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        p[i] = (uint8_t)(pn_prove_random(random) >> 56);
        if (fill != pn_n_float_fills - 1 && high_byte_of_half(op, i)) p[i] &= 0xbf;
    }
}

static void attention_case(pn_proof *proof, bench *b, const struct attention_op *op, const attention_shape *s)
{
    const size_t bytes = cache_bytes(op, s->d), stride = bytes + (s->fill % 2 ? 64 : 0);
    const int64_t positions = op->values ? s->n : s->n * 16, ld = positions + 5;
    uint8_t *cache = pn_guarded_place(&b->a, s->n > 0 ? (size_t)(s->n - 1) * stride + bytes : 0, op->kind == 0 ? 4 : 2);
    for (int64_t t = 0; t < s->n; t++) fill_cache(cache + (size_t)t * stride, bytes, op, s->fill, &b->random);
    const int64_t n_scores = (s->n_q - 1) * ld + positions;
    const size_t y_bytes = (op->values ? (size_t)s->n_q * (size_t)s->d : (size_t)n_scores) * sizeof(float);
    float *got = pn_guarded_place(&b->got, y_bytes, 4), *wanted = pn_guarded_place(&b->wanted, y_bytes, 4), *p = pn_guarded_place(&b->b, (size_t)n_scores * sizeof(float), 4);
    pn_fill_floats(wanted, (int64_t)(y_bytes / 4), 0, &b->random);
    pn_fill_floats(p, n_scores, s->fill, &b->random);
    memcpy(got, wanted, y_bytes);
    const float *q[max_q];
    float *o_got[max_q], *o_wanted[max_q];
    for (int i = 0; i < s->n_q; i++) {
        float *query = pn_guarded_place(&b->q[i], (size_t)s->d * sizeof(float), 4);
        pn_fill_floats(query, s->d, s->fill, &b->random);
        q[i] = query;
        o_got[i] = got + i * s->d;
        o_wanted[i] = wanted + i * s->d;
    }
    operands w = {.y = got, .a = cache, .b = p, .q = q, .o = o_got, .n = s->n, .n_q = s->n_q, .d = s->d, .ld = ld, .stride = stride};
    op->call(b->ops, &w);
    operands scalar = w;
    scalar.y = wanted;
    scalar.o = o_wanted;
    op->call(b->scalar, &scalar);
    char what[120];
    snprintf(what, sizeof what, "d = %d, %d queries, n = %" PRId64 ", %s", s->d, s->n_q, s->n, pn_float_fill_name(s->fill));
    judge(proof, b, Y_FLOATS, got, wanted, y_bytes, 0, 0, what);
    if (s->timed) measure(proof, b, op->call, &w, (double)positions * s->d * s->n_q);
}

static void prove_attention_op(pn_proof *proof, bench *b, const struct attention_op *op)
{
    static const int widths[] = {32, 64, 96, 128, 160, 256};
    static const int64_t positions[] = {0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33};
    const size_t n_lengths = op->values ? PN_COUNT(positions) : max_tiles + 1;
    for (size_t i = 0; i < PN_COUNT(widths); i++)
        for (int n_q = 1; n_q <= max_q; n_q++)
            for (size_t j = 0; j < n_lengths; j++) {
                attention_shape s = {widths[i], n_q, op->values ? positions[j] : (int64_t)j, (int)((i + (size_t)n_q + j) % pn_n_float_fills), false};
                attention_case(proof, b, op, &s);
                if (!b->options->thorough) continue;
                for (s.fill = 0; s.fill < pn_n_float_fills; s.fill++) attention_case(proof, b, op, &s);
            }
    const attention_shape measured = {128, 4, op->values ? 33 : max_tiles, 0, true};
    attention_case(proof, b, op, &measured);
}

/* ---- a tile of K as rows ---- */

#define K_ROWS(kind)                                                              \
    static float call_k_rows_##kind(const pn_ops *ops, const operands *w)         \
    {                                                                             \
        ops->k_rows[kind](w->y, w->ld, w->a, w->d);                               \
        return 0;                                                                 \
    }
K_ROWS(0)
K_ROWS(1)
K_ROWS(2)

static const struct attention_op k_rows_ops[] = {{"k_rows_f32", call_k_rows_0, 0, false}, {"k_rows_f16", call_k_rows_1, 1, false}, {"k_rows_q8_0", call_k_rows_2, 2, false}};

/* d channels of a tile that has no more of them, but whole blocks. */
static void k_rows_case(pn_proof *proof, bench *b, const struct attention_op *op, int d, int fill, bool measured)
{
    const int64_t ld = d + fill % 3 * 8;
    const size_t bytes = cache_bytes(op, op->kind == 2 ? (d + 31) / 32 * 32 : d), y_bytes = (size_t)(15 * ld + d) * sizeof(float);
    uint8_t *cache = pn_guarded_place(&b->a, bytes, op->kind == 0 ? 4 : 2);
    fill_cache(cache, bytes, op, fill, &b->random);
    float *got = pn_guarded_place(&b->got, y_bytes, 4), *wanted = pn_guarded_place(&b->wanted, y_bytes, 4);
    pn_fill_floats(wanted, (int64_t)(y_bytes / 4), 0, &b->random);
    memcpy(got, wanted, y_bytes);
    operands w = {.y = got, .a = cache, .ld = ld, .d = d}, scalar = w;
    scalar.y = wanted;
    op->call(b->ops, &w);
    op->call(b->scalar, &scalar);
    char what[120];
    snprintf(what, sizeof what, "d = %d, %s", d, pn_float_fill_name(fill));
    judge(proof, b, Y_FLOATS, got, wanted, y_bytes, 0, 0, what);
    if (measured) measure(proof, b, op->call, &w, (double)d * 16);
}

static void prove_k_rows(pn_proof *proof, bench *b, const struct attention_op *op)
{
    for (int d = 1; d <= 100; d++)
        for (int i = 0; i < (b->options->thorough ? pn_n_float_fills : 2); i++) k_rows_case(proof, b, op, d, (d + i) % pn_n_float_fills, false);
    k_rows_case(proof, b, op, 512, 0, true);
}

/* ---- convolution ---- */

enum { conv_rows = 5 };

static float call_conv(const pn_ops *ops, const operands *w)
{
    ops->conv(w->a);
    return 0;
}

typedef struct conv_shape {
    int n_taps;
    int64_t n;
    unsigned options; /* bits: in_gate, out_gate, bias, silu, y is x */
    int fill;
    bool timed;
} conv_shape;

/* y, then tail, lie in one guarded place; x and its gates are thirds of a row. */
static void conv_case(pn_proof *proof, bench *b, const conv_shape *s)
{
    const int64_t n = s->n, stride = n + s->fill % 3, n_tail = (s->n_taps - 2) * stride + n, n_x = (conv_rows - 1) * 3 * stride + 2 * stride + n;
    const bool in_place = s->options & 16;
    const size_t y_floats = (size_t)((in_place ? n_x : conv_rows * n) + n_tail);
    float *got = pn_guarded_place(&b->got, y_floats * sizeof(float), 4), *wanted = pn_guarded_place(&b->wanted, y_floats * sizeof(float), 4);
    float *x = pn_guarded_place(&b->a, (size_t)n_x * sizeof(float), 4), *weights = pn_guarded_place(&b->b, (size_t)(stride * s->n_taps + n) * sizeof(float), 4);
    pn_fill_floats(x, n_x, s->fill, &b->random);
    pn_fill_floats(weights, stride * s->n_taps + n, s->fill, &b->random);
    pn_fill_floats(wanted, (int64_t)y_floats, s->fill, &b->random);
    memcpy(got, wanted, y_floats * sizeof(float));
    pn_conv_rows c[2];
    for (int i = 0; i < 2; i++) {
        float *y = i ? wanted : got;
        const float *from = in_place ? y + n_tail : x;
        c[i] = (pn_conv_rows){.y = y + n_tail, .x = from, .y_stride = in_place ? 3 * stride : n, .x_stride = 3 * stride, .tail = y, .taps = weights, .stride = stride, .n_rows = conv_rows,
                              .n = n, .n_taps = s->n_taps, .silu = s->options & 8};
        if (s->options & 1) c[i].in_gate = from + stride;
        if (s->options & 2) c[i].out_gate = from + 2 * stride;
        if (s->options & 4) c[i].bias = weights + stride * s->n_taps;
        (i ? b->scalar : b->ops)->conv(&c[i]);
    }
    char what[120];
    snprintf(what, sizeof what, "%d taps, n = %" PRId64 ", options %u, %s", s->n_taps, n, s->options, pn_float_fill_name(s->fill));
    judge(proof, b, Y_FLOATS, got, wanted, y_floats * sizeof(float), 0, 0, what);
    const operands w = {.a = &c[0]};
    if (s->timed) measure(proof, b, call_conv, &w, (double)(n * conv_rows));
}

static void prove_conv(pn_proof *proof, bench *b)
{
    const int64_t last = b->options->thorough ? 70 : 35;
    for (int n_taps = 2; n_taps <= PN_MAX_TAPS; n_taps++)
        for (int64_t n = 1; n <= last; n++)
            for (int i = 0; i < 4; i++) {
                const conv_shape s = {n_taps, n, (unsigned)(n * 4 + i * 9 + n_taps) % 32, (int)((n + i * 3 + n_taps) % pn_n_float_fills), false};
                conv_case(proof, b, &s);
            }
    const conv_shape measured = {4, 2048, 12, 0, true};
    conv_case(proof, b, &measured);
}

/* ---- delta rule ---- */

enum { delta_tokens = 3 };

typedef struct delta_case {
    float *state;
    const pn_delta_token *tokens;
    int64_t n_tokens;
    int d_k, d_v;
} delta_case;

static float call_delta(const pn_ops *ops, const operands *w)
{
    const delta_case *c = w->a;
    ops->delta_rule(c->state, c->tokens, c->n_tokens, c->d_k, c->d_v);
    return 0;
}

/* The results of all tokens, then the state, lie in one guarded place; keys and values each in another. */
static void prove_delta_case(pn_proof *proof, bench *b, int d_k, int d_v, int n_tokens, int fill, bool measured)
{
    const size_t n_state = (size_t)d_k * (size_t)pn_round_up((uint64_t)d_v, 16), n_out = (size_t)(delta_tokens * d_v), bytes = (n_out + n_state) * sizeof(float);
    const int64_t n_keys = 4 * d_k * delta_tokens, n_v = d_v * delta_tokens;
    float *got = pn_guarded_place(&b->got, bytes, 4), *wanted = pn_guarded_place(&b->wanted, bytes, 4);
    float *keys = pn_guarded_place(&b->a, (size_t)n_keys * sizeof(float), 4), *v = pn_guarded_place(&b->b, (size_t)n_v * sizeof(float), 4);
    pn_fill_floats(wanted, (int64_t)(n_out + n_state), fill, &b->random);
    pn_fill_floats(keys, n_keys, fill, &b->random);
    pn_fill_floats(v, n_v, fill, &b->random);
    memcpy(got, wanted, bytes);
    pn_delta_token tokens[2][delta_tokens];
    delta_case c[2];
    for (int i = 0; i < 2; i++) {
        float *y = i ? wanted : got;
        for (int t = 0; t < delta_tokens; t++)
            tokens[i][t] = (pn_delta_token){keys + 4 * d_k * t, v + d_v * t, y + d_v * t, 0.3f + (float)t, 0.7f, 0.125f};
        c[i] = (delta_case){y + n_out, tokens[i], n_tokens, d_k, d_v};
        const operands w = {.a = &c[i]};
        call_delta(i ? b->scalar : b->ops, &w);
    }
    char what[120];
    snprintf(what, sizeof what, "%d x %d, %d tokens, %s", d_k, d_v, n_tokens, pn_float_fill_name(fill));
    judge(proof, b, Y_FLOATS, got, wanted, bytes, 0, 0, what);
    if (!measured) return;
    memset(keys, 0, (size_t)n_keys * sizeof(float)); /* the state becomes 0 and stays so: no infinities arise */
    const operands w = {.a = &c[0]};
    measure(proof, b, call_delta, &w, (double)d_k * d_v * n_tokens);
}

static void prove_delta(pn_proof *proof, bench *b)
{
    static const int widths[] = {1, 3, 4, 8, 15, 16, 17, 32, 33, 48, 64, 80, 96, 128};
    for (size_t i = 0; i < PN_COUNT(widths); i++)
        for (size_t j = 0; j < PN_COUNT(widths); j++)
            for (int n = 0; n <= delta_tokens; n++)
                for (int fill = 0; fill < (b->options->thorough ? pn_n_float_fills : 1); fill++)
                    prove_delta_case(proof, b, widths[i], widths[j], n, (fill + n + (int)(i + j)) % pn_n_float_fills, false);
    prove_delta_case(proof, b, 128, 128, 1, 0, true);
}

/* ---- selective scan ---- */

static float call_ssm(const pn_ops *ops, const operands *w)
{
    ops->ssm(w->a);
    return 0;
}

typedef struct ssm_shape {
    int n, d_state;
    int64_t n_rows;
    bool in_place;
    int fill;
    bool timed;
} ssm_shape;

/* The state, then y (or rows of x, b, c) lie in one guarded place. */
static void ssm_case(pn_proof *proof, bench *b, const ssm_shape *s)
{
    const int64_t stride = s->n + 2 * s->d_state + s->fill % 3, n_state = pn_ssm_floats(s->n, s->d_state), n_x = (s->n_rows - 1) * stride + s->n + 2 * s->d_state;
    const int64_t n_y = s->in_place ? n_x : (s->n_rows - 1) * stride + s->n;
    const size_t bytes = (size_t)(n_state + n_y) * sizeof(float);
    float *got = pn_guarded_place(&b->got, bytes, 4), *wanted = pn_guarded_place(&b->wanted, bytes, 4), *x = pn_guarded_place(&b->a, (size_t)n_x * sizeof(float), 4);
    float *steps = pn_guarded_place(&b->b, (size_t)(2 * s->n_rows + 1) * sizeof(float), 4);
    pn_fill_floats(x, n_x, s->fill, &b->random);
    pn_fill_floats(steps, 2 * s->n_rows + 1, s->fill, &b->random);
    pn_fill_floats(wanted, n_state + n_y, s->fill, &b->random);
    memcpy(got, wanted, bytes);
    pn_ssm_rows rows[2];
    for (int i = 0; i < 2; i++) {
        float *state = i ? wanted : got;
        const float *from = s->in_place ? state + n_state : x;
        rows[i] = (pn_ssm_rows){.y = state + n_state, .x = from, .b = from + s->n, .c = from + s->n + s->d_state, .stride = stride, .decay = steps, .step = steps + s->n_rows,
                                .skip = steps[2 * s->n_rows], .state = state, .n_rows = s->n_rows, .n = s->n, .d_state = s->d_state};
        (i ? b->scalar : b->ops)->ssm(&rows[i]);
    }
    char what[120];
    snprintf(what, sizeof what, "n = %d, state %d, %" PRId64 " rows%s, %s", s->n, s->d_state, s->n_rows, s->in_place ? " in place" : "", pn_float_fill_name(s->fill));
    judge(proof, b, Y_FLOATS, got, wanted, bytes, 0, 0, what);
    const operands w = {.a = &rows[0]};
    if (s->timed) measure(proof, b, call_ssm, &w, (double)(s->n * s->d_state * s->n_rows));
}

static void prove_ssm(pn_proof *proof, bench *b)
{
    static const int states[] = {1, 2, 15, 16, 17, 64};
    const int last = b->options->thorough ? 100 : 50;
    for (int n = 1; n <= last; n++)
        for (size_t i = 0; i < PN_COUNT(states); i++) {
            const ssm_shape s = {n, states[i], 1 + (int64_t)((size_t)n + i) % 7, (n + (int)i / 2) % 2, (int)((size_t)n + i) % pn_n_float_fills, false};
            ssm_case(proof, b, &s);
        }
    const ssm_shape measured = {64, 128, 64, false, 1, true};
    ssm_case(proof, b, &measured);
}

/* ---- exact product ---- */

enum { exact_columns = 5, exact_rows = 35 };

static float call_exact(const pn_ops *ops, const operands *w)
{
    ops->exact(w->a, 0, w->n, w->y);
    return 0;
}

typedef struct exact_shape {
    pn_type type;
    int64_t rows, k;
    int n_cols, fill;
    bool timed;
} exact_shape;

static void exact_case(pn_proof *proof, bench *b, const exact_shape *s)
{
    const pn_type_info *info = pn_type_get((uint32_t)s->type);
    const int64_t rows = s->rows, k = s->k;
    const int n_cols = s->n_cols, fill = s->fill;
    const size_t bytes = (size_t)(k / info->block) * info->bytes * (size_t)rows, y_bytes = (size_t)rows * (size_t)n_cols * sizeof(float);
    uint8_t *raw = pn_guarded_place(&b->a, bytes, 1);
    pn_fill_weights(raw, s->type, rows * (k / info->block), fill % pn_n_weight_fills, &b->random);
    float *got = pn_guarded_place(&b->got, y_bytes, 4), *wanted = pn_guarded_place(&b->wanted, y_bytes, 4);
    const void *x[exact_columns];
    float *y_got[exact_columns], *y_wanted[exact_columns];
    for (int c = 0; c < n_cols; c++) {
        float *column = pn_guarded_place(&b->q[c], (size_t)k * sizeof(float), 16);
        pn_fill_floats(column, k, fill / pn_n_weight_fills % pn_n_float_fills, &b->random);
        x[c] = column;
        y_got[c] = got + c * rows;
        y_wanted[c] = wanted + c * rows;
    }
    void *scratch = pn_guarded_place(&b->b, (size_t)pn_exact_scratch(k), 64);
    pn_exact_mm e = {{raw, rows, k, x, y_got, n_cols}, s->type};
    const int64_t cut = rows / 2 / PN_EXACT_ROWS * PN_EXACT_ROWS;
    if (cut > 0) b->ops->exact(&e, 0, cut, scratch);
    b->ops->exact(&e, cut, rows, scratch);
    e.mm.y = y_wanted;
    b->scalar->exact(&e, 0, rows, scratch);
    char what[120];
    snprintf(what, sizeof what, "%s, %" PRId64 " x %" PRId64 ", %d columns, %s", info->name, rows, k, n_cols, pn_weight_fill_name(fill % pn_n_weight_fills));
    judge(proof, b, Y_FLOATS, got, wanted, y_bytes, 0, 0, what);
    const operands w = {.a = &e, .y = scratch, .n = rows};
    if (s->timed) measure(proof, b, call_exact, &w, (double)(rows * k * n_cols));
}

static void prove_exact(pn_proof *proof, bench *b)
{
    static const int64_t rows[] = {1, PN_EXACT_ROWS - 1, PN_EXACT_ROWS, PN_EXACT_ROWS + 1, exact_rows};
    const int n_rounds = b->options->thorough ? 40 : 4;
    int fill = 0;
    for (uint32_t id = 0; id < PN_TYPE_COUNT; id++) {
        const pn_type_info *info = pn_type_get(id);
        if (!info || !info->dequantise) continue;
        const int64_t block = info->block, most = block == 1 ? 67 : max_k / block; /* blocks of a row */
        for (int round = 0; round < n_rounds; round++)
            for (size_t i = 0; i < PN_COUNT(rows); i++, fill++) {
                const exact_shape s = {(pn_type)id, rows[i], block * (1 + fill % most), 1 + fill % exact_columns, fill, false};
                exact_case(proof, b, &s);
            }
    }
    const exact_shape measured = {PN_Q4_K, exact_rows, max_k, exact_columns, 0, true};
    exact_case(proof, b, &measured);
}

/* ---- the table ---- */

typedef void (*prove_fn)(pn_proof *proof, bench *b, const void *op);
static void prove_row_entry(pn_proof *proof, bench *b, const void *op) { prove_row_op(proof, b, op); }
static void prove_k_rows_entry(pn_proof *proof, bench *b, const void *op) { prove_k_rows(proof, b, op); }
static void prove_attention_entry(pn_proof *proof, bench *b, const void *op) { prove_attention_op(proof, b, op); }
static void prove_conv_entry(pn_proof *proof, bench *b, const void *op)
{
    (void)op;
    prove_conv(proof, b);
}
static void prove_delta_entry(pn_proof *proof, bench *b, const void *op)
{
    (void)op;
    prove_delta(proof, b);
}
static void prove_ssm_entry(pn_proof *proof, bench *b, const void *op)
{
    (void)op;
    prove_ssm(proof, b);
}
static void prove_exact_entry(pn_proof *proof, bench *b, const void *op)
{
    (void)op;
    prove_exact(proof, b);
}

/* One member, from its announcement to its report; false: the caller asked to stop. */
static bool prove_member(bench *b, const char *member, prove_fn prove, const void *op)
{
    char name[64];
    snprintf(name, sizeof name, "%s__%s", member, b->ops->isa);
    if (!pn_prove_wanted(b->options, name)) return true;
    pn_proof proof = {.name = name, .isa = b->ops->isa, .promise = b->ops == b->scalar ? PN_MEANING : PN_EXACT, .held = true};
    if (b->options->on_start) b->options->on_start(b->options->user, name);
    b->random = b->options->seed * 2 + 1;
    prove(&proof, b, op);
    return !b->options->on_proof(b->options->user, &proof);
}

pinch_status pn_prove_ops(const pn_prove_options *options, const pn_ops *ops, const pn_ops *scalar, pinch_error *err)
{
    bench b = {.options = options, .ops = ops, .scalar = scalar};
    const pinch_status status = bench_open(&b, err);
    if (status) return status;
    bool go_on = true;
    for (size_t i = 0; i < PN_COUNT(row_ops) && go_on; i++) go_on = prove_member(&b, row_ops[i].name, prove_row_entry, &row_ops[i]);
    for (size_t i = 0; i < PN_COUNT(attention_ops) && go_on; i++) go_on = prove_member(&b, attention_ops[i].name, prove_attention_entry, &attention_ops[i]);
    for (size_t i = 0; i < PN_COUNT(k_rows_ops) && go_on; i++) go_on = prove_member(&b, k_rows_ops[i].name, prove_k_rows_entry, &k_rows_ops[i]);
    if (go_on) go_on = prove_member(&b, "conv", prove_conv_entry, NULL);
    if (go_on) go_on = prove_member(&b, "delta_rule", prove_delta_entry, NULL);
    if (go_on) go_on = prove_member(&b, "ssm", prove_ssm_entry, NULL);
    if (go_on) go_on = prove_member(&b, "exact", prove_exact_entry, NULL);
    bench_close(&b);
    return go_on ? PINCH_OK : pn_fail(err, PINCH_ABORTED, "stopped by the caller");
}
