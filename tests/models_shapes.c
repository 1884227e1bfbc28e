/* Decoders of odd shapes, and metadata and weights that mean harm: the same bits however the rows are cut, or a sentence. Meant for AddressSanitizer and
 * UndefinedBehaviorSanitizer as well. */
#include "tiny_runs.h"

#include <math.h>

static const tiny_shape plain = {.n_layers = 2, .n_embd = 32, .n_ff = 40, .n_vocab = 48, .n_head = {4, 4}, .n_head_kv = {2, 2}, .d = 8};

static float *first_row(tiny *t)
{
    pinch_error err;
    pinch_session_options o = pinch_session_options_default();
    pinch_model *m = tiny_open(t, PINCH_ACTIVATIONS_F32, &err);
    float *rows = CHECK("model opens", m != NULL, "%s", err.message) ? run("compared", m, &o, 0) : NULL;
    pinch_model_close(m);
    tiny_free(t);
    return rows;
}

/* Both recipes give the same logits, or do not. */
static void compare(const char *what, tiny *a, tiny *b, bool same)
{
    float *x = first_row(a), *y = first_row(b);
    CHECK(what, x && y && same_bits(x, y, (size_t)N_TEXT * (size_t)plain.n_vocab) == same, "%s", same ? "they differ" : "they are the same");
    free(x);
    free(y);
}

/* ---- heads ------------------------------------------------------------------------------------------------------------------------------ */

/* Groups of odd numbers of query heads that do not share out over two threads: one is cut by channels, whatever the cache holds them as. */
static void halved_groups(int d, int n_head_kv)
{
    const tiny_shape s = {.n_layers = 1, .n_embd = 32, .n_ff = 40, .n_vocab = 48, .n_head = {3 * n_head_kv}, .n_head_kv = {n_head_kv}, .d = d};
    tiny t = tiny_decoder("llama", &s);
    tiny_int(&t, ".attention.key_length", d);
    tiny_int(&t, ".attention.value_length", d);
    pinch_error err;
    pinch_model *m = tiny_open(&t, PINCH_ACTIVATIONS_Q8, &err);
    CHECK("odd groups open", m != NULL, "%s", err.message);
    for (int type = 0; m && type < (d % 32 ? 2 : 3); type++) {
        pinch_session_options o = pinch_session_options_default();
        o.n_ctx = 100;
        o.type_k = o.type_v = (pinch_cache_type)type;
        o.n_threads = 1;
        float *want = run("odd groups", m, &o, 0);
        for (int threads = 2; threads <= 3; threads++) {
            o.n_threads = threads;
            o.n_batch = 1;
            float *got = run("odd groups", m, &o, 0);
            CHECK("a group cut in halves has the same bits", same_bits(want, got, (size_t)N_TEXT * 48), "%d channels, %d keys, cache type %d, %d threads", d, n_head_kv, type, threads);
            free(got);
        }
        free(want);
    }
    pinch_model_close(m);
    tiny_free(&t);
}

static void heads(void)
{
    for (int d = 64; d <= 128; d += d == 96 ? 32 : 8) halved_groups(d, d % 3 + 1);

    const tiny_shape varied = {.n_layers = 3, .n_embd = 32, .n_ff = 40, .n_vocab = 48, .n_head = {4, 2, 6}, .n_head_kv = {2, 2, 1}, .d = 8};
    tiny t = tiny_decoder("llama", &varied);
    runs("heads that differ by layer, their size that of layer 0", &t);
    tiny_shape narrow = varied;
    narrow.n_head[0] = 2; /* a head has 16 channels by layer 0, 8 by layer 1: rotation of 16 channels must not meet heads of 8 */
    narrow.n_head[1] = 4;
    t = tiny_decoder("llama", &narrow);
    refused("heads of a size that changes by layer", &t, "attn_q.weight");
    const tiny_shape many = {.n_layers = 1, .n_embd = 32, .n_ff = 40, .n_vocab = 48, .n_head = {40}, .n_head_kv = {2}, .d = 6};
    t = tiny_decoder("llama", &many);
    tiny_int(&t, ".attention.key_length", 6);
    tiny_int(&t, ".attention.value_length", 6);
    runs("20 query heads to a key", &t);
    t = tiny_decoder("llama", &plain);
    tiny_int(&t, ".rope.dimension_count", 10);
    refused("more rotated channels than there are", &t, "rope.dimension_count");
    t = tiny_decoder("llama", &plain);
    tiny_int(&t, ".rope.dimension_count", 4);
    runs("half of the channels rotated", &t);
}

/* ---- experts ---------------------------------------------------------------------------------------------------------------------------- */

static void experts(void)
{
    tiny_shape s = plain;
    s.n_experts = 5;
    s.n_used = 5;
    tiny t = tiny_decoder("llama", &s);
    runs("all experts used", &t);
    s.n_used = 2;
    t = tiny_decoder("llama", &s);
    tiny_fill(tiny_find(&t, "blk.0.ffn_gate_inp.weight"), NAN);
    runs("a router of NaNs", &t);
    t = tiny_decoder("llama", &s);
    tiny_fill(tiny_find(&t, "blk.1.ffn_gate_inp.weight"), INFINITY);
    runs("a router of infinities", &t);
    t = tiny_decoder("llama", &s);
    tiny_fill(tiny_find(&t, "blk.0.ffn_gate_inp.weight"), 0.0f);
    runs("experts that tie", &t);
    s.n_used = 6;
    t = tiny_decoder("llama", &s);
    refused("more experts used than there are", &t, "expert_used_count");
}

