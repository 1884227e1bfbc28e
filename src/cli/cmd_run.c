/* cmd_run.c - `pinch run`: continues a text or a list of tokens. */
#include "cli/cli.h"

#include "base/cpu.h"

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

static const cli_option options[] = {
    {{"-p", "--prompt"}, "TEXT", CLI_TEXT, CLI_FIELD(prompt), 0, 0, NULL, "Text to continue.", ""},
    {{"-f", "--file"}, "FILE", CLI_TEXT, CLI_FIELD(file), 0, 0, NULL, "Text to continue, from a file; - is standard input.", ""},
    {{"--prompt-tokens"}, "FILE", CLI_TEXT, CLI_FIELD(tokens), 0, 0, NULL, "Token ids to continue, fed exactly as they are; - is standard input.", ""},
    {{"--prompt-cache"}, "FILE", CLI_TEXT, CLI_FIELD(prompt_cache), 0, 0, NULL, "Keeps the state after the prompt in this file; a later run whose prompt begins alike goes on from it.", ""},
    {{"-n", "--predict", "--n-predict"}, "N", CLI_INT, CLI_FIELD(n_predict), -1, INT32_MAX, NULL, "Tokens to generate; -1 goes on until the model ends or the context is full.", NULL},
    {{"-e", "--escape"}, NULL, CLI_ON, CLI_FIELD(escape), 0, 0, NULL, "Reads \\n, \\t, \\\\ and the like in the prompt and in --stop.", ""},
    {{"-r", "--stop", "--reverse-prompt"}, "TEXT", CLI_LIST, CLI_FIELD(stops), 0, 0, NULL, "Ends before this text; may be repeated.", ""},
    {{"--ignore-eos"}, NULL, CLI_ON, CLI_FIELD(ignore_eos), 0, 0, NULL, "Goes on past end tokens.", ""},
    {{"--special"}, NULL, CLI_ON, CLI_FIELD(special), 0, 0, NULL, "Shows special tokens in the text.", ""},
    {{"--no-bos"}, NULL, CLI_ON, CLI_FIELD(no_bos), 0, 0, NULL, "Puts no begin token in front even if the model wants one.", ""},
    {{"--no-parse-special"}, NULL, CLI_ON, CLI_FIELD(no_parse_special), 0, 0, NULL, "Takes text such as <|im_end|> in the prompt for plain text.", ""},
};
static const cli_group own = {"Text", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&cli_model_group, &own, &cli_seed_group, &cli_sampling_group, &cli_context_group, &cli_compute_group, &cli_draft_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch run -m model.gguf -p \"The capital of France is\" -n 16", "continue a sentence"},
    {"pinch run -m model.gguf -f text.txt -n 16 --temp 0 --json", "the likeliest continuation of a file, with timings, for scripts"},
    {"pinch run -m model.gguf -p \"1, 2, 3,\" -n 16 --seed 7 --stop \"10\"", "the same text each time, ending before a word"},
    {"pinch run -m model.gguf -f text.txt -n 16 --prompt-cache state.bin", "compute a long prompt once"},
    {"pinch run -m model.gguf -f text.txt -n 16 --spec lookup", "faster where the answer repeats the text"},
    {"pinch run -m model.gguf -p x -c 256 --plan", "how much memory that would take"},
};

/* What generation fills while it runs. */
typedef struct run_output {
    const cli_settings *s;
    double first_token; /* seconds since the process started; < 0: none yet */
    double opened;      /* clock when the command began, where the process's age is unknown */
    pinch_token *ids;
    size_t n_ids, capacity;
    cli_text text;
    size_t text_capacity;
    bool failed;
} run_output;

static bool grow(void **data, size_t *capacity, size_t wanted, size_t item)
{
    if (wanted <= *capacity) return true;
    const size_t more = wanted + wanted / 2 + 256;
    void *grown = more > SIZE_MAX / item ? NULL : realloc(*data, more * item);
    if (!grown) return false;
    *data = grown;
    *capacity = more;
    return true;
}

