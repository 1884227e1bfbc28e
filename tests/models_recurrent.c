/* Recurrent layers of odd shapes: short convolutions, Mamba-2 alone and beside attention, feed-forward layers without a mixer, experts between latent
 * matrices. The same bits however the rows are cut, also in company; and metadata that means harm: a sentence. */
#include "kernels/kernels.h"
#include "tiny_runs.h"

/* What stands in a layer: c short convolution, m Mamba-2, a attention, b both of the latter, each with a feed-forward block unless `alone`;
 * f such a block and e experts without a mixer. */
typedef struct hybrid {
    const char *arch, *kinds;
    bool alone, gated;
    int n_taps, inner, d_state, n_head, n_groups; /* of Mamba-2; n_taps of short convolutions too */
    int latent;
} hybrid;

enum { E = 32, FF = 40, HEADS = 4, HEADS_KV = 2, HEAD = 8, EXPERTS = 4 };

static bool has(const hybrid *h, char kind) { return strchr(h->kinds, kind) != NULL; }

static void mamba_tensors(tiny *t, const hybrid *h, int i)
{
    const int channels = h->inner + 2 * h->n_groups * h->d_state;
    tiny_add(t, tiny_name(i, "ssm_in.weight"), E, h->inner + channels + h->n_head, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ssm_conv1d.weight"), h->n_taps, channels, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ssm_conv1d.bias"), channels, 1, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ssm_dt.bias"), h->n_head, 1, 1, 0.5f);
    tiny_add(t, tiny_name(i, "ssm_a"), 1, h->n_head, 1, -0.5f);
    tiny_add(t, tiny_name(i, "ssm_d"), 1, h->n_head, 1, 1.0f);
    tiny_add(t, tiny_name(i, "ssm_norm.weight"), h->inner / h->n_groups, h->n_groups, 1, 1.0f);
    tiny_add(t, tiny_name(i, "ssm_out.weight"), h->inner, E, 1, 0.0f);
}

static void attention_tensors(tiny *t, int i)
{
    tiny_add(t, tiny_name(i, "attn_q.weight"), E, HEADS * HEAD, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_k.weight"), E, HEADS_KV * HEAD, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_v.weight"), E, HEADS_KV * HEAD, 1, 0.0f);
    tiny_add(t, tiny_name(i, "attn_q_norm.weight"), HEAD, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_k_norm.weight"), HEAD, 1, 1, 1.0f);
    tiny_add(t, tiny_name(i, "attn_output.weight"), HEADS * HEAD, E, 1, 0.0f);
}

static void conv_tensors(tiny *t, const hybrid *h, int i)
{
    tiny_add(t, tiny_name(i, "shortconv.in_proj.weight"), E, 3 * E, 1, 0.0f);
    tiny_add(t, tiny_name(i, "shortconv.conv.weight"), h->n_taps, E, 1, 0.0f);
    tiny_add(t, tiny_name(i, "shortconv.out_proj.weight"), E, E, 1, 0.0f);
}

static void expert_tensors(tiny *t, const hybrid *h, int i)
{
    const int width = h->latent ? h->latent : E;
    tiny_add(t, tiny_name(i, "ffn_gate_inp.weight"), E, EXPERTS, 1, 0.0f);
    tiny_add(t, tiny_name(i, "exp_probs_b.bias"), EXPERTS, 1, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_up_exps.weight"), width, FF, EXPERTS, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_down_exps.weight"), FF, width, EXPERTS, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_up_shexp.weight"), E, FF, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_down_shexp.weight"), FF, E, 1, 0.0f);
    if (!h->latent) return;
    tiny_add(t, tiny_name(i, "ffn_latent_down.weight"), E, width, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_latent_up.weight"), width, E, 1, 0.0f);
}

