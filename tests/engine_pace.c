/* Whether drafts pay, decided from made-up times: given up where tokens take longer with them, kept where they do not, and no single hiccup decides. */
#include "engine/engine.h"
#include "test.h"

/* Rounds of `tokens` each that take `seconds`, with a plain token of `plain` wherever one is wanted; the round after which drafts are given up, `most`: none. */
static int rounds_until(pn_pace *p, double plain, int32_t tokens, double seconds, int most)
{
    for (int i = 0; i < most; i++) {
        while (pn_pace_wants_plain(p)) pn_pace_plain(p, plain);
        if (pn_pace_round(p, tokens, seconds)) return i;
    }
    return most;
}

static void decisions(void)
{
    static const struct {
        const char *what;
        double plain, seconds; /* of a token without drafts, of a round with them */
        int32_t tokens;        /* of a round */
        bool pays;
    } cases[] = {
        {"nothing is accepted", 10e-3, 16e-3, 1, false},
        {"one of two, and a round costs three", 10e-3, 30e-3, 2, false},
        {"four tokens for the price of two", 10e-3, 20e-3, 4, true},
        {"nothing is accepted, and hiccups make plain tokens look slower", 40e-3, 16e-3, 1, false},
        {"microseconds", 2e-6, 3e-6, 1, false},
        {"seconds", 2.0, 7.0, 4, true},
    };
    for (size_t i = 0; i < PN_COUNT(cases); i++) {
        pn_pace p = {0};
        const int given_up = rounds_until(&p, cases[i].plain, cases[i].tokens, cases[i].seconds, 1000);
        CHECK("drafts are given up early where tokens take longer with them, and else never", cases[i].pays ? given_up == 1000 : given_up < 24, "%s: after %d rounds", cases[i].what, given_up);
        const double drafted = cases[i].seconds / cases[i].tokens;
        const bool same = p.drafted > drafted * 0.999 && p.drafted < drafted * 1.001 && p.plain > cases[i].plain * 0.999 && p.plain < cases[i].plain * 1.001;
        CHECK("what it measured is what it was told", same, "%s: %g and %g", cases[i].what, p.drafted, p.plain);
    }
}

static void hiccup(void)
{
    pn_pace p = {0};
    int given_up = rounds_until(&p, 10e-3, 3, 15e-3, 100);
    given_up += rounds_until(&p, 10e-3, 3, 0.8, 1);
    given_up += rounds_until(&p, 10e-3, 3, 15e-3, 100);
    CHECK("one round that took fifty times as long decides nothing", given_up == 201, "%d", given_up);
    CHECK("but where rounds go on like that, drafts end", rounds_until(&p, 10e-3, 3, 0.8, 100) < 24, "%g", p.drafted);
}

/* A longer text makes every token slower; rounds that still pay must not look worse than a plain token of long ago. */
static void growing(void)
{
    pn_pace p = {0};
    int given_up = 0;
    for (int i = 0; i < 2000 && !given_up; i++) given_up = rounds_until(&p, 10e-3 * (1 + i / 500.0), 2, 15e-3 * (1 + i / 500.0), 1) == 0;
    CHECK("what a plain token takes is measured again and again", !given_up && p.plain > 30e-3, "%g", p.plain);
}

int main(void)
{
    decisions();
    hiccup();
    growing();
    return pn_done();
}
