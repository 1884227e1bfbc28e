/* kernels/prove.c - proofs of the mat-mul kernels against scalar, and their speeds. See prove.h; operations: prove_ops.c. */
#include "kernels/prove.h"

#include "kernels/prove_work.h"

#include <stdlib.h>
#include <strings.h>

enum { max_columns = 17, speed_columns = 16, speed_rows = 128, speed_k = 4096 };

/* A kernel under proof and everything it touches. `x`, `y` and `packed` are guarded; `wanted` is scalar's answer. */
typedef struct bench {
    const pn_kernel *kernel, *scalar;
    const pn_type_info *type;
    const pn_ops *ops; /* scalar */
    pn_guarded raw, packed, x[max_columns], y[max_columns], scratch;
    float *floats, *wanted;
} bench;

typedef struct shape {
    int64_t rows, k;
    int n_cols;
    int weights, activations; /* fills */
} shape;

/* One matrix, its activations and room for the results, placed in the buffers of a bench. */
typedef struct problem {
    shape shape;
    uint8_t *raw, *packed; /* packed == raw where the kernel uses the file layout */
    const void *x[max_columns];
    float *y[max_columns];
    void *scratch;
} problem;

bool pn_prove_wanted(const pn_prove_options *options, const char *name)
{
    if (!options->filter) return true;
    const size_t n = strlen(options->filter);
    for (; *name; name++)
        if (strncasecmp(name, options->filter, n) == 0) return true;
    return n == 0;
}

static size_t row_bytes(const bench *b, int64_t k) { return (size_t)(k / b->type->block) * b->type->bytes; }

static void bench_close(bench *b)
{
    pn_guarded_close(&b->raw);
    pn_guarded_close(&b->packed);
    pn_guarded_close(&b->scratch);
    for (int c = 0; c < max_columns; c++) {
        pn_guarded_close(&b->x[c]);
        pn_guarded_close(&b->y[c]);
    }
    free(b->floats);
    free(b->wanted);
}

/* Buffers for up to `rows` x `k`. */
static pinch_status bench_open(bench *b, const pn_kernel *kernel, int64_t rows, int64_t k, pinch_error *err)
{
    memset(b, 0, sizeof *b);
    b->kernel = kernel;
    b->scalar = pn_kernel_best(kernel->weight, 0);
    b->ops = pn_ops_best(0);
    b->type = pn_type_get((uint32_t)kernel->weight);
    uint64_t packed = 0;
    if (!pn_kernel_matrix_bytes(kernel, rows, k, &packed)) return pn_fail(err, PINCH_ERR_ARGUMENT, "kernel %s has no layout for rows of %" PRId64, kernel->name, k);
    pinch_status status = pn_guarded_open(&b->raw, (size_t)rows * row_bytes(b, k), err);
    if (!status) status = pn_guarded_open(&b->packed, (size_t)packed, err);
    if (!status) status = pn_guarded_open(&b->scratch, kernel->scratch_bytes ? (size_t)kernel->scratch_bytes(k) : 1, err);
    for (int c = 0; c < max_columns && !status; c++) {
        status = pn_guarded_open(&b->x[c], (size_t)pn_act_bytes(b->type->act, k) + 16, err);
        if (!status) status = pn_guarded_open(&b->y[c], (size_t)rows * sizeof(float) + 64, err);
    }
    b->floats = pn_alloc((uint64_t)k, sizeof(float));
    b->wanted = pn_alloc((uint64_t)rows, sizeof(float));
    if (!status && (!b->floats || !b->wanted)) status = pn_fail_memory(err, "a proof", (uint64_t)(rows + k) * sizeof(float));
    if (status) bench_close(b);
    return status;
}

static void fill_activations(bench *b, problem *p, int column, uint64_t *random)
{
    const int64_t k = p->shape.k;
    void *x = pn_guarded_place(&b->x[column], (size_t)pn_act_bytes(b->type->act, k), 16);
    pn_fill_floats(b->floats, k, p->shape.activations, random);
    if (b->type->act == PN_ACT_F32) memcpy(x, b->floats, (size_t)k * sizeof(float));
    else if (b->type->act == PN_ACT_32) b->ops->quantise_32(x, b->floats, k);
    else b->ops->quantise_256(x, b->floats, k);
    p->x[column] = x;
}

