/* kernels/kernels.h - the table of mat-mul kernels and the table of vector operations.
 *
 * Owns everything that is written for an instruction set. Kernels allocate nothing, know no threads, files or models:
 * they see pointers that are ready. The scalar kernel is the definition; kernels.def names every kernel once.
 *
 * ---- Order of float sums (docs/DESIGN.md, "Kernels") --------------------------------------------------------------
 * Each (row, column) owns one float accumulator that starts at +0 and takes the blocks of the row in ascending order.
 * Integer sums are exact in int32; float(I) rounds to nearest even; fma rounds once; f16 scales are used as float.
 *   weights with one scale per 32 (q4_0 q5_0 q8_0 iq4_nl mxfp4), act32:   acc = fma(float(I), dw*da, acc), I = sum (w - offset)*a
 *                                                         (mxfp4: dw = the E8M0 half, w the doubled table value)
 *   q4_1 q5_1, act32:   acc = fma(float(I), dw*da, acc); acc = fma(m, s, acc)         s from the activation block
 *   q1_0 q2_0 (128 or 64 weights per scale), act32:   u = float(I0)*da0; u = fma(Ij, daj, u) for the next act blocks; acc = fma(u, dw, acc)
 *   nvfp4 (64, a scale per 16), act32:   for each 32: u = float(I0)*dw0; u = fma(float(I1), dw1, u); acc = fma(u, da, acc)
 *   q4_k q5_k q2_k, act256:   x = d*float(I); x = fma(-dmin, float(M), x); acc = fma(x, da, acc)
 *                                                         I = sum sc_j*I_j, M = sum mn_j*S_j, all int32
 *   q3_k q6_k iq4_xs tq1_0 tq2_0, act256:   acc = fma(float(I), d*da, acc)            I = sum sc_j*I_j
 *   iq2_* iq3_*, act256:   acc = fma(float(I), (d*da)*c, acc), I = sum (2s+1)*I_j; c = 0.125 (iq2_*), 0.25 (iq3_xxs), 1 (iq3_s)
 *   iq1_s iq1_m, act256:   acc = fma(float(I), (d*da)*0.125, acc), I = sum (2s+1)*(8*I_j +- S_j)
 *   f32 f16 bf16, activations in float:   acc = fma(w, x, acc), k ascending
 * Any NaN counts as equal to any NaN. Denormals are kept: FTZ and DAZ are off in every thread. */
#ifndef PN_KERNELS_H
#define PN_KERNELS_H

#include "base/cpu.h"
#include "quant/quant.h"

typedef enum pn_promise {
    PN_MEANING, /* scalar: the definition */
    PN_EXACT,   /* bit-equal to scalar */
    PN_BOUNDED  /* within PN_BOUNDED_ERROR of scalar, relative to the largest result of the same call; why is stated beside it */
} pn_promise;
#define PN_BOUNDED_ERROR 0.01

/* One call of a mat-mul kernel: rows of a weight matrix times columns of activations. */
typedef struct pn_mm {
    const void *w;        /* the whole matrix in the kernel's layout (packed), or in file layout if the kernel has no pack */
    int64_t rows;         /* rows of the matrix: groups are padded, results are not */
    int64_t k;            /* row length: a multiple of the type's block */
    const void *const *x; /* n_cols activation rows in the weight type's pn_act format, 16-byte aligned */
    float *const *y;      /* n_cols result rows: y[c][r] for r in [row0, row1) is written, nothing else is */
    int64_t n_cols;
} pn_mm;

/* Computes rows [row0, row1). row0 is a multiple of the kernel's `rows`; row1 too, or the matrix's end.
 * `scratch`: scratch_bytes(k) bytes, 64-byte aligned, the calling thread's own. */
typedef void (*pn_mm_fn)(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch);

typedef struct pn_kernel {
    const char *name;    /* unique: "q4_k_16x8__avx512vnni"; scalar ones: "q4_k_1x1__scalar" */
    pn_type weight;
    const char *isa;     /* "scalar", "avx2", "avx512vnni", "neon", "dotprod" */
    int rows, cols;      /* tile */
    pn_promise promise;
    uint32_t needs;      /* pn_cpu_feature bits */
    /* Packing goes group by group: `rows` matrix rows become one group of group_bytes(k) bytes. Group g of a packed matrix starts at
     * g * group_bytes(k), which is a multiple of 64 (16 on 32-bit NEON-less builds too). NULL group_bytes: the file layout is used in place.
     * `src`: n_valid file rows one after the other; missing rows of the last group are packed as zero weights. */
    uint64_t (*group_bytes)(int64_t k);
    void (*pack)(void *dst, const void *src, int64_t n_valid, int64_t k);
    pn_mm_fn gemv;       /* n_cols == 1 */
    pn_mm_fn gemm;       /* n_cols >= 2 */
    uint64_t (*scratch_bytes)(int64_t k); /* NULL: none */
} pn_kernel;

