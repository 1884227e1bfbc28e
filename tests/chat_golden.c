/* tests/chat_golden.c - chat templates against the reference's renderings: templates x conversations, units, hostile templates.
 *
 * PINCH_TEMPLATES names the folder of the template texts (golden/templates/collect.py writes it). */
#include "chat/chat.h"

#include "test.h"

#include <sys/resource.h>
#include <time.h>

#define CLOCK 1767323045 /* 2026-01-02 03:04:05, the reference's clock */
static const char marker[] = "CONTINUE_FINAL_MESSAGE_TAG ";

static char *read_file(const char *folder, const char *name, const char *end, size_t *n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *data = malloc((size_t)size + 1);
    *n = fread(data, 1, (size_t)size, f);
    data[*n] = 0;
    fclose(f);
    return data;
}

/* The next line of *at as JSON; false at the end. */
static bool next_line(pn_json *out, pn_arena *arena, const char **at, const char *end)
{
    while (*at < end && **at == '\n') ++*at;
    if (*at >= end) return false;
    const char *stop = memchr(*at, '\n', (size_t)(end - *at));
    if (!stop) stop = end;
    pinch_error err;
    if (pn_json_parse(out, arena, *at, (size_t)(stop - *at), &err)) {
        printf("a broken line of reference data: %s\n", err.message);
        exit(2);
    }
    *at = stop;
    return true;
}

static const char *text_of(const pn_json *object, const char *key)
{
    const pn_json *v = pn_json_member(object, key);
    return v && v->kind == PN_JSON_STRING ? v->text : NULL;
}

/* Equal bytes; an escaped lone surrogate in the reference may be an escaped U+FFFD here. */
static bool same_text(const char *mine, size_t n, const pn_json *wanted)
{
    if (n != wanted->n) return false;
    for (size_t i = 0; i < n; i++) {
        if (mine[i] == wanted->text[i]) continue;
        bool surrogate = i >= 2 && n - i >= 4 && !memcmp(mine + i - 2, "\\ufffd", 6) && !memcmp(wanted->text + i - 2, "\\ud", 3);
        if (!surrogate) return false;
        i += 3;
    }
    return true;
}

static void show_difference(const char *id, const char *mine, size_t n, const pn_json *wanted)
{
    size_t i = 0;
    while (i < n && i < wanted->n && mine[i] == wanted->text[i]) i++;
    size_t from = i > 30 ? i - 30 : 0;
    printf("  %s differs at byte %zu:\n    ours   ...%.80s\n    theirs ...%.80s\n", id, i, mine + (from < n ? from : n), wanted->text + (from < wanted->n ? from : wanted->n));
}

static bool check_failure(const char *id, const pn_json *expected, const pinch_error *err)
{
    const char *kind = text_of(expected, "error");
    const pn_json *message = pn_json_member(expected, "message");
    if (strcmp(kind, "raise_exception") || !message) return err->message[0] != 0;
    size_t n = strlen(err->message);
    if (n <= message->n && !memcmp(err->message, message->text, n) && (n == message->n || n + 1 == sizeof err->message)) return true;
    printf("  %s: message '%s', not '%s'\n", id, err->message, message->text);
    return false;
}

/* Judges a rendering by a row of the reference. */
static bool judge(const char *id, const pn_json *expected, pinch_status st, const char *text, size_t n, const pinch_error *err)
{
    const pn_json *wanted = pn_json_member(expected, "text_if_mutable");
    if (!wanted) wanted = pn_json_member(expected, "text");
    if (st && wanted) printf("  %s failed: %s\n", id, err->message);
    if (!wanted && !st) printf("  %s rendered, but the reference fails with %s: %s\n", id, text_of(expected, "error"), text_of(expected, "message"));
    if (!wanted) return st && check_failure(id, expected, err);
    if (st) return false;
    if (same_text(text, n, wanted)) return true;
    show_difference(id, text, n, wanted);
    return false;
}

static pinch_status render_once(const char *source, size_t n_source, const pn_json *context, char **text, size_t *n, pinch_error *err)
{
    pn_template *t;
    pinch_status st = pn_template_open(&t, source, n_source, err);
    if (st) return st;
    st = pn_template_render(t, context, CLOCK, text, n, err);
    pn_template_close(t);
    return st;
}

