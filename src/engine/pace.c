/* Whether drafts pay: how long tokens take with them and without, and the decision to give them up. Knows numbers alone; what it decides changes speed,
 * never text. */
#include "engine/engine.h"

/* A few plain tokens to begin with, one now and then: the cost of a token grows with the text. Drafts are judged by windows of rounds, because each gives
 * another number of tokens; one slow window may be a hiccup of the machine. */
enum { PLAIN_FIRST = 3, PLAIN_EVERY = 32, PLAIN_MEAN = 4, WINDOW = 8, SLOW_WINDOWS = 2 };

bool pn_pace_wants_plain(const pn_pace *p) { return p->n_plain < PLAIN_FIRST || p->since >= PLAIN_EVERY; }

void pn_pace_plain(pn_pace *p, double seconds)
{
    p->since = 0;
    if (p->n_plain < PLAIN_MEAN) p->n_plain++;
    p->plain += (seconds - p->plain) / p->n_plain;
}

bool pn_pace_round(pn_pace *p, int32_t tokens, double seconds)
{
    p->since++;
    p->tokens += tokens;
    p->seconds += seconds;
    if (++p->rounds < WINDOW) return false;
    p->drafted = p->seconds / p->tokens;
    const bool useless = p->tokens == p->rounds; /* a round gives one token without any draft: whatever the clock says of plain tokens, this cannot pay */
    p->slow = useless || p->drafted > p->plain ? p->slow + 1 : 0;
    p->rounds = p->tokens = 0;
    p->seconds = 0;
    return p->slow >= SLOW_WINDOWS;
}
