/* kernels/x86/q4_0_avx512.c - Q4_0, AVX-512 VNNI. Packed: per two blocks 2 x 16 d as f16, then twice 4 vectors; vector t holds the rows' code
 * bytes 4t..4t+3. */
#include "kernels/x86/avx512.h"

#define HEAD_BLOCKS 2
#define CODE_BYTES 256
#define HAS_MIN 0
#define OFFSET_SHIFT 3
#define USE_PANEL 1
#define FILE_BLOCK 18

PN_INLINE void unpack(__m512i w[8], const uint8_t *codes) { unpack_nibbles(w, codes); }

PN_INLINE void pack_block(uint8_t *scales, uint8_t *codes, const pack_rows *rows)
{
    _mm256_store_si256((void *)scales, pack_u16(rows, 0));
    pack_nibbles(codes, rows, 2);
}

#include "kernels/x86/act32_avx512.h"

PN_KERNEL_AVX512(q4_0)
