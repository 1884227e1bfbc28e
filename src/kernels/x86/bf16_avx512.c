/* kernels/x86/bf16_avx512.c - BF16 with AVX-512. */
#include "kernels/x86/avx512.h"
#include "kernels/x86/float_tile_x86.h"

#define ELEMENT 2
#define PACK pn_f16__avx512vnni_pack

PN_INLINE fvec load_weights(const uint8_t *p) { return f_load_bf16(p); }

#include "kernels/x86/float_x86.h"

PN_KERNEL_X86(bf16, avx512vnni)
