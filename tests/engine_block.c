/* A block that drafts tokens and is right: layers add nothing, so the next token follows from the last alone, and the block's matrix lets the embedding through.
 * What the session then drafts by it is accepted, all of it where the likeliest token is taken; with a pruned head as well. */
#include "tiny_model.h"

#include "engine/engine.h"

enum { E = 32, LAYERS = 3, VOCAB = 48, HEAD = 8, PRUNED = 20, TOKENS = 30, PROMPT = 9 };

static void layer(tiny *t, int i)
{
    tiny_add(t, tiny_name(i, "attn_q.weight"), E, 2 * E, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_q_norm.weight"), HEAD, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_k_norm.weight"), HEAD, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "post_attention_norm.weight"), E, 1, 1, 1.0f);
    tiny_fill(tiny_find(t, tiny_name(i, "attn_output.weight")), 0.0f);
    tiny_fill(tiny_find(t, tiny_name(i, "ffn_down.weight")), 0.0f);
}

static void block(tiny *t, int i)
{
    const float one = 1.0f;
    tiny_tensor *x = tiny_add(t, tiny_name(i, "nextn.eh_proj.weight"), 2 * E, E, 1, 0.0f);
    tiny_fill(x, 0.0f);
    for (size_t k = 0; k < E; k++) memcpy(&x->data[k * 2 * E + k], &one, sizeof one);
    tiny_fill(tiny_add(t, tiny_name(i, "nextn.enorm.weight"), E, 1, 1, 1.0f), 1.0f);
    tiny_add(t, tiny_name(i, "nextn.hnorm.weight"), E, 1, 1, 1.0f);
}

static void prune(tiny *t)
{
    tiny_tensor *ids = tiny_add(t, "output_ids", PRUNED, 1, 1, 0.0f);
    ids->type = PN_I32;
    for (uint32_t i = 0; i < PRUNED; i++) ids->data[i] = 2 * i + 3;
    tiny_add(t, "output.weight", E, PRUNED, 1, 0.0f);
}

static pinch_model *model_of(bool pruned)
{
    static const int32_t sections[4] = {1, 1, 1, 0};
    const tiny_shape s = {.n_layers = LAYERS, .n_embd = E, .n_ff = 40, .n_vocab = VOCAB, .n_head = {4, 4, 4}, .n_head_kv = {2, 2, 2}, .d = HEAD};
    static const struct { const char *key; int32_t value; } keys[] = {{".nextn_predict_layers", 1}, {".full_attention_interval", 1}, {".ssm.conv_kernel", 4}, {".ssm.inner_size", 16},
                                                                      {".ssm.state_size", 8}, {".ssm.time_step_rank", 2}, {".ssm.group_count", 1}};
    tiny t = tiny_decoder("qwen35", &s);
    for (size_t i = 0; i < PN_COUNT(keys); i++) tiny_int(&t, keys[i].key, keys[i].value);
    tiny_ints(&t, ".rope.dimension_sections", sections, 4);
    for (int i = 0; i < LAYERS; i++) layer(&t, i);
    block(&t, LAYERS - 1);
    if (pruned) prune(&t);
    pinch_model_options o = pinch_model_options_default();
    o.n_threads = 1;
    o.draft_block = true;
    pinch_model *m = NULL;
    pinch_error err = {0};
    const int fd = tiny_write(&t);
    CHECK("a model with a block opens", pinch_model_open_fd(&m, fd, "tiny", &o, &err) == PINCH_OK, "%s", err.message);
    close(fd);
    tiny_free(&t);
    return m;
}

typedef struct spoken {
    pinch_token tokens[TOKENS + 1];
    size_t n;
    pinch_draft_stats drafts;
} spoken;

static bool write_down(void *user, pinch_token token, const char *text, size_t n)
{
    spoken *s = user;
    (void)text, (void)n;
    if (token >= 0 && s->n < TOKENS) s->tokens[s->n++] = token;
    return false;
}

static spoken speak(pinch_model *m, int32_t n_draft, float temperature)
{
    spoken said = {.n = 0};
    pinch_session_options so = pinch_session_options_default();
    so.n_ctx = 64;
    so.n_batch = 16;
    so.n_threads = 2;
    so.draft = n_draft ? PINCH_DRAFT_MTP : PINCH_DRAFT_NONE;
    so.n_draft = n_draft;
    pinch_sampler_options how = pinch_sampler_options_default();
    how.temperature = temperature;
    how.seed = 11;
    pinch_generate_options o = pinch_generate_options_default();
    o.max_tokens = TOKENS;
    o.ignore_eos = true;
    o.on_token = write_down;
    o.user = &said;
    pinch_session *s = NULL;
    pinch_sampler *sampler = NULL;
    pinch_generate_result result = {0};
    pinch_token prompt[PROMPT];
    pinch_error err = {0};
    for (int i = 0; i < PROMPT; i++) prompt[i] = i * 5 % VOCAB;
    pinch_status st = pinch_session_open(&s, m, &so, &err);
    if (s) s->drafts.unmeasured = true;
    if (!st) st = pinch_sampler_open(&sampler, m, &how, &err);
    if (!st) st = pinch_session_feed(s, 0, prompt, PROMPT, &err);
    if (!st) st = pinch_generate(s, 0, sampler, &o, &result, &err);
    CHECK("text is generated", st == PINCH_OK && said.n == TOKENS, "%s", err.message);
    said.drafts = result.drafts;
    pinch_sampler_close(sampler);
    pinch_session_close(s);
    return said;
}

static void drafts(const char *what, pinch_model *m)
{
    const spoken plain = speak(m, 0, 0.0f), sampled = speak(m, 0, 0.3f);
    for (int32_t n = 1; n <= 7; n++) {
        const spoken a = speak(m, n, 0.0f), b = speak(m, n, 0.3f);
        CHECK("what the block is right about is accepted", a.drafts.n_accepted == a.drafts.n_drafted && a.drafts.n_accepted >= TOKENS * n / (n + 1) - n, "%s, %d tokens: %d of %d", what, (int)n,
              (int)a.drafts.n_accepted, (int)a.drafts.n_drafted);
        CHECK("what is sampled is accepted now and then", b.drafts.n_accepted > 0 && b.drafts.n_accepted < b.drafts.n_drafted, "%s, %d tokens: %d of %d", what, (int)n, (int)b.drafts.n_accepted,
              (int)b.drafts.n_drafted);
        CHECK("drafts change no token", !memcmp(a.tokens, plain.tokens, sizeof a.tokens) && !memcmp(b.tokens, sampled.tokens, sizeof b.tokens), "%s, %d tokens", what, (int)n);
    }
}

int main(void)
{
    for (int pruned = 0; pruned < 2; pruned++) {
        pinch_model *m = model_of(pruned);
        if (m) drafts(pruned ? "pruned head" : "whole head", m);
        pinch_model_close(m);
    }
    return pn_done();
}
