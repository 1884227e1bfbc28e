/* The `state` notes of golden cases: their tokens in the pieces that they name give the logits of one batch, at once and after a reset. Between the pieces the
 * sequence goes to a snapshot and on in another session, and drafts are fed and taken back: the same bits. A case of every architecture besides, in such pieces. */
#include <dirent.h>
#include <math.h>

#include "architectures.h"
#include "engine_case.h"
#include "snapshot_bytes.h"

enum { MOST_PIECES = 64, MORE = 10 /* of `greedy`, after the prompt */ };

typedef struct notes {
    golden_case c;
    pinch_token tokens[CASE_TOKENS];
    size_t n, n_pieces, pieces[MOST_PIECES];
} notes;

typedef struct seen {
    architectures of;
    size_t noted; /* cases that had notes */
} seen;

/* The pieces of the case's notes; none where it has no notes and is the first of its architecture. False: neither. */
static bool read_pieces(notes *x, seen *s, const char *folder, const char *name)
{
    pn_arena arena;
    pn_json object;
    pinch_error err = {0};
    const bool is_case = case_json(folder, name, &arena, &object, &err) && pn_json_member(&object, "arch") && !pn_json_member(&object, "model");
    const pn_json *state = is_case ? pn_json_member(&object, "state") : NULL, *pieces = state ? pn_json_member(state, "pieces") : NULL;
    const bool wanted = is_case && (first_of_its_kind(&s->of, pn_json_member(&object, "arch")->text) || state);
    x->n_pieces = 0;
    for (size_t i = 0; pieces && i < pieces->n && i < MOST_PIECES; i++) x->pieces[x->n_pieces++] = (size_t)pieces->items[i].integer;
    if (state) CHECK("the notes speak of the prompt and ten tokens after it", !strcmp(pn_json_member(state, "tokens")->text, "prompt + greedy[:10]"), "%s", name);
    pn_arena_free(&arena);
    s->noted += state != NULL;
    return wanted;
}

static void cut_up(notes *x)
{
    static const size_t sizes[] = {20, 1, 7, 3, 2, 5};
    for (size_t left = x->n; left; left -= x->pieces[x->n_pieces++]) {
        const size_t size = sizes[x->n_pieces % PN_COUNT(sizes)];
        x->pieces[x->n_pieces] = size < left ? size : left;
    }
}

static bool load_notes(notes *x, seen *s, const char *folder, const char *name)
{
    if (!read_pieces(x, s, folder, name)) return false;
#if !defined(__x86_64__)
    if (x->n_pieces == 0) return false; /* emulated: the notes alone */
#endif
    if (!case_load_from(&x->c, folder, name)) return false;
    size_t sum = 0;
    x->n = x->c.n_prompt + MORE;
    if (x->n_pieces == 0) cut_up(x);
    memcpy(x->tokens, x->c.prompt, x->c.n_prompt * sizeof *x->tokens);
    memcpy(x->tokens + x->c.n_prompt, x->c.greedy, MORE * sizeof *x->tokens);
    for (size_t i = 0; i < x->n_pieces; i++) sum += x->pieces[i];
    return CHECK("the pieces are all of the tokens", sum == x->n && x->n_pieces > 1, "%s: %zu of %zu", name, sum, x->n);
}

/* Rows of all pieces, each in a call of its own, into `out`. */
static bool in_pieces(const notes *x, pinch_session *s, float *out)
{
    pinch_row rows[CASE_TOKENS];
    pinch_error err = {0};
    bool ok = true;
    for (size_t i = 0; i < x->n; i++) rows[i] = (pinch_row){.token = x->tokens[i], .logits = true};
    for (size_t i = 0, at = 0; ok && i < x->n_pieces; at += x->pieces[i++])
        ok = pinch_session_eval(s, rows + at, x->pieces[i], case_row, out + at * (size_t)x->c.n_vocab, &err) == PINCH_OK;
    return CHECK("the pieces are computed", ok, "%s: %s", x->c.name, err.message);
}

static void against_golden(const notes *x, const float *got)
{
    const size_t V = (size_t)x->c.n_vocab;
    const float *last = got + (x->n - 1) * V;
    double worst = 0;
    size_t best = 0;
    for (size_t i = 0; i < x->c.n_prompt * V; i++) worst = fmax(worst, fabs((double)got[i] - (double)x->c.logits[i]));
    for (size_t i = 1; i < V; i++)
        if (last[i] > last[best]) best = i;
    CHECK("in pieces the logits are the reference's", worst <= x->c.tolerance, "%s: gap %.6f", x->c.name, worst);
    CHECK("and the token after them too", x->c.margins[MORE] < 2 * x->c.tolerance || best == (size_t)x->c.greedy[MORE], "%s: %zu, not %d", x->c.name, best, (int)x->c.greedy[MORE]);
}

static bool same_row(const notes *x, pinch_session *s, const float *want, size_t row)
{
    const float *got = pinch_session_logits(s);
    return got && !memcmp(got, want + row * (size_t)x->c.n_vocab, (size_t)x->c.n_vocab * sizeof *got);
}

