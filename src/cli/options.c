/* options.c - option tables: parsing, help, the nearest name, and the groups that several commands share. */
#include "cli/cli.h"

#include "base/number.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- groups -------------------------------------------------------------------------------------------- */

#define COUNTED(options) options, PN_COUNT(options)

static const char *const cache_types[] = {"f32", "f16", "q8_0", NULL};    /* as pinch_cache_type counts */
static const char *const activation_types[] = {"q8", "f32", NULL};        /* as pinch_activations counts */
const char *const cli_draft_kinds[] = {"none", "lookup", "mtp", NULL};    /* as pinch_draft counts */
static const char *const mirostat_choices[] = {"0", "1", "2", NULL};

static const cli_option model_options[] = {
    {{"-m", "--model"}, "FILE", CLI_TEXT, CLI_FIELD(model), 0, 0, NULL, "GGUF file to open; any part of a split model names the whole.", ""},
};
const cli_group cli_model_group = {"Model", COUNTED(model_options)};

static const cli_option context_options[] = {
    {{"-c", "--ctx-size"}, "N", CLI_INT, CLI_FIELD(n_ctx), 1, INT32_MAX / 4, NULL, "How many tokens are remembered.", "the model's, at most 8192, less where memory is short"},
};
const cli_group cli_context_group = {"Context", COUNTED(context_options)};

static const cli_option compute_options[] = {
    {{"-b", "--batch-size"}, "N", CLI_INT, CLI_FIELD(n_batch), 1, 65536, NULL, "Tokens of a prompt that are computed at once; fewer take less memory.", "256"},
    {{"-t", "--threads"}, "N", CLI_INT, CLI_FIELD(threads), 1, 64, NULL, "Threads that generate.", "derived from the machine's cores"},
    {{"-tb", "--threads-batch"}, "N", CLI_INT, CLI_FIELD(threads_batch), 1, 64, NULL, "Threads that read prompts.", "as -t"},
    {{"-ctk", "--cache-type-k"}, "TYPE", CLI_CHOICE, CLI_FIELD(type_k), 0, 0, cache_types, "Number format of the keys that are remembered: f32, f16 or q8_0.", NULL},
    {{"-ctv", "--cache-type-v"}, "TYPE", CLI_CHOICE, CLI_FIELD(type_v), 0, 0, cache_types, "The same for the values.", NULL},
    {{"--ctx-checkpoints"}, "N", CLI_INT, CLI_FIELD(n_checkpoints), -1, 4096, NULL, "Places in the text to go back to where windows or recurrent layers forget; -1: none.", "what 64 MiB hold, 1 to 8, with recurrent layers"},
    {{"--activations"}, "FORM", CLI_CHOICE, CLI_FIELD(activations), 0, 0, activation_types, "q8 rounds activations to 8 bits as the fast kernels want; f32 keeps them whole, keys and values at least as f16: exact and slow.", NULL},
    {{"--kernel"}, "TYPE=NAME", CLI_LIST, CLI_FIELD(kernels), 0, 0, NULL, "Forces a kernel for a weight type, such as q4_k=scalar; may be repeated (pinch check --list names them).", "the best for this CPU"},
    {{"--mmap"}, NULL, CLI_ON, CLI_FIELD(mapping), 0, 0, NULL, "Maps weights that need no packing from the file.", "on"},
    {{"--no-mmap"}, NULL, CLI_OFF, CLI_FIELD(mapping), 0, 0, NULL, "Reads all weights into memory instead.", ""},
    {{"--plan"}, NULL, CLI_ON, CLI_FIELD(plan), 0, 0, NULL, "Prints how much memory this would take, and does nothing else.", ""},
};
const cli_group cli_compute_group = {"Memory and speed", COUNTED(compute_options)};

static const cli_option draft_options[] = {
    {{"--spec"}, "KIND[:N]", CLI_DRAFT, CLI_FIELD(draft), 1, PINCH_MAX_DRAFT, cli_draft_kinds,
     "Guesses up to N tokens (1 to 7) and computes them at once, for the same text in less time: lookup guesses what followed the last words before, mtp by the model's own block for that.", "none"},
};
const cli_group cli_draft_group = {"Speculation", COUNTED(draft_options)};

