/* token/strings.c - building the index of a string array. */
#include "token/strings.h"

#include <stdlib.h>

static pinch_status read_offsets(pn_strings *s, const pn_gguf_value *array, const char *key, pinch_error *err)
{
    uint64_t cursor = 0;
    pn_str text;
    uint32_t n = 0;
    while (n < s->n && pn_gguf_next_string(array, &cursor, &text)) s->offset[n++] = (uint32_t)(text.p - s->data);
    if (n < s->n) return pn_fail(err, PINCH_ERR_FORMAT, "%s: string %" PRIu32 " of %" PRIu32 " cannot be read", key, n, s->n);
    return PINCH_OK;
}

pinch_status pn_strings_open(pn_strings *s, const pn_gguf_value *array, const char *key, pinch_error *err)
{
    if (array->kind != PN_GGUF_ARRAY || (array->count && array->item != PN_GGUF_STRING)) return pn_fail(err, PINCH_ERR_FORMAT, "%s is not an array of strings", key);
    if (array->count > PN_STRINGS_MAX || array->bytes > UINT32_MAX)
        return pn_fail(err, PINCH_ERR_UNSUPPORTED, "%s has %" PRIu64 " strings in %" PRIu64 " bytes; at most %d strings in 4 GiB are taken", key, array->count,
                       array->bytes, PN_STRINGS_MAX);
    uint32_t slots = 16;
    while (slots < array->count + array->count / 2) slots *= 2;
    *s = (pn_strings){.data = (const char *)array->data, .n = (uint32_t)array->count, .mask = slots - 1, .number_mask = slots - 1};
    s->offset = pn_alloc(s->n, sizeof *s->offset);
    s->slot = pn_alloc_zero(slots, sizeof *s->slot);
    if (!s->offset || !s->slot) return pn_fail_memory(err, key, ((uint64_t)s->n + slots) * 4);
    return read_offsets(s, array, key, err);
}

void pn_strings_close(pn_strings *s)
{
    free(s->offset);
    free(s->slot);
    *s = (pn_strings){0};
}

uint64_t pn_strings_bytes(const pn_strings *s) { return s->slot ? ((uint64_t)s->n + s->mask + 1) * 4 : 0; }

bool pn_strings_add(pn_strings *s, uint32_t i, const pn_key *key, int32_t *earlier)
{
    enum { STEPS_PER_STRING = 32 }; /* a real vocabulary takes about 1.5 */
    const uint64_t allowed = 4096 + (uint64_t)STEPS_PER_STRING * s->n;
    const uint32_t tag = pn_strings_tag(s, key->hash);
    *earlier = -1;
    uint32_t at = (uint32_t)key->hash & s->mask;
    for (; s->slot[at]; at = (at + 1) & s->mask) {
        const uint32_t other = (s->slot[at] & s->number_mask) - 1;
        if (++s->probes > allowed) return false;
        if ((s->slot[at] & ~s->number_mask) != tag || !pn_key_is(key, pn_strings_at(s, other))) continue;
        *earlier = (int32_t)other;
        return true;
    }
    s->slot[at] = tag | (i + 1);
    return true;
}