/* ffn_gate_exps over ffn_up_exps, expert by expert. */
static void join_gate_up(tiny *t, int layer, const tiny_shape *s)
{
    tiny_tensor *both = tiny_add(t, tiny_name(layer, "ffn_gate_up_exps.weight"), s->n_embd, 2 * s->n_ff, s->n_experts, 0.0f);
    tiny_tensor *parts[2] = {tiny_find(t, tiny_name(layer, "ffn_gate_exps.weight")), tiny_find(t, tiny_name(layer, "ffn_up_exps.weight"))};
    const size_t n = (size_t)(s->n_embd * s->n_ff);
    for (int e = 0; e < s->n_experts; e++)
        for (int i = 0; i < 2; i++) memcpy(both->data + (size_t)(2 * e + i) * n, parts[i]->data + (size_t)e * n, n * 4);
    for (int i = 0; i < 2; i++) snprintf(parts[i]->name, sizeof parts[i]->name, "unused.%d.%d", layer, i);
}

static void fused_experts(void)
{
    tiny_shape s = plain;
    s.n_experts = 3;
    s.n_used = 2;
    tiny a = tiny_decoder("llama", &s), b = tiny_decoder("llama", &s);
    for (int i = 0; i < s.n_layers; i++) join_gate_up(&b, i, &s);
    compare("gate and up of an expert in one tensor", &a, &b, true);
    b = tiny_decoder("llama", &s);
    for (int i = 0; i < s.n_layers; i++) join_gate_up(&b, i, &s);
    runs("gate and up of an expert in one tensor", &b);
}

static tiny grouped(int n, int used)
{
    tiny_shape s = plain;
    s.n_experts = 6;
    s.n_used = 5;
    tiny t = tiny_decoder("llama", &s);
    tiny_int(&t, ".expert_group_count", n);
    if (used >= 0) tiny_int(&t, ".expert_group_used_count", used);
    return t;
}

static void groups(void)
{
    tiny t = grouped(3, 1);
    runs("groups that hold fewer experts than are used", &t);
    t = grouped(1, 7);
    runs("one group is none", &t);
    static const struct { int n, used; const char *part; } bad[] = {{4, 1, "expert_group_count"}, {6, 1, "expert_group_count"}, {INT32_MAX, 1, "expert_group_count"}, {-1, 1, "expert_group_count"},
                                                                    {3, 0, "expert_group_used_count"}, {3, 3, "expert_group_used_count"}, {3, -1, "expert_group_used_count"}};
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        t = grouped(bad[i].n, bad[i].used);
        refused("groups that do not divide the experts", &t, bad[i].part);
    }
}

/* ---- latent attention --------------------------------------------------------------------------------------------------------------- */

enum { RANK = 20, N_ROT = 6, PLAIN = 5, D_V = 7, Q_RANK = 12 };

static const tiny_shape latent = {.n_layers = 2, .n_embd = 32, .n_ff = 40, .n_vocab = 48, .n_head = {3, 3}, .n_head_kv = {1, 1}, .d = 8};

/* attn_k_b and attn_v_b hold what attn_kv_b holds, or attn_kv_b alone is there. */
static void heads_of_latent(tiny *t, int n_head, int layer, bool joined)
{
    const int total = PLAIN + D_V;
    tiny_tensor *both = tiny_add(t, tiny_name(layer, "attn_kv_b.weight"), RANK, n_head * total, 1, 0.0f);
    tiny_tensor *k = tiny_add(t, tiny_name(layer, "attn_k_b.weight"), PLAIN, RANK, n_head, 0.0f), *v = tiny_add(t, tiny_name(layer, "attn_v_b.weight"), RANK, D_V, n_head, 0.0f);
    for (int h = 0; h < n_head; h++) {
        for (int c = 0; c < RANK; c++)
            for (int j = 0; j < PLAIN; j++) k->data[(h * RANK + c) * PLAIN + j] = both->data[(h * total + j) * RANK + c];
        memcpy(v->data + h * D_V * RANK, both->data + (h * total + PLAIN) * RANK, D_V * RANK * sizeof *v->data);
    }
    tiny_tensor *unused[3] = {joined ? k : both, joined ? v : NULL};
    for (int i = 0; unused[i]; i++) snprintf(unused[i]->name, sizeof unused[i]->name, "unused.%d.%d", layer, i);
}

