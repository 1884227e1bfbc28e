/* Delta-rule layers of odd shapes (Gated DeltaNet, KDA), heads gated channel by channel: the same bits however the rows are cut, also in company; what files
 * interleave gives the same bits as what they do not; and metadata that means harm: a sentence. */
#include "kernels/kernels.h"
#include "tiny_runs.h"

typedef struct hybrid {
    const char *arch, *kinds; /* d Gated DeltaNet, k KDA, a gated attention, l latent attention */
    int n_taps, d, n_k, n_v;
    int low;                  /* channels between two projections of KDA; 0: one */
    int n_experts;
} hybrid;

enum { E = 32, FF = 40, HEADS = 4, HEADS_KV = 2, HEAD = 8, RANK = 16, ROT = 4 };

static bool has(const hybrid *h, char kind) { return strchr(h->kinds, kind) != NULL; }
static bool next(const hybrid *h) { return !strcmp(h->arch, "qwen3next"); }

static void delta_tensors(tiny *t, const hybrid *h, int i)
{
    const int keys = h->n_k * h->d, values = h->n_v * h->d, channels = 2 * keys + values;
    tiny_add(t, tiny_name(i, "attn_qkv.weight"), E, channels, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_gate.weight"), E, values, 1, 0.0f);
    if (next(h)) tiny_add(t, tiny_name(i, "ssm_ba.weight"), E, 2 * h->n_v, 1, 0.0f);
    if (!next(h)) tiny_add(t, tiny_name(i, "ssm_beta.weight"), E, h->n_v, 1, 0.0f);
    if (!next(h)) tiny_add(t, tiny_name(i, "ssm_alpha.weight"), E, h->n_v, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ssm_conv1d.weight"), h->n_taps, channels, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ssm_dt.bias"), h->n_v, 1, 1, 0.5f);
    tiny_add(t, tiny_name(i, "ssm_a"), h->n_v, 1, 1, -0.5f);
    tiny_add(t, tiny_name(i, "ssm_norm.weight"), h->d, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "ssm_out.weight"), values, E, 1, 0.0f);
}

static void attention_tensors(tiny *t, int i)
{
    tiny_add(t, tiny_name(i, "attn_q.weight"), E, 2 * HEADS * HEAD, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_k.weight"), E, HEADS_KV * HEAD, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_v.weight"), E, HEADS_KV * HEAD, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_q_norm.weight"), HEAD, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_k_norm.weight"), HEAD, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_output.weight"), HEADS * HEAD, E, 1, 0.0f);
}

/* In one matrix or two. */
static void projection(tiny *t, const hybrid *h, int i, const char *one, const char *two)
{
    tiny_add(t, tiny_name(i, one), E, h->low ? h->low : h->n_v * h->d, 1, 0.0f);
    if (h->low) tiny_add(t, tiny_name(i, two), h->low, h->n_v * h->d, 1, 0.0f);
}

static void kda_tensors(tiny *t, const hybrid *h, int i)
{
    static const char *const in[] = {"attn_q.weight", "attn_k.weight", "attn_v.weight"}, *const taps[] = {"ssm_conv1d_q.weight", "ssm_conv1d_k.weight", "ssm_conv1d_v.weight"};
    const int width = h->n_v * h->d;
    for (int j = 0; j < 3; j++) tiny_add(t, tiny_name(i, in[j]), E, width, 1, 0.0f);
    for (int j = 0; j < 3; j++) tiny_add(t, tiny_name(i, taps[j]), h->n_taps, 1, width, 0.0f);
    projection(t, h, i, "ssm_f_a.weight", "ssm_f_b.weight");
    projection(t, h, i, "ssm_g_a.weight", "ssm_g_b.weight");
    tiny_add(t, tiny_name(i, "ssm_beta.weight"), E, h->n_v, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ssm_a"), 1, h->n_v, 1, has(h, 'k') && h->low ? -0.5f : 0.5f);
    tiny_add(t, tiny_name(i, "ssm_dt.bias"), width, 1, 1, 0.5f);
    tiny_add(t, tiny_name(i, "ssm_norm.weight"), h->d, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_output.weight"), width, E, 1, 0.0f);
}

static void latent_tensors(tiny *t, const hybrid *h, int i)
{
    tiny_add(t, tiny_name(i, "attn_q.weight"), E, h->n_v * (HEAD + ROT), 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_kv_a_mqa.weight"), E, RANK + ROT, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_kv_a_norm.weight"), RANK, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_k_b.weight"), HEAD, RANK, h->n_v, 0.0f);
    tiny_add(t, tiny_name(i, "attn_v_b.weight"), RANK, HEAD, h->n_v, 0.0f);
    tiny_add(t, tiny_name(i, "attn_gate.weight"), E, h->n_v, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_output.weight"), h->n_v * HEAD, E, 1, 0.0f);
}

static void expert_tensors(tiny *t, const hybrid *h, int i)
{
    tiny_add(t, tiny_name(i, "ffn_gate_inp.weight"), E, h->n_experts, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_gate_up_exps.weight"), E, 2 * FF, h->n_experts, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_down_exps.weight"), FF, E, h->n_experts, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_gate_inp_shexp.weight"), E, 1, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_gate_shexp.weight"), E, FF, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_up_shexp.weight"), E, FF, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_down_shexp.weight"), FF, E, 1, 0.0f);
}

