/* Small vocabularies of our own: what is encoded, decoded, special; and hostile ones: each is refused with its sentence or does no harm. */
#include <math.h>

#include "token_make.h"

/* ---- vocabularies that say what they should -------------------------------------------------- */

typedef struct opened { pn_gguf *g; pn_vocab *v; } opened;
static opened open_made(const make_vocab *m)
{
    opened o = {0};
    pinch_error err = {0};
    o.g = make_open(m, &err);
    CHECK("a made vocabulary opens", o.g && pn_vocab_open(&o.v, o.g, &err) == PINCH_OK, "%s", err.message);
    return o;
}
static void close_made(opened o)
{
    pn_vocab_close(o.v);
    pn_gguf_close(o.g);
}
static void check_ids(const pn_vocab *v, const char *text, bool add_special, bool parse_special, const char *want)
{
    pinch_token *ids = NULL;
    size_t n = 0, at = 0;
    char have[512] = "";
    if (!CHECK("encoding succeeds", pn_encode(v, text, strlen(text), add_special, parse_special, &ids, &n, NULL) == PINCH_OK, "\"%s\"", text)) return;
    for (size_t i = 0; i < n && at < sizeof have - 16; i++) at += (size_t)snprintf(have + at, sizeof have - at, i ? " %d" : "%d", (int)ids[i]);
    CHECK("ids of a text", strcmp(have, want) == 0, "\"%s\": %s instead of %s", text, have, want);
    free(ids);
}
static void check_text(const pn_vocab *v, const pinch_token *ids, size_t n, bool remove, bool special, const char *want)
{
    char *text = NULL;
    size_t length = 0;
    if (!CHECK("decoding succeeds", pn_decode(v, ids, n, remove, special, &text, &length, NULL) == PINCH_OK, "%zu ids", n)) return;
    CHECK("text of ids", length == strlen(want) && memcmp(text, want, length) == 0, "\"%.*s\" instead of \"%s\"", (int)length, text, want);
    free(text);
}
static void add(make_vocab *m, const char *text, int type, float score) { make_token(m, text, strlen(text), type, score); }
#define SPACE "\xe2\x96\x81"

