/* Snapshots: a sequence's text and state as one stream of bytes.
 *
 * "PINCHSEQ", u32 version, u32 tokens, u64 model, u64 layout, u64 bytes of the image | the tokens as i32 | the image (state/image.c) | u64 sum of all
 * before. Little-endian. `model` is a hash of the file's metadata, of its tensors' names and shapes and of the beginning of each one's data. */
#include "engine/engine.h"

#include "base/hash.h"

enum { SNAPSHOT_VERSION = 1, SAMPLE = 4096 };

typedef struct header {
    char magic[8];
    uint32_t version, n_tokens;
    uint64_t model, layout, image_bytes;
} header;

static const char magic[8] = {'P', 'I', 'N', 'C', 'H', 'S', 'E', 'Q'};

static pinch_status hash_tensor(pn_hash *h, const pn_gguf *g, const pn_tensor *t, pinch_error *err)
{
    uint8_t sample[SAMPLE];
    const uint64_t n = t->bytes < SAMPLE ? t->bytes : SAMPLE;
    const int64_t shape[] = {(int64_t)t->type, t->ne[0], t->ne[1], t->ne[2], t->ne[3]};
    const pinch_status st = pn_gguf_read(g, t, 0, sample, n, err);
    pn_hash_add(h, t->name.p, t->name.n);
    pn_hash_add(h, shape, sizeof shape);
    if (!st) pn_hash_add(h, sample, (size_t)n);
    return st;
}

static pinch_status hash_model(const pinch_model *m, uint64_t *out, pinch_error *err)
{
    const pn_gguf *g = m->gguf;
    pn_hash h = {0};
    pinch_status st = PINCH_OK;
    for (size_t i = 0; i < pn_gguf_n_values(g); i++) {
        const pn_gguf_value *v = pn_gguf_value_at(g, i);
        pn_hash_add(&h, v->key.p, v->key.n);
        pn_hash_add(&h, v->data, (size_t)v->bytes);
    }
    for (size_t i = 0; i < pn_gguf_n_tensors(g) && !st; i++) st = hash_tensor(&h, g, pn_gguf_tensor_at(g, i), err);
    *out = pn_hash_end(&h);
    return st;
}

static pinch_status describe(const pinch_session *s, int32_t length, header *h, pinch_error *err)
{
    *h = (header){.version = SNAPSHOT_VERSION, .n_tokens = (uint32_t)length, .layout = pn_state_layout(s->state)};
    memcpy(h->magic, magic, sizeof magic);
    if (!pn_state_image_bytes(s->state, length, &h->image_bytes)) return pn_fail(err, PINCH_ERR_MEMORY, "snapshot of %d tokens: beyond 64 bits", (int)length);
    return hash_model(s->model, &h->model, err);
}

/* ---- writing ----------------------------------------------------------------------------------------------------------------------------- */

typedef struct out_stream {
    pinch_write_fn fn;
    void *user;
    pn_hash sum;
} out_stream;

static bool put(void *ctx, void *bytes, size_t n)
{
    out_stream *o = ctx;
    pn_hash_add(&o->sum, bytes, n);
    return o->fn(o->user, bytes, n);
}

