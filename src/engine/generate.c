/* Samplers of the public API, and generation with stop strings. */
#include "engine/engine.h"

#include <stdlib.h>

struct pinch_sampler {
    pn_sampler *chain;
};

/* ---- samplers -------------------------------------------------------------------------------------------------------------------------- */

static size_t piece_of(const void *vocab, pinch_token id, char *out, size_t capacity) { return pn_piece(vocab, id, true, out, capacity); }

pinch_status pinch_sampler_open(pinch_sampler **out, const pinch_model *m, const pinch_sampler_options *options, pinch_error *err)
{
    const pinch_sampler_options o = options ? *options : pinch_sampler_options_default();
    pinch_status st = pn_model_needs_vocab(m, err);
    if (st) return st;
    pinch_sampler *s = pn_alloc_zero(1, sizeof *s);
    if (!s) return pn_fail_memory(err, "a sampler", sizeof *s);
    const pinch_token *suppressed = NULL;
    const size_t n = pn_vocab_suppressed(m->vocab, &suppressed);
    const int32_t n_ctx = pinch_model_n_ctx_train(m);
    st = pn_sampler_open(&s->chain, &o, pn_vocab_size(m->vocab), n_ctx > 0 ? n_ctx : 1, piece_of, m->vocab, suppressed, n, err);
    if (st) {
        free(s);
        return st;
    }
    *out = s;
    return PINCH_OK;
}

void pinch_sampler_close(pinch_sampler *s)
{
    if (!s) return;
    pn_sampler_close(s->chain);
    free(s);
}

void pinch_sampler_accept(pinch_sampler *s, pinch_token token) { pn_sampler_accept(s->chain, token); }
pinch_token pinch_sampler_choose(pinch_sampler *s, float *logits) { return pn_sampler_choose(s->chain, logits); }
void pinch_sampler_reset(pinch_sampler *s) { pn_sampler_reset(s->chain); }

/* ---- text that may be shown ------------------------------------------------------------------------------------------------------------- */

/* Text that is certain but may yet turn out to begin a stop string is held in session->text[0 .. n). */
typedef struct output {
    pinch_session *s;
    const pinch_generate_options *o;
    pn_stream stream;
    size_t n;
} output;

/* Where text ends because of stop strings: before the one that is complete first, whatever the tokens cut, with `whole`; otherwise before the first
 * place that may yet become one, or at n. */
static size_t find_stop(const pinch_generate_options *o, const char *text, size_t n, bool *whole)
{
    size_t end = SIZE_MAX, start = n, open = n;
    for (size_t i = 0; i < o->n_stops; i++) {
        const size_t length = strlen(o->stops[i]);
        size_t at = length ? 0 : n;
        while (at < n && memcmp(text + at, o->stops[i], length < n - at ? length : n - at)) at++;
        if (at == n) continue;
        if (at + length > n) {
            if (at < open) open = at;
        } else if (at + length < end || (at + length == end && at < start)) {
            end = at + length;
            start = at;
        }
    }
    *whole = end != SIZE_MAX;
    return *whole ? start : open;
}

/* Adds a token's bytes; on return `show` bytes of text may be shown. True: a stop string is complete, and nothing after `show` counts. */
static bool output_put(output *out, pinch_token token, size_t *show)
{
    pinch_session *s = out->s;
    char *piece = s->text + s->text_capacity; /* second half of the buffer */
    const size_t most = s->model->longest_piece, all = pn_piece(s->model->vocab, token, out->o->special, piece, most), n = all < most ? all : most;
    out->n += pn_stream_put(&out->stream, piece, n, s->text + out->n);
    bool whole;
    *show = find_stop(out->o, s->text, out->n, &whole);
    return whole;
}

static void output_drop(output *out, size_t n)
{
    memmove(out->s->text, out->s->text + n, out->n - n);
    out->n -= n;
}

static void output_drop_all(output *out)
{
    out->n = 0;
    out->stream = (pn_stream){0};
}

/* ---- generation --------------------------------------------------------------------------------------------------------------------------- */

