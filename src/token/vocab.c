/* token/vocab.c - opens a vocabulary: its kind, texts, merges or scores, types, pre-tokenizer. What stands in the file is hostile until checked here. */
#include <stdio.h>
#include <stdlib.h>

#include "token/token_int.h"

#define TOKENS "tokenizer.ggml.tokens"
#define MERGES "tokenizer.ggml.merges"
#define SCORES "tokenizer.ggml.scores"
#define TYPES "tokenizer.ggml.token_type"

/* ---- texts and types ------------------------------------------------------------------------- */

static pinch_status name_empty_texts(pn_vocab *v, uint32_t n_empty, pinch_error *err)
{
    if (!n_empty) return PINCH_OK;
    v->empty = pn_alloc(n_empty, sizeof *v->empty);
    v->empty_text = pn_alloc(n_empty, PN_EMPTY_TEXT);
    if (!v->empty || !v->empty_text) return pn_fail_memory(err, "tokens without text", (uint64_t)n_empty * PN_EMPTY_TEXT);
    for (uint32_t id = 0; id < v->texts.n; id++) {
        if (pn_strings_at(&v->texts, id).n) continue;
        char *text = v->empty_text + (size_t)v->n_empty * PN_EMPTY_TEXT;
        text[0] = (char)snprintf(text + 1, PN_EMPTY_TEXT - 1, "[EMPTY_%" PRIu32 "]", id);
        v->empty[v->n_empty++] = id;
    }
    return PINCH_OK;
}
static pinch_status read_texts(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    const pn_gguf_value *tokens = pn_gguf_find(g, TOKENS);
    if (!tokens) return pn_fail(err, PINCH_ERR_FORMAT, "the file has a tokenizer and no " TOKENS);
    pinch_status st = pn_strings_open(&v->texts, tokens, TOKENS, err);
    if (!st && !v->texts.n) st = pn_fail(err, PINCH_ERR_FORMAT, TOKENS " is empty");
    pn_equal equal;
    if (!st) st = pn_strings_index(&v->texts, false, TOKENS, &equal, err);
    if (st) return st;
    if (equal.other != UINT32_MAX)
        return pn_fail(err, PINCH_ERR_FORMAT, TOKENS ": tokens %" PRIu32 " and %" PRIu32 " have the same text", equal.first, equal.other);
    uint32_t n_empty = 0;
    for (uint32_t id = 0; id < v->texts.n; id++) {
        const size_t n = pn_strings_at(&v->texts, id).n;
        if (n > v->longest_text) v->longest_text = (uint32_t)n;
        n_empty += n == 0;
    }
    return name_empty_texts(v, n_empty, err);
}
static pinch_status read_types(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    static const uint8_t by_type[] = {0, PN_ATTR_NORMAL, PN_ATTR_UNKNOWN, PN_ATTR_CONTROL, PN_ATTR_USER, PN_ATTR_UNUSED, PN_ATTR_BYTE};
    v->attributes = pn_alloc(v->texts.n, 1);
    if (!v->attributes) return pn_fail_memory(err, TYPES, v->texts.n);
    memset(v->attributes, PN_ATTR_NORMAL, v->texts.n);
    const pn_gguf_value *types = pn_gguf_find(g, TYPES);
    if (!types) return PINCH_OK;
    int64_t type;
    for (uint32_t id = 0; id < v->texts.n && id < types->count; id++) {
        if (!pn_gguf_int_at(types, id, &type)) return pn_fail(err, PINCH_ERR_FORMAT, TYPES " is not an array of integers");
        v->attributes[id] = type >= 0 && type < (int64_t)PN_COUNT(by_type) ? by_type[type] : 0;
    }
    return PINCH_OK;
}

/* ---- SPM ------------------------------------------------------------------------------------- */

