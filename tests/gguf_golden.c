/* tests/gguf_golden.c - every golden model opens, its tensors lie in the file, lookups find what is there, and a copy through the writer is byte-identical. */
#include "gguf/gguf.h"
#include "test.h"

#include <dirent.h>
#include <unistd.h>

static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    uint8_t *p = malloc(*n ? *n : 1);
    if (p && fread(p, 1, *n, f) != *n) {
        free(p);
        p = NULL;
    }
    fclose(f);
    return p;
}

static bool same_files(const char *a, const char *b)
{
    size_t n, m;
    uint8_t *p = read_file(a, &n), *q = read_file(b, &m);
    const bool same = p && q && n == m && memcmp(p, q, n) == 0;
    free(p);
    free(q);
    return same;
}

/* Data goes in pieces of a size that divides nothing. */
static pinch_status copy_tensor(const pn_gguf *g, const pn_tensor *t, pn_gguf_writer *w, pinch_error *err)
{
    static uint8_t piece[10007];
    pinch_status status = PINCH_OK;
    for (uint64_t at = 0; at < t->bytes && !status; at += sizeof piece) {
        const uint64_t n = t->bytes - at < sizeof piece ? t->bytes - at : sizeof piece;
        status = pn_gguf_read(g, t, at, piece, n, err);
        if (!status) status = pn_gguf_put_data(w, piece, n, err);
    }
    return status;
}

/* Of a later part of a split model, the file holds three values only; all but the part's number are the first part's. */
static pinch_status put_values(const pn_gguf *g, int part, pn_gguf_writer *w, pinch_error *err)
{
    static const char *const later[] = {"split.no", "split.tensors.count", "split.count"};
    const uint8_t number[2] = {(uint8_t)part, (uint8_t)(part >> 8)};
    pinch_status status = PINCH_OK;
    if (part == 0) {
        for (size_t i = 0; i < pn_gguf_n_values(g) && !status; i++) status = pn_gguf_put(w, pn_gguf_value_at(g, i), err);
        return status;
    }
    for (size_t i = 0; i < PN_COUNT(later) && !status; i++) {
        pn_gguf_value v = *pn_gguf_find(g, later[i]);
        if (i == 0) v.data = number;
        status = pn_gguf_put(w, &v, err);
    }
    return status;
}

/* One file of a model, written anew. */
static pinch_status copy(const pn_gguf *g, int part, const char *path, pinch_error *err)
{
    pn_gguf_writer *w;
    pinch_status status = pn_gguf_writer_open(&w, path, err);
    if (status) return status;
    status = put_values(g, part, w, err);
    for (size_t i = 0; i < pn_gguf_n_tensors(g) && !status; i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
        if (t->part == part) status = pn_gguf_put_tensor(w, name, t->type, t->n_dims, t->ne, err);
    }
    for (size_t i = 0; i < pn_gguf_n_tensors(g) && !status; i++)
        if (pn_gguf_tensor_at(g, i)->part == part) status = copy_tensor(g, pn_gguf_tensor_at(g, i), w, err);
    if (!status) return pn_gguf_writer_finish(w, err);
    pn_gguf_writer_abandon(w);
    return status;
}

static void check_copy(const pn_gguf *g, int part, const char *path, const char *temporary)
{
    pinch_error err = {0};
    CHECK("a golden model is copied", copy(g, part, temporary, &err) == PINCH_OK, "%s: %s", path, err.message);
    CHECK("the copy is byte-identical", same_files(path, temporary), "%s", path);
    remove(temporary);
}

static bool walks(const pn_gguf_value *v)
{
    uint64_t cursor = 0, n = 0;
    pn_str s;
    if (v->item != PN_GGUF_STRING) return true;
    while (pn_gguf_next_string(v, &cursor, &s)) n++;
    return n == v->count && cursor == v->bytes;
}

static void check_lookups(const pn_gguf *g, const char *path)
{
    bool good = true;
    char name[256];
    for (size_t i = 0; i < pn_gguf_n_values(g); i++) {
        const pn_gguf_value *v = pn_gguf_value_at(g, i);
        snprintf(name, sizeof name, "%.*s", (int)v->key.n, v->key.p);
        good = good && pn_gguf_find(g, name) == v && walks(v);
    }
    CHECK("every key is found, every string array walks to its end", good, "%s", path);
    good = true;
    for (size_t i = 0; i < pn_gguf_n_tensors(g); i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        snprintf(name, sizeof name, "%.*s", (int)t->name.n, t->name.p);
        good = good && pn_gguf_tensor(g, name) == t && t->offset + t->bytes <= pn_file_size(pn_gguf_file(g, t->part));
    }
    CHECK("every tensor is found and lies in its file", good, "%s", path);
    CHECK("what is absent is not found", !pn_gguf_find(g, "no.such.key") && !pn_gguf_tensor(g, "") && !pn_gguf_tensor(g, "zzz"), "%s", path);
}

static void check_model(const char *path, const char *temporary)
{
    pn_gguf *g = NULL;
    pinch_error err = {0};
    if (!CHECK("a golden model opens", pn_gguf_open(&g, path, &err) == PINCH_OK, "%s: %s", path, err.message)) return;
    check_lookups(g, path);
    check_copy(g, 0, path, temporary);
    pn_gguf_close(g);
}

/* Each part, opened by name, is the whole; each part is written again byte for byte. */
static void check_split(const char *golden, const char *temporary)
{
    char path[4096];
    for (int i = 1; i <= 3; i++) {
        pn_gguf *g = NULL;
        pinch_error err = {0};
        snprintf(path, sizeof path, "%s/split-lfm2/model-%05d-of-00003.gguf", golden, i);
        if (!CHECK("a split model opens by any part", pn_gguf_open(&g, path, &err) == PINCH_OK, "%s: %s", path, err.message)) continue;
        const pn_tensor *first = pn_gguf_tensor_at(g, 0), *last = pn_gguf_tensor_at(g, pn_gguf_n_tensors(g) - 1);
        CHECK("its parts are all there", pn_gguf_n_parts(g) == 3 && first->part == 0 && last->part == 2, "%d parts", pn_gguf_n_parts(g));
        CHECK("its metadata is the first part's", pn_gguf_find(g, "general.architecture") != NULL, "%s", path);
        uint8_t byte;
        CHECK("the last part's data is read", pn_gguf_read(g, last, last->bytes - 1, &byte, 1, &err) == PINCH_OK, "%s", err.message);
        check_lookups(g, path);
        check_copy(g, i - 1, path, temporary);
        pn_gguf_close(g);
    }
}

static void check_folder(const char *golden, const char *temporary)
{
    DIR *folder = opendir(golden);
    if (!CHECK("the golden folder opens", folder != NULL, "%s", golden)) return;
    int n = 0;
    for (const struct dirent *e; (e = readdir(folder)) != NULL;) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s/model.gguf", golden, e->d_name);
        if (access(path, R_OK) != 0) continue;
        check_model(path, temporary);
        n++;
    }
    closedir(folder);
    CHECK("there are golden models", n > 100, "%d", n);
}

int main(void)
{
    const char *shared = pn_shared();
    char golden[3000], temporary[64];
    if (!shared) {
        pn_skip("golden models", "../shared is missing");
        return pn_done();
    }
    snprintf(golden, sizeof golden, "%s/golden", shared);
    snprintf(temporary, sizeof temporary, "/tmp/pinch-golden-%ld.gguf", (long)getpid());
    check_folder(golden, temporary);
    check_split(golden, temporary);
    return pn_done();
}
