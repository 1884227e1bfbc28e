/* cmd_chat.c - `pinch chat`: a conversation with the model's own chat template.
 *
 * The conversation is a list of messages; each turn renders all of it and lets the session keep what it shares with the last one. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "engine/engine.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const cli_option options[] = {
    {{"-sys", "--system-prompt"}, "TEXT", CLI_TEXT, CLI_FIELD(system_prompt), 0, 0, NULL, "What the model is told before the conversation.", "what the model's template says"},
    {{"-p", "--prompt"}, "TEXT", CLI_TEXT, CLI_FIELD(prompt), 0, 0, NULL, "First message; the conversation goes on from there.", ""},
    {{"-n", "--predict", "--n-predict"}, "N", CLI_INT, CLI_FIELD(n_predict), -1, INT32_MAX, NULL, "Tokens of an answer at most; -1 lets the model decide.", NULL},
    {{"-r", "--stop", "--reverse-prompt"}, "TEXT", CLI_LIST, CLI_FIELD(stops), 0, 0, NULL, "Ends an answer before this text; may be repeated.", ""},
    {{"--special"}, NULL, CLI_ON, CLI_FIELD(special), 0, 0, NULL, "Shows special tokens in the text.", ""},
};
static const cli_group own = {"Conversation", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&cli_model_group, &own, &cli_seed_group, &cli_sampling_group, &cli_context_group, &cli_compute_group, &cli_draft_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch chat -m model.gguf -n 32 -sys \"You answer in one sentence.\"", "talk; /help shows what else can be typed"},
    {"echo \"What is a llama?\" | pinch chat -m model.gguf -n 32 --seed 7", "one message from a script"},
    {"pinch chat -m model.gguf -n 32 --json < text.txt", "each line a message, each answer a JSON object"},
};

static const char help_text[] =
    "Type a message and press Enter. Lines that are pasted are one message; typed, a line that ends in \\ goes on in the next,\n"
    "and \"\"\" begins and ends a message of several lines.\n"
    "Ctrl-C stops an answer, Ctrl-D leaves.\n"
    "  /reset         forgets the conversation\n"
    "  /undo          takes the last message and its answer back\n"
    "  /retry         answers the last message anew\n"
    "  /system TEXT   sets what the model is told before the conversation, and forgets the conversation; without TEXT shows it\n"
    "  /stats         shows tokens, speed and memory\n"
    "  /help          shows this\n"
    "  /exit          leaves, as Ctrl-D does\n"
    "A message that begins with / is typed with two: //etc is /etc.\n";

typedef struct chat {
    cli_settings *s;
    cli_engine e;
    pinch_sampler *sampler;
    cli_editor *editor;
    pinch_message *messages; /* owned, as are their contents */
    size_t n, capacity;
    cli_text answer;         /* of the turn under way */
    size_t answer_capacity;
    bool output_failed, leave;
    /* of the last turn, and of all */
    size_t prompt_tokens, reused;
    double prompt_seconds, generate_seconds;
    pinch_generate_result result;
    uint64_t all_generated;
    double all_seconds;
} chat;

/* ---- messages --------------------------------------------------------------------------------------------- */

static bool add_message(chat *c, const char *role, const char *content)
{
    char *copy = strdup(content);
    if (copy && c->n == c->capacity) {
        const size_t capacity = c->capacity * 2 + 8;
        pinch_message *grown = realloc(c->messages, capacity * sizeof *grown);
        if (grown) {
            c->messages = grown;
            c->capacity = capacity;
        }
    }
    if (!copy || c->n == c->capacity) {
        free(copy);
        cli_fail(c->s, "out of memory for the conversation");
        return false;
    }
    c->messages[c->n++] = (pinch_message){role, copy};
    return true;
}

/* `role`s are constants; contents are ours. */
static void drop_messages(chat *c, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) free((char *)(uintptr_t)c->messages[i].content);
    if (c->n > to) memmove(c->messages + from, c->messages + to, (c->n - to) * sizeof *c->messages);
    c->n -= to - from;
}

