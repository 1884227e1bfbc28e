/* kernels/x86/f32_avx512.c - F32, AVX-512. */
#include "kernels/x86/avx512.h"

#define ELEMENT 4

PN_INLINE __m512 load_16(const uint8_t *p) { return _mm512_load_ps(p); }
PN_INLINE void store_units(uint8_t *out, __m512i v) { _mm512_store_si512(out, v); }

#include "kernels/x86/float_avx512.h"

PN_KERNEL_AVX512(f32)