static tiny latent_decoder(const char *arch, const tiny_shape *s, bool joined, bool low_query)
{
    tiny t = tiny_decoder(arch, s);
    const int E = s->n_embd, q = s->n_head[0] * (PLAIN + N_ROT);
    tiny_int(&t, ".attention.kv_lora_rank", RANK);
    tiny_int(&t, joined ? ".attention.key_length" : ".attention.key_length_mla", PLAIN + N_ROT);
    tiny_int(&t, joined ? ".attention.value_length" : ".attention.value_length_mla", D_V);
    tiny_int(&t, ".rope.dimension_count", N_ROT);
    tiny_int(&t, ".leading_dense_block_count", s->n_layers);
    for (int i = 0; i < s->n_layers; i++) {
        tiny_add(&t, tiny_name(i, "attn_kv_a_mqa.weight"), E, RANK + N_ROT, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "attn_kv_a_norm.weight"), RANK, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "attn_output.weight"), s->n_head[0] * D_V, E, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "attn_q.weight"), E, q, 1, 0.0f);
        heads_of_latent(&t, s->n_head[i], i, joined);
        if (!low_query) continue;
        tiny_add(&t, tiny_name(i, "attn_q_a.weight"), E, Q_RANK, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "attn_q_a_norm.weight"), Q_RANK, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "attn_q_b.weight"), Q_RANK, q, 1, 0.0f);
    }
    return t;
}

/* What stands under a key gets a name that nobody asks for. */
static void rename_key(tiny *t, const char *key)
{
    char full[128];
    const size_t n = (size_t)snprintf(full, sizeof full, "%s%s", t->arch, key);
    for (size_t i = 8; i + n <= t->values.n; i++)
        if (t->values.p[i - 8] == n && !memcmp(t->values.p + i, full, n)) t->values.p[i] = '~';
}

static void tiny_int_instead(tiny *t, const char *key, int32_t value)
{
    rename_key(t, key);
    tiny_int(t, key, value);
}

static void latents(void)
{
    for (int way = 0; way < 4; way++) {
        tiny t = latent_decoder("deepseek2", &latent, way & 1, way & 2);
        runs("latent attention of odd sizes", &t);
    }
    tiny a = latent_decoder("deepseek2", &latent, false, false), b = latent_decoder("deepseek2", &latent, true, false);
    compare("heads in one tensor are the same heads", &a, &b, true);
    static const struct { const char *key; int32_t value; } bad[] = {{".attention.kv_lora_rank", 0}, {".attention.kv_lora_rank", INT32_MAX},
                                                                     {".attention.key_length_mla", -1}, {".attention.value_length_mla", 0}, {".rope.dimension_count", 5},
                                                                     {".rope.dimension_count", 0}, {".expert_gating_func", 5}, {".leading_dense_block_count", 3}};
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        tiny t = latent_decoder("deepseek2", &latent, false, false);
        tiny_int_instead(&t, bad[i].key, bad[i].value);
        refused(bad[i].key, &t, bad[i].key + 1);
    }
    a = latent_decoder("deepseek2", &latent, false, false);
    tiny_int_instead(&a, ".attention.key_length_mla", N_ROT);
    refused("a head whose channels all rotate", &a, "rope.dimension_count");
    a = latent_decoder("deepseek2", &latent, false, true);
    tiny_add(&a, "blk.1.attn_q_a.weight", latent.n_embd, (1 << 14) + 1, 1, 0.0f);
    refused("a latent of queries beyond all sizes", &a, "attn_q_a");
}

/* ---- several residual streams ----------------------------------------------------------------------------------------------------------- */

static tiny streams_decoder(const tiny_shape *s)
{
    tiny t = latent_decoder("xing4_0", s, false, true);
    tiny_int(&t, ".hyper_connection.count", 4);
    tiny_int(&t, ".hyper_connection.sinkhorn_iterations", 20);
    tiny_float(&t, ".hyper_connection.epsilon", 1e-6f);
    for (int i = 0; i < s->n_layers; i++) {
        static const char *const names[2][3] = {{"hc_attn_fn.weight", "hc_attn_base.weight", "hc_attn_scale.weight"}, {"hc_ffn_fn.weight", "hc_ffn_base.weight", "hc_ffn_scale.weight"}};
        for (int block = 0; block < 2; block++) {
            tiny_add(&t, tiny_name(i, names[block][0]), 4 * s->n_embd, 24, 1, 0.0f);
            tiny_add(&t, tiny_name(i, names[block][1]), 24, 1, 1, 0.0f);
            tiny_add(&t, tiny_name(i, names[block][2]), 3, 1, 1, 1.0f);
        }
    }
    return t;
}

static void streams(void)
{
    tiny_shape wide = latent;
    wide.n_embd = 300;
    tiny t = streams_decoder(&wide);
    runs("four streams of an odd width", &t);
    t = streams_decoder(&latent);
    tiny_fill(tiny_find(&t, "blk.0.hc_attn_fn.weight"), NAN);
    runs("streams that mix by NaN", &t);
    t = streams_decoder(&latent);
    tiny_fill(tiny_find(&t, "blk.1.hc_ffn_scale.weight"), 1e30f);
    runs("streams that mix by the bounds", &t);
    static const struct { const char *key; int32_t value; } bad[] = {{".hyper_connection.count", 3}, {".hyper_connection.sinkhorn_iterations", INT32_MAX}, {".hyper_connection.sinkhorn_iterations", -1},
                                                                     {".hyper_connection.epsilon", -1}};
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        t = streams_decoder(&latent);
        tiny_int_instead(&t, bad[i].key, bad[i].value);
        refused(bad[i].key, &t, bad[i].key + 1);
    }
}