static void qwen_keys(tiny *t, const hybrid *h, int n)
{
    static const int32_t sections[4] = {1, 1, 1, 0};
    int32_t recurrent[8];
    for (int i = 0; i < n; i++) recurrent[i] = h->kinds[i] == 'd';
    tiny_ints(t, ".attention.recurrent_layers", recurrent, (size_t)n);
    tiny_ints(t, ".rope.dimension_sections", sections, 4);
    tiny_int(t, ".attention.head_count", HEADS);
    tiny_int(t, ".attention.head_count_kv", HEADS_KV);
    tiny_int(t, ".attention.key_length", HEAD);
    tiny_int(t, ".attention.value_length", HEAD);
    tiny_int(t, ".ssm.inner_size", h->n_v * h->d);
    tiny_int(t, ".ssm.state_size", h->d);
    tiny_int(t, ".ssm.time_step_rank", h->n_v);
    tiny_int(t, ".ssm.group_count", h->n_k);
    if (!h->n_experts) return;
    tiny_int(t, ".expert_count", h->n_experts);
    tiny_int(t, ".expert_used_count", 2);
    tiny_int(t, ".expert_feed_forward_length", FF);
}

static void kda_keys(tiny *t, const hybrid *h, int n)
{
    int32_t kv[8];
    for (int i = 0; i < n; i++) kv[i] = h->kinds[i] == 'l';
    tiny_int(t, ".attention.head_count", h->n_v);
    tiny_ints(t, ".attention.head_count_kv", kv, (size_t)n);
    tiny_int(t, ".attention.key_length", RANK + ROT);
    tiny_int(t, ".attention.key_length_mla", HEAD + ROT);
    tiny_int(t, ".attention.value_length_mla", HEAD);
    tiny_int(t, ".attention.kv_lora_rank", RANK);
    tiny_int(t, ".rope.dimension_count", ROT);
    tiny_int(t, ".kda.head_dim", h->d);
    tiny_float(t, ".kda.gate_lower_bound", -5.0f);
    tiny_float(t, ".swiglu_clamp_shexp", 0.1f);
    tiny_int(t, ".expert_count", 4);
    tiny_int(t, ".expert_used_count", 2);
    tiny_int(t, ".expert_gating_func", 2);
    tiny_int(t, ".leading_dense_block_count", n);
}

static tiny make(const hybrid *h)
{
    tiny t = {.arch = h->arch, .seed = 521288629521288629ull};
    const int n = (int)strlen(h->kinds);
    tiny_string(&t, "general.architecture", h->arch);
    tiny_int(&t, ".context_length", 256);
    tiny_int(&t, ".embedding_length", E);
    tiny_int(&t, ".block_count", n);
    tiny_int(&t, ".feed_forward_length", FF);
    tiny_float(&t, ".attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_int(&t, ".ssm.conv_kernel", h->n_taps);
    const bool qwen = !has(h, 'k');
    (qwen ? qwen_keys : kda_keys)(&t, h, n);
    tiny_tokens(&t, 48);
    tiny_add(&t, "token_embd.weight", E, 48, 1, 0.0f);
    tiny_add(&t, "output_norm.weight", E, 1, 1, 1.0f);
    for (int i = 0; i < n; i++) {
        tiny_add(&t, tiny_name(i, "attn_norm.weight"), E, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, qwen ? "post_attention_norm.weight" : "ffn_norm.weight"), E, 1, 1, 1.0f);
        if (h->kinds[i] == 'd') delta_tensors(&t, h, i);
        if (h->kinds[i] == 'k') kda_tensors(&t, h, i);
        if (h->kinds[i] == 'a') attention_tensors(&t, i);
        if (h->kinds[i] == 'l') latent_tensors(&t, h, i);
        if (h->n_experts) {
            expert_tensors(&t, h, i);
            continue;
        }
        tiny_add(&t, tiny_name(i, "ffn_gate.weight"), E, FF, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_up.weight"), E, FF, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_down.weight"), FF, E, 1, 0.0f);
    }
    return t;
}

