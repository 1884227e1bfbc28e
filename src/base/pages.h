/* base/pages.h - anonymous memory by pages, files read by pread, read-only mappings. */
#ifndef PN_PAGES_H
#define PN_PAGES_H

#include "base/base.h"

/* Zeroed anonymous pages, 64-byte aligned at least. NULL: exhausted. Counts in no malloc. What is never touched takes no memory, so that a cache for
 * a long context costs what a short text uses. */
void *pn_pages_alloc(uint64_t bytes);
/* The same in huge pages where the system grants them: for what is filled at once and read from end to end, as weights are. */
void *pn_pages_alloc_huge(uint64_t bytes);
void pn_pages_free(void *p, uint64_t bytes); /* NULL is fine */
/* Gives back the pages that lie whole in a part of allocated memory, and returns how many bytes they have; they read as zeros until written again. */
uint64_t pn_pages_drop(void *p, uint64_t bytes);

typedef struct pn_file pn_file;
/* Opens for reading. `name` of open_fd stands for the path in messages; the descriptor is duplicated. Refuses what is no regular file. */
pinch_status pn_file_open(pn_file **out, const char *path, pinch_error *err);
pinch_status pn_file_open_fd(pn_file **out, int fd, const char *name, pinch_error *err);
void pn_file_close(pn_file *file); /* NULL is fine */
uint64_t pn_file_size(const pn_file *file);
const char *pn_file_name(const pn_file *file);
/* Reads exactly n bytes at offset, or fails with a sentence (short file, I/O error). Thread-safe. */
pinch_status pn_file_read(const pn_file *file, void *dst, uint64_t n, uint64_t offset, pinch_error *err);
/* Tells the system that these bytes will not be read again soon (posix_fadvise); a hint. */
void pn_file_forget(const pn_file *file, uint64_t offset, uint64_t n);

/* A read-only shared mapping of the whole file; a file that shrinks under it raises SIGBUS on access. */
pinch_status pn_file_map(const pn_file *file, const uint8_t **out, pinch_error *err);
void pn_file_unmap(const uint8_t *p, uint64_t bytes);

#endif