static const cli_option sampling_options[] = {
    {{"--temp", "--temperature"}, "X", CLI_FLOAT, CLI_FIELD(sampling.temperature), 0, 0, NULL, "Higher is more surprising; 0 always takes the likeliest token.", NULL},
    {{"--top-k"}, "N", CLI_INT, CLI_FIELD(sampling.top_k), INT32_MIN, INT32_MAX, NULL, "Only the N likeliest tokens; 0 is off.", NULL},
    {{"--top-p"}, "X", CLI_FLOAT, CLI_FIELD(sampling.top_p), 0, 0, NULL, "Only the likeliest tokens that together reach probability X; 1 is off.", NULL},
    {{"--min-p"}, "X", CLI_FLOAT, CLI_FIELD(sampling.min_p), 0, 0, NULL, "Only tokens at least X times as likely as the likeliest; 0 is off.", NULL},
    {{"--typical", "--typical-p"}, "X", CLI_FLOAT, CLI_FIELD(sampling.typical_p), 0, 0, NULL, "Only tokens about as surprising as expected, up to probability X; 1 is off.", NULL},
    {{"--top-nsigma", "--top-n-sigma"}, "X", CLI_FLOAT, CLI_FIELD(sampling.top_n_sigma), 0, 0, NULL, "Only logits within X standard deviations of the largest; -1 is off.", NULL},
    {{"--xtc-probability"}, "X", CLI_FLOAT, CLI_FIELD(sampling.xtc_probability), 0, 0, NULL, "How often XTC drops the likeliest tokens but one; 0 is off.", NULL},
    {{"--xtc-threshold"}, "X", CLI_FLOAT, CLI_FIELD(sampling.xtc_threshold), 0, 0, NULL, "Probability from which XTC counts a token as likely.", NULL},
    {{"--repeat-penalty"}, "X", CLI_FLOAT, CLI_FIELD(sampling.repeat_penalty), 0, 0, NULL, "Divides the logits of recent tokens; 1 is off.", NULL},
    {{"--repeat-last-n"}, "N", CLI_INT, CLI_FIELD(sampling.repeat_last_n), -1, INT32_MAX, NULL, "How many tokens count as recent for the penalties; -1 is the context.", NULL},
    {{"--frequency-penalty"}, "X", CLI_FLOAT, CLI_FIELD(sampling.frequency_penalty), 0, 0, NULL, "Taken from a recent token's logit for each time that it occurs.", NULL},
    {{"--presence-penalty"}, "X", CLI_FLOAT, CLI_FIELD(sampling.presence_penalty), 0, 0, NULL, "Taken once from a recent token's logit.", NULL},
    {{"--dry-multiplier"}, "X", CLI_FLOAT, CLI_FIELD(sampling.dry_multiplier), 0, 0, NULL, "Strength of DRY, which keeps sequences from being repeated; 0 is off.", NULL},
    {{"--dry-base"}, "X", CLI_FLOAT, CLI_FIELD(sampling.dry_base), 0, 0, NULL, "How fast DRY grows with the length of a repetition.", NULL},
    {{"--dry-allowed-length"}, "N", CLI_INT, CLI_FIELD(sampling.dry_allowed_length), 0, INT32_MAX, NULL, "Repetitions shorter than this are free.", NULL},
    {{"--dry-penalty-last-n"}, "N", CLI_INT, CLI_FIELD(sampling.dry_penalty_last_n), -1, INT32_MAX, NULL, "How far DRY looks back; -1 is the context.", NULL},
    {{"--dry-sequence-breaker"}, "TEXT", CLI_LIST, CLI_FIELD(breakers), 0, 0, NULL, "DRY sees no repetition across this text; may be repeated, none clears the list.", "newline, :, \", *"},
    {{"--mirostat"}, "N", CLI_CHOICE, CLI_FIELD(sampling.mirostat), 0, 0, mirostat_choices, "2 keeps the surprise of the text near a target instead of all of the above.", NULL},
    {{"--mirostat-ent"}, "X", CLI_FLOAT, CLI_FIELD(sampling.mirostat_tau), 0, 0, NULL, "That target, in bits (tau).", NULL},
    {{"--mirostat-lr"}, "X", CLI_FLOAT, CLI_FIELD(sampling.mirostat_eta), 0, 0, NULL, "How fast mirostat corrects itself (eta).", NULL},
    {{"--logit-bias"}, "ID(+/-)X", CLI_LIST, CLI_FIELD(logit_bias), 0, 0, NULL, "Adds to a token's logit, such as 15043+1 or 15043-inf; may be repeated.", "none"},
};
const cli_group cli_sampling_group = {"Sampling", COUNTED(sampling_options)};

