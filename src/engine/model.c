/* Models: a file, its vocabulary, its planned and loaded network; opened whole or not at all. Knows no session. */
#include "engine/engine.h"

#include "base/cpu.h"
#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

/* Code, C library, stacks and small allocations; measured at up to 3.2 MiB, see docs/SPEED.md. */
static const uint64_t program_bytes = 7u << 19;

pinch_model_options pinch_model_options_default(void) { return (pinch_model_options){.use_mapping = true}; }

/* ---- opening ------------------------------------------------------------------------------------------------------------------------ */

static void open_vocab(pinch_model *m)
{
    if (pn_vocab_open(&m->vocab, m->gguf, &m->vocab_error)) return;
    pn_vocab_drop_lists(m->vocab, m->gguf);
    for (pinch_token i = 0; i < pn_vocab_size(m->vocab); i++) {
        const size_t n = pn_vocab_text(m->vocab, i).n;
        if (n > m->longest_piece) m->longest_piece = n;
    }
    m->longest_piece += PN_PIECE_SLACK;
}

static void log_line(const pinch_callbacks *c, pinch_log_level level, const char *text)
{
    if (c->log && text) c->log(c->user, level, text);
}

static pinch_status force_kernels(pinch_model *m, const pinch_model_options *o, pinch_error *err)
{
    for (size_t i = 0; i < o->n_kernels; i++) {
        pn_type type;
        const pn_kernel *kernel;
        const pinch_status st = pn_kernel_parse(o->kernels[i], m->weights.features, &type, &kernel, err);
        if (st) return st;
        m->weights.forced[type] = kernel;
    }
    return PINCH_OK;
}

/* "avx2=scalar"-like forcing of everything would hide which operations run; the vector operations follow the CPU, all tables being bit-equal. */
static pinch_status plan_network(pinch_model *m, const pinch_model_options *o, pinch_error *err)
{
    pinch_status st = pn_model_needs_vocab(m, err);
    if (st) return st;
    m->weights = (pn_weights_options){.features = pn_cpu_features(), .exact = o->activations == PINCH_ACTIVATIONS_F32, .use_mapping = o->use_mapping, .draft = o->draft_block,
                                      .n_vocab = pn_vocab_size(m->vocab), .callbacks = o->callbacks};
    m->ops = pn_ops_best(m->weights.features);
    st = force_kernels(m, o, err);
    m->has_network = true;
    if (!st) st = pn_network_build(&m->network, m->gguf, &m->weights, err);
    m->other_bytes += m->network.arena.used;
    return st;
}

static uint64_t budget(const pinch_model *m)
{
    const uint64_t available = pn_memory_available();
    return m->memory_limit && m->memory_limit < available ? m->memory_limit : available;
}

static pinch_status check_weights_fit(const pinch_model *m, pinch_error *err)
{
    const uint64_t need = m->network.resident_bytes + m->other_bytes, have = budget(m);
    if (need <= have) return PINCH_OK;
    return pn_fail(err, PINCH_ERR_MEMORY, "%s needs %" PRIu64 " MiB of memory for its weights, and %" PRIu64 " MiB are available; a model with fewer bits per weight or fewer layers would help",
                   pn_gguf_name(m->gguf), (need >> 20) + 1, have >> 20);
}

static pinch_status load_network(pinch_model *m, const pinch_model_options *o, pinch_error *err)
{
    pinch_status st = check_weights_fit(m, err);
    pinch_memory_plan plan;
    if (!st && o->planned_session) st = pinch_session_plan(m, o->planned_session, &plan, err);
    if (st) return st;
    int n = o->n_threads;
    if (n <= 0) {
        pn_topology topology;
        int generation;
        pn_topology_read(&topology);
        pn_threads_default(&topology, &generation, &n);
    }
    pn_pool *pool = NULL;
    st = pn_pool_open(&pool, n, err);
    if (!st) st = pn_network_load(&m->network, &m->weights, pool, err);
    pn_pool_close(pool);
    m->loaded = !st;
    return st;
}

/* Takes the open file over, whatever happens. */
static pinch_status open_with(pinch_model **out, pn_gguf *g, const pinch_model_options *options, pinch_error *err)
{
    const pinch_model_options o = options ? *options : pinch_model_options_default();
    pinch_model *m = pn_alloc_zero(1, sizeof *m);
    if (!m) {
        pn_gguf_close(g);
        return pn_fail_memory(err, "a model", sizeof *m);
    }
    m->gguf = g;
    m->callbacks = o.callbacks;
    m->memory_limit = o.memory_limit;
    pn_str arch = {"", 0};
    bool found;
    pinch_status st = pn_gguf_get_string(g, "general.architecture", &arch, &found, err);
    snprintf(m->arch, sizeof m->arch, "%.*s", (int)(arch.n < 63 ? arch.n : 63), arch.p);
    open_vocab(m);
    m->other_bytes = program_bytes + pn_gguf_header_bytes(g) + (m->vocab ? pn_vocab_bytes(m->vocab) : 0);
    if (m->vocab) log_line(&m->callbacks, PINCH_LOG_WARNING, pn_vocab_warning(m->vocab)); /* one that is missing fails whatever needs it, in so many words */
    if (!st && !o.vocab_only) st = plan_network(m, &o, err);
    if (!st && !o.vocab_only && !o.plan_only) st = load_network(m, &o, err);
    if (st) {
        pinch_model_close(m);
        return st;
    }
    *out = m;
    return PINCH_OK;
}

