/* token/vocab_special.c - special ids by key and by text, the tokens that end generation, and the reference's patch-ups of attributes.
 *
 * The reference finds ids by text in the order of a hash table; here the order of the lists below decides, and for EOT a token that is not EOS already. */
#include <stddef.h>
#include <stdlib.h>

#include "token/token_int.h"

#define KEY(name) "tokenizer.ggml." name
#define DEEPSEEK(name) "<\xef\xbd\x9c" name "\xef\xbd\x9c>" /* in fullwidth bars */
enum { MAX_FORMS = 12 };

/* ---- ids by key ------------------------------------------------------------------------------ */

static const struct {
    const char *key;
    size_t field;
} keys[] = {
    {KEY("bos_token_id"), offsetof(pn_specials, bos)}, {KEY("eos_token_id"), offsetof(pn_specials, eos)}, {KEY("eot_token_id"), offsetof(pn_specials, eot)},
    {KEY("eom_token_id"), offsetof(pn_specials, eom)}, {KEY("unknown_token_id"), offsetof(pn_specials, unk)},
    {KEY("seperator_token_id"), offsetof(pn_specials, sep)}, /* sic */
    {KEY("padding_token_id"), offsetof(pn_specials, pad)},
    /* the older names of the next three */
    {KEY("prefix_token_id"), offsetof(pn_specials, fim_pre)}, {KEY("suffix_token_id"), offsetof(pn_specials, fim_suf)},
    {KEY("middle_token_id"), offsetof(pn_specials, fim_mid)},
    {KEY("fim_pre_token_id"), offsetof(pn_specials, fim_pre)}, {KEY("fim_suf_token_id"), offsetof(pn_specials, fim_suf)},
    {KEY("fim_mid_token_id"), offsetof(pn_specials, fim_mid)}, {KEY("fim_pad_token_id"), offsetof(pn_specials, fim_pad)},
    {KEY("fim_rep_token_id"), offsetof(pn_specials, fim_rep)}, {KEY("fim_sep_token_id"), offsetof(pn_specials, fim_sep)},
};

static pinch_token *field_of(pn_vocab *v, size_t field) { return (pinch_token *)((char *)&v->special + field); }

static pinch_status read_keys(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    pn_specials *s = &v->special;
    s->eot = s->eom = s->sep = s->pad = s->newline = -1;
    s->fim_pre = s->fim_suf = s->fim_mid = s->fim_pad = s->fim_rep = s->fim_sep = -1;
    pinch_token *defaults[] = {&s->bos, &s->eos, &s->unk};
    for (size_t i = 0; i < PN_COUNT(defaults); i++)
        if (*defaults[i] >= (int64_t)v->texts.n) *defaults[i] = -1;
    for (size_t i = 0; i < PN_COUNT(keys); i++) {
        int64_t id;
        bool found = false;
        const pinch_status st = pn_gguf_get_int(g, keys[i].key, &id, &found, err);
        if (st) return st;
        if (found && id >= 0 && id < (int64_t)v->texts.n) *field_of(v, keys[i].field) = (pinch_token)id;
    }
    return PINCH_OK;
}
static pinch_status read_flags(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    pn_specials *s = &v->special;
    bool found;
    pinch_status st = pn_gguf_get_bool(g, KEY("add_bos_token"), &s->add_bos, &found, err);
    if (!st) st = pn_gguf_get_bool(g, KEY("add_eos_token"), &s->add_eos, &found, err);
    if (v->family == PN_BPE && v->raw) s->add_bos = true;
    if (!st && s->add_bos && s->bos < 0) st = pn_fail(err, PINCH_ERR_FORMAT, "the tokenizer adds a BOS and the file has none (tokenizer.ggml.bos_token_id)");
    if (!st && s->add_eos && s->eos < 0) st = pn_fail(err, PINCH_ERR_FORMAT, "the tokenizer adds an EOS and the file has none (tokenizer.ggml.eos_token_id)");
    return st;
}
static pinch_status read_suppressed(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    const pn_gguf_value *ids = pn_gguf_find(g, KEY("suppress_tokens"));
    if (!ids || !ids->count) return PINCH_OK;
    v->suppressed = pn_alloc(ids->count, sizeof *v->suppressed);
    if (!v->suppressed) return pn_fail_memory(err, "suppress_tokens", ids->count * sizeof *v->suppressed);
    int64_t id;
    for (uint64_t i = 0; i < ids->count; i++) {
        if (!pn_gguf_int_at(ids, i, &id)) return pn_fail(err, PINCH_ERR_FORMAT, KEY("suppress_tokens") " is not an array of integers");
        if (id >= 0 && id < (int64_t)v->texts.n) v->suppressed[v->n_suppressed++] = (pinch_token)id;
    }
    return PINCH_OK;
}

