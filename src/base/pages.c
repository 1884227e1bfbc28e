/* base/pages.c - the only place that asks the system for pages and reads model files. Knows nothing of what is in them. */
#include "base/pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One read call moves at most this much: the system's own cap is just below 2 GiB, and 32-bit ssize_t ends there. */
#define READ_STEP (UINT64_C(1) << 30)
/* Of a long path messages show the end, which tells files apart. */
enum { SHOWN_NAME = 160 };

static void *pages(uint64_t bytes, bool huge)
{
    if (bytes > PTRDIFF_MAX) return NULL;
    size_t n = bytes ? (size_t)bytes : 1;
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return NULL;
#if defined(MADV_HUGEPAGE) && defined(MADV_NOHUGEPAGE)
    madvise(p, n, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE); /* a hint: kernels without huge pages refuse it */
#else
    (void)huge;
#endif
    return p;
}

void *pn_pages_alloc(uint64_t bytes) { return pages(bytes, false); }
void *pn_pages_alloc_huge(uint64_t bytes) { return pages(bytes, true); }

void pn_pages_free(void *p, uint64_t bytes)
{
    if (p) munmap(p, bytes ? (size_t)bytes : 1);
}

uint64_t pn_pages_drop(void *p, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), head = (page - (uintptr_t)p % page) % page;
    if (bytes < head + page) return 0;
    const size_t n = (size_t)(bytes - head) / page * page;
    return madvise((uint8_t *)p + head, n, MADV_DONTNEED) == 0 ? n : 0;
}

struct pn_file {
    int fd;
    uint64_t size;
    const char *shown; /* within name */
    char name[];
};

/* Takes the descriptor over, also on failure. */
static pinch_status file_new(pn_file **out, int fd, const char *name, pinch_error *err)
{
    struct stat st;
    size_t n = strlen(name);
    pn_file *file = NULL;
    pinch_status status = PINCH_OK;
    if (fstat(fd, &st) != 0) status = pn_fail_system(err, name, "cannot be examined", errno);
    else if (!S_ISREG(st.st_mode)) status = pn_fail(err, PINCH_ERR_IO, "%s: is %s, not a regular file", name, S_ISDIR(st.st_mode) ? "a folder" : "a device, pipe or socket");
    if (!status && !(file = pn_alloc(1, sizeof *file + n + 1))) status = pn_fail_memory(err, "a file's name", n);
    if (status) {
        close(fd);
        return status;
    }
    *file = (pn_file){.fd = fd, .size = (uint64_t)st.st_size};
    memcpy(file->name, name, n + 1);
    file->shown = file->name + (n > SHOWN_NAME ? n - SHOWN_NAME : 0);
    *out = file;
    return PINCH_OK;
}

pinch_status pn_file_open(pn_file **out, const char *path, pinch_error *err)
{
    /* O_NONBLOCK: opening a pipe must not wait for its writer; regular files do not mind. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return pn_fail_system(err, path, "cannot be opened", errno);
    return file_new(out, fd, path, err);
}

pinch_status pn_file_open_fd(pn_file **out, int fd, const char *name, pinch_error *err)
{
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) return pn_fail_system(err, name, "its descriptor cannot be used", errno);
    return file_new(out, own, name, err);
}

void pn_file_close(pn_file *file)
{
    if (!file) return;
    close(file->fd);
    free(file);
}

uint64_t pn_file_size(const pn_file *file) { return file->size; }
const char *pn_file_name(const pn_file *file) { return file->shown; }

pinch_status pn_file_read(const pn_file *file, void *dst, uint64_t n, uint64_t offset, pinch_error *err)
{
    uint64_t end;
    if (!pn_add(offset, n, &end) || end > file->size)
        return pn_fail(err, PINCH_ERR_IO, "%s: %" PRIu64 " bytes wanted at %" PRIu64 ", but the file has %" PRIu64, file->shown, n, offset, file->size);
    uint8_t *to = dst;
    while (n) {
        ssize_t got = pread(file->fd, to, (size_t)(n < READ_STEP ? n : READ_STEP), (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return pn_fail_system(err, file->shown, "cannot be read", errno);
        if (got == 0) return pn_fail(err, PINCH_ERR_IO, "%s: ends at byte %" PRIu64 ", it had %" PRIu64 " when it was opened", file->shown, offset, file->size);
        to += got;
        offset += (uint64_t)got;
        n -= (uint64_t)got;
    }
    return PINCH_OK;
}

void pn_file_forget(const pn_file *file, uint64_t offset, uint64_t n)
{
#ifdef POSIX_FADV_DONTNEED
    if (offset <= INT64_MAX && n <= INT64_MAX) posix_fadvise(file->fd, (off_t)offset, (off_t)n, POSIX_FADV_DONTNEED);
#else
    (void)file, (void)offset, (void)n;
#endif
}

pinch_status pn_file_map(const pn_file *file, const uint8_t **out, pinch_error *err)
{
    if (!file->size || file->size > PTRDIFF_MAX)
        return pn_fail(err, PINCH_ERR_IO, "%s: %" PRIu64 " bytes cannot be mapped into this process", file->shown, file->size);
    void *p = mmap(NULL, (size_t)file->size, PROT_READ, MAP_SHARED, file->fd, 0);
    if (p == MAP_FAILED) return pn_fail_system(err, file->shown, "cannot be mapped", errno);
    *out = p;
    return PINCH_OK;
}

void pn_file_unmap(const uint8_t *p, uint64_t bytes)
{
    if (p) munmap((void *)(uintptr_t)p, (size_t)bytes);
}