/* ---- sinks, biases of experts ------------------------------------------------------------------------------------------------------- */

static const tiny_shape sinking = {.n_layers = 2, .n_embd = 32, .n_ff = 150, .n_vocab = 48, .n_experts = 5, .n_used = 1, .n_head = {6, 6}, .n_head_kv = {2, 2}, .d = 8};

static tiny gpt_oss(int window)
{
    const tiny_shape *s = &sinking;
    tiny t = tiny_decoder("gpt-oss", s);
    tiny_int(&t, ".attention.key_length", s->d);
    tiny_int(&t, ".attention.value_length", s->d);
    if (window >= 0) tiny_int(&t, ".attention.sliding_window", window);
    for (int i = 0; i < s->n_layers; i++) {
        tiny_add(&t, tiny_name(i, "post_attention_norm.weight"), s->n_embd, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "attn_sinks.weight"), s->n_head[i], 1, 1, 0.5f);
        tiny_add(&t, tiny_name(i, "ffn_gate_inp.bias"), s->n_experts, 1, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_gate_exps.bias"), s->n_ff, s->n_experts, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_up_exps.bias"), s->n_ff, s->n_experts, 1, 8.0f); /* beyond the clamp for some */
        tiny_add(&t, tiny_name(i, "ffn_down_exps.bias"), s->n_embd, s->n_experts, 1, 0.0f);
    }
    return t;
}

static tiny with_tensor(const char *name, float value)
{
    tiny t = gpt_oss(9);
    tiny_fill(tiny_find(&t, name), value);
    return t;
}

static void set_item(tiny *t, const char *name, size_t item, float value) { memcpy(&tiny_find(t, name)->data[item], &value, 4); }

/* All rows of layer 0 go to expert 3 because of the router's bias. */
static tiny all_to_3(void)
{
    tiny t = gpt_oss(9);
    set_item(&t, "blk.0.ffn_gate_inp.bias", 3, 1e6f);
    return t;
}

static void sinks(void)
{
    static const float values[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f};
    for (int window = 0; window <= 33; window += 11) {
        tiny t = gpt_oss(window);
        runs("sinks beside a window narrower than a tile, or than a batch", &t);
    }
    for (size_t i = 0; i < PN_COUNT(values); i++) {
        tiny t = with_tensor("blk.1.attn_sinks.weight", values[i]);
        runs("sinks of the largest numbers and of none", &t);
    }
    tiny a = with_tensor("blk.1.attn_sinks.weight", 1e30f), b = with_tensor("blk.1.attn_output.weight", 0.0f);
    compare("a sink that takes all leaves no value", &a, &b, true);
    a = with_tensor("blk.1.attn_sinks.weight", -1e30f), b = with_tensor("blk.1.attn_sinks.weight", -INFINITY);
    compare("a sink that takes nothing changes nothing", &a, &b, true);
    a = with_tensor("blk.1.attn_sinks.weight", -1e30f), b = with_tensor("blk.1.attn_sinks.weight", 0.0f);
    compare("any other does", &a, &b, false);
    a = gpt_oss(9);
    tiny_add(&a, "blk.1.attn_sinks.weight", sinking.n_head[1] + 1, 1, 1, 0.0f);
    refused("a sink too many", &a, "blk.1.attn_sinks.weight");
    a = gpt_oss(9);
    snprintf(tiny_find(&a, "blk.0.attn_sinks.weight")->name, 64, "unused");
    refused("no sinks", &a, "blk.0.attn_sinks.weight");
    a = gpt_oss(-1);
    refused("no window", &a, "attention.sliding_window");
    a = gpt_oss(-2);
    tiny_int(&a, ".attention.sliding_window", -5);
    refused("a negative window", &a, "attention.sliding_window");
}

static void expert_biases(void)
{
    static const char *const names[] = {"blk.0.ffn_gate_exps.bias", "blk.0.ffn_up_exps.bias", "blk.0.ffn_down_exps.bias"};
    for (size_t i = 0; i < PN_COUNT(names); i++) {
        const size_t n = (size_t)(i == 2 ? sinking.n_embd : sinking.n_ff);
        for (int own = 0; own < 2; own++) {
            tiny a = all_to_3(), b = all_to_3();
            set_item(&b, names[i], 2 * n + (own ? n : 0), 0.5f); /* the first item of expert 3, or of the one before it */
            compare(own ? "an expert adds its own bias" : "and no other's", &a, &b, !own);
        }
        tiny t = gpt_oss(9);
        tiny_add(&t, names[i], (int64_t)n, sinking.n_experts - 1, 1, 0.0f);
        refused("biases for some of the experts", &t, names[i]);
    }
    tiny a = all_to_3(), b = all_to_3();
    set_item(&b, "blk.0.ffn_up_exps.bias", 3 * (size_t)sinking.n_ff + 7, 50.0f);
    set_item(&a, "blk.0.ffn_up_exps.bias", 3 * (size_t)sinking.n_ff + 7, 5e5f);
    compare("what multiplies is clamped from above", &a, &b, true);
    a = all_to_3(), b = all_to_3();
    set_item(&b, "blk.0.ffn_up_exps.bias", 3 * (size_t)sinking.n_ff + 7, -50.0f);
    set_item(&a, "blk.0.ffn_up_exps.bias", 3 * (size_t)sinking.n_ff + 7, -5e5f);
    compare("and from below", &a, &b, true);
    a = all_to_3(), b = all_to_3();
    set_item(&b, "blk.0.ffn_gate_exps.bias", 3 * (size_t)sinking.n_ff + 7, 50.0f);
    set_item(&a, "blk.0.ffn_gate_exps.bias", 3 * (size_t)sinking.n_ff + 7, 5e5f);
    compare("what is activated is clamped from above", &a, &b, true);
}

