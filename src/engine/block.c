/* The block that drafts tokens (MTP), of a session that drafts by it. It follows the trunk: row for row the same tokens, each with the trunk's result at the
 * position before, so that its keys and values are there when a draft begins. That result is what the block's layer carries; going back takes it along. */
#include "engine/engine.h"

static float *pending_of(const pinch_session *s, int32_t seq) { return pn_state_recurrent(s->state, s->model->network.draft.layer, seq); }

/* The row gets what the position before left; the trunk's result at its own is left for the next. */
static void pass_on(pinch_session *s, int32_t row)
{
    const pn_network *net = &s->model->network;
    const pn_place p = s->places[row];
    const size_t bytes = (size_t)net->n_embd * sizeof(float);
    float *pending = pending_of(s, p.seq), *kept = pn_state_kept(s->state, net->draft.layer, p.seq, p.position);
    memcpy(pn_draft_hidden(net, s->block, row), pending, bytes);
    pn_run_hidden(s->run, row, pending);
    if (kept) memcpy(kept, pending, bytes);
}

static bool rests(const pinch_session *s, int32_t row) { return s->texts[s->places[row].seq].block_rests; }

static pinch_status compute(pinch_session *s, int32_t n, int n_threads, pinch_error *err)
{
    for (int32_t i = 0; i < n; i++) {
        const pn_place p = s->places[i];
        const pinch_status st = pn_draft_embed(&s->model->network, s->texts[p.seq].tokens[p.position], s->raw, s->block, i, err);
        if (st) return st;
    }
    for (int32_t i = 0; i < n; i++) pass_on(s, i);
    pn_run_trunk(s->block, s->pool, n_threads, s->places, n);
    return PINCH_OK;
}

/* A row of a text where the block rests is computed in vain if another one beside it follows. */
pinch_status pn_block_follow(pinch_session *s, int32_t n, int n_threads, pinch_error *err)
{
    int32_t n_rest = 0;
    for (int32_t i = 0; i < n; i++) n_rest += rests(s, i);
    const pinch_status st = n_rest < n ? compute(s, n, n_threads, err) : PINCH_OK;
    for (int32_t i = 0; i < n && n_rest > 0; i++)
        if (rests(s, i)) pn_state_blank(s->state, s->model->network.draft.layer, s->places[i].seq, s->places[i].position);
    return st;
}

static pinch_token likeliest(const pn_network *net, const float *logits)
{
    const int64_t n = net->draft.plan.n_logits;
    int64_t best = 0;
    for (int64_t i = 1; i < n; i++)
        if (logits[i] > logits[best]) best = i;
    return net->logit_ids ? net->logit_ids[best] : (pinch_token)best;
}

/* The first guess takes what the trunk left; later ones the block's own result. Keys and values that lie beyond the text thereby are stored anew when the
 * block follows. */
int32_t pn_block_propose(pinch_session *s, int32_t seq, int32_t length, int32_t most)
{
    static const int32_t only = 0;
    const pn_network *net = &s->model->network;
    pinch_token *text = s->texts[seq].tokens;
    const int n_threads = pn_pool_fit(s->pool, s->n_threads);
    for (int32_t i = 0; i < most; i++) {
        const pn_place place = {.seq = seq, .position = length - 1 + i};
        float *hidden = pn_draft_hidden(net, s->block, 0);
        if (i) pn_run_hidden(s->block, 0, hidden);
        else memcpy(hidden, pending_of(s, seq), (size_t)net->n_embd * sizeof *hidden);
        if (pn_draft_embed(net, text[place.position], s->raw, s->block, 0, NULL)) return i;
        pn_run_trunk(s->block, s->pool, n_threads, &place, 1);
        pn_run_head(s->block, s->pool, n_threads, &only, 1);
        text[length + i] = likeliest(net, pn_run_logits(s->block, 0));
    }
    return most;
}

/* Of the last batch's m rows, a few at a time. */
static pinch_status hand_out(pinch_session *s, const pinch_row *rows, int32_t m, size_t first, pinch_row_fn fn, void *user, pinch_error *err)
{
    for (int32_t done = 0; done < m; done += s->n_out) {
        const int32_t n = (int32_t)pn_min64(m - done, s->n_out);
        for (int32_t i = 0; i < n; i++) s->out_rows[i] = done + i;
        pn_run_head(s->block, s->pool, pn_pool_fit(s->pool, s->n_threads_batch), s->out_rows, n);
        for (int32_t i = 0; i < n; i++)
            if (rows[done + i].logits && fn(user, first + (size_t)(done + i), pn_session_whole_row(s, pn_run_logits(s->block, i)), s->model->network.n_vocab))
                return pn_fail(err, PINCH_ABORTED, "stopped by the caller");
    }
    return PINCH_OK;
}

pinch_status pn_block_logits(pinch_session *s, const pinch_row *rows, size_t n, pinch_row_fn fn, void *user, pinch_error *err)
{
    pinch_status st = PINCH_OK;
    int32_t m = 0;
    for (size_t at = 0; at < n && !st; at += (size_t)m) {
        m = (int32_t)pn_min64((int64_t)(n - at), s->n_batch);
        for (int32_t i = 0; i < m; i++) s->rows[i] = (pinch_row){.token = rows[at + (size_t)i].token, .seq = rows[at + (size_t)i].seq};
        st = pinch_session_eval(s, s->rows, (size_t)m, NULL, NULL, err);
        if (!st) st = hand_out(s, rows + at, m, at, fn, user, err);
    }
    return st;
}
