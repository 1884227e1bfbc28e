/* kernels/x86/bf16_avx2.c - BF16 with AVX2. */
#include "kernels/x86/avx2.h"
#include "kernels/x86/float_tile_x86.h"

#define ELEMENT 2

PN_INLINE fvec load_weights(const uint8_t *p) { return f_load_bf16(p); }
PN_INLINE void store_units(uint8_t *out, vec v) { store_halves(out, v); }

#include "kernels/x86/float_x86.h"

PN_KERNEL_X86(bf16, avx2)
