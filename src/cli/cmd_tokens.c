/* cmd_tokens.c - `pinch tokenize` and `pinch detokenize`: text to ids and back, byte for byte. */
#include "cli/cli.h"

#include "engine/engine.h"

#include <stddef.h>
#include <stdlib.h>

static const cli_option tokenize_options[] = {
    {{"-p", "--prompt"}, "TEXT", CLI_TEXT, CLI_FIELD(prompt), 0, 0, NULL, "Text to tokenize.", "all bytes of standard input"},
    {{"-f", "--file"}, "FILE", CLI_TEXT, CLI_FIELD(file), 0, 0, NULL, "Text to tokenize, from a file.", ""},
    {{"--no-bos"}, NULL, CLI_ON, CLI_FIELD(no_bos), 0, 0, NULL, "Adds no begin or end token even if the model wants them.", ""},
    {{"--no-parse-special"}, NULL, CLI_ON, CLI_FIELD(no_parse_special), 0, 0, NULL, "Takes text such as <|im_end|> for plain text.", ""},
    {{"--jsonl"}, NULL, CLI_ON, CLI_FIELD(jsonl), 0, 0, NULL, "Reads lines {\"id\": .., \"b64\": ..} and prints {\"id\": .., \"ids\": [..]} for each; plain unless the next two say otherwise.", ""},
    {{"--add-special"}, NULL, CLI_ON, CLI_FIELD(add_special), 0, 0, NULL, "With --jsonl: adds begin and end tokens where the model wants them.", ""},
    {{"--parse-special"}, NULL, CLI_ON, CLI_FIELD(parse_special), 0, 0, NULL, "With --jsonl: reads special tokens in the text.", ""},
};
static const cli_group tokenize_group = {"Text", tokenize_options, PN_COUNT(tokenize_options)};
static const cli_group *const tokenize_groups[] = {&cli_model_group, &tokenize_group, &cli_output_group, NULL};
static const cli_example tokenize_examples[] = {
    {"pinch tokenize -m model.gguf < text.txt", "the ids of a file"},
    {"pinch tokenize -m model.gguf --json -p \"Hello, world\"", "ids and pieces as JSON"},
};

static const cli_option detokenize_options[] = {
    {{"--tokens"}, "FILE", CLI_TEXT, CLI_FIELD(tokens), 0, 0, NULL, "Ids separated by white space or commas; - is standard input.", "-"},
    {{"--special"}, NULL, CLI_ON, CLI_FIELD(special), 0, 0, NULL, "Shows special tokens.", ""},
};
static const cli_group detokenize_group = {"Tokens", detokenize_options, PN_COUNT(detokenize_options)};
static const cli_group *const detokenize_groups[] = {&cli_model_group, &detokenize_group, &cli_output_group, NULL};
static const cli_example detokenize_examples[] = {
    {"pinch detokenize -m model.gguf --tokens tokens.txt", "the text of a list of ids"},
    {"pinch tokenize -m model.gguf --no-bos < text.txt | pinch detokenize -m model.gguf", "there and back"},
};

/* ---- tokenize ------------------------------------------------------------------------------------------ */

static void put_ids(pn_json_writer *w, const cli_ids *ids)
{
    pn_json_put_key(w, "ids");
    pn_json_array(w);
    for (size_t i = 0; i < ids->n; i++) pn_json_int(w, ids->data[i]);
    pn_json_array_end(w);
}

/* Pieces as text, or as base64 of their exact bytes. */
static bool put_pieces(pn_json_writer *w, const pinch_model *model, const cli_ids *ids, bool exact)
{
    size_t capacity = 256;
    char *piece = malloc(capacity);
    pn_json_put_key(w, exact ? "pieces_b64" : "pieces");
    pn_json_array(w);
    for (size_t i = 0; i < ids->n && piece; i++) {
        const size_t n = pinch_token_piece(model, ids->data[i], true, piece, capacity);
        if (n > capacity) {
            free(piece);
            piece = malloc(capacity = n);
            i--;
            continue;
        }
        if (exact) pn_json_base64(w, piece, n);
        else pn_json_string(w, piece, n);
    }
    pn_json_array_end(w);
    const bool ok = piece != NULL;
    free(piece);
    return ok;
}

static int print_ids(const cli_settings *s, const pinch_model *model, const cli_ids *ids)
{
    if (!s->json) {
        for (size_t i = 0; i < ids->n; i++) cli_print("%s%" PRId32, i ? " " : "", ids->data[i]);
        cli_print("\n");
        return cli_flush(s);
    }
    pn_json_writer w = {0};
    pn_json_object(&w);
    put_ids(&w, ids);
    const bool ok = put_pieces(&w, model, ids, false) && put_pieces(&w, model, ids, true);
    pn_json_object_end(&w);
    w.failed = w.failed || !ok;
    return cli_write_json(s, &w);
}

static int tokenize_text(const cli_settings *s, const pinch_model *model)
{
    cli_text text = {NULL, 0};
    cli_ids ids;
    if (!s->prompt && !cli_read_file(s, s->file ? s->file : "-", &text)) return CLI_FAILED;
    const char *data = s->prompt ? s->prompt : text.data;
    int status = CLI_FAILED;
    if (cli_tokenize_text(s, model, data, s->prompt ? strlen(data) : text.n, !s->no_bos, !s->no_parse_special, &ids)) {
        status = print_ids(s, model, &ids);
        free(ids.data);
    }
    free(text.data);
    return status;
}