/* ---- ids by text ----------------------------------------------------------------------------- */

static const struct {
    size_t field;
    const char *forms[MAX_FORMS];
} by_text[] = {
    {offsetof(pn_specials, eot),
     {"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>", "[EOT]",
      DEEPSEEK("end\xe2\x96\x81of\xe2\x96\x81sentence"), "<end_of_utterance>"}},
    {offsetof(pn_specials, eom), {"<|eom_id|>"}},
    {offsetof(pn_specials, fim_pre),
     {"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", DEEPSEEK("fim\xe2\x96\x81" "begin"), "<PRE>", PN_ESCAPED_SPACE "<PRE>", "<|code_prefix|>", "<|prefix|>"}},
    {offsetof(pn_specials, fim_suf),
     {"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", DEEPSEEK("fim\xe2\x96\x81hole"), "<SUF>", PN_ESCAPED_SPACE "<SUF>", "<|code_suffix|>", "<|suffix|>"}},
    {offsetof(pn_specials, fim_mid),
     {"<|fim_middle|>", "<fim-middle>", "<fim_middle>", DEEPSEEK("fim\xe2\x96\x81" "end"), "<MID>", PN_ESCAPED_SPACE "<MID>", "<|code_middle|>", "<|middle|>"}},
    {offsetof(pn_specials, fim_pad), {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}},
    {offsetof(pn_specials, fim_rep), {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}},
    {offsetof(pn_specials, fim_sep), {"<|file_sep|>"}},
};
static const char *const ends[] = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>",
    "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", DEEPSEEK("end\xe2\x96\x81of\xe2\x96\x81sentence"), "[e~[",
};
static const char *const always_shown[] = {"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"};

static pinch_token id_of(const pn_vocab *v, const char *text) { return pn_vocab_find(v, text, strlen(text)); }
static bool ends_with(const pn_vocab *v, const char *text)
{
    const pinch_token id = id_of(v, text);
    return id >= 0 && v->attributes[id] & PN_ATTR_EOG;
}
static void add_attributes(pn_vocab *v, pinch_token id, unsigned bits)
{
    if (id >= 0) v->attributes[id] |= (uint8_t)bits;
}