/* ---- layers that share keys and values, and have an input of their own -------------------------------------------------------------- */

enum { D_SLID = 6, LAYER_INPUT = 5, SHARED = 2, F_EXPERT = 20 };
static const tiny_shape varied4 = {.n_layers = 4, .n_embd = 32, .n_ff = 40, .n_vocab = 48, .n_head = {4, 4, 2, 6}, .n_head_kv = {2, 1, 1, 3}, .d = 8};
static const int32_t slides4[] = {1, 0, 1, 0};

static void gemma4_layer(tiny *t, int i, int n_layer_input)
{
    const tiny_shape *s = &varied4;
    const int E = s->n_embd, d = slides4[i] ? D_SLID : s->d;
    static const char *const norms[] = {"post_attention_norm.weight", "post_ffw_norm.weight", "post_norm.weight"};
    tiny_add(t, tiny_name(i, "attn_q.weight"), E, s->n_head[i] * d, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_q_norm.weight"), d, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_output.weight"), s->n_head[i] * d, E, 1, 0.0f);
    tiny_add(t, tiny_name(i, "layer_output_scale.weight"), 1, 1, 1, 1.0f);
    for (int j = 0; j < 3; j++) tiny_add(t, tiny_name(i, norms[j]), E, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_k.weight"), E, s->n_head_kv[i] * d, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_k_norm.weight"), d, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_v.weight"), E, s->n_head_kv[i] * d, 1, 0.0f);
    if (n_layer_input == 0) return;
    tiny_add(t, tiny_name(i, "inp_gate.weight"), E, n_layer_input, 1, 0.0f);
    tiny_add(t, tiny_name(i, "proj.weight"), n_layer_input, E, 1, 0.0f);
}

/* Sliding and whole layers in turn; the last two read the keys and values of the first two. */
static tiny gemma4(int window, int n_layer_input)
{
    const tiny_shape *s = &varied4;
    tiny t = tiny_decoder("gemma4", s);
    tiny_int(&t, ".attention.key_length", s->d);
    tiny_int(&t, ".attention.value_length", s->d);
    tiny_int(&t, ".attention.key_length_swa", D_SLID);
    tiny_int(&t, ".attention.value_length_swa", D_SLID);
    tiny_int(&t, ".rope.dimension_count_swa", 4);
    tiny_int(&t, ".attention.sliding_window", window);
    tiny_int(&t, ".attention.shared_kv_layers", SHARED);
    tiny_int(&t, ".embedding_length_per_layer_input", n_layer_input);
    tiny_ints(&t, ".attention.sliding_window_pattern", slides4, 4);
    for (int i = 0; i < s->n_layers; i++) gemma4_layer(&t, i, n_layer_input);
    if (n_layer_input == 0) return t;
    tiny_add(&t, "per_layer_token_embd.weight", s->n_layers * n_layer_input, s->n_vocab, 1, 0.0f);
    tiny_add(&t, "per_layer_model_proj.weight", s->n_embd, s->n_layers * n_layer_input, 1, 0.0f);
    tiny_add(&t, "per_layer_proj_norm.weight", n_layer_input, 1, 1, 1.0f);
    return t;
}

static tiny gemma4_experts(void)
{
    const int E = varied4.n_embd, n = 5;
    tiny t = gemma4(9, 0);
    tiny_int(&t, ".expert_count", n);
    tiny_int(&t, ".expert_used_count", 2);
    tiny_int(&t, ".expert_feed_forward_length", F_EXPERT);
    for (int i = 0; i < varied4.n_layers; i++) {
        tiny_add(&t, tiny_name(i, "ffn_gate_inp.weight"), E, n, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_gate_inp.scale"), E, 1, 1, 8.0f);
        tiny_add(&t, tiny_name(i, "pre_ffw_norm_2.weight"), E, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "post_ffw_norm_1.weight"), E, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "post_ffw_norm_2.weight"), E, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "ffn_gate_up_exps.weight"), E, 2 * F_EXPERT, n, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_down_exps.weight"), F_EXPERT, E, n, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_down_exps.scale"), n, 1, 1, 1.0f);
    }
    return t;
}

