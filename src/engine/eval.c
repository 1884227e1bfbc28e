/* Rows through the plan, and the text that each sequence holds. A call that fails or is stopped puts every sequence back to its mark. */
#include "engine/engine.h"

#include "base/cpu.h"

#include <math.h>
#include <stdlib.h>

/* ---- checks -------------------------------------------------------------------------------------------------------------------------- */

pinch_status pn_session_check(const pinch_session *s, int32_t seq, pinch_error *err)
{
    if (seq >= 0 && seq < s->n_seq) return PINCH_OK;
    return pn_fail(err, PINCH_ERR_ARGUMENT, "sequence %d is not in 0..%d", (int)seq, (int)s->n_seq - 1);
}

static pinch_status check_token(const pinch_session *s, pinch_token token, pinch_error *err)
{
    if (token >= 0 && token < s->model->network.n_vocab) return PINCH_OK;
    return pn_fail(err, PINCH_ERR_ARGUMENT, "token %d is not in 0..%d", (int)token, (int)s->model->network.n_vocab - 1);
}

static pinch_status context_full(const pinch_session *s, int32_t seq, uint64_t wanted, pinch_error *err)
{
    return pn_fail(err, PINCH_ERR_CONTEXT, "context: sequence %d would hold %" PRIu64 " tokens, and %d fit; a longer context (-c) or a shorter text would help", (int)seq, wanted, (int)s->n_ctx);
}

/* ---- one batch ------------------------------------------------------------------------------------------------------------------------- */

static int threads_for(const pinch_session *s, int32_t n_rows) { return pn_pool_fit(s->pool, n_rows == 1 ? s->n_threads : s->n_threads_batch); }

float *pn_session_whole_row(pinch_session *s, float *logits)
{
    const pn_network *net = &s->model->network;
    if (!net->logit_ids) return logits;
    for (int32_t i = 0; i < net->n_vocab; i++) s->full_logits[i] = -INFINITY;
    for (int64_t i = 0; i < net->plan.n_logits; i++) s->full_logits[net->logit_ids[i]] = logits[i];
    return s->full_logits;
}

/* The block that drafts, if there is one, after the trunk. */
static pinch_status follow(pinch_session *s, int32_t n, int n_threads, pinch_error *err)
{
    if (!s->block) return PINCH_OK;
    const double start = pn_now();
    const pinch_status st = pn_block_follow(s, n, n_threads, err);
    s->drafts.following = pn_now() - start;
    return st;
}

/* Embeds rows, places them at the end of their sequences and computes the trunk. */
static pinch_status run_batch(pinch_session *s, const pinch_row *rows, int32_t n, pinch_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        const pinch_status st = pn_network_embed(&s->model->network, rows[i].token, s->raw, s->run, i, err);
        if (st) return st;
    }
    for (int32_t i = 0; i < n; i++) {
        pn_text *t = &s->texts[rows[i].seq];
        s->places[i] = (pn_place){.seq = rows[i].seq, .position = pn_state_length(s->state, rows[i].seq)};
        t->tokens[s->places[i].position] = rows[i].token;
        if (s->places[i].position == 0) t->block_rests = false;
        pn_state_advance(s->state, rows[i].seq, 1);
    }
    const int n_threads = threads_for(s, n);
    pn_run_trunk(s->run, s->pool, n_threads, s->places, n);
    return follow(s, n, n_threads, err);
}

/* Rows of m tokens of one sequence; with `logits` the last gives them. Valid until the next call. */
static const pinch_row *token_rows(pinch_session *s, int32_t seq, const pinch_token *tokens, int32_t m, bool logits)
{
    for (int32_t i = 0; i < m; i++) s->rows[i] = (pinch_row){.token = tokens[i], .seq = seq, .logits = logits && i + 1 == m};
    return s->rows;
}

/* Makes the head's row i, which is row `row` of the batch, the logits at hand. */
static void take_logits(pinch_session *s, int32_t i, int32_t row)
{
    s->logits = pn_session_whole_row(s, pn_run_logits(s->run, i));
    s->logits_seq = s->places[row].seq;
    s->logits_length = s->places[row].position + 1;
}

/* Logits of the rows that want them, a few at a time. */
static pinch_status hand_out(pinch_session *s, const pinch_row *rows, int32_t n, size_t first, pinch_row_fn fn, void *user, pinch_error *err)
{
    int32_t n_out = 0;
    for (int32_t i = 0; i < n; i++)
        if (rows[i].logits) s->out_rows[n_out++] = i;
    for (int32_t done = 0; done < n_out; done += s->n_out) {
        const int32_t m = (int32_t)pn_min64(s->n_out, n_out - done);
        pn_run_head(s->run, s->pool, threads_for(s, m), s->out_rows + done, m);
        for (int32_t i = 0; i < m; i++) {
            const int32_t row = s->out_rows[done + i];
            take_logits(s, i, row);
            if (fn && fn(user, first + (size_t)row, s->logits, s->model->network.n_vocab)) return pn_fail(err, PINCH_ABORTED, "stopped by the caller");
        }
    }
    return PINCH_OK;
}

