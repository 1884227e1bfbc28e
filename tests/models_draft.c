/* The block that drafts tokens against golden logits: a prompt with the trunk's results, then a chain of its own; and the same bits for every batch and thread
 * count, as floats and with quantised weights. */
#include "draft_case.h"
#include "gguf_mutate.h"
#include "gguf_variant.h"

#include <dirent.h>
#include <math.h>
#include <sys/mman.h>

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

/* ---- the same bits ---------------------------------------------------------------------------------------------------------------------------- */

static void same_bits(const draft_case *c, const char *path, const char *what)
{
    static const struct { int threads; int32_t batch; } ways[] = {{1, DRAFT_BATCH}, {1, 1}, {2, 7}, {3, DRAFT_BATCH}, {2, 1}};
    results want = {0};
    for (size_t i = 0; i < PN_COUNT(ways); i++) {
        drafter d;
        results r = {0};
        if (drafter_open(&d, path, c->n_vocab, false, ways[i].threads) && results_get(&r, c, &d.net) &&
            CHECK("the block computes", drafter_walk(&d, c, ways[i].batch, r.logits, r.hidden) && isfinite(r.logits[0]), "%s, %s", c->name, what) && want.logits)
            CHECK("threads and batches do not change a bit of the block's logits", !memcmp(want.logits, r.logits, r.n_logits * sizeof(float)), "%s, %s: %d threads, batches of %d", c->name,
                  what, ways[i].threads, (int)ways[i].batch);
        drafter_close(&d);
        if (i) results_free(&r);
        else want = r;
    }
    results_free(&want);
}

static void quantised(const draft_case *c, const char *temporary)
{
    const variant v = {.what = "quantised weights", .quantised = true};
    if (variant_write(&v, c->path, temporary)) same_bits(c, temporary, v.what);
    remove(temporary);
}

/* ---- blocks that cannot draft ------------------------------------------------------------------------------------------------------------------ */

/* The sentence of what is refused; empty where the model opens. */
static void refusal(const char *path, int32_t n_vocab, bool draft, char sentence[512])
{
    pn_gguf *g = NULL;
    pn_network net = {0};
    pinch_error err = {0};
    const pn_weights_options o = {.features = pn_cpu_features(), .draft = draft, .n_vocab = n_vocab};
    pinch_status st = pn_gguf_open(&g, path, &err);
    if (!st) st = pn_network_build(&net, g, &o, &err);
    CHECK("no block without a plan, no plan without being asked", st || (net.draft.plan.n_steps > 0) == draft, "%s", path);
    snprintf(sentence, 512, "%s", st ? err.message : "");
    pn_network_free(&net);
    pn_gguf_close(g);
}

typedef struct broken {
    variant v;
    const char *sentence, *trunk; /* parts of what is said to who wants drafts, and to who does not. NULL: it opens; ANYTHING: whatever happens */
} broken;

#define ANYTHING "*"

static const broken brokens[] = {
    {{.what = "no eh_proj: the block counts as a layer", .without = "nextn.eh_proj"}, "", ANYTHING},
    {{.what = "no norm of the embedding", .without = "nextn.enorm"}, "nextn.enorm.weight' is missing", NULL},
    {{.what = "no norm of the result", .without = "nextn.hnorm"}, "nextn.hnorm.weight' is missing", NULL},
    {{.what = "no own head", .without = "nextn.shared_head_head"}, NULL, NULL},
    {{.what = "no own embedding", .without = "nextn.embed_tokens"}, NULL, NULL},
    {{.what = "no block of those that are counted", .keys = {".nextn_predict_layers"}, .more = {1}}, "", ANYTHING},
    {{.what = "two blocks", .keys = {".nextn_predict_layers", ".block_count"}, .more = {1, 1}}, "", ANYTHING},
    {{.what = "no layers but the block", .without = "blk.0."}, "holds only the block", "holds only the block"},
    {{.what = "more blocks than layers", .keys = {".nextn_predict_layers"}, .more = {-2}}, "nextn_predict_layers", "nextn_predict_layers"},
};

static bool fits(const char *sentence, const char *part)
{
    if (!part) return !*sentence;
    return !strcmp(part, ANYTHING) || (*sentence && strstr(sentence, part));
}