static void drop(tiny *t, const char *name) { tiny_find(t, name)->name[0] = '~'; }

static void shared_values(void)
{
    for (int window = 1; window <= 33; window += 8) {
        tiny t = gemma4(window, window == 9 ? 0 : LAYER_INPUT);
        runs("layers that read the keys and values of others", &t);
    }
    tiny a = gemma4(9, LAYER_INPUT), b = gemma4(9, LAYER_INPUT);
    tiny_fill(tiny_find(&a, "blk.2.attn_k.weight"), 0.5f);
    drop(&b, "blk.3.attn_v.weight");
    compare("what such a layer has of its own does not count", &a, &b, true);
    a = gemma4(9, LAYER_INPUT), b = gemma4(9, LAYER_INPUT);
    memcpy(tiny_find(&a, "blk.1.attn_v.weight")->data, tiny_find(&a, "blk.1.attn_k.weight")->data, tiny_elements(tiny_find(&a, "blk.1.attn_k.weight")) * 4);
    drop(&b, "blk.1.attn_v.weight");
    compare("without a matrix for them values are what keys are made of", &a, &b, true);
    b = gemma4(9, LAYER_INPUT);
    drop(&b, "blk.1.attn_v.weight");
    runs("values that are keys", &b);
    b = gemma4(9, LAYER_INPUT);
    drop(&b, "blk.1.attn_k.weight");
    refused("values without keys", &b, "blk.1.attn_k.weight");
    b = gemma4(9, LAYER_INPUT);
    drop(&b, "blk.0.attn_v.weight");
    tiny_int_instead(&b, ".attention.value_length_swa", D_SLID + 1);
    refused("values of another size than the keys that they are", &b, "blk.0.attn_v.weight");
}

static void layer_inputs(void)
{
    tiny a = gemma4(9, LAYER_INPUT), b = gemma4(9, LAYER_INPUT);
    tiny_int_instead(&b, ".embedding_length_per_layer_input", 0);
    for (int i = 0; i < varied4.n_layers; i++) tiny_fill(tiny_find(&a, tiny_name(i, "post_norm.weight")), 0.0f);
    compare("an input that adds nothing", &a, &b, true);
    a = gemma4(9, LAYER_INPUT), b = gemma4(9, LAYER_INPUT);
    set_item(&b, "per_layer_token_embd.weight", 3, 1.0f); /* of layer 0 for token 0 */
    compare("the token's second embedding counts", &a, &b, false);
    a = gemma4(9, LAYER_INPUT), b = gemma4(9, LAYER_INPUT);
    for (int i = 0; i < varied4.n_layers; i++) tiny_fill(tiny_find(&a, tiny_name(i, "layer_output_scale.weight")), 1.0f);
    for (int i = 0; i < varied4.n_layers; i++) drop(&b, tiny_name(i, "layer_output_scale.weight"));
    compare("a scale of 1 is none", &a, &b, true);
    static const float values[] = {NAN, INFINITY};
    static const char *const names[] = {"per_layer_token_embd.weight", "blk.1.layer_output_scale.weight", "blk.0.attn_v.weight", "per_layer_proj_norm.weight"};
    for (size_t i = 0; i < 2 * PN_COUNT(names); i++) {
        a = gemma4(9, LAYER_INPUT);
        tiny_fill(tiny_find(&a, names[i / 2]), values[i % 2]);
        runs("an input that is no number", &a);
    }
    for (size_t i = 0; i < PN_COUNT(names); i += 3) {
        a = gemma4(9, LAYER_INPUT);
        tiny_find(&a, names[i])->ne[0]--;
        refused("an input of another width", &a, names[i]);
    }
    a = gemma4_experts();
    runs("experts beside a dense block", &a);
    a = gemma4_experts();
    tiny_add(&a, "blk.1.ffn_gate_inp.scale", 1, 1, 1, 1.0f);
    refused("a scale that is no router's", &a, "blk.1.ffn_gate_inp.scale");
}

static void bad_gemma4(void)
{
    static const struct { const char *key; int32_t value; } bad[] = {
        {".attention.shared_kv_layers", 4}, {".attention.shared_kv_layers", -1}, {".attention.shared_kv_layers", 3}, {".attention.key_length_swa", 0}, {".attention.value_length_swa", INT32_MAX},
        {".rope.dimension_count_swa", 3}, {".rope.dimension_count_swa", 8}, {".rope.dimension_count", 10}, {".attention.sliding_window", 0}, {".attention.sliding_window_pattern", 1},
        {".embedding_length_per_layer_input", -1}, {".expert_count", 5}};
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        tiny t = gemma4(9, LAYER_INPUT);
        tiny_int_instead(&t, bad[i].key, bad[i].value);
        refused(bad[i].key, &t, !strcmp(bad[i].key, ".expert_count") ? "expert_used_count" : strncmp(bad[i].key, ".rope", 5) ? bad[i].key + 1 : "rope.dimension_count");
    }
    static const int32_t heads[] = {4, 4, 3, 6};
    tiny t = gemma4(9, LAYER_INPUT);
    rename_key(&t, ".attention.head_count");
    tiny_ints(&t, ".attention.head_count", heads, 4);
    refused("heads that do not divide those that they share", &t, "attention.head_count");
    t = gemma4(9, LAYER_INPUT);
    tiny_int_instead(&t, ".embedding_length_per_layer_input", 1 << 20);
    refused("inputs of layers beyond all sizes", &t, "per_layer_token_embd.weight");
}

