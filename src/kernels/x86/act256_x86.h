/* kernels/x86/act256_x86.h - mat-mul of weights in blocks of 256 with integer sub-block scales and activations in pn_act256.
 *
 * A template: the file of a format includes it after words, layout and dots; the layout defines SUB (weights per sub-block scale), CODE_BITS, HAS_MIN (dmin and
 * minimums per 32; else codes carry half their range too much), sub_scale(body, j, i), of sub-block j + i as int32, sub_codes(body, j, i, g), its code
 * vector g, and minimum_pairs(body, j). Loops take DIRECT_TURN sub-blocks a turn, with constant i: small code, and few shifts by j. Order of sums: kernels.h.
 * Panel of a row group: per block N_SUB x [SUB / 4 vectors of codes | scales], then d as float and with HAS_MIN dmin and 4 vectors of
 * minimums. It makes all formats one loop that is short enough for the sums to stay in registers; where PANELS is defined, that of another format. */
#ifndef DIRECT_TURN
#define DIRECT_TURN 2
#endif
#define N_SUB (256 / SUB)
#define SUB_BYTES ((SUB / 4 + 1) * VECTOR_BYTES)
#define END_BYTES ((HAS_MIN ? 6 : 1) * VECTOR_BYTES)
#define PANEL_BYTES (N_SUB * SUB_BYTES + END_BYTES)

/* acc + (d*I - dmin*M) * da, or acc + I * (d*da); M: minimums times the activations' sums. */
PN_INLINE fvec block_end(fvec acc, vec total, fvec d, fvec dmin, const vec *minimums, const uint8_t *act)
{
    const fvec da = f_splat(act + offsetof(pn_act256, d)), value = f_from_units(total);
#if HAS_MIN
    vec m = v_zero();
    PN_UNROLL for (int j = 0; j < 4; j++) m = dot_i16(m, minimums[j], act + offsetof(pn_act256, bsum32) + j * 4);
    return f_fma(f_fnma(dmin, f_from_units(m), f_multiply(d, value)), da, acc);
#else
    (void)dmin, (void)minimums;
    return f_fma(value, f_multiply(d, da), acc);
#endif
}

/* One group of rows x n columns straight from the packed form. */
PN_INLINE void tile(int n, const uint8_t *group, int64_t k, const columns *cols, int64_t row, row_mask mask)
{
    const int turn = n == 1 ? 4 : DIRECT_TURN; /* a single column waits for memory: more code at a time reads further ahead */
    fvec acc[TILE];
    PN_UNROLL for (int c = 0; c < n; c++) acc[c] = f_zero();
    for (int64_t b = 0; b < k / 256; b++) {
        const uint8_t *head = group + head_at(b), *body = group + body_at(b);
        const size_t at = (size_t)b * sizeof(pn_act256);
        vec total[TILE], minimums[4];
        _Alignas(64) int32_t starts[TILE][16];
#if !HAS_MIN
        PN_UNROLL for (int c = 0; c < n; c++) starts_store(starts[c], cols->x[c] + at);
        hide(starts);
#endif
        PN_UNROLL for (int c = 0; c < n; c++) total[c] = v_zero();
        PN_NO_UNROLL for (int j = 0, end = opaque(N_SUB); j < end; j += turn)
        {
            PN_UNROLL for (int i = 0; i < turn; i++)
            {
                vec w[SUB / 4];
                PN_UNROLL for (int g = 0; g < SUB / 4; g++) w[g] = sub_codes(body, j, i, g);
                const vec scale = scale_word(sub_scale(body, j, i));
                sub_dots(n, w, scale, cols->x, at + (size_t)(j + i) * SUB, (const int32_t(*)[16])starts, j + i, total);
            }
        }
#if HAS_MIN
        PN_UNROLL for (int j = 0; j < 4; j++) minimums[j] = minimum_pairs(body, j);
#endif
        const fvec d = f_load_halves(head), dmin = HAS_MIN ? f_load_halves(head + VECTOR_BYTES / 2) : d;
        PN_UNROLL for (int c = 0; c < n; c++) acc[c] = block_end(acc[c], total[c], d, dmin, minimums, cols->x[c] + at);
    }
    PN_UNROLL for (int c = 0; c < n; c++) f_store_rows(cols->y[c] + row, mask, acc[c]);
}