pinch_status pinch_model_open(pinch_model **out, const char *path, const pinch_model_options *options, pinch_error *err)
{
    pn_gguf *g = NULL;
    if (!path) return pn_fail(err, PINCH_ERR_ARGUMENT, "model: no path given");
    const pinch_status st = pn_gguf_open(&g, path, err);
    return st ? st : open_with(out, g, options, err);
}

pinch_status pinch_model_open_fd(pinch_model **out, int fd, const char *name, const pinch_model_options *options, pinch_error *err)
{
    pn_gguf *g = NULL;
    const pinch_status st = pn_gguf_open_fd(&g, fd, name ? name : "model", err);
    return st ? st : open_with(out, g, options, err);
}

void pinch_model_close(pinch_model *m)
{
    if (!m) return;
    if (m->has_network) pn_network_free(&m->network);
    pn_vocab_close(m->vocab);
    pn_gguf_close(m->gguf);
    free(m);
}

/* ---- facts ---------------------------------------------------------------------------------------------------------------------------- */

pinch_status pn_model_needs_vocab(const pinch_model *m, pinch_error *err)
{
    if (m->vocab) return PINCH_OK;
    if (err) *err = m->vocab_error;
    return m->vocab_error.status;
}

const pn_kernel *pn_model_kernel(const pinch_model *m, pn_type type)
{
    if (m->weights.exact) return NULL;
    return m->weights.forced[type] ? m->weights.forced[type] : pn_kernel_best(type, m->weights.features ? m->weights.features : pn_cpu_features());
}

const char *pinch_model_arch(const pinch_model *m) { return m->arch; }
int32_t pinch_model_n_vocab(const pinch_model *m) { return m->vocab ? pn_vocab_size(m->vocab) : 0; }

int32_t pinch_model_n_ctx_train(const pinch_model *m)
{
    char key[96];
    int64_t n = 0;
    bool found;
    snprintf(key, sizeof key, "%s.context_length", m->arch);
    return pn_gguf_get_int(m->gguf, key, &n, &found, NULL) || n < 0 || n > INT32_MAX ? 0 : (int32_t)n;
}

uint64_t pinch_model_n_params(const pinch_model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < pn_gguf_n_tensors(m->gguf); i++) {
        const pn_tensor *t = pn_gguf_tensor_at(m->gguf, i);
        n += (uint64_t)t->ne[0] * (uint64_t)t->ne[1] * (uint64_t)t->ne[2] * (uint64_t)t->ne[3];
    }
    return n;
}

/* The text of a scalar in buf (at least 40 bytes) or, for strings, where it lies. */
static pn_str value_text(const pn_gguf_value *v, char *buf)
{
    uint64_t cursor = 0;
    int64_t i;
    double d;
    pn_str s = {buf, 0};
    if (v->kind == PN_GGUF_STRING) pn_gguf_next_string(v, &cursor, &s);
    else if (v->kind == PN_GGUF_BOOL && pn_gguf_int_at(v, 0, &i)) s = i ? (pn_str){"true", 4} : (pn_str){"false", 5};
    else if (v->kind == PN_GGUF_F32 && pn_gguf_float_at(v, 0, &d)) s.n = pn_format_float(buf, (float)d);
    else if (v->kind == PN_GGUF_F64 && pn_gguf_float_at(v, 0, &d)) s.n = pn_format_double(buf, d);
    else if (pn_gguf_int_at(v, 0, &i)) s.n = (size_t)snprintf(buf, 40, "%lld", (long long)i);
    return s;
}

int64_t pinch_model_meta(const pinch_model *m, const char *key, char *buffer, size_t size)
{
    char number[64];
    const pn_gguf_value *v = pn_gguf_find(m->gguf, key);
    if (!v || v->kind == PN_GGUF_ARRAY) return -1;
    const pn_str s = value_text(v, number);
    if (size > 0) {
        const size_t n = s.n < size - 1 ? s.n : size - 1;
        memcpy(buffer, s.p, n);
        buffer[n] = 0;
    }
    return (int64_t)s.n;
}
