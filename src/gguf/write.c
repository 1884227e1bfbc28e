/* gguf/write.c - writes a GGUF file: values and tensor table are gathered in memory, data goes straight to the file.
 *
 * States: HEADER (values and tensors are put) -> DATA at the first data or at finish, when the header is written; `status` holds the first failure. */
#include "gguf/header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct extent {
    uint64_t bytes, padding;
} extent;

struct pn_gguf_writer {
    int fd;
    pinch_status status;
    pinch_error error;   /* the first failure, for calls after it */
    char *path, *temporary;
    uint8_t *header;     /* prefix, values, tensor table */
    uint64_t used, capacity;
    uint64_t n_values, n_tensors, alignment, offset;
    bool has_data;
    extent *extents;     /* of the tensors' data, in order */
    uint64_t current, done; /* the tensor that data goes to, and how much of it is there */
};

enum { MAX_TRIES = 100, MAX_SUFFIX = 48 };

/* Keeps the first failure; every later call repeats it. */
static pinch_status poison(pn_gguf_writer *w, pinch_status status, pinch_error *err)
{
    if (status && !w->status) w->status = status;
    if (w->status && err) *err = w->error;
    return w->status;
}

static pinch_status write_all(pn_gguf_writer *w, const uint8_t *p, uint64_t n)
{
    while (n) {
        const size_t step = n < (UINT64_C(1) << 30) ? (size_t)n : (size_t)1 << 30;
        const ssize_t done = write(w->fd, p, step);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return pn_fail_system(&w->error, w->temporary, "cannot be written", errno);
        p += done;
        n -= (uint64_t)done;
    }
    return PINCH_OK;
}

static pinch_status write_zeros(pn_gguf_writer *w, uint64_t n)
{
    static const uint8_t zeros[4096];
    pinch_status status = PINCH_OK;
    for (; n && !status; n -= n < sizeof zeros ? n : sizeof zeros) status = write_all(w, zeros, n < sizeof zeros ? n : sizeof zeros);
    return status;
}

/* ---- the header in memory --------------------------------------------------------------------- */

static pinch_status append(pn_gguf_writer *w, const void *bytes, uint64_t n)
{
    uint64_t need;
    if (!pn_add(w->used, n, &need)) return pn_fail_memory(&w->error, "a GGUF header", n);
    if (need > w->capacity) {
        const uint64_t capacity = need > w->capacity * 2 ? need : w->capacity * 2;
        uint8_t *p = capacity <= PTRDIFF_MAX ? realloc(w->header, (size_t)capacity) : NULL;
        if (!p) return pn_fail_memory(&w->error, "a GGUF header", capacity);
        w->header = p;
        w->capacity = capacity;
    }
    if (n) memcpy(w->header + w->used, bytes, (size_t)n);
    w->used = need;
    return PINCH_OK;
}

static void store(uint8_t *p, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> 8 * i);
}

static pinch_status append_number(pn_gguf_writer *w, uint64_t v, int bytes)
{
    uint8_t p[8];
    store(p, v, bytes);
    return append(w, p, (uint64_t)bytes);
}

static pinch_status append_string(pn_gguf_writer *w, const char *p, uint64_t n)
{
    pinch_status status = append_number(w, n, 8);
    return status ? status : append(w, p, n);
}

/* ---- the calls -------------------------------------------------------------------------------- */