/* At each border a snapshot goes to `other`, which takes the next piece. */
static void through_snapshots(const notes *x, pinch_session *s, pinch_session *other, const float *want)
{
    snapshot_bytes b = {malloc(SNAPSHOT_MOST), 0, 0};
    pinch_error err = {0};
    bool ok = b.data && pinch_session_truncate(s, 0, 0, &err) == PINCH_OK && pinch_session_truncate(other, 0, 0, &err) == PINCH_OK;
    size_t differ = 0;
    for (size_t i = 0, at = 0; ok && i < x->n_pieces; at += x->pieces[i++]) {
        const size_t end = at + x->pieces[i];
        b.n = b.at = 0;
        ok = at == 0 || (pinch_session_save(s, 0, snapshot_put, &b, &err) == PINCH_OK && pinch_session_load(other, 0, snapshot_get, &b, &err) == PINCH_OK);
        ok = ok && pinch_session_feed(other, 0, x->tokens + at, x->pieces[i], &err) == PINCH_OK && pinch_session_feed(s, 0, x->tokens + at, x->pieces[i], &err) == PINCH_OK;
        differ += ok && (!same_row(x, other, want, end - 1) || !same_row(x, s, want, end - 1));
    }
    CHECK("a sequence saved between two pieces goes on elsewhere with the same bits", ok && differ == 0, "%s: %zu of %zu pieces differ: %s", x->c.name, differ, x->n_pieces, err.message);
    free(b.data);
}

/* A piece whose last m tokens are wrong; they are taken back and the right ones fed. */
static bool drafted(const notes *x, pinch_session *s, size_t at, size_t n, size_t m)
{
    pinch_token draft[CASE_TOKENS];
    pinch_error err = {0};
    for (size_t i = 0; i < n; i++) draft[i] = i + m < n ? x->tokens[at + i] : (x->tokens[at + i] + 7) % x->c.n_vocab;
    return pinch_session_truncate(s, 0, (int32_t)at, &err) == PINCH_OK && pinch_session_feed(s, 0, draft, n, &err) == PINCH_OK &&
           pinch_session_truncate(s, 0, (int32_t)(at + n - m), &err) == PINCH_OK && pinch_session_feed(s, 0, x->tokens + at + n - m, m, &err) == PINCH_OK;
}

static void through_drafts(const notes *x, pinch_session *s, const float *want)
{
    const bool slow = getenv("PINCH_SLOW") != NULL; /* emulated: one and all of a piece */
    pinch_error err = {0};
    size_t differ = 0;
    bool ok = pinch_session_truncate(s, 0, 0, &err) == PINCH_OK;
    for (size_t i = 0, at = 0; i < x->n_pieces; at += x->pieces[i++])
        for (size_t m = 1; ok && m <= x->pieces[i]; m += slow && x->pieces[i] > 1 ? x->pieces[i] - 1 : 1) {
            ok = drafted(x, s, at, x->pieces[i], m);
            differ += ok && !same_row(x, s, want, at + x->pieces[i] - 1);
        }
    CHECK("drafts that are taken back leave nothing", ok && differ == 0, "%s: %zu differ", x->c.name, differ);
}

static void check_notes(const notes *x)
{
    pinch_model *model = case_model(&x->c, PINCH_ACTIVATIONS_Q8);
    pinch_session *s = model ? case_session(&x->c, model, 1, 0, 1) : NULL, *other = model ? case_session(&x->c, model, 2, 8, 1) : NULL;
    const size_t bytes = x->n * (size_t)x->c.n_vocab * sizeof(float);
    float *want = other ? case_logits(&x->c, other, x->tokens, x->n) : NULL, *got = calloc(1, bytes);
    pinch_error err = {0};
    if (s && want && got && in_pieces(x, s, got)) {
        CHECK("pieces give the bits of one text", !memcmp(want, got, bytes), "%s", x->c.name);
        against_golden(x, got);
        memset(got, 0, bytes);
        CHECK("a session is reset", pinch_session_truncate(s, 0, 0, &err) == PINCH_OK && pinch_session_position(s, 0) == 0, "%s", err.message);
        CHECK("after a reset the bits are the same", in_pieces(x, s, got) && !memcmp(want, got, bytes), "%s", x->c.name);
        through_snapshots(x, s, other, want);
        through_drafts(x, s, want);
    }
    free(want);
    free(got);
    pinch_session_close(s);
    pinch_session_close(other);
    pinch_model_close(model);
}

int main(void)
{
    const char *shared = pn_shared();
    if (!shared) {
        pn_skip("state notes", "../shared is missing");
        return pn_done();
    }
    static notes x;
    static seen s;
    char folder[400];
    struct dirent **names = NULL;
    snprintf(folder, sizeof folder, "%s/golden", shared);
    const int n = scandir(folder, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        x = (notes){.n = 0};
        if (*names[i]->d_name != '.' && load_notes(&x, &s, folder, names[i]->d_name)) check_notes(&x);
        case_free(&x.c);
        free(names[i]);
    }
    free(names);
    CHECK("cases with notes on state are found", s.noted >= 4, "%zu", s.noted);
    CHECK("and cases of many architectures", s.of.n >= 32, "%zu", s.of.n);
    return pn_done();
}
