/* cli.h - what the commands share: settings and option tables, errors, the terminal, opening models.
 *
 * The program stands on pinch.h and on base; `check`, `info` and `bench` look at kernels, files and threads below. Data goes to standard output,
 * everything else to standard error; exit status 0 done, 1 failed, 2 misused, 130 interrupted. */
#ifndef PN_CLI_H
#define PN_CLI_H

#include "base/base.h"
#include "base/json.h"

enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_MISUSED = 2, CLI_INTERRUPTED = 130 };

typedef struct cli_list {
    const char **items;
    size_t n;
} cli_list;

/* Everything that any option of any command sets; a command's help shows which it reads. */
typedef struct cli_settings {
    const char *command; /* for messages */

    const char *model;
    bool json, verbose, help;
    bool prompt_progress; /* the command has no progress of its own */

    int32_t threads, threads_batch, n_ctx, n_batch, n_checkpoints;
    int32_t type_k, type_v;  /* pinch_cache_type */
    int32_t activations;     /* pinch_activations */
    int32_t draft, n_draft;  /* pinch_draft */
    cli_list kernels;
    bool mapping, plan;

    const char *prompt, *file, *tokens;
    int32_t n_predict;
    bool escape, ignore_eos, special, no_bos, no_parse_special;
    cli_list stops;
    const char *system_prompt;

    uint64_t seed;
    bool seed_given;
    pinch_sampler_options sampling; /* without its lists and seed */
    cli_list logit_bias, breakers;

    bool jsonl, add_special, parse_special; /* tokenize */
    const char *out;                        /* logits */
    bool last, mtp;
    bool all;                               /* perplexity */
    const char *prompt_cache;
    int32_t bench_prompt, bench_generate, bench_depth, repetitions;
    bool bandwidth, csv;
    const char *template_file, *input, *now;
    const char *kernel_filter;              /* check */
    bool thorough, list;
} cli_settings;

/* ---- options (options.c) --------------------------------------------------------------------------- */

typedef enum cli_kind { CLI_ON, CLI_OFF, CLI_TEXT, CLI_LIST, CLI_INT, CLI_FLOAT, CLI_SEED, CLI_CHOICE, CLI_DRAFT } cli_kind;

typedef struct cli_option {
    const char *names[3];   /* as typed; help shows the first two */
    const char *value;      /* what help calls the value; NULL: none */
    cli_kind kind;
    size_t offset;          /* of the field in cli_settings */
    int32_t min, max;       /* of CLI_INT */
    const char *const *choices; /* of CLI_CHOICE, NULL-terminated: the index is stored */
    const char *help;       /* one sentence */
    const char *shown;      /* the default as help says it; NULL: the value of the field; "": none */
} cli_option;

typedef struct cli_group {
    const char *title;
    const cli_option *options;
    size_t n;
} cli_group;

typedef struct cli_example {
    const char *command, *what;
} cli_example;

typedef struct cli_command {
    const char *name, *summary, *about;
    const cli_group *const *groups;   /* NULL-terminated */
    const cli_example *examples;
    size_t n_examples;
    int (*run)(cli_settings *settings);
} cli_command;

#define CLI_FIELD(field) offsetof(cli_settings, field)

extern const cli_group cli_model_group, cli_context_group, cli_compute_group, cli_draft_group, cli_sampling_group, cli_output_group, cli_seed_group;
extern const char *const cli_draft_kinds[];
extern const cli_command cli_run, cli_chat, cli_tokenize, cli_detokenize, cli_template, cli_logits, cli_perplexity, cli_bench, cli_info, cli_check;

cli_settings cli_settings_default(void);
void cli_settings_free(cli_settings *settings);
/* Fills settings from the arguments after the command's name. False: a sentence was printed, the status is CLI_MISUSED. */
bool cli_parse(const cli_command *command, int argc, char **argv, cli_settings *settings);
void cli_help(const cli_command *command);
/* The nearest of n names, or NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, size_t n);

/* ---- messages and the terminal (terminal.c) ----------------------------------------------------------- */

/* Prints "pinch COMMAND: sentence" and returns CLI_FAILED / CLI_MISUSED (or CLI_INTERRUPTED for PINCH_ABORTED). */
int cli_fail(const cli_settings *s, const char *format, ...) PN_PRINTF(2, 3);
int cli_misuse(const cli_settings *s, const char *format, ...) PN_PRINTF(2, 3);
int cli_error(const cli_settings *s, const pinch_error *err);

bool cli_error_is_terminal(void); /* then progress and remarks may be shown */
bool cli_colours(int fd);         /* a terminal that is not dumb, and NO_COLOR not set */
/* A remark on standard error, grey where colours are; shown on a terminal or with --verbose. */
void cli_remark(const cli_settings *s, const char *format, ...) PN_PRINTF(2, 3);
void cli_progress(void *settings, const char *what, uint64_t done, uint64_t total); /* a pinch_progress_fn */
void cli_progress_end(void);
void cli_log(void *settings, pinch_log_level level, const char *message);           /* a pinch_log_fn */
/* Between these, what is logged waits: it would break the line that a model is writing. */
void cli_text_begins(void);
void cli_text_ended(const cli_settings *s);

