/* Any bytes as a model file: open, look at it, plan, tokenise, compute a few tokens. A status with a sentence, or a run. */
#include "fuzz.h"

#include "pinch.h"

enum { LIMIT = 64 << 20, CTX = 48 };

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

static void compute(pinch_model *model, pinch_draft draft)
{
    pinch_session_options options = pinch_session_options_default();
    options.n_ctx = CTX;
    options.n_batch = 8;
    options.n_threads = options.n_threads_batch = 1;
    options.draft = draft;
    pinch_session *session = NULL;
    pinch_error err;
    const int32_t n_vocab = pinch_model_n_vocab(model);
    if (pinch_session_open(&session, model, &options, &err) != PINCH_OK) return;
    pinch_token ids[CTX - 1];
    for (int i = 0; i < CTX - 1; i++) ids[i] = n_vocab > 0 ? (37 * i + 1) % n_vocab : 0;
    if (pinch_session_feed(session, 0, ids, CTX - 1, &err) == PINCH_OK) {
        MUST(pinch_session_position(session, 0) == CTX - 1 && pinch_session_logits(session) != NULL);
        pinch_sampler *sampler = NULL;
        if (pinch_sampler_open(&sampler, model, NULL, &err) == PINCH_OK) {
            const pinch_token chosen = pinch_sampler_choose(sampler, pinch_session_logits(session));
            MUST(chosen >= 0 && chosen < n_vocab);
            pinch_session_feed(session, 0, &chosen, 1, &err);
            pinch_session_truncate(session, 0, CTX - 8, &err);
            pinch_generate(session, 0, sampler, NULL, NULL, &err);
        }
        pinch_sampler_close(sampler);
    }
    pinch_session_close(session);
}

/* The same with the block that drafts tokens, which few models have. */
static void draft(int fd, pinch_model_options options)
{
    pinch_model *model = NULL;
    pinch_error err = {0};
    options.draft_block = true;
    const pinch_status status = pinch_model_open_fd(&model, fd, "input", &options, &err);
    MUST(status == PINCH_OK || (err.status == status && err.message[0]));
    if (model) compute(model, PINCH_DRAFT_MTP);
    pinch_model_close(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int fd = fuzz_file(data, size);
    if (fd < 0) return 0;
    pinch_model_options options = pinch_model_options_default();
    options.memory_limit = LIMIT;
    options.n_threads = 1;
    options.use_mapping = size % 2;
    pinch_model *model = NULL;
    pinch_error err = {0};
    const pinch_status status = pinch_model_open_fd(&model, fd, "input", &options, &err);
    MUST((status == PINCH_OK) == (model != NULL));
    MUST(status == PINCH_OK || (err.status == status && err.message[0] && !strchr(err.message, '\n')));
    if (model) {
        look(model);
        use_text(model);
        compute(model, size % 4 < 2 ? PINCH_DRAFT_LOOKUP : PINCH_DRAFT_NONE);
    }
    pinch_model_close(model);
    if (status == PINCH_OK) draft(fd, options);
    close(fd);
    return 0;
}
