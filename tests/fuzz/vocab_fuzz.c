/* A vocabulary and a text from any bytes: it opens or is refused with a sentence; what is encoded is what the slow definition gives, and decodes.
 *
 * Input: family, flags, texts (a length with a type in the high bits, then bytes; a zero length ends them), merges likewise (bytes, cut at the length's
 * high bits), the rest is the text. */
#include "../token_make.h"
#include "fuzz.h"

enum { MAX_TEXT = 200, MAX_SHORT = 15 };

/* Bytes of the next string, at most MAX_SHORT; *high: the four bits beside its length. */
static size_t next_string(const uint8_t **data, size_t *size, const char **p, int *high)
{
    const uint8_t head = fuzz_byte(data, size);
    size_t n = head & MAX_SHORT;
    *high = head >> 4;
    if (n > *size) n = *size;
    *p = (const char *)*data;
    *data += n;
    *size -= n;
    return n;
}
static void read_vocab(make_vocab *m, const uint8_t **data, size_t *size)
{
    static const char *const pres[] = {"default", "llama-bpe", "gpt-2", "qwen35", "tekken", "deepseek-llm", "kimi-k2", "smollm"};
    static const char *const models[] = {"llama", "gpt2", "gemma4", "gpt2"};
    const uint8_t how = fuzz_byte(data, size), flags = fuzz_byte(data, size);
    const char *p;
    int high;
    *m = (make_vocab){.model = models[how & 3], .pre = (how & 3) == 2 ? "gemma4" : pres[how >> 2 & 7], .name = how & 32 ? "Phi-3" : "x", .bos = 1, .add_bos = flags & 1, .space_prefix = flags >> 1 & 1};
    if ((how & 3) == 2) m->add_bos = 1;
    make_token(m, "<unk>", 5, 2, 0);
    make_token(m, "<s>", 3, 3, 0);
    for (size_t n; (n = next_string(data, size, &p, &high)) > 0;)
        if (make_find(m, p, n) < 0) make_token(m, p, n, high % 7, (float)(high - 7));
    for (size_t n; (n = next_string(data, size, &p, &high)) > 0;)
        if ((size_t)high > 0 && (size_t)high < n && !memchr(p, ' ', n)) make_merge(m, p, (size_t)high, p + high, n - (size_t)high);
}
/* The texts that the reference's patch-ups know are no part of the slow definition. */
static bool patched(const make_vocab *m)
{
    for (size_t i = 2; i < m->n; i++) {
        const make_text *t = &m->text[i];
        if (t->n && ((t->p[0] == '<' && t->n > 3) || t->p[0] == '[' || t->p[0] == '_')) return true;
    }
    return false;
}
static void compare(const make_vocab *m, const pn_vocab *v, const char *text, size_t n, bool add_special, bool parse_special)
{
    pinch_token *ids = NULL;
    char *back = NULL;
    size_t n_ids = 0, n_back = 0;
    pinch_error err = {0};
    MUST(pn_encode(v, text, n, add_special, parse_special, &ids, &n_ids, &err) == PINCH_OK);
    for (size_t i = 0; i < n_ids; i++) MUST(ids[i] >= 0 && ids[i] < pn_vocab_size(v));
    if (!patched(m)) {
        slow s = slow_encode(m, text, n, add_special, parse_special);
        MUST(s.n_ids == n_ids && memcmp(s.ids, ids, n_ids * sizeof *ids) == 0);
        free(s.ids);
    }
    MUST(pn_decode(v, ids, n_ids, add_special, parse_special, &back, &n_back, &err) == PINCH_OK);
    free(back);
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static make_vocab m;
    read_vocab(&m, &data, &size);
    if (size > MAX_TEXT) size = MAX_TEXT;
    pinch_error err = {0};
    pn_gguf *g = make_open(&m, &err);
    pn_vocab *v = NULL;
    MUST(g);
    MUST(pn_vocab_open(&v, g, &err) == PINCH_OK);
    for (int how = 0; how < 4; how++) compare(&m, v, (const char *)data, size, how & 1, how & 2);
    pn_vocab_close(v);
    pn_gguf_close(g);
    return 0;
}
