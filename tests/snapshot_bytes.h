/* tests/snapshot_bytes.h - memory that snapshots are written to and read from. */
#ifndef PN_SNAPSHOT_BYTES_H
#define PN_SNAPSHOT_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum { SNAPSHOT_MOST = 1 << 22 };

typedef struct snapshot_bytes {
    unsigned char *data; /* [SNAPSHOT_MOST] */
    size_t n, at;
} snapshot_bytes;

static bool snapshot_put(void *user, const void *bytes, size_t n)
{
    snapshot_bytes *b = user;
    if (n > SNAPSHOT_MOST - b->n) return false;
    memcpy(b->data + b->n, bytes, n);
    b->n += n;
    return true;
}

__attribute__((unused)) static bool snapshot_get(void *user, void *bytes, size_t n)
{
    snapshot_bytes *b = user;
    if (n > b->n - b->at) return false;
    memcpy(bytes, b->data + b->at, n);
    b->at += n;
    return true;
}

#endif
