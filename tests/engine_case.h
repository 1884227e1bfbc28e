/* tests/engine_case.h - a golden tiny model, of tests/golden or another folder: tokens, expected logits, tolerances, and sessions on it.
 *
 * Where they come from: tests/golden/README.md. A test frees what it loads with case_free. */
#ifndef PN_ENGINE_CASE_H
#define PN_ENGINE_CASE_H

#include "base/json.h"
#include "test.h"

enum { CASE_TOKENS = 256, CASE_CTX = 512 };

typedef struct golden_case {
    const char *name;
    char path[1024];
    pinch_token prompt[CASE_TOKENS], greedy[CASE_TOKENS];
    double margins[CASE_TOKENS]; /* golden's first logit minus its second at each greedy step */
    size_t n_prompt, n_greedy;
    int32_t n_vocab;
    double tolerance, tolerance_rms, tolerance_exact; /* greatest gap, rms, greatest gap without rounding activations */
    pinch_cache_type type_k, type_v;
    float *logits; /* [n_prompt][n_vocab] */
} golden_case;

static const char *const golden_names[] = {"llama-f32", "llama-mix32", "qwen3-q4km", "gemma3-q8"};

static char *case_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    char *data = malloc(size > 0 ? (size_t)size : 1);
    *n = data && size > 0 ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    return data;
}

static double case_number(const pn_json *object, const char *key, double missing)
{
    const pn_json *v = pn_json_member(object, key);
    return !v ? missing : v->kind == PN_JSON_INT ? (double)v->integer : v->number;
}

static size_t case_tokens(const pn_json *object, const char *key, pinch_token *out)
{
    const pn_json *list = pn_json_member(object, key);
    const size_t n = list && list->n < CASE_TOKENS ? list->n : 0;
    for (size_t i = 0; i < n; i++) out[i] = (pinch_token)list->items[i].integer;
    return n;
}

static void case_fill(golden_case *c, const pn_json *object)
{
    c->n_prompt = case_tokens(object, "prompt", c->prompt);
    c->n_greedy = case_tokens(object, "greedy", c->greedy);
    const pn_json *margins = pn_json_member(object, "greedy_margins");
    for (size_t i = 0; margins && i < c->n_greedy && i < margins->n; i++) c->margins[i] = margins->items[i].number;
    c->n_vocab = (int32_t)case_number(object, "n_vocab", 0);
    c->tolerance = case_number(object, "tolerance", 0);
    c->tolerance_rms = case_number(object, "tolerance_rms", c->tolerance);
    c->tolerance_exact = case_number(object, "tolerance_without_activation_rounding", c->tolerance);
    const pn_json *kv = pn_json_member(object, "kv");
    const bool f32 = kv && strcmp(kv->text, "f32") == 0;
    c->type_k = c->type_v = f32 ? PINCH_CACHE_F32 : PINCH_CACHE_F16;
}

/* The object of a case.json, as long as the arena is. */
static bool case_json(const char *folder, const char *name, pn_arena *arena, pn_json *object, pinch_error *err)
{
    char path[1024];
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s/case.json", folder, name);
    char *text = case_read(path, &n);
    pn_arena_init(arena, 1 << 20);
    const bool ok = text && pn_json_parse(object, arena, text, n, err) == PINCH_OK;
    free(text);
    return ok;
}

__attribute__((unused)) static bool case_load_from(golden_case *c, const char *folder, const char *name)
{
    *c = (golden_case){.name = name};
    char path[1024];
    size_t n_logits = 0;
    snprintf(c->path, sizeof c->path, "%s/%s/model.gguf", folder, name);
    pn_arena arena;
    pn_json object;
    pinch_error err = {0};
    if (case_json(folder, name, &arena, &object, &err)) case_fill(c, &object);
    pn_arena_free(&arena);
    snprintf(path, sizeof path, "%s/%s/logits.f32", folder, name);
    c->logits = (float *)(void *)case_read(path, &n_logits);
    return CHECK("golden case is whole", c->n_prompt > 0 && c->n_greedy > 0 && n_logits == c->n_prompt * (size_t)c->n_vocab * sizeof(float), "%s: %s", name, err.message);
}

__attribute__((unused)) static bool case_load(golden_case *c, const char *name) { return case_load_from(c, "tests/golden", name); }

__attribute__((unused)) static void case_free(golden_case *c)
{
    free(c->logits);
}

__attribute__((unused)) static pinch_model *case_model(const golden_case *c, pinch_activations activations)
{
    pinch_model_options options = pinch_model_options_default();
    options.activations = activations;
    pinch_model *model = NULL;
    pinch_error err = {0};
    CHECK("golden model opens", pinch_model_open(&model, c->path, &options, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    return model;
}

__attribute__((unused)) static pinch_session *case_session(const golden_case *c, pinch_model *model, int n_threads, int32_t n_batch, int32_t n_seq)
{
    pinch_session_options options = pinch_session_options_default();
    options.n_ctx = CASE_CTX;
    options.n_threads = options.n_threads_batch = n_threads;
    options.n_batch = n_batch;
    options.n_seq = n_seq;
    options.type_k = c->type_k;
    options.type_v = c->type_v;
    pinch_session *session = NULL;
    pinch_error err = {0};
    CHECK("session opens", pinch_session_open(&session, model, &options, &err) == PINCH_OK, "%s: %s", c->name, err.message);
    return session;
}

/* Receives rows of pinch_session_eval into a matrix [n][n_vocab]. */
__attribute__((unused)) static bool case_row(void *user, size_t index, const float *logits, int32_t n_vocab)
{
    memcpy((float *)user + index * (size_t)n_vocab, logits, (size_t)n_vocab * sizeof(float));
    return false;
}

/* Logits of all n tokens fed to sequence 0; the caller's, NULL on failure (checked). */
__attribute__((unused)) static float *case_logits(const golden_case *c, pinch_session *session, const pinch_token *tokens, size_t n)
{
    float *out = calloc(n * (size_t)c->n_vocab, sizeof *out);
    pinch_row *rows = calloc(n, sizeof *rows);
    pinch_error err = {0};
    for (size_t i = 0; rows && i < n; i++) rows[i] = (pinch_row){.token = tokens[i], .seq = 0, .logits = true};
    if (!out || !rows || !CHECK("tokens are computed", pinch_session_eval(session, rows, n, case_row, out, &err) == PINCH_OK, "%s: %s", c->name, err.message)) {
        free(out);
        out = NULL;
    }
    free(rows);
    return out;
}

#endif