static void check_units(const char *folder)
{
    size_t n;
    char *data = read_file(folder, "units", ".jsonl", &n);
    const char *at = data;
    pn_json row;
    int rows = 0, bad = 0;
    pn_arena arena;
    pn_arena_init(&arena, 1 << 28);
    while (data && next_line(&row, &arena, &at, data + n)) {
        const pn_json *source = pn_json_member(&row, "template");
        char *text = NULL;
        size_t n_text = 0;
        pinch_error err = {0};
        pinch_status st = render_once(source->text, source->n, pn_json_member(&row, "context"), &text, &n_text, &err);
        bad += !judge(text_of(&row, "id"), &row, st, text, n_text, &err);
        rows++;
        free(text);
    }
    CHECK("units render as in the reference", rows && !bad, "%d of %d differ", bad, rows);
    printf("units: %d of %d as in the reference\n", rows - bad, rows);
    pn_arena_free(&arena);
    free(data);
}

/* ---- templates x conversations ------------------------------------------------------------------ */

static pn_json *member(pn_json *object, const char *key)
{
    return (pn_json *)(uintptr_t)pn_json_member(object, key);
}

/* Puts the marker behind the last message's text. */
static void mark_last(pn_json *context, pn_arena *arena)
{
    pn_json *messages = member(context, "messages"), *content = member(&messages->items[messages->n - 1], "content");
    if (content->kind == PN_JSON_ARRAY) content = member(&content->items[content->n - 1], "text");
    char *joined = pn_arena_get(arena, content->n + sizeof marker, 1);
    memcpy(joined, content->text, content->n);
    memcpy(joined + content->n, marker, sizeof marker);
    content->text = joined;
    content->n += sizeof marker - 1;
}

/* The text before the last marker; SIZE_MAX: the template dropped it, which the reference takes for an error. */
static size_t cut_at_marker(const char *text, size_t n)
{
    size_t length = sizeof marker - 2;
    for (size_t at = n >= length ? n - length + 1 : 0; at-- > 0;) {
        if (memcmp(text + at, marker, length)) continue;
        bool whole = at + length < n && text[at + length] == ' ';
        while (!whole && at && strchr(" \n\t\r", text[at - 1])) at--;
        return at;
    }
    return SIZE_MAX;
}

static const pn_json *find_conversation(const pn_json *all, const char *id)
{
    for (size_t i = 0; i < all->n; i++) {
        if (!strcmp(text_of(&all->items[i], "id"), id)) return &all->items[i];
    }
    return NULL;
}

static bool check_pair(const pn_template *t, const char *name, const pn_json *row, const pn_json *conversations)
{
    const pn_json *conversation = find_conversation(conversations, text_of(row, "c"));
    char *text = NULL, id[256];
    size_t n = 0;
    pinch_error err = {0};
    snprintf(id, sizeof id, "%s x %s", name, text_of(row, "c"));
    pinch_status st = pn_template_render(t, pn_json_member(conversation, "context"), CLOCK, &text, &n, &err);
    if (!st && pn_json_member(conversation, "continue")) n = cut_at_marker(text, n);
    if (!st && n == SIZE_MAX) st = pn_fail(&err, PINCH_ERR_FORMAT, "the message to be continued is not in the text");
    bool good = judge(id, row, st, text, n, &err);
    free(text);
    return good;
}

static void check_template(const char *folder, const char *texts, const char *name, const pn_json *conversations, int *pairs, int *bad)
{
    size_t n_source, n_rows;
    char file[300];
    snprintf(file, sizeof file, "expect_%s", name);
    char *source = read_file(texts, name, ".jinja", &n_source), *rows = read_file(folder, file, ".jsonl", &n_rows);
    pn_template *t = NULL;
    pinch_error err = {0};
    pn_json row;
    pn_arena arena;
    pn_arena_init(&arena, 1 << 28);
    if (CHECK("the template's text is there", source && rows, "%s", name) && CHECK("a real template opens", !pn_template_open(&t, source, n_source, &err), "%s: %s", name, err.message)) {
        const char *at = rows;
        while (next_line(&row, &arena, &at, rows + n_rows)) {
            ++*pairs;
            *bad += !check_pair(t, name, &row, conversations);
        }
    }
    pn_template_close(t);
    pn_arena_free(&arena);
    free(source);
    free(rows);
}

