/* bench/kernels.c - speed of the packed mat-mul kernels that this CPU runs, on two threads, against the scalar kernel and a loop that only reads.
 *
 *   kernels [PART OF A NAME]
 * Per kernel: products a second for 512 columns and, from cache, for 4 and 1; the ratio to scalar; how much of the read loop's rate a matrix that
 * fits no cache reaches with 1 and 4 columns, the two alternating; packing. Median [min max]. Time is CPU time of the slower thread, because machines
 * are shared. */
#include "base/cpu.h"
#include "base/pages.h"
#include "kernels/kernels.h"
#include "sched/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { n_threads = 2, n_rounds = 11, many = 512, cached_rows = 1536, row_length = 2048 };
static const uint64_t memory_bytes = 256u << 20;

typedef struct summary {
    double median, least, most;
} summary;

static int ascending(const void *a, const void *b) { return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b; }

static summary summarise(double *v, size_t n)
{
    qsort(v, n, sizeof *v, ascending);
    return (summary){v[n / 2], v[0], v[n - 1]};
}

static void *allocate(uint64_t bytes)
{
    void *p = pn_pages_alloc(bytes);
    if (p) return p;
    fprintf(stderr, "out of memory: %" PRIu64 " bytes\n", bytes);
    exit(1);
}

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* One piece of work for all threads. `read_bytes`: the read loop instead of a kernel. */
typedef struct job {
    const pn_kernel *kernel;
    pn_mm mm;
    uint64_t read_bytes;
    int repeats;
    void *scratch[n_threads];
    double seconds[n_threads];
} job;

/* Reads everything once; the sum keeps the compiler from leaving it out. */
static uint64_t read_all(const uint64_t *p, uint64_t n)
{
    uint64_t sum[16] = {0};
    for (uint64_t i = 0; i + 16 <= n; i += 16)
        for (int j = 0; j < 16; j++) sum[j] += p[i + (uint64_t)j];
    uint64_t total = 0;
    for (int j = 0; j < 16; j++) total += sum[j];
    return total;
}

static void work(void *ctx, int thread, int n)
{
    job *j = ctx;
    const int64_t groups = (j->mm.rows + j->kernel->rows - 1) / j->kernel->rows;
    const int64_t begin = groups * thread / n * j->kernel->rows, end = pn_min64(groups * (thread + 1) / n * j->kernel->rows, j->mm.rows);
    const uint64_t words = j->read_bytes / 8 / (uint64_t)n;
    volatile uint64_t sink;
    const double start = thread_seconds();
    for (int i = 0; i < j->repeats; i++) {
        if (j->read_bytes) sink = read_all((const uint64_t *)j->mm.w + words * (uint64_t)thread, words), (void)sink;
        else (j->mm.n_cols == 1 ? j->kernel->gemv : j->kernel->gemm)(&j->mm, begin, end, j->scratch[thread]);
    }
    j->seconds[thread] = thread_seconds() - start;
}

static double seconds(job *j, pn_pool *pool, int n)
{
    pn_pool_run(pool, n, work, j);
    double slowest = 0;
    for (int i = 0; i < n; i++) slowest = j->seconds[i] > slowest ? j->seconds[i] : slowest;
    return slowest / j->repeats;
}

/* Activations and results of all columns, shared by all kernels. */
typedef struct sides {
    const void *x[many];
    float *y[many];
} sides;

static void sides_fill(sides *s, const pn_kernel *kernel, int64_t rows)
{
    const pn_act act = pn_type_get((uint32_t)kernel->weight)->act;
    const pn_ops *ops = pn_ops_best(0);
    float *floats = allocate(row_length * sizeof *floats);
    for (int c = 0; c < many; c++) {
        void *x = allocate(pn_act_bytes(act, row_length));
        for (int i = 0; i < row_length; i++) floats[i] = (float)((i * 37 + c * 101) % 255 - 127) * 0.01f;
        if (act == PN_ACT_32) ops->quantise_32(x, floats, row_length);
        else if (act == PN_ACT_256) ops->quantise_256(x, floats, row_length);
        else memcpy(x, floats, row_length * sizeof *floats);
        s->x[c] = x;
        s->y[c] = allocate((uint64_t)rows * sizeof(float));
    }
    pn_pages_free(floats, row_length * sizeof *floats);
}

static void sides_free(sides *s, const pn_kernel *kernel, int64_t rows)
{
    const pn_act act = pn_type_get((uint32_t)kernel->weight)->act;
    for (int c = 0; c < many; c++) {
        pn_pages_free((void *)(uintptr_t)s->x[c], pn_act_bytes(act, row_length));
        pn_pages_free(s->y[c], (uint64_t)rows * sizeof(float));
    }
}