pinch_generate_options pinch_generate_options_default(void) { return (pinch_generate_options){.max_tokens = -1}; }

static pinch_status check_stops(const pinch_generate_options *o, pinch_error *err)
{
    for (size_t i = 0; i < o->n_stops; i++)
        if (strlen(o->stops[i]) > PN_MAX_STOP - 16)
            return pn_fail(err, PINCH_ERR_ARGUMENT, "stop string %zu has %zu bytes; at most %d are allowed", i + 1, strlen(o->stops[i]), PN_MAX_STOP - 16);
    return PINCH_OK;
}

static pinch_status check_logits(const pinch_session *s, int32_t seq, pinch_error *err)
{
    if (!s->logits) return pn_fail(err, PINCH_ERR_ARGUMENT, "generate: feed a token first, there are no logits yet");
    if (s->logits_seq == seq && s->logits_length == pinch_session_position(s, seq)) return PINCH_OK;
    return pn_fail(err, PINCH_ERR_ARGUMENT, "generate: the logits at hand follow %d tokens of sequence %d, not the %d of sequence %d; feed its last token", (int)s->logits_length,
                   (int)s->logits_seq, (int)pinch_session_position(s, seq), (int)seq);
}

static bool emit(const output *out, pinch_token token, size_t n) { return out->o->on_token && out->o->on_token(out->o->user, token, out->s->text, n); }

/* One turn: choose, show, decide. True: stop, for the reason in result. */
static bool turn(output *out, pinch_sampler *sampler, pinch_generate_result *result, pinch_token *token)
{
    pinch_session *s = out->s;
    *token = pinch_sampler_choose(sampler, s->logits);
    pinch_sampler_accept(sampler, *token);
    if (!out->o->ignore_eos && pn_vocab_is_eog(s->model->vocab, *token)) {
        result->stop = PINCH_STOP_EOS;
        return true;
    }
    result->n_tokens++;
    size_t show;
    const bool stopped = output_put(out, *token, &show);
    if (emit(out, *token, show)) {
        result->stop = PINCH_STOP_ABORT;
        output_drop_all(out);
        return true;
    }
    if (stopped) {
        result->stop = PINCH_STOP_STRING;
        output_drop_all(out);
        return true;
    }
    output_drop(out, show);
    return false;
}

/* What was held back in case of a stop string or an unfinished character is text after all, unless that character's bytes complete one. */
static void flush(output *out, pinch_generate_result *result)
{
    bool whole;
    out->n += pn_stream_end(&out->stream, out->s->text + out->n);
    const size_t show = find_stop(out->o, out->s->text, out->n, &whole);
    if (whole) {
        out->n = show;
        result->stop = PINCH_STOP_STRING;
    }
    if (out->n) emit(out, -1, out->n);
}

pinch_status pinch_generate(pinch_session *s, int32_t seq, pinch_sampler *sampler, const pinch_generate_options *options, pinch_generate_result *result, pinch_error *err)
{
    const pinch_generate_options o = options ? *options : pinch_generate_options_default();
    output out = {.s = s, .o = &o};
    pinch_generate_result unwanted;
    if (!result) result = &unwanted;
    pinch_status st = check_stops(&o, err);
    if (!st) st = check_logits(s, seq, err);
    if (st) return st;
    *result = (pinch_generate_result){.stop = PINCH_STOP_LENGTH};
    pn_draft_begin(s, seq);
    pinch_token token;
    while (o.max_tokens < 0 || result->n_tokens < o.max_tokens) {
        if (turn(&out, sampler, result, &token)) break;
        if (o.max_tokens >= 0 && result->n_tokens == o.max_tokens) break;
        if (pinch_session_position(s, seq) >= s->n_ctx) break;
        st = pn_draft_feed(s, seq, token, o.max_tokens < 0 ? INT32_MAX : o.max_tokens - result->n_tokens - 1, err);
        if (st) break;
    }
    pn_draft_end(s, &result->drafts);
    if (st == PINCH_ABORTED) {
        result->stop = PINCH_STOP_ABORT;
        st = PINCH_OK;
    }
    flush(&out, result);
    return st;
}