static const cli_option seed_options[] = {
    {{"-s", "--seed"}, "N", CLI_SEED, CLI_FIELD(seed), 0, 0, NULL, "The same seed gives the same text again; -1 takes a new one each time.", "-1"},
};
const cli_group cli_seed_group = {"Random numbers", COUNTED(seed_options)};

static const cli_option output_options[] = {
    {{"--json"}, NULL, CLI_ON, CLI_FIELD(json), 0, 0, NULL, "Prints one JSON object for scripts.", ""},
    {{"-v", "--verbose"}, NULL, CLI_ON, CLI_FIELD(verbose), 0, 0, NULL, "Shows remarks and timings even where standard error is no terminal.", ""},
    {{"-h", "--help"}, NULL, CLI_ON, CLI_FIELD(help), 0, 0, NULL, "Prints this page.", ""},
};
const cli_group cli_output_group = {"Output", COUNTED(output_options)};

cli_settings cli_settings_default(void)
{
    return (cli_settings){
        .type_k = PINCH_CACHE_F16,
        .type_v = PINCH_CACHE_F16,
        .mapping = true,
        .n_predict = -1,
        .sampling = pinch_sampler_options_default(),
        .bench_prompt = 512,
        .bench_generate = 128,
        .repetitions = 5,
    };
}

void cli_settings_free(cli_settings *s)
{
    free(s->kernels.items);
    free(s->stops.items);
    free(s->logit_bias.items);
    free(s->breakers.items);
}

/* ---- the nearest name ------------------------------------------------------------------------------------ */

enum { LONGEST_NAME = 48 };

/* Edit distance with swaps of neighbours; words longer than LONGEST_NAME are far from everything. */
static size_t distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t rows[3][LONGEST_NAME + 1];
    if (n > LONGEST_NAME || m > LONGEST_NAME) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *now = rows[i % 3];
        const size_t *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            if (above[j] + 1 < best) best = above[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two_above[j - 2] + 1 < best) best = two_above[j - 2] + 1;
            now[j] = best;
        }
    }
    return rows[n % 3][m];
}

const char *cli_nearest(const char *word, const char *const *names, size_t n)
{
    const char *nearest = NULL;
    const size_t far = 2 + strlen(word) / 4, half = 1 + strlen(word + strspn(word, "-")) / 2;
    size_t least = far < half ? far : half; /* farther is no slip of the finger, and -t none of -m */
    for (size_t i = 0; i < n; i++) {
        const size_t d = distance(word, names[i]);
        if (d >= least) continue;
        least = d;
        nearest = names[i];
    }
    return nearest;
}

/* ---- parsing ------------------------------------------------------------------------------------------------ */

static const cli_option *find_option(const cli_command *command, const char *name, size_t n)
{
    for (const cli_group *const *g = command->groups; *g; g++) {
        for (size_t i = 0; i < (*g)->n; i++) {
            const cli_option *o = &(*g)->options[i];
            for (size_t k = 0; k < PN_COUNT(o->names) && o->names[k]; k++) {
                if (strlen(o->names[k]) == n && !memcmp(o->names[k], name, n)) return o;
            }
        }
    }
    return NULL;
}