static void spm(void)
{
    static make_vocab m = {.model = "llama", .bos = 1, .add_bos = 1, .space_prefix = 1};
    static const char *const texts[] = {"a", "b", "ab", SPACE, SPACE "a", SPACE "ab", "ba"};
    add(&m, "<unk>", 2, 0), add(&m, "<s>", 3, 0), add(&m, "</s>", 3, 0), add(&m, "<0x0A>", 6, 0), add(&m, "<0xC3>", 6, 0), add(&m, "  ", 4, 0), add(&m, "", 1, 0);
    for (size_t i = 0; i < PN_COUNT(texts); i++) add(&m, texts[i], 1, (float)i - 10); /* 7 .. 13 */
    const opened o = open_made(&m);
    if (!o.v) return;
    const pn_specials *s = pn_vocab_specials(o.v);
    CHECK("special ids of an SPM file", s->bos == 1 && s->eos == 2 && s->unk == 0 && s->newline == 3 && s->pad == -1 && s->add_bos && !s->add_eos, "bos %d newline %d", (int)s->bos, (int)s->newline);
    CHECK("only </s> ends generation", pn_vocab_is_eog(o.v, 2) && !pn_vocab_is_eog(o.v, 1) && !pn_vocab_is_eog(o.v, -1) && !pn_vocab_is_eog(o.v, 99), "eog");
    CHECK("hidden ids", pn_vocab_is_control(o.v, 0) && pn_vocab_is_control(o.v, 1) && !pn_vocab_is_control(o.v, 5) && !pn_vocab_is_control(o.v, 1000), "control");
    CHECK("its memory is counted", pn_vocab_bytes(o.v) > 100 && pn_vocab_bytes(o.v) < 100000, "%" PRIu64, pn_vocab_bytes(o.v));
    const pn_str empty = pn_vocab_text(o.v, 6);
    CHECK("an empty text has a name", empty.n == 9 && memcmp(empty.p, "[EMPTY_6]", 9) == 0, "%.*s", (int)empty.n, empty.p);
    CHECK("no text outside", pn_vocab_text(o.v, -1).n == 0 && pn_vocab_text(o.v, 14).n == 0, "some");
    check_ids(o.v, "", true, true, "1");
    check_ids(o.v, "ab", true, true, "1 12");       /* the prefix is a space */
    check_ids(o.v, "bab ab", false, false, "10 13 8 12"); /* "ba" (13) beats "ab" (9): its score is higher */
    check_ids(o.v, "a  a", false, false, "11 5 11"); /* two spaces are a token; the text after it has a prefix again */
    check_ids(o.v, "<s>a", true, true, "1 1 11");
    check_ids(o.v, "\n\xc3\xa9", false, false, "10 3 4 0"); /* bytes; one has no token: unknown */
    const pinch_token ids[] = {1, 11, 12, 3, 0, 2}, bad[] = {-5, 11, 1 << 30};
    check_text(o.v, ids, 6, false, true, "<s> a ab\n<unk></s>");
    check_text(o.v, ids, 6, true, false, " a ab\n");
    check_text(o.v, ids + 1, 3, true, false, "a ab\n"); /* no BOS: the prefix goes */
    check_text(o.v, bad, 3, false, true, " a");
    char piece[4] = "???";
    CHECK("a piece says its length and keeps to its room", pn_piece(o.v, 2, true, piece, 2) == 4 && memcmp(piece, "</?", 3) == 0, "%.3s", piece);
    close_made(o);
}
static void bpe(void)
{
    static make_vocab m = {.model = "gpt2", .pre = "gpt-2", .bos = -1, .add_bos = -1, .space_prefix = -1};
    static const char *const texts[] = {"a", "b", "\xc4\xa0", "ab", ("\xc4\xa0" "ab"), "\xc4\x8a", "!", "'", "s"};
    for (size_t i = 0; i < PN_COUNT(texts); i++) add(&m, texts[i], 1, 0);
    add(&m, "<|im_end|>", 1, 0), add(&m, "<|user|>", 4, 0), add(&m, "x\xe2\x82\xac", 1, 0), add(&m, "<|endoftext|>", 3, 0);
    make_merge(&m, "a", 1, "b", 1);
    make_merge(&m, "\xc4\xa0", 2, "ab", 2);
    make_merge(&m, "b", 1, "a", 1); /* makes no token */
    make_merge(&m, "a", 1, "b", 1); /* again: the first counts */
    const opened o = open_made(&m);
    if (!o.v) return;
    const pn_specials *s = pn_vocab_specials(o.v);
    CHECK("default ids that the vocabulary has", s->bos == 11 && s->eos == 11 && s->unk == -1 && s->newline == 5 && !s->add_bos, "%d %d %d", (int)s->bos, (int)s->eos, (int)s->newline);
    CHECK("an end is known by its text and becomes hidden", s->eot == 9 && pn_vocab_is_eog(o.v, 9) && pn_vocab_is_control(o.v, 9) && pn_vocab_is_eog(o.v, 12), "eot %d", (int)s->eot);
    check_ids(o.v, "ab ab", true, true, "3 4");
    check_ids(o.v, "ba", false, false, "1 0"); /* merged to "ba", which is none: its bytes */
    check_ids(o.v, "ab<|im_end|><|user|>\n", false, false, "3 10 5");
    check_ids(o.v, "ab<|im_end|>\n", false, true, "3 9 5");
    check_ids(o.v, "\xff", false, false, "");
    const pinch_token marks[] = {3, 2, 6, 2, 7, 8, 4, 9, 10};
    check_text(o.v, marks, 9, false, false, "ab!'s ab<|user|>"); /* spaces before marks go */
    const pinch_token odd[] = {11};
    check_text(o.v, odd, 1, false, false, "x[UNK_BYTE_0xe282acx\xe2\x82\xac]");
    close_made(o);
}
static void harmony_and_gemma(void)
{
    static make_vocab m = {.model = "llama", .bos = -1, .add_bos = -1, .space_prefix = -1};
    static const char *const texts[] = {"<unk>", "<s>", "</s>", "<|return|>", "<|call|>", "<|end|>", "<|channel|>", "<|tool_response>"};
    for (size_t i = 0; i < PN_COUNT(texts); i++) add(&m, texts[i], 3, 0);
    const opened o = open_made(&m);
    if (!o.v) return;
    bool eog[8];
    for (int i = 0; i < 8; i++) eog[i] = pn_vocab_is_eog(o.v, i);
    CHECK("with <|return|> and <|call|>, <|end|> ends a message only", eog[3] && eog[4] && !eog[5] && !pn_vocab_is_control(o.v, 5), "eog");
    CHECK("with <|tool_response>, </s> is text", eog[7] && !eog[2] && !pn_vocab_is_control(o.v, 2), "eog");
    CHECK("<|channel|> is always shown", !pn_vocab_is_control(o.v, 6), "control");
    CHECK("a missing key of the pre-tokenizer is no matter of SPM", !pn_vocab_warning(o.v), "%s", pn_vocab_warning(o.v));
    close_made(o);
    m.model = "gpt2";
    m.bos = 1;
    const opened b = open_made(&m);
    CHECK("a missing pre-tokenizer is told", b.v && pn_vocab_warning(b.v) && strstr(pn_vocab_warning(b.v), "tokenizer.ggml.pre"), "no warning");
    close_made(b);
}

