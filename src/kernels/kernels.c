/* kernels/kernels.c - the tables that kernels.def describes, and the choice among them.
 *
 * Knows no instruction set and no CPU: callers say which features there are. */
#include "kernels/kernels.h"
#include "kernels/registry.h"

#include <strings.h>

enum {
#define WEIGHT(lower, upper, elements, bytes, act) weight_##lower = PN_##upper,
#define NUMBER(lower, upper, elements, bytes)
#include "quant/types.def"
#undef WEIGHT
#undef NUMBER
};

#define KERNEL(weight, isa, rows, cols, promise, needs)                                                                       \
    {#weight "_" #rows "x" #cols "__" #isa, (pn_type)weight_##weight, #isa, rows, cols, PN_##promise, needs,                  \
     pn_##weight##__##isa##_group_bytes, pn_##weight##__##isa##_pack, pn_##weight##__##isa##_gemv, pn_##weight##__##isa##_gemm, \
     pn_##weight##__##isa##_scratch},
#define KERNEL_PLAIN(weight, isa, rows, cols, promise, needs)                                                \
    {#weight "_" #rows "x" #cols "__" #isa, (pn_type)weight_##weight, #isa, rows, cols, PN_##promise, needs, \
     NULL, NULL, pn_##weight##__##isa##_gemv, pn_##weight##__##isa##_gemm, NULL},
#define OPS(isa, needs)
static const pn_kernel kernels[] = {
#include "kernels/kernels.def"
    {0},
};
#undef KERNEL
#undef KERNEL_PLAIN
#undef OPS

enum { n_kernels = PN_COUNT(kernels) - 1 };

static const struct {
    const pn_ops *ops;
    uint32_t needs;
} ops_tables[] = {
#define KERNEL(weight, isa, rows, cols, promise, needs)
#define KERNEL_PLAIN(weight, isa, rows, cols, promise, needs)
#define OPS(isa, needs) {&pn_ops_##isa, needs},
#include "kernels/kernels.def"
#undef KERNEL
#undef KERNEL_PLAIN
#undef OPS
    {NULL, 0},
};

static bool qualifies(uint32_t needs, uint32_t features) { return (needs & ~features) == 0; }

const pn_kernel *pn_kernel_at(size_t index) { return index < n_kernels ? &kernels[index] : NULL; }

const pn_kernel *pn_kernel_best(pn_type type, uint32_t features)
{
    for (size_t i = n_kernels; i-- > 0;) {
        const pn_kernel *kernel = &kernels[i];
        if (kernel->weight == type && kernel->promise != PN_BOUNDED && qualifies(kernel->needs, features)) return kernel;
    }
    return NULL;
}

/* Names of the kernels of a type that run here, separated by spaces, cut where the text is full. */
static void list_names(char *text, size_t size, pn_type type, uint32_t features)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < n_kernels; i++) {
        if (kernels[i].weight != type || !qualifies(kernels[i].needs, features)) continue;
        const size_t n = strlen(kernels[i].name);
        if (used + n + 2 > size) return;
        if (used) text[used++] = ' ';
        memcpy(text + used, kernels[i].name, n + 1);
        used += n;
    }
}

pinch_status pn_kernel_parse(const char *text, uint32_t features, pn_type *type, const pn_kernel **kernel, pinch_error *err)
{
    const char *equals = strchr(text, '=');
    char type_name[16];
    if (!equals || (size_t)(equals - text) >= sizeof type_name)
        return pn_fail(err, PINCH_ERR_ARGUMENT, "kernel '%.60s' is not TYPE=NAME, such as q4_k=scalar", text);
    memcpy(type_name, text, (size_t)(equals - text));
    type_name[equals - text] = '\0';
    pn_type wanted;
    if (!pn_type_by_name(type_name, &wanted)) return pn_fail(err, PINCH_ERR_ARGUMENT, "kernel '%.60s': '%s' is not a tensor type", text, type_name);
    const pn_kernel *missing = NULL;
    for (size_t i = n_kernels; i-- > 0;) {
        const pn_kernel *k = &kernels[i];
        if (k->weight != wanted || (strcasecmp(k->name, equals + 1) != 0 && strcasecmp(k->isa, equals + 1) != 0)) continue;
        if (!qualifies(k->needs, features)) {
            missing = k;
            continue;
        }
        *type = wanted;
        *kernel = k;
        return PINCH_OK;
    }
    if (missing) return pn_fail(err, PINCH_ERR_UNSUPPORTED, "kernel %s needs CPU features that this machine lacks (%s)", missing->name, missing->isa);
    char names[256];
    list_names(names, sizeof names, wanted, features);
    if (!names[0]) return pn_fail(err, PINCH_ERR_ARGUMENT, "kernel '%.60s': no kernel multiplies %s", text, type_name);
    return pn_fail(err, PINCH_ERR_ARGUMENT, "kernel '%.60s': no such kernel for %s; there is %s", text, type_name, names);
}

bool pn_kernel_matrix_bytes(const pn_kernel *kernel, int64_t rows, int64_t k, uint64_t *bytes)
{
    if (rows < 0 || k < 0) return false;
    if (kernel->group_bytes) {
        const uint64_t step = (uint64_t)kernel->rows;
        return pn_mul(((uint64_t)rows + step - 1) / step, kernel->group_bytes(k), bytes);
    }
    uint64_t row;
    return pn_row_bytes(kernel->weight, (uint64_t)k, &row) && pn_mul((uint64_t)rows, row, bytes);
}

const pn_ops *pn_ops_at(size_t index, uint32_t features)
{
    for (size_t i = 0; ops_tables[i].ops; i++) {
        if (!qualifies(ops_tables[i].needs, features)) continue;
        if (index-- == 0) return ops_tables[i].ops;
    }
    return NULL;
}

const pn_ops *pn_ops_best(uint32_t features)
{
    const pn_ops *best = NULL;
    for (size_t i = 0; ops_tables[i].ops; i++)
        if (qualifies(ops_tables[i].needs, features)) best = ops_tables[i].ops;
    return best;
}