static void check_templates(const char *folder, const char *texts)
{
    size_t n_conversations, n_index;
    char *conversations_text = read_file(folder, "conversations", ".json", &n_conversations), *index_text = read_file(folder, "index", ".json", &n_index);
    pn_json conversations, index;
    pn_arena arena;
    pinch_error err = {0};
    int pairs = 0, bad = 0;
    pn_arena_init(&arena, 1 << 28);
    bool read = conversations_text && index_text && !pn_json_parse(&conversations, &arena, conversations_text, n_conversations, &err) && !pn_json_parse(&index, &arena, index_text, n_index, &err);
    if (CHECK("the reference's lists are readable", read, "%s", err.message)) {
        for (size_t i = 0; i < conversations.n; i++) {
            if (pn_json_member(&conversations.items[i], "continue")) mark_last(member(&conversations.items[i], "context"), &arena);
        }
        for (size_t i = 0; i < index.n; i++) check_template(folder, texts, text_of(&index.items[i], "name"), &conversations, &pairs, &bad);
        CHECK("templates render conversations as in the reference", !bad, "%d of %d differ", bad, pairs);
        printf("templates x conversations: %d of %d as in the reference\n", pairs - bad, pairs);
    }
    pn_arena_free(&arena);
    free(conversations_text);
    free(index_text);
}

/* ---- hostile templates -------------------------------------------------------------------------- */

static char *join_parts(const pn_json *parts, size_t *n)
{
    char *all = NULL;
    *n = 0;
    for (int pass = 0; pass < 2; pass++) {
        size_t at = 0;
        for (size_t i = 0; i < parts->n; i++) {
            const pn_json *part = &parts->items[i], *text = part->kind == PN_JSON_ARRAY ? &part->items[0] : part;
            int64_t times = part->kind == PN_JSON_ARRAY ? part->items[1].integer : 1;
            for (int64_t k = 0; k < times; k++, at += text->n) {
                if (pass) memcpy(all + at, text->text, text->n);
            }
        }
        if (!pass) all = malloc(at + 1);
        *n = at;
    }
    return all;
}

static bool judge_hostile(const pn_json *row, pinch_status st, const char *text, size_t n, const pinch_error *err)
{
    const pn_json *wanted = pn_json_member(row, "text");
    if (st) return err->message[0] != 0;
    if (!strcmp(text_of(row, "expect"), "error")) return false;
    return !wanted || (n == wanted->n && !memcmp(text, wanted->text, n));
}

static void check_hostile(const char *folder)
{
    size_t n, n_source, n_text, largest = 0;
    char *data = read_file(folder, "hostile", ".jsonl", &n);
    const char *at = data;
    pn_json row, empty = {.kind = PN_JSON_OBJECT};
    struct rusage before, after;
    pn_arena arena;
    pn_arena_init(&arena, 1 << 28);
    getrusage(RUSAGE_SELF, &before);
    double slowest = 0;
    while (data && next_line(&row, &arena, &at, data + n)) {
        char *source = join_parts(pn_json_member(&row, "parts"), &n_source), *text = NULL;
        struct timespec start, end;
        pinch_error err = {0};
        n_text = 0;
        clock_gettime(CLOCK_MONOTONIC, &start);
        pinch_status st = render_once(source, n_source, &empty, &text, &n_text, &err);
        clock_gettime(CLOCK_MONOTONIC, &end);
        double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
        const char *what = text_of(&row, "what");
        CHECK("a hostile template ends as it should", judge_hostile(&row, st, text, n_text, &err), "%s (%s): status %d, %.60s", text_of(&row, "id"), what, (int)st, st ? err.message : text);
        CHECK("a hostile template ends within a second", seconds < (getenv("PINCH_SLOW") ? 60 : 1), "%s (%s): %.2f s", text_of(&row, "id"), what, seconds);
        slowest = seconds > slowest ? seconds : slowest;
        largest = n_source > largest ? n_source : largest;
        free(source);
        free(text);
    }
    getrusage(RUSAGE_SELF, &after);
    double mib = (double)(after.ru_maxrss - before.ru_maxrss) / 1024 - (double)largest / 1048576;
    printf("hostile templates: slowest %.2f s, %.0f MiB\n", slowest, mib > 0 ? mib : 0);
    pn_arena_free(&arena);
    free(data);
}

int main(void)
{
    const char *shared = pn_shared(), *texts = getenv("PINCH_TEMPLATES");
    char folder[4096];
    if (!shared) {
        pn_skip("chat templates against the reference", "the reference data is not beside the project");
        return pn_done();
    }
    snprintf(folder, sizeof folder, "%s/golden/templates", shared);
    check_hostile(folder);
    check_units(folder);
    if (texts) check_templates(folder, texts);
    else pn_skip("templates x conversations", "PINCH_TEMPLATES does not name the folder of their texts");
    return pn_done();
}
