/* cmd_perplexity.c - `pinch perplexity`: how well a model predicts a text. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "base/math.h"
#include "kernels/kernels.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

static const cli_option options[] = {
    {{"-f", "--file"}, "FILE", CLI_TEXT, CLI_FIELD(file), 0, 0, NULL, "Text to predict; - is standard input.", ""},
    {{"-c", "--ctx-size"}, "N", CLI_INT, CLI_FIELD(n_ctx), 2, INT32_MAX / 4, NULL, "Tokens in a window; each window starts from nothing.", "512"},
    {{"--all"}, NULL, CLI_ON, CLI_FIELD(all), 0, 0, NULL, "Scores all tokens but the first of each window, and the last, short window too.", "the second half of whole windows, as llama-perplexity does"},
};
static const cli_group own = {"Text", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&cli_model_group, &own, &cli_compute_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch perplexity -m model.gguf -f text.txt -c 64", "perplexity in windows of 64 tokens"},
    {"pinch perplexity -m model.gguf -f text.txt -c 64 --all --json", "every token scored, as JSON"},
};

typedef struct score {
    const pn_ops *ops;
    const pinch_model *model;
    const pinch_token *window; /* tokens of the window */
    double nll;                /* nats */
    uint64_t scored, bytes;
} score;

enum { CHUNK = 2048 };

/* ln of the sum of exp(logit), relative to the largest: chunks in float, their sums in double. */
static double log_sum(const pn_ops *ops, const float *logits, int32_t n, float max)
{
    float chunk[CHUNK];
    double sum = 0;
    for (int32_t at = 0; at < n; at += CHUNK) {
        const int32_t m = n - at < CHUNK ? n - at : CHUNK;
        memcpy(chunk, logits + at, (size_t)m * sizeof *chunk);
        sum += (double)ops->exp_sum(chunk, max, m);
    }
    return pn_log(sum);
}

/* Row `index` of the window predicts the token behind it. */
static bool score_row(void *user, size_t index, const float *logits, int32_t n_vocab)
{
    score *r = user;
    char piece[1];
    const pinch_token next = r->window[index + 1];
    const float max = r->ops->max(logits, n_vocab);
    r->nll += log_sum(r->ops, logits, n_vocab, max) - ((double)logits[next] - (double)max);
    r->scored++;
    r->bytes += pinch_token_piece(r->model, next, true, piece, 0);
    return false;
}

static pinch_status score_window(const cli_settings *s, const cli_engine *e, pinch_row *rows, const pinch_token *tokens, size_t n, size_t first, score *r, pinch_error *err)
{
    const size_t n_rows = n - 1; /* the last token is predicted only */
    for (size_t i = 0; i < n_rows; i++) rows[i] = (pinch_row){tokens[i], 0, i + 1 >= first};
    if (pinch_model_adds_bos(e->model)) rows[0].token = pinch_token_bos(e->model);
    r->window = tokens;
    (void)s;
    pinch_status st = pinch_session_truncate(e->session, 0, 0, err);
    if (!st) st = pinch_session_eval(e->session, rows, n_rows, score_row, r, err);
    return st;
}

static pinch_status score_all(const cli_settings *s, const cli_engine *e, const cli_ids *ids, score *r, pinch_error *err)
{
    const size_t window = (size_t)s->n_ctx, n_windows = s->all ? (ids->n + window - 1) / window : ids->n / window;
    pinch_row *rows = pn_alloc(window, sizeof *rows);
    if (!rows) return pn_fail_memory(err, "a window", (uint64_t)window * sizeof *rows);
    pinch_status st = PINCH_OK;
    char ppl[64];
    for (size_t w = 0; w < n_windows && !st; w++) {
        const size_t rest = ids->n - w * window, n = rest < window ? rest : window;
        if (n < 2) continue; /* a last window of one token predicts nothing */
        st = score_window(s, e, rows, ids->data + w * window, n, s->all ? 1 : window / 2 + 1, r, err);
        cli_progress((void *)(uintptr_t)s, "perplexity", w + 1, n_windows);
        if (s->verbose && !st) cli_remark(s, "window %zu of %zu: %s so far", w + 1, n_windows, cli_fixed(ppl, pn_exp(r->nll / (double)r->scored), 4));
    }
    cli_progress_end();
    free(rows);
    return st;
}

