/* kernels/x86/f32_avx2.c - F32 with AVX2. */
#include "kernels/x86/avx2.h"
#include "kernels/x86/float_tile_x86.h"

#define ELEMENT 4

PN_INLINE fvec load_weights(const uint8_t *p) { return f_load(p); }
PN_INLINE void store_units(uint8_t *out, vec v) { v_store(out, v); }

#include "kernels/x86/float_x86.h"

PN_KERNEL_X86(f32, avx2)
