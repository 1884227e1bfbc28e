/* Brings the matrices in: maps what kernels use in place, reads and packs the rest, all threads at once. */
#include "models/models.h"

#include "base/pages.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 1 << 18 }; /* of source rows read at a time: stays in a core's cache between read and pack */

typedef struct loader {
    pn_network *net;
    const pn_weights_options *options;
    pn_grab *grabs;          /* one per source */
    _Atomic uint64_t done;   /* resident bytes */
    _Atomic int failed;      /* 1: somebody has an error; others stop */
    pinch_error *errors;     /* one per thread */
    pinch_status *statuses;
} loader;

/* Units of a source: groups of the kernel's rows (or 16 file rows), over all experts. */
static int64_t unit_rows(const pn_source *s) { return s->weight.kernel && s->weight.kernel->group_bytes ? s->weight.kernel->rows : 16; }
static int64_t units_per_matrix(const pn_source *s) { return (s->weight.rows + unit_rows(s) - 1) / unit_rows(s); }

/* Rows [row0, row1) of one matrix of a source, to `out`: as many reads as runs that they meet. */
static pinch_status read_rows(const loader *l, const pn_source *s, int64_t expert, int64_t row0, int64_t row1, uint8_t *out, uint64_t row_bytes, pinch_error *err)
{
    pinch_status st = PINCH_OK;
    for (int64_t row = row0, n; row < row1 && !st; row += n) {
        const int64_t at = s->first_row + (expert + row / s->run) * s->stride + row % s->run;
        n = pn_min64(s->run - row % s->run, row1 - row);
        st = pn_gguf_read(l->net->g, s->tensor, (uint64_t)at * row_bytes, out + (uint64_t)(row - row0) * row_bytes, (uint64_t)n * row_bytes, err);
    }
    return st;
}

/* Packs (or copies) units [from, to) of one matrix. `raw` holds a chunk. */
static pinch_status load_units(const loader *l, const pn_source *s, int64_t expert, int64_t from, int64_t to, uint8_t *raw, uint64_t row_bytes, pinch_error *err)
{
    const pn_weight *w = &s->weight;
    const int64_t step = unit_rows(s), row0 = from * step, row1 = pn_min64(to * step, w->rows);
    uint8_t *matrix = l->net->resident + s->offset + (uint64_t)expert * w->matrix_bytes;
    if (!w->kernel || !w->kernel->group_bytes) return read_rows(l, s, expert, row0, row1, matrix + (uint64_t)row0 * row_bytes, row_bytes, err);
    const pinch_status st = read_rows(l, s, expert, row0, row1, raw, row_bytes, err);
    const uint64_t group = w->kernel->group_bytes(w->k);
    for (int64_t u = from; u < to && !st; u++) {
        const int64_t at = u * step;
        w->kernel->pack(matrix + (uint64_t)u * group, raw + (uint64_t)(at - row0) * row_bytes, pn_min64(step, w->rows - at), w->k);
    }
    return st;
}

static pinch_status load_source(loader *l, const pn_source *s, pn_grab *grab, int n_threads, uint8_t **raw, uint64_t *capacity, pinch_error *err)
{
    uint64_t row_bytes = 0;
    pn_row_bytes(s->weight.type, (uint64_t)s->weight.k, &row_bytes); /* checked when it was bound */
    const int64_t units = units_per_matrix(s), most = pn_max64(1, (int64_t)(CHUNK_BYTES / (row_bytes * (uint64_t)unit_rows(s))));
    const uint64_t need = (uint64_t)most * (uint64_t)unit_rows(s) * row_bytes;
    if (need > *capacity) {
        pn_pages_free(*raw, *capacity);
        *raw = pn_pages_alloc(need); /* not from the heap, which would keep it */
        *capacity = *raw ? need : 0;
        if (!*raw) return pn_fail_memory(err, "reading weights", need);
    }
    int64_t a, b;
    while (pn_grab_next(grab, units * s->weight.n_experts, n_threads + 1, &a, &b)) {
        for (int64_t at = a; at < b;) {
            const int64_t expert = at / units, end = pn_min64(pn_min64(b, at + most), (expert + 1) * units);
            const pinch_status st = atomic_load(&l->failed) ? PINCH_ABORTED : load_units(l, s, expert, at - expert * units, end - expert * units, *raw, row_bytes, err);
            if (st) return st;
            at = end;
        }
        atomic_fetch_add(&l->done, s->bytes / (uint64_t)(units * s->weight.n_experts) * (uint64_t)(b - a));
    }
    return PINCH_OK;
}

