/* kernels/scalar/blocks_scalar.c - products of quantised weights and rounded activations: the definition.
 *
 * One accumulator per (row, column), blocks ascending. A block is decoded once for all columns. The integer sums are exact; what
 * rounds, and in which order, is in the functions add_*. */
#include "kernels/registry.h"
#include "quant/codes.h"

#include <math.h>

enum { n_together = 16 }; /* columns that share the decoding of a block */

static int32_t dot(const int8_t *w, const int8_t *q, int n)
{
    int32_t sum = 0;
    for (int i = 0; i < n; i++) sum += w[i] * q[i];
    return sum;
}

/* ---- activations in blocks of 32; `x` is where the block's activations begin ---- */

/* 32 weights, one scale, perhaps a minimum. */
static float add_scaled(float acc, const pn_codes *c, const void *x)
{
    const pn_act32 *a = x;
    return fmaf((float)dot(c->w, a->q, 32), c->part[0] * a->d, acc);
}

static float add_scaled_min(float acc, const pn_codes *c, const void *x)
{
    const pn_act32 *a = x;
    return fmaf(c->m, a->s, add_scaled(acc, c, a));
}

/* Two halves of 32 with a scale for each 16. */
static float add_sixteens(float acc, const pn_codes *c, const void *x)
{
    const pn_act32 *a = x;
    for (int half = 0; half < 2; half++, a++) {
        const int8_t *w = c->w + 32 * half;
        const float *scale = c->part + 2 * half;
        const float u = (float)dot(w, a->q, 16) * scale[0];
        acc = fmaf(fmaf((float)dot(w + 16, a->q + 16, 16), scale[1], u), a->d, acc);
    }
    return acc;
}

/* One scale for several activation blocks: their scales first, then the weights'. */
static float add_several(float acc, const pn_codes *c, const pn_act32 *a, int n_blocks)
{
    float u = (float)dot(c->w, a[0].q, 32) * a[0].d;
    for (int j = 1; j < n_blocks; j++) u = fmaf((float)dot(c->w + 32 * j, a[j].q, 32), a[j].d, u);
    return fmaf(u, c->part[0], acc);
}

static float add_two(float acc, const pn_codes *c, const void *x) { return add_several(acc, c, x, 2); }
static float add_four(float acc, const pn_codes *c, const void *x) { return add_several(acc, c, x, 4); }

/* ---- activations in blocks of 256 ---- */

/* Sum of scale_j * (sum of w * q over 16): at most 31*62*127*256 < 2^26. Unrolled it is 7 KB: once for both callers. */
static __attribute__((noinline)) int32_t scaled_dot(const pn_codes *c, const pn_act256 *a)
{
    int32_t sum = 0;
    for (int j = 0; j < 16; j++) sum += c->scale[j] * dot(c->w + 16 * j, a->q + 16 * j, 16);
    return sum;
}

static float add_super(float acc, const pn_codes *c, const void *x)
{
    const pn_act256 *a = x;
    return fmaf((float)scaled_dot(c, a), c->d * a->d * c->unit, acc);
}

static float add_super_min(float acc, const pn_codes *c, const void *x)
{
    const pn_act256 *a = x;
    int32_t minima = 0;
    for (int j = 0; j < 16; j++) minima += c->min[j] * a->bsum16[j];
    const float u = fmaf(-c->dmin, (float)minima, c->d * (float)scaled_dot(c, a));
    return fmaf(u, a->d, acc);
}

/* ---- rows times columns ---- */

typedef struct block_type {
    void (*decode)(pn_codes *c, const uint8_t *block);
    float (*add)(float acc, const pn_codes *c, const void *x);
    int elements, bytes; /* of a block of weights */
    int act_bytes;       /* of the activations that it meets */
} block_type;

static void row_times_columns(const pn_mm *mm, int64_t row, int64_t column, int n, const block_type *type)
{
    const int64_t n_blocks = mm->k / type->elements;
    const uint8_t *w = (const uint8_t *)mm->w + row * n_blocks * type->bytes;
    float acc[n_together] = {0};
    for (int64_t b = 0; b < n_blocks; b++) {
        pn_codes codes;
        type->decode(&codes, w + b * type->bytes);
        for (int c = 0; c < n; c++) acc[c] = type->add(acc[c], &codes, (const uint8_t *)mm->x[column + c] + b * type->act_bytes);
    }
    for (int c = 0; c < n; c++) mm->y[column + c][row] = acc[c];
}

static void multiply(const pn_mm *mm, int64_t row0, int64_t row1, const block_type *type)
{
    for (int64_t r = row0; r < row1; r++)
        for (int64_t c = 0; c < mm->n_cols; c += n_together) row_times_columns(mm, r, c, (int)pn_min64(n_together, mm->n_cols - c), type);
}

#define SCALAR(type, add, elements, bytes, act_bytes)                                                                                    \
    void pn_##type##__scalar_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)                                            \
    {                                                                                                                                    \
        static const block_type blocks = {pn_codes_##type, add, elements, bytes, (int)(act_bytes)};                                      \
        (void)scratch;                                                                                                                   \
        multiply(mm, row0, row1, &blocks);                                                                                               \
    }                                                                                                                                    \
    void pn_##type##__scalar_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { pn_##type##__scalar_gemm(mm, row0, row1, scratch); }
#define ACT_32(type, add, elements, bytes) SCALAR(type, add, elements, bytes, (elements) / 32 * sizeof(pn_act32))
#define ACT_256(type, add, bytes) SCALAR(type, add, 256, bytes, sizeof(pn_act256))

ACT_32(q4_0, add_scaled, 32, 18)
ACT_32(q5_0, add_scaled, 32, 22)
ACT_32(q8_0, add_scaled, 32, 34)
ACT_32(iq4_nl, add_scaled, 32, 18)
ACT_32(mxfp4, add_scaled, 32, 17)
ACT_32(q4_1, add_scaled_min, 32, 20)
ACT_32(q5_1, add_scaled_min, 32, 24)
ACT_32(nvfp4, add_sixteens, 64, 36)
ACT_32(q2_0, add_two, 64, 18)
ACT_32(q1_0, add_four, 128, 18)
ACT_256(q2_k, add_super_min, 84)
ACT_256(q4_k, add_super_min, 144)
ACT_256(q5_k, add_super_min, 176)
ACT_256(q3_k, add_super, 110)
ACT_256(q6_k, add_super, 210)
ACT_256(iq4_xs, add_super, 136)
ACT_256(tq1_0, add_super, 54)
ACT_256(tq2_0, add_super, 66)
ACT_256(iq2_xxs, add_super, 66)
ACT_256(iq2_xs, add_super, 74)
ACT_256(iq2_s, add_super, 82)
ACT_256(iq3_xxs, add_super, 98)
ACT_256(iq3_s, add_super, 110)
ACT_256(iq1_s, add_super, 50)
ACT_256(iq1_m, add_super, 56)
