/* Tokens, pieces and chat templates of the public API. */
#include "engine/engine.h"

#include "chat/chat.h"

#include <stdlib.h>

pinch_token pinch_token_bos(const pinch_model *m) { return m->vocab ? pn_vocab_specials(m->vocab)->bos : -1; }
pinch_token pinch_token_eos(const pinch_model *m) { return m->vocab ? pn_vocab_specials(m->vocab)->eos : -1; }
bool pinch_model_adds_bos(const pinch_model *m) { return m->vocab && pn_vocab_specials(m->vocab)->add_bos; }
bool pinch_token_ends_generation(const pinch_model *m, pinch_token token) { return m->vocab && pn_vocab_is_eog(m->vocab, token); }

/* Copies `bytes` of a result into the caller's buffer, or says how large it must be. Frees the result. */
static pinch_status give(void *result, size_t n, size_t item, void *out, size_t capacity, size_t *n_out, const char *what, pinch_error *err)
{
    *n_out = n;
    if (n <= capacity && n > 0) memcpy(out, result, n * item);
    free(result);
    return n <= capacity ? PINCH_OK : pn_fail(err, PINCH_ERR_ARGUMENT, "%s: %zu do not fit in a buffer for %zu", what, n, capacity);
}

pinch_status pn_text_encode(const pinch_model *m, const char *text, size_t n, bool add_special, bool parse_special, pinch_token **ids, size_t *n_ids, pinch_error *err)
{
    const pinch_status st = pn_model_needs_vocab(m, err);
    return st ? st : pn_encode(m->vocab, text, n, add_special, parse_special, ids, n_ids, err);
}

pinch_status pinch_tokenize(const pinch_model *m, const char *text, size_t n, bool add_special, bool parse_special, pinch_token *out, size_t capacity, size_t *n_out, pinch_error *err)
{
    pinch_token *ids = NULL;
    size_t count = 0;
    const pinch_status st = pn_text_encode(m, text, n, add_special, parse_special, &ids, &count, err);
    return st ? st : give(ids, count, sizeof *ids, out, capacity, n_out, "tokens", err);
}

pinch_status pn_text_decode(const pinch_model *m, const pinch_token *tokens, size_t n, bool special, char **text, size_t *n_text, pinch_error *err)
{
    pinch_status st = pn_model_needs_vocab(m, err);
    for (size_t i = 0; i < n && !st; i++)
        if (tokens[i] < 0 || tokens[i] >= pn_vocab_size(m->vocab)) st = pn_fail(err, PINCH_ERR_ARGUMENT, "token %d is not in 0..%d", (int)tokens[i], (int)pn_vocab_size(m->vocab) - 1);
    return st ? st : pn_decode(m->vocab, tokens, n, false, special, text, n_text, err);
}

pinch_status pinch_detokenize(const pinch_model *m, const pinch_token *tokens, size_t n, bool special, char *out, size_t capacity, size_t *n_out, pinch_error *err)
{
    char *text = NULL;
    size_t count = 0;
    const pinch_status st = pn_text_decode(m, tokens, n, special, &text, &count, err);
    return st ? st : give(text, count, 1, out, capacity, n_out, "bytes of text", err);
}

size_t pinch_token_piece(const pinch_model *m, pinch_token token, bool special, char *out, size_t capacity)
{
    return m->vocab && token >= 0 && token < pn_vocab_size(m->vocab) ? pn_piece(m->vocab, token, special, out, capacity) : 0;
}

/* ---- chat ----------------------------------------------------------------------------------------------------------------------------- */

static void put_special(const pinch_model *m, pn_json_writer *w, const char *key, pinch_token id)
{
    if (id < 0) return;
    const pn_str text = pn_vocab_text(m->vocab, id);
    pn_json_put_key(w, key);
    pn_json_string(w, text.p, text.n);
}