/* ---- windows ---------------------------------------------------------------------------------------------------------------------------- */

static tiny gemma(int window)
{
    tiny t = tiny_decoder("gemma3", &plain);
    tiny_int(&t, ".attention.sliding_window", window);
    for (int i = 0; i < plain.n_layers; i++) {
        tiny_add(&t, tiny_name(i, "attn_q_norm.weight"), plain.d, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "attn_k_norm.weight"), plain.d, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "post_attention_norm.weight"), plain.n_embd, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "post_ffw_norm.weight"), plain.n_embd, 1, 1, 1.0f);
    }
    return t;
}

static void windows(void)
{
    for (int window = 1; window <= 33; window += 8) {
        tiny t = gemma(window);
        tiny_int(&t, ".attention.sliding_window_pattern", 2);
        runs("a window narrower than a tile, or than a batch", &t);
    }
    const int32_t marks[] = {3, 0}, flags[] = {1, 0}, few[] = {1};
    tiny a = gemma(5), b = gemma(5);
    tiny_ints(&a, ".attention.sliding_window_pattern", marks, 2);
    tiny_ints(&b, ".attention.sliding_window_pattern", flags, 2);
    compare("any number but 0 says that a layer slides", &a, &b, true);
    a = gemma(5), b = gemma(5);
    tiny_float(&a, ".rope.scaling.attn_factor", 1.25f);
    compare("the factor of cos and sin counts in sliding layers too", &a, &b, false);
    a = gemma(5);
    tiny_ints(&a, ".attention.sliding_window_pattern", few, 1);
    refused("a list of windows that is too short", &a, "sliding_window_pattern");
}

/* ---- rotation --------------------------------------------------------------------------------------------------------------------------- */

static void rotation(void)
{
    tiny a = tiny_decoder("llama", &plain), b = tiny_decoder("llama", &plain);
    tiny_float(&a, ".rope.scaling.factor", 0.0f);
    tiny_float(&a, ".rope.scale_linear", 4.0f);
    compare("the old name of the scaling factor counts only where the new one is missing", &a, &b, true);
    a = tiny_decoder("llama", &plain), b = tiny_decoder("llama", &plain);
    tiny_float(&a, ".rope.scale_linear", 4.0f);
    compare("and there it does", &a, &b, false);
    a = tiny_decoder("llama", &plain);
    tiny_fill(tiny_add(&a, "rope_freqs.weight", plain.d / 2, 1, 1, 0.0f), 0.0f);
    runs("frequencies divided by zero", &a);
    a = tiny_decoder("llama", &plain);
    tiny_float(&a, ".rope.scaling.factor", 1e-38f);
    runs("angles beyond all numbers", &a);
    a = tiny_decoder("llama", &plain);
    tiny_float(&a, ".rope.freq_base", 3e38f);
    runs("the largest base", &a);
    a = tiny_decoder("llama", &plain);
    tiny_string(&a, ".rope.scaling.type", "longrope");
    tiny_int(&a, ".rope.scaling.original_context_length", 16);
    tiny_add(&a, "rope_factors_short.weight", plain.d / 2, 1, 1, 2.0f);
    b = tiny_decoder("llama", &plain);
    compare("a long context without factors for it has none", &a, &b, true);
}

/* Logits where factors are long beyond a context of 300. */
static float *longrope(pinch_model *m, int32_t n_ctx)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = n_ctx;
    return run("longrope", m, &o, 0);
}

/* Contexts count as rounded up to a multiple of 256. */
static void long_factors(void)
{
    static const struct { int32_t n_ctx; bool is_long; } contexts[] = {{256, false}, {257, true}, {300, true}, {512, true}, {600, true}};
    tiny t = tiny_decoder("llama", &plain);
    tiny_string(&t, ".rope.scaling.type", "longrope");
    tiny_int(&t, ".rope.scaling.original_context_length", 300);
    tiny_add(&t, "rope_factors_short.weight", plain.d / 2, 1, 1, 1.0f);
    tiny_add(&t, "rope_factors_long.weight", plain.d / 2, 1, 1, 4.0f);
    pinch_error err;
    pinch_model *m = tiny_open(&t, PINCH_ACTIVATIONS_F32, &err);
    tiny_free(&t);
    if (!CHECK("model opens", m != NULL, "%s", err.message)) return;
    float *of_short = longrope(m, 100);
    for (size_t i = 0; i < PN_COUNT(contexts); i++) {
        float *rows = longrope(m, contexts[i].n_ctx);
        CHECK("the context decides which factors count", same_bits(rows, of_short, (size_t)N_TEXT * (size_t)plain.n_vocab) == !contexts[i].is_long, "context %d", (int)contexts[i].n_ctx);
        free(rows);
    }
    free(of_short);
    pinch_model_close(m);
}

