/* tests/gguf_failures.c - allocation n and read or write n fail, for every n, while a model is opened, split or whole, and while one is written: each
 * gives a status and a sentence, nothing is left behind, and without the failure the same work succeeds. Leaks are the address sanitizer's to find.
 *
 * The linker sends the library's calls here (WRAP in the Makefile). */
#include "gguf_bytes.h"

#include <errno.h>
#include <sys/mman.h>

static bool armed;
static int countdown; /* calls until the one that fails; below 0: none does */
static int error = ENOMEM;

static bool fails(void)
{
    if (!armed || countdown-- != 0) return false;
    errno = error;
    return true;
}

void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_malloc(size_t n) { return fails() ? NULL : __real_malloc(n); }
void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size) { return fails() ? NULL : __real_calloc(n, size); }
void *__real_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_realloc(void *p, size_t n) { return fails() ? NULL : __real_realloc(p, n); }
void *__real_mmap64(void *p, size_t n, int protection, int flags, int fd, off_t at);
void *__wrap_mmap64(void *p, size_t n, int protection, int flags, int fd, off_t at);
void *__wrap_mmap64(void *p, size_t n, int protection, int flags, int fd, off_t at) { return fails() ? MAP_FAILED : __real_mmap64(p, n, protection, flags, fd, at); }
ssize_t __real_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at);
ssize_t __wrap_pread64(int fd, void *p, size_t n, off_t at) { return fails() ? -1 : __real_pread64(fd, p, n, at); }

#define PREFIX(tensors, values) "GGUF u32:3 u64:" #tensors " u64:" #values " "
#define PART(no) PREFIX(1, 4) "s:general.architecture u32:8 s:llama s:split.no u32:2 u16:" #no " s:split.count u32:2 u16:2 s:split.tensors.count u32:5 u32:2 "
#define TENSOR(name) "s:" name " u32:1 u64:8 u32:0 u64:0 zero:99"

typedef struct place {
    char folder[64], whole[128], parts[2][128], copy[128];
} place;

static void put_file(const char *path, const char *recipe)
{
    bytes b = bytes_of(recipe);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(b.p, 1, b.n, f) != b.n || fclose(f) != 0) exit(1);
    free(b.p);
}

static void place_make(place *p)
{
    char folder[] = "/tmp/pinch-failures-XXXXXX";
    if (!mkdtemp(folder)) exit(1);
    snprintf(p->folder, sizeof p->folder, "%s", folder);
    snprintf(p->whole, sizeof p->whole, "%s/whole.gguf", folder);
    snprintf(p->copy, sizeof p->copy, "%s/copy.gguf", folder);
    for (int i = 0; i < 2; i++) snprintf(p->parts[i], sizeof p->parts[i], "%s/m-%05d-of-00002.gguf", folder, i + 1);
    put_file(p->whole, PREFIX(1, 2) "s:a.b u32:9 u32:8 u64:2 s:one s:two s:c u32:4 u32:7 " TENSOR("t"));
    put_file(p->parts[0], PART(0) TENSOR("t"));
    put_file(p->parts[1], PART(1) TENSOR("u"));
}

typedef pinch_status (*work)(const place *p, pinch_error *err);

static pinch_status open_path(const char *path, pinch_error *err)
{
    pn_gguf *g;
    uint8_t data[32];
    pinch_status status = pn_gguf_open(&g, path, err);
    if (status) return status;
    status = pn_gguf_read(g, pn_gguf_tensor_at(g, 0), 0, data, sizeof data, err);
    pn_gguf_close(g);
    return status;
}
static pinch_status open_whole(const place *p, pinch_error *err) { return open_path(p->whole, err); }
static pinch_status open_split(const place *p, pinch_error *err) { return open_path(p->parts[1], err); }

static pinch_status write_copy(const place *p, pinch_error *err)
{
    static const uint8_t number[4] = {7}, data[32];
    static const int64_t shape[1] = {8};
    const pn_gguf_value v = {.key = {"c", 1}, .kind = PN_GGUF_U32, .item = PN_GGUF_U32, .count = 1, .data = number, .bytes = 4};
    pn_gguf_writer *w;
    pinch_status status = pn_gguf_writer_open(&w, p->copy, err);
    if (status) return status;
    status = pn_gguf_put(w, &v, err);
    if (!status) status = pn_gguf_put_tensor(w, "t", PN_F32, 1, shape, err);
    if (!status) status = pn_gguf_put_data(w, data, sizeof data, err);
    if (!status) return pn_gguf_writer_finish(w, err);
    pn_gguf_writer_abandon(w);
    return status;
}

static pinch_status mapped(const place *p, pinch_error *err)
{
    pn_file *f;
    const uint8_t *map;
    pinch_status status = pn_file_open(&f, p->whole, err);
    if (status) return status;
    status = pn_file_map(f, &map, err);
    if (!status) pn_file_unmap(map, pn_file_size(f));
    pn_file_close(f);
    return status;
}

/* Fails call 0, 1, 2, ... until the work gets through. A sync of the folder may lack memory without harm: the work then succeeds early. */
static void fail_each(const char *what, work fn, const place *p, int least)
{
    int n = 0, failed = 0;
    for (bool through = false; !through && n < 1000; n++) {
        pinch_error err = {0};
        countdown = n;
        armed = true;
        const pinch_status status = fn(p, &err);
        armed = false;
        through = countdown >= 0;
        failed += status != PINCH_OK;
        CHECK("a failure gives a status and a sentence", status == err.status && (status == PINCH_OK) == !err.message[0], "%s, call %d: %d '%s'", what, n, status, err.message);
        CHECK("it is one of the system", !status || status == PINCH_ERR_MEMORY || status == PINCH_ERR_IO, "%s, call %d: %s", what, n, err.message);
        if (status && fn == write_copy) CHECK("no file comes into being", access(p->copy, F_OK) != 0, "%s, call %d", what, n);
        if (!status) remove(p->copy);
    }
    CHECK("calls were failed", failed >= least && n < 1000, "%s: %d of %d", what, failed, n);
}

int main(void)
{
    static const struct { const char *what; work fn; int least; } works[] = {
        {"open", open_whole, 9}, {"open split", open_split, 15}, {"write", write_copy, 8}, {"map", mapped, 2},
    };
    place p;
    place_make(&p);
    for (int e = 0; e < 2; e++) {
        error = e ? EIO : ENOMEM;
        for (size_t i = 0; i < PN_COUNT(works); i++) fail_each(works[i].what, works[i].fn, &p, works[i].least);
    }
    remove(p.whole);
    remove(p.parts[0]);
    remove(p.parts[1]);
    CHECK("nothing is left behind", rmdir(p.folder) == 0, "%s", p.folder);
    return pn_done();
}
