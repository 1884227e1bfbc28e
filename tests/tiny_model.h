/* tests/tiny_model.h - decoders of a few kilobytes with random weights, for shapes, keys and values that no golden model has.
 *
 * A model is a list of metadata and tensors that a test may change before it is written to a file without a name. */
#ifndef PN_TINY_MODEL_H
#define PN_TINY_MODEL_H

#include "gguf_bytes.h"

#include <sys/mman.h>

enum { TINY_TENSORS = 128, TINY_ALIGNMENT = 32 };

typedef struct tiny_tensor {
    char name[64];
    pn_type type; /* F32 or I32 */
    int64_t ne[4];
    uint32_t *data;
} tiny_tensor;

typedef struct tiny {
    const char *arch;
    bytes values;
    uint64_t n_values;
    tiny_tensor tensors[TINY_TENSORS];
    size_t n_tensors;
    unsigned long long seed;
} tiny;

static void tiny_key(tiny *t, const char *key, pn_gguf_kind kind)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s", *key == '.' ? t->arch : "", key);
    bytes_number(&t->values, strlen(full), 8);
    bytes_add(&t->values, full, strlen(full));
    bytes_number(&t->values, kind, 4);
    t->n_values++;
}

/* A key that begins with a point belongs to the architecture. */
static void tiny_int(tiny *t, const char *key, int32_t value)
{
    tiny_key(t, key, PN_GGUF_I32);
    bytes_number(&t->values, (uint32_t)value, 4);
}

static void tiny_float(tiny *t, const char *key, float value)
{
    tiny_key(t, key, PN_GGUF_F32);
    bytes_add(&t->values, &value, 4);
}

static void tiny_string(tiny *t, const char *key, const char *value)
{
    tiny_key(t, key, PN_GGUF_STRING);
    bytes_number(&t->values, strlen(value), 8);
    bytes_add(&t->values, value, strlen(value));
}

static void tiny_array(tiny *t, const char *key, pn_gguf_kind item, uint64_t n)
{
    tiny_key(t, key, PN_GGUF_ARRAY);
    bytes_number(&t->values, item, 4);
    bytes_number(&t->values, n, 8);
}

__attribute__((unused)) static void tiny_ints(tiny *t, const char *key, const int32_t *values, size_t n)
{
    tiny_array(t, key, PN_GGUF_I32, n);
    for (size_t i = 0; i < n; i++) bytes_number(&t->values, (uint32_t)values[i], 4);
}

/* n tokens, "a0", "a1", ..., with merges of none. */
static void tiny_tokens(tiny *t, int32_t n)
{
    tiny_string(t, "tokenizer.ggml.model", "gpt2");
    tiny_string(t, "tokenizer.ggml.pre", "gpt-2");
    tiny_array(t, "tokenizer.ggml.tokens", PN_GGUF_STRING, (uint64_t)n);
    for (int32_t i = 0; i < n; i++) {
        char text[16];
        snprintf(text, sizeof text, "a%d", (int)i);
        bytes_number(&t->values, strlen(text), 8);
        bytes_add(&t->values, text, strlen(text));
    }
    tiny_array(t, "tokenizer.ggml.merges", PN_GGUF_STRING, 0);
}

static tiny_tensor *tiny_find(tiny *t, const char *name)
{
    for (size_t i = 0; i < t->n_tensors; i++)
        if (!strcmp(t->tensors[i].name, name)) return &t->tensors[i];
    printf("no tensor %s\n", name);
    exit(1);
}

static size_t tiny_elements(const tiny_tensor *x) { return (size_t)(x->ne[0] * x->ne[1] * x->ne[2] * x->ne[3]); }

/* A tensor of random weights around `mean`; an earlier one of the same name is replaced. ne2 as in experts, 1 otherwise. */
static tiny_tensor *tiny_add(tiny *t, const char *name, int64_t ne0, int64_t ne1, int64_t ne2, float mean)
{
    tiny_tensor *x = NULL;
    for (size_t i = 0; i < t->n_tensors && !x; i++)
        if (!strcmp(t->tensors[i].name, name)) x = &t->tensors[i];
    if (x) free(x->data);
    else if (t->n_tensors < TINY_TENSORS) x = &t->tensors[t->n_tensors++];
    if (!x) exit(1);
    *x = (tiny_tensor){.type = PN_F32, .ne = {ne0, ne1, ne2, 1}};
    snprintf(x->name, sizeof x->name, "%s", name);
    const size_t n = tiny_elements(x);
    x->data = malloc(n ? n * 4 : 1);
    if (!x->data) exit(1);
    for (size_t i = 0; i < n; i++) {
        const float value = mean + (float)((double)(pn_random(&t->seed) >> 40) / (1 << 24) - 0.5) * 0.5f;
        memcpy(&x->data[i], &value, 4);
    }
    return x;
}

__attribute__((unused)) static void tiny_fill(tiny_tensor *x, float value)
{
    for (size_t i = 0; i < tiny_elements(x); i++) memcpy(&x->data[i], &value, 4);
}

static const char *tiny_name(int layer, const char *rest)
{
    static char name[64];
    snprintf(name, sizeof name, "blk.%d.%s", layer, rest);
    return name;
}

