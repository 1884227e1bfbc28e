/* kernels/x86/rows_x86.h - what the x86 kernels share whatever their vector width: columns of a tile, file rows to pack, exported names.
 *
 * Knows no instruction set and no weight format. */
#ifndef PN_X86_ROWS_H
#define PN_X86_ROWS_H

#include "kernels/registry.h"

#define PN_INLINE static inline __attribute__((always_inline))
/* Loops over columns and code vectors must unroll fully, or their vectors live in memory. */
#if defined(__clang__)
/* clang also warns of loops whose count is known only where it has not inlined yet, and of every loop without optimisation. */
#pragma clang diagnostic ignored "-Wpass-failed"
#if __has_feature(undefined_behavior_sanitizer) || __has_feature(address_sanitizer)
/* A check per operation times full unrolling takes clang minutes a file; nobody times these builds. */
#define PN_UNROLL
#define PN_NO_UNROLL
#else
#define PN_UNROLL _Pragma("clang loop unroll(full)")
#define PN_NO_UNROLL _Pragma("clang loop unroll(disable)")
#endif
#else
#define PN_UNROLL _Pragma("GCC unroll 64")
#define PN_NO_UNROLL _Pragma("GCC unroll 1")
#endif

enum { max_columns = 8, max_rows = 16 };

/* Activations and packed weights are read through types that may alias any other. */
typedef int32_t __attribute__((may_alias)) pn_i32_alias;
typedef float __attribute__((may_alias)) pn_f32_alias;

/* Makes the compiler leave what it stored at p in memory and load it again. */
PN_INLINE void hide(void *p) { __asm__("" : : "r"(p) : "memory"); }

/* n, of which the compiler knows nothing: gcc peels a loop of two completely, whatever its pragma says. */
PN_INLINE int opaque(int n)
{
    __asm__("" : "+r"(n));
    return n;
}

/* Makes the compiler keep this very sum: gcc otherwise reorders long integer sums into trees, whose leaves do not fit the registers. */
#define KEEP(v) __asm__("" : "+x"(v))

/* Asks for n_bytes that several columns will wait for some 2 KB from now: they compute too long for the hardware to look that far ahead. May point
 * beyond the matrix. Measured: docs/SPEED.md, "x86 kernels". */
PN_INLINE void ask_ahead(const uint8_t *p, int n_bytes)
{
    PN_UNROLL for (int i = 0; i < n_bytes; i += 64) __builtin_prefetch((const void *)((uintptr_t)p + 2048 + (uintptr_t)i));
}

/* The columns of one tile. A tile that is not full repeats its last column: it computes and writes the same value twice. */
typedef struct columns {
    const uint8_t *x[max_columns];
    float *y[max_columns];
} columns;

PN_INLINE void columns_take(columns *cols, const pn_mm *mm, int64_t first, int n)
{
    for (int c = 0; c < n; c++) {
        const int64_t i = pn_min64(first + c, mm->n_cols - 1);
        cols->x[c] = mm->x[i];
        cols->y[c] = mm->y[i];
    }
}

/* File rows on their way into a group, walked block by block. */
typedef struct pack_rows {
    const uint8_t *at[max_rows];
    size_t step[max_rows];
} pack_rows;

/* What the missing rows of the last group are read from: no block packed here is larger. */
extern const uint8_t pn_zero_block[256];

PN_INLINE void pack_begin(pack_rows *rows, int n_rows, const void *src, int64_t n_valid, size_t row_bytes, size_t block_bytes)
{
    for (int r = 0; r < n_rows; r++) {
        const bool valid = r < n_valid;
        rows->at[r] = valid ? (const uint8_t *)src + (size_t)r * row_bytes : pn_zero_block;
        rows->step[r] = valid ? block_bytes : 0;
    }
}
PN_INLINE void pack_next(pack_rows *rows, int n_rows)
{
    for (int r = 0; r < n_rows; r++) rows->at[r] += rows->step[r];
}

/* Walks over panels that several formats make: all columns of the rows [row, row_end) of one group. Codes are weights + 16, or with minimums as in the file. */
typedef void pn_panels(const pn_mm *mm, const uint8_t *panel, int64_t row, int64_t row_end);
pn_panels pn_q5_0__avx2_panels, pn_q5_0__avx512vnni_panels, pn_q5_1__avx512vnni_panels, pn_q4_k__avx512vnni_panels;

#define PN_PANELS_X86(weight, isa) \
    void pn_##weight##__##isa##_panels(const pn_mm *mm, const uint8_t *panel, int64_t row, int64_t row_end) { group_panel(mm, panel, row, row_end); }

/* The functions that kernels.def names. */
#define PN_KERNEL_X86(weight, isa)                                                                                                            \
    uint64_t pn_##weight##__##isa##_group_bytes(int64_t k) { return group_bytes(k); }                                                         \
    void pn_##weight##__##isa##_pack(void *dst, const void *src, int64_t n_valid, int64_t k) { pack(dst, src, n_valid, k); }                  \
    uint64_t pn_##weight##__##isa##_scratch(int64_t k) { return scratch_bytes(k); }                                                           \
    void pn_##weight##__##isa##_gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { gemv(mm, row0, row1, scratch); }           \
    void pn_##weight##__##isa##_gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch) { gemm(mm, row0, row1, scratch); }

#endif
