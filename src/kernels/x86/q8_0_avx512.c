/* kernels/x86/q8_0_avx512.c - Q8_0, AVX-512 VNNI. Packed: per two blocks 2 x 16 d as f16, then twice 8 code vectors, each byte plus 128. */
#include "kernels/x86/avx512.h"

#define HEAD_BLOCKS 2
#define CODE_BYTES 512
#define HAS_MIN 0
#define OFFSET_SHIFT 7
#define USE_PANEL 0
#define FILE_BLOCK 34

PN_INLINE void unpack(__m512i w[8], const uint8_t *codes)
{
    PN_UNROLL for (int g = 0; g < 8; g++) w[g] = _mm512_load_si512(codes + g * 64);
}

PN_INLINE void pack_block(uint8_t *scales, uint8_t *codes, const pack_rows *rows)
{
    __m512i v[8];
    _mm256_store_si256((void *)scales, pack_u16(rows, 0));
    pack_32(v, rows, 2);
    PN_UNROLL for (int g = 0; g < 8; g++) _mm512_store_si512(codes + g * 64, _mm512_xor_si512(v[g], _mm512_set1_epi8(-128)));
}

#include "kernels/x86/act32_avx512.h"

PN_KERNEL_AVX512(q8_0)
