/* gguf/names.c - sorted names. Knows bytes only. */
#include "gguf/header.h"

#include <stdlib.h>

int pn_str_compare(pn_str a, pn_str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static void swap(pn_name_entry *a, pn_name_entry *b)
{
    pn_name_entry t = *a;
    *a = *b;
    *b = t;
}

/* Restores "no child is greater" below entry i of a heap of n. */
static void sift(pn_name_entry *entries, size_t i, size_t n)
{
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= n) return;
        if (child + 1 < n && pn_str_compare(entries[child].name, entries[child + 1].name) < 0) child++;
        if (pn_str_compare(entries[i].name, entries[child].name) >= 0) return;
        swap(&entries[i], &entries[child]);
        i = child;
    }
}

/* A heap sort: some libraries' qsort is quadratic on chosen input, or allocates. */
static void sort(pn_name_entry *entries, size_t n)
{
    for (size_t i = n / 2; i > 0; i--) sift(entries, i - 1, n);
    for (size_t left = n; left > 1; left--) {
        swap(&entries[0], &entries[left - 1]);
        sift(entries, 0, left - 1);
    }
}

/* Takes the entries over, also on failure. */
static pinch_status finish(pn_name_entry **out, pn_name_entry *entries, size_t n, const char *file, const char *what, pinch_error *err)
{
    sort(entries, n);
    for (size_t i = 1; i < n; i++) {
        if (pn_str_compare(entries[i - 1].name, entries[i].name) != 0) continue;
        pinch_status status = pn_fail(err, PINCH_ERR_FORMAT, "%s: %s '%.*s' stands there twice", file, what, PN_SHOWN(entries[i].name));
        free(entries);
        return status;
    }
    *out = entries;
    return PINCH_OK;
}

pinch_status pn_index_values(pn_name_entry **out, const pn_gguf_value *values, size_t n, const char *file, pinch_error *err)
{
    pn_name_entry *entries = pn_alloc(n, sizeof *entries);
    if (!entries) return pn_fail_memory(err, "the index of metadata keys", n * sizeof *entries);
    for (size_t i = 0; i < n; i++) entries[i] = (pn_name_entry){values[i].key, i};
    return finish(out, entries, n, file, "metadata key", err);
}

pinch_status pn_index_tensors(pn_name_entry **out, const pn_tensor *tensors, size_t n, const char *file, pinch_error *err)
{
    pn_name_entry *entries = pn_alloc(n, sizeof *entries);
    if (!entries) return pn_fail_memory(err, "the index of tensors", n * sizeof *entries);
    for (size_t i = 0; i < n; i++) entries[i] = (pn_name_entry){tensors[i].name, i};
    return finish(out, entries, n, file, "tensor", err);
}

const pn_name_entry *pn_index_find(const pn_name_entry *entries, size_t n, pn_str name)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = pn_str_compare(entries[middle].name, name);
        if (order == 0) return &entries[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}