/* Ctrl-C sets a flag; a second one before it is taken back ends the program with status 130. */
void cli_catch_signals(void);
bool cli_interrupted(void *unused); /* a pinch_abort_fn */
void cli_forget_interrupt(void);
/* While the terminal is raw, signals that would stop or end the program are held: they end a read, and act when they are released. */
void cli_hold_signals(void);
int cli_held_signal(void); /* 0: none */
void cli_release_signals(void);

/* Standard output. False after any failure; cli_flush says why and gives the status. */
void cli_write(const void *bytes, size_t n);
void cli_write_generated(const char *text, size_t n); /* of a model: as it is, but no control characters to a terminal */
void cli_write_safe(const char *text, size_t n); /* of a file: control characters become ? */
void cli_print(const char *format, ...) PN_PRINTF(1, 2);
int cli_flush(const cli_settings *s);
/* Text as it is; with --json {"text": .., "text_b64": ..}, the latter if it may be no UTF-8. A status. */
int cli_give_text(const cli_settings *s, const char *text, size_t n, bool any_bytes);
/* Prints the JSON document with a newline, frees the writer. */
int cli_write_json(const cli_settings *s, pn_json_writer *w);
/* Number to text in the program's own form: fixed point. */
const char *cli_fixed(char buffer[64], double v, int decimals);
/* 1536 MiB and the like. */
const char *cli_bytes(char buffer[64], uint64_t n);

/* ---- files (input.c) ------------------------------------------------------------------------------------ */

typedef struct cli_text {
    char *data; /* malloc'ed, a NUL behind it */
    size_t n;
} cli_text;

typedef struct cli_ids {
    pinch_token *data; /* malloc'ed */
    size_t n;
} cli_ids;

/* "-" is standard input. False: a sentence was printed. */
bool cli_read_file(const cli_settings *s, const char *path, cli_text *out);
/* Ids separated by white space or commas; "-" is standard input. */
bool cli_read_ids(const cli_settings *s, const char *path, cli_ids *out);
/* Fills in ids of a text. */
bool cli_tokenize_text(const cli_settings *s, const pinch_model *model, const char *text, size_t n, bool add_special, bool parse_special, cli_ids *out);
/* \n \t \r \\ \" \' \0 \xHH become what they name, in place. */
void cli_unescape(char *text, size_t *n);

/* ---- models (open.c) -------------------------------------------------------------------------------------- */

bool cli_needs_model(const cli_settings *s); /* -m was given, or a sentence */
pinch_status cli_open_model(const cli_settings *s, bool vocab_only, pinch_model **out, pinch_error *err);
pinch_status cli_plan_model(const cli_settings *s, pinch_model **out, pinch_error *err); /* checked and planned, not loaded */
pinch_session_options cli_session_options(const cli_settings *s);
/* Model and session. *plan is the session's. */
typedef struct cli_engine {
    pinch_model *model;
    pinch_session *session;
    pinch_memory_plan plan;
    double load_ms;
} cli_engine;
int cli_open_engine(const cli_settings *s, cli_engine *e); /* a status; on failure everything is closed and a sentence printed */
void cli_close_engine(cli_engine *e);
/* Tokens a second: the first was there when generation began. */
double cli_token_speed(const pinch_generate_result *result, double seconds);
/* What --spec came to, as text and as the member "spec" of an object. */
const char *cli_draft_text(char text[192], const pinch_draft_stats *stats);
void cli_put_drafts(pn_json_writer *w, const cli_settings *s, const pinch_draft_stats *stats);
/* Prints the plan of `--plan` and returns the status. */
int cli_print_plan(const cli_settings *s);
void cli_put_plan(pn_json_writer *w, const pinch_memory_plan *plan);
void cli_show_plan(const pinch_memory_plan *plan);
/* What a sequence takes layer by layer, and where the plan can be cut (plan.c). */
void cli_put_layers(pn_json_writer *w, const pinch_model *model, const pinch_memory_plan *plan);
void cli_show_layers(const pinch_model *model, const pinch_memory_plan *plan);
/* The sampler of the settings; fills in a seed where none was given. */
int cli_open_sampler(cli_settings *s, const pinch_model *model, pinch_sampler **out);

/* ---- reading lines (line.c) ---------------------------------------------------------------------------------- */

typedef enum cli_line_end { CLI_LINE, CLI_LINE_END_OF_INPUT, CLI_LINE_INTERRUPTED } cli_line_end;
typedef struct cli_editor cli_editor;
cli_editor *cli_editor_open(void); /* NULL: out of memory */
void cli_editor_close(cli_editor *e);
/* One line without its newline, valid until the next call. On a terminal that can, it is edited: arrows, Home, End, Ctrl-A E K U W L, history,
 * and newlines that are pasted are part of it. */
cli_line_end cli_editor_read(cli_editor *e, const char *prompt, const char **line, size_t *n);

/* ---- prompt_cache.c ---------------------------------------------------------------------------------------------- */

/* Feeds the prompt, by way of --prompt-cache where that is given. */
pinch_status cli_feed_prompt(const cli_settings *s, pinch_session *session, const cli_ids *prompt, pinch_error *err);

#endif