/* ---- hostile ones ---------------------------------------------------------------------------- */

static void key_string(make_bytes *b, uint64_t *n, const char *key, const char *text) { make_text_key(b, n, key, text); }
static void key_strings(make_bytes *b, uint64_t *n, const char *key, const char *words)
{
    size_t count = 0;
    for (const char *at = words; *at; at += strcspn(at, ";"), at += *at == ';') count++;
    make_array(b, n, key, PN_GGUF_STRING, count);
    for (const char *at = words; *at; at += strcspn(at, ";"), at += *at == ';') make_string(b, at, strcspn(at, ";"));
}
static void key_ints(make_bytes *b, uint64_t *n, const char *key, int32_t first, size_t count)
{
    make_array(b, n, key, PN_GGUF_I32, count);
    for (size_t i = 0; i < count; i++) make_u32(b, (uint32_t)first);
}
/* A file is a list of "key=value": value "s:text", "l:a;b;c" (strings), "i:number*count" (array), "u:number", "b:0". */
static pinch_status open_recipe(const char *recipe, pn_vocab **v, pn_gguf **g, pinch_error *err)
{
    make_bytes b = {0};
    uint64_t n = 0;
    for (const char *at = recipe; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        char key[64], value[256];
        const size_t length = strcspn(at, "\n"), eq = strcspn(at, "=");
        snprintf(key, sizeof key, "tokenizer.ggml.%.*s", (int)eq, at);
        snprintf(value, sizeof value, "%.*s", (int)(length - eq - 1), at + eq + 1);
        const char *star = strchr(value, '*');
        const long number = strtol(value + 2, NULL, 0);
        if (value[0] == 's') key_string(&b, &n, key, value + 2);
        if (value[0] == 'l') key_strings(&b, &n, key, value + 2);
        if (value[0] == 'i') key_ints(&b, &n, key, (int32_t)number, star ? strtoul(star + 1, NULL, 0) : 1);
        if (value[0] == 'u') make_key(&b, &n, key, PN_GGUF_U32), make_u32(&b, (uint32_t)number);
        if (value[0] == 'b') make_key(&b, &n, key, PN_GGUF_BOOL), make_raw(&b, number ? "\1" : "\0", 1);
    }
    *v = NULL;
    *g = make_open_bytes(&b, n, err);
    free(b.p);
    return *g ? pn_vocab_open(v, *g, err) : err->status;
}
#define SPM "model=s:llama\ntokens=l:<unk>;<s>;</s>\n"
#define BPE "model=s:gpt2\npre=s:gpt-2\ntokens=l:a;b;c;d;e;f;g;h;i;j;k;l\n"