/* A name beside the target that no file has: rename must not cross file systems. */
static pinch_status create(pn_gguf_writer *w)
{
    const size_t n = strlen(w->path);
    for (int i = 0; i < MAX_TRIES; i++) {
        snprintf(w->temporary, n + MAX_SUFFIX, "%s.%ld-%d.part", w->path, (long)getpid(), i);
        w->fd = open(w->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (w->fd >= 0) return PINCH_OK;
        if (errno != EEXIST) break;
    }
    const int error = errno;
    w->temporary[0] = 0; /* nothing to remove */
    return pn_fail_system(&w->error, w->path, "cannot be created", error);
}

pinch_status pn_gguf_writer_open(pn_gguf_writer **out, const char *path, pinch_error *err)
{
    const size_t n = strlen(path);
    pn_gguf_writer *w = pn_alloc_zero(1, sizeof *w);
    if (!w) return pn_fail_memory(err, "a GGUF writer", sizeof *w);
    w->fd = -1;
    w->alignment = PN_GGUF_ALIGNMENT;
    w->path = pn_alloc(1, n + 1);
    w->temporary = pn_alloc_zero(1, n + MAX_SUFFIX);
    pinch_status status = w->path && w->temporary ? PINCH_OK : pn_fail_memory(&w->error, "a file's name", n);
    if (!status) memcpy(w->path, path, n + 1);
    if (!status) status = create(w);
    if (!status) status = append(w, "GGUF\3\0\0\0", 8);
    if (!status) status = append_number(w, 0, 8);
    if (!status) status = append_number(w, 0, 8);
    if (status) {
        poison(w, status, err);
        pn_gguf_writer_abandon(w);
        return status;
    }
    *out = w;
    return PINCH_OK;
}

void pn_gguf_writer_abandon(pn_gguf_writer *w)
{
    if (!w) return;
    if (w->fd >= 0) close(w->fd);
    if (w->temporary && w->temporary[0]) unlink(w->temporary);
    free(w->path);
    free(w->temporary);
    free(w->header);
    free(w->extents);
    free(w);
}

pinch_status pn_gguf_put(pn_gguf_writer *w, const pn_gguf_value *v, pinch_error *err)
{
    if (w->status) return poison(w, w->status, err);
    if (w->n_tensors || w->has_data) return poison(w, pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: metadata comes before tensors", w->path), err);
    pinch_status status = append_string(w, v->key.p, v->key.n);
    if (!status) status = append_number(w, v->kind, 4);
    if (!status && v->kind == PN_GGUF_ARRAY) {
        status = append_number(w, v->item, 4);
        if (!status) status = append_number(w, v->count, 8);
    }
    if (!status) status = append(w, v->data, v->bytes);
    if (!status && v->kind == PN_GGUF_U32 && v->key.n == 17 && memcmp(v->key.p, "general.alignment", 17) == 0) {
        w->alignment = pn_gguf_u32(v->data);
        if (!w->alignment || (w->alignment & (w->alignment - 1))) status = pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: general.alignment %" PRIu64 " is no power of two", w->path, w->alignment);
    }
    w->n_values++;
    return poison(w, status, err);
}

static pinch_status tensor_bytes(pn_gguf_writer *w, const char *name, pn_type type, int n_dims, const int64_t *ne, uint64_t *bytes)
{
    bool good = n_dims >= 0 && n_dims <= PN_GGUF_MAX_DIMS && pn_row_bytes(type, n_dims ? (uint64_t)ne[0] : 1, bytes);
    for (int i = 0; good && i < n_dims; i++) good = ne[i] >= 0 && (i == 0 || pn_mul(*bytes, (uint64_t)ne[i], bytes));
    return good ? PINCH_OK : pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: tensor '%.63s' has a shape that its type %d cannot have", w->path, name, (int)type);
}

pinch_status pn_gguf_put_tensor(pn_gguf_writer *w, const char *name, pn_type type, int n_dims, const int64_t *ne, pinch_error *err)
{
    if (w->status) return poison(w, w->status, err);
    if (w->has_data) return poison(w, pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: tensor '%.63s' comes after data", w->path, name), err);
    extent e = {0}, *grown = NULL;
    pinch_status status = tensor_bytes(w, name, type, n_dims, ne, &e.bytes);
    if (!status) status = append_string(w, name, strlen(name));
    if (!status) status = append_number(w, (uint64_t)n_dims, 4);
    for (int i = 0; i < n_dims && !status; i++) status = append_number(w, (uint64_t)ne[i], 8);
    if (!status) status = append_number(w, (uint64_t)type, 4);
    if (!status) status = append_number(w, w->offset, 8);
    if (!status && (e.bytes > INT64_MAX || w->offset > INT64_MAX - e.bytes)) status = pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: tensor '%.63s' makes the file too large", w->path, name);
    if (!status && !(grown = realloc(w->extents, ((size_t)w->n_tensors + 1) * sizeof e))) status = pn_fail_memory(&w->error, "the table of tensors", (w->n_tensors + 1) * sizeof e);
    if (status) return poison(w, status, err);
    const uint64_t end = w->offset + e.bytes;
    w->offset = pn_round_up(end, w->alignment);
    e.padding = w->offset - end;
    w->extents = grown;
    w->extents[w->n_tensors++] = e;
    return PINCH_OK;
}

static pinch_status write_header(pn_gguf_writer *w)
{
    if (w->has_data) return PINCH_OK;
    w->has_data = true;
    store(w->header + 8, w->n_tensors, 8);
    store(w->header + 16, w->n_values, 8);
    pinch_status status = write_all(w, w->header, w->used);
    if (!status && w->n_tensors) status = write_zeros(w, pn_round_up(w->used, w->alignment) - w->used);
    return status;
}

/* Pads and passes every tensor that is complete, those without elements included. */
static pinch_status close_extents(pn_gguf_writer *w)
{
    pinch_status status = PINCH_OK;
    while (!status && w->current < w->n_tensors && w->done == w->extents[w->current].bytes) {
        status = write_zeros(w, w->extents[w->current++].padding);
        w->done = 0;
    }
    return status;
}

pinch_status pn_gguf_put_data(pn_gguf_writer *w, const void *bytes, uint64_t n, pinch_error *err)
{
    if (w->status) return poison(w, w->status, err);
    const uint8_t *p = bytes;
    pinch_status status = write_header(w);
    if (!status) status = close_extents(w);
    while (n && !status) {
        if (w->current == w->n_tensors) return poison(w, pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: %" PRIu64 " bytes more than its tensors hold", w->path, n), err);
        const uint64_t room = w->extents[w->current].bytes - w->done, step = n < room ? n : room;
        status = write_all(w, p, step);
        p += step;
        n -= step;
        w->done += step;
        if (!status) status = close_extents(w);
    }
    return poison(w, status, err);
}

/* The file as a reader would see it: whatever was put, nothing is renamed that could not be opened. */
static pinch_status read_back(pn_gguf_writer *w)
{
    pn_file *file;
    pn_gguf_header h;
    pn_name_entry *keys = NULL, *names = NULL;
    pinch_status status = pn_file_open(&file, w->temporary, &w->error);
    if (status) return status;
    status = pn_gguf_header_read(&h, file, 0, &w->error);
    if (!status) {
        status = pn_index_values(&keys, h.values, h.n_values, w->path, &w->error);
        if (!status) status = pn_index_tensors(&names, h.tensors, h.n_tensors, w->path, &w->error);
        free(keys);
        free(names);
        pn_gguf_header_free(&h);
    }
    pn_file_close(file);
    return status;
}

/* Makes the rename itself last; where a folder cannot be synced, it lasts when the system writes it. */
static void sync_folder(const char *path)
{
    char *folder = pn_alloc(1, strlen(path) + 2);
    if (!folder) return;
    memcpy(folder, path, strlen(path) + 1);
    char *slash = strrchr(folder, '/');
    if (slash) slash[slash == folder] = 0;
    else memcpy(folder, ".", 2);
    const int fd = open(folder, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (fd >= 0) {
        fsync(fd);
        close(fd);
    }
    free(folder);
}

pinch_status pn_gguf_writer_finish(pn_gguf_writer *w, pinch_error *err)
{
    pinch_status status = w->status;
    if (!status) status = write_header(w);
    if (!status) status = close_extents(w);
    if (!status && w->current < w->n_tensors) status = pn_fail(&w->error, PINCH_ERR_ARGUMENT, "%s: data of %" PRIu64 " tensors is missing", w->path, w->n_tensors - w->current);
    if (!status) status = read_back(w);
    if (!status && fsync(w->fd) != 0) status = pn_fail_system(&w->error, w->temporary, "cannot be synced", errno);
    if (!status && rename(w->temporary, w->path) != 0) status = pn_fail_system(&w->error, w->path, "cannot be put in place", errno);
    if (!status) {
        w->temporary[0] = 0;
        sync_folder(w->path);
    }
    poison(w, status, err);
    pn_gguf_writer_abandon(w);
    return status;
}
