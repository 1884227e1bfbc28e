/* kernels/neon/tile.h - what all packed NEON kernels share: walking groups of 8 rows, gathering blocks of 8 rows for packing.
 *
 * Knows no format: a format gives two tile functions (8 rows x 1 column, 8 rows x 4 columns) and a pack function for one block. */
#ifndef PN_NEON_TILE_H
#define PN_NEON_TILE_H

#include "kernels/kernels.h"
#include "kernels/registry.h"
#include "quant/codes.h"

#define TILE_ROWS 8
#define TILE_COLS 4

/* y[8]: one column; x: its activation row. `w`: a packed group. */
typedef void (*tile_1_fn)(const uint8_t *w, const uint8_t *x, int64_t k, float *y);
/* y[4][8] */
typedef void (*tile_4_fn)(const uint8_t *w, const uint8_t *const x[TILE_COLS], int64_t k, float *y);

static inline const uint8_t *tile_group(const pn_mm *mm, int64_t row, uint64_t group_bytes)
{
    return (const uint8_t *)mm->w + (uint64_t)(row / TILE_ROWS) * group_bytes;
}

static inline void tile_store(const pn_mm *mm, int64_t column, int64_t row, int64_t row1, const float *y)
{
    float *to = mm->y[column] + row;
    if (row1 - row >= TILE_ROWS) memcpy(to, y, TILE_ROWS * sizeof *y);
    else for (int64_t i = 0; i < row1 - row; i++) to[i] = y[i];
}

static inline void tile_gemv(const pn_mm *mm, int64_t row0, int64_t row1, uint64_t group_bytes, tile_1_fn tile_1)
{
    float y[TILE_ROWS];
    for (int64_t row = row0; row < row1; row += TILE_ROWS) {
        tile_1(tile_group(mm, row, group_bytes), mm->x[0], mm->k, y);
        tile_store(mm, 0, row, row1, y);
    }
}

/* Three columns left: a tile of four with the last one twice costs less than three single ones. */
static inline void tile_gemm(const pn_mm *mm, int64_t row0, int64_t row1, uint64_t group_bytes, tile_1_fn tile_1, tile_4_fn tile_4)
{
    float y[TILE_COLS * TILE_ROWS];
    for (int64_t row = row0; row < row1; row += TILE_ROWS) {
        const uint8_t *w = tile_group(mm, row, group_bytes);
        for (int64_t c = 0; c < mm->n_cols;) {
            const int64_t left = pn_min64(mm->n_cols - c, TILE_COLS), n = left >= 3 ? left : 1;
            const uint8_t *x[TILE_COLS];
            for (int64_t i = 0; i < TILE_COLS; i++) x[i] = mm->x[c + pn_min64(i, n - 1)];
            if (n > 1) tile_4(w, (const uint8_t *const *)x, mm->k, y);
            else tile_1(w, x[0], mm->k, y);
            for (int64_t i = 0; i < n; i++, c++) tile_store(mm, c, row, row1, y + i * TILE_ROWS);
        }
    }
}

/* The five functions that kernels.def wants of a format, made of its block size and its static functions tile_1, tile_4 and
 * pack_block(dst, src, row_bytes, n_valid): one block of 8 rows. */
#define TILE_KERNEL(weight, isa, block, file_bytes, packed_bytes)                                                            \
    uint64_t pn_##weight##__##isa##_group_bytes(int64_t k) { return pn_round_up((uint64_t)(k / (block)) * (uint64_t)(packed_bytes), 64); } \
    uint64_t pn_##weight##__##isa##_scratch(int64_t k) { return (void)k, 0; }                                                \
    void pn_##weight##__##isa##_pack(void *dst, const void *src, int64_t n_valid, int64_t k)                                 \
    {                                                                                                                        \
        const uint64_t row_bytes = (uint64_t)(k / (block)) * (file_bytes), used = (uint64_t)(k / (block)) * (uint64_t)(packed_bytes);  \
        for (int64_t b = 0; b < k / (block); b++)                                                                            \
            pack_block((uint8_t *)dst + b * (int64_t)(packed_bytes), (const uint8_t *)src + b * (file_bytes), row_bytes, n_valid);    \
        memset((uint8_t *)dst + used, 0, pn_##weight##__##isa##_group_bytes(k) - used);                                      \
    }                                                                                                                        \
    void pn_##weight##__##isa##_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)                             \
    {                                                                                                                        \
        (void)scratch;                                                                                                       \
        tile_gemv(mm, row0, row1, pn_##weight##__##isa##_group_bytes(mm->k), tile_1);                                        \
    }                                                                                                                        \
    void pn_##weight##__##isa##_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)                             \
    {                                                                                                                        \
        (void)scratch;                                                                                                       \
        tile_gemm(mm, row0, row1, pn_##weight##__##isa##_group_bytes(mm->k), tile_1, tile_4);                                \
    }

/* ---- packing ---- */

/* One block of each of 8 rows as codes; rows beyond n_valid are zero weights. */
typedef struct tile_codes {
    pn_codes row[TILE_ROWS];
    uint16_t d[TILE_ROWS], m[TILE_ROWS]; /* halves, as in the file: the scale; the minimum or its scale */
} tile_codes;

static inline void tile_read(tile_codes *t, void (*read)(pn_codes *, const uint8_t *), bool super, const uint8_t *src, uint64_t row_bytes, int64_t n_valid)
{
    memset(t, 0, sizeof *t);
    for (int64_t r = 0; r < n_valid; r++) {
        pn_codes *c = &t->row[r];
        read(c, src + (uint64_t)r * row_bytes);
        t->d[r] = pn_f32_to_f16(super ? c->d : c->part[0]);
        t->m[r] = pn_f32_to_f16(super ? c->dmin : c->m);
    }
}

#endif