pinch_status pinch_session_save(const pinch_session *s, int32_t seq, pinch_write_fn fn, void *user, pinch_error *err)
{
    pinch_status st = pn_session_check(s, seq, err);
    if (st) return st;
    const int32_t length = pinch_session_position(s, seq), ahead = pn_state_length(s->state, seq) - length;
    if (ahead) return pn_fail(err, PINCH_ERR_ARGUMENT, "snapshot: %d guessed tokens are ahead of sequence %d's text; save it when generation has ended", (int)ahead, (int)seq);
    header h;
    st = describe(s, length, &h, err);
    if (st) return st;
    out_stream o = {.fn = fn, .user = user};
    bool ok = put(&o, &h, sizeof h) && put(&o, s->texts[seq].tokens, (size_t)length * sizeof(pinch_token)) && pn_state_write(s->state, seq, put, &o);
    uint64_t sum = pn_hash_end(&o.sum);
    ok = ok && fn(user, &sum, sizeof sum);
    return ok ? PINCH_OK : pn_fail(err, PINCH_ERR_IO, "snapshot: its bytes could not be written");
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------------------- */

typedef struct in_stream {
    pinch_read_fn fn;
    void *user;
    pn_hash sum;
} in_stream;

static bool get(void *ctx, void *bytes, size_t n)
{
    in_stream *i = ctx;
    if (!i->fn(i->user, bytes, n)) return false;
    pn_hash_add(&i->sum, bytes, n);
    return true;
}

static pinch_status check_header(const pinch_session *s, const header *h, pinch_error *err)
{
    header own;
    if (memcmp(h->magic, magic, sizeof magic)) return pn_fail(err, PINCH_ERR_FORMAT, "snapshot: it does not begin as one");
    if (h->version != SNAPSHOT_VERSION) return pn_fail(err, PINCH_ERR_UNSUPPORTED, "snapshot: version %u, and this reads %d", (unsigned)h->version, SNAPSHOT_VERSION);
    if (h->n_tokens > (uint32_t)s->n_ctx)
        return pn_fail(err, PINCH_ERR_CONTEXT, "snapshot: it holds %u tokens, and %d fit; a longer context (-c) would help", (unsigned)h->n_tokens, (int)s->n_ctx);
    const pinch_status st = describe(s, (int32_t)h->n_tokens, &own, err);
    if (st) return st;
    if (h->model != own.model) return pn_fail(err, PINCH_ERR_ARGUMENT, "snapshot: it belongs to another model");
    if (h->layout != own.layout) return pn_fail(err, PINCH_ERR_ARGUMENT, "snapshot: its cache types, or what drafts by the model's own block (MTP) need, are others than this session's");
    if (h->image_bytes != own.image_bytes)
        return pn_fail(err, PINCH_ERR_FORMAT, "snapshot: %" PRIu64 " bytes of state, and %" PRIu64 " belong to %u tokens", h->image_bytes, own.image_bytes, (unsigned)h->n_tokens);
    return PINCH_OK;
}

static pinch_status read_body(pinch_session *s, int32_t seq, const header *h, in_stream *in, pinch_error *err)
{
    pinch_token *tokens = s->texts[seq].tokens;
    pn_session_settle(s);
    pn_state_rewind(s->state, seq, 0);
    s->texts[seq].block_rests = false;
    s->logits = NULL;
    bool ok = get(in, tokens, h->n_tokens * sizeof *tokens);
    for (uint32_t i = 0; ok && i < h->n_tokens; i++)
        if (tokens[i] < 0 || tokens[i] >= s->model->network.n_vocab)
            return pn_fail(err, PINCH_ERR_FORMAT, "snapshot: token %d is not in 0..%d", (int)tokens[i], (int)s->model->network.n_vocab - 1);
    ok = ok && pn_state_read(s->state, seq, (int32_t)h->n_tokens, get, in);
    uint64_t sum = 0;
    const uint64_t own = pn_hash_end(&in->sum);
    if (!ok || !in->fn(in->user, &sum, sizeof sum)) return pn_fail(err, PINCH_ERR_IO, "snapshot: it ends early");
    return sum == own ? PINCH_OK : pn_fail(err, PINCH_ERR_FORMAT, "snapshot: it is damaged: its sum does not agree");
}

pinch_status pinch_session_load(pinch_session *s, int32_t seq, pinch_read_fn fn, void *user, pinch_error *err)
{
    pinch_status st = pn_session_check(s, seq, err);
    if (st) return st;
    in_stream in = {.fn = fn, .user = user};
    header h;
    if (!get(&in, &h, sizeof h)) return pn_fail(err, PINCH_ERR_IO, "snapshot: it ends early");
    st = check_header(s, &h, err);
    if (st) return st;
    st = read_body(s, seq, &h, &in, err);
    if (st) pn_state_rewind(s->state, seq, 0);
    return st;
}
