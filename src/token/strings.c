/* token/strings.c - building the index of a string array. */
#include "token/strings.h"

#include <stdlib.h>

/* Without the 8 bytes of each length. */
static uint64_t copied_bytes(const pn_gguf_value *array) { return array->bytes > array->count * 8 ? array->bytes - array->count * 8 : 0; }

/* Lengths that have changed since the file was checked may promise more than there is. */
static pinch_status copy_strings(pn_strings *s, const pn_gguf_value *array, const char *key, pinch_error *err)
{
    const uint64_t room = copied_bytes(array);
    uint64_t cursor = 0;
    pn_str text;
    s->offset[0] = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!pn_gguf_next_string(array, &cursor, &text) || text.n > room - s->offset[i])
            return pn_fail(err, PINCH_ERR_FORMAT, "%s: string %" PRIu32 " of %" PRIu32 " ends beyond the array", key, i, s->n);
        memcpy(s->data + s->offset[i], text.p, text.n);
        s->offset[i + 1] = s->offset[i] + (uint32_t)text.n;
    }
    return PINCH_OK;
}

pinch_status pn_strings_open(pn_strings *s, const pn_gguf_value *array, const char *key, pinch_error *err)
{
    if (array->kind != PN_GGUF_ARRAY || (array->count && array->item != PN_GGUF_STRING)) return pn_fail(err, PINCH_ERR_FORMAT, "%s is not an array of strings", key);
    if (array->count > PN_STRINGS_MAX || array->bytes > UINT32_MAX)
        return pn_fail(err, PINCH_ERR_UNSUPPORTED, "%s has %" PRIu64 " strings in %" PRIu64 " bytes; at most %d strings in 4 GiB are taken", key, array->count,
                       array->bytes, PN_STRINGS_MAX);
    const uint32_t n = (uint32_t)array->count, slots = n + n / 3 + 16;
    *s = (pn_strings){.n = n, .n_slots = slots, .number_mask = 1};
    while (s->number_mask < n) s->number_mask = s->number_mask * 2 + 1;
    s->data = pn_alloc(copied_bytes(array), 1);
    s->offset = pn_alloc((uint64_t)s->n + 1, sizeof *s->offset);
    s->slot = pn_alloc_zero(slots, sizeof *s->slot);
    if (!s->data || !s->offset || !s->slot) return pn_fail_memory(err, key, copied_bytes(array) + ((uint64_t)s->n + 1 + slots) * 4);
    return copy_strings(s, array, key, err);
}

void pn_strings_close(pn_strings *s)
{
    free(s->data);
    free(s->offset);
    free(s->slot);
    *s = (pn_strings){0};
}

uint64_t pn_strings_bytes(const pn_strings *s) { return s->slot ? s->offset[s->n] + ((uint64_t)s->n + 1 + s->n_slots) * 4 : 0; }

/* False: too many steps. */
static bool add(pn_strings *s, uint32_t i, const pn_key *key, pn_equal *equal)
{
    enum { STEPS_PER_STRING = 32 }; /* a real vocabulary takes about 1 */
    const uint64_t allowed = 4096 + (uint64_t)STEPS_PER_STRING * s->n;
    const uint32_t tag = pn_strings_tag(s, key->hash);
    uint32_t at = pn_strings_slot(s, key->hash);
    for (; s->slot[at]; at = pn_strings_next(s, at)) {
        const uint32_t other = (s->slot[at] & s->number_mask) - 1;
        if (++s->probes > allowed) return false;
        if ((s->slot[at] & ~s->number_mask) != tag || !pn_key_is(key, pn_strings_at(s, other))) continue;
        *equal = (pn_equal){other, i};
        return true;
    }
    s->slot[at] = tag | (i + 1);
    return true;
}
/* False: the string is left out. */
static bool key_at(const pn_strings *s, uint32_t i, bool pairs, pn_key *key)
{
    const pn_str text = pn_strings_at(s, i);
    if (!pairs) {
        *key = pn_key_of(text);
        return text.n > 0;
    }
    const char *space = text.n > 1 ? memchr(text.p + 1, ' ', text.n - 1) : NULL;
    if (!space) return false;
    const pn_str left = {text.p, (size_t)(space - text.p)}, right = {space + 1, text.n - left.n - 1};
    *key = pn_key_of_pair(left, pn_text_hash(left.p, left.n), right, pn_text_hash(right.p, right.n));
    return true;
}

pinch_status pn_strings_index(pn_strings *s, bool pairs, const char *key, pn_equal *equal, pinch_error *err)
{
    enum { AHEAD = 32 }; /* slots lie anywhere: those of the next strings are on their way while one is filled */
    pn_key keys[AHEAD];
    uint32_t number[AHEAD];
    *equal = (pn_equal){0, UINT32_MAX};
    for (uint32_t i = 0; i < s->n;) {
        int n = 0;
        for (; i < s->n && n < AHEAD; i++) {
            number[n] = i;
            if (!key_at(s, i, pairs, &keys[n])) continue;
            __builtin_prefetch(&s->slot[pn_strings_slot(s, keys[n++].hash)], 1);
        }
        for (int k = 0; k < n; k++)
            if (!add(s, number[k], &keys[k], equal)) return pn_fail(err, PINCH_ERR_FORMAT, "%s: its strings collide as no real vocabulary's do", key);
    }
    return PINCH_OK;
}
