/* kernels/x86/q5_0_avx512.c - Q5_0, AVX-512 VNNI. Packed: per two blocks 2 x 16 d as f16, then twice the fifth bits and 4 vectors of nibbles. */
#include "kernels/x86/avx512.h"

#define HEAD_BLOCKS 2
#define CODE_BYTES 320
#define HAS_MIN 0
#define OFFSET_SHIFT 4
#define USE_PANEL 1
#define FILE_BLOCK 22

PN_INLINE void unpack(__m512i w[8], const uint8_t *codes) { unpack_nibbles_5(w, codes); }

PN_INLINE void pack_block(uint8_t *scales, uint8_t *codes, const pack_rows *rows)
{
    _mm256_store_si256((void *)scales, pack_u16(rows, 0));
    _mm512_store_si512(codes, pack_fifth_bits(pack_u32(rows, 2)));
    pack_nibbles(codes + 64, rows, 6);
}

#include "kernels/x86/act32_avx512.h"

PN_KERNEL_AVX512(q5_0)