static int print(const cli_settings *s, const score *r, size_t n_tokens, double seconds)
{
    const double ppl = pn_exp(r->nll / (double)r->scored), bits = r->bytes ? r->nll / 0.69314718055994530942 / (double)r->bytes : 0;
    char a[64], b[64], c[64];
    if (!s->json) {
        cli_print("perplexity %s, %s bits per byte (%" PRIu64 " of %zu tokens scored, %" PRIu64 " bytes)\n", cli_fixed(a, ppl, 4), cli_fixed(b, bits, 4), r->scored, n_tokens, r->bytes);
        cli_remark(s, "%s tokens/s", cli_fixed(c, (double)n_tokens / seconds, 1));
        return cli_flush(s);
    }
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "ppl");
    pn_json_double(&w, ppl);
    pn_json_put_key(&w, "nll");
    pn_json_double(&w, r->nll);
    pn_json_put_key(&w, "scored");
    pn_json_uint(&w, r->scored);
    pn_json_put_key(&w, "tokens");
    pn_json_uint(&w, n_tokens);
    pn_json_put_key(&w, "bytes");
    pn_json_uint(&w, r->bytes);
    pn_json_put_key(&w, "bits_per_byte");
    pn_json_double(&w, bits);
    pn_json_object_end(&w);
    return cli_write_json(s, &w);
}

/* The tokens of the text, BOS in front where the model wants one, special tokens in the text taken for text. */
static bool read_tokens(const cli_settings *s, const pinch_model *model, cli_ids *ids)
{
    cli_text text;
    cli_ids plain;
    if (!cli_read_file(s, s->file, &text)) return false;
    const bool ok = cli_tokenize_text(s, model, text.data, text.n, false, false, &plain);
    free(text.data);
    if (!ok) return false;
    const size_t front = pinch_model_adds_bos(model) ? 1 : 0;
    *ids = (cli_ids){pn_alloc(plain.n + 1, sizeof *ids->data), plain.n + front};
    if (ids->data) {
        if (front) ids->data[0] = pinch_token_bos(model);
        if (plain.n) memcpy(ids->data + front, plain.data, plain.n * sizeof *plain.data);
    } else {
        cli_fail(s, "out of memory for %zu tokens", plain.n);
    }
    free(plain.data);
    return ids->data != NULL;
}

static int run(cli_settings *s)
{
    cli_engine e;
    cli_ids ids;
    if (s->n_ctx == 0) s->n_ctx = 512;
    if (s->plan) return cli_print_plan(s);
    if (!cli_needs_model(s)) return CLI_MISUSED;
    if (!s->file) return cli_misuse(s, "-f FILE is missing: which text?");
    int status = cli_open_engine(s, &e);
    if (status) return status;
    status = CLI_FAILED;
    if (read_tokens(s, e.model, &ids)) {
        pinch_error err = {PINCH_OK, ""};
        score r = {.ops = pn_ops_best(pn_cpu_features()), .model = e.model};
        const double start = pn_now();
        const pinch_status st = score_all(s, &e, &ids, &r, &err);
        if (st) status = cli_error(s, &err);
        else if (r.scored == 0) status = cli_fail(s, "%s: %zu tokens do not fill a window of %" PRId32 "; a smaller -c or --all would", s->file, ids.n, s->n_ctx);
        else status = print(s, &r, ids.n, pn_now() - start);
        free(ids.data);
    }
    cli_close_engine(&e);
    return status;
}

const cli_command cli_perplexity = {"perplexity", "measures how well a model predicts a text", "Cuts a text into windows and measures how well the model predicts their tokens: perplexity and bits per byte.",
                                    groups, examples, PN_COUNT(examples), run};