static bool keep(run_output *r, pinch_token token, const char *text, size_t n)
{
    void *ids = r->ids, *data = r->text.data;
    const bool ok = grow(&ids, &r->capacity, r->n_ids + 1, sizeof *r->ids) && grow(&data, &r->text_capacity, r->text.n + n + 1, 1);
    r->ids = ids;
    r->text.data = data;
    if (!ok) return false;
    if (token >= 0) r->ids[r->n_ids++] = token;
    if (n) memcpy(r->text.data + r->text.n, text, n);
    r->text.n += n;
    return true;
}

static bool on_token(void *user, pinch_token token, const char *text, size_t n)
{
    run_output *r = user;
    if (r->first_token < 0) {
        const double age = pn_process_age();
        r->first_token = age >= 0 ? age : pn_now() - r->opened;
    }
    if (r->s->json) {
        r->failed = !keep(r, token, text, n);
        return r->failed;
    }
    cli_write_generated(text, n);
    r->failed = cli_flush(r->s) != CLI_DONE;
    return r->failed;
}

static void unescape_stops(const cli_settings *s)
{
    for (size_t i = 0; s->escape && i < s->stops.n; i++) {
        size_t n = strlen(s->stops.items[i]);
        cli_unescape((char *)(uintptr_t)s->stops.items[i], &n); /* an argument of main: ours to change */
    }
}

static bool read_prompt(const cli_settings *s, const pinch_model *model, cli_ids *ids)
{
    if (s->tokens) return cli_read_ids(s, s->tokens, ids);
    cli_text text = {NULL, 0};
    if (s->file && !cli_read_file(s, s->file, &text)) return false;
    if (!s->file) {
        text = (cli_text){strdup(s->prompt), strlen(s->prompt)};
        if (!text.data) return cli_fail(s, "out of memory"), false;
    }
    if (s->escape) cli_unescape(text.data, &text.n);
    const bool ok = cli_tokenize_text(s, model, text.data, text.n, !s->no_bos, !s->no_parse_special, ids);
    free(text.data);
    return ok;
}

typedef struct run_times {
    double prompt, generate; /* seconds */
} run_times;

static void put_double(pn_json_writer *w, const char *key, double v)
{
    pn_json_put_key(w, key);
    pn_json_double(w, v);
}

/* Speeds: the first token falls out of the prompt, so it takes n - 1 steps to generate n. */
static double prompt_speed(const run_times *t, size_t n_prompt) { return t->prompt > 0 ? (double)n_prompt / t->prompt : 0; }

static int print_json(const cli_settings *s, const run_output *r, const cli_engine *e, size_t n_prompt, const pinch_generate_result *result, const run_times *t)
{
    static const char *const stops[] = {"eos", "length", "string", "abort"}; /* as pinch_stop counts */
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "prompt_tokens");
    pn_json_uint(&w, n_prompt);
    pn_json_put_key(&w, "ids");
    pn_json_array(&w);
    for (size_t i = 0; i < r->n_ids; i++) pn_json_int(&w, r->ids[i]);
    pn_json_array_end(&w);
    pn_json_put_key(&w, "text");
    pn_json_string(&w, r->text.n ? r->text.data : "", r->text.n);
    pn_json_put_key(&w, "stop");
    pn_json_cstring(&w, stops[result->stop]);
    pn_json_put_key(&w, "seed");
    pn_json_uint(&w, s->seed);
    pn_json_put_key(&w, "timings");
    pn_json_object(&w);
    put_double(&w, "load_ms", e->load_ms);
    put_double(&w, "prompt_ms", t->prompt * 1e3);
    pn_json_put_key(&w, "first_token_ms");
    if (r->first_token < 0) pn_json_null(&w);
    else pn_json_double(&w, r->first_token * 1e3);
    put_double(&w, "generate_ms", t->generate * 1e3);
    put_double(&w, "prompt_tps", prompt_speed(t, n_prompt));
    put_double(&w, "tps", cli_token_speed(result, t->generate));
    pn_json_object_end(&w);
    cli_put_drafts(&w, s, &result->drafts);
    pn_json_put_key(&w, "memory");
    pn_json_object(&w);
    pn_json_put_key(&w, "plan_bytes");
    pn_json_uint(&w, e->plan.total);
    pn_json_put_key(&w, "peak_bytes");
    pn_json_uint(&w, pn_memory_peak());
    pn_json_object_end(&w);
    pn_json_object_end(&w);
    return cli_write_json(s, &w);
}