/* All kernels that this build holds, in the order of kernels.def; NULL beyond the end. */
const pn_kernel *pn_kernel_at(size_t index);
/* Best kernel for a type under the given features: the last of kernels.def that qualifies and is not BOUNDED, or scalar. NULL: no kernel at all. */
const pn_kernel *pn_kernel_best(pn_type type, uint32_t features);
/* "TYPE=NAME": NAME is a kernel's name or an isa. On error says what there is. */
pinch_status pn_kernel_parse(const char *text, uint32_t features, pn_type *type, const pn_kernel **kernel, pinch_error *err);
/* Bytes of a matrix in the kernel's layout. */
bool pn_kernel_matrix_bytes(const pn_kernel *kernel, int64_t rows, int64_t k, uint64_t *bytes);

/* `--activations f32`: weights of any type in file layout against float activations. Dequantises a row, then acc = fma(w, x, acc), k
 * ascending, as f32. tile of 16 rows; scratch: 16*k floats. Bit-equal on every instruction set. w of pn_mm is the file layout. */
typedef struct pn_exact_mm {
    pn_mm mm;
    pn_type type;
} pn_exact_mm;

/* A causal convolution over rows that follow one another in one sequence. A row's channels are contiguous; y may be x or a gate. */
#define PN_MAX_TAPS 16
typedef struct pn_conv_rows {
    float *y;
    const float *x;
    const float *in_gate, *out_gate; /* NULL: none */
    int64_t y_stride, x_stride;      /* floats from one row to the next; the gates' is x_stride */
    float *tail;                     /* [n_taps - 1][stride]: what the rows before brought in, oldest first; updated */
    const float *taps;               /* [n_taps][stride], oldest first: the last one meets the row itself */
    const float *bias;               /* NULL: none */
    int64_t stride, n_rows, n;       /* n channels */
    int n_taps;                      /* 2 .. PN_MAX_TAPS */
    bool silu;
} pn_conv_rows;

/* A token of one head of a delta rule, as the operation of that name takes it. */
typedef struct pn_delta_token {
    const float *keys; /* [4][d_k]: key times decay, query times decay, key, decay */
    const float *v;    /* [d_v] */
    float *out;        /* [d_v] */
    float key_query;   /* key . query */
    float beta, scale; /* of what is written to the state, of out */
} pn_delta_token;

/* A selective scan of one head over rows that follow one another in one sequence. y may be x. */
#define PN_STRIP 16 /* channels of a strip of the state */
typedef struct pn_ssm_rows {
    float *y;
    const float *x;           /* [n] channels */
    const float *b, *c;       /* [d_state]: what comes in, what goes out */
    int64_t stride;           /* floats from one row to the next, of y, x, b and c */
    const float *decay, *step;/* [n_rows] */
    float skip;
    float *state;             /* pn_ssm_floats; updated */
    int64_t n_rows;
    int n, d_state;
} pn_ssm_rows;
static inline int64_t pn_ssm_floats(int64_t n, int64_t d_state) { return (n + PN_STRIP - 1) / PN_STRIP * PN_STRIP * d_state; }

/* ---- vector operations: one table per instruction set, all bit-equal to scalar; ops.def says what each does --------------- */

typedef struct pn_ops {
    const char *isa;
#define OP(result, name, ...) result (*name)(__VA_ARGS__);
#define OP_OF_CACHE(result, name, ...) result (*name[3])(__VA_ARGS__);
#include "kernels/ops.def"
#undef OP
#undef OP_OF_CACHE
} pn_ops;

#define PN_EXACT_ROWS 16
static inline uint64_t pn_exact_scratch(int64_t k) { return (uint64_t)k * PN_EXACT_ROWS * 4 + 64 + (uint64_t)k * 4; }

/* The best table for the given features; index 0.. walks all that this build holds and the features allow (scalar first), NULL beyond. */
const pn_ops *pn_ops_best(uint32_t features);
const pn_ops *pn_ops_at(size_t index, uint32_t features);

#endif
