/* Against ggml: every dequantiser, bit for bit, on quantised rows and random blocks of all 27 types; every quantiser, byte for byte, with and
 * without importance. Broken rows (NaN, infinities) must give bytes and values, not crashes. */
#include "base/math.h"
#include "quant/quant.h"
#include "test.h"

#include <math.h>

typedef struct blob {
    uint8_t *data;
    size_t size;
} blob;

static blob read_blob(const char *shared, const char *prefix, const char *type, const char *suffix)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/golden/quants/%s%s%s", shared, prefix, type, suffix);
    blob b = {NULL, 0};
    FILE *f = fopen(path, "rb");
    if (!f) return b;
    b.data = malloc(1 << 20);
    b.size = fread(b.data, 1, 1 << 20, f);
    fclose(f);
    return b;
}

/* Floats that differ; any NaN equals any NaN. */
static size_t differences(const float *a, const float *b, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && (a[i] == a[i] || b[i] == b[i])) count++;
    return count;
}

static void check_values(const char *shared, const char *prefix, const pn_type_info *type)
{
    blob codes = read_blob(shared, prefix, type->name, ".bin"), values = read_blob(shared, prefix, type->name, ".f32");
    const size_t n = codes.size / type->bytes * type->block;
    if (CHECK("golden files fit the block size", codes.data && n > 0 && values.size == 4 * n, "%s%s: %zu bytes, %zu values", prefix, type->name, codes.size, values.size / 4)) {
        float *ours = malloc(4 * n);
        type->dequantise(ours, codes.data, (int64_t)n);
        const size_t wrong = differences(ours, (const float *)(const void *)values.data, n);
        CHECK("dequantised bits", wrong == 0, "%s%s: %zu of %zu values differ", prefix, type->name, wrong, n);
        free(ours);
    }
    free(codes.data);
    free(values.data);
}

enum { n_rows = 8, row_length = 512 };

static void check_quantiser(const char *shared, const pn_type_info *type, const float *source, const float *importance)
{
    blob golden = read_blob(shared, "", type->name, importance ? ".imat.bin" : ".bin");
    const size_t row = row_length / type->block * type->bytes;
    if (golden.data && CHECK("golden rows fit", golden.size == n_rows * row, "%s: %zu bytes", type->name, golden.size)) {
        uint8_t *ours = malloc(n_rows * row);
        for (size_t r = 0; r < n_rows; r++) type->quantise(ours + r * row, source + r * row_length, row_length, importance);
        size_t wrong = 0;
        for (size_t i = 0; i < golden.size; i += type->bytes) wrong += memcmp(ours + i, golden.data + i, type->bytes) != 0;
        CHECK("quantised bytes", wrong == 0, "%s%s: %zu blocks differ", type->name, importance ? " with importance" : "", wrong);
        free(ours);
    }
    free(golden.data);
}

/* Rows of bits that no model has: whatever comes out, nothing is undefined (UBSan) and reading it back works. */
static void check_broken_rows(const pn_type_info *type)
{
    unsigned long long random = 7;
    float x[row_length], back[row_length];
    uint8_t *blocks = malloc(row_length / type->block * type->bytes);
    for (int round = 0; round < 64; round++) {
        for (int i = 0; i < row_length; i++) {
            const uint32_t bits = (uint32_t)(pn_random(&random) >> 32) | (round % 4 == 0 ? 0x7f800000u : 0);
            x[i] = pn_bits_float(bits);
        }
        type->quantise(blocks, x, row_length, round % 2 ? x : NULL);
        type->dequantise(back, blocks, row_length);
    }
    free(blocks);
}

static void check_half(void)
{
    size_t wrong = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        const float f = pn_f16_to_f32((uint16_t)h);
        const bool nan = (h & 0x7fff) > 0x7c00;
        wrong += nan ? f == f : pn_f32_to_f16(f) != h;
    }
    CHECK("every half survives the way to float and back", wrong == 0, "%zu do not", wrong);
    CHECK("halves round to even", pn_f32_to_f16(1.0f + 0x1p-11f) == 0x3c00 && pn_f32_to_f16(1.0f + 0x1.8p-10f) == 0x3c02, "ties go elsewhere");
    CHECK("65520 becomes infinity", pn_f32_to_f16(65519.0f) == 0x7bff && pn_f32_to_f16(65520.0f) == 0x7c00, "it does not");
    CHECK("subnormal halves round to even", pn_f32_to_f16(0x1.8p-24f) == 2 && pn_f32_to_f16(0x1p-25f) == 0 && pn_f32_to_f16(-0x1.4p-24f) == 0x8001, "they do not");
}

/* Scales that golden blocks do not hold: the NaN of the 8-bit float, with and without the sign bit that is ignored; the ends of the exponent. */
static void check_small_scales(void)
{
    uint8_t nvfp4[36] = {0x7f, 0xff, 0x81, 0x38}, mxfp4[17] = {0};
    float x[64];
    memset(nvfp4 + 4, 0x22, 32); /* code 2: 1 */
    memset(mxfp4 + 1, 0x22, 16);
    pn_type_get(PN_NVFP4)->dequantise(x, nvfp4, 64);
    CHECK("nvfp4 scales", x[0] == 0 && x[16] == 480 && x[32] == 0x1p-9f && x[48] == 1, "%g %g %g %g", (double)x[0], (double)x[16], (double)x[32], (double)x[48]);
    pn_type_get(PN_MXFP4)->dequantise(x, mxfp4, 32);
    CHECK("mxfp4 scale 2^-128", x[0] == 0x1p-127f, "%g", (double)x[0]);
    mxfp4[0] = 255;
    pn_type_get(PN_MXFP4)->dequantise(x, mxfp4, 32);
    CHECK("mxfp4 scale 2^127", x[0] == INFINITY, "%g", (double)x[0]);
}

static void check_table(void)
{
    pn_type type;
    uint64_t bytes;
    CHECK("types are found by name in any case", pn_type_by_name("Q4_k", &type) && type == PN_Q4_K && !pn_type_by_name("q4", &type), "they are not");
    CHECK("removed and unknown ids are no types", !pn_type_get(4) && !pn_type_get(31) && !pn_type_get(43) && !pn_type_get(UINT32_MAX), "they are");
    CHECK("row sizes are checked", pn_row_bytes(PN_Q6_K, 512, &bytes) && bytes == 420 && !pn_row_bytes(PN_Q6_K, 511, &bytes) &&
          !pn_row_bytes(PN_F64, UINT64_MAX / 4, &bytes), "they are not");
}

int main(void)
{
    check_half();
    check_small_scales();
    check_table();
    for (uint32_t id = 0; id < PN_TYPE_COUNT; id++)
        if (pn_type_get(id) && pn_type_get(id)->quantise) check_broken_rows(pn_type_get(id));
    const char *shared = pn_shared();
    if (!shared) {
        pn_skip("golden quants", "no ../shared");
        return pn_done();
    }
    blob source = read_blob(shared, "", "source", ".f32"), importance = read_blob(shared, "", "imatrix", ".f32");
    for (uint32_t id = PN_F16; id < PN_TYPE_COUNT; id++) {
        const pn_type_info *type = pn_type_get(id);
        if (!type || !type->dequantise) continue;
        check_values(shared, "", type);
        check_values(shared, "rand-", type);
        if (!type->quantise) continue;
        check_quantiser(shared, type, (const float *)(const void *)source.data, NULL);
        check_quantiser(shared, type, (const float *)(const void *)source.data, (const float *)(const void *)importance.data);
    }
    free(source.data);
    free(importance.data);
    return pn_done();
}