static const uint8_t *make_panel(uint8_t *scratch, const uint8_t *group, int64_t k)
{
    uint8_t *panel = scratch;
    for (int64_t b = 0; b < k / 256; b++) {
        const uint8_t *head = group + head_at(b), *body = group + body_at(b);
        PN_NO_UNROLL for (int j = 0, end = opaque(N_SUB); j < end; j += 2)
        {
            PN_UNROLL for (int i = 0; i < 2; i++, panel += SUB_BYTES)
            {
                vec w[SUB / 4];
                PN_UNROLL for (int g = 0; g < SUB / 4; g++) w[g] = sub_codes(body, j, i, g);
                store_vectors(panel, w, SUB / 4);
                v_store(panel + SUB / 4 * VECTOR_BYTES, scale_word(sub_scale(body, j, i)));
            }
        }
        f_store(panel, f_load_halves(head));
#if HAS_MIN
        f_store(panel + VECTOR_BYTES, f_load_halves(head + VECTOR_BYTES / 2));
        PN_UNROLL for (int j = 0; j < 4; j++) v_store(panel + (2 + j) * VECTOR_BYTES, minimum_pairs(body, j));
#endif
        panel += END_BYTES;
    }
    return scratch;
}

#ifndef PANELS
/* One group of rows x n columns from the panel. Sums of whole blocks live in memory: they are touched once in 64 dot products. */
PN_INLINE void panel_tile(int n, const uint8_t *panel, int64_t k, const columns *cols, int64_t row, row_mask mask)
{
    const uint8_t *x[TILE];
    _Alignas(64) float acc[TILE][LANES];
    PN_UNROLL for (int c = 0; c < n; c++)
    {
        x[c] = cols->x[c];
        f_store(acc[c], f_zero());
    }
    size_t at = 0;
    for (int64_t b = 0; b < k / 256; b++, at += sizeof(pn_act256) - 256) {
        vec total[TILE], minimums[4];
        _Alignas(64) int32_t starts[TILE][16];
#if !HAS_MIN
        PN_UNROLL for (int c = 0; c < n; c++) starts_store(starts[c], x[c] + at);
        hide(starts);
#endif
        PN_UNROLL for (int c = 0; c < n; c++) total[c] = v_zero();
        PN_NO_UNROLL for (int j = 0; j < N_SUB; j++, panel += SUB_BYTES, at += SUB)
        {
            vec w[SUB / 4];
            PN_UNROLL for (int g = 0; g < SUB / 4; g++) w[g] = v_load(panel + g * VECTOR_BYTES);
            sub_dots(n, w, v_load(panel + SUB / 4 * VECTOR_BYTES), x, at, (const int32_t(*)[16])starts, j, total);
        }
#if HAS_MIN
        PN_UNROLL for (int j = 0; j < 4; j++) minimums[j] = v_load(panel + (2 + j) * VECTOR_BYTES);
#endif
        const fvec d = f_load(panel), dmin = HAS_MIN ? f_load(panel + VECTOR_BYTES) : d;
        panel += END_BYTES;
        hide(acc);
        PN_UNROLL for (int c = 0; c < n; c++)
            f_store(acc[c], block_end(f_load(acc[c]), total[c], d, dmin, minimums, x[c] + (at - 256)));
    }
    PN_UNROLL for (int c = 0; c < n; c++) f_store_rows(cols->y[c] + row, mask, f_load(acc[c]));
}
#endif

#define SCRATCH_BYTES(k) ((uint64_t)(k) / 256 * PANEL_BYTES)
#include "kernels/x86/walk_x86.h"
