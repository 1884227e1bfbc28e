/* base/base.c - error sentences and checked allocation. */
#include "base/base.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Names from files may hold anything: what is no text becomes '?', a character cut at the end of the buffer goes. */
static void make_text(char *message, bool was_cut)
{
    size_t n = strlen(message), length;
    for (size_t i = 0; i < n; i += length) {
        uint32_t c;
        length = pn_utf8_decode(message + i, n - i, &c);
        const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
        if (c == PN_UTF8_INVALID && was_cut && i + length == n) message[i] = 0;
        else if (c == PN_UTF8_INVALID || control) memset(message + i, '?', length);
    }
}

pinch_status pn_fail(pinch_error *err, pinch_status status, const char *format, ...)
{
    if (!err) return status;
    va_list args;
    va_start(args, format);
    err->status = status;
    int n = vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    if (n < 0) err->message[0] = 0;
    make_text(err->message, n >= (int)sizeof err->message);
    return status;
}

pinch_status pn_fail_memory(pinch_error *err, const char *what, uint64_t bytes)
{
    return pn_fail(err, PINCH_ERR_MEMORY, "out of memory: %s needs %" PRIu64 " bytes", what, bytes);
}

pinch_status pn_fail_system(pinch_error *err, const char *name, const char *what, int error)
{
    /* strerror speaks the host's language and need not be thread-safe. */
    static const struct { int error; const char *text; } known[] = {
        {ENOENT, "there is no such file"},       {ENOTDIR, "a part of the path is no folder"}, {EACCES, "permission denied"},
        {EPERM, "not permitted"},                {EISDIR, "is a folder"},                      {ENAMETOOLONG, "the name is too long"},
        {ELOOP, "too many symbolic links"},      {EMFILE, "too many open files"},              {ENFILE, "too many open files in the system"},
        {ENOMEM, "out of memory"},               {EIO, "the device reports an error"},         {ENOSPC, "no space left on the device"},
        {EDQUOT, "the disk quota is used up"},   {EROFS, "the file system is read-only"},      {EFBIG, "the file would be too large"},
        {EBADF, "the descriptor is not open"},   {ENODEV, "the file system cannot do that"},   {EEXIST, "the file exists"},
        {ETXTBSY, "the file is being executed"}, {EINVAL, "the system refuses the request"},
    };
    for (size_t i = 0; i < PN_COUNT(known); i++)
        if (known[i].error == error) return pn_fail(err, error == ENOMEM ? PINCH_ERR_MEMORY : PINCH_ERR_IO, "%s: %s: %s", name, what, known[i].text);
    return pn_fail(err, PINCH_ERR_IO, "%s: %s: system error %d", name, what, error);
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
