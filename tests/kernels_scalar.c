/* The definitions themselves: scalar kernels against products of dequantised numbers and against ggml's, scalar operations against known
 * answers, the table of kernels against its own rules, and the proof engine against kernels that are wrong on purpose. */
#include "kernels/prove.h"
#include "test.h"

#include <math.h>

enum { k_max = 512 };

/* ---- kernels ---- */

static float unit(unsigned long long *random) { return (float)(int32_t)(pn_random(random) >> 32) * 0x1p-31f; }

/* Rounded activations as numbers. */
static void dequantise_activations(double *x, pn_act act, const void *row, int k)
{
    for (int i = 0; i < k; i++) {
        const pn_act32 *small = row;
        const pn_act256 *large = row;
        x[i] = act == PN_ACT_F32  ? (double)((const float *)row)[i]
               : act == PN_ACT_32 ? (double)small[i / 32].q[i % 32] * (double)small[i / 32].d
                                  : (double)large[i / 256].q[i % 256] * (double)large[i / 256].d;
    }
}

/* Against double arithmetic, for types that have a quantiser; the others are compared with ggml's products. */
static void check_product(const pn_kernel *kernel)
{
    const pn_type_info *type = pn_type_get((uint32_t)kernel->weight);
    const pn_ops *ops = pn_ops_best(0);
    unsigned long long random = 11;
    uint8_t row[k_max * 4];
    float x[k_max], w[k_max], y = 0, *ys[1] = {&y};
    double a[k_max], sum = 0, size = 0;
    _Alignas(16) uint8_t act[k_max * 4];
    if (!type->quantise) return;
    for (int i = 0; i < k_max; i++) x[i] = unit(&random) + 0.2f;
    type->quantise(row, x, k_max, NULL);
    for (int i = 0; i < k_max; i++) x[i] = unit(&random);
    if (type->act == PN_ACT_F32) memcpy(act, x, sizeof x);
    else if (type->act == PN_ACT_32) ops->quantise_32((pn_act32 *)(void *)act, x, k_max);
    else ops->quantise_256((pn_act256 *)(void *)act, x, k_max);
    type->dequantise(w, row, k_max);
    dequantise_activations(a, type->act, act, k_max);
    for (int i = 0; i < k_max; i++) {
        sum += (double)w[i] * a[i];
        size += fabs((double)w[i] * a[i]);
    }
    const void *xs[1] = {act};
    const pn_mm mm = {row, 1, k_max, xs, ys, 1};
    kernel->gemv(&mm, 0, 1, NULL);
    CHECK("product equals that of the dequantised numbers", fabs((double)y - sum) <= 1e-5 * size, "%s: %.9g, not %.9g (size %g)", kernel->name, (double)y, sum, size);
}

static size_t read_file(const char *shared, const char *name, const char *suffix, void *data, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/golden/quants/%s%s", shared, name, suffix);
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    const size_t n = fread(data, 1, size, f);
    fclose(f);
    return n;
}

/* ggml rounds activations with a half-precision scale, so only closeness can be asked: 0.1 % of the norms. One check for all rows. */
static void check_golden_product(const pn_kernel *kernel, const char *shared)
{
    enum { rows = 8 };
    const pn_type_info *type = pn_type_get((uint32_t)kernel->weight);
    const pn_ops *ops = pn_ops_best(0);
    static uint8_t codes[rows * k_max * 4];
    static float w[rows * k_max];
    float x[k_max], dots[rows], y[rows], *ys[1] = {y};
    _Alignas(16) uint8_t act[k_max * 4];
    if (!read_file(shared, type->name, ".bin", codes, sizeof codes)) return;
    read_file(shared, type->name, ".dot.f32", dots, sizeof dots);
    read_file(shared, "activation", ".f32", x, sizeof x);
    if (type->act == PN_ACT_F32) memcpy(act, x, sizeof x);
    else if (type->act == PN_ACT_32) ops->quantise_32((pn_act32 *)(void *)act, x, k_max);
    else ops->quantise_256((pn_act256 *)(void *)act, x, k_max);
    const void *xs[1] = {act};
    const pn_mm mm = {codes, rows, k_max, xs, ys, 1};
    kernel->gemv(&mm, 0, rows, NULL);
    type->dequantise(w, codes, rows * k_max);
    double worst = 0;
    for (int r = 0; r < rows; r++) {
        double ww = 0, xx = 0;
        for (int i = 0; i < k_max; i++) {
            ww += (double)w[r * k_max + i] * (double)w[r * k_max + i];
            xx += (double)x[i] * (double)x[i];
        }
        const double off = fabs((double)y[r] - (double)dots[r]), norms = sqrt(ww * xx);
        if (off > worst * norms) worst = norms > 0 ? off / norms : INFINITY;
    }
    CHECK("products are near ggml's", worst <= 1e-3, "%s: off by %g of the norms", kernel->name, worst);
}