/* Products a second, in thousand millions. */
static summary speed(job *j, pn_pool *pool, int n, int64_t rows, int n_cols, int repeats)
{
    double v[n_rounds];
    j->mm.rows = rows;
    j->mm.n_cols = n_cols;
    j->read_bytes = 0;
    j->repeats = repeats;
    for (int i = 0; i < n_rounds; i++) v[i] = 1e-9 * (double)rows * row_length * n_cols / seconds(j, pool, n);
    return summarise(v, n_rounds);
}

/* The kernel's share of the read loop's rate, from memory. */
static summary share(job *j, pn_pool *pool, int64_t rows, uint64_t bytes, int n_cols, double *rate)
{
    double v[n_rounds], read[n_rounds];
    j->mm.rows = rows;
    j->mm.n_cols = n_cols;
    j->repeats = 1;
    for (int i = 0; i < n_rounds; i++) {
        j->read_bytes = bytes;
        read[i] = seconds(j, pool, n_threads);
        j->read_bytes = 0;
        v[i] = read[i] / seconds(j, pool, n_threads);
    }
    *rate = 1e-9 * (double)bytes / summarise(read, n_rounds).median;
    return summarise(v, n_rounds);
}

/* File bytes packed a second, one thread, the fastest of three; fills every group of the matrix with the same rows. */
static double pack(uint8_t *packed, const pn_kernel *kernel, int64_t groups, const void *raw, uint64_t raw_bytes)
{
    const uint64_t step = kernel->group_bytes(row_length);
    double best = 1e30;
    for (int i = 0; i < 3; i++) {
        const int64_t n = i < 2 ? pn_min64(groups, 64) : groups;
        const double start = thread_seconds();
        for (int64_t g = 0; g < n; g++) kernel->pack(packed + (uint64_t)g * step, raw, kernel->rows, row_length);
        const double each = (thread_seconds() - start) / (double)n;
        best = each < best ? each : best;
    }
    return 1e-9 * (double)raw_bytes / best;
}

static void print(const char *what, summary s) { printf("  %s %.4g [%.4g %.4g]", what, s.median, s.least, s.most); }

static void bench(const pn_kernel *kernel, pn_pool *pool)
{
    const int64_t groups = (int64_t)(memory_bytes / kernel->group_bytes(row_length)), rows = groups * kernel->rows;
    const uint64_t bytes = (uint64_t)groups * kernel->group_bytes(row_length);
    const uint64_t scratch = kernel->scratch_bytes ? kernel->scratch_bytes(row_length) : 0;
    uint64_t row_bytes = 0;
    pn_row_bytes(kernel->weight, row_length, &row_bytes);
    const uint64_t raw_bytes = row_bytes * (uint64_t)kernel->rows;
    uint8_t *raw = allocate(raw_bytes), *packed = allocate(bytes);
    for (uint64_t i = 0; i < raw_bytes; i++) raw[i] = (uint8_t)(i * 167 % 251 & 0x3b); /* small scales in every format */
    const double packing = pack(packed, kernel, groups, raw, raw_bytes);
    sides s;
    sides_fill(&s, kernel, rows);
    job j = {.kernel = kernel, .mm = {packed, 0, row_length, s.x, s.y, 0}};
    for (int i = 0; i < n_threads; i++) j.scratch[i] = allocate(scratch + 64);
    printf("%s", kernel->name);
    print("512 columns", speed(&j, pool, n_threads, cached_rows, many, 1));
    print("4", speed(&j, pool, n_threads, cached_rows, 4, 20));
    const summary one = speed(&j, pool, n_threads, cached_rows, 1, 40);
    print("1", one);
    double rate[2];
    const summary from_memory[2] = {share(&j, pool, rows, bytes, 1, &rate[0]), share(&j, pool, rows, bytes, 4, &rate[1])};
    const summary alone = speed(&j, pool, 1, cached_rows, many, 1);
    job scalar = {.kernel = pn_kernel_best(kernel->weight, 0), .mm = {raw, 0, row_length, s.x, s.y, 0}};
    printf(" GMAC/s, %.3g times scalar\n   ", alone.median / speed(&scalar, pool, 1, kernel->rows, 8, 1).median);
    print("from memory, 1 column", from_memory[0]);
    printf(" of %.1f GB/s", rate[0]);
    print("4 columns", from_memory[1]);
    printf(" of %.1f GB/s  packing %.1f GB/s\n", rate[1], packing);
    fflush(stdout);
    for (int i = 0; i < n_threads; i++) pn_pages_free(j.scratch[i], scratch + 64);
    sides_free(&s, kernel, rows);
    pn_pages_free(packed, bytes);
    pn_pages_free(raw, raw_bytes);
}

int main(int argc, char **argv)
{
    pinch_error err = {0};
    pn_pool *pool;
    if (pn_pool_open(&pool, n_threads, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (size_t i = 0; pn_kernel_at(i); i++) {
        const pn_kernel *kernel = pn_kernel_at(i);
        if (kernel->pack && (kernel->needs & ~pn_cpu_features()) == 0 && (argc < 2 || strstr(kernel->name, argv[1]))) bench(kernel, pool);
    }
    pn_pool_close(pool);
    return 0;
}
