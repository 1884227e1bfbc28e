/* cmd_bench.c - `pinch bench`: speed of prompts and of generation, without sampling or printing, and of memory; how much of the latter generation uses. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "base/pages.h"
#include "engine/engine.h"
#include "sched/pool.h"

#include <stddef.h>
#include <stdlib.h>

static const cli_option options[] = {
    {{"-p", "--n-prompt"}, "N", CLI_INT, CLI_FIELD(bench_prompt), 0, 1 << 24, NULL, "Tokens of the prompt.", NULL},
    {{"-n", "--n-gen"}, "N", CLI_INT, CLI_FIELD(bench_generate), 0, 1 << 24, NULL, "Tokens generated.", NULL},
    {{"-d", "--n-depth"}, "N", CLI_INT, CLI_FIELD(bench_depth), 0, 1 << 24, NULL, "Tokens in the context before either begins.", NULL},
    {{"-r", "--repetitions"}, "N", CLI_INT, CLI_FIELD(repetitions), 1, 10000, NULL, "How often, after one warm-up.", NULL},
    {{"-c", "--ctx-size"}, "N", CLI_INT, CLI_FIELD(n_ctx), 1, INT32_MAX / 4, NULL, "How many tokens are remembered.", "-p, -n and -d together"},
    {{"--bandwidth"}, NULL, CLI_ON, CLI_FIELD(bandwidth), 0, 0, NULL, "Measures how fast -t threads read memory, before and after each repetition.", ""},
    {{"--csv"}, NULL, CLI_ON, CLI_FIELD(csv), 0, 0, NULL, "Prints a row for each prompt and each generated token, to plot.", ""},
};
static const cli_group own = {"Measurement", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&cli_model_group, &own, &cli_compute_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch bench -m model.gguf -p 64 -n 16", "tokens per second, median and spread"},
    {"pinch bench -m model.gguf -p 64 -n 16 -r 3 --json", "the same for scripts"},
    {"pinch bench -m model.gguf -p 0 -n 16 -d 64", "generation after a long context"},
    {"pinch bench -m model.gguf -p 64 -n 16 -r 2 --csv > speed.csv", "time of each token, to plot over its position"},
};

typedef struct times {
    double *prompt;   /* [repetitions] seconds */
    double *generate; /* [repetitions] seconds */
    double *token;    /* [repetitions * n] seconds of each generated token */
    double *gbs;      /* [repetitions + 1] read from memory, before each repetition and after the last */
    double *share;    /* [repetitions] of generation's weights a second, of the two beside it */
    uint64_t peak;    /* bytes, before memory's own speed is measured */
} times;

/* ---- bandwidth ------------------------------------------------------------------------------------------- */

enum { SWEEPS = 5 };

/* Threads that read a buffer far larger than caches: 512 MiB, or a quarter of what is available. */
typedef struct reader {
    pn_pool *pool; /* NULL: nothing is measured */
    uint64_t *words;
    uint64_t bytes; /* a multiple of 64 */
    _Atomic uint64_t sum;
} reader;

static void read_share(void *ctx, int thread, int n_threads)
{
    reader *r = ctx;
    const size_t lines = (size_t)(r->bytes / 64), from = lines * (size_t)thread / (size_t)n_threads * 8, to = lines * ((size_t)thread + 1) / (size_t)n_threads * 8;
    uint64_t sum[8] = {0};
    for (size_t i = from; i < to; i += 8) {
        for (size_t k = 0; k < 8; k++) sum[k] += r->words[i + k];
    }
    for (size_t k = 0; k < 8; k++) r->sum += sum[k];
}

static void fill_share(void *ctx, int thread, int n_threads)
{
    reader *r = ctx;
    const size_t words = (size_t)(r->bytes / 8), from = words * (size_t)thread / (size_t)n_threads, to = words * ((size_t)thread + 1) / (size_t)n_threads;
    memset(r->words + from, 1, (to - from) * 8);
}

static int n_threads_of(const cli_settings *s)
{
    pn_topology topology;
    int threads = s->threads, prompt;
    pn_topology_read(&topology);
    if (threads == 0) pn_threads_default(&topology, &threads, &prompt);
    return threads;
}

static pinch_status reader_open(reader *r, const cli_settings *s, pinch_error *err)
{
    const uint64_t most = (uint64_t)512 << 20, quarter = pn_memory_available() / 4 / 64 * 64;
    r->bytes = quarter < most ? quarter : most;
    r->words = pn_pages_alloc_huge(r->bytes);
    if (!r->words) return pn_fail_memory(err, "the bandwidth buffer", r->bytes);
    const pinch_status st = pn_pool_open(&r->pool, n_threads_of(s), err);
    if (!st) pn_pool_run(r->pool, pn_pool_size(r->pool), fill_share, r);
    return st;
}

