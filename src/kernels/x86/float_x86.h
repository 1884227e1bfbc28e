/* kernels/x86/float_x86.h - mat-mul of weights that are floats of 4 or 2 bytes and activations in float.
 *
 * A template: the file of a format includes it after words and float_tile_x86.h, and after defining ELEMENT (bytes), load_weights(p), one of each row as
 * float, and store_units(out, v), which stores a vector of 32-bit units of the rows; or instead of it PACK, the pack function of a format of the same
 * ELEMENT. Packed group: for each k the rows' weights, the end padded.
 * A single column takes several groups at once, since one row is one chain of fused multiply-adds. */

static uint64_t group_bytes(int64_t k) { return pn_round_up((uint64_t)k * LANES * ELEMENT, 64); }

#ifdef PACK
static void pack(void *dst, const void *src, int64_t n_valid, int64_t k) { PACK(dst, src, n_valid, k); }
#else
/* Once a model: small code. */
static __attribute__((cold)) void pack(void *dst, const void *src, int64_t n_valid, int64_t k)
{
    uint8_t *out = dst;
    const int64_t per_step = 32 / ELEMENT;
    pack_rows rows;
    pack_begin(&rows, LANES, src, n_valid, (size_t)k * ELEMENT, 32);
    int64_t at = 0;
    for (; at + per_step <= k; at += per_step, pack_next(&rows, LANES)) {
        vec v[8];
        pack_32(v, &rows, 0);
        PN_UNROLL for (int i = 0; i < 8; i++) store_units(out + at * LANES * ELEMENT + i * LANES * 4, v[i]);
    }
    for (int64_t i = 0; at < k; at++, i++)
        for (int r = 0; r < LANES; r++) memcpy(out + (at * LANES + r) * ELEMENT, rows.at[r] + i * ELEMENT, ELEMENT);
    memset(out + k * LANES * ELEMENT, 0, (size_t)(group_bytes(k) - (uint64_t)k * LANES * ELEMENT));
}
#endif

/* n columns x as many groups at a time as n_groups says while there are so many. */
PN_INLINE void rows_of_columns(int n, int n_groups, const pn_mm *mm, const columns *cols, int64_t row0, int64_t row1)
{
    const uint64_t step = group_bytes(mm->k);
    const uint8_t *group = (const uint8_t *)mm->w + (uint64_t)(row0 / LANES) * step;
    int64_t row = row0;
    for (; row + (n_groups - 1) * LANES < row1; row += n_groups * LANES, group += (uint64_t)n_groups * step)
        float_tile(n, n_groups, load_weights, ELEMENT, group, step, mm->k, cols, row, row1);
    for (; row < row1; row += LANES, group += step) float_tile(n, 1, load_weights, ELEMENT, group, step, mm->k, cols, row, row1);
}

static void gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    (void)scratch;
    columns cols;
    columns_take(&cols, mm, 0, 1);
    rows_of_columns(1, FLOAT_GEMV_GROUPS, mm, &cols, row0, row1);
}

#define BAND (2 * FLOAT_GROUPS * LANES)

/* Groups outside, columns inside: weights are read from memory once. */
static void gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    (void)scratch;
    for (int64_t row = row0; row < row1; row += BAND) {
        const int64_t end = pn_min64(row + BAND, row1);
        for (int64_t c = 0; c < mm->n_cols; c += FLOAT_TILE) {
            columns cols;
            const int n = mm->n_cols - c > FLOAT_TILE / 2 ? FLOAT_TILE : FLOAT_TILE / 2;
            columns_take(&cols, mm, c, n);
            if (n == FLOAT_TILE) rows_of_columns(FLOAT_TILE, FLOAT_GROUPS, mm, &cols, row, end);
            else rows_of_columns(FLOAT_TILE / 2, 2 * FLOAT_GROUPS, mm, &cols, row, end);
        }
    }
}

static uint64_t scratch_bytes(int64_t k)
{
    (void)k;
    return 0;
}
