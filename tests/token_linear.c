/* A megabyte of one thing takes about as long as a megabyte of words: in every pre-tokenizer, in both families, and where special tokens almost match
 * or lie in each other. Strings made to collide in a hash table are refused before they cost quadratic time. */
#include <time.h>

#include "token_make.h"
#include "token/token_int.h"

enum { BIG = 1 << 20 };
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Doubling merges and tokens of a text in the vocabulary's alphabet: x, xx, xxxx, ... */
static void doubles(make_vocab *m, const char *unit)
{
    char text[MAKE_TEXT];
    for (size_t n = strlen(unit), copies = 1; copies * n <= 40; copies *= 2) {
        for (size_t i = 0; i < copies; i++) memcpy(text + i * n, unit, n);
        if (make_find(m, text, copies * n) < 0) make_token(m, text, copies * n, 1, (float)copies);
        make_merge(m, text, copies * n, text, copies * n);
        for (size_t i = 0; i < copies; i++) memcpy(text + (copies + i) * n, unit, n);
    }
}
static void make_words(make_vocab *m, const char *model, const char *pre)
{
    const bool mapped = strcmp(model, "gpt2") == 0;
    *m = (make_vocab){.model = model, .pre = pre, .bos = 1, .add_bos = 1, .space_prefix = 0};
    make_token(m, "<unk>", 5, 2, 0);
    make_token(m, "<s>", 3, 3, 0);
    make_token(m, "<|a_special_token_of_some_length|>", 34, 3, 0);
    for (int n = 24; n > 0; n--) make_token(m, "zzzzzzzzzzzzzzzzzzzzzzzz", (size_t)n, 4, 0); /* in each other */
    for (int b = 0; b < 256; b++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", (unsigned)b);
        make_token(m, text, 6, 6, 0);
    }
    doubles(m, "a");
    doubles(m, mapped ? "\xc4\xa0" : "\xe2\x96\x81");
    doubles(m, mapped ? "\xc4\x8a" : "\n");
    doubles(m, "1");
    make_merge(m, "\xc3\xb0", 2, "\xc5\x81", 2);
}

static const struct { const char *name, *unit; } inputs[] = {
    {"words", "the quick brown fox, it's 1234 "}, {"one letter", "a"}, {"a letter that never merges", "q"}, {"spaces", " "}, {"newlines", "\n"},
    {"spaces and a digit", "                               1"}, {"digits", "1"}, {"marks", "$"}, {"emoji", "\xf0\x9f\x98\x80"}, {"letters of both cases", "aA"},
    {"an accented letter", "\xc3\xa9"}, {"capitals after it", "\xc3\xa9" "AAAAAAAAAAAAAAAA"}, {"broken bytes", "\xe2\x80"}, {"wide spaces", "\xe3\x80\x80"},
    {"first half of a special token", "<|a_special_toke"}, {"special tokens in each other", "z"}, {"a special token over and over", "<|a_special_token_of_some_length|>"},
    {"apostrophes", "'"}, {"letters of no word", "\xe6\x97\xa5"}, {"NULs", NULL},
};

static double encode_time(const pn_vocab *v, const char *text, size_t n)
{
    pinch_token *ids = NULL;
    size_t n_ids = 0;
    const double start = now();
    const pinch_status st = pn_encode(v, text, n, true, true, &ids, &n_ids, NULL);
    const double took = now() - start;
    free(ids);
    return st ? 1e9 : took;
}
static void one_vocabulary(const char *model, const char *pre, char *text, size_t n)
{
    static make_vocab m;
    make_words(&m, model, pre);
    pinch_error err = {0};
    pn_gguf *g = make_open(&m, &err);
    pn_vocab *v = NULL;
    double limit = 0;
    if (!CHECK("a made vocabulary opens", g && pn_vocab_open(&v, g, &err) == PINCH_OK, "%s", err.message)) return;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++) {
        const size_t unit = inputs[i].unit ? strlen(inputs[i].unit) : 1;
        for (size_t at = 0; at < n; at++) text[at] = inputs[i].unit ? inputs[i].unit[at % unit] : '\0';
        const double took = encode_time(v, text, n);
        if (i == 0 && took * BIG > 0.3 * (double)n) n /= 8; /* a slow machine, an emulated one, or sanitizers */
        if (i == 0) limit = took > 0.025 ? 40 * took : 1; /* a second, more where everything is slow; quadratic time is beyond either */
        if (getenv("PINCH_VERBOSE")) printf("%-8s %-16s %-32s %7.1f ms a MB\n", model, pre, inputs[i].name, 1e3 * took * BIG / (double)n);
        CHECK("a long run takes linear time", took <= limit, "%s %s, %zu bytes of %s: %.2f s, limit %.2f s", model, pre, n, inputs[i].name, took, limit);
    }
    pn_vocab_close(v);
    pn_gguf_close(g);
}