static void reader_close(reader *r)
{
    pn_pool_close(r->pool);
    if (r->words) pn_pages_free(r->words, r->bytes);
}

/* GB/s of the fastest of a few sweeps. */
static double read_speed(reader *r)
{
    double best = 0;
    for (int i = 0; i < SWEEPS && r->pool; i++) {
        const double start = pn_now();
        pn_pool_run(r->pool, pn_pool_size(r->pool), read_share, r);
        const double speed = (double)r->bytes / (pn_now() - start) / 1e9;
        if (speed > best) best = speed;
    }
    return best;
}

/* ---- measuring ------------------------------------------------------------------------------------------- */

/* Ids spread over the vocabulary, the same in every run (Knuth's multiplier). */
static pinch_token token_at(const cli_engine *e, size_t i) { return (pinch_token)((uint32_t)i * 2654435761u % (uint32_t)pinch_model_n_vocab(e->model)); }

/* The session holds `depth` tokens and nothing else. */
static pinch_status begin(const cli_settings *s, const cli_engine *e, const pinch_token *tokens, pinch_error *err)
{
    pinch_status st = pinch_session_truncate(e->session, 0, 0, err);
    if (!st && s->bench_depth) st = pinch_session_feed(e->session, 0, tokens, (size_t)s->bench_depth, err);
    return st;
}

static pinch_status measure_prompt(const cli_settings *s, const cli_engine *e, const pinch_token *tokens, double *seconds, pinch_error *err)
{
    *seconds = 0;
    if (s->bench_prompt == 0) return PINCH_OK;
    pinch_status st = begin(s, e, tokens, err);
    const double start = pn_now();
    if (!st) st = pinch_session_feed(e->session, 0, tokens + s->bench_depth, (size_t)s->bench_prompt, err);
    *seconds = pn_now() - start;
    return st;
}

static pinch_status measure_generation(const cli_settings *s, const cli_engine *e, const pinch_token *tokens, double *seconds, double *each, pinch_error *err)
{
    *seconds = 0;
    if (s->bench_generate == 0) return PINCH_OK;
    pinch_status st = begin(s, e, tokens, err);
    const double start = pn_now();
    double before = start;
    for (int32_t i = 0; i < s->bench_generate && !st; i++) {
        st = pinch_session_feed(e->session, 0, &tokens[s->bench_depth + i], 1, err);
        const double now = pn_now();
        each[i] = now - before;
        before = now;
    }
    *seconds = before - start;
    return st;
}

/* As llama-bench does: prompt and generation each begin at the stated depth, so that neither figure depends on the other's length. */
static pinch_status measure_once(const cli_settings *s, const cli_engine *e, const pinch_token *tokens, double *prompt, double *generate, double *each, pinch_error *err)
{
    const pinch_status st = measure_prompt(s, e, tokens, prompt, err);
    return st ? st : measure_generation(s, e, tokens, generate, each, err);
}

/* A warm-up, then the repetitions, with memory's speed before, between and after them. */
static pinch_status measure_rounds(const cli_settings *s, const cli_engine *e, const pinch_token *tokens, reader *reads, times *t, pinch_error *err)
{
    const size_t n = (size_t)s->bench_generate, rounds = (size_t)s->repetitions;
    pinch_status st = measure_once(s, e, tokens, &t->prompt[0], &t->generate[0], t->token, err); /* overwritten below */
    t->peak = pn_memory_peak();
    if (!st && s->bandwidth && !s->csv) st = reader_open(reads, s, err);
    if (!st) t->gbs[0] = read_speed(reads);
    for (size_t r = 0; r < rounds && !st; r++) {
        cli_progress((void *)(uintptr_t)s, "bench", r + 1, rounds + 1);
        st = measure_once(s, e, tokens, &t->prompt[r], &t->generate[r], t->token + r * n, err);
        t->gbs[r + 1] = read_speed(reads);
    }
    if (!reads->pool) t->peak = pn_memory_peak();
    cli_progress_end();
    return st;
}

static pinch_status measure(const cli_settings *s, const cli_engine *e, times *t, pinch_error *err)
{
    const size_t n_tokens = (size_t)s->bench_depth + (size_t)pn_max64(s->bench_prompt, s->bench_generate);
    pinch_token *tokens = pn_alloc(n_tokens, sizeof *tokens);
    if (!tokens) return pn_fail_memory(err, "tokens", n_tokens * sizeof *tokens);
    for (size_t i = 0; i < n_tokens; i++) tokens[i] = token_at(e, i);
    reader reads = {0};
    const pinch_status st = measure_rounds(s, e, tokens, &reads, t, err);
    reader_close(&reads);
    free(tokens);
    return st;
}

