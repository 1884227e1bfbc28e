/* kernels/x86/f16_avx512.c - F16 with AVX-512. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/float_tile_x86.h"

#define ELEMENT 2

PN_INLINE fvec load_weights(const uint8_t *p) { return f_load_halves(p); }
PN_INLINE void store_units(uint8_t *out, vec v) { store_halves(out, v); }

#include "kernels/x86/float_x86.h"

PN_KERNEL_X86(f16, avx512vnni)
