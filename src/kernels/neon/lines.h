/* kernels/neon/lines.h - the order of a pass over a strip of 16 channels, of which recurrent layers keep their state: lines of 64 bytes at `s`, four at a time.
 *
 * The including file defines for vector v of a line: DECAY(v, x, line) and UPDATE(v, x, line), and as `finish` what decays a line and stores the one before it:
 * finish(v, x, line, w, before). What waits for a result of one line stands beside what begins another: `x` is the line that is worked on, `w` the one before
 * or after it. */
#ifndef PN_NEON_LINES_H
#define PN_NEON_LINES_H

#include "kernels/neon/pin.h"

#define EACH(part, ...) part(0, __VA_ARGS__) part(1, __VA_ARGS__) part(2, __VA_ARGS__) part(3, __VA_ARGS__)
#define LOAD(v, x, line) V_LDR(x[v], s, 64 * (line) + 16 * (v));
#define STORE(v, x, line) V_STR(x[v], s, 64 * (line) + 16 * (v));
#define UPDATE_AND_LOAD(v, x, line, w, after) UPDATE(v, x, line) LOAD(v, w, after)

/* Lines 0 to 3 decayed and updated, 0 to 2 stored; line 3 is left in `w`. */
#define FOUR_LINES(finish) \
    EACH(LOAD, x, 0) \
    EACH(DECAY, x, 0) \
    EACH(UPDATE_AND_LOAD, x, 0, w, 1) \
    EACH(finish, w, 1, x, 0) \
    EACH(UPDATE_AND_LOAD, w, 1, x, 2) \
    EACH(finish, x, 2, w, 1) \
    EACH(UPDATE_AND_LOAD, x, 2, w, 3) \
    EACH(finish, w, 3, x, 2) \
    EACH(UPDATE, w, 3)

#endif