static void refused(const draft_case *c, const char *temporary)
{
    for (size_t i = 0; i < PN_COUNT(brokens); i++) {
        const broken *b = &brokens[i];
        char sentence[512];
        if (!variant_write(&b->v, c->path, temporary)) continue;
        refusal(temporary, c->n_vocab, true, sentence);
        CHECK("a block that cannot draft is a sentence", fits(sentence, b->sentence), "%s, %s: '%s'", c->name, b->v.what, sentence);
        refusal(temporary, c->n_vocab, false, sentence);
        CHECK("who wants no drafts does not mind the block", fits(sentence, b->trunk), "%s, %s: '%s'", c->name, b->v.what, sentence);
        remove(temporary);
    }
}

static void others(const char *shared)
{
    static const struct { const char *name, *sentence; } models[] = {{"llama-f32", "architecture 'llama' has no block"}, {"bailingmoe2-f32", "architecture 'bailingmoe2' has no block"},
                                                                     {"qwen35-f32", "holds no block that drafts"}, {"deepseek2-v3-f32", "holds no block that drafts"}};
    for (size_t i = 0; i < PN_COUNT(models); i++) {
        char path[600], sentence[512];
        snprintf(path, sizeof path, "%s/golden/%s/model.gguf", shared, models[i].name);
        refusal(path, 320, true, sentence);
        CHECK("a model without a block is a sentence", strstr(sentence, models[i].sentence), "%s: '%s'", models[i].name, sentence);
    }
}

/* A sentence or a run, whatever the bytes are. Meant for the sanitizers. Returns how many ran. */
static int mutants(const draft_case *c)
{
    const int n = getenv("PINCH_LONG") ? 2000 : 40, fd = memfd_create("mutant", MFD_CLOEXEC);
    bytes good, bad = {0};
    int opened = 0, silent = 0;
    if (!CHECK("a model is read", fd >= 0 && bytes_read(&good, c->path), "%s", c->path)) return 0;
    bytes_add(&bad, good.p, good.n);
    layout l = gguf_layout(&good);
    for (int i = 0; i < n; i++) {
        drafter d = {0};
        results r = {0};
        pn_gguf *g = NULL;
        pinch_error err = {0};
        gguf_mutate(&bad, &good, &l, (unsigned long long)i);
        pinch_status st = bytes_write(fd, &bad) ? pn_gguf_open_fd(&g, fd, "mutant", &err) : PINCH_ERR_IO;
        if (!st) st = drafter_build(&d, g, c->n_vocab, false, 1, 64 << 20, &err);
        if (!st && d.net.draft.plan.n_logits == c->n_vocab && results_get(&r, c, &d.net)) opened += drafter_walk(&d, c, DRAFT_BATCH, r.logits, r.hidden);
        silent += st && !err.message[0];
        results_free(&r);
        drafter_close(&d);
    }
    CHECK("a mutant that does not run is a sentence", silent == 0, "%s: %d of %d ran, %d without a sentence", c->name, opened, n, silent);
    close(fd);
    layout_free(&l);
    free(good.p);
    free(bad.p);
    return opened;
}

/* ---- all cases -------------------------------------------------------------------------------------------------------------------------------------- */

static int folder_each(const char *folder)
{
    char temporary[64];
    snprintf(temporary, sizeof temporary, "/tmp/pinch-draft-%ld.gguf", (long)getpid());
    DIR *dir = opendir(folder);
    int n = 0, mutants_ran = 0;
    for (const struct dirent *e = dir ? readdir(dir) : NULL; e; e = readdir(dir)) {
        draft_case c;
        if (*e->d_name != '.' && draft_load(&c, folder, e->d_name)) {
            against_golden(&c, false);
            against_golden(&c, true);
            same_bits(&c, c.path, "floats");
            quantised(&c, temporary);
            refused(&c, temporary);
            mutants_ran += mutants(&c);
            n++;
        }
        if (*e->d_name != '.') draft_free(&c);
    }
    if (dir) closedir(dir);
    CHECK("some mutants run", mutants_ran > 0 || n == 0, "of %d models", n);
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
    others(shared);
    return pn_done();
}