static bool is_role(const chat *c, size_t i, const char *role) { return i < c->n && !strcmp(c->messages[i].role, role); }
static size_t first_turn(const chat *c) { return is_role(c, 0, "system") ? 1 : 0; }

/* Index of the last user message; c->n: none. */
static size_t last_user(const chat *c)
{
    for (size_t i = c->n; i > 0; i--) {
        if (is_role(c, i - 1, "user")) return i - 1;
    }
    return c->n;
}

/* ---- a turn --------------------------------------------------------------------------------------------------- */

static bool keep(chat *c, const char *text, size_t n)
{
    if (c->answer.n + n + 1 > c->answer_capacity) {
        const size_t capacity = (c->answer.n + n + 1) * 2;
        char *grown = realloc(c->answer.data, capacity);
        if (!grown) return false;
        c->answer.data = grown;
        c->answer_capacity = capacity;
    }
    for (size_t i = 0; i < n; i++) c->answer.data[c->answer.n + i] = text[i] ? text[i] : '?'; /* messages are C strings */
    c->answer.n += n;
    c->answer.data[c->answer.n] = 0;
    return true;
}

static bool on_token(void *user, pinch_token token, const char *text, size_t n)
{
    chat *c = user;
    (void)token;
    c->output_failed = !keep(c, text, n);
    if (!c->s->json && !c->output_failed) {
        cli_write_generated(text, n);
        c->output_failed = cli_flush(c->s) != CLI_DONE;
    }
    return c->output_failed || cli_interrupted(NULL);
}

static pinch_status render(const chat *c, cli_ids *ids, pinch_error *err)
{
    cli_text text = {NULL, 0};
    pinch_status st = pn_text_chat(c->e.model, c->messages, c->n, true, &text.data, &text.n, err);
    if (!st) st = pn_text_encode(c->e.model, text.data, text.n, true, true, &ids->data, &ids->n, err);
    free(text.data);
    return st;
}

/* The conversation as tokens that leave room for an answer; the oldest turns go where it is too long. */
static pinch_status render_to_fit(chat *c, cli_ids *ids, pinch_error *err)
{
    const size_t n_ctx = (size_t)pinch_session_n_ctx(c->e.session), room = n_ctx / 8;
    size_t dropped = 0;
    while (true) {
        const pinch_status st = render(c, ids, err);
        if (st) return st;
        if (ids->n + room <= n_ctx) break;
        const size_t first = first_turn(c), last = last_user(c);
        if (first >= last) {
            const size_t n = ids->n;
            free(ids->data);
            return pn_fail(err, PINCH_ERR_CONTEXT, "this message makes %zu tokens, and the context holds %zu; a shorter message or a larger -c would fit", n, n_ctx);
        }
        size_t next = first + 1;
        while (next < last && !is_role(c, next, "user")) next++;
        drop_messages(c, first, next);
        free(ids->data);
        dropped++;
    }
    if (dropped) cli_remark(c->s, "(the context of %zu tokens is full: the oldest %zu turn%s forgotten)", n_ctx, dropped, dropped == 1 ? " is" : "s are");
    return PINCH_OK;
}

static pinch_status generate(chat *c, const cli_ids *ids, pinch_error *err)
{
    pinch_generate_options o = pinch_generate_options_default();
    o.max_tokens = c->s->n_predict;
    o.special = c->s->special;
    o.stops = c->s->stops.items;
    o.n_stops = c->s->stops.n;
    o.on_token = on_token;
    o.user = c;
    c->answer.n = 0;
    c->result = (pinch_generate_result){.stop = PINCH_STOP_ABORT};
    c->prompt_tokens = ids->n;
    double start = pn_now();
    pinch_status st = pinch_session_sync(c->e.session, 0, ids->data, ids->n, &c->reused, err);
    c->prompt_seconds = pn_now() - start;
    cli_progress_end();
    c->generate_seconds = 0;
    if (st == PINCH_ABORTED) return keep(c, "", 0) ? PINCH_OK : pn_fail_memory(err, "an answer", 1);
    if (st) return st;
    for (size_t i = 0; i < ids->n; i++) pinch_sampler_accept(c->sampler, ids->data[i]);
    cli_text_begins();
    start = pn_now();
    st = pinch_generate(c->e.session, 0, c->sampler, &o, &c->result, err);
    c->generate_seconds = pn_now() - start;
    c->all_generated += (uint64_t)c->result.n_tokens;
    c->all_seconds += c->generate_seconds;
    if (!st && !keep(c, "", 0)) return pn_fail_memory(err, "an answer", 1);
    return st;
}

