/* Generation with drafts: a chosen token is computed together with guesses of what follows. As long as the sampler then chooses what was guessed, the
 * next token's row is there already; at the first that differs the rows behind are forgotten. A row has the bits that it would have alone, so the
 * sampler sees the same logits in the same order as without drafts. */
#include "engine/engine.h"

#include "base/cpu.h"

#include <stdio.h>

/* ---- drafters ---------------------------------------------------------------------------------------------------------------------------- */

/* Behind the newest earlier place of a text's last three tokens, else of its last two; 0: there is none. */
static int32_t find_before(const pinch_token *text, int32_t length)
{
    int32_t of_two = 0;
    for (int32_t end = length - 1; end >= 2; end--) {
        if (text[end - 1] != text[length - 1] || text[end - 2] != text[length - 2]) continue;
        if (end >= 3 && text[end - 3] == text[length - 3]) return end;
        if (of_two == 0) of_two = end;
    }
    return of_two;
}

/* What followed the last tokens before; a repetition shorter than the draft repeats itself. */
static int32_t look_up(pinch_session *s, int32_t seq, int32_t length, int32_t most)
{
    pinch_token *text = s->texts[seq].tokens;
    const int32_t from = find_before(text, length);
    for (int32_t i = 0; from && i < most; i++) text[length + i] = text[from + i];
    return from ? most : 0;
}

pn_propose_fn pn_drafter(pinch_draft kind)
{
    static const pn_propose_fn drafters[] = {NULL, look_up, pn_block_propose};
    return drafters[kind];
}

enum { FIRST_DRAFT = 2, FIRST_PAUSE = 128 }; /* tokens, of a generation */

/* ---- measuring --------------------------------------------------------------------------------------------------------------------------- */

static void tell(pinch_session *s)
{
    char line[160];
    if (s->drafts.told || !s->callbacks.log) return;
    s->drafts.told = true;
    snprintf(line, sizeof line, "drafts are given up: %d of %d tokens accepted, a token takes %lld us with them and %lld us without",
             (int)s->drafts.stats.n_accepted, (int)s->drafts.stats.n_drafted, (long long)(s->drafts.pace.drafted * 1e6), (long long)(s->drafts.pace.plain * 1e6));
    s->callbacks.log(s->callbacks.user, PINCH_LOG_INFO, line);
}

/* A block that no longer follows the text has lost the thread; a text may begin to repeat itself, so lookup is tried again, each time later. */
static void give_up(pinch_session *s, int32_t seq)
{
    pn_drafts *d = &s->drafts;
    d->stats.given_up = true;
    s->texts[seq].block_rests = s->block != NULL;
    d->left = d->pause;
    d->pause *= 2;
    tell(s);
}

static void end_plain(pn_drafts *d, bool block_rests)
{
    pn_pace_plain(&d->pace, d->seconds - d->following);
    if (d->stats.given_up && !block_rests && --d->left == 0) d->stats.given_up = false;
}

/* A round is over once a token has to be computed that is not ahead. Every row of a draft costs, so the next is twice as long where all of this one was
 * right, and otherwise as long as what was. */
static void end_round(pinch_session *s, int32_t seq)
{
    pn_drafts *d = &s->drafts;
    const int32_t taken = d->taken;
    d->taken = 0;
    if (taken == 0 || d->unmeasured) return;
    d->next = taken > d->drafted ? 2 * d->drafted : (int32_t)pn_max64(1, taken - 1);
    if (pn_pace_round(&d->pace, taken, d->seconds)) give_up(s, seq);
}

/* ---- feeding ------------------------------------------------------------------------------------------------------------------------------- */

static int32_t propose(pinch_session *s, int32_t seq, int32_t length, int32_t most)
{
    pn_drafts *d = &s->drafts;
    most = (int32_t)pn_min64(pn_min64(most, d->most), s->n_ctx - length);
    if (!d->unmeasured) most = pn_pace_wants_plain(&d->pace) ? 0 : (int32_t)pn_min64(most, d->next);
    return most <= 0 || d->stats.given_up ? 0 : d->propose(s, seq, length, most);
}

static pinch_status compute(pinch_session *s, int32_t seq, pinch_token token, int32_t most, pinch_error *err)
{
    pn_drafts *d = &s->drafts;
    const double start = pn_now();
    pn_session_settle(s);
    const double settled = pn_now();
    d->seconds += settled - start;
    end_round(s, seq);
    const int32_t length = pinch_session_position(s, seq);
    s->texts[seq].tokens[length] = token;
    const int32_t n = propose(s, seq, length + 1, most);
    const double proposed = pn_now();
    d->following = 0;
    const pinch_status st = pn_session_run_ahead(s, seq, 1 + n, err);
    d->seconds = pn_now() - (n ? settled : proposed);
    if (st) return st;
    d->stats.n_drafted += n;
    d->drafted = n;
    d->taken = n > 0;
    if (n == 0) end_plain(d, s->texts[seq].block_rests);
    return PINCH_OK;
}

pinch_status pn_draft_feed(pinch_session *s, int32_t seq, pinch_token token, int32_t most, pinch_error *err)
{
    pn_drafts *d = &s->drafts;
    if (!d->propose) return pinch_session_feed(s, seq, &token, 1, err);
    if (d->ahead == 0 || s->texts[seq].tokens[pinch_session_position(s, seq)] != token) return compute(s, seq, token, most, err);
    const pinch_status st = pn_session_take_ahead(s, err);
    if (st) return st;
    d->stats.n_accepted++;
    d->taken++;
    return PINCH_OK;
}

void pn_draft_begin(pinch_session *s, int32_t seq)
{
    pn_drafts *d = &s->drafts;
    d->stats = (pinch_draft_stats){.given_up = s->texts[seq].block_rests};
    d->pace.slow = d->pace.rounds = d->pace.tokens = d->taken = 0;
    d->pace.seconds = 0;
    d->next = FIRST_DRAFT;
    d->pause = FIRST_PAUSE;
}

void pn_draft_end(pinch_session *s, pinch_draft_stats *stats)
{
    pn_session_settle(s);
    *stats = s->drafts.stats;
    stats->plain_ms = s->drafts.pace.plain * 1e3;
    stats->draft_ms = s->drafts.pace.drafted * 1e3;
}
