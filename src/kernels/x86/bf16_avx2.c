/* kernels/x86/bf16_avx2.c - BF16 with AVX2. */
#include "kernels/x86/avx2.h"
#include "kernels/x86/float_tile_x86.h"

#define ELEMENT 2
#define PACK pn_f16__avx2_pack

PN_INLINE fvec load_weights(const uint8_t *p) { return f_load_bf16(p); }

#include "kernels/x86/float_x86.h"

PN_KERNEL_X86(bf16, avx2)