/* ---- tokenize --jsonl -------------------------------------------------------------------------------------- */

static int base64_digit(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Standard alphabet, padding at the end or none; in place of nothing: `out` holds n bytes. False: no base64. */
static bool base64_decode(const char *text, size_t n, char *out, size_t *n_out)
{
    while (n > 0 && text[n - 1] == '=') n--;
    uint32_t bits = 0;
    int held = 0;
    *n_out = 0;
    for (size_t i = 0; i < n; i++) {
        const int digit = base64_digit(text[i]);
        if (digit < 0) return false;
        bits = bits << 6 | (uint32_t)digit;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out[(*n_out)++] = (char)(unsigned char)(bits >> held & 0xff);
    }
    return n % 4 != 1;
}

static void put_value(pn_json_writer *w, const pn_json *v)
{
    switch (v->kind) {
    case PN_JSON_STRING: pn_json_string(w, v->text, v->n); break;
    case PN_JSON_INT: pn_json_int(w, v->integer); break;
    case PN_JSON_FLOAT: pn_json_double(w, v->number); break;
    case PN_JSON_BOOL: pn_json_bool(w, v->boolean); break;
    default: pn_json_null(w); break;
    }
}

static int tokenize_line(const cli_settings *s, const pinch_model *model, const char *line, size_t n, size_t number, pn_arena *arena)
{
    pinch_error err = {PINCH_OK, ""};
    pn_json object;
    if (pn_json_parse(&object, arena, line, n, &err)) return cli_fail(s, "line %zu: %s", number, err.message);
    const pn_json *id = pn_json_member(&object, "id"), *b64 = pn_json_member(&object, "b64");
    if (object.kind != PN_JSON_OBJECT || !id || !b64 || b64->kind != PN_JSON_STRING) return cli_fail(s, "line %zu: an object with \"id\" and a string \"b64\" is wanted", number);
    size_t n_bytes;
    char *bytes = pn_alloc(b64->n, 1);
    if (!bytes) return cli_fail(s, "out of memory");
    cli_ids ids;
    int status = CLI_FAILED;
    if (!base64_decode(b64->text, b64->n, bytes, &n_bytes)) {
        status = cli_fail(s, "line %zu: \"b64\" is not base64", number);
    } else if (cli_tokenize_text(s, model, bytes, n_bytes, s->add_special, s->parse_special, &ids)) {
        pn_json_writer w = {0};
        pn_json_object(&w);
        pn_json_put_key(&w, "id");
        put_value(&w, id);
        put_ids(&w, &ids);
        pn_json_object_end(&w);
        free(ids.data);
        status = cli_write_json(s, &w);
    }
    free(bytes);
    return status;
}

static int tokenize_lines(const cli_settings *s, const pinch_model *model)
{
    cli_text text;
    if (!cli_read_file(s, "-", &text)) return CLI_FAILED;
    int status = CLI_DONE;
    size_t number = 0;
    for (size_t at = 0; at < text.n && status == CLI_DONE;) {
        const char *end = memchr(text.data + at, '\n', text.n - at);
        const size_t n = end ? (size_t)(end - text.data) - at : text.n - at;
        number++;
        if (n > 0) {
            pn_arena arena;
            pn_arena_init(&arena, UINT64_MAX);
            status = tokenize_line(s, model, text.data + at, n, number, &arena);
            pn_arena_free(&arena);
        }
        at += n + 1;
    }
    free(text.data);
    return status;
}

static int tokenize(cli_settings *s)
{
    pinch_error err = {PINCH_OK, ""};
    pinch_model *model = NULL;
    if (!cli_needs_model(s)) return CLI_MISUSED;
    if (s->prompt && s->file) return cli_misuse(s, "-p TEXT and -f FILE exclude each other");
    if (cli_open_model(s, true, &model, &err)) return cli_error(s, &err);
    const int status = s->jsonl ? tokenize_lines(s, model) : tokenize_text(s, model);
    pinch_model_close(model);
    return status;
}

/* ---- detokenize ----------------------------------------------------------------------------------------------- */

static int print_text(const cli_settings *s, const pinch_model *model, const cli_ids *ids)
{
    pinch_error err = {PINCH_OK, ""};
    cli_text text = {NULL, 0};
    if (pn_text_decode(model, ids->data, ids->n, s->special, &text.data, &text.n, &err)) return cli_error(s, &err);
    const int status = cli_give_text(s, text.data, text.n, true);
    free(text.data);
    return status;
}

static int detokenize(cli_settings *s)
{
    pinch_error err = {PINCH_OK, ""};
    pinch_model *model = NULL;
    cli_ids ids;
    if (!cli_needs_model(s)) return CLI_MISUSED;
    if (cli_open_model(s, true, &model, &err)) return cli_error(s, &err);
    int status = CLI_FAILED;
    if (cli_read_ids(s, s->tokens ? s->tokens : "-", &ids)) {
        status = print_text(s, model, &ids);
        free(ids.data);
    }
    pinch_model_close(model);
    return status;
}

const cli_command cli_tokenize = {"tokenize", "turns text into token ids", "Reads text, any bytes, and prints the ids of its tokens.", tokenize_groups, tokenize_examples,
                                  PN_COUNT(tokenize_examples), tokenize};
const cli_command cli_detokenize = {"detokenize", "turns token ids into text", "Prints the bytes that a list of ids stands for, nothing added.", detokenize_groups, detokenize_examples,
                                    PN_COUNT(detokenize_examples), detokenize};