/* 16-byte strings whose second half undoes what the first did to the hash. */
static void collisions(void)
{
    enum { N = 20000 };
    make_bytes b = {0};
    uint64_t n = 0;
    make_text_key(&b, &n, "tokenizer.ggml.model", "llama");
    make_array(&b, &n, "tokenizer.ggml.tokens", PN_GGUF_STRING, N);
    for (uint64_t i = 0; i < N; i++) {
        uint64_t half[2] = {i, 0};
        half[1] = pn_hash_step(16, i) ^ 0x0123456789abcdef;
        make_string(&b, (const char *)half, 16);
    }
    pinch_error err = {0};
    pn_gguf *g = make_open_bytes(&b, n, &err);
    pn_vocab *v = NULL;
    const double start = now();
    CHECK("colliding texts are refused", g && pn_vocab_open(&v, g, &err) == PINCH_ERR_FORMAT && strstr(err.message, "collide"), "%s", err.message);
    CHECK("before they cost time", now() - start < 2, "%.2f s", now() - start);
    pn_vocab_close(v);
    pn_gguf_close(g);
    free(b.p);
}

/* Pairs of equal halves, and pairs that differ by their order, lie where any pairs lie. */
static void pairs_apart(void)
{
    enum { N = 160 };
    static make_vocab m;
    char c[N][4];
    m = (make_vocab){.model = "gpt2", .pre = "default", .bos = -1, .add_bos = -1, .space_prefix = -1};
    make_token(&m, "a", 1, 1, 0);
    for (unsigned i = 0; i < N; i++) snprintf(c[i], sizeof c[i], "\xe4%c%c", (int)(0x80 + i / 64), (int)(0x80 + i % 64));
    for (int i = 0; i < N; i++) {
        make_merge(&m, c[i], 3, c[i], 3);
        make_merge(&m, c[i], 3, c[(i + 1) % N], 3);
        make_merge(&m, c[(i + 1) % N], 3, c[i], 3);
    }
    pinch_error err = {0};
    pn_gguf *g = make_open(&m, &err);
    pn_vocab *v = NULL;
    if (CHECK("a vocabulary of pairs opens", g && pn_vocab_open(&v, g, &err) == PINCH_OK, "%s", err.message))
        CHECK("pairs lie apart", v->merges.n == 3 * N && v->merges.probes < 4 * 3 * N, "%llu steps for %u pairs", (unsigned long long)v->merges.probes, (unsigned)v->merges.n);
    pn_vocab_close(v);
    pn_gguf_close(g);
}

int main(void)
{
    char *text = malloc(BIG);
    if (!text) return 1;
    one_vocabulary("llama", "default", text, BIG);
    one_vocabulary("gpt2", "llama-bpe", text, BIG);
    for (size_t i = 0; pn_pre_at(i); i++) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(pn_pre_at(i)->names, " "), pn_pre_at(i)->names);
        one_vocabulary(strcmp(name, "gemma4") ? "gpt2" : "gemma4", name, text, getenv("PINCH_LONG") ? (size_t)BIG : (size_t)BIG / 32);
    }
    collisions();
    pairs_apart();
    free(text);
    return pn_done();
}