static void remark_speed(const cli_settings *s, size_t n_prompt, const pinch_generate_result *result, const run_times *t)
{
    char a[64], b[64];
    cli_remark(s, "prompt: %zu tokens, %s tokens/s; generated: %" PRId32 " tokens, %s tokens/s; seed %" PRIu64, n_prompt, cli_fixed(a, prompt_speed(t, n_prompt), 1), result->n_tokens,
               cli_fixed(b, cli_token_speed(result, t->generate), 1), s->seed);
}

static pinch_status generate(const cli_settings *s, const cli_engine *e, pinch_sampler *sampler, const cli_ids *prompt, run_output *r, pinch_generate_result *result, run_times *t,
                             pinch_error *err)
{
    pinch_generate_options o = pinch_generate_options_default();
    o.max_tokens = s->n_predict;
    o.ignore_eos = s->ignore_eos;
    o.special = s->special;
    o.stops = s->stops.items;
    o.n_stops = s->stops.n;
    o.on_token = on_token;
    o.user = r;
    double start = pn_now();
    pinch_status st = cli_feed_prompt(s, e->session, prompt, err);
    t->prompt = pn_now() - start;
    cli_progress_end();
    if (st) return st;
    for (size_t i = 0; i < prompt->n; i++) pinch_sampler_accept(sampler, prompt->data[i]);
    cli_text_begins();
    start = pn_now();
    st = pinch_generate(e->session, 0, sampler, &o, result, err);
    t->generate = pn_now() - start;
    return st;
}

static int report(const cli_settings *s, const run_output *r, const cli_engine *e, size_t n_prompt, const pinch_generate_result *result, const run_times *t)
{
    char drafts[192];
    if (r->failed) return s->json ? cli_fail(s, "out of memory for the text") : CLI_FAILED;
    int status = CLI_DONE;
    if (s->json) {
        status = print_json(s, r, e, n_prompt, result, t);
    } else {
        if (isatty(STDOUT_FILENO) == 1) cli_write("\n", 1);
        status = cli_flush(s);
        cli_text_ended(s);
        remark_speed(s, n_prompt, result, t);
        if (s->draft) cli_remark(s, "%s", cli_draft_text(drafts, &result->drafts));
    }
    return status == CLI_DONE && cli_interrupted(NULL) ? CLI_INTERRUPTED : status;
}

static int run_with(cli_settings *s, cli_engine *e, run_output *r)
{
    pinch_error err = {PINCH_OK, ""};
    pinch_sampler *sampler = NULL;
    pinch_generate_result result = {.stop = PINCH_STOP_ABORT};
    run_times t = {0, 0};
    cli_ids prompt = {NULL, 0};
    int status = cli_open_sampler(s, e->model, &sampler);
    if (!status && !read_prompt(s, e->model, &prompt)) status = CLI_FAILED;
    if (!status && prompt.n == 0) status = cli_fail(s, "the prompt has no tokens, and this model puts none in front; there is nothing to continue");
    if (!status) {
        const pinch_status st = generate(s, e, sampler, &prompt, r, &result, &t, &err);
        status = st && st != PINCH_ABORTED ? cli_error(s, &err) : report(s, r, e, prompt.n, &result, &t);
    }
    pinch_sampler_close(sampler);
    free(prompt.data);
    return status;
}

static int run(cli_settings *s)
{
    run_output r = {.s = s, .first_token = -1, .opened = pn_now()};
    cli_engine e;
    if (s->plan) return cli_print_plan(s);
    if (!cli_needs_model(s)) return CLI_MISUSED;
    if (!!s->prompt + !!s->file + !!s->tokens != 1) return cli_misuse(s, "one of -p TEXT, -f FILE or --prompt-tokens FILE is wanted: what shall be continued?");
    unescape_stops(s);
    s->prompt_progress = true;
    int status = cli_open_engine(s, &e);
    if (status) return status;
    status = run_with(s, &e, &r);
    cli_close_engine(&e);
    free(r.ids);
    free(r.text.data);
    return status;
}

const cli_command cli_run = {"run", "continues a text", "Feeds a prompt to the model and prints what follows, as it comes.", groups, examples, PN_COUNT(examples), run};