static int print_json(const chat *c)
{
    static const char *const stops[] = {"eos", "length", "string", "abort"}; /* as pinch_stop counts */
    pn_json_writer w = {0};
    pn_json_object(&w);
    pn_json_put_key(&w, "role");
    pn_json_cstring(&w, "assistant");
    pn_json_put_key(&w, "content");
    pn_json_string(&w, c->answer.data, c->answer.n);
    pn_json_put_key(&w, "stop");
    pn_json_cstring(&w, stops[c->result.stop]);
    pn_json_put_key(&w, "prompt_tokens");
    pn_json_uint(&w, c->prompt_tokens);
    pn_json_put_key(&w, "reused_tokens");
    pn_json_uint(&w, c->reused);
    pn_json_put_key(&w, "tokens");
    pn_json_int(&w, c->result.n_tokens);
    pn_json_put_key(&w, "prompt_ms");
    pn_json_double(&w, c->prompt_seconds * 1e3);
    pn_json_put_key(&w, "generate_ms");
    pn_json_double(&w, c->generate_seconds * 1e3);
    cli_put_drafts(&w, c->s, &c->result.drafts);
    pn_json_object_end(&w);
    return cli_write_json(c->s, &w);
}

/* Answers the conversation as it stands. A failure takes the last message back, so that the next can succeed. */
static int answer(chat *c)
{
    pinch_error err = {PINCH_OK, ""};
    cli_ids ids = {NULL, 0};
    cli_forget_interrupt();
    pinch_status st = render_to_fit(c, &ids, &err);
    if (!st) {
        st = generate(c, &ids, &err);
        free(ids.data);
    }
    if (st) {
        cli_text_ended(c->s);
        drop_messages(c, last_user(c), c->n);
        cli_forget_interrupt();
        return cli_error(c->s, &err);
    }
    if (c->s->json) c->output_failed = print_json(c) != CLI_DONE;
    else cli_write("\n", 1);
    cli_text_ended(c->s);
    if (c->result.stop == PINCH_STOP_ABORT) cli_remark(c->s, "(stopped)");
    if (c->result.stop == PINCH_STOP_LENGTH && c->s->n_predict < 0) cli_remark(c->s, "(the context is full)");
    cli_forget_interrupt();
    if (c->output_failed || cli_flush(c->s) != CLI_DONE) {
        c->leave = true;
        return CLI_FAILED;
    }
    return add_message(c, "assistant", c->answer.data) ? CLI_DONE : CLI_FAILED;
}

/* ---- commands --------------------------------------------------------------------------------------------------- */

/* Remarks that a person asked for; kept off standard output, which holds the conversation. */
static void reply(const char *text)
{
    fflush(stdout);
    fputs(text, stderr);
}

static int set_system(chat *c, const char *text)
{
    drop_messages(c, 0, c->n);
    return text[0] && !add_message(c, "system", text) ? CLI_FAILED : CLI_DONE;
}

static int command_reset(chat *c, const char *rest)
{
    (void)rest;
    drop_messages(c, first_turn(c), c->n);
    reply("(forgotten)\n");
    return CLI_DONE;
}

static int command_undo(chat *c, const char *rest)
{
    (void)rest;
    const size_t last = last_user(c);
    reply(last == c->n ? "(there is nothing to take back)\n" : "(taken back)\n");
    drop_messages(c, last, c->n);
    return CLI_DONE;
}