static const hybrid qwen = {.arch = "qwen35", .kinds = "dad", .n_taps = 4, .d = 16, .n_k = 2, .n_v = 4};
static const hybrid old_qwen = {.arch = "qwen3next", .kinds = "dad", .n_taps = 4, .d = 12, .n_k = 2, .n_v = 6, .n_experts = 5};
static const hybrid ling = {.arch = "bailingmoe3", .kinds = "klk", .n_taps = 4, .d = 16, .n_v = 2};

static void shapes(void)
{
    static const struct { int n_taps, d, n_k, n_v, low; } odd[] = {{2, 1, 1, 1, 1}, {3, 20, 1, 3, 5}, {4, 33, 2, 2, 0}, {16, 8, 3, 6, 7}, {5, 48, 1, 2, 0}};
    for (size_t i = 0; i < PN_COUNT(odd); i++) {
        hybrid h = i % 2 ? old_qwen : qwen, k = ling;
        h.n_taps = k.n_taps = odd[i].n_taps;
        h.d = k.d = odd[i].d;
        h.n_k = odd[i].n_k;
        h.n_v = k.n_v = odd[i].n_v;
        k.low = odd[i].low;
        if (k.low) k.arch = "kimi-linear";
        tiny t = make(&h);
        runs("heads of a delta rule", &t);
        t = make(&k);
        if (k.low) tiny_add(&t, "output.weight", E, 48, 1, 0.0f);
        runs("heads of a delta rule with decays of their channels", &t);
    }
    hybrid mixture = qwen;
    mixture.arch = "qwen35moe";
    mixture.n_experts = 3;
    tiny t = make(&mixture);
    runs("a gated shared expert", &t);
}

/* ---- what files interleave --------------------------------------------------------------------------------------------------------------- */

/* Rows of `to` from `first` on are taken from `from`'s rows. */
static void copy_rows(tiny_tensor *to, int first, const tiny_tensor *from, int from_first, int n)
{
    const size_t width = (size_t)to->ne[0];
    memcpy(to->data + (size_t)first * width, from->data + (size_t)from_first * width, (size_t)n * width * 4);
}

/* Old files of qwen3next: q, k, v and gate of each key head together. */
static void to_old_layout(tiny *t, const hybrid *h, int i)
{
    const int d = h->d, r = h->n_v / h->n_k * d, keys = h->n_k * d;
    tiny_add(t, tiny_name(i, "ssm_in.weight"), E, 2 * keys + 2 * h->n_v * d, 1, 0.0f);
    tiny_tensor *in = tiny_find(t, tiny_name(i, "ssm_in.weight")), *qkv = tiny_find(t, tiny_name(i, "attn_qkv.weight")), *gate = tiny_find(t, tiny_name(i, "attn_gate.weight"));
    for (int g = 0; g < h->n_k; g++) {
        const int at = g * (2 * d + 2 * r);
        copy_rows(in, at, qkv, g * d, d);
        copy_rows(in, at + d, qkv, keys + g * d, d);
        copy_rows(in, at + 2 * d, qkv, 2 * keys + g * r, r);
        copy_rows(in, at + 2 * d + r, gate, g * r, r);
    }
    snprintf(qkv->name, sizeof qkv->name, "unused.%d", i);
}