static void check_kernels(void)
{
    const char *shared = pn_shared();
    if (!shared) pn_skip("golden products", "no ../shared");
    const pn_kernel *kernel;
    for (size_t i = 0; (kernel = pn_kernel_at(i)) != NULL; i++) {
        if (kernel->promise != PN_MEANING) continue;
        check_product(kernel);
        if (shared) check_golden_product(kernel, shared);
    }
}

/* ---- the table ---- */

static void check_table(void)
{
    const pn_kernel *a, *twice = NULL;
    for (size_t i = 0; (a = pn_kernel_at(i)) != NULL; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(a->name, pn_kernel_at(j)->name) == 0) twice = a;
    CHECK("names are unique", !twice, "%s twice", twice ? twice->name : "");
    for (uint32_t id = 0; id < PN_TYPE_COUNT; id++) {
        const pn_type_info *type = pn_type_get(id);
        if (!type || !type->dequantise) continue;
        a = pn_kernel_best((pn_type)id, 0);
        CHECK("every weight type has its definition", a && a->promise == PN_MEANING && strcmp(a->isa, "scalar") == 0, "%s has none", type->name);
    }
    CHECK("integer types have no kernel", !pn_kernel_best(PN_I32, UINT32_MAX), "i32 has one");
}

static void check_parse(void)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"q4_k", "is not TYPE=NAME"},
        {"q4_x=scalar", "'q4_x' is not a tensor type"},
        {"q4_k=fast", "there is q4_k_1x1__scalar"},
        {"i32=scalar", "no kernel multiplies i32"},
        {"averyveryverylongname=scalar", "is not TYPE=NAME"},
    };
    pn_type type;
    const pn_kernel *kernel;
    pinch_error err;
    CHECK("a kernel is found by isa", pn_kernel_parse("Q4_K=scalar", 0, &type, &kernel, &err) == PINCH_OK && type == PN_Q4_K && kernel->weight == PN_Q4_K, "not found");
    CHECK("a kernel is found by name", pn_kernel_parse("q6_k=q6_k_1x1__scalar", 0, &type, &kernel, &err) == PINCH_OK && type == PN_Q6_K, "not found");
    for (size_t i = 0; i < PN_COUNT(wrong); i++) {
        const pinch_status status = pn_kernel_parse(wrong[i].text, 0, &type, &kernel, &err);
        CHECK("a wrong choice is explained", status && strstr(err.message, wrong[i].says), "'%s': %s", wrong[i].text, status ? err.message : "accepted");
    }
}

/* ---- operations ---- */

static void check_activation_formats(void)
{
    const pn_ops *ops = pn_ops_best(0);
    float x[256];
    pn_act32 small;
    pn_act256 large;
    for (int i = 0; i < 256; i++) x[i] = i % 2 ? 127.0f : -2.5f;
    ops->quantise_32(&small, x, 32);
    CHECK("largest magnitude becomes 127, ties go to even", small.q[1] == 127 && small.q[0] == -2 && small.d == 1.0f, "%d %d %g", small.q[1], small.q[0], (double)small.d);
    CHECK("sums belong to the codes", small.sum == 16 * 125 && small.s == 2000.0f, "%d %g", small.sum, (double)small.s);
    for (int i = 0; i < 256; i++) x[i] = -1;
    ops->quantise_256(&large, x, 256);
    CHECK("group sums, and their high and low parts", large.bsum16[15] == -2032 && large.bsum32[7] == -4064 && 128 * large.hi[0] + large.lo[0] == -4064 && large.lo[0] >= -64 && large.lo[0] < 64,
          "%d %d %d %d", large.bsum16[15], large.bsum32[7], large.hi[0], large.lo[0]);
    for (int i = 0; i < 32; i++) x[i] = 9e-31f;
    ops->quantise_32(&small, x, 32);
    CHECK("rows below 1e-30 are zeros", small.d == 0 && small.q[0] == 0 && small.s == 0, "%g %d", (double)small.d, small.q[0]);
    x[0] = NAN;
    x[1] = 2;
    ops->quantise_32(&small, x, 32);
    CHECK("a NaN does not enter the maximum and becomes -127", small.q[0] == -127 && small.q[1] == 127, "%d %d", small.q[0], small.q[1]);
}