static void ffn_tensors(tiny *t, const hybrid *h, int i)
{
    if (h->gated) tiny_add(t, tiny_name(i, "ffn_norm.weight"), E, 1, 1, 1.0f);
    if (h->gated) tiny_add(t, tiny_name(i, "ffn_gate.weight"), E, FF, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_up.weight"), E, FF, 1, 0.0f);
    tiny_add(t, tiny_name(i, "ffn_down.weight"), FF, E, 1, 0.0f);
}

static void keys(tiny *t, const hybrid *h)
{
    int32_t kv[8], ff[8];
    const int n = (int)strlen(h->kinds);
    for (int i = 0; i < n; i++) {
        kv[i] = strchr("ab", h->kinds[i]) ? HEADS_KV : 0;
        ff[i] = !h->alone || strchr("fe", h->kinds[i]) ? FF : 0;
    }
    tiny_string(t, "general.architecture", h->arch);
    tiny_int(t, ".context_length", 256);
    tiny_int(t, ".embedding_length", E);
    tiny_int(t, ".block_count", n);
    tiny_ints(t, ".feed_forward_length", ff, (size_t)n);
    tiny_float(t, ".attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_int(t, ".attention.head_count", HEADS);
    tiny_ints(t, ".attention.head_count_kv", kv, (size_t)n);
    if (has(h, 'c')) tiny_int(t, ".shortconv.l_cache", h->n_taps);
    if (has(h, 'e')) {
        tiny_int(t, ".expert_count", EXPERTS);
        tiny_int(t, ".expert_used_count", 2);
        tiny_int(t, ".expert_feed_forward_length", FF);
        tiny_int(t, ".expert_shared_count", 1);
    }
    if (has(h, 'c') || !h->inner) return;
    tiny_int(t, ".ssm.conv_kernel", h->n_taps);
    tiny_int(t, ".ssm.inner_size", h->inner);
    tiny_int(t, ".ssm.state_size", h->d_state);
    tiny_int(t, ".ssm.time_step_rank", h->n_head);
    tiny_int(t, ".ssm.group_count", h->n_groups);
}

/* Of the attention layers every second one slides. */
static void window_keys(tiny *t, const hybrid *h)
{
    int32_t slides[8];
    const int n = (int)strlen(h->kinds);
    for (int i = 0, seen = 0; i < n; i++) slides[i] = h->kinds[i] == 'a' ? seen++ % 2 : 0;
    tiny_int(t, ".attention.sliding_window", 9);
    tiny_ints(t, ".attention.sliding_window_pattern", slides, (size_t)n);
    tiny_float(t, ".rope.freq_base_swa", 1000.0f);
}

static tiny make(const hybrid *h)
{
    tiny t = {.arch = h->arch, .seed = 362436069362436069ull};
    keys(&t, h);
    const bool slides = !strcmp(h->arch, "lfm3");
    if (slides) window_keys(&t, h);
    tiny_tokens(&t, 48);
    tiny_add(&t, "token_embd.weight", E, 48, 1, 0.0f);
    tiny_add(&t, has(h, 'c') && !slides ? "token_embd_norm.weight" : "output_norm.weight", E, 1, 1, 1.0f);
    for (int i = 0; h->kinds[i]; i++) {
        tiny_add(&t, tiny_name(i, "attn_norm.weight"), E, 1, 1, 1.0f);
        if (strchr("mb", h->kinds[i])) mamba_tensors(&t, h, i);
        if (strchr("ab", h->kinds[i])) attention_tensors(&t, i);
        if (h->kinds[i] == 'c') conv_tensors(&t, h, i);
        if (h->kinds[i] == 'e') expert_tensors(&t, h, i);
        else if (!h->alone || h->kinds[i] == 'f') ffn_tensors(&t, h, i);
    }
    return t;
}

static const hybrid conv = {.arch = "lfm2", .kinds = "cac", .gated = true, .n_taps = 3};
static const hybrid mamba = {.arch = "granitehybrid", .kinds = "mam", .gated = true, .n_taps = 4, .inner = 64, .d_state = 16, .n_head = 4, .n_groups = 1};
static const hybrid nemotron = {.arch = "nemotron_h", .kinds = "mfaf", .alone = true, .n_taps = 4, .inner = 48, .d_state = 16, .n_head = 6, .n_groups = 2};

static void shapes(void)
{
    for (int n_taps = 2; n_taps <= PN_MAX_TAPS; n_taps += n_taps < 8 ? 1 : 4) {
        hybrid h = conv;
        h.n_taps = n_taps;
        tiny t = make(&h);
        runs("short convolutions", &t);
    }
    static const struct { int n_taps, inner, d_state, n_head, n_groups; } odd[] = {{2, 20, 1, 4, 2}, {3, 51, 7, 3, 3}, {5, 34, 33, 1, 1}, {4, 144, 5, 9, 3}, {16, 7, 3, 7, 7}};
    for (size_t i = 0; i < PN_COUNT(odd); i++) {
        hybrid h = i % 2 ? nemotron : mamba;
        h.n_taps = odd[i].n_taps;
        h.inner = odd[i].inner;
        h.d_state = odd[i].d_state;
        h.n_head = odd[i].n_head;
        h.n_groups = odd[i].n_groups;
        tiny t = make(&h);
        runs("heads and groups of a scan", &t);
    }
    const hybrid beside = {.arch = "falcon-h1", .kinds = "bb", .gated = true, .n_taps = 4, .inner = 40, .d_state = 12, .n_head = 5, .n_groups = 1};
    tiny t = make(&beside);
    runs("attention and a scan side by side", &t);
    hybrid latent = {.arch = "nemotron_h_moe", .kinds = "meae", .alone = true, .n_taps = 4, .inner = 48, .d_state = 16, .n_head = 6, .n_groups = 2};
    for (; latent.latent <= 48; latent.latent += 12) {
        t = make(&latent);
        runs("experts between latent matrices", &t);
    }
}

/* Weights that drive the state to infinity or to no number stay with their sequence. */
static void weights(void)
{
    static const char *const names[] = {"blk.0.ssm_a", "blk.0.ssm_dt.bias", "blk.2.ssm_conv1d.weight", "blk.0.ssm_in.weight"};
    static const float values[] = {NAN, INFINITY, 1e30f};
    for (size_t i = 0; i < PN_COUNT(names); i++)
        for (size_t j = 0; j < PN_COUNT(values); j++) {
            tiny t = make(&mamba);
            memcpy(tiny_find(&t, names[i])->data, &values[j], 4);
            runs("a weight of a scan that is no number", &t);
        }
}

/* What heads are multiplied by, norms of results, and pairs that do not turn: half of them where no tensor says which. */
static void lfm3(void)
{
    const hybrid h = {.arch = "lfm3", .kinds = "caaca", .gated = true, .n_taps = 7};
    tiny t[4];
    for (int i = 0; i < 4; i++) t[i] = make(&h);
    for (int i = 0; i < 5; i++) {
        if (h.kinds[i] == 'a') tiny_add(&t[3], tiny_name(i, "attn_gate.weight"), E, HEADS, 1, 0.0f);
        tiny_add(&t[3], tiny_name(i, "post_attention_norm.weight"), E, 1, 1, 1.0f);
        tiny_add(&t[3], tiny_name(i, "post_ffw_norm.weight"), E, 1, 1, 1.0f);
    }
    runs("gates of heads and norms of results", &t[3]);
    for (int i = 1; i < 3; i++) {
        tiny_tensor *factors = tiny_add(&t[i], "rope_freqs.weight", HEAD / 2, 1, 1, 0.0f);
        tiny_fill(factors, 1.0f);
        const float still = 1e30f;
        for (int k = i == 1 ? HEAD / 4 : HEAD / 2; k < HEAD / 2; k++) memcpy(&factors->data[k], &still, 4);
    }
    float *rows[3];
    for (int i = 0; i < 3; i++) {
        pinch_error err;
        const pinch_session_options o = pinch_session_options_default();
        pinch_model *m = tiny_open(&t[i], PINCH_ACTIVATIONS_F32, &err);
        rows[i] = CHECK("model opens", m != NULL, "%s", err.message) ? run("pairs that turn", m, &o, 0) : NULL;
        pinch_model_close(m);
        tiny_free(&t[i]);
    }
    CHECK("without a tensor half of the pairs turn", same_bits(rows[0], rows[1], N_TEXT * 48), "they differ");
    CHECK("which is not all of them", !same_bits(rows[0], rows[2], N_TEXT * 48), "they are the same");
    for (int i = 0; i < 3; i++) free(rows[i]);
}

static void refusals(void)
{
    hybrid h = conv;
    h.n_taps = 1;
    tiny t = make(&h);
    refused("one tap", &t, "shortconv.l_cache' is 1, outside 2..16");
    h.n_taps = PN_MAX_TAPS + 1;
    t = make(&h);
    refused("more taps than there may be", &t, "shortconv.l_cache' is 17");
    t = make(&conv);
    tiny_add(&t, "blk.0.shortconv.conv.weight", 4, E, 1, 0.0f);
    refused("taps of another number", &t, "blk.0.shortconv.conv.weight");
    static const struct { hybrid h; const char *part; } bad[] = {
        {{.n_taps = 4, .inner = 65, .d_state = 16, .n_head = 4, .n_groups = 1}, "ssm.inner_size' is 65"},
        {{.n_taps = 4, .inner = 64, .d_state = 16, .n_head = 4, .n_groups = 3}, "ssm.time_step_rank' is 4"},
        {{.n_taps = 17, .inner = 64, .d_state = 16, .n_head = 4, .n_groups = 1}, "ssm.conv_kernel"},
        {{.n_taps = 4, .inner = 64, .d_state = 5000, .n_head = 4, .n_groups = 1}, "ssm.state_size"},
    };
    for (size_t i = 0; i < PN_COUNT(bad); i++) {
        h = bad[i].h;
        h.arch = mamba.arch;
        h.kinds = "m";
        h.gated = true;
        t = make(&h);
        refused(bad[i].part, &t, bad[i].part);
    }
    t = make(&mamba);
    tiny_add(&t, "blk.0.ssm_in.weight", E, 100, 1, 0.0f);
    refused("a projection of another width", &t, "blk.0.ssm_in.weight");
    h = nemotron;
    h.kinds = "ff";
    h.inner = 0;
    t = make(&h);
    refused("no shape of a scan", &t, "ssm.conv_kernel");
}

int main(void)
{
    shapes();
    weights();
    lfm3();
    refusals();
    return pn_done();
}
