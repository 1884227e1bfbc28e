/* cmd_logits.c - `pinch logits`: the logits of every token of a list, as raw numbers. */
#include "cli/cli.h"

#include "base/json.h"
#include "base/math.h"
#include "engine/engine.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const cli_option options[] = {
    {{"--tokens"}, "FILE", CLI_TEXT, CLI_FIELD(tokens), 0, 0, NULL, "Ids separated by white space or commas, fed exactly as they are; - is standard input.", ""},
    {{"-o", "--output"}, "FILE", CLI_TEXT, CLI_FIELD(out), 0, 0, NULL, "File that gets little-endian 32-bit floats [tokens][vocabulary]; - is standard output.", ""},
    {{"--last"}, NULL, CLI_ON, CLI_FIELD(last), 0, 0, NULL, "Writes the last token's row only.", ""},
    {{"--mtp"}, NULL, CLI_ON, CLI_FIELD(mtp), 0, 0, NULL, "Logits of the model's block that drafts tokens (MTP): of the token after the next.", ""},
};
static const cli_group own = {"Tokens", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&cli_model_group, &own, &cli_context_group, &cli_compute_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch logits -m model.gguf --tokens tokens.txt -o logits.f32", "one row for each token"},
    {"pinch tokenize -m model.gguf < text.txt | pinch logits -m model.gguf --tokens - -o last.f32 --last", "what would follow a text"},
};

/* Written under a temporary name and renamed, so that no half file is ever taken for a whole one. What is no regular file is written directly. */
typedef struct output {
    FILE *file;
    char *temporary; /* NULL: none */
    size_t rows;     /* written */
    bool failed;
} output;

static bool output_open(const cli_settings *s, output *o)
{
    struct stat status;
    *o = (output){0};
    if (!strcmp(s->out, "-")) {
        o->file = stdout;
        return true;
    }
    const char *path = s->out;
    if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) {
        const size_t n = strlen(path) + 32;
        o->temporary = malloc(n);
        if (!o->temporary) return cli_fail(s, "out of memory"), false;
        snprintf(o->temporary, n, "%s.%ld.part", s->out, (long)getpid());
        path = o->temporary;
    }
    o->file = fopen(path, "wb");
    if (o->file) return true;
    cli_fail(s, "%s: cannot be written: %s", path, strerror(errno));
    free(o->temporary);
    return false;
}

/* Puts the file in its place, or removes what there is of it. */
static int output_close(const cli_settings *s, output *o, bool keep)
{
    errno = 0;
    bool ok = fflush(o->file) == 0 && !ferror(o->file) && !o->failed;
    if (ok && o->temporary) ok = fsync(fileno(o->file)) == 0;
    if (o->file != stdout) ok = fclose(o->file) == 0 && ok;
    if (ok && keep && o->temporary) ok = rename(o->temporary, s->out) == 0;
    const int reason = errno;
    if (o->temporary && !(ok && keep)) unlink(o->temporary);
    free(o->temporary);
    return ok || !keep ? CLI_DONE : cli_fail(s, "%s: cannot be written: %s", s->out, reason ? strerror(reason) : "an earlier write failed");
}

static bool write_row(void *user, size_t index, const float *logits, int32_t n_vocab)
{
    output *o = user;
    unsigned char bytes[4096];
    (void)index;
    for (int32_t i = 0; i < n_vocab;) {
        size_t n = 0;
        for (; i < n_vocab && n < sizeof bytes; i++, n += 4) {
            const uint32_t bits = pn_float_bits(logits[i]);
            for (int k = 0; k < 4; k++) bytes[n + (size_t)k] = (unsigned char)(bits >> 8 * k & 0xff);
        }
        if (fwrite(bytes, 1, n, o->file) != n) o->failed = true;
    }
    o->rows++;
    return o->failed;
}

static int print_shape(const cli_settings *s, size_t n_tokens, size_t n_rows, int32_t n_vocab)
{
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "tokens");
    pn_json_int(&w, (int64_t)n_tokens);
    pn_json_put_key(&w, "rows");
    pn_json_int(&w, (int64_t)n_rows);
    pn_json_put_key(&w, "n_vocab");
    pn_json_int(&w, n_vocab);
    pn_json_object_end(&w);
    return cli_write_json(s, &w);
}

static int compute(const cli_settings *s, const cli_engine *e, const cli_ids *ids)
{
    pinch_error err = {PINCH_OK, ""};
    pinch_row *rows = pn_alloc(ids->n, sizeof *rows);
    output o;
    if (!rows) return cli_fail(s, "out of memory for %zu tokens", ids->n);
    if (!output_open(s, &o)) {
        free(rows);
        return CLI_FAILED;
    }
    for (size_t i = 0; i < ids->n; i++) rows[i] = (pinch_row){ids->data[i], 0, !s->last || i + 1 == ids->n};
    const pinch_status st = (s->mtp ? pn_block_logits : pinch_session_eval)(e->session, rows, ids->n, write_row, &o, &err);
    free(rows);
    const bool wrong_disk = o.failed;
    const int status = output_close(s, &o, !st || wrong_disk);
    if (st && !wrong_disk) return cli_error(s, &err);
    return status == CLI_DONE && s->json && strcmp(s->out, "-") ? print_shape(s, ids->n, o.rows, pinch_model_n_vocab(e->model)) : status;
}

static int run(cli_settings *s)
{
    cli_engine e;
    cli_ids ids;
    if (s->mtp) s->draft = PINCH_DRAFT_MTP;
    if (s->plan) return cli_print_plan(s);
    if (!cli_needs_model(s)) return CLI_MISUSED;
    if (!s->tokens || !s->out) return cli_misuse(s, "--tokens FILE and -o FILE are wanted");
    s->prompt_progress = true;
    int status = cli_open_engine(s, &e);
    if (status) return status;
    status = CLI_FAILED;
    if (cli_read_ids(s, s->tokens, &ids)) {
        status = ids.n ? compute(s, &e, &ids) : cli_fail(s, "%s: holds no token ids", s->tokens);
        free(ids.data);
    }
    cli_close_engine(&e);
    return status;
}

const cli_command cli_logits = {"logits", "writes the logits of a list of tokens", "Feeds token ids and writes the logits after each of them as raw numbers.", groups, examples, PN_COUNT(examples), run};
