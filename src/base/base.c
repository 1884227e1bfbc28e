#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

pinch_status pn_fail(pinch_error *err, pinch_status status, const char *format, ...)
{
    if (!err) return status;
    va_list args;
    va_start(args, format);
    err->status = status;
    vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

pinch_status pn_fail_memory(pinch_error *err, const char *what, uint64_t bytes)
{
    return pn_fail(err, PINCH_ERR_MEMORY, "out of memory: %s needs %" PRIu64 " bytes", what, bytes);
}

void *pn_alloc(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!pn_mul(count, size, &bytes) || bytes > PTRDIFF_MAX) return NULL;
    return malloc(bytes ? (size_t)bytes : 1);
}

void *pn_alloc_zero(uint64_t count, uint64_t size)
{
    uint64_t bytes;
    if (!pn_mul(count, size, &bytes) || bytes > PTRDIFF_MAX) return NULL;
    return calloc(bytes ? (size_t)bytes : 1, 1);
}
