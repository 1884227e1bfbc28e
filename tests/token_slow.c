/* Random vocabularies and texts: the tokenizers against the slow definition of tests/token_make.h: both families, every pre-tokenizer, special tokens
 * in each other. */
#include "token_make.h"

static const char *const atoms[] = {
    "a", "a", "b", "b", "c", "A", "B", " ", " ", "  ", "\n", "\r\n", "\t", "1", "23", ".", "~", "$", "'", "'s", "'LL", "<", "|", ">", "<|", "|>", "ab", "aab", "\xe2\x96\x81",
    "\xc3\xa9", "\xc3\x89", "\xe6\x97\xa5", "\xe3\x81\x82", "\xed\x95\x9c", "\xcc\x81", "\xe3\x80\x80", "\xc2\xa0", "\xf0\x9f\x98\x80", "\xff", "\xe2", "\x96", "\xc1\x81",
    "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe0\xa5\xa6", "\xef\xbc\xa1", "/", "_", "\x1c",
};
enum { MAX_TEXT = 64 };
typedef unsigned long long seed;
static size_t below(seed *r, size_t n) { return (size_t)(pn_random(r) >> 11) % n; }

static size_t random_text(seed *r, char *out, size_t n_atoms, const make_vocab *m)
{
    size_t n = 0;
    for (size_t i = 0; i < n_atoms; i++) {
        const make_text *t = m && m->n && below(r, 4) == 0 ? &m->text[below(r, m->n)] : NULL;
        const char *p = t ? t->p : atoms[below(r, PN_COUNT(atoms))];
        const size_t length = t ? t->n : strlen(p);
        if (n + length > MAX_TEXT) break;
        memcpy(out + n, p, length);
        n += length;
    }
    if (n < MAX_TEXT && below(r, 16) == 0) out[n++] = '\0';
    return n;
}
static void add_distinct(make_vocab *m, const char *p, size_t n, int type, float score)
{
    if (n && make_find(m, p, n) < 0) make_token(m, p, n, type, score);
}
/* Texts that vocabularies merge to: words in their own alphabet, cut at characters, each the two halves of an earlier pair or a new one. */
static void random_merges(seed *r, make_vocab *m, bool raw)
{
    for (int i = 0; i < 60; i++) {
        char text[MAX_TEXT];
        const size_t n = random_text(r, text, 1 + below(r, 3), NULL);
        make_bytes word = slow_word(text, n, raw);
        size_t cut = word.n ? below(r, word.n) : 0;
        while (cut > 0 && ((unsigned char)word.p[cut] & 0xc0) == 0x80) cut--;
        if (cut && word.n < 40) {
            make_merge(m, word.p, cut, word.p + cut, word.n - cut);
            if (below(r, 8)) add_distinct(m, word.p, word.n, 1, 0);
        }
        free(word.p);
    }
}
static void random_bytes(seed *r, make_vocab *m, bool hex)
{
    for (int b = 0; b < 256; b++) {
        char text[8] = {(char)b, 0};
        if (below(r, 8) == 0) continue; /* missing ones */
        if (hex) snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        if (hex || b < 0x80) add_distinct(m, text, hex ? 6 : 1, hex ? 6 : 1, -10);
    }
}
static void random_vocab(seed *r, make_vocab *m, const char *model, const char *pre)
{
    const bool spm = strcmp(model, "llama") == 0, raw = !spm && pn_pre_find((pn_str){pre, strlen(pre)})->flags & PN_PRE_RAW;
    *m = (make_vocab){.model = model, .pre = pre, .name = below(r, 3) ? "x" : "a Phi-3", .bos = 1, .add_bos = (int)below(r, 2), .space_prefix = (int)below(r, 2)};
    if (raw) m->add_bos = 1;
    make_token(m, "<unk>", 5, 2, 0);
    make_token(m, "<s>", 3, 3, 0);
    if (spm || raw || below(r, 2)) random_bytes(r, m, spm || raw);
    if (!spm) random_merges(r, m, raw);
    for (int i = 0; i < 60 && spm; i++) {
        char text[MAX_TEXT];
        const size_t n = random_text(r, text, 1 + below(r, 3), NULL);
        make_bytes word = slow_word(text, n, true);
        if (word.n < 40) add_distinct(m, word.p, word.n, 1, (float)below(r, 12) - 6);
        free(word.p);
    }
    for (size_t i = below(r, 12); i > 0; i--) {
        char text[MAX_TEXT];
        const size_t n = random_text(r, text, 1 + below(r, 5), NULL);
        add_distinct(m, text, n < 40 ? n : 40, 2 + (int)below(r, 3), (float)below(r, 12) - 6);
    }
}