static void report(loader *l)
{
    const pinch_callbacks *c = &l->options->callbacks;
    const uint64_t total = l->net->resident_bytes, done = atomic_load(&l->done);
    if (c->progress) c->progress(c->user, "load", done < total ? done : total, total);
}

static void load_walk(void *arg, int thread, int n_threads)
{
    loader *l = arg;
    const pinch_callbacks *c = &l->options->callbacks;
    uint8_t *raw = NULL;
    uint64_t capacity = 0;
    int i = 0;
    pinch_status st = PINCH_OK;
    for (const pn_source *s = l->net->first; s && !st; s = s->next, i++) {
        if (!s->mapped) st = load_source(l, s, &l->grabs[i], n_threads, &raw, &capacity, &l->errors[thread]);
        if (thread == 0) report(l);
        if (thread == 0 && !st && c->abort && c->abort(c->user)) st = pn_fail(&l->errors[0], PINCH_ABORTED, "loading was stopped");
        if (st) atomic_store(&l->failed, 1);
    }
    l->statuses[thread] = st;
    pn_pages_free(raw, capacity);
}

/* The error of the thread that failed first by number; threads that only stopped because of it hold none. */
static pinch_status first_error(const loader *l, int n, pinch_error *err)
{
    pinch_status st = PINCH_OK;
    for (int i = n - 1; i >= 0; i--) {
        if (!l->statuses[i] || !l->errors[i].message[0]) continue;
        st = l->statuses[i];
        if (err) *err = l->errors[i];
    }
    return st;
}

static pinch_status load_resident(pn_network *net, const pn_weights_options *options, pn_pool *pool, pinch_error *err)
{
    const int n = pn_pool_size(pool);
    loader l = {.net = net, .options = options};
    net->resident = pn_pages_alloc_huge(net->resident_bytes);
    if (!net->resident) return pn_fail_memory(err, "the weights", net->resident_bytes);
    l.errors = pn_alloc_zero((uint64_t)n, sizeof *l.errors);
    l.statuses = pn_alloc_zero((uint64_t)n, sizeof *l.statuses);
    const bool ready = l.errors && l.statuses && !posix_memalign((void **)&l.grabs, 64, ((size_t)net->n_sources + 1) * sizeof *l.grabs);
    pinch_status st;
    if (ready) {
        for (int i = 0; i < net->n_sources; i++) pn_grab_reset(&l.grabs[i]);
        pn_pool_run(pool, n, load_walk, &l);
        st = first_error(&l, n, err);
    } else {
        st = pn_fail_memory(err, "the list of tensors", (uint64_t)net->n_sources * sizeof *l.grabs);
    }
    free(l.grabs);
    free(l.errors);
    free(l.statuses);
    return st;
}

static pinch_status map_parts(pn_network *net, pinch_error *err)
{
    net->maps = pn_alloc_zero((uint64_t)pn_gguf_n_parts(net->g), sizeof *net->maps);
    if (!net->maps) return pn_fail_memory(err, "the list of mappings", sizeof *net->maps);
    for (int i = 0; i < pn_gguf_n_parts(net->g); i++) {
        const pinch_status st = pn_file_map(pn_gguf_file(net->g, i), &net->maps[i], err);
        if (st) return st;
    }
    return PINCH_OK;
}

pinch_status pn_network_load(pn_network *net, const pn_weights_options *options, pn_pool *pool, pinch_error *err)
{
    pinch_status st = PINCH_OK;
    if (net->mapped_bytes) st = map_parts(net, err);
    if (!st && net->resident_bytes) st = load_resident(net, options, pool, err);
    for (pn_source *s = net->first; s && !st; s = s->next) {
        uint64_t row_bytes = 0;
        pn_row_bytes(s->weight.type, (uint64_t)s->weight.k, &row_bytes);
        s->weight.data = s->mapped ? net->maps[s->tensor->part] + s->tensor->offset + (uint64_t)s->first_row * row_bytes : net->resident + s->offset;
    }
    return st;
}

void pn_network_free(pn_network *net)
{
    for (int i = 0; net->maps && i < pn_gguf_n_parts(net->g); i++)
        if (net->maps[i]) pn_file_unmap(net->maps[i], pn_file_size(pn_gguf_file(net->g, i)));
    free(net->maps);
    pn_pages_free(net->resident, net->resident_bytes);
    pn_plan_free(&net->plan);
    pn_plan_free(&net->draft.plan);
    pn_arena_free(&net->arena);
    *net = (pn_network){0};
}