/* ---- vocabulary and head ------------------------------------------------------------------------------------------------------------------ */

static void vocabularies(void)
{
    tiny_shape s = plain;
    s.n_vocab = 1;
    tiny t = tiny_decoder("llama", &s);
    runs("one token", &t);
    s.n_vocab = 0;
    t = tiny_decoder("llama", &s);
    refused("no tokens", &t, "token");
    t = tiny_decoder("llama", &plain);
    tiny_find(&t, "token_embd.weight")->ne[1]--;
    refused("an embedding short of a token", &t, "token_embd.weight");
}

static tiny pruned(const int32_t *ids, size_t n, int64_t ne2)
{
    tiny t = tiny_decoder("llama", &plain);
    tiny_add(&t, "output.weight", plain.n_embd, (int64_t)n, 1, 0.0f);
    tiny_tensor *x = tiny_add(&t, "output_ids", (int64_t)n, 1, ne2, 0.0f);
    x->type = PN_I32;
    for (size_t i = 0; i < n * (size_t)ne2; i++) x->data[i] = (uint32_t)ids[i % n];
    return t;
}

static void pruned_heads(void)
{
    const int32_t ids[] = {40, 3, 0, 47, 12}, bad[] = {1, 48}, negative[] = {-1};
    tiny t = pruned(ids, PN_COUNT(ids), 1);
    runs("a head of five tokens", &t);
    t = pruned(ids, PN_COUNT(ids), 1);
    float *rows = first_row(&t);
    for (size_t i = 0; rows && i < N_TEXT; i++) {
        const float *row = rows + i * (size_t)plain.n_vocab;
        size_t finite = 0;
        for (int32_t j = 0; j < plain.n_vocab; j++) finite += isfinite(row[j]) != 0;
        bool there = true;
        for (size_t j = 0; j < PN_COUNT(ids); j++) there = there && isfinite(row[ids[j]]);
        if (!CHECK("a pruned head leaves -inf where it has no row", there && finite == PN_COUNT(ids) && row[1] == -INFINITY, "row %zu: %zu finite", i, finite)) break;
    }
    free(rows);
    t = pruned(ids, PN_COUNT(ids), 400);
    refused("a list of ids with further dimensions", &t, "output_ids");
    t = pruned(bad, PN_COUNT(bad), 1);
    refused("an id beyond the vocabulary", &t, "output_ids");
    t = pruned(negative, PN_COUNT(negative), 1);
    refused("a negative id", &t, "output_ids");
}

/* ---- values --------------------------------------------------------------------------------------------------------------------------------- */

static void broken_weights(void)
{
    static const char *const names[] = {"token_embd.weight", "blk.0.attn_q.weight", "blk.0.attn_v.weight", "blk.1.ffn_norm.weight", "blk.1.ffn_up.weight", "output.weight"};
    static const float values[] = {NAN, -INFINITY};
    for (size_t i = 0; i < PN_COUNT(names); i++)
        for (size_t j = 0; j < PN_COUNT(values); j++) {
            tiny t = tiny_decoder("llama", &plain);
            const int64_t at = tiny_find(&t, names[i])->ne[0] / 2;
            memcpy(&tiny_find(&t, names[i])->data[at], &values[j], 4);
            runs("a weight that is no number", &t);
        }
}

static void numbers(void)
{
    static const struct { const char *key; int32_t value; } bad[] = {
        {".block_count", 0},     {".block_count", 513},         {".block_count", -1},           {".embedding_length", 0},           {".embedding_length", INT32_MAX},
        {".context_length", 0},  {".feed_forward_length", -5},  {".expert_count", 513},         {".attention.key_length", 0},       {".attention.key_length", INT32_MAX},
        {".expert_used_count", 1}, {".rope.dimension_count", 3}, {".rope.dimension_count", 0},   {".rope.freq_base", 1},             {".attention.value_length", -8},
        {".rope.scaling.factor", -1},
    };
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        tiny t = {.arch = "llama", .seed = 1};
        tiny_string(&t, "general.architecture", "llama");
        static const struct { const char *key; int32_t value; } good[] = {
            {".context_length", 64}, {".embedding_length", 32}, {".block_count", 1}, {".feed_forward_length", 40}, {".attention.head_count", 4}, {".attention.head_count_kv", 2},
            {".attention.layer_norm_rms_epsilon", 0}};
        for (size_t j = 0; j < PN_COUNT(good); j++)
            if (strcmp(good[j].key, bad[i].key)) tiny_int(&t, good[j].key, good[j].value);
        tiny_int(&t, bad[i].key, bad[i].value);
        tiny_tokens(&t, 8);
        refused(bad[i].key, &t, bad[i].key + 1);
    }
}

int main(void)
{
    heads();
    experts();
    fused_experts();
    groups();
    latents();
    streams();
    sinks();
    expert_biases();
    shared_values();
    layer_inputs();
    bad_gemma4();
    windows();
    rotation();
    long_factors();
    vocabularies();
    pruned_heads();
    broken_weights();
    numbers();
    return pn_done();
}