/* ---- going back -------------------------------------------------------------------------------------------------------------------------- */

/* Computes the tokens that a sequence already holds from its length up to n again. */
static pinch_status replay(pinch_session *s, int32_t seq, int32_t n, pinch_error *err)
{
    for (int32_t at = pn_state_length(s->state, seq); at < n;) {
        const int32_t m = (int32_t)pn_min64(n - at, s->n_batch);
        const pinch_status st = run_batch(s, token_rows(s, seq, s->texts[seq].tokens + at, m, false), m, err);
        if (st) return st;
        at += m;
    }
    return PINCH_OK;
}

/* To exactly n tokens; where a ring or a recurrent layer has lost what n needs, from a checkpoint or the start again. A failed replay may have left fewer than n. */
static pinch_status go_back(pinch_session *s, int32_t seq, int32_t n, pinch_error *err)
{
    if (n < pn_state_length(s->state, seq)) pn_state_rewind(s->state, seq, pn_state_can_rewind(s->state, seq, n));
    return replay(s, seq, n, err);
}

static void set_marks(pinch_session *s)
{
    pn_session_settle(s);
    for (int32_t i = 0; i < s->n_seq; i++) s->texts[i].mark = pn_state_length(s->state, i);
}

/* After a failure: a sequence that cannot even be computed again is left empty, which its position says. */
static void restore(pinch_session *s)
{
    for (int32_t i = 0; i < s->n_seq; i++) {
        if (pn_state_length(s->state, i) == s->texts[i].mark) continue;
        if (go_back(s, i, s->texts[i].mark, NULL)) pn_state_rewind(s->state, i, 0);
    }
    s->logits = NULL;
}

/* ---- the API ------------------------------------------------------------------------------------------------------------------------------- */

static pinch_status check_stop(const pinch_session *s, pinch_error *err)
{
    return s->callbacks.abort && s->callbacks.abort(s->callbacks.user) ? pn_fail(err, PINCH_ABORTED, "stopped by the caller") : PINCH_OK;
}

/* What is to be computed: rows, or tokens of one sequence, of which the very last gives logits. */
typedef struct input {
    size_t n;
    const pinch_row *rows; /* NULL: tokens */
    const pinch_token *tokens;
    int32_t seq;
    pinch_row_fn fn; /* NULL: nobody looks */
    void *user;
} input;

/* Checkpoints are made before a prompt's last token, which is computed again whenever the same prompt comes again, and now and then on the way. */
enum { CHECKPOINT_EVERY = 1024 };

static bool makes_checkpoints(const pinch_session *s, const input *in) { return in->tokens && in->n > 1 && pn_state_keeps_checkpoints(s->state); }

static int32_t next_rows(const pinch_session *s, const input *in, size_t at)
{
    const size_t left = in->n - at;
    return (int32_t)pn_min64((int64_t)(left > 1 && makes_checkpoints(s, in) ? left - 1 : left), s->n_batch);
}

static void after_rows(pinch_session *s, const input *in, size_t at, int32_t m)
{
    if (in->n > 1 && s->callbacks.progress) s->callbacks.progress(s->callbacks.user, "prompt", at, in->n);
    const int32_t length = makes_checkpoints(s, in) ? pn_state_length(s->state, in->seq) : 0;
    if (length && (at + 1 == in->n || length / CHECKPOINT_EVERY > (length - m) / CHECKPOINT_EVERY)) pn_state_checkpoint(s->state, in->seq);
}

static pinch_status compute(pinch_session *s, const input *in, pinch_error *err)
{
    if (in->n) s->logits = NULL;
    for (size_t at = 0; at < in->n;) {
        pinch_status st = check_stop(s, err);
        if (st) return st;
        const int32_t m = next_rows(s, in, at);
        const pinch_row *rows = in->rows ? in->rows + at : token_rows(s, in->seq, in->tokens + at, m, at + (size_t)m == in->n);
        st = run_batch(s, rows, m, err);
        if (!st) st = hand_out(s, rows, m, at, in->fn, in->user, err);
        if (st) return st;
        at += (size_t)m;
        after_rows(s, in, at, m);
    }
    return PINCH_OK;
}

pinch_status pinch_session_eval(pinch_session *s, const pinch_row *rows, size_t n, pinch_row_fn fn, void *user, pinch_error *err)
{
    set_marks(s);
    for (size_t i = 0; i < n; i++) {
        pinch_status st = pn_session_check(s, rows[i].seq, err);
        if (!st) st = check_token(s, rows[i].token, err);
        if (st) return st;
        if (++s->texts[rows[i].seq].mark > s->n_ctx) return context_full(s, rows[i].seq, (uint64_t)s->texts[rows[i].seq].mark, err);
    }
    set_marks(s);
    const pinch_status st = compute(s, &(input){.n = n, .rows = rows, .fn = fn, .user = user}, err);
    if (st) restore(s);
    return st;
}

