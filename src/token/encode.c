/* token/encode.c - a text to tokens: special tokens, then words, then merges.
 *
 * Words that occurred before are not merged again: a small table remembers where a word stood in the text and which of the tokens it became. Where
 * spaces are escaped and words are not split by a pattern, text is cut before a space wherever no token (SPM) or merge (raw BPE) has the byte
 * before it and an escaped space side by side: no merge can cross such a place, so both sides merge as they would together. */
#include "token/token_int.h"

enum { CACHED_WORD = 255, CACHE_MIN_TEXT = 256, CACHE_MAX_SLOTS = 8192 };

typedef struct cached {
    uint32_t at;    /* of the word in the text */
    uint32_t ids;   /* of its first token */
    uint32_t n_ids;
    uint16_t n;     /* bytes; 0: free slot */
    uint16_t check; /* bits of the hash */
} cached;
typedef struct encoder {
    const pn_vocab *v;
    const char *text;
    pn_merger merger;
    cached *cache; /* NULL: none */
    uint32_t cache_mask;
} encoder;

/* ---- one word -------------------------------------------------------------------------------- */

static bool write_escaped(pn_merger *m, const char *p, size_t n)
{
    if (!pn_merger_reserve(m, m->n + PN_ESCAPED_BYTES * n)) return false;
    for (size_t i = 0; i < n; i++) {
        if (p[i] != ' ') {
            m->text[m->n++] = p[i];
            continue;
        }
        memcpy(m->text + m->n, PN_ESCAPED_SPACE, PN_ESCAPED_BYTES);
        m->n += PN_ESCAPED_BYTES;
    }
    return true;
}
/* Characters in canonical form; spaces escaped where the vocabulary does so. At most 3 bytes for one that is not well-formed. */
static bool write_characters(pn_merger *m, const char *p, size_t n)
{
    if (!pn_merger_reserve(m, PN_ESCAPED_BYTES * n)) return false;
    uint32_t c;
    for (size_t i = 0; i < n;) {
        i += pn_text_decode((const unsigned char *)p + i, n - i, &c);
        m->n += pn_text_encode(m->text + m->n, c == ' ' && m->v->escape_spaces ? 0x2581 : c);
    }
    return true;
}
/* Each byte of the characters as a character of the byte alphabet: at most 3 * 2 bytes for one byte. */
static bool write_byte_alphabet(pn_merger *m, const char *p, size_t n)
{
    if (!pn_merger_reserve(m, 6 * n)) return false;
    for (size_t i = 0; i < n;) {
        char bytes[4];
        uint32_t c;
        i += pn_text_decode((const unsigned char *)p + i, n - i, &c);
        const size_t length = pn_text_encode(bytes, c);
        for (size_t k = 0; k < length; k++) m->n += pn_utf8_encode(m->text + m->n, pn_byte_to_char((unsigned char)bytes[k]));
    }
    return true;
}
static bool write_word(const pn_vocab *v, pn_merger *m, const char *p, size_t n)
{
    if (v->family == PN_SPM) return write_escaped(m, p, n);
    return v->raw ? write_characters(m, p, n) : write_byte_alphabet(m, p, n);
}
static bool only_newlines(const char *p, size_t n)
{
    while (n && p[n - 1] == '\n') n--;
    return n == 0;
}
/* `prefixed`: an escaped space goes first. */
static bool merge_word(const pn_vocab *v, pn_merger *m, const char *p, size_t n, bool prefixed)
{
    m->n = 0;
    if (prefixed && !write_escaped(m, " ", 1)) return false;
    if (!write_word(v, m, p, n)) return false;
    if (v->ignore_merges || (v->newline_words && only_newlines(p, n))) {
        const pinch_token id = pn_vocab_find(v, m->text, m->n);
        if (id >= 0) return pn_merger_put(m, id);
    }
    return pn_merge_word(m);
}

/* ---- words seen before ----------------------------------------------------------------------- */

static bool repeat_tokens(pn_merger *m, const cached *c)
{
    for (uint32_t i = 0; i < c->n_ids; i++)
        if (!pn_merger_put(m, m->ids[c->ids + i])) return false;
    return true;
}
static bool put_word(encoder *e, size_t start, size_t end)
{
    const size_t n = end - start;
    const char *p = e->text + start;
    if (!e->cache || n > CACHED_WORD) return merge_word(e->v, &e->merger, p, n, false);
    const uint64_t hash = pn_text_hash(p, n);
    cached *c = &e->cache[hash & e->cache_mask];
    const uint16_t check = (uint16_t)(hash >> 48);
    if (c->n == n && c->check == check && memcmp(e->text + c->at, p, n) == 0) return repeat_tokens(&e->merger, c);
    const size_t before = e->merger.n_ids;
    if (!merge_word(e->v, &e->merger, p, n, false)) return false;
    *c = (cached){(uint32_t)start, (uint32_t)before, (uint32_t)(e->merger.n_ids - before), (uint16_t)n, check};
    return true;
}

/* ---- a text without special tokens ----------------------------------------------------------- */