/* Notes which bytes stand before an escaped space in the text. `gap`: a place that is skipped, the space between the parts of a merge. */
static void note_before_spaces(pn_vocab *v, pn_str text, size_t gap)
{
    for (size_t at = 1; at + PN_ESCAPED_BYTES <= text.n; at++) {
        const char *hit = memchr(text.p + at, PN_ESCAPED_SPACE[0], text.n - at);
        if (!hit) return;
        at = (size_t)(hit - text.p);
        if (text.n - at < PN_ESCAPED_BYTES || memcmp(hit, PN_ESCAPED_SPACE, PN_ESCAPED_BYTES) != 0) continue;
        const unsigned char byte = (unsigned char)text.p[at - 1 == gap ? at - 2 : at - 1];
        v->before_space[byte >> 3] |= (uint8_t)(1u << (byte & 7));
    }
}
static pinch_status open_spm(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    v->escape_spaces = v->space_prefix = true;
    v->special = (pn_specials){.bos = 1, .eos = 2, .unk = 0, .add_bos = true};
    const pn_gguf_value *scores = pn_gguf_find(g, SCORES);
    double score;
    if (scores && scores->count && !pn_gguf_float_at(scores, 0, &score)) return pn_fail(err, PINCH_ERR_FORMAT, SCORES " is not an array of numbers");
    v->scores = scores;
    for (uint32_t id = 0; id < v->texts.n; id++) note_before_spaces(v, pn_strings_at(&v->texts, id), SIZE_MAX);
    return PINCH_OK;
}

/* ---- BPE ------------------------------------------------------------------------------------- */

static pinch_status read_merges(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    static const pn_gguf_value none = {.kind = PN_GGUF_ARRAY, .item = PN_GGUF_STRING};
    const pn_gguf_value *merges = pn_gguf_find(g, MERGES);
    if (!merges && !(v->pre->flags & PN_PRE_NO_MERGES)) return pn_fail(err, PINCH_ERR_FORMAT, "the file has a BPE tokenizer and no " MERGES);
    pinch_status st = pn_strings_open(&v->merges, merges ? merges : &none, MERGES, err);
    pn_equal equal; /* the first of equal merges counts */
    if (!st) st = pn_strings_index(&v->merges, true, MERGES, &equal, err);
    for (uint32_t rank = 0; v->raw && !st && rank < v->merges.n; rank++) {
        const pn_str merge = pn_strings_at(&v->merges, rank);
        const char *space = merge.n > 1 ? memchr(merge.p + 1, ' ', merge.n - 1) : NULL;
        if (space) note_before_spaces(v, merge, (size_t)(space - merge.p));
    }
    return st;
}
static pinch_status find_pre(pn_vocab *v, const pn_gguf *g, bool gemma4, pinch_error *err)
{
    pn_str name = {"default", 7};
    bool found = false;
    const pinch_status st = pn_gguf_get_string(g, "tokenizer.ggml.pre", &name, &found, err);
    if (st) return st;
    if (gemma4) name = (pn_str){"gemma4", 6};
    else if (!found) snprintf(v->warning, sizeof v->warning, "the file names no pre-tokenizer (tokenizer.ggml.pre): the default one is used, and may split words wrongly");
    v->pre = pn_pre_find(name);
    if (!v->pre) return pn_fail(err, PINCH_ERR_UNSUPPORTED, "tokenizer.ggml.pre: no pre-tokenizer \"%.*s\" here", (int)(name.n < 64 ? name.n : 64), name.p);
    return PINCH_OK;
}
static pinch_status open_bpe(pn_vocab *v, const pn_gguf *g, bool gemma4, pinch_error *err)
{
    pinch_status st = find_pre(v, g, gemma4, err);
    if (st) return st;
    const unsigned flags = v->pre->flags;
    v->raw = v->escape_spaces = v->newline_words = flags & PN_PRE_RAW;
    v->clean_spaces = flags & PN_PRE_CLEAN;
    v->ignore_merges = flags & PN_PRE_IGNORE_MERGES;
    v->special = (pn_specials){.bos = gemma4 ? -1 : 11, .eos = gemma4 ? -1 : 11, .unk = -1, .add_bos = flags & PN_PRE_BOS};
    for (int i = 0; i < PN_MAX_PASSES && v->pre->passes[i] && !st; i++) st = pn_pattern_compile(&v->passes[i], v->pre->passes[i], err);
    return st ? st : read_merges(v, g, err);
}

/* ---- open, close, look ----------------------------------------------------------------------- */

static bool str_is(pn_str s, const char *text) { return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0; }

