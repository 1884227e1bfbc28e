/* tests/fuzz/engine_use.h - any bytes as a model file: open, look at it, plan, tokenise, compute some tokens. A status with a sentence, or a run. */
#ifndef PN_ENGINE_USE_H
#define PN_ENGINE_USE_H

#include "fuzz.h"

#include "pinch.h"

enum { USE_LIMIT = 64 << 20, USE_MOST = 64, USE_MORE = 6 };

static void look(const pinch_model *model)
{
    static const char *const keys[] = {"general.name", "general.architecture", "tokenizer.chat_template", "tokenizer.ggml.model", "general.file_type", ""};
    char buffer[64];
    MUST(pinch_model_arch(model) != NULL && pinch_model_n_vocab(model) >= 0);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const int64_t n = pinch_model_meta(model, keys[i], buffer, sizeof buffer);
        MUST(n < 0 || memchr(buffer, 0, sizeof buffer) != NULL);
    }
}

static void use_text(const pinch_model *model)
{
    static const char text[] = "the cat  and\n<s>the\xff hat";
    pinch_token ids[256];
    char out[1024];
    size_t n = 0;
    pinch_error err;
    if (pinch_tokenize(model, text, sizeof text, true, true, ids, 256, &n, &err) != PINCH_OK || n > 256) return;
    for (size_t i = 0; i < n; i++) MUST(ids[i] >= 0 && ids[i] < pinch_model_n_vocab(model));
    pinch_detokenize(model, ids, n, true, out, sizeof out, &n, &err);
    const pinch_message messages[] = {{"system", "be kind"}, {"user", "hello"}};
    pinch_chat_render(model, messages, 2, true, out, sizeof out, &n, &err);
}

/* Some tokens more, drafts among them, then half of the text and one of the tokens. */
static void go_on(const pinch_model *model, pinch_session *session, int n_tokens)
{
    pinch_sampler *sampler = NULL;
    pinch_generate_options options = pinch_generate_options_default();
    pinch_error err;
    options.max_tokens = USE_MORE;
    options.ignore_eos = true;
    if (pinch_sampler_open(&sampler, model, NULL, &err) != PINCH_OK) return;
    const pinch_token chosen = pinch_sampler_choose(sampler, pinch_session_logits(session));
    MUST(chosen >= 0 && chosen < pinch_model_n_vocab(model));
    pinch_generate(session, 0, sampler, &options, NULL, &err);
    if (pinch_session_truncate(session, 0, n_tokens / 2, &err) == PINCH_OK) pinch_session_feed(session, 0, &chosen, 1, &err);
    pinch_sampler_close(sampler);
}

/* Ways to use a file, drawn from a number. */
typedef struct use_how {
    int n_tokens; /* to compute, at most USE_MOST */
    bool mapping, block, exact;
    pinch_draft draft;
    pinch_cache_type type_k, type_v;
} use_how;

static use_how use_how_of(uint64_t number, int n_tokens)
{
    return (use_how){.n_tokens = n_tokens, .mapping = number & 1, .block = number / 2 % 4 > 0, .exact = number / 8 % 4 == 0, .draft = number / 32 % 4 ? PINCH_DRAFT_LOOKUP : PINCH_DRAFT_NONE,
                     .type_k = (pinch_cache_type)(number / 128 % 3), .type_v = (pinch_cache_type)(number / 384 % 3)};
}

static void compute(pinch_model *model, const use_how *how)
{
    const int n_tokens = how->n_tokens;
    pinch_session_options options = pinch_session_options_default();
    options.n_ctx = n_tokens + USE_MORE + 8; /* as many as a draft has and more */
    options.n_batch = 8;
    options.n_threads = options.n_threads_batch = 1;
    options.draft = how->draft;
    options.type_k = how->type_k;
    options.type_v = how->type_v;
    pinch_session *session = NULL;
    pinch_error err = {0};
    const int32_t n_vocab = pinch_model_n_vocab(model);
    const pinch_status opened = pinch_session_open(&session, model, &options, &err);
    MUST((opened == PINCH_OK) == (session != NULL) && (session || err.message[0]));
    if (!session) return;
    pinch_token ids[USE_MOST];
    for (int i = 0; i < n_tokens; i++) ids[i] = n_vocab > 0 ? (37 * i + 1) % n_vocab : 0;
    if (pinch_session_feed(session, 0, ids, (size_t)n_tokens, &err) == PINCH_OK) {
        MUST(pinch_session_position(session, 0) == n_tokens && pinch_session_logits(session) != NULL);
        go_on(model, session, n_tokens);
    }
    pinch_session_close(session);
}

static pinch_model *open_input(int fd, const use_how *how, bool draft_block)
{
    pinch_model_options options = pinch_model_options_default();
    options.memory_limit = USE_LIMIT;
    options.n_threads = 1;
    options.use_mapping = how->mapping;
    options.activations = how->exact ? PINCH_ACTIVATIONS_F32 : PINCH_ACTIVATIONS_Q8;
    options.draft_block = draft_block;
    pinch_model *model = NULL;
    pinch_error err = {0};
    const pinch_status status = pinch_model_open_fd(&model, fd, "input", &options, &err);
    MUST((status == PINCH_OK) == (model != NULL));
    MUST(status == PINCH_OK || (err.status == status && err.message[0] && !strchr(err.message, '\n')));
    return model;
}

/* Where `how` says so, with the block that drafts tokens, if there is one. Whether the model opened. */
static bool use_model_file(const uint8_t *data, size_t size, use_how how)
{
    const int fd = fuzz_file(data, size);
    if (fd < 0) return false;
    pinch_model *drafting = how.block ? open_input(fd, &how, true) : NULL, *model = drafting ? drafting : open_input(fd, &how, false);
    close(fd);
    if (drafting) how.draft = PINCH_DRAFT_MTP;
    if (model) {
        look(model);
        use_text(model);
        compute(model, &how);
    }
    pinch_model_close(model);
    return model != NULL;
}

#endif
