/* base/zone.h - the local time zone, from its file, without the C library's zone code (which costs a static program 140 KB). */
#ifndef PN_ZONE_H
#define PN_ZONE_H

#include "base/base.h"

/* Seconds east of UTC that the local zone has at `now` (seconds since 1970): by the environment's TZ when it names a file of the zone database or of its own,
 * else by /etc/localtime; 0 where neither can be read. */
int64_t pn_zone_offset(int64_t now);
/* The same from the bytes of a zone file (RFC 8536), which need not be well-formed; 0 when they are not. */
int64_t pn_zone_offset_at(const uint8_t *data, size_t n, int64_t now);

#endif