static void find_by_text(pn_vocab *v)
{
    for (size_t i = 0; i < PN_COUNT(by_text); i++) {
        pinch_token *field = field_of(v, by_text[i].field), first = -1, best = -1;
        if (*field >= 0) continue;
        for (int form = 0; form < MAX_FORMS && by_text[i].forms[form]; form++) {
            const pinch_token id = id_of(v, by_text[i].forms[form]);
            if (first < 0) first = id;
            if (best < 0 && id != v->special.eos) best = id;
        }
        *field = best >= 0 ? best : first;
        add_attributes(v, *field, PN_ATTR_CONTROL);
    }
}
/* No longer an end: gpt-oss closes messages, not turns, with <|end|>; Gemma 4 hands its turn over with <|tool_response>. */
static void take_back_end(pn_vocab *v, const char *text, unsigned attribute)
{
    if (ends_with(v, text)) v->attributes[id_of(v, text)] = (uint8_t)attribute;
}
static void find_ends(pn_vocab *v)
{
    const pn_specials *s = &v->special;
    const pinch_token ids[] = {s->fim_pad, s->fim_rep, s->fim_sep, s->eos, s->eot, s->eom};
    for (size_t i = 0; i < PN_COUNT(ends); i++) add_attributes(v, id_of(v, ends[i]), PN_ATTR_EOG | PN_ATTR_CONTROL);
    for (size_t i = 0; i < PN_COUNT(always_shown); i++) {
        const pinch_token id = id_of(v, always_shown[i]);
        if (id >= 0) v->attributes[id] = PN_ATTR_USER;
    }
    for (size_t i = 0; i < PN_COUNT(ids); i++) add_attributes(v, ids[i], PN_ATTR_EOG);
    const bool calls = ends_with(v, "<|call|>") || ends_with(v, "<|calls|>");
    if (calls && (ends_with(v, "<|return|>") || ends_with(v, "<|flush|>"))) take_back_end(v, "<|end|>", PN_ATTR_USER);
    if (ends_with(v, "<|tool_response>")) take_back_end(v, "</s>", PN_ATTR_NORMAL);
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool name_has(const pn_gguf *g, const char *part)
{
    pn_str name = {NULL, 0};
    bool found = false;
    if (pn_gguf_get_string(g, "general.name", &name, &found, NULL) || !found) return false;
    const size_t n = strlen(part);
    for (size_t at = 0; at + n <= name.n; at++) {
        size_t i = 0;
        while (i < n && (name.p[at + i] >= 'A' && name.p[at + i] <= 'Z' ? name.p[at + i] + 'a' - 'A' : name.p[at + i]) == part[i]) i++;
        if (i == n) return true;
    }
    return false;
}
/* Tokens that take white space beside them along: GGUF does not say; the reference knows these by name. */
static void note_strips(const pn_vocab *v, const pn_gguf *g, pn_special *list, size_t n)
{
    static const char *const unstripped[] = {"<unk>", "<s>", "<|endoftext|>"};
    const bool phi3 = name_has(g, "phi-3") || name_has(g, "phi3");
    const bool jina = v->pre && strstr(v->pre->names, "jina-v2");
    const pinch_token mask = id_of(v, name_has(g, "modern-bert") ? "[MASK]" : jina ? "<mask>" : "");
    for (size_t i = 0; i < n; i++) {
        list[i].strips_left = list[i].id == mask;
        list[i].strips_right = phi3;
        for (size_t k = 0; k < PN_COUNT(unstripped); k++) list[i].strips_right &= list[i].id != id_of(v, unstripped[k]);
    }
}
static pinch_status make_matcher(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    enum { LISTED = PN_ATTR_CONTROL | PN_ATTR_USER | PN_ATTR_UNKNOWN };
    size_t n = 0;
    for (uint32_t id = 0; id < v->texts.n; id++) n += (v->attributes[id] & LISTED) != 0;
    pn_special *list = pn_alloc(n, sizeof *list);
    if (!list) return pn_fail_memory(err, "special tokens", n * sizeof *list);
    n = 0;
    for (uint32_t id = 0; id < v->texts.n; id++) {
        if (!(v->attributes[id] & LISTED)) continue;
        const bool always = !(v->attributes[id] & (PN_ATTR_CONTROL | PN_ATTR_UNKNOWN));
        list[n++] = (pn_special){.text = pn_vocab_text(v, (pinch_token)id), .id = (pinch_token)id, .always = always};
    }
    note_strips(v, g, list, n);
    const pinch_status st = pn_matcher_make(&v->matcher, list, n, err);
    free(list);
    return st;
}

/* What becomes of bytes that no token covers: "<0xXX>" or, in the byte alphabet and failing that in SPM, the token of that one byte. */
static void find_byte_tokens(pn_vocab *v)
{
    static const char digits[] = "0123456789ABCDEF";
    const bool hex = v->family == PN_SPM || v->raw, plain = v->family == PN_SPM || !v->raw;
    for (int b = 0; b < 256; b++) {
        const char text[] = {'<', '0', 'x', digits[b >> 4], digits[b & 15], '>'}, byte = (char)b;
        pinch_token id = hex ? pn_vocab_find(v, text, sizeof text) : -1;
        if (id < 0 && plain) id = pn_vocab_find(v, &byte, 1);
        v->byte_token[b] = id < 0 && v->family == PN_SPM ? v->special.unk : id;
    }
}

pinch_status pn_vocab_read_specials(pn_vocab *v, const pn_gguf *g, pinch_error *err)
{
    pinch_status st = read_keys(v, g, err);
    if (!st) st = read_flags(v, g, err);
    if (!st) st = read_suppressed(v, g, err);
    if (st) return st;
    find_byte_tokens(v);
    v->special.newline = v->family == PN_SPM ? v->byte_token['\n'] : pn_vocab_first_token(v, "\n", 1);
    find_by_text(v);
    find_ends(v);
    return make_matcher(v, g, err);
}