static void refused(void)
{
    static const struct { const char *recipe; pinch_status status; const char *sentence; } cases[] = {
        {"", PINCH_ERR_UNSUPPORTED, "the file names no tokenizer"},
        {"model=s:bert\ntokens=l:a\n", PINCH_ERR_UNSUPPORTED, "no tokenizer \"bert\" here"},
        {"model=s:t5\n", PINCH_ERR_UNSUPPORTED, "no tokenizer \"t5\" here"},
        {"model=u:7\n", PINCH_ERR_FORMAT, "tokenizer.ggml.model"},
        {"model=s:llama\n", PINCH_ERR_FORMAT, "no tokenizer.ggml.tokens"},
        {"model=s:llama\ntokens=l:\n", PINCH_ERR_FORMAT, "tokenizer.ggml.tokens is empty"},
        {"model=s:llama\ntokens=i:1*3\n", PINCH_ERR_FORMAT, "tokenizer.ggml.tokens is not an array of strings"},
        {"model=s:llama\ntokens=s:a\n", PINCH_ERR_FORMAT, "tokenizer.ggml.tokens is not an array of strings"},
        {"model=s:llama\ntokens=l:a;b;a\n", PINCH_ERR_FORMAT, "tokens 0 and 2 have the same text"},
        {SPM "token_type=l:x\n", PINCH_ERR_FORMAT, "tokenizer.ggml.token_type is not an array of integers"},
        {SPM "scores=l:x\n", PINCH_ERR_FORMAT, "tokenizer.ggml.scores is not an array of numbers"},
        {SPM "add_bos_token=l:x\n", PINCH_ERR_FORMAT, "tokenizer.ggml.add_bos_token"},
        {SPM "eos_token_id=s:x\n", PINCH_ERR_FORMAT, "tokenizer.ggml.eos_token_id"},
        {SPM "suppress_tokens=l:x\n", PINCH_ERR_FORMAT, "tokenizer.ggml.suppress_tokens is not an array of integers"},
        {"model=s:gpt2\npre=s:gpt-2\ntokens=l:a\n", PINCH_ERR_FORMAT, "no tokenizer.ggml.merges"},
        {BPE "merges=i:1*2\n", PINCH_ERR_FORMAT, "tokenizer.ggml.merges is not an array of strings"},
        {"model=s:gpt2\npre=s:viking\ntokens=l:a\nmerges=l:a b\n", PINCH_ERR_UNSUPPORTED, "no pre-tokenizer \"viking\" here"},
        {"model=s:gpt2\npre=s:gpt-2\ntokens=l:a\nmerges=l:a b\nadd_bos_token=b:1\n", PINCH_ERR_FORMAT, "adds a BOS and the file has none"},
        {"model=s:gemma4\ntokens=l:a\nmerges=l:a b\n", PINCH_ERR_FORMAT, "adds a BOS and the file has none"},
        {"model=s:llama\ntokens=l:a\nadd_eos_token=b:1\nadd_bos_token=b:0\n", PINCH_ERR_FORMAT, "adds an EOS and the file has none"},
    };
    for (size_t i = 0; i < PN_COUNT(cases); i++) {
        pn_vocab *v;
        pn_gguf *g;
        pinch_error err = {0};
        const pinch_status st = open_recipe(cases[i].recipe, &v, &g, &err);
        CHECK("refused with its sentence", st == cases[i].status && strstr(err.message, cases[i].sentence) && !v, "case %zu: %d \"%s\"", i, (int)st, err.message);
        pn_vocab_close(v);
        pn_gguf_close(g);
    }
}
/* Odd but harmless: they open, and any text goes through and back. */
static void odd(void)
{
    static const char *const recipes[] = {
        SPM, SPM "bos_token_id=u:1000000\neos_token_id=u:4294967295\n", SPM "token_type=i:-7*3\n", SPM "token_type=i:3*2\nscores=i:5*1\n", SPM "suppress_tokens=i:99*4\n",
        SPM "token_type=i:4*9\n", "model=s:llama\ntokens=l:;;;x\nadd_bos_token=b:0\n", "model=s:llama\ntokens=l:a\nadd_bos_token=b:0\ntoken_type=i:4*1\n",
        BPE "merges=l:\n", BPE "merges=l:ab;a;; ;a b;ab a;aba ab; a b;a  b;a b\n", BPE "merges=l:b a;a b;ab a;ba b;ab ab;ba ba\ntoken_type=i:6*12\n",
        "model=s:gpt2\npre=s:kimi-k2\ntokens=l:a;b;c;d;e;f;g;h;i;j;k;l\n", "model=s:gemma4\ntokens=l:a;b;" SPACE "\nbos_token_id=u:0\nmerges=l:" SPACE " a;a b\n",
        "model=s:gpt2\npre=s:llama-bpe\ntokens=l:aa;b;c;d;e;f;g;h;i;j;k;l\nmerges=l:a a\n",
    };
    static const char text[] = "ab aba\nabab <s></s> \xc3\xa9\xff\xe2\x96\x81x\0y  aa";
    for (size_t i = 0; i < PN_COUNT(recipes); i++) {
        pn_vocab *v;
        pn_gguf *g;
        pinch_error err = {0};
        const pinch_status st = open_recipe(recipes[i], &v, &g, &err);
        if (CHECK("an odd vocabulary opens", st == PINCH_OK, "case %zu: %s", i, err.message)) {
            pinch_token *ids = NULL;
            char *back = NULL;
            size_t n = 0, n_back = 0, n_suppressed;
            const pinch_token *suppressed;
            CHECK("it encodes", pn_encode(v, text, sizeof text - 1, true, true, &ids, &n, &err) == PINCH_OK, "case %zu: %s", i, err.message);
            for (size_t k = 0; k < n; k++) CHECK("ids are tokens", ids[k] >= 0 && ids[k] < pn_vocab_size(v), "case %zu: %d", i, (int)ids[k]);
            CHECK("it decodes", pn_decode(v, ids, n, false, true, &back, &n_back, &err) == PINCH_OK, "case %zu: %s", i, err.message);
            n_suppressed = pn_vocab_suppressed(v, &suppressed);
            for (size_t k = 0; k < n_suppressed; k++) CHECK("suppressed ids are tokens", suppressed[k] < pn_vocab_size(v), "case %zu: %d", i, (int)suppressed[k]);
            free(ids);
            free(back);
        }
        pn_vocab_close(v);
        pn_gguf_close(g);
    }
}
static void odd_scores(void)
{
    static const float scores[] = {NAN, INFINITY, -INFINITY, -NAN, 0.0f, -0.0f, 1e38f, -1e38f};
    static make_vocab m = {.model = "llama", .bos = 1, .add_bos = 0, .space_prefix = 0};
    static const char *const texts[] = {"aa", "aaa", "ab", "ba", "bb", "abb", "aab", "b"};
    add(&m, "<unk>", 2, 0), add(&m, "<s>", 3, 0);
    for (size_t i = 0; i < PN_COUNT(texts); i++) add(&m, texts[i], 1, scores[i]);
    const opened o = open_made(&m);
    if (!o.v) return;
    check_ids(o.v, "aaa", false, false, "3");  /* NaN is the least, not a trap */
    check_ids(o.v, "bba", false, false, "6 0"); /* 0 before NaN */
    check_ids(o.v, "aab", false, false, "8");
    close_made(o);
}

int main(void)
{
    spm();
    bpe();
    harmony_and_gemma();
    refused();
    odd();
    odd_scores();
    return pn_done();
}