/* Special tokens that lie in each other, over an alphabet of two letters and a space: what comes first must come first over the whole text. */
static void nested_specials(seed *r, make_vocab *m)
{
    *m = (make_vocab){.model = "llama", .pre = "default", .name = below(r, 2) ? "x" : "a Phi-3", .bos = 1, .add_bos = 0, .space_prefix = 0};
    make_token(m, "<unk>", 5, 2, 0);
    make_token(m, "<s>", 3, 3, 0);
    random_bytes(r, m, true);
    for (size_t i = 2 + below(r, 24); i > 0; i--) {
        char text[16];
        const size_t n = 1 + below(r, below(r, 4) ? 5 : 14);
        const size_t mixed = below(r, 3);
        for (size_t k = 0; k < n; k++) text[k] = mixed ? "aaab "[below(r, 4 + (mixed == 2))] : 'a';
        add_distinct(m, text, n, 2 + (int)below(r, 3), 0);
    }
}
static size_t nested_text(seed *r, char *out)
{
    const size_t n = below(r, MAX_TEXT + 1), letters = 1 + below(r, 5);
    for (size_t i = 0; i < n; i++) out[i] = "aab a"[below(r, letters)];
    return n;
}

static bool compare(const make_vocab *m, const pn_vocab *v, const char *text, size_t n, bool add_special, bool parse_special)
{
    pinch_token *ids = NULL;
    size_t n_ids = 0;
    if (pn_encode(v, text, n, add_special, parse_special, &ids, &n_ids, NULL) != PINCH_OK) return false;
    slow s = slow_encode(m, text, n, add_special, parse_special);
    const bool same = n_ids == s.n_ids && (n_ids == 0 || memcmp(ids, s.ids, n_ids * sizeof *ids) == 0);
    free(s.ids);
    free(ids);
    return same;
}
static void one_vocabulary(seed *r, const char *model, const char *pre, int n_texts)
{
    static make_vocab m;
    const seed from = *r;
    if (pre) random_vocab(r, &m, model, pre);
    else nested_specials(r, &m);
    pinch_error err = {0};
    pn_gguf *g = make_open(&m, &err);
    pn_vocab *v = NULL;
    if (CHECK("a made vocabulary opens", g && pn_vocab_open(&v, g, &err) == PINCH_OK, "%s %s, seed %llu: %s", model, pre ? pre : "nested", from, err.message)) {
        for (int i = 0; i < n_texts; i++) {
            char text[MAX_TEXT + 1];
            const size_t n = pre ? random_text(r, text, below(r, 24), &m) : nested_text(r, text);
            const bool add_special = below(r, 2), parse_special = below(r, 2);
            CHECK("the same tokens as by definition", compare(&m, v, text, n, add_special, parse_special), "%s %s, seed %llu, text %d: \"%.*s\"", model, pre ? pre : "nested", from, i, (int)n, text);
        }
    }
    pn_vocab_close(v);
    pn_gguf_close(g);
}

int main(void)
{
    const int rounds = getenv("PINCH_LONG") ? 200 : 6;
    seed r = 20261129;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 12; i++) one_vocabulary(&r, "llama", "default", 30);
        for (int i = 0; i < 100; i++) one_vocabulary(&r, "llama", NULL, 10);
        for (size_t i = 0; pn_pre_at(i); i++) {
            char name[64];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(pn_pre_at(i)->names, " "), pn_pre_at(i)->names);
            one_vocabulary(&r, strcmp(name, "gemma4") ? "gpt2" : "gemma4", name, 15);
        }
    }
    return pn_done();
}
