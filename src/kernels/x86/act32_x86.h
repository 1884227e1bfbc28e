/* kernels/x86/act32_x86.h - mat-mul of weights with one scale (and minimum) per 32 and activations in pn_act32.
 *
 * A template: the file of a format includes it after words, layout and dots; the layout defines CODE_BITS, HAS_MIN (d and m; else d, and codes carry half their
 * range too much) and unpack(w, body), the 8 code vectors of a block. Scales are halves unless it defines LOAD_SCALES. Where it defines PANELS, that function of another
 * format walks its panels, whose codes are those of the packed form + PANEL_ADDS. Order of sums: kernels.h. */
#ifndef LOAD_SCALES
#define LOAD_SCALES f_load_halves
#endif
#ifndef PANEL_ADDS
#define PANEL_ADDS 0
#endif

/* One block: codes as bytes, scales and with HAS_MIN minimums as floats. */
typedef struct block32 {
    vec w[8];
    fvec d, m;
} block32;

PN_INLINE void load_packed(block32 *out, const uint8_t *group, int64_t b)
{
    unpack(out->w, group + body_at(b));
    out->d = LOAD_SCALES(group + head_at(b));
    if (HAS_MIN) out->m = f_load_halves(group + head_at(b) + VECTOR_BYTES / 2);
}

/* A panel has per block 8 code vectors, then d and with HAS_MIN m as floats. */
#define PANEL_BYTES ((8 + 1 + HAS_MIN) * VECTOR_BYTES)

#ifndef PANELS
PN_INLINE void load_panel(block32 *out, const uint8_t *panel, int64_t b)
{
    const uint8_t *at = panel + b * PANEL_BYTES;
    PN_UNROLL for (int g = 0; g < 8; g++) out->w[g] = v_load(at + g * VECTOR_BYTES);
    out->d = f_load(at + 8 * VECTOR_BYTES);
    if (HAS_MIN) out->m = f_load(at + 9 * VECTOR_BYTES);
}
#endif

typedef void (*load_block_fn)(block32 *out, const uint8_t *src, int64_t b);

/* One group of rows x n columns. */
PN_INLINE void any_tile(int n, load_block_fn load, const uint8_t *src, int64_t k, const columns *cols, int64_t row, row_mask mask)
{
    const uint8_t *x[TILE];
    fvec acc[TILE];
    PN_UNROLL for (int c = 0; c < n; c++)
    {
        x[c] = cols->x[c];
        acc[c] = f_zero();
    }
    for (int64_t b = 0; b < k / 32; b++) {
        const size_t at = (size_t)b * sizeof(pn_act32);
        vec sum[TILE];
        block32 block;
        if (n > 1 && load == load_packed) ask_ahead(src + body_at(b), BODY_BYTES);
        load(&block, src, b);
        block_dots(n, block.w, x, at, sum);
        PN_UNROLL for (int c = 0; c < n; c++)
        {
            const fvec dd = f_multiply(block.d, f_splat(x[c] + at + offsetof(pn_act32, d)));
            acc[c] = f_fma(f_from_units(sum[c]), dd, acc[c]);
#if HAS_MIN
            acc[c] = f_fma(block.m, f_splat(x[c] + at + offsetof(pn_act32, s)), acc[c]);
#endif
        }
    }
    PN_UNROLL for (int c = 0; c < n; c++) f_store_rows(cols->y[c] + row, mask, acc[c]);
}

PN_INLINE void tile(int n, const uint8_t *group, int64_t k, const columns *cols, int64_t row, row_mask mask)
{
    any_tile(n, load_packed, group, k, cols, row, mask);
}

#if CODE_BITS < 8
#define SCRATCH_BYTES(k) ((uint64_t)(k) / 32 * PANEL_BYTES)

#ifndef PANELS
PN_INLINE void panel_tile(int n, const uint8_t *panel, int64_t k, const columns *cols, int64_t row, row_mask mask)
{
    any_tile(n, load_panel, panel, k, cols, row, mask);
}
#endif

static const uint8_t *make_panel(uint8_t *panel, const uint8_t *group, int64_t k)
{
    for (int64_t b = 0; b < k / 32; b++) {
        block32 block;
        load_packed(&block, group, b);
        uint8_t *at = panel + b * PANEL_BYTES;
        PN_UNROLL for (int g = 0; PANEL_ADDS && g < 8; g++) block.w[g] = v_add_bytes(block.w[g], v_bytes(PANEL_ADDS));
        store_vectors(at, block.w, 8);
        f_store(at + 8 * VECTOR_BYTES, block.d);
        if (HAS_MIN) f_store(at + 9 * VECTOR_BYTES, block.m);
    }
    return panel;
}
#else
#define SCRATCH_BYTES(k) ((void)(k), UINT64_C(0))
#define panel_tile tile
PN_INLINE const uint8_t *make_panel(uint8_t *panel, const uint8_t *group, int64_t k) { return (void)panel, (void)k, group; }
#endif

#include "kernels/x86/walk_x86.h"
