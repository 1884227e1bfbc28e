/* cmd_check.c - `pinch check`: proves on this very CPU what every kernel promises, and shows its speed. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "kernels/prove.h"

#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

static const cli_option options[] = {
    {{"--kernel"}, "NAME", CLI_TEXT, CLI_FIELD(kernel_filter), 0, 0, NULL, "Only kernels whose name holds this.", "all"},
    {{"--thorough"}, NULL, CLI_ON, CLI_FIELD(thorough), 0, 0, NULL, "Tries about ten times as many cases.", ""},
    {{"--list"}, NULL, CLI_ON, CLI_FIELD(list), 0, 0, NULL, "Names the kernels and what they need, and proves nothing.", ""},
};
static const cli_group own = {"Kernels", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&own, &cli_seed_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch check --kernel q8_0", "prove the kernels of one weight format"},
    {"pinch check --kernel q4_0 --json", "one JSON object a line"},
    {"pinch check --list", "the kernels of this build"},
};

static const char *const promises[] = {"MEANING", "EXACT", "BOUNDED"}; /* as pn_promise counts */

typedef struct tally {
    const cli_settings *s;
    uint64_t proofs, broken;
    int output; /* status of standard output */
} tally;

static void put_double(pn_json_writer *w, const char *key, double v)
{
    pn_json_put_key(w, key);
    if (v > 0) pn_json_double(w, v);
    else pn_json_null(w);
}

static void put_text(pn_json_writer *w, const char *key, const char *text)
{
    pn_json_put_key(w, key);
    pn_json_cstring(w, text);
}

static void put_count(pn_json_writer *w, const char *key, uint64_t n)
{
    pn_json_put_key(w, key);
    pn_json_uint(w, n);
}

static int print_json(const cli_settings *s, const pn_proof *p)
{
    pn_json_writer w = {0};
    pn_json_object(&w);
    put_text(&w, "name", p->name);
    put_text(&w, "isa", p->isa);
    put_text(&w, "promise", promises[p->promise]);
    pn_json_put_key(&w, "held");
    pn_json_bool(&w, p->held);
    put_count(&w, "cases", p->cases);
    put_count(&w, "floats", p->floats);
    put_count(&w, "differing", p->differing);
    pn_json_put_key(&w, "largest_error");
    pn_json_double(&w, p->largest);
    put_double(&w, "g_weights_per_s", p->speed_one);
    put_double(&w, "ratio_to_scalar", p->ratio_one);
    put_double(&w, "g_weights_per_s_16_columns", p->speed_many);
    put_double(&w, "ratio_to_scalar_16_columns", p->ratio_many);
    if (p->failure[0]) put_text(&w, "failure", p->failure);
    pn_json_object_end(&w);
    return cli_write_json(s, &w);
}

static const char *speed_text(char buffer[64], double v, int decimals) { return v > 0 ? cli_fixed(buffer, v, decimals) : "-"; }

static int print_line(const cli_settings *s, const pn_proof *p)
{
    char a[64], b[64], c[64], d[64], largest[32];
    snprintf(largest, sizeof largest, "%s", p->largest > 0 ? cli_fixed(a, p->largest, 9) : "0");
    cli_print("%-30s %-8s %-6s %9" PRIu64 " %12s %8s %7s %8s %7s\n", p->name, promises[p->promise], p->held ? "ok" : "BROKEN", p->cases, largest, speed_text(a, p->speed_one, 2),
              speed_text(b, p->ratio_one, 1), speed_text(c, p->speed_many, 2), speed_text(d, p->ratio_many, 1));
    if (!p->held) cli_print("    %s\n", p->failure);
    return cli_flush(s);
}

static void print_head(void)
{
    char cpu[128];
    pn_cpu_name(cpu, sizeof cpu);
    cli_print("%s; speeds in thousand millions of weights a second on one thread, and the ratio to scalar\n", cpu);
    cli_print("%-30s %-8s %-6s %9s %12s %8s %7s %8s %7s\n", "kernel", "promise", "", "cases", "error", "1 column", "ratio", "16", "ratio");
}

static void on_start(void *user, const char *name)
{
    const tally *t = user;
    if (cli_colours(STDERR_FILENO) && !t->s->json) fprintf(stderr, "\r\033[K%s\r", name);
}

static bool on_proof(void *user, const pn_proof *proof)
{
    tally *t = user;
    if (cli_colours(STDERR_FILENO) && !t->s->json) fprintf(stderr, "\033[K");
    if (t->proofs++ == 0 && !t->s->json) print_head();
    t->broken += !proof->held;
    t->output = t->s->json ? print_json(t->s, proof) : print_line(t->s, proof);
    return t->output != CLI_DONE || cli_interrupted(NULL);
}

static int list_kernels(const cli_settings *s)
{
    const uint32_t features = pn_cpu_features();
    if (!s->json) cli_print("%-30s %-8s %-12s %-8s %-5s %s\n", "kernel", "weights", "isa", "promise", "tile", "here");
    for (size_t i = 0;; i++) {
        const pn_kernel *k = pn_kernel_at(i);
        if (!k) return cli_flush(s);
        const char *type = pn_type_get((uint32_t)k->weight)->name;
        const bool runs = (k->needs & ~features) == 0, chosen = pn_kernel_best(k->weight, features) == k;
        if (!s->json) {
            cli_print("%-30s %-8s %-12s %-8s %2dx%-2d %s\n", k->name, type, k->isa, promises[k->promise], k->rows, k->cols, chosen ? "default" : runs ? "runs" : "needs another CPU");
            continue;
        }
        pn_json_writer w = {0};
        pn_json_object(&w);
        put_text(&w, "name", k->name);
        put_text(&w, "weights", type);
        put_text(&w, "isa", k->isa);
        put_text(&w, "promise", promises[k->promise]);
        put_count(&w, "rows", (uint64_t)k->rows);
        put_count(&w, "cols", (uint64_t)k->cols);
        pn_json_put_key(&w, "runs_here");
        pn_json_bool(&w, runs);
        pn_json_put_key(&w, "default");
        pn_json_bool(&w, chosen);
        pn_json_object_end(&w);
        const int status = cli_write_json(s, &w);
        if (status) return status;
    }
}

static int run(cli_settings *s)
{
    pinch_error err = {PINCH_OK, ""};
    tally t = {.s = s};
    if (s->list) return list_kernels(s);
    const pn_prove_options o = {
        .features = pn_cpu_features(), .seed = s->seed_given ? s->seed : 1, .filter = s->kernel_filter, .thorough = s->thorough, .seconds = 0.05, .on_start = on_start, .on_proof = on_proof, .user = &t,
    };
    const pinch_status st = pn_prove(&o, &err);
    if (t.output != CLI_DONE) return t.output;
    if (st) return cli_error(s, &err);
    if (t.proofs == 0) return cli_fail(s, "--kernel %s: no kernel of this build has that in its name (pinch check --list names them)", s->kernel_filter ? s->kernel_filter : "");
    if (t.broken) return cli_fail(s, "%" PRIu64 " of %" PRIu64 " promises are broken on this CPU", t.broken, t.proofs);
    if (!s->json) cli_print("all %" PRIu64 " promises hold on this CPU\n", t.proofs);
    return cli_flush(s);
}

const cli_command cli_check = {"check", "proves the kernels on this CPU", "Compares every kernel with its scalar definition on this very CPU, bit for bit where that is promised, and measures its speed.",
                               groups, examples, PN_COUNT(examples), run};