pinch_status pinch_session_feed(pinch_session *s, int32_t seq, const pinch_token *tokens, size_t n, pinch_error *err)
{
    pinch_status st = pn_session_check(s, seq, err);
    for (size_t i = 0; i < n && !st; i++) st = check_token(s, tokens[i], err);
    if (st) return st;
    const int32_t length = pn_state_length(s->state, seq);
    if (n > (size_t)(s->n_ctx - length)) return context_full(s, seq, (uint64_t)length + n, err);
    set_marks(s);
    st = compute(s, &(input){.n = n, .tokens = tokens, .seq = seq}, err);
    if (st) restore(s);
    return st;
}

pinch_status pinch_session_truncate(pinch_session *s, int32_t seq, int32_t n, pinch_error *err)
{
    pinch_status st = pn_session_check(s, seq, err);
    if (st) return st;
    if (n < 0 || n > pn_state_length(s->state, seq))
        return pn_fail(err, PINCH_ERR_ARGUMENT, "truncate: %d is not in 0..%d, what sequence %d holds", (int)n, (int)pn_state_length(s->state, seq), (int)seq);
    set_marks(s);
    st = go_back(s, seq, n, err);
    if (st) restore(s);
    return st;
}

pinch_status pinch_session_sync(pinch_session *s, int32_t seq, const pinch_token *tokens, size_t n, size_t *reused, pinch_error *err)
{
    pinch_status st = pn_session_check(s, seq, err);
    if (!st && n == 0) st = pn_fail(err, PINCH_ERR_ARGUMENT, "sync: no tokens");
    for (size_t i = 0; i < n && !st; i++) st = check_token(s, tokens[i], err);
    if (!st && n > (size_t)s->n_ctx) st = context_full(s, seq, n, err);
    if (st) return st;
    const size_t length = (size_t)pn_state_length(s->state, seq), most = length < n - 1 ? length : n - 1;
    size_t common = 0;
    while (common < most && s->texts[seq].tokens[common] == tokens[common]) common++;
    const int32_t keep = pn_state_can_rewind(s->state, seq, (int32_t)common);
    /* Not restored on failure: the old text is gone once its tail is overwritten. */
    pn_state_rewind(s->state, seq, keep);
    set_marks(s);
    st = compute(s, &(input){.n = n - (size_t)keep, .tokens = tokens + keep, .seq = seq}, err);
    if (st) restore(s);
    if (!st && reused) *reused = (size_t)keep;
    return st;
}

pinch_status pinch_session_copy(pinch_session *s, int32_t from, int32_t to, pinch_error *err)
{
    pinch_status st = pn_session_check(s, from, err);
    if (!st) st = pn_session_check(s, to, err);
    if (st || from == to) return st;
    pn_session_settle(s);
    if (s->logits_seq == to) s->logits = NULL;
    pn_state_copy(s->state, from, to);
    s->texts[to].block_rests = s->texts[from].block_rests;
    memcpy(s->texts[to].tokens, s->texts[from].tokens, (size_t)pn_state_length(s->state, from) * sizeof(pinch_token));
    return PINCH_OK;
}

/* ---- ahead of the text ---------------------------------------------------------------------------------------------------------------- */

pinch_status pn_session_run_ahead(pinch_session *s, int32_t seq, int32_t n, pinch_error *err)
{
    set_marks(s);
    s->logits = NULL;
    pinch_status st = check_stop(s, err);
    if (!st) {
        pn_state_keep(s->state, seq, n);
        st = run_batch(s, token_rows(s, seq, s->texts[seq].tokens + pn_state_length(s->state, seq), n, false), n, err);
    }
    if (st) {
        restore(s);
        return st;
    }
    for (int32_t i = 0; i < n; i++) s->out_rows[i] = i;
    pn_run_head(s->run, s->pool, threads_for(s, n), s->out_rows, n);
    s->drafts.seq = seq;
    s->drafts.row = 0;
    s->drafts.ahead = n - 1;
    take_logits(s, 0, 0);
    return PINCH_OK;
}

pinch_status pn_session_take_ahead(pinch_session *s, pinch_error *err)
{
    const pinch_status st = check_stop(s, err);
    s->logits = NULL;
    if (st) return st;
    s->drafts.row++;
    s->drafts.ahead--;
    take_logits(s, s->drafts.row, s->drafts.row);
    return PINCH_OK;
}

void pn_session_settle(pinch_session *s)
{
    const int32_t seq = s->drafts.seq, n = pinch_session_position(s, seq);
    if (s->drafts.ahead == 0) return;
    s->drafts.ahead = 0;
    pn_state_rewind(s->state, seq, n);
}