/* The variables that transformers gives a template. */
static void put_context(const pinch_model *m, pn_json_writer *w, const pinch_message *messages, size_t n, bool add_generation_prompt)
{
    const pn_specials *special = pn_vocab_specials(m->vocab);
    pn_json_object(w);
    pn_json_put_key(w, "messages");
    pn_json_array(w);
    for (size_t i = 0; i < n; i++) {
        pn_json_object(w);
        pn_json_put_key(w, "role");
        pn_json_cstring(w, messages[i].role);
        pn_json_put_key(w, "content");
        pn_json_cstring(w, messages[i].content);
        pn_json_object_end(w);
    }
    pn_json_array_end(w);
    pn_json_put_key(w, "tools");
    pn_json_null(w);
    pn_json_put_key(w, "documents");
    pn_json_null(w);
    pn_json_put_key(w, "add_generation_prompt");
    pn_json_bool(w, add_generation_prompt);
    put_special(m, w, "bos_token", special->bos);
    put_special(m, w, "eos_token", special->eos);
    put_special(m, w, "unk_token", special->unk);
    put_special(m, w, "pad_token", special->pad);
    put_special(m, w, "sep_token", special->sep);
    pn_json_object_end(w);
}

pinch_status pn_text_template(const char *source, size_t n_source, const char *json, size_t n_json, int64_t now, char **text, size_t *n, pinch_error *err)
{
    pn_arena arena;
    pn_json context;
    pn_template *t = NULL;
    pn_arena_init(&arena, (uint64_t)64 << 20);
    pinch_status st = pn_json_parse(&context, &arena, json, n_json, err);
    if (!st && context.kind != PN_JSON_OBJECT) st = pn_fail(err, PINCH_ERR_ARGUMENT, "template input: an object of variables is wanted");
    if (!st) st = pn_template_open(&t, source, n_source, err);
    if (!st) st = pn_template_render(t, &context, now, text, n, err);
    pn_template_close(t);
    pn_arena_free(&arena);
    return st;
}

/* Drops a BOS at the start (EOS at the end) that the tokenizer will add by itself. */
static void drop_added(const pinch_model *m, char *text, size_t *n)
{
    const pn_specials *special = pn_vocab_specials(m->vocab);
    if (special->add_bos && special->bos >= 0) {
        const pn_str bos = pn_vocab_text(m->vocab, special->bos);
        if (bos.n && *n >= bos.n && !memcmp(text, bos.p, bos.n)) {
            *n -= bos.n;
            memmove(text, text + bos.n, *n);
        }
    }
    if (special->add_eos && special->eos >= 0) {
        const pn_str eos = pn_vocab_text(m->vocab, special->eos);
        if (eos.n && *n >= eos.n && !memcmp(text + *n - eos.n, eos.p, eos.n)) *n -= eos.n;
    }
}

pinch_status pn_text_chat(const pinch_model *m, const pinch_message *messages, size_t n, bool add_generation_prompt, char **text, size_t *n_text, pinch_error *err)
{
    pn_str source = {pn_template_chatml, strlen(pn_template_chatml)};
    bool found;
    pinch_status st = pn_model_needs_vocab(m, err);
    if (!st) st = pn_gguf_get_string(m->gguf, "tokenizer.chat_template", &source, &found, err);
    if (st) return st;
    pn_json_writer w = {0};
    put_context(m, &w, messages, n, add_generation_prompt);
    st = w.failed ? pn_fail_memory(err, "the messages", w.capacity) : pn_text_template(source.p, source.n, w.data, w.n, INT64_MIN, text, n_text, err);
    pn_json_writer_free(&w);
    if (!st) drop_added(m, *text, n_text);
    return st;
}

pinch_status pinch_chat_render(const pinch_model *m, const pinch_message *messages, size_t n_messages, bool add_generation_prompt, char *out, size_t capacity, size_t *n_out, pinch_error *err)
{
    char *text = NULL;
    size_t n = 0;
    const pinch_status st = pn_text_chat(m, messages, n_messages, add_generation_prompt, &text, &n, err);
    return st ? st : give(text, n, 1, out, capacity, n_out, "bytes of text", err);
}

pinch_status pinch_template_render(const char *source, size_t n_source, const char *json, size_t n_json, int64_t now, char *out, size_t capacity, size_t *n_out, pinch_error *err)
{
    char *text = NULL;
    size_t n = 0;
    const pinch_status st = pn_text_template(source, n_source, json, n_json, now, &text, &n, err);
    return st ? st : give(text, n, 1, out, capacity, n_out, "bytes of text", err);
}
