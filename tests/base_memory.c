/* tests/base_memory.c - error sentences, checked sizes, arenas, pages and files. */
#include "base/arena.h"
#include "base/cpu.h"
#include "base/pages.h"
#include "test.h"

#include <errno.h>
#include <unistd.h>

static void want(const char *what, const pinch_error *err, const char *sentence)
{
    CHECK(what, strcmp(err->message, sentence) == 0, "got '%s', want '%s'", err->message, sentence);
}

static void sentences(void)
{
    pinch_error err = {0};
    CHECK("a failure returns its status, without an error too", pn_fail(NULL, PINCH_ERR_IO, "x") == PINCH_ERR_IO, "%d", 0);
    CHECK("the status stands in the error", pn_fail(&err, PINCH_ERR_FORMAT, "%s: %d", "f", 5) == PINCH_ERR_FORMAT && err.status == PINCH_ERR_FORMAT, "%d", err.status);
    want("a sentence", &err, "f: 5");
    pn_fail(&err, PINCH_ERR_IO, "%s", "a\nb\x7f" "c\xff\xc3(\xc2\x85 \xed\xa0\x80 \xc3\xa9 \xf0\x9f\x98\x80");
    want("what is no text becomes question marks", &err, "a?b?c?" "?(?" "? ?" "?" "? \xc3\xa9 \xf0\x9f\x98\x80");
    char longer[600];
    for (size_t i = 0; i < sizeof longer; i += 2) memcpy(longer + i, "\xc3\xa9", 2);
    longer[sizeof longer - 1] = 0;
    pn_fail(&err, PINCH_ERR_IO, "%s", longer);
    CHECK("a long sentence ends with a whole character", strlen(err.message) == 510 && memcmp(err.message + 508, "\xc3\xa9", 2) == 0, "%zu", strlen(err.message));
    CHECK("memory", pn_fail_memory(&err, "a thing", 77) == PINCH_ERR_MEMORY, "%d", err.status);
    want("memory's sentence", &err, "out of memory: a thing needs 77 bytes");
    CHECK("the system's errors", pn_fail_system(&err, "f", "cannot be read", EIO) == PINCH_ERR_IO, "%d", err.status);
    want("the system's errors in our words", &err, "f: cannot be read: the device reports an error");
    pn_fail_system(&err, "f", "cannot be read", 9999);
    want("an unknown one by number", &err, "f: cannot be read: system error 9999");
    CHECK("no memory is a status of its own", pn_fail_system(&err, "f", "cannot be mapped", ENOMEM) == PINCH_ERR_MEMORY, "%d", err.status);
}

static void sizes(void)
{
    uint64_t v;
    CHECK("products that do not fit", !pn_mul(UINT64_C(1) << 32, UINT64_C(1) << 32, &v) && pn_mul(UINT64_C(1) << 32, 3, &v) && v == UINT64_C(3) << 32, "%d", 0);
    CHECK("sums that do not fit", !pn_add(UINT64_MAX, 1, &v) && pn_add(UINT64_MAX, 0, &v) && v == UINT64_MAX, "%d", 0);
    CHECK("rounding up", pn_round_up(0, 32) == 0 && pn_round_up(1, 32) == 32 && pn_round_up(32, 32) == 32, "%d", 0);
    CHECK("sizes beyond memory give NULL", !pn_alloc(UINT64_MAX, 2) && !pn_alloc(1, UINT64_MAX) && !pn_alloc_zero(UINT64_C(1) << 62, 4), "%d", 0);
    void *p = pn_alloc(0, 8);
    uint8_t *q = pn_alloc_zero(3, 5);
    CHECK("nothing is something", p != NULL, "%d", 0);
    CHECK("zeroed", q && q[0] == 0 && q[14] == 0, "%d", 0);
    free(p);
    free(q);
}