static pinch_status open_family(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    pn_str model;
    bool found = false;
    pinch_status st = pn_gguf_get_string(g, "tokenizer.ggml.model", &model, &found, err);
    if (!st && !found) st = pn_fail(err, PINCH_ERR_UNSUPPORTED, "the file names no tokenizer (tokenizer.ggml.model)");
    if (st) return st;
    const bool spm = str_is(model, "llama"), gemma4 = str_is(model, "gemma4");
    if (!spm && !gemma4 && !str_is(model, "gpt2"))
        return pn_fail(err, PINCH_ERR_UNSUPPORTED, "tokenizer.ggml.model: no tokenizer \"%.*s\" here, only llama (SPM), gpt2 and gemma4 (BPE)", (int)(model.n < 64 ? model.n : 64),
                       model.p);
    v->family = spm ? PN_SPM : PN_BPE;
    st = read_texts(v, g, err);
    if (!st) st = read_types(v, g, err);
    if (!st) st = spm ? open_spm(v, g, err) : open_bpe(v, g, gemma4, err);
    if (!st) st = pn_gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", &v->space_prefix, &found, err);
    return st;
}

pinch_status pn_vocab_open(pn_vocab **out, const pn_gguf *g, pinch_error *err)
{
    pn_vocab *v = pn_alloc_zero(1, sizeof *v);
    if (!v) return pn_fail_memory(err, "a vocabulary", sizeof *v);
    pinch_status st = open_family(v, g, err);
    if (!st) st = pn_vocab_read_specials(v, g, err);
    if (st) pn_vocab_close(v);
    else *out = v;
    return st;
}

void pn_vocab_drop_lists(const pn_vocab *v, pn_gguf *g)
{
    static const char *const copied[] = {TOKENS, MERGES, TYPES};
    for (size_t i = 0; i < PN_COUNT(copied); i++) pn_gguf_drop(g, copied[i]);
    if (!v->scores) pn_gguf_drop(g, SCORES);
}

void pn_vocab_close(pn_vocab *v)
{
    if (!v) return;
    pn_strings_close(&v->texts);
    pn_strings_close(&v->merges);
    for (int i = 0; v->passes[i]; i++) pn_pattern_free(v->passes[i]);
    pn_matcher_free(v->matcher);
    free(v->attributes);
    free(v->suppressed);
    free(v->empty);
    free(v->empty_text);
    free(v);
}

uint64_t pn_vocab_bytes(const pn_vocab *v)
{
    uint64_t bytes = sizeof *v + pn_strings_bytes(&v->texts) + pn_strings_bytes(&v->merges) + pn_matcher_bytes(v->matcher) + v->texts.n;
    for (int i = 0; v->passes[i]; i++) bytes += pn_pattern_bytes(v->passes[i]);
    return bytes + v->n_suppressed * sizeof *v->suppressed + (uint64_t)v->n_empty * (PN_EMPTY_TEXT + sizeof *v->empty);
}

static bool is_token(const pn_vocab *v, pinch_token id) { return id >= 0 && (uint32_t)id < v->texts.n; }
int32_t pn_vocab_size(const pn_vocab *v) { return (int32_t)v->texts.n; }
const char *pn_vocab_warning(const pn_vocab *v) { return v->warning[0] ? v->warning : NULL; }
const pn_specials *pn_vocab_specials(const pn_vocab *v) { return &v->special; }
bool pn_vocab_is_eog(const pn_vocab *v, pinch_token id) { return is_token(v, id) && v->attributes[id] & PN_ATTR_EOG; }
bool pn_vocab_is_control(const pn_vocab *v, pinch_token id) { return is_token(v, id) && v->attributes[id] & (PN_ATTR_CONTROL | PN_ATTR_UNKNOWN); }

size_t pn_vocab_suppressed(const pn_vocab *v, const pinch_token **ids)
{
    *ids = v->suppressed;
    return v->n_suppressed;
}

pn_str pn_vocab_text(const pn_vocab *v, pinch_token id)
{
    if (!is_token(v, id)) return (pn_str){"", 0};
    const pn_str text = pn_strings_at(&v->texts, (uint32_t)id);
    if (text.n) return text;
    uint32_t low = 0, high = v->n_empty;
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (v->empty[middle] <= (uint32_t)id) low = middle;
        else high = middle;
    }
    const char *empty = v->empty_text + (size_t)low * PN_EMPTY_TEXT;
    return (pn_str){empty + 1, (size_t)empty[0]};
}
