/* base/casemap.c - lookups in the generated tables by binary search. */
#include "base/casemap.h"

typedef struct case_run { /* characters first, first + stride, ... first + length map to themselves + delta */
    uint32_t first : 21, length : 9, stride : 2;
    int32_t delta;
} case_run;
typedef struct case_special {
    uint16_t c, to[3]; /* 0 ends */
} case_special;

#include "base/casemap_tables.h"

unsigned pn_char_classes(uint32_t c)
{
    if (c < 128) return ascii_flags[c];
    if (c > 0x10ffff) return 0;
    const size_t page = flag_pages[flag_groups[c >> 12] * 16u + (c >> 8 & 15)];
    size_t low = flag_starts[page], high = flag_starts[page + 1];
    while (high - low > 1) {
        size_t middle = (low + high) / 2;
        if ((uint32_t)flag_runs[middle] >> 8 <= (c & 0xff)) low = middle;
        else high = middle;
    }
    return flag_sets[flag_runs[low] & 0xff];
}

typedef struct case_table {
    const case_run *runs;
    size_t n_runs;
    const case_special *special;
    size_t n_special;
} case_table;

static size_t look_up(const case_table *t, uint32_t c, uint32_t out[3])
{
    size_t low = 0, high = t->n_special;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->special[middle].c < c) low = middle + 1;
        else high = middle;
    }
    if (low < t->n_special && t->special[low].c == c && t->special[low].to[0]) {
        for (int i = 0; i < 3; i++) out[i] = t->special[low].to[i];
        return out[2] ? 3 : 2;
    }
    low = 0;
    high = t->n_runs;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if ((uint32_t)t->runs[middle].first + t->runs[middle].length < c) low = middle + 1;
        else high = middle;
    }
    if (low == t->n_runs) return 0;
    const uint32_t first = t->runs[low].first, stride = t->runs[low].stride;
    if (first > c || (c - first) % stride) return 0;
    out[0] = (uint32_t)((int32_t)c + t->runs[low].delta);
    return 1;
}

size_t pn_char_case(uint32_t c, pn_case how, uint32_t out[3])
{
    static const case_table tables[] = {
        {upper_runs, PN_COUNT(upper_runs), upper_special, PN_COUNT(upper_special)},
        {lower_runs, PN_COUNT(lower_runs), lower_special, PN_COUNT(lower_special)},
        {title_runs, PN_COUNT(title_runs), title_special, PN_COUNT(title_special)},
        {fold_runs, PN_COUNT(fold_runs), fold_special, PN_COUNT(fold_special)},
    };
    static const pn_case fallback[] = {PN_CASE_UPPER, PN_CASE_LOWER, PN_CASE_UPPER, PN_CASE_LOWER}; /* title and fold hold differences only */
    size_t n = look_up(&tables[how], c, out);
    if (!n && fallback[how] != how) n = look_up(&tables[fallback[how]], c, out);
    if (n) return n;
    out[0] = c;
    return 1;
}