static void arenas(void)
{
    pn_arena a;
    pn_arena_init(&a, 100000);
    CHECK("nothing is allocated before the first use", a.head == NULL, "%d", 0);
    bool aligned = true;
    for (int i = 0; i < 100; i++) {
        uint8_t *p = pn_arena_get(&a, (uint64_t)i, 7);
        aligned = aligned && p && (uintptr_t)p % 16 == 0;
        if (p) memset(p, i, (size_t)i * 7);
    }
    CHECK("every piece is there and aligned", aligned, "%d", 0);
    CHECK("one piece larger than a block", pn_arena_get(&a, 1, 50000) != NULL, "%" PRIu64, a.used);
    CHECK("the limit holds", pn_arena_get(&a, 1, 50000) == NULL, "%" PRIu64, a.used);
    CHECK("so do sizes that overflow", !pn_arena_get(&a, UINT64_MAX, 2) && !pn_arena_get(&a, 1, UINT64_MAX) && !pn_arena_copy(&a, "x", UINT64_MAX), "%d", 0);
    const char *s = pn_arena_copy(&a, "a\0b", 3), *empty = pn_arena_copy(&a, NULL, 0);
    CHECK("copies end with a zero", s && memcmp(s, "a\0b", 4) == 0 && empty && !*empty, "%d", 0);
    pn_arena_free(&a);
    CHECK("a freed arena serves again", pn_arena_get(&a, 1, 1) != NULL, "%d", 0);
    pn_arena_free(&a);
    pn_arena_init(&a, 0);
    CHECK("a limit of 0 gives nothing", !pn_arena_get(&a, 1, 1), "%d", 0);
    pn_arena_free(&a);
}

static void pages(void)
{
    static const uint64_t bytes[] = {0, 1, 4096, 100001, UINT64_C(32) << 20};
    for (size_t i = 0; i < PN_COUNT(bytes); i++) {
        uint8_t *p = pn_pages_alloc(bytes[i]);
        const bool zero = p && p[0] == 0 && p[bytes[i] ? bytes[i] - 1 : 0] == 0;
        CHECK("pages are zero and aligned", zero && (uintptr_t)p % 64 == 0, "%" PRIu64, bytes[i]);
        pn_pages_free(p, bytes[i]);
    }
    CHECK("more than there is gives NULL", !pn_pages_alloc(UINT64_MAX) && !pn_pages_alloc(UINT64_C(1) << 62), "%d", 0);
    pn_pages_free(NULL, 5);
}

/* A cache for a long context must cost what a short text touches, whatever the system thinks of huge pages. */
static void untouched_pages(void)
{
    const uint64_t bytes = UINT64_C(256) << 20, step = UINT64_C(4) << 20, before = pn_memory_resident();
    uint8_t *p = pn_pages_alloc(bytes);
    if (!p || !before) return;
    for (uint64_t i = 0; i < bytes; i += step) *(volatile uint8_t *)(p + i) = 1;
    const uint64_t grown = pn_memory_resident() - before;
    CHECK("only pages that are touched are resident", grown < UINT64_C(16) << 20, "64 bytes touched, %" PRIu64 " resident", grown);
    pn_pages_free(p, bytes);
}

static void dropped_pages(void)
{
    enum { PAGES = 64, AT = 100 };
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes = PAGES * page;
    uint8_t *p = pn_pages_alloc(bytes);
    if (!CHECK("pages", p != NULL, "%d", 0)) return;
    memset(p, 7, (size_t)bytes);
    const uint64_t before = pn_memory_resident(), dropped = pn_pages_drop(p + AT, bytes - 2 * AT), after = pn_memory_resident();
    CHECK("whole pages are given back", dropped == bytes - 2 * page && (before == 0 || after + dropped <= before + 4 * page), "%" PRIu64 " dropped, %" PRIu64 " resident before, %" PRIu64 " after",
          dropped, before, after);
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < bytes; i++) wrong += p[i] != (i < page || i >= bytes - page ? 7 : 0);
    CHECK("they read as zeros, and their neighbours as before", wrong == 0, "%" PRIu64 " bytes differ", wrong);
    p[2 * page] = 9;
    CHECK("they can be written again", p[2 * page] == 9, "%d", p[2 * page]);
    CHECK("what holds no whole page stays", pn_pages_drop(p, page - 1) == 0 && pn_pages_drop(p + 1, page) == 0 && p[1] == 7, "%d", p[1]);
    pn_pages_free(p, bytes);
}

