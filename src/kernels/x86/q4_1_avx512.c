/* kernels/x86/q4_1_avx512.c - Q4_1, AVX-512 VNNI. Packed: per block 16 d and 16 m as f16, then 4 vectors; vector t holds the rows' code bytes
 * 4t..4t+3. */
#include "kernels/x86/avx512.h"

#define HEAD_BLOCKS 1
#define CODE_BYTES 256
#define HAS_MIN 1
#define USE_PANEL 1
#define FILE_BLOCK 20

PN_INLINE void unpack(__m512i w[8], const uint8_t *codes) { unpack_nibbles(w, codes); }

PN_INLINE void pack_block(uint8_t *scales, uint8_t *codes, const pack_rows *rows)
{
    _mm256_store_si256((void *)scales, pack_u16(rows, 0));
    _mm256_store_si256((void *)(scales + 32), pack_u16(rows, 2));
    pack_nibbles(codes, rows, 4);
}

#include "kernels/x86/act32_avx512.h"

PN_KERNEL_AVX512(q4_1)
