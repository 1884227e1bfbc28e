/* Every id, text and piece of the reference's golden set, for each public vocabulary that is at hand.
 *
 * The vocabularies are fetched by ../shared/golden/fetch.py into a folder named by PINCH_CACHE (default build/cache). */
#include "base/json.h"
#include "token/token.h"

#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "test.h"

/* ---- SHA-256, for the golden hashes of pieces ------------------------------------------------ */

typedef struct sha {
    uint32_t h[8];
    uint8_t block[64];
    uint64_t n;
} sha;
static uint32_t rotate(uint32_t x, int by) { return x >> by | x << (32 - by); }
/* The first 32 fractional bits of a square or cube root of a prime: the standard's constants. */
static uint32_t root_bits(unsigned prime, bool cube)
{
    const double root = cube ? cbrt(prime) : sqrt(prime);
    return (uint32_t)((root - floor(root)) * 4294967296.0);
}
static void make_constants(uint32_t k[64], uint32_t h[8])
{
    int n = 0;
    for (unsigned p = 2; n < 64; p++) {
        bool prime = true;
        for (unsigned d = 2; d * d <= p; d++) prime &= p % d != 0;
        if (!prime) continue;
        if (n < 8) h[n] = root_bits(p, false);
        k[n++] = root_bits(p, true);
    }
}
static uint32_t constants[64], start_value[8];
static void sha_block(sha *s)
{
    uint32_t w[64], v[8];
    for (int i = 0; i < 16; i++) w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 | (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) + (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(v, s->h, sizeof v);
    for (int i = 0; i < 64; i++) {
        const uint32_t a = v[0], e = v[4];
        const uint32_t t = v[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + constants[i] + w[i];
        const uint32_t u = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += t;
        v[0] = t + u;
    }
    for (int i = 0; i < 8; i++) s->h[i] += v[i];
}
static void sha_add(sha *s, const void *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        s->block[s->n++ % 64] = ((const uint8_t *)p)[i];
        if (s->n % 64 == 0) sha_block(s);
    }
}
static uint32_t sha_first_word(sha *s)
{
    const uint64_t bits = 8 * s->n;
    sha_add(s, "\x80", 1);
    while (s->n % 64 != 56) sha_add(s, "", 1);
    for (int i = 7; i >= 0; i--) sha_add(s, &(uint8_t){(uint8_t)(bits >> 8 * i)}, 1);
    return s->h[0];
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct bytes { char *p; size_t n; } bytes;

static bytes read_file(const char *folder, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return (bytes){NULL, 0};
    fseek(f, 0, SEEK_END);
    bytes b = {NULL, (size_t)ftell(f)};
    rewind(f);
    b.p = malloc(b.n + 1);
    if (b.p && fread(b.p, 1, b.n, f) != b.n) b.n = 0;
    fclose(f);
    return b;
}
static bytes from_base64(pn_arena *arena, const pn_json *text)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    bytes b = {pn_arena_get(arena, text->n + 1, 1), 0};
    uint32_t word = 0;
    for (size_t i = 0; i < text->n && text->text[i] != '='; i++) {
        word = word << 6 | (uint32_t)(strchr(alphabet, text->text[i]) - alphabet);
        if (i % 4) b.p[b.n++] = (char)(word >> (6 - 2 * (i % 4)) & 0xff);
    }
    return b;
}

typedef struct corpus {
    pn_arena arena;
    struct { const char *id; bytes text; } *at;
    size_t n;
} corpus;
static void read_corpus(corpus *c, const char *folder)
{
    const bytes file = read_file(folder, "corpus.jsonl");
    c->at = pn_alloc(file.n / 16 + 1, sizeof *c->at);
    for (size_t at = 0; at < file.n;) {
        const char *end = memchr(file.p + at, '\n', file.n - at);
        const size_t n = end ? (size_t)(end - file.p) - at : file.n - at;
        pn_json line;
        if (n && CHECK("a line of the corpus reads", pn_json_parse(&line, &c->arena, file.p + at, n, NULL) == PINCH_OK, "%.*s", (int)n, file.p + at)) {
            c->at[c->n].id = pn_json_member(&line, "id")->text;
            c->at[c->n++].text = from_base64(&c->arena, pn_json_member(&line, "b64"));
        }
        at += n + 1;
    }
    free(file.p);
}

/* ---- comparison ------------------------------------------------------------------------------ */

typedef struct subject {
    const char *name;
    const pn_vocab *v;
    pn_arena *arena;
} subject;

static bool same_ids(const pn_json *want, const pinch_token *ids, size_t n)
{
    bool same = want->n == n;
    for (size_t i = 0; same && i < n; i++) same = want->items[i].integer == ids[i];
    return same;
}
static void compare_text(const subject *s, const char *id, const pn_json *golden, const char *field, bytes input, const pinch_token *ids, size_t n, bool remove, bool special)
{
    const pn_json *b64 = pn_json_member(golden, field);
    const bytes want = b64 ? from_base64(s->arena, b64) : input;
    char *text = NULL;
    size_t length = 0;
    pinch_error err;
    if (!CHECK("decoding succeeds", pn_decode(s->v, ids, n, remove, special, &text, &length, &err) == PINCH_OK, "%s", err.message)) return;
    CHECK(field, length == want.n && memcmp(text, want.p, length) == 0, "%s %s: \"%.*s\" instead of \"%.*s\"", s->name, id, (int)length, text, (int)want.n, want.p);
    free(text);
}
static void compare_pieces(const subject *s, const char *id, const pn_json *golden, const char *field, bytes input, const pinch_token *ids, size_t n, bool special)
{
    const pn_json *b64 = pn_json_member(golden, field);
    const bytes want = b64 ? from_base64(s->arena, b64) : input;
    size_t at = 0;
    bool same = true;
    for (size_t i = 0; i < n && same; i++) {
        char piece[4096];
        const size_t length = pn_piece(s->v, ids[i], special, piece, sizeof piece);
        same = length <= want.n - at && memcmp(piece, want.p + at, length) == 0;
        at += length;
    }
    CHECK(field, same && at == want.n, "%s %s: %zu bytes, golden has %zu", s->name, id, at, want.n);
}
static void compare_case(const subject *s, const char *id, bytes text, const pn_json *golden)
{
    pinch_token *plain = NULL, *special = NULL;
    size_t n_plain = 0, n_special = 0;
    pinch_error err = {0};
    const bool ok = pn_encode(s->v, text.p, text.n, false, false, &plain, &n_plain, &err) == PINCH_OK && pn_encode(s->v, text.p, text.n, true, true, &special, &n_special, &err) == PINCH_OK;
    if (!CHECK("encoding succeeds", ok, "%s %s: %s", s->name, id, err.message)) return;
    if (!pn_json_member(golden, "reference_dies")) {
        const pn_json *want_plain = pn_json_member(golden, "plain"), *want = pn_json_member(golden, "special");
        CHECK("plain ids", same_ids(want_plain, plain, n_plain), "%s %s: \"%.*s\"", s->name, id, (int)text.n, text.p);
        CHECK("ids with special tokens", same_ids(want->kind == PN_JSON_STRING ? want_plain : want, special, n_special), "%s %s: \"%.*s\"", s->name, id, (int)text.n, text.p);
        compare_text(s, id, golden, "text_plain", text, plain, n_plain, false, false);
        compare_text(s, id, golden, "text_shown", text, special, n_special, false, true);
        compare_text(s, id, golden, "text_hidden", text, special, n_special, true, false);
        compare_pieces(s, id, golden, "pieces_shown", text, special, n_special, true);
        compare_pieces(s, id, golden, "pieces_hidden", text, special, n_special, false);
    }
    free(plain);
    free(special);
}
static void compare_all_pieces(const subject *s, const pn_json *golden, const char *field, bool special)
{
    const pn_json *want = pn_json_member(golden, field);
    const int32_t n = pn_vocab_size(s->v);
    for (int32_t first = 0; first < n; first += 1024) {
        sha h = {.n = 0};
        memcpy(h.h, start_value, sizeof h.h);
        for (int32_t id = first; id < n && id < first + 1024; id++) {
            char piece[8192];
            const uint32_t length = (uint32_t)pn_piece(s->v, id, special, piece, sizeof piece);
            sha_add(&h, &(uint8_t[4]){(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16), 0}, 4);
            sha_add(&h, piece, length);
        }
        char hex[9];
        snprintf(hex, sizeof hex, "%08" PRIx32, sha_first_word(&h));
        const size_t at = 9 * ((size_t)first / 1024); /* eight digits and a blank each */
        CHECK("pieces of the whole vocabulary", want->n >= at + 8 && memcmp(hex, want->text + at, 8) == 0, "%s %s, ids from %d", s->name, field, (int)first);
    }
}
static void compare_specials(const subject *s, const pn_json *golden)
{
    const pn_specials *x = pn_vocab_specials(s->v);
    const pn_json *fim = pn_json_member(golden, "fim");
    const struct { const char *name; int64_t mine, want; } ids[] = {
        {"bos", x->bos, pn_json_member(golden, "bos")->integer}, {"eos", x->eos, pn_json_member(golden, "eos")->integer},
        {"eot", x->eot, pn_json_member(golden, "eot")->integer}, {"nl", x->newline, pn_json_member(golden, "nl")->integer},
        {"pad", x->pad, pn_json_member(golden, "pad")->integer}, {"fim_pre", x->fim_pre, fim->items[0].integer},
        {"fim_suf", x->fim_suf, fim->items[1].integer}, {"fim_mid", x->fim_mid, fim->items[2].integer},
        {"add_bos", x->add_bos, pn_json_member(golden, "add_bos")->boolean}, {"add_eos", x->add_eos, pn_json_member(golden, "add_eos")->boolean},
        {"n_vocab", pn_vocab_size(s->v), pn_json_member(golden, "n_vocab")->integer},
    };
    for (size_t i = 0; i < PN_COUNT(ids); i++)
        CHECK("special ids", ids[i].mine == ids[i].want, "%s %s: %d, golden has %d", s->name, ids[i].name, (int)ids[i].mine, (int)ids[i].want);
    const pn_json *eog = pn_json_member(golden, "eog"), *control = pn_json_member(golden, "control");
    size_t n_eog = 0, n_shown = 0, at = 0;
    bool same = true;
    for (int32_t id = 0; id < pn_vocab_size(s->v); id++) {
        if (pn_vocab_is_eog(s->v, id)) same &= n_eog < eog->n && eog->items[n_eog].integer == id, n_eog++;
        char piece[8192];
        const bool hidden = pn_vocab_is_control(s->v, id);
        n_shown += hidden && pn_piece(s->v, id, false, piece, sizeof piece) > 0;
        if (control->kind == PN_JSON_ARRAY && at < control->n && control->items[at].integer == id)
            CHECK("golden's control tokens are hidden", hidden, "%s %d", s->name, (int)id), at++;
    }
    CHECK("hidden tokens show nothing", n_shown == 0, "%s: %zu do", s->name, n_shown);
    CHECK("tokens that end generation", same && n_eog == eog->n, "%s: %zu, golden has %zu", s->name, n_eog, eog->n);
}

static void one_vocabulary(const char *cache, const char *folder, const char *name, const corpus *texts)
{
    char path[4096];
    snprintf(path, sizeof path, "ids_%s.json", name);
    const bytes file = read_file(folder, path);
    pn_arena arena;
    pn_arena_init(&arena, 1u << 30);
    pn_json golden;
    pinch_error err = {0};
    pn_gguf *g = NULL;
    pn_vocab *v = NULL;
    if (!CHECK("golden file reads", file.p && pn_json_parse(&golden, &arena, file.p, file.n, &err) == PINCH_OK, "%s: %s", path, err.message)) return;
    const char *model = pn_json_member(&golden, "file")->text;
    snprintf(path, sizeof path, "%s%s/%s", cache, strncmp(model, "ggml-vocab", 10) == 0 ? "/vocab" : "", model);
    if (pn_gguf_open(&g, path, &err)) {
        pn_skip(name, "its vocabulary is not in the cache");
    } else {
        struct timespec a, b;
        clock_gettime(CLOCK_MONOTONIC, &a);
        const pinch_status st = pn_vocab_open(&v, g, &err);
        clock_gettime(CLOCK_MONOTONIC, &b);
        if (CHECK("vocabulary opens", st == PINCH_OK, "%s: %s", name, err.message)) {
            if (getenv("PINCH_VERBOSE"))
                printf("%s: %d tokens, opened in %.1f ms, %" PRIu64 " bytes\n", name, (int)pn_vocab_size(v), 1e3 * (double)(b.tv_sec - a.tv_sec) + 1e-6 * (double)(b.tv_nsec - a.tv_nsec), pn_vocab_bytes(v));
            const subject s = {name, v, &arena};
            const pn_json *cases = pn_json_member(&golden, "cases");
            compare_specials(&s, &golden);
            compare_all_pieces(&s, &golden, "pieces_shown", true);
            compare_all_pieces(&s, &golden, "pieces_hidden", false);
            for (size_t i = 0; i < texts->n; i++) compare_case(&s, texts->at[i].id, texts->at[i].text, pn_json_member(cases, texts->at[i].id));
        }
    }
    pn_vocab_close(v);
    pn_gguf_close(g);
    pn_arena_free(&arena);
    free(file.p);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {
        "aquila", "baichuan", "command-r", "deepseek-coder", "deepseek-llm", "falcon", "gemma-4", "gemma3-270m-q4km", "gpt-2", "gpt-neox",
        "llama-bpe", "llama-spm", "mpt", "phi-3", "qwen2", "qwen35", "refact", "smollm2-135m-q41", "starcoder",
    };
    const char *shared = pn_shared(), *cache = getenv("PINCH_CACHE");
    if (!shared) {
        pn_skip("golden tokenizers", "no ../shared");
        return pn_done();
    }
    make_constants(constants, start_value);
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/golden/tokenizers", shared);
    corpus texts = {.n = 0};
    pn_arena_init(&texts.arena, 1u << 26);
    read_corpus(&texts, folder);
    CHECK("the corpus is there", texts.n > 0, "%s", folder);
    for (size_t i = 0; i < PN_COUNT(names); i++)
        if (argc < 2 || strcmp(argv[1], names[i]) == 0) one_vocabulary(cache ? cache : "build/cache", folder, names[i], &texts);
    free(texts.at);
    pn_arena_free(&texts.arena);
    return pn_done();
}
