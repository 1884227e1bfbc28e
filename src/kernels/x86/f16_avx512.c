/* kernels/x86/f16_avx512.c - F16, AVX-512. */
#include "kernels/x86/avx512.h"

#define ELEMENT 2

PN_INLINE __m512 load_16(const uint8_t *p) { return load_f16(p); }
PN_INLINE void store_units(uint8_t *out, __m512i v) { store_pairs(out, v); }

#include "kernels/x86/float_avx512.h"

PN_KERNEL_AVX512(f16)
