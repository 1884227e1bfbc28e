/* tests/gguf_vocabulary.c - a file of 262,144 tokens and no tensors opens in milliseconds, and its strings are not copied, and can be dropped; the writer's own refusals. */
#include "base/cpu.h"
#include "gguf_bytes.h"

#include <sys/stat.h>

enum { N = 262144 };

static pinch_status put(pn_gguf_writer *w, const char *key, pn_gguf_kind kind, pn_gguf_kind item, uint64_t count, const void *data, uint64_t n, pinch_error *err)
{
    const pn_gguf_value v = {.key = {key, strlen(key)}, .kind = kind, .item = item, .count = count, .data = data, .bytes = n};
    return pn_gguf_put(w, &v, err);
}

/* N strings of 1 to 16 bytes */
static bytes token_strings(void)
{
    bytes b = {0};
    unsigned long long seed = 1;
    b.p = malloc(N * 24 + 1);
    if (!b.p) exit(1);
    for (int i = 0; i < N; i++) {
        const size_t n = 1 + pn_random(&seed) % 16;
        memset(b.p + b.n, 0, 8);
        b.p[b.n] = (uint8_t)n;
        memset(b.p + b.n + 8, 'a' + i % 26, n);
        b.n += 8 + n;
    }
    return b;
}

static bool write_vocabulary(const char *path, const bytes *tokens, pinch_error *err)
{
    static const uint8_t four[N * 4];
    pn_gguf_writer *w;
    pinch_status status = pn_gguf_writer_open(&w, path, err);
    if (status) return false;
    status = put(w, "tokenizer.ggml.tokens", PN_GGUF_ARRAY, PN_GGUF_STRING, N, tokens->p, tokens->n, err);
    if (!status) status = put(w, "tokenizer.ggml.scores", PN_GGUF_ARRAY, PN_GGUF_F32, N, four, sizeof four, err);
    if (!status) status = put(w, "tokenizer.ggml.token_type", PN_GGUF_ARRAY, PN_GGUF_I32, N, four, sizeof four, err);
    return pn_gguf_writer_finish(w, err) == PINCH_OK && !status;
}

static void check_drop(pn_gguf *g, uint64_t array)
{
    uint64_t cursor = 0;
    pn_str s;
    const uint64_t before = pn_gguf_header_bytes(g);
    pn_gguf_drop(g, "tokenizer.ggml.tokens");
    pn_gguf_drop(g, "tokenizer.ggml.tokens");
    pn_gguf_drop(g, "no such key");
    const uint64_t after = pn_gguf_header_bytes(g);
    const pn_gguf_value *v = pn_gguf_find(g, "tokenizer.ggml.tokens"), *next = pn_gguf_find(g, "tokenizer.ggml.scores");
    CHECK("an array that is dropped takes no memory", before - after > array - (128 << 10) && before - after <= array, "%" PRIu64 " of %" PRIu64, before - after, array);
    CHECK("and is empty", v && v->count == 0 && !pn_gguf_next_string(v, &cursor, &s), "%d", 0);
    double x = 1;
    CHECK("its neighbour is not", next && next->count == N && pn_gguf_float_at(next, 0, &x) && x == 0, "%g", x);
}

static void check_open(const char *path, const bytes *tokens)
{
    double best = 1e9;
    pn_gguf *g = NULL;
    pinch_error err = {0};
    for (int i = 0; i < 5; i++) {
        pn_gguf_close(g);
        g = NULL;
        const double start = pn_now();
        if (!CHECK("a vocabulary without tensors opens", pn_gguf_open(&g, path, &err) == PINCH_OK, "%s", err.message)) return;
        const double t = pn_now() - start;
        if (t < best) best = t;
    }
    printf("%d tokens open in %.2f ms\n", N, best * 1e3);
    /* the bar is for emulators and sanitizers too; a plain build needs a fiftieth */
    CHECK("it opens in milliseconds", best < 0.25, "%.1f ms", best * 1e3);
    const pn_gguf_value *v = pn_gguf_find(g, "tokenizer.ggml.tokens");
    pn_str s = {0};
    uint64_t cursor = 0, n = 0;
    bool inside = true;
    while (pn_gguf_next_string(v, &cursor, &s)) {
        inside = inside && (const uint8_t *)s.p >= v->data && (const uint8_t *)s.p + s.n <= v->data + v->bytes;
        n++;
    }
    CHECK("all tokens are there, in place", n == N && inside && v->bytes == tokens->n && memcmp(v->data, tokens->p, tokens->n) == 0, "%" PRIu64, n);
    CHECK("memory is the header and little more", pn_gguf_header_bytes(g) < pn_file_size(pn_gguf_file(g, 0)) + 4096, "%" PRIu64, pn_gguf_header_bytes(g));
    check_drop(g, tokens->n);
    pn_gguf_close(g);
}