static void to_fused_attention(tiny *t, int i)
{
    tiny_add(t, tiny_name(i, "attn_qkv.weight"), E, 2 * HEADS * HEAD + 2 * HEADS_KV * HEAD, 1, 0.0f);
    tiny_tensor *to = tiny_find(t, tiny_name(i, "attn_qkv.weight"));
    copy_rows(to, 0, tiny_find(t, tiny_name(i, "attn_q.weight")), 0, 2 * HEADS * HEAD);
    copy_rows(to, 2 * HEADS * HEAD, tiny_find(t, tiny_name(i, "attn_k.weight")), 0, HEADS_KV * HEAD);
    copy_rows(to, 2 * HEADS * HEAD + HEADS_KV * HEAD, tiny_find(t, tiny_name(i, "attn_v.weight")), 0, HEADS_KV * HEAD);
}

static float *logits_of(tiny *t, pinch_activations activations)
{
    pinch_error err;
    pinch_session_options o = pinch_session_options_default();
    pinch_model *m = tiny_open(t, activations, &err);
    float *rows = CHECK("model opens", m != NULL, "%s", err.message) ? run("compared", m, &o, 0) : NULL;
    pinch_model_close(m);
    tiny_free(t);
    return rows;
}

static void layouts(void)
{
    for (int activations = 0; activations < 2; activations++) {
        tiny plain = make(&old_qwen), old = make(&old_qwen);
        to_old_layout(&old, &old_qwen, 0);
        to_old_layout(&old, &old_qwen, 2);
        to_fused_attention(&old, 1);
        float *a = logits_of(&plain, (pinch_activations)activations), *b = logits_of(&old, (pinch_activations)activations);
        CHECK("rows that a file interleaves give the bits of rows in order", same_bits(a, b, (size_t)N_TEXT * 48), "activations %d", activations);
        free(a);
        free(b);
    }
}

/* Weights that drive the state to infinity or to no number stay with their sequence. */
static void weights(void)
{
    static const char *const names[] = {"blk.0.ssm_a", "blk.0.ssm_dt.bias", "blk.2.ssm_conv1d.weight", "blk.0.attn_qkv.weight", "blk.1.attn_q.weight"};
    static const float values[] = {NAN, INFINITY, 1e30f};
    for (size_t i = 0; i < PN_COUNT(names); i++)
        for (size_t j = 0; j < PN_COUNT(values); j++) {
            tiny t = make(&qwen);
            memcpy(tiny_find(&t, names[i])->data, &values[j], 4);
            runs("a weight of a delta rule that is no number", &t);
        }
}

static void refusals(void)
{
    static const struct { const char *key; int value; const char *part; } bad[] = {
        {".ssm.conv_kernel", 1, "ssm.conv_kernel' is 1, outside 2..16"}, {".ssm.time_step_rank", 3, "ssm.time_step_rank' is 3"}, {".ssm.inner_size", 63, "ssm.inner_size' is 63"},
        {".ssm.state_size", 0, "ssm.state_size' is 0"}, {".ssm.group_count", 5000, "ssm.group_count"}, {".attention.value_length", 4, "attention.value_length' is 4"},
    };
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        tiny t = make(&qwen), u = {.arch = qwen.arch};
        tiny_int(&u, bad[i].key, bad[i].value); /* an item of the same length, in the place of the good one */
        uint8_t *at = memmem(t.values.p, t.values.n, u.values.p, u.values.n - 8);
        if (at) memcpy(at, u.values.p, u.values.n);
        tiny_free(&u);
        refused(bad[i].part, &t, bad[i].part);
    }
    tiny t = make(&ling);
    tiny_add(&t, "blk.0.ssm_f_b.weight", 7, ling.n_v * ling.d, 1, 0.0f);
    refused("two projections that do not meet", &t, "blk.0.ssm_f_b.weight");
    t = make(&qwen);
    tiny_add(&t, "blk.1.attn_q.weight", E, HEADS * HEAD, 1, 0.0f);
    refused("queries without gates", &t, "blk.1.attn_q.weight");
    t = make(&qwen);
    tiny_add(&t, "blk.0.ssm_conv1d.weight", 3, 2 * qwen.n_k * qwen.d + qwen.n_v * qwen.d, 1, 0.0f);
    refused("taps of another number", &t, "blk.0.ssm_conv1d.weight");
}

int main(void)
{
    shapes();
    layouts();
    weights();
    refusals();
    return pn_done();
}