/* ---- results --------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of sorted values, between neighbours by distance. */
static double percentile(const double *sorted, size_t n, double share)
{
    const double at = share * (double)(n - 1);
    const size_t low = (size_t)at, high = low + 1 < n ? low + 1 : low;
    return sorted[low] + (sorted[high] - sorted[low]) * (at - (double)low);
}

static const struct {
    const char *key;
    double share;
} percentiles[] = {{"tps_median", 0.5}, {"tps_min", 0}, {"tps_max", 1}, {"tps_p10", 0.1}, {"tps_p25", 0.25}, {"tps_p75", 0.75}, {"tps_p90", 0.9}};

/* Seconds become sorted tokens/s. */
static void to_speeds(double *seconds, size_t n, size_t n_tokens)
{
    for (size_t i = 0; i < n; i++) seconds[i] = seconds[i] > 0 ? (double)n_tokens / seconds[i] : 0;
    qsort(seconds, n, sizeof *seconds, by_value);
}

static void put_speeds(pn_json_writer *w, const char *key, double *speeds, size_t n, int32_t n_tokens, double *each)
{
    pn_json_put_key(w, key);
    pn_json_object(w);
    pn_json_put_key(w, "n");
    pn_json_int(w, n_tokens);
    for (size_t i = 0; i < PN_COUNT(percentiles); i++) {
        pn_json_put_key(w, percentiles[i].key);
        if (n_tokens) pn_json_double(w, percentile(speeds, n, percentiles[i].share));
        else pn_json_null(w);
    }
    if (each && n_tokens) {
        const size_t n_each = n * (size_t)n_tokens;
        qsort(each, n_each, sizeof *each, by_value);
        pn_json_put_key(w, "token_ms_p50");
        pn_json_double(w, percentile(each, n_each, 0.5) * 1e3);
        pn_json_put_key(w, "token_ms_p99");
        pn_json_double(w, percentile(each, n_each, 0.99) * 1e3);
    }
    pn_json_object_end(w);
}

/* Sorts what memory gave, and the share of it that generation took. */
static void to_shares(const cli_settings *s, const cli_engine *e, times *t)
{
    const size_t n = (size_t)s->repetitions;
    const double gigabytes = (double)s->bench_generate * (double)pn_network_token_bytes(&e->model->network).weights / 1e9;
    for (size_t i = 0; i < n; i++) {
        const double could = t->generate[i] * (t->gbs[i] + t->gbs[i + 1]) / 2;
        t->share[i] = could > 0 ? gigabytes / could : 0;
    }
    qsort(t->share, n, sizeof *t->share, by_value);
    qsort(t->gbs, n + 1, sizeof *t->gbs, by_value);
}

static double with_state(const pn_token_bytes *bytes) { return 1 + (double)bytes->state / (double)bytes->weights; }

static void put_bandwidth(pn_json_writer *w, const cli_settings *s, const cli_engine *e, const times *t)
{
    const size_t n = (size_t)s->repetitions;
    const pn_token_bytes bytes = pn_network_token_bytes(&e->model->network);
    pn_json_put_key(w, "bandwidth_gbs");
    pn_json_double(w, percentile(t->gbs, n + 1, 0.5));
    pn_json_put_key(w, "token_weight_bytes");
    pn_json_uint(w, bytes.weights);
    pn_json_put_key(w, "token_state_bytes");
    pn_json_uint(w, bytes.state);
    const double share = percentile(t->share, n, 0.5);
    const struct {
        const char *key;
        double value;
    } shares[] = {{"bandwidth_share", share}, {"bandwidth_share_with_state", share * with_state(&bytes)}};
    for (size_t i = 0; i < PN_COUNT(shares); i++) {
        pn_json_put_key(w, shares[i].key);
        if (s->bench_generate) pn_json_double(w, shares[i].value);
        else pn_json_null(w);
    }
}

static int print_json(const cli_settings *s, const cli_engine *e, times *t)
{
    const size_t n = (size_t)s->repetitions;
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "model");
    pn_json_cstring(&w, s->model);
    pn_json_put_key(&w, "threads");
    pn_json_int(&w, n_threads_of(s));
    put_speeds(&w, "prompt", t->prompt, n, s->bench_prompt, NULL);
    put_speeds(&w, "generate", t->generate, n, s->bench_generate, t->token);
    pn_json_put_key(&w, "load_ms");
    pn_json_double(&w, e->load_ms);
    pn_json_put_key(&w, "peak_bytes");
    pn_json_uint(&w, t->peak);
    if (s->bandwidth) put_bandwidth(&w, s, e, t);
    pn_json_object_end(&w);
    return cli_write_json(s, &w);
}

