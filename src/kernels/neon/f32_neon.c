/* kernels/neon/f32_neon.c - F32 weights, 16 rows channel by channel. */
#include "kernels/neon/float_tile.h"

FLOAT_KERNEL(f32, 4, false)
