/* kernels/neon/f16_neon.c - F16 weights, 16 rows channel by channel, widened where they are used. */
#include "kernels/neon/float_tile.h"

FLOAT_KERNEL(f16, 2, true)
