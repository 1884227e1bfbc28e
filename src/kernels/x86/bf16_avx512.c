/* kernels/x86/bf16_avx512.c - BF16, AVX-512. */
#include "kernels/x86/avx512.h"

#define ELEMENT 2

PN_INLINE __m512 load_16(const uint8_t *p)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_load_si256((const void *)p)), 16));
}
PN_INLINE void store_units(uint8_t *out, __m512i v) { store_pairs(out, v); }

#include "kernels/x86/float_avx512.h"

PN_KERNEL_AVX512(bf16)
