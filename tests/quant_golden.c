/* Dequantisers against ggml's values, bit for bit: quantised rows and random blocks of all 27 types. */
#include "quant/quant.h"
#include "test.h"

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

int main(void)
{
    const char *shared = pn_shared();
    if (!shared) {
        pn_skip("golden quants", "no ../shared");
        return pn_done();
    }
    for (uint32_t id = PN_F16; id < PN_TYPE_COUNT; id++) {
        const pn_type_info *type = pn_type_get(id);
        if (!type || !type->dequantise) continue;
        check_values(shared, "", type);
        check_values(shared, "rand-", type);
    }
    return pn_done();
}
