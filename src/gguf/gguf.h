/* gguf/gguf.h - GGUF files: read, check, write, split.
 *
 * Everything read here is hostile until checked; every length is compared with what is left before it is used. Knows tensor types' sizes
 * (quant) and nothing of models. Strings and arrays are not copied one by one: the header is one block of bytes that values point into. */
#ifndef PN_GGUF_H
#define PN_GGUF_H

#include "base/pages.h"
#include "quant/quant.h"

typedef enum pn_gguf_kind {
    PN_GGUF_U8 = 0, PN_GGUF_I8 = 1, PN_GGUF_U16 = 2, PN_GGUF_I16 = 3, PN_GGUF_U32 = 4, PN_GGUF_I32 = 5, PN_GGUF_F32 = 6, PN_GGUF_BOOL = 7,
    PN_GGUF_STRING = 8, PN_GGUF_ARRAY = 9, PN_GGUF_U64 = 10, PN_GGUF_I64 = 11, PN_GGUF_F64 = 12
} pn_gguf_kind;

typedef struct pn_str { const char *p; size_t n; } pn_str; /* not terminated */

typedef struct pn_gguf_value {
    pn_str key;
    pn_gguf_kind kind;
    pn_gguf_kind item;   /* of an array; otherwise as kind */
    uint64_t count;      /* items of an array; 1 otherwise */
    const uint8_t *data; /* raw little-endian bytes, unaligned; strings: u64 length + bytes each */
    uint64_t bytes;
} pn_gguf_value;

typedef struct pn_tensor {
    pn_str name;
    pn_type type;
    int n_dims;
    int64_t ne[4];      /* ne[0] is the row length; missing ones are 1 */
    uint64_t bytes;
    uint64_t offset;    /* from the start of its file */
    int part;           /* which file of a split model */
} pn_tensor;

typedef struct pn_gguf pn_gguf;

/* Any part of a split model opens the whole. */
pinch_status pn_gguf_open(pn_gguf **out, const char *path, pinch_error *err);
pinch_status pn_gguf_open_fd(pn_gguf **out, int fd, const char *name, pinch_error *err);
void pn_gguf_close(pn_gguf *g); /* NULL is fine */

const char *pn_gguf_name(const pn_gguf *g);
uint32_t pn_gguf_version(const pn_gguf *g);
int pn_gguf_n_parts(const pn_gguf *g);
const pn_file *pn_gguf_file(const pn_gguf *g, int part);
size_t pn_gguf_n_values(const pn_gguf *g);
const pn_gguf_value *pn_gguf_value_at(const pn_gguf *g, size_t i);
const pn_gguf_value *pn_gguf_find(const pn_gguf *g, const char *key); /* by binary search; NULL: absent */
size_t pn_gguf_n_tensors(const pn_gguf *g);
const pn_tensor *pn_gguf_tensor_at(const pn_gguf *g, size_t i);
const pn_tensor *pn_gguf_tensor(const pn_gguf *g, const char *name); /* by binary search; NULL: absent */
uint64_t pn_gguf_header_bytes(const pn_gguf *g); /* memory that the open file holds */
/* Gives the memory of an array back as far as whole pages hold nothing else; it is empty from now on. A key that is absent, or no array, stays as it is. */
void pn_gguf_drop(pn_gguf *g, const char *key);

/* Typed reads. *found false (and *out untouched) when the key is absent; PINCH_ERR_FORMAT with a sentence when it is there with a kind that cannot be
 * read so. Any integer width serves for integers, integers serve for floats. */
pinch_status pn_gguf_get_int(const pn_gguf *g, const char *key, int64_t *out, bool *found, pinch_error *err);
pinch_status pn_gguf_get_float(const pn_gguf *g, const char *key, double *out, bool *found, pinch_error *err);
pinch_status pn_gguf_get_bool(const pn_gguf *g, const char *key, bool *out, bool *found, pinch_error *err);
pinch_status pn_gguf_get_string(const pn_gguf *g, const char *key, pn_str *out, bool *found, pinch_error *err);
/* Item i of a value (a scalar is an array of one). False: not of that kind or out of range. */
bool pn_gguf_int_at(const pn_gguf_value *v, uint64_t i, int64_t *out);
bool pn_gguf_float_at(const pn_gguf_value *v, uint64_t i, double *out);
/* Walks a string array from the first item: start with cursor 0. False at the end. */
bool pn_gguf_next_string(const pn_gguf_value *v, uint64_t *cursor, pn_str *out);

/* Reads `n` bytes of a tensor at `offset` into it. */
pinch_status pn_gguf_read(const pn_gguf *g, const pn_tensor *t, uint64_t offset, void *dst, uint64_t n, pinch_error *err);

/* ---- writer: what the reader reads; a file read and written again is byte-identical ------------ */
typedef struct pn_gguf_writer pn_gguf_writer;
/* Values, then tensors, then their data, in file order. Writes version 3 under a temporary name beside `path`. After a failure every further call
 * fails the same way; the writer still has to be finished or abandoned. */
pinch_status pn_gguf_writer_open(pn_gguf_writer **out, const char *path, pinch_error *err);
void pn_gguf_writer_abandon(pn_gguf_writer *w); /* removes the temporary file; NULL is fine */
pinch_status pn_gguf_put(pn_gguf_writer *w, const pn_gguf_value *value, pinch_error *err); /* "general.alignment" is obeyed */
pinch_status pn_gguf_put_tensor(pn_gguf_writer *w, const char *name, pn_type type, int n_dims, const int64_t *ne, pinch_error *err);
pinch_status pn_gguf_put_data(pn_gguf_writer *w, const void *bytes, uint64_t n, pinch_error *err); /* in pieces of any size; padding is added */
/* Reads the header back as a check, syncs, renames. Frees w also on failure, when `path` is as it was. */
pinch_status pn_gguf_writer_finish(pn_gguf_writer *w, pinch_error *err);

#endif
