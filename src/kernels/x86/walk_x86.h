/* kernels/x86/walk_x86.h - the walk over row groups and column tiles.
 *
 * Last part of a template: needs group_bytes, tile, make_panel, panel_tile (or PANELS, which walks them) and SCRATCH_BYTES of the including file. Up to
 * DIRECT_COLUMNS columns are computed straight from the packed form; above, the rows are unpacked once into a panel and all tiles read that. A single column
 * alone is direct where ONLY_PANELS is defined. */
static void gemv(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    (void)scratch;
    const uint64_t step = group_bytes(mm->k);
    const uint8_t *group = (const uint8_t *)mm->w + (uint64_t)(row0 / LANES) * step;
    columns cols;
    columns_take(&cols, mm, 0, 1);
    for (int64_t row = row0; row < row1; row += LANES, group += step) tile(1, group, mm->k, &cols, row, rows_mask(row, row1));
}

#ifndef ONLY_PANELS
static void group_direct(const pn_mm *mm, const uint8_t *group, int64_t row, row_mask mask)
{
    for (int64_t c = 0; c < mm->n_cols; c += DIRECT_TILE) {
        columns cols;
        const int n = mm->n_cols - c > DIRECT_TILE / 2 ? DIRECT_TILE : DIRECT_TILE / 2;
        columns_take(&cols, mm, c, n);
        if (n == DIRECT_TILE) tile(DIRECT_TILE, group, mm->k, &cols, row, mask);
        else tile(DIRECT_TILE / 2, group, mm->k, &cols, row, mask);
    }
}
#endif

#ifndef PANELS
#define PANELS group_panel
static void group_panel(const pn_mm *mm, const uint8_t *panel, int64_t row, int64_t row_end)
{
    const row_mask mask = rows_mask(row, row_end);
    for (int64_t c = 0; c < mm->n_cols; c += TILE) {
        columns cols;
        const int n = mm->n_cols - c > TILE / 2 ? TILE : TILE / 2;
        columns_take(&cols, mm, c, n);
        if (n == TILE) panel_tile(TILE, panel, mm->k, &cols, row, mask);
        else panel_tile(TILE / 2, panel, mm->k, &cols, row, mask);
    }
}
#endif

static void gemm(const pn_mm *mm, int64_t row0, int64_t row1, void *scratch)
{
    const uint64_t step = group_bytes(mm->k);
    const uint8_t *group = (const uint8_t *)mm->w + (uint64_t)(row0 / LANES) * step;
    for (int64_t row = row0; row < row1; row += LANES, group += step) {
#ifndef ONLY_PANELS
        if (mm->n_cols <= DIRECT_COLUMNS) {
            group_direct(mm, group, row, rows_mask(row, row1));
            continue;
        }
#endif
        PANELS(mm, make_panel(scratch, group, mm->k), row, row1);
    }
}

static uint64_t scratch_bytes(int64_t k) { return SCRATCH_BYTES(k); }
