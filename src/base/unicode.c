/* base/unicode.c - look-ups in the generated tables.
 *
 * Kinds: a page of block_index, which page_index names, names blocks of nibbles, the even code point in the low one; equal pages and blocks are one.
 * Lower case: run {first, count, stride, delta} maps first, first + stride, ... (count of them) to themselves + delta; runs ascend and do not overlap. */
#include "base/unicode.h"

#include "base/unicode_tables.h"

pn_kind pn_unicode_kind(uint32_t c)
{
    if (c > 0x10ffff) return PN_KIND_NONE;
    const uint32_t page = page_index[c / PAGE_SIZE];
    const uint32_t block = block_index[page * (PAGE_SIZE / BLOCK_SIZE) + c % PAGE_SIZE / BLOCK_SIZE];
    const uint8_t pair = block_data[block * (BLOCK_SIZE / 2) + c % BLOCK_SIZE / 2];
    return (pn_kind)(c & 1 ? pair >> 4 : pair & 15);
}

uint32_t pn_unicode_lower(uint32_t c)
{
    size_t low = 0, high = N_LOWER;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (lower_runs[middle].first <= c) low = middle + 1;
        else high = middle;
    }
    if (low == 0) return c;
    const lower_run *r = &lower_runs[low - 1];
    const uint32_t offset = c - r->first;
    if (offset % r->stride || offset / r->stride >= r->count) return c;
    return c + (uint32_t)r->delta;
}
