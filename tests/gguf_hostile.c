/* tests/gguf_hostile.c - thousands of broken models: the reader refuses each with a sentence or reads it within its bounds, quickly and in little memory.
 *
 * Seeds are the numbers of mutants. PINCH_LONG=1: 10,000 of them instead of 2,000. */
#include "base/cpu.h"
#include "gguf_mutate.h"

/* Models of several shapes: vocabularies, arrays, experts, many types. */
static const char *const models[] = {"llama-f32", "llama-q4km", "llama-moe", "llama-spm", "gemma3-q8", "qwen2-f32", "phi3-long", "granitemoe-f32", "type-q2_0", "type-iq1_m"};

/* Everything that users of the reader do with it. */
static bool use(const pn_gguf *g, uint64_t file_size)
{
    uint8_t data[64];
    uint64_t sum = 0;
    bool good = true;
    for (size_t i = 0; i < pn_gguf_n_values(g); i++) {
        const pn_gguf_value *v = pn_gguf_value_at(g, i);
        uint64_t cursor = 0;
        int64_t n;
        double d;
        pn_str s;
        while (pn_gguf_next_string(v, &cursor, &s)) sum += s.n ? (uint8_t)s.p[0] + (uint8_t)s.p[s.n - 1] : 0;
        for (uint64_t k = 0; k < v->count && v->item != PN_GGUF_STRING; k++)
            if (pn_gguf_int_at(v, k, &n) || pn_gguf_float_at(v, k, &d)) sum++;
    }
    for (size_t i = 0; i < pn_gguf_n_tensors(g); i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        const uint64_t n = t->bytes < sizeof data ? t->bytes : sizeof data;
        good = good && t->offset <= file_size && t->bytes <= file_size - t->offset;
        good = good && pn_gguf_read(g, t, t->bytes - n, data, n, NULL) == PINCH_OK;
        sum += data[0];
    }
    return good && sum != 1;
}

static void check_mutant(int fd, const bytes *b, const char *model, unsigned long long seed, int *opened)
{
    pn_gguf *g = NULL;
    pinch_error err = {0};
    if (!bytes_write(fd, b)) exit(1);
    const double start = pn_now();
    const pinch_status status = pn_gguf_open_fd(&g, fd, "mutant", &err);
    if (status) {
        CHECK("a refusal says why", strncmp(err.message, "mutant: ", 8) == 0 && strlen(err.message) > 15, "%s %llu: '%s'", model, seed, err.message);
        CHECK("a refusal is for what the file says", status == PINCH_ERR_FORMAT || status == PINCH_ERR_UNSUPPORTED, "%s %llu: %d %s", model, seed, status, err.message);
    } else {
        ++*opened;
        CHECK("what opens stays within the file", use(g, b->n), "%s %llu", model, seed);
        CHECK("memory follows the file's size", pn_gguf_header_bytes(g) <= 16 * (uint64_t)b->n + 4096, "%s %llu: %" PRIu64, model, seed, pn_gguf_header_bytes(g));
        pn_gguf_close(g);
    }
    CHECK("a mutant takes less than a second", pn_now() - start < 1.0, "%s %llu: %.3f s", model, seed, pn_now() - start);
}

int main(void)
{
    const char *shared = pn_shared();
    const unsigned long long count = (getenv("PINCH_LONG") ? 10000 : 2000) / PN_COUNT(models);
    int opened = 0;
    FILE *f = tmpfile();
    if (!shared || !f) {
        pn_skip("mutants of golden models", shared ? "no temporary file" : "../shared is missing");
        return pn_done();
    }
    for (size_t i = 0; i < PN_COUNT(models); i++) {
        char path[4096];
        bytes good, mutant = {0};
        snprintf(path, sizeof path, "%s/golden/%s/model.gguf", shared, models[i]);
        if (!CHECK("a golden model is read", bytes_read(&good, path), "%s", path)) continue;
        layout l = gguf_layout(&good);
        bytes_add(&mutant, good.p, good.n);
        for (unsigned long long n = 0; n < count; n++) {
            gguf_mutate(&mutant, &good, &l, i * 100000 + n);
            check_mutant(fileno(f), &mutant, models[i], i * 100000 + n, &opened);
        }
        layout_free(&l);
        free(mutant.p);
        free(good.p);
    }
    fclose(f);
    CHECK("some mutants open, so that use is tested", opened > 50, "%d", opened);
    return pn_done();
}