static void opened_file(const pn_file *f, int fd)
{
    pinch_error err = {0};
    uint8_t data[16];
    const uint8_t *map = NULL;
    CHECK("the size", pn_file_size(f) == 10, "%" PRIu64, pn_file_size(f));
    CHECK("a piece is read", pn_file_read(f, data, 4, 3, &err) == PINCH_OK && memcmp(data, "3456", 4) == 0, "%s", err.message);
    CHECK("the end is read, and nothing beyond it", pn_file_read(f, data, 0, 10, &err) == PINCH_OK && pn_file_read(f, data, 1, 10, &err) == PINCH_ERR_IO, "%s", err.message);
    want("the sentence", &err, "name: 1 bytes wanted at 10, but the file has 10");
    CHECK("offsets near 2^64", pn_file_read(f, data, 2, UINT64_MAX, &err) == PINCH_ERR_IO, "%s", err.message);
    CHECK("a mapping shows the file", pn_file_map(f, &map, &err) == PINCH_OK && memcmp(map, "0123456789", 10) == 0, "%s", err.message);
    pn_file_unmap(map, 10);
    pn_file_forget(f, 0, 10);
    if (ftruncate(fd, 5) != 0) exit(1);
    CHECK("a file that shrank", pn_file_read(f, data, 10, 0, &err) == PINCH_ERR_IO, "%s", err.message);
    want("its sentence", &err, "name: ends at byte 5, it had 10 when it was opened");
}

static void files(void)
{
    pinch_error err = {0};
    pn_file *f = NULL;
    FILE *t = tmpfile();
    if (!t || fputs("0123456789", t) < 0 || fflush(t) != 0) exit(1);
    if (CHECK("a descriptor opens", pn_file_open_fd(&f, fileno(t), "name", &err) == PINCH_OK, "%s", err.message)) opened_file(f, fileno(t));
    pn_file_close(f);
    if (ftruncate(fileno(t), 0) != 0) exit(1);
    const uint8_t *map;
    CHECK("an empty file opens", pn_file_open_fd(&f, fileno(t), "name", &err) == PINCH_OK, "%s", err.message);
    CHECK("but cannot be mapped", pn_file_map(f, &map, &err) == PINCH_ERR_IO, "%s", err.message);
    want("its sentence", &err, "name: 0 bytes cannot be mapped into this process");
    pn_file_close(f);
    CHECK("a descriptor that is none", pn_file_open_fd(&f, -1, "name", &err) == PINCH_ERR_IO, "%s", err.message);
    want("its sentence", &err, "name: its descriptor cannot be used: the descriptor is not open");
    char path[300];
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[299] = 0;
    CHECK("a name that no file can have", pn_file_open(&f, path, &err) == PINCH_ERR_IO && strstr(err.message, "the name is too long"), "%s", err.message);
    CHECK("an empty name", pn_file_open(&f, "", &err) == PINCH_ERR_IO, "%s", err.message);
    CHECK("a device", pn_file_open(&f, "/dev/null", &err) == PINCH_ERR_IO, "%s", err.message);
    want("its sentence", &err, "/dev/null: is a device, pipe or socket, not a regular file");
    pn_file_close(NULL);
    fclose(t);
}

int main(void)
{
    sentences();
    sizes();
    arenas();
    pages();
    untouched_pages();
    dropped_pages();
    files();
    return pn_done();
}
