/* kernels/x86/act32_avx512.h - mat-mul of weights with one scale (and minimum) per 32 and activations in pn_act32, 16 rows at a time.
 *
 * A template: the file of a format includes it after defining
 *   HEAD_BLOCKS            blocks whose scales share one 64-byte head: 2 (d only) or 1 (d and m)
 *   CODE_BYTES             bytes of codes of 16 rows x 32 weights, a multiple of 64
 *   OFFSET_SHIFT           log2 of what the unsigned codes carry too much; HAS_MIN 1: d and m, no offset
 *   USE_PANEL              0: codes are stored as the 8 code vectors themselves, a panel would only copy them
 *   FILE_BLOCK             bytes of a block in the file
 *   unpack(w, codes)       the 8 code vectors of a block
 *   pack_block(scales, codes, rows)   packs one block of 16 rows
 * Packed group: heads [64] each followed by its blocks' codes. A last head of an odd count keeps both halves, and its second block is absent.
 * Order of sums: kernels.h. */
#include "kernels/x86/avx512.h"

#define UNIT_BYTES (64 + HEAD_BLOCKS * CODE_BYTES)

static uint64_t group_bytes(int64_t k)
{
    const uint64_t blocks = (uint64_t)k / 32;
    return (blocks + HEAD_BLOCKS - 1) / HEAD_BLOCKS * 64 + blocks * CODE_BYTES;
}

/* Where block b's scales and codes lie in a group. */
PN_INLINE size_t scales_at(int64_t b) { return (size_t)b / HEAD_BLOCKS * UNIT_BYTES + (size_t)b % HEAD_BLOCKS * 32; }
PN_INLINE size_t codes_at(int64_t b) { return (size_t)b / HEAD_BLOCKS * UNIT_BYTES + 64 + (size_t)b % HEAD_BLOCKS * CODE_BYTES; }

#if !HAS_MIN
/* What the integer sum starts at: minus offset * sum of the activations. Scalar, through memory: the vector pipes are full. */
PN_INLINE void start_store(int32_t *start, const uint8_t *x) { *start = *(const pn_i32_alias *)(x + offsetof(pn_act32, sum)) * -(1 << OFFSET_SHIFT); }
#endif

/* One block: codes as bytes, scales and with HAS_MIN minimums as floats. */
typedef struct block32 {
    __m512i w[8];
    __m512 d, m;
} block32;

PN_INLINE void load_packed(block32 *out, const uint8_t *group, int64_t b)
{
    unpack(out->w, group + codes_at(b));
    out->d = load_f16(group + scales_at(b));
    if (HAS_MIN) out->m = load_f16(group + scales_at(b) + 32);
}

/* A panel has per block 8 code vectors, then d and with HAS_MIN m as floats. */
#define PANEL_BYTES (512 + 64 + HAS_MIN * 64)

PN_INLINE void load_panel(block32 *out, const uint8_t *panel, int64_t b)
{
    const uint8_t *at = panel + b * PANEL_BYTES;
    PN_UNROLL for (int g = 0; g < 8; g++) out->w[g] = _mm512_load_si512(at + g * 64);
    out->d = _mm512_load_ps(at + 512);
    if (HAS_MIN) out->m = _mm512_load_ps(at + 576);
}

typedef void (*load_block_fn)(block32 *out, const uint8_t *src, int64_t b);

/* 16 rows x n columns. */
PN_INLINE void any_tile(int n, load_block_fn load, const uint8_t *src, int64_t k, const columns *cols, int64_t row, __mmask16 mask)
{
    const uint8_t *x[TILE];
    __m512 acc[TILE];
    PN_UNROLL for (int c = 0; c < n; c++)
    {
        x[c] = cols->x[c];
        acc[c] = _mm512_setzero_ps();
    }
    for (int64_t b = 0; b < k / 32; b++) {
        const size_t at = (size_t)b * sizeof(pn_act32);
        __m512i sum[TILE];
        block32 block;
        load(&block, src, b);
#if HAS_MIN
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = _mm512_setzero_si512();
#else
        int32_t starts[TILE];
        PN_UNROLL for (int c = 0; c < n; c++) start_store(&starts[c], x[c] + at);
        hide(starts);
        PN_UNROLL for (int c = 0; c < n; c++) sum[c] = splat_i32(&starts[c]);
#endif
        PN_UNROLL for (int g = 0; g < 8; g++)
        {
            PN_UNROLL for (int c = 0; c < n; c++) sum[c] = dot_u8(sum[c], block.w[g], x[c] + at + g * 4);
        }
        PN_UNROLL for (int c = 0; c < n; c++)
        {
            const __m512 dd = _mm512_mul_ps(block.d, splat_f32(x[c] + at + offsetof(pn_act32, d)));
            acc[c] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[c]), dd, acc[c]);
#if HAS_MIN
            acc[c] = _mm512_fmadd_ps(block.m, splat_f32(x[c] + at + offsetof(pn_act32, s)), acc[c]);
#endif
        }
    }
    PN_UNROLL for (int c = 0; c < n; c++) _mm512_mask_storeu_ps(cols->y[c] + row, mask, acc[c]);
}

PN_INLINE void tile(int n, const uint8_t *group, int64_t k, const columns *cols, int64_t row, __mmask16 mask)
{
    any_tile(n, load_packed, group, k, cols, row, mask);
}

#if USE_PANEL
#define SCRATCH_BYTES(k) ((uint64_t)(k) / 32 * PANEL_BYTES)

PN_INLINE void panel_tile(int n, const uint8_t *panel, int64_t k, const columns *cols, int64_t row, __mmask16 mask)
{
    any_tile(n, load_panel, panel, k, cols, row, mask);
}

static const uint8_t *make_panel(uint8_t *panel, const uint8_t *group, int64_t k)
{
    for (int64_t b = 0; b < k / 32; b++) {
        block32 block;
        load_packed(&block, group, b);
        uint8_t *at = panel + b * PANEL_BYTES;
        PN_UNROLL for (int g = 0; g < 8; g++) _mm512_store_si512(at + g * 64, block.w[g]);
        _mm512_store_ps(at + 512, block.d);
        if (HAS_MIN) _mm512_store_ps(at + 576, block.m);
    }
    return panel;
}
#else
#define SCRATCH_BYTES(k) ((void)(k), UINT64_C(0))
#define panel_tile tile
PN_INLINE const uint8_t *make_panel(uint8_t *panel, const uint8_t *group, int64_t k) { return (void)panel, (void)k, group; }
#endif

static void pack(void *dst, const void *src, int64_t n_valid, int64_t k)
{
    uint8_t *out = dst;
    pack_rows rows;
    pack_begin(&rows, src, n_valid, (size_t)(k / 32) * FILE_BLOCK, FILE_BLOCK);
    for (int64_t b = 0; b < k / 32; b++, pack_next(&rows)) {
        pack_block(out + scales_at(b), out + codes_at(b), &rows);
    }
}

#include "kernels/x86/gemm_avx512.h"