static int command_retry(chat *c, const char *rest)
{
    (void)rest;
    const size_t last = last_user(c);
    if (last == c->n) {
        reply("(there is no message to answer)\n");
        return CLI_DONE;
    }
    drop_messages(c, last + 1, c->n);
    return answer(c);
}

static int command_system(chat *c, const char *rest)
{
    if (rest[0]) {
        reply("(set; the conversation begins anew)\n");
        return set_system(c, rest);
    }
    reply(is_role(c, 0, "system") ? c->messages[0].content : "(none set: the template decides)");
    reply("\n");
    return CLI_DONE;
}

static int command_stats(chat *c, const char *rest)
{
    char a[64], b[64], d[64], text[512];
    (void)rest;
    const double read = (double)(c->prompt_tokens - c->reused);
    snprintf(text, sizeof text,
             "%zu messages, %" PRId32 " of %" PRId32 " tokens of context\nlast prompt: %zu tokens, %zu of them known already, %s tokens/s; last answer: %" PRId32 " tokens, %s tokens/s\n", c->n,
             pinch_session_position(c->e.session, 0), pinch_session_n_ctx(c->e.session), c->prompt_tokens, c->reused, cli_fixed(a, c->prompt_seconds > 0 ? read / c->prompt_seconds : 0, 1),
             c->result.n_tokens, cli_fixed(b, cli_token_speed(&c->result, c->generate_seconds), 1));
    reply(text);
    snprintf(text, sizeof text, "all answers: %" PRIu64 " tokens, %s tokens/s; ", c->all_generated, cli_fixed(a, c->all_seconds > 0 ? (double)c->all_generated / c->all_seconds : 0, 1));
    reply(text);
    snprintf(text, sizeof text, "memory: %s at most so far, %s planned; seed %" PRIu64 "\n", cli_bytes(b, pn_memory_peak()), cli_bytes(d, c->e.plan.total), c->s->seed);
    reply(text);
    if (c->s->draft) {
        reply(cli_draft_text(text, &c->result.drafts));
        reply("\n");
    }
    return CLI_DONE;
}

static int command_help(chat *c, const char *rest)
{
    (void)c;
    (void)rest;
    reply(help_text);
    return CLI_DONE;
}

static int command_exit(chat *c, const char *rest)
{
    (void)rest;
    c->leave = true;
    return CLI_DONE;
}

static const struct {
    const char *name;
    int (*run)(chat *c, const char *rest);
} commands[] = {{"/reset", command_reset}, {"/undo", command_undo}, {"/retry", command_retry}, {"/system", command_system}, {"/stats", command_stats},
                {"/help", command_help},   {"/exit", command_exit}, {"/quit", command_exit}};

static int run_command(chat *c, const char *line)
{
    const size_t n = strcspn(line, " \t\n");
    const char *rest = line + n + strspn(line + n, " \t\n"), *names[PN_COUNT(commands)];
    char word[32];
    for (size_t i = 0; i < PN_COUNT(commands); i++) {
        names[i] = commands[i].name;
        if (strlen(names[i]) == n && !strncmp(names[i], line, n)) return commands[i].run(c, rest);
    }
    snprintf(word, sizeof word, "%.*s", n < 31 ? (int)n : 31, line);
    const char *nearest = cli_nearest(word, names, PN_COUNT(names));
    char text[128];
    snprintf(text, sizeof text, "(unknown command %s%s%s; /help lists them)\n", word, nearest ? ", did you mean " : "", nearest ? nearest : "");
    reply(text);
    return CLI_DONE;
}

/* ---- reading messages --------------------------------------------------------------------------------------------- */

static bool append(cli_text *text, const char *bytes, size_t n)
{
    char *grown = realloc(text->data, text->n + n + 2);
    if (!grown) return false;
    text->data = grown;
    for (size_t i = 0; i < n; i++) text->data[text->n + i] = bytes[i] ? bytes[i] : '?';
    text->n += n;
    text->data[text->n] = 0;
    return true;
}