static void pack_matrix(bench *b, problem *p)
{
    const pn_kernel *kernel = b->kernel;
    const int64_t k = p->shape.k, rows = p->shape.rows;
    p->packed = p->raw;
    if (!kernel->pack) return;
    uint64_t bytes = 0;
    pn_kernel_matrix_bytes(kernel, rows, k, &bytes);
    p->packed = pn_guarded_place(&b->packed, (size_t)bytes, 64);
    for (int64_t r = 0, g = 0; r < rows; r += kernel->rows, g++)
        kernel->pack(p->packed + (size_t)g * (size_t)kernel->group_bytes(k), p->raw + (size_t)r * row_bytes(b, k), pn_min64(kernel->rows, rows - r), k);
}

static void problem_fill(bench *b, problem *p, const shape *s, uint64_t *random)
{
    p->shape = *s;
    p->raw = pn_guarded_place(&b->raw, (size_t)s->rows * row_bytes(b, s->k), b->type->act == PN_ACT_F32 ? 4 : 1);
    pn_fill_weights(p->raw, b->kernel->weight, s->rows * (s->k / b->type->block), s->weights, random);
    pack_matrix(b, p);
    for (int c = 0; c < s->n_cols; c++) {
        fill_activations(b, p, c, random);
        p->y[c] = pn_guarded_place(&b->y[c], (size_t)s->rows * sizeof(float), 4);
    }
    p->scratch = pn_guarded_place(&b->scratch, b->kernel->scratch_bytes ? (size_t)b->kernel->scratch_bytes(s->k) : 0, 64);
}

static void run(const pn_kernel *kernel, const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    (mm->n_cols == 1 ? kernel->gemv : kernel->gemm)(mm, row0, row1, scratch);
}

/* The matrix in two calls, cut at a multiple of the tile, as threads would. */
static void run_kernel(const bench *b, const problem *p)
{
    const pn_mm mm = {p->packed, p->shape.rows, p->shape.k, p->x, p->y, p->shape.n_cols};
    const int64_t tiles = (p->shape.rows + b->kernel->rows - 1) / b->kernel->rows, cut = tiles / 2 * b->kernel->rows;
    if (cut > 0) run(b->kernel, &mm, 0, cut, p->scratch);
    run(b->kernel, &mm, cut, p->shape.rows, p->scratch);
}

static void prove_case(pn_proof *proof, bench *b, const shape *s, uint64_t *random)
{
    problem p;
    problem_fill(b, &p, s, random);
    run_kernel(b, &p);
    const uint64_t before = proof->differing;
    for (int c = 0; c < s->n_cols; c++) {
        float *wanted = b->wanted;
        const pn_mm mm = {p.raw, s->rows, s->k, &p.x[c], &wanted, 1};
        b->scalar->gemv(&mm, 0, s->rows, NULL);
        pn_prove_compare(proof, p.y[c], wanted, s->rows);
        if (!pn_guarded_intact(&b->y[c], p.y[c], (size_t)s->rows * sizeof(float)))
            pn_prove_failure(proof, "%" PRId64 " x %" PRId64 ", %d columns: writes beside its rows", s->rows, s->k, s->n_cols);
    }
    proof->cases++;
    const bool kept = proof->promise == PN_BOUNDED ? proof->largest <= PN_BOUNDED_ERROR : proof->differing == before;
    if (!kept)
        pn_prove_failure(proof, "%" PRId64 " x %" PRId64 ", %d columns, weights %s, activations %s: %" PRIu64 " floats differ", s->rows, s->k, s->n_cols,
                         pn_weight_fill_name(s->weights), pn_float_fill_name(s->activations), proof->differing - before);
}