/* The order of sums that every table must keep, written out without loops over lanes. */
static void check_lane_order(void)
{
    const pn_ops *ops = pn_ops_best(0);
    float x[19], lane[16] = {0};
    for (int i = 0; i < 19; i++) x[i] = ldexpf(1.0f + (float)i * 0x1p-12f, i % 7 * 3);
    for (int i = 0; i < 19; i++) lane[i % 16] = fmaf(x[i], x[i], lane[i % 16]);
#define EIGHT(l) (lane[l] + lane[(l) + 8])
#define FOUR(l) (EIGHT(l) + EIGHT((l) + 4))
#define TWO(l) (FOUR(l) + FOUR((l) + 2))
    const float wanted = TWO(0) + TWO(1), got = ops->sum_squares(x, 19);
    CHECK("16 lanes meet as stated", got == wanted, "%.9g, not %.9g", (double)got, (double)wanted);
    CHECK("no elements: sum 0, maximum -inf", ops->sum_squares(x, 0) == 0 && ops->max(x, 0) == -INFINITY, "otherwise");
}

static void check_attention(void)
{
    enum { d = 32, tiles = 2, positions = 32 };
    const pn_ops *ops = pn_ops_best(0);
    unsigned long long random = 3;
    float q[d], scores[positions], o[d] = {0}, p[positions];
    double off = 0;
    static float k32[tiles * 16 * d], v32[positions * d];
    for (int i = 0; i < d; i++) q[i] = unit(&random);
    for (int i = 0; i < tiles * 16 * d; i++) k32[i] = v32[i] = unit(&random);
    for (int i = 0; i < positions; i++) p[i] = unit(&random);
    const float *qs[1] = {q};
    float *os[1] = {o};
    ops->qk[0](scores, positions, k32, 16 * d * sizeof(float), tiles, qs, 1, d);
    ops->pv[0](os, p, positions, v32, d * sizeof(float), positions, 1, d);
    for (int j = 0; j < positions; j++) {
        double wanted = 0;
        for (int c = 0; c < d; c++) wanted += (double)q[c] * (double)k32[j / 16 * 16 * d + c * 16 + j % 16];
        if (fabs(wanted - (double)scores[j]) > off) off = fabs(wanted - (double)scores[j]);
    }
    for (int c = 0; c < d; c++) {
        double wanted = 0;
        for (int j = 0; j < positions; j++) wanted += (double)p[j] * (double)v32[j * d + c];
        if (fabs(wanted - (double)o[c]) > off) off = fabs(wanted - (double)o[c]);
    }
    CHECK("scores and sums of values", off < 1e-5, "off by %g", off);
}

/* ---- the proof engine ---- */

static void wrong_bits(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    pn_kernel_best(PN_Q8_0, 0)->gemm(mm, row0, row1, scratch);
    if (mm->rows > 1) mm->y[mm->n_cols - 1][row1 - 1] = nextafterf(mm->y[mm->n_cols - 1][row1 - 1], 1e30f);
}

static void wrong_place(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    pn_kernel_best(PN_Q8_0, 0)->gemm(mm, row0, row1, scratch);
    if (row0 == 0) mm->y[0][-1] = 0;
}

static void check_engine(void)
{
    const pn_prove_options options = {.seed = 5};
    pn_kernel kernel = *pn_kernel_best(PN_Q8_0, 0);
    pn_proof proof;
    pinch_error err;
    kernel.promise = PN_EXACT;
    CHECK("a right kernel is proved", pn_prove_kernel(&proof, &options, &kernel, &err) == PINCH_OK && proof.held && proof.differing == 0, "%s", proof.failure);
    kernel.gemv = kernel.gemm = wrong_bits;
    pn_prove_kernel(&proof, &options, &kernel, &err);
    CHECK("one wrong last bit is found", !proof.held && proof.differing > 0 && strstr(proof.failure, "differ"), "%s", proof.failure);
    kernel.gemv = kernel.gemm = wrong_place;
    pn_prove_kernel(&proof, &options, &kernel, &err);
    CHECK("writing before the result is found", !proof.held && strstr(proof.failure, "beside"), "%s", proof.failure);
}

int main(void)
{
    check_table();
    check_parse();
    check_kernels();
    check_activation_formats();
    check_lane_order();
    check_attention();
    check_engine();
    return pn_done();
}
