/* The block that drafts tokens against golden logits: a prompt with the trunk's results, then a chain of its own; and the same bits for every batch and thread
 * count, as floats and with quantised weights. */
#include "draft_case.h"

#include <dirent.h>
#include <math.h>

static double gap(const float *a, const float *b, size_t n)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double g = fabs((double)a[i] - (double)b[i]);
        if (!(g <= worst)) worst = g; /* a NaN sticks */
    }
    return worst;
}

typedef struct results {
    float *logits, *hidden;
    size_t n_logits, n_hidden;
} results;

static bool results_get(results *r, const draft_case *c, const pn_network *net)
{
    r->n_logits = (c->n_prompt + c->n_chain) * (size_t)c->n_vocab;
    r->n_hidden = c->n_prompt * (size_t)net->n_embd;
    r->logits = calloc(r->n_logits, sizeof(float));
    r->hidden = calloc(r->n_hidden, sizeof(float));
    return r->logits && r->hidden;
}

static void results_free(results *r)
{
    free(r->logits);
    free(r->hidden);
}

static void against_golden(const draft_case *c, bool exact)
{
    drafter d;
    results r = {0};
    if (drafter_open(&d, c->path, c->n_vocab, exact, 2) && CHECK("the block's head has the vocabulary's rows", d.net.draft.plan.n_logits == c->n_vocab, "%s", c->name) &&
        results_get(&r, c, &d.net) && CHECK("the block computes", drafter_walk(&d, c, DRAFT_BATCH, r.logits, r.hidden), "%s", c->name)) {
        const size_t prompt = c->n_prompt * (size_t)c->n_vocab;
        const double rows = gap(r.logits, c->logits, prompt), chain = gap(r.logits + prompt, c->logits + prompt, r.n_logits - prompt);
        CHECK("rows of a prompt are within the tolerance", rows <= c->tolerance, "%s: gap %.6f", c->name, rows);
        CHECK("a chain of drafts is within the tolerance", chain <= c->tolerance, "%s: gap %.6f", c->name, chain);
        if (c->hidden) {
            const double hidden = c->n_hidden == r.n_hidden * sizeof(float) ? gap(r.hidden, c->hidden, r.n_hidden) : NAN;
            CHECK("the trunk's results are within the tolerance", hidden <= c->tolerance, "%s: gap %.6f", c->name, hidden);
        }
    }
    results_free(&r);
    drafter_close(&d);
}

static int folder_each(const char *folder)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        draft_case c;
        if (*e->d_name != '.' && draft_load(&c, folder, e->d_name)) {
            against_golden(&c, false);
            against_golden(&c, true);
            n++;
        }
        if (*e->d_name != '.') draft_free(&c);
    }
    if (dir) closedir(dir);
    return n;
}

int main(void)
{
    char folder[512];
    const char *shared = pn_shared();
    if (!shared) {
        pn_skip("golden drafts", "../shared is missing");
        return pn_done();
    }
    snprintf(folder, sizeof folder, "%s/golden", shared);
    const int n = folder_each(folder);
    CHECK("the golden drafts are there", n >= 6, "%d", n);
    return pn_done();
}
