/* gguf/header.h - the header of one file: metadata, tensor table, checked against the file's size. Within this room only. */
#ifndef PN_GGUF_HEADER_H
#define PN_GGUF_HEADER_H

#include "gguf/gguf.h"

typedef struct pn_gguf_header {
    uint32_t version;
    uint64_t alignment;  /* of tensor data: a power of two */
    uint64_t bytes;      /* from the file's first byte to the tensor table's last */
    uint8_t *block;      /* those bytes; keys, names and values point into it */
    pn_gguf_value *values;
    size_t n_values;
    pn_tensor *tensors;
    size_t n_tensors;
} pn_gguf_header;

enum { PN_GGUF_PREFIX = 24, PN_GGUF_ALIGNMENT = 32, PN_GGUF_MAX_DIMS = 4, PN_GGUF_MAX_NAME = 63 };

/* Little-endian, unaligned. */
static inline uint32_t pn_gguf_u32(const uint8_t *p) { return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24; }
static inline uint64_t pn_gguf_u64(const uint8_t *p) { return pn_gguf_u32(p) | (uint64_t)pn_gguf_u32(p + 4) << 32; }

/* Bytes of one item of a kind; 0: not fixed (string, array) or no kind. */
uint32_t pn_gguf_kind_bytes(uint32_t kind);
const char *pn_gguf_kind_name(uint32_t kind); /* "u32"; "unknown" */

/* Reads and checks; `part` is what the tensors' part says. On failure *out holds nothing to free. */
pinch_status pn_gguf_header_read(pn_gguf_header *out, const pn_file *file, int part, pinch_error *err);
void pn_gguf_header_free(pn_gguf_header *header);

/* Names in ascending order of bytes, for lookups and to find repeated ones: the same cost whatever names a hostile file picks. */
typedef struct pn_name_entry {
    pn_str name;
    size_t index;
} pn_name_entry;
int pn_str_compare(pn_str a, pn_str b);
/* Index of keys or tensor names, freed with free(); a name that stands there twice is an error. `file` is for the sentence. */
pinch_status pn_index_values(pn_name_entry **out, const pn_gguf_value *values, size_t n, const char *file, pinch_error *err);
pinch_status pn_index_tensors(pn_name_entry **out, const pn_tensor *tensors, size_t n, const char *file, pinch_error *err);
const pn_name_entry *pn_index_find(const pn_name_entry *entries, size_t n, pn_str name); /* NULL: absent */

/* For messages: printf arguments of "%.*s", long names cut. */
#define PN_SHOWN(s) (int)((s).n < 64 ? (s).n : 64), (s).p

#endif