static bool is_fence(const char *line, size_t n) { return n == 3 && !memcmp(line, "\"\"\"", 3); }

/* A message: a line, lines joined by a trailing backslash, or lines between """. Appended to *text. */
static cli_line_end read_message(chat *c, cli_text *text)
{
    const bool colours = cli_colours(STDOUT_FILENO);
    const char *first = colours ? "\033[1;32m>\033[0m " : "> ", *more = colours ? "\033[1;32m.\033[0m " : ". ", *line;
    bool fenced = false, goes_on = true, begun = false;
    while (goes_on) {
        size_t n;
        const cli_line_end end = cli_editor_read(c->editor, begun ? more : first, &line, &n);
        if (end == CLI_LINE_END_OF_INPUT && begun) return CLI_LINE;
        if (end != CLI_LINE) return end;
        if (is_fence(line, n)) {
            goes_on = fenced = !fenced;
            begun = true;
            continue;
        }
        goes_on = fenced || (n > 0 && line[n - 1] == '\\');
        if (!fenced && goes_on) n--;
        if (!append(text, "\n", text->n > 0) || !append(text, line, n)) {
            cli_fail(c->s, "out of memory for the message");
            return CLI_LINE_END_OF_INPUT;
        }
        begun = true;
    }
    return CLI_LINE;
}

static int take_message(chat *c, const char *text)
{
    if (text[strspn(text, " \t\n")] == 0) return CLI_DONE;
    if (text[0] == '/' && text[1] != '/') return run_command(c, text);
    if (!add_message(c, "user", text[0] == '/' ? text + 1 : text)) return CLI_FAILED;
    return answer(c);
}

/* From a script the first failure ends the program; a person may try again. */
static int converse(chat *c)
{
    const bool person = isatty(STDIN_FILENO) == 1;
    int status = CLI_DONE;
    if (c->s->prompt) status = take_message(c, c->s->prompt);
    while (!c->leave && (person || status == CLI_DONE)) {
        cli_text text = {NULL, 0};
        const cli_line_end end = read_message(c, &text);
        if (end == CLI_LINE_INTERRUPTED) {
            cli_forget_interrupt();
            if (!person) status = CLI_INTERRUPTED;
            else reply("(Ctrl-D leaves)\n");
        } else if (end == CLI_LINE_END_OF_INPUT) {
            c->leave = true;
        } else {
            status = take_message(c, text.data ? text.data : "");
        }
        free(text.data);
    }
    return person && !c->output_failed ? CLI_DONE : status;
}

static int run(cli_settings *s)
{
    chat c = {.s = s};
    if (s->plan) return cli_print_plan(s);
    s->prompt_progress = true;
    int status = cli_open_engine(s, &c.e);
    if (status) return status;
    status = cli_open_sampler(s, c.e.model, &c.sampler);
    c.editor = cli_editor_open();
    if (!status && !c.editor) status = cli_fail(s, "out of memory");
    if (!status && s->system_prompt) status = set_system(&c, s->system_prompt);
    if (!status && pinch_model_meta(c.e.model, "tokenizer.chat_template", NULL, 0) < 0) cli_remark(s, "(this model holds no chat template and may not be made for chat; ChatML is used)");
    if (!status && isatty(STDIN_FILENO) == 1) cli_remark(s, "(/help shows what can be typed; Ctrl-C stops an answer, Ctrl-D leaves)");
    if (!status) status = converse(&c);
    drop_messages(&c, 0, c.n);
    free(c.messages);
    free(c.answer.data);
    cli_editor_close(c.editor);
    pinch_sampler_close(c.sampler);
    cli_close_engine(&c.e);
    return status;
}

const cli_command cli_chat = {"chat", "holds a conversation", "Talks with a model through its own chat template.", groups, examples, PN_COUNT(examples), run};