/* The byte before p[at] as the word's text will have it, where that is certain: the last of an ASCII or well-formed character. -1: not certain. */
static int byte_before(const encoder *e, size_t start, size_t at)
{
    const unsigned char *s = (const unsigned char *)e->text;
    const unsigned char byte = s[at - 1];
    if (byte == ' ') return (unsigned char)PN_ESCAPED_SPACE[PN_ESCAPED_BYTES - 1];
    for (size_t back = 1; back <= 4 && back <= at - start; back++) {
        const unsigned char lead = s[at - back];
        if (lead >= 0x80 && lead < 0xc0) continue;
        uint32_t c;
        return pn_utf8_decode(e->text + at - back, back, &c) == back && c != PN_UTF8_INVALID ? byte : -1;
    }
    return -1;
}
/* SPM reads as many bytes as a lead byte says, spaces or not; then a cut would fall into a character. */
static bool swallowed(const encoder *e, size_t start, size_t at)
{
    for (size_t back = 1; back <= 3 && back <= at - start; back++)
        if (pn_lead_bytes((unsigned char)e->text[at - back]) > back) return true;
    return false;
}
static bool may_cut(const encoder *e, size_t start, size_t at)
{
    if (e->v->family == PN_SPM && swallowed(e, start, at)) return false;
    const int byte = byte_before(e, start, at);
    return byte >= 0 && !(e->v->before_space[byte >> 3] >> (byte & 7) & 1);
}
/* Words of text[start .. end), where spaces are escaped. `prefixed` as in merge_word, for the first. */
static bool cut_words(encoder *e, size_t start, size_t end, bool prefixed)
{
    while (start < end) {
        size_t cut = start;
        do {
            const char *space = memchr(e->text + cut + 1, ' ', end - cut - 1);
            cut = space ? (size_t)(space - e->text) : end;
        } while (cut < end && !may_cut(e, start, cut));
        if (!(prefixed ? merge_word(e->v, &e->merger, e->text + start, cut - start, true) : put_word(e, start, cut))) return false;
        prefixed = false;
        start = cut;
    }
    return true;
}
/* Pieces of text[start .. end) by the passes from `pass` on. */
static bool split_words(encoder *e, int pass, size_t start, size_t end)
{
    const pn_pattern *pattern = e->v->passes[pass];
    if (!pattern && e->v->escape_spaces && !only_newlines(e->text + start, end - start)) return cut_words(e, start, end, false);
    if (!pattern) return put_word(e, start, end);
    while (start < end) {
        size_t from = end, to = end;
        pn_pattern_find(pattern, e->text, start, end, &from, &to);
        if (from > start && !split_words(e, pass + 1, start, from)) return false;
        if (to > from && !split_words(e, pass + 1, from, to)) return false;
        start = to;
    }
    return true;
}
static bool put_text(encoder *e, size_t start, size_t end, bool after_special)
{
    if (e->v->family == PN_SPM) return cut_words(e, start, end, e->v->space_prefix && after_special);
    return split_words(e, 0, start, end);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void make_cache(encoder *e, size_t n)
{
    if (n < CACHE_MIN_TEXT) return;
    uint32_t slots = 64;
    while (slots < n / 8 && slots < CACHE_MAX_SLOTS) slots *= 2;
    e->cache = pn_alloc_zero(slots, sizeof *e->cache); /* without it encoding is slower, nothing else */
    e->cache_mask = slots - 1;
}
static bool put_fragments(encoder *e, const pn_piece_list *list, bool add_special)
{
    const pn_specials *s = &e->v->special;
    if (add_special && s->add_bos && !pn_merger_put(&e->merger, s->bos)) return false;
    bool after_special = true;
    for (size_t i = 0; i < list->n; i++) {
        const struct pn_fragment *f = &list->at[i];
        if (!(f->id >= 0 ? pn_merger_put(&e->merger, f->id) : put_text(e, f->start, f->end, after_special))) return false;
        after_special = f->id >= 0;
    }
    return !(add_special && s->add_eos) || pn_merger_put(&e->merger, s->eos);
}

pinch_status pn_encode(const pn_vocab *v, const char *text, size_t n, bool add_special, bool parse_special, pinch_token **out, size_t *n_out, pinch_error *err)
{
    if (n > PN_MAX_TEXT) return pn_fail(err, PINCH_ERR_ARGUMENT, "a text of %zu bytes: at most %d are encoded at once", n, PN_MAX_TEXT);
    encoder e = {.v = v, .text = text, .merger = {.v = v}};
    pn_piece_list list = {0};
    pinch_status st = pn_matcher_split(v->matcher, text, n, parse_special, &list, err);
    if (st) return st;
    make_cache(&e, n);
    e.merger.id_capacity = n / 3 + 8;
    e.merger.ids = pn_alloc(e.merger.id_capacity, sizeof *e.merger.ids);
    if (!e.merger.ids || !put_fragments(&e, &list, add_special)) st = pn_fail_memory(err, "encoding a text", n);
    free(list.at);
    free(e.cache);
    pn_merger_free(&e.merger);
    if (st) {
        free(e.merger.ids);
        return st;
    }
    *out = e.merger.ids;
    *n_out = e.merger.n_ids;
    return PINCH_OK;
}

pinch_token pn_vocab_first_token(const pn_vocab *v, const char *text, size_t n)
{
    encoder e = {.v = v, .text = text, .merger = {.v = v}};
    const bool some = put_text(&e, 0, n, false) && e.merger.n_ids;
    const pinch_token first = some ? e.merger.ids[0] : -1;
    pn_merger_free(&e.merger);
    free(e.merger.ids);
    return first;
}