static void print_speeds(const char *what, int32_t n_tokens, const double *speeds, size_t n)
{
    char a[64], b[64], c[64], d[64], f[64];
    if (n_tokens == 0) return;
    cli_print("%-9s %6" PRId32 " %10s %10s %10s %10s %10s\n", what, n_tokens, cli_fixed(a, percentile(speeds, n, 0.5), 1), cli_fixed(b, percentile(speeds, n, 0), 1),
              cli_fixed(c, percentile(speeds, n, 0.1), 1), cli_fixed(d, percentile(speeds, n, 0.9), 1), cli_fixed(f, percentile(speeds, n, 1), 1));
}

static void print_bandwidth(const cli_settings *s, const cli_engine *e, const times *t)
{
    const size_t n = (size_t)s->repetitions;
    const pn_token_bytes bytes = pn_network_token_bytes(&e->model->network);
    char a[64], b[64];
    const double share = percentile(t->share, n, 0.5) * 100;
    cli_print("memory is read at %s GB/s, weights of %s a token", cli_fixed(a, percentile(t->gbs, n + 1, 0.5), 1), cli_bytes(b, bytes.weights));
    if (s->bench_generate) cli_print(" at %s %% of that", cli_fixed(a, share, 1));
    if (bytes.state) cli_print("; with %s of state, read and written", cli_bytes(b, bytes.state));
    if (bytes.state && s->bench_generate) cli_print(", at %s %%", cli_fixed(a, share * with_state(&bytes), 1));
    cli_print("\n");
}

static int print_table(const cli_settings *s, const cli_engine *e, const times *t)
{
    const size_t n = (size_t)s->repetitions;
    char a[64];
    cli_print("%-9s %6s %10s %10s %10s %10s %10s\n", "tokens/s", "n", "median", "min", "p10", "p90", "max");
    print_speeds("prompt", s->bench_prompt, t->prompt, n);
    print_speeds("generate", s->bench_generate, t->generate, n);
    cli_print("load %s ms", cli_fixed(a, e->load_ms, 1));
    cli_print(", peak memory %s\n", cli_bytes(a, t->peak));
    if (s->bandwidth) print_bandwidth(s, e, t);
    return cli_flush(s);
}

static void print_row(const char *test, size_t repetition, int32_t position, int32_t n_tokens, double seconds)
{
    char a[64], b[64];
    cli_print("%s,%zu,%" PRId32 ",%" PRId32 ",%s,%s\n", test, repetition + 1, position, n_tokens, cli_fixed(a, seconds * 1e3, 4), cli_fixed(b, seconds > 0 ? n_tokens / seconds : 0, 3));
}

/* Position: tokens in the context before the row's. */
static int print_csv(const cli_settings *s, const times *t)
{
    const size_t n = (size_t)s->bench_generate;
    cli_print("test,repetition,position,tokens,milliseconds,tokens_per_second\n");
    for (size_t r = 0; r < (size_t)s->repetitions; r++) {
        if (s->bench_prompt) print_row("prompt", r, s->bench_depth, s->bench_prompt, t->prompt[r]);
        for (size_t i = 0; i < n; i++) print_row("generate", r, s->bench_depth + (int32_t)i, 1, t->token[r * n + i]);
    }
    return cli_flush(s);
}

static int bench(const cli_settings *s, const cli_engine *e, times *t)
{
    pinch_error err = {PINCH_OK, ""};
    const pinch_status st = measure(s, e, t, &err);
    if (st) return cli_error(s, &err);
    if (s->csv) return print_csv(s, t);
    to_shares(s, e, t);
    to_speeds(t->prompt, (size_t)s->repetitions, (size_t)s->bench_prompt);
    to_speeds(t->generate, (size_t)s->repetitions, (size_t)s->bench_generate);
    return s->json ? print_json(s, e, t) : print_table(s, e, t);
}

static int run(cli_settings *s)
{
    cli_engine e;
    if (s->bench_prompt + s->bench_generate == 0) return cli_misuse(s, "-p 0 -n 0: there is nothing to measure");
    if (s->csv && s->json) return cli_misuse(s, "--csv and --json exclude each other");
    if (s->n_ctx == 0) s->n_ctx = s->bench_depth + s->bench_prompt + s->bench_generate;
    if (s->plan) return cli_print_plan(s);
    int status = cli_open_engine(s, &e);
    if (status) return status;
    const size_t n = (size_t)s->repetitions;
    double *all = pn_alloc((uint64_t)n * (4 + (uint64_t)s->bench_generate) + 1, sizeof *all);
    times t = {.prompt = all, .generate = all + n, .share = all + 2 * n, .gbs = all + 3 * n, .token = all + 4 * n + 1};
    status = all ? bench(s, &e, &t) : cli_fail(s, "out of memory for %" PRId32 " repetitions", s->repetitions);
    free(all);
    cli_close_engine(&e);
    return status;
}

const cli_command cli_bench = {"bench", "measures speed", "Measures how fast prompts are read and tokens generated, without sampling or printing.", groups, examples, PN_COUNT(examples), run};