static bool unknown_option(const cli_command *command, const cli_settings *s, const char *word)
{
    const char *names[256];
    size_t n = 0;
    for (const cli_group *const *g = command->groups; *g; g++) {
        for (size_t i = 0; i < (*g)->n; i++) {
            const cli_option *o = &(*g)->options[i];
            for (size_t k = 0; k < PN_COUNT(o->names) && o->names[k] && n < PN_COUNT(names); k++) names[n++] = o->names[k];
        }
    }
    const char *nearest = cli_nearest(word, names, n);
    if (word[0] != '-') cli_misuse(s, "%s: this command takes options only (pinch %s --help)", word, command->name);
    else if (nearest) cli_misuse(s, "unknown option %s; did you mean %s?", word, nearest);
    else cli_misuse(s, "unknown option %s (pinch %s --help lists all)", word, command->name);
    return false;
}

static bool add_to_list(const cli_settings *s, cli_list *list, const char *text)
{
    const char **items = realloc(list->items, (list->n + 1) * sizeof *items);
    if (!items) return cli_fail(s, "out of memory"), false;
    list->items = items;
    list->items[list->n++] = text;
    return true;
}

/* `what`: the option, or a part of its value. */
static bool set_int(const cli_settings *s, const cli_option *o, const char *what, void *field, const char *text)
{
    int64_t v;
    const size_t n = strlen(text);
    if (n == 0 || pn_parse_int64(text, n, &v) != n || v < o->min || v > o->max) {
        if (o->min == INT32_MIN) return cli_misuse(s, "%s %s: a whole number is wanted", what, text), false;
        return cli_misuse(s, "%s %s: a whole number from %" PRId32 " to %" PRId32 " is wanted", what, text, o->min, o->max), false;
    }
    *(int32_t *)field = (int32_t)v;
    return true;
}

static bool set_float(const cli_settings *s, const cli_option *o, void *field, const char *text)
{
    double v;
    const size_t n = strlen(text);
    if (n == 0 || pn_parse_double(text, n, &v) != n || !(v >= -3.4e38 && v <= 3.4e38)) {
        return cli_misuse(s, "%s %s: a number is wanted, such as 0.8", o->names[0], text), false;
    }
    *(float *)field = (float)v;
    return true;
}

static bool set_seed(cli_settings *s, const cli_option *o, const char *text)
{
    const size_t n = strlen(text);
    if (!strcmp(text, "-1")) {
        s->seed_given = false;
        return true;
    }
    if (n == 0 || pn_parse_uint64(text, n, &s->seed) != n) return cli_misuse(s, "%s %s: -1 or a whole number from 0 to 2^64-1 is wanted", o->names[0], text), false;
    s->seed_given = true;
    return true;
}

/* The first n bytes of `text` are the choice; messages name all of it. */
static bool set_choice(const cli_settings *s, const cli_option *o, void *field, const char *text, size_t n_choice)
{
    char all[128] = "";
    for (int32_t i = 0; o->choices[i]; i++) {
        if (strlen(o->choices[i]) == n_choice && !memcmp(o->choices[i], text, n_choice)) {
            *(int32_t *)field = i;
            return true;
        }
        const size_t n = strlen(all);
        snprintf(all + n, sizeof all - n, "%s%s", i == 0 ? "" : o->choices[i + 1] ? ", " : " or ", o->choices[i]);
    }
    cli_misuse(s, "%s %s: %s is wanted", o->names[0], text, all);
    return false;
}

/* "mtp" or "lookup:4". */
static bool set_draft(cli_settings *s, const cli_option *o, const char *text)
{
    const size_t n = strcspn(text, ":");
    s->n_draft = 0;
    return set_choice(s, o, &s->draft, text, n) && (!text[n] || set_int(s, o, "--spec KIND:N, where N is", &s->n_draft, text + n + 1));
}