/* The file as a descriptor, the caller's. */
static int tiny_write(const tiny *t)
{
    bytes b = {0};
    uint64_t offset = 0;
    bytes_add(&b, "GGUF", 4);
    bytes_number(&b, 3, 4);
    bytes_number(&b, t->n_tensors, 8);
    bytes_number(&b, t->n_values, 8);
    bytes_add(&b, t->values.p, t->values.n);
    for (size_t i = 0; i < t->n_tensors; i++) {
        const tiny_tensor *x = &t->tensors[i];
        bytes_number(&b, strlen(x->name), 8);
        bytes_add(&b, x->name, strlen(x->name));
        bytes_number(&b, 4, 4);
        for (int d = 0; d < 4; d++) bytes_number(&b, (uint64_t)x->ne[d], 8);
        bytes_number(&b, x->type, 4);
        bytes_number(&b, offset, 8);
        offset += pn_round_up(tiny_elements(x) * 4, TINY_ALIGNMENT);
    }
    bytes_fill(&b, 0, (size_t)(pn_round_up(b.n, TINY_ALIGNMENT) - b.n));
    for (size_t i = 0; i < t->n_tensors; i++) {
        const size_t n = tiny_elements(&t->tensors[i]) * 4;
        bytes_add(&b, t->tensors[i].data, n);
        bytes_fill(&b, 0, (size_t)(pn_round_up(n, TINY_ALIGNMENT) - n));
    }
    const int fd = memfd_create("tiny", MFD_CLOEXEC);
    if (fd < 0 || !bytes_write(fd, &b)) exit(1);
    free(b.p);
    return fd;
}

static void tiny_free(tiny *t)
{
    for (size_t i = 0; i < t->n_tensors; i++) free(t->tensors[i].data);
    free(t->values.p);
}

typedef struct tiny_shape {
    int n_layers, n_embd, n_ff, n_vocab, n_experts, n_used;
    int n_head[4], n_head_kv[4]; /* of each layer */
    int d;                       /* of a head */
} tiny_shape;

/* Keys and tensors of a llama-like decoder; the head's size is not written, heads are written as one number where all layers have the same. */
__attribute__((unused)) static tiny tiny_decoder(const char *arch, const tiny_shape *s)
{
    tiny t = {.arch = arch, .seed = 88172645463325252ull};
    const int E = s->n_embd;
    tiny_string(&t, "general.architecture", arch);
    tiny_int(&t, ".context_length", 256);
    tiny_int(&t, ".embedding_length", E);
    tiny_int(&t, ".block_count", s->n_layers);
    tiny_int(&t, ".feed_forward_length", s->n_ff);
    tiny_float(&t, ".attention.layer_norm_rms_epsilon", 1e-5f);
    tiny_ints(&t, ".attention.head_count", s->n_head, (size_t)s->n_layers);
    tiny_ints(&t, ".attention.head_count_kv", s->n_head_kv, (size_t)s->n_layers);
    if (s->n_experts) tiny_int(&t, ".expert_count", s->n_experts);
    if (s->n_experts) tiny_int(&t, ".expert_used_count", s->n_used);
    tiny_tokens(&t, s->n_vocab);
    tiny_add(&t, "token_embd.weight", E, s->n_vocab, 1, 0.0f);
    tiny_add(&t, "output.weight", E, s->n_vocab, 1, 0.0f);
    tiny_add(&t, "output_norm.weight", E, 1, 1, 1.0f);
    for (int i = 0; i < s->n_layers; i++) {
        const int experts = s->n_experts ? s->n_experts : 1;
        tiny_add(&t, tiny_name(i, "attn_norm.weight"), E, 1, 1, 1.0f);
        tiny_add(&t, tiny_name(i, "attn_q.weight"), E, s->n_head[i] * s->d, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "attn_k.weight"), E, s->n_head_kv[i] * s->d, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "attn_v.weight"), E, s->n_head_kv[i] * s->d, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "attn_output.weight"), s->n_head[i] * s->d, E, 1, 0.0f);
        tiny_add(&t, tiny_name(i, "ffn_norm.weight"), E, 1, 1, 1.0f);
        if (s->n_experts) tiny_add(&t, tiny_name(i, "ffn_gate_inp.weight"), E, experts, 1, 0.0f);
        tiny_add(&t, tiny_name(i, s->n_experts ? "ffn_gate_exps.weight" : "ffn_gate.weight"), E, s->n_ff, experts, 0.0f);
        tiny_add(&t, tiny_name(i, s->n_experts ? "ffn_up_exps.weight" : "ffn_up.weight"), E, s->n_ff, experts, 0.0f);
        tiny_add(&t, tiny_name(i, s->n_experts ? "ffn_down_exps.weight" : "ffn_down.weight"), s->n_ff, E, experts, 0.0f);
    }
    return t;
}

/* Writes, opens and frees the model; NULL: refused, and *err says why. */
__attribute__((unused)) static pinch_model *tiny_open(tiny *t, pinch_activations activations, pinch_error *err)
{
    pinch_model_options o = pinch_model_options_default();
    pinch_model *m = NULL;
    o.activations = activations;
    o.n_threads = 1;
    const int fd = tiny_write(t);
    *err = (pinch_error){0};
    if (pinch_model_open_fd(&m, fd, "tiny", &o, err)) m = NULL;
    close(fd);
    return m;
}

#endif
