/* base/base.h - errors, checked sizes and small helpers that every room may use.
 *
 * Knows nothing of models or files. Other headers of this room: pages.h, cpu.h, math.h, json.h, number.h,
 * unicode.h, casemap.h, arena.h. */
#ifndef PN_BASE_H
#define PN_BASE_H

#include "pinch.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#define PN_COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define PN_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* Fills *err (which may be NULL) with a sentence and returns `status`. The first error wins: callers
 * hand it up unchanged, or wrap it once where only they know the file. Numbers are formatted without
 * regard to locale for the integer and string conversions, which are the only ones allowed here. Control characters and
 * bytes that are no UTF-8 (names from hostile files) become '?'. */
pinch_status pn_fail(pinch_error *err, pinch_status status, const char *format, ...) PN_PRINTF(3, 4);
/* "out of memory: <what> needs <bytes> bytes" */
pinch_status pn_fail_memory(pinch_error *err, const char *what, uint64_t bytes);
/* "<name>: <what>: <reason>" for an errno value, the same words on every system. PINCH_ERR_IO, or PINCH_ERR_MEMORY for ENOMEM. */
pinch_status pn_fail_system(pinch_error *err, const char *name, const char *what, int error);

/* Products and sums of sizes: false when the result does not fit. */
static inline bool pn_mul(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool pn_add(uint64_t a, uint64_t b, uint64_t *out) { return !__builtin_add_overflow(a, b, out); }

static inline uint64_t pn_round_up(uint64_t n, uint64_t step) { return (n + step - 1) / step * step; }
static inline int64_t pn_min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t pn_max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* malloc/calloc with a checked product; NULL on overflow or exhaustion. Freed with free(). */
void *pn_alloc(uint64_t count, uint64_t size);
void *pn_alloc_zero(uint64_t count, uint64_t size);

#endif