static bool set_option(cli_settings *s, const cli_option *o, const char *text)
{
    void *field = (char *)s + o->offset;
    switch (o->kind) {
    case CLI_ON: *(bool *)field = true; return true;
    case CLI_OFF: *(bool *)field = false; return true;
    case CLI_TEXT: *(const char **)field = text; return true;
    case CLI_LIST: return add_to_list(s, field, text);
    case CLI_INT: return set_int(s, o, o->names[0], field, text);
    case CLI_FLOAT: return set_float(s, o, field, text);
    case CLI_SEED: return set_seed(s, o, text);
    case CLI_CHOICE: return set_choice(s, o, field, text, strlen(text));
    case CLI_DRAFT: return set_draft(s, o, text);
    }
    return false;
}

bool cli_parse(const cli_command *command, int argc, char **argv, cli_settings *s)
{
    for (int i = 0; i < argc; i++) {
        const char *word = argv[i], *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
        const size_t n = equals ? (size_t)(equals - word) : strlen(word);
        const cli_option *o = find_option(command, word, n);
        if (!o) return unknown_option(command, s, word);
        const char *value = equals ? equals + 1 : NULL;
        if (!o->value && value) return cli_misuse(s, "%s takes no value", o->names[0]), false;
        if (o->value && !value && ++i == argc) return cli_misuse(s, "%s wants a value: %s %s", word, word, o->value), false;
        if (o->value && !value) value = argv[i];
        if (!set_option(s, o, value)) return false;
        if (s->help) return true;
    }
    return true;
}

/* ---- help --------------------------------------------------------------------------------------------------- */

enum { HELP_COLUMN = 30, HELP_WIDTH = 100 };

/* Words from column `at` on, later lines indented by `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
    for (bool first = true; *text; first = false) {
        const size_t n = strcspn(text, " ");
        if (!first && at + 1 + n > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
        } else if (!first) {
            putchar(' ');
            at++;
        }
        printf("%.*s", (int)n, text);
        at += n;
        text += n + (text[n] == ' ');
    }
    putchar('\n');
}

/* The default of an option as text; "" when there is nothing to say. */
static void default_text(const cli_option *o, char *out, size_t size)
{
    const cli_settings defaults = cli_settings_default();
    const void *field = (const char *)&defaults + o->offset;
    char number[32];
    out[0] = 0;
    if (o->shown) snprintf(out, size, "%s", o->shown);
    else if (o->kind == CLI_INT) snprintf(out, size, "%" PRId32, *(const int32_t *)field);
    else if (o->kind == CLI_CHOICE) snprintf(out, size, "%s", o->choices[*(const int32_t *)field]);
    else if (o->kind == CLI_FLOAT) {
        const float v = *(const float *)field;
        size_t n = pn_format_float(number, v);
        if (n > 2 && !memcmp(number + n - 2, ".0", 2)) n -= 2;
        snprintf(out, size, "%.*s", (int)n, number);
    }
}

static void print_option(const cli_option *o)
{
    char left[128], text[512], shown[128];
    snprintf(left, sizeof left, "  %s%s%s%s%s", o->names[0], o->names[1] ? ", " : "", o->names[1] ? o->names[1] : "", o->value ? " " : "", o->value ? o->value : "");
    default_text(o, shown, sizeof shown);
    const size_t n = strlen(o->help);
    if (shown[0]) snprintf(text, sizeof text, "%.*s (default: %s).", (int)(n - 1), o->help, shown);
    else snprintf(text, sizeof text, "%s", o->help);
    size_t at = strlen(left);
    printf("%s", left);
    if (at + 2 > HELP_COLUMN) {
        putchar('\n');
        at = 0;
    }
    printf("%*s", (int)(HELP_COLUMN - at), "");
    print_wrapped(text, HELP_COLUMN, HELP_COLUMN);
}

void cli_help(const cli_command *command)
{
    printf("pinch %s: %s\n\n", command->name, command->summary);
    print_wrapped(command->about, 0, 0);
    for (const cli_group *const *g = command->groups; *g; g++) {
        printf("\n%s\n", (*g)->title);
        for (size_t i = 0; i < (*g)->n; i++) print_option(&(*g)->options[i]);
    }
    printf("\nExamples\n");
    for (size_t i = 0; i < command->n_examples; i++) printf("  # %s\n  %s\n", command->examples[i].what, command->examples[i].command);
}