/* Rows below, at and above the tile and its multiples; one block, odd tails; 1 to 17 columns; fills so that all pairs meet. */
static pinch_status prove_shapes(pn_proof *proof, const pn_prove_options *options, const pn_kernel *kernel, pinch_error *err)
{
    const int64_t tile = kernel->rows, unit = pn_type_get((uint32_t)kernel->weight)->act == PN_ACT_F32 ? 1 : pn_type_get((uint32_t)kernel->weight)->block;
    const int64_t rows[] = {1, pn_max64(tile - 1, 1), tile, tile + 1, 2 * tile, 3 * tile + tile / 2};
    const int64_t blocks[] = {1, 2, 3, 5, 8, 11};
    const int64_t plain_k[] = {1, 8, 31, 64, 100, 257};
    bench b;
    const pinch_status status = bench_open(&b, kernel, 4 * tile, unit == 1 ? 257 : 11 * unit, err);
    if (status) return status;
    uint64_t random = options->seed * 2 + 1;
    const int n_rounds = options->thorough ? 40 : 4;
    for (int round = 0, n = 0; round < n_rounds; round++)
        for (size_t i = 0; i < PN_COUNT(rows); i++)
            for (size_t j = 0; j < PN_COUNT(blocks); j++, n++) {
                const shape s = {rows[i], unit == 1 ? plain_k[j] : blocks[j] * unit, round == 0 ? 1 : 1 + n % max_columns, n / pn_n_float_fills % pn_n_weight_fills,
                                 n % pn_n_float_fills};
                prove_case(proof, &b, &s, &random);
            }
    bench_close(&b);
    return PINCH_OK;
}

/* ---- speed ---- */

typedef struct timed {
    const pn_kernel *kernel;
    pn_mm mm;
    void *scratch;
} timed;

static void call_kernel(void *user)
{
    const timed *t = user;
    run(t->kernel, &t->mm, 0, t->mm.rows, t->scratch);
}

/* Products of a weight and an activation per second, in thousand millions. */
static double kernel_speed(const bench *b, const problem *p, const pn_kernel *kernel, int n_cols, double seconds)
{
    const int64_t rows = kernel == b->kernel && kernel->promise != PN_MEANING ? speed_rows : 16; /* scalar need not be timed on all of them */
    timed t = {kernel, {kernel == b->kernel ? p->packed : p->raw, rows, speed_k, p->x, p->y, n_cols}, p->scratch};
    return (double)rows * speed_k * n_cols / pn_prove_time(call_kernel, &t, seconds) * 1e-9;
}

static pinch_status measure(pn_proof *proof, const pn_prove_options *options, const pn_kernel *kernel, pinch_error *err)
{
    bench b;
    const pinch_status status = bench_open(&b, kernel, speed_rows + kernel->rows, speed_k, err);
    if (status) return status;
    uint64_t random = 1;
    problem p;
    const shape s = {speed_rows, speed_k, speed_columns, 0, 0};
    problem_fill(&b, &p, &s, &random);
    proof->speed_one = kernel_speed(&b, &p, kernel, 1, options->seconds);
    proof->speed_many = kernel_speed(&b, &p, kernel, speed_columns, options->seconds);
    proof->ratio_one = proof->ratio_many = 1;
    if (kernel != b.scalar) {
        proof->ratio_one = proof->speed_one / kernel_speed(&b, &p, b.scalar, 1, options->seconds / 4);
        proof->ratio_many = proof->speed_many / kernel_speed(&b, &p, b.scalar, speed_columns, options->seconds / 4);
    }
    bench_close(&b);
    return PINCH_OK;
}

pinch_status pn_prove_kernel(pn_proof *proof, const pn_prove_options *options, const pn_kernel *kernel, pinch_error *err)
{
    *proof = (pn_proof){.name = kernel->name, .isa = kernel->isa, .kernel = kernel, .promise = kernel->promise, .held = true};
    const pinch_status status = prove_shapes(proof, options, kernel, err);
    if (status || !(options->seconds > 0)) return status;
    return measure(proof, options, kernel, err);
}

pinch_status pn_prove(const pn_prove_options *options, pinch_error *err)
{
    const pn_kernel *kernel;
    for (size_t i = 0; (kernel = pn_kernel_at(i)) != NULL; i++) {
        if ((kernel->needs & ~options->features) != 0 || !pn_prove_wanted(options, kernel->name)) continue;
        pn_proof proof;
        if (options->on_start) options->on_start(options->user, kernel->name);
        const pinch_status status = pn_prove_kernel(&proof, options, kernel, err);
        if (status) return status;
        if (options->on_proof(options->user, &proof)) return pn_fail(err, PINCH_ABORTED, "stopped by the caller");
    }
    const pn_ops *ops, *scalar = pn_ops_best(0);
    for (size_t i = 0; (ops = pn_ops_at(i, options->features)) != NULL; i++) {
        const pinch_status status = pn_prove_ops(options, ops, scalar, err);
        if (status) return status;
    }
    return PINCH_OK;
}