/* ---- what the writer refuses ------------------------------------------------------------------ */

typedef pinch_status (*writing)(pn_gguf_writer *w, pinch_error *err);
static const int64_t shape[5] = {32, 2, 1, 1, 1};

static pinch_status missing_data(pn_gguf_writer *w, pinch_error *err) { return pn_gguf_put_tensor(w, "t", PN_F32, 1, shape, err); }
static pinch_status too_much_data(pn_gguf_writer *w, pinch_error *err)
{
    static const uint8_t data[200];
    pinch_status status = pn_gguf_put_tensor(w, "t", PN_F32, 1, shape, err);
    return status ? status : pn_gguf_put_data(w, data, 129, err);
}
static pinch_status late_value(pn_gguf_writer *w, pinch_error *err)
{
    pinch_status status = pn_gguf_put_tensor(w, "t", PN_F32, 1, shape, err);
    return status ? status : put(w, "k", PN_GGUF_U8, PN_GGUF_U8, 1, "x", 1, err);
}
static pinch_status bad_shape(pn_gguf_writer *w, pinch_error *err)
{
    static const int64_t odd[1] = {33};
    return pn_gguf_put_tensor(w, "t", PN_Q8_0, 1, odd, err);
}
static pinch_status twice(pn_gguf_writer *w, pinch_error *err)
{
    static const uint8_t data[256];
    pinch_status status = pn_gguf_put_tensor(w, "t", PN_F32, 1, shape, err);
    if (!status) status = pn_gguf_put_tensor(w, "t", PN_F32, 1, shape, err);
    return status ? status : pn_gguf_put_data(w, data, 256, err);
}
static pinch_status lying_value(pn_gguf_writer *w, pinch_error *err) { return put(w, "k", PN_GGUF_U32, PN_GGUF_U32, 1, "xy", 2, err); }

static void check_refusals(const char *folder)
{
    static const struct { const char *what; writing fn; const char *sentence; } cases[] = {
        {"data is missing", missing_data, "data of 1 tensors is missing"},
        {"too much data", too_much_data, "1 bytes more than its tensors hold"},
        {"a value after tensors", late_value, "metadata comes before tensors"},
        {"a shape that the type cannot have", bad_shape, "tensor 't' has a shape that its type 8 cannot have"},
        {"a name twice", twice, "tensor 't' stands there twice"},
        {"a value of the wrong size", lying_value, "metadata value 0 'k': the value needs 4 bytes, but only 2 are left in the file"},
    };
    char path[300], other[400];
    snprintf(path, sizeof path, "%s/refused.gguf", folder);
    for (size_t i = 0; i < PN_COUNT(cases); i++) {
        pn_gguf_writer *w;
        pinch_error err = {0};
        FILE *f = fopen(path, "wb"); /* what is there stays there */
        if (!f || fputs("before", f) < 0 || fclose(f) != 0) exit(1);
        if (!CHECK("a writer opens", pn_gguf_writer_open(&w, path, &err) == PINCH_OK, "%s", err.message)) continue;
        cases[i].fn(w, &err);
        const pinch_status status = pn_gguf_writer_finish(w, &err);
        struct stat st = {0};
        CHECK("the writer refuses", status != PINCH_OK && strstr(err.message, cases[i].sentence) != NULL, "%s: %s", cases[i].what, err.message);
        CHECK("the file is as it was", stat(path, &st) == 0 && st.st_size == 6, "%s: %ld bytes", cases[i].what, (long)st.st_size);
    }
    remove(path);
    pn_gguf_writer *w = NULL;
    pinch_error err = {0};
    snprintf(other, sizeof other, "%s/none/x.gguf", folder);
    CHECK("a folder that is not there", pn_gguf_writer_open(&w, other, &err) == PINCH_ERR_IO && strstr(err.message, "x.gguf: cannot be created: there is no such file"), "%s", err.message);
}

int main(void)
{
    char folder[] = "/tmp/pinch-vocabulary-XXXXXX", path[300];
    pinch_error err = {0};
    if (!CHECK("a folder for files", mkdtemp(folder) != NULL, "%s", folder)) return pn_done();
    snprintf(path, sizeof path, "%s/vocabulary.gguf", folder);
    bytes tokens = token_strings();
    if (CHECK("a vocabulary is written", write_vocabulary(path, &tokens, &err), "%s", err.message)) check_open(path, &tokens);
    free(tokens.p);
    remove(path);
    check_refusals(folder);
    CHECK("nothing is left beside the files", rmdir(folder) == 0, "%s", folder);
    return pn_done();
}
