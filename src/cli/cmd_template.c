/* cmd_template.c - `pinch template`: renders a chat template with the variables of a JSON file. */
#include "cli/cli.h"

#include "engine/engine.h"

#include <stddef.h>
#include <stdlib.h>

static const cli_option options[] = {
    {{"--template"}, "FILE", CLI_TEXT, CLI_FIELD(template_file), 0, 0, NULL, "Jinja template to render.", "the model's own, with -m"},
    {{"--input"}, "FILE", CLI_TEXT, CLI_FIELD(input), 0, 0, NULL, "JSON object of exactly the variables that the template sees; - is standard input.", "-"},
    {{"--now"}, "TIME", CLI_TEXT, CLI_FIELD(now), 0, 0, NULL, "Time for strftime_now, such as 2026-01-02T03:04:05.", "the clock"},
};
static const cli_group own = {"Template", options, PN_COUNT(options)};
static const cli_group *const groups[] = {&cli_model_group, &own, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch template --template template.jinja --input chat.json", "render a template file"},
    {"pinch template --template template.jinja --input chat.json --now 2026-01-02T03:04:05 --json", "at a given time, as JSON"},
};

static bool digits_at(const char *text, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *out = *out * 10 + text[i] - '0';
    }
    return true;
}

/* Days since 1970-01-01 of the Gregorian calendar, years counted from March so that the leap day comes last. */
static int64_t days_from(int year, int month, int day)
{
    const int64_t y = year - (month <= 2), era = y / 400, of_era = y - era * 400;
    const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

/* 2026-01-02T03:04:05, as local time without a zone. */
static bool parse_time(const char *text, int64_t *out)
{
    int year, month, day, hour, minute, second;
    if (strlen(text) != 19 || text[4] != '-' || text[7] != '-' || (text[10] != 'T' && text[10] != ' ') || text[13] != ':' || text[16] != ':') return false;
    if (!digits_at(text, 4, &year) || !digits_at(text + 5, 2, &month) || !digits_at(text + 8, 2, &day)) return false;
    if (!digits_at(text + 11, 2, &hour) || !digits_at(text + 14, 2, &minute) || !digits_at(text + 17, 2, &second)) return false;
    if (month < 1 || month > 12 || day < 1 || day > days_in(year, month) || hour > 23 || minute > 59 || second > 59) return false;
    *out = days_from(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return true;
}

static bool read_template(const cli_settings *s, cli_text *out)
{
    static const char key[] = "tokenizer.chat_template";
    pinch_error err = {PINCH_OK, ""};
    pinch_model *model = NULL;
    if (s->template_file) return cli_read_file(s, s->template_file, out);
    if (cli_open_model(s, true, &model, &err)) return cli_error(s, &err), false;
    const int64_t n = pinch_model_meta(model, key, NULL, 0);
    if (n < 0) {
        cli_fail(s, "%s: holds no chat template (%s)", s->model, key);
    } else if ((out->data = pn_alloc((uint64_t)n + 1, 1)) == NULL) {
        cli_fail(s, "out of memory for a template of %" PRId64 " bytes", n);
    } else {
        pinch_model_meta(model, key, out->data, (size_t)n + 1);
        out->n = (size_t)n;
    }
    pinch_model_close(model);
    return out->data != NULL;
}

static int render(const cli_settings *s, const cli_text *template, const cli_text *input, int64_t now)
{
    pinch_error err = {PINCH_OK, ""};
    cli_text text = {NULL, 0};
    if (pn_text_template(template->data, template->n, input->data, input->n, now, &text.data, &text.n, &err)) return cli_error(s, &err);
    const int status = cli_give_text(s, text.data, text.n, false);
    free(text.data);
    return status;
}

static int run(cli_settings *s)
{
    cli_text template = {NULL, 0}, input = {NULL, 0};
    int64_t now = INT64_MIN;
    if (!s->template_file && !s->model) return cli_misuse(s, "--template FILE or -m FILE is wanted: which template?");
    if (s->now && !parse_time(s->now, &now)) return cli_misuse(s, "--now %s: a time such as 2026-01-02T03:04:05 is wanted", s->now);
    int status = CLI_FAILED;
    if (read_template(s, &template) && cli_read_file(s, s->input ? s->input : "-", &input)) status = render(s, &template, &input, now);
    free(template.data);
    free(input.data);
    return status;
}

const cli_command cli_template = {"template", "renders a chat template", "Renders a chat template byte for byte as its model expects it, nothing added.", groups, examples, PN_COUNT(examples), run};
