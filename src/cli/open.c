/* open.c - from settings to models, sessions, samplers; the memory plan as text and as JSON. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "base/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

bool cli_needs_model(const cli_settings *s)
{
    if (s->model) return true;
    cli_misuse(s, "-m FILE is missing: which model? (pinch %s --help shows examples)", s->command);
    return false;
}

pinch_session_options cli_session_options(const cli_settings *s)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = s->n_ctx;
    o.n_batch = s->n_batch;
    o.n_checkpoints = s->n_checkpoints;
    o.n_threads = s->threads;
    o.n_threads_batch = s->threads_batch;
    o.type_k = (pinch_cache_type)s->type_k;
    o.type_v = (pinch_cache_type)s->type_v;
    o.draft = (pinch_draft)s->draft;
    o.n_draft = s->n_draft;
    o.callbacks = (pinch_callbacks){.log = cli_log, .progress = s->prompt_progress ? cli_progress : NULL, .abort = cli_interrupted, .user = (void *)(uintptr_t)s};
    return o;
}

static pinch_model_options model_options(const cli_settings *s)
{
    pinch_model_options o = pinch_model_options_default();
    o.use_mapping = s->mapping;
    o.draft_block = s->draft == PINCH_DRAFT_MTP;
    o.activations = (pinch_activations)s->activations;
    o.kernels = s->kernels.items;
    o.n_kernels = s->kernels.n;
    o.n_threads = s->threads_batch ? s->threads_batch : s->threads;
    o.callbacks = (pinch_callbacks){.log = cli_log, .progress = cli_progress, .abort = cli_interrupted, .user = (void *)(uintptr_t)s};
    return o;
}

pinch_status cli_open_model(const cli_settings *s, bool vocab_only, pinch_model **out, pinch_error *err)
{
    pinch_model_options o = model_options(s);
    o.vocab_only = vocab_only;
    const pinch_status st = pinch_model_open(out, s->model, &o, err);
    cli_progress_end();
    return st;
}

pinch_status cli_plan_model(const cli_settings *s, pinch_model **out, pinch_error *err)
{
    pinch_model_options o = model_options(s);
    o.plan_only = true;
    return pinch_model_open(out, s->model, &o, err);
}

int cli_open_engine(const cli_settings *s, cli_engine *e)
{
    pinch_error err = {PINCH_OK, ""};
    *e = (cli_engine){0};
    if (!cli_needs_model(s)) return CLI_MISUSED;
    const double start = pn_now();
    const pinch_session_options session = cli_session_options(s);
    pinch_model_options model = model_options(s);
    model.planned_session = &session;
    pinch_status st = pinch_model_open(&e->model, s->model, &model, &err);
    if (!st) st = pinch_session_plan(e->model, &session, &e->plan, &err);
    if (!st) st = pinch_session_open(&e->session, e->model, &session, &err);
    cli_progress_end();
    e->load_ms = (pn_now() - start) * 1e3;
    if (!st) return CLI_DONE;
    cli_close_engine(e);
    return cli_error(s, &err);
}

void cli_close_engine(cli_engine *e)
{
    pinch_session_close(e->session);
    pinch_model_close(e->model);
    *e = (cli_engine){0};
}

/* ---- the memory plan --------------------------------------------------------------------------------------- */

void cli_put_plan(pn_json_writer *w, const pinch_memory_plan *plan)
{
    const struct {
        const char *key;
        uint64_t value;
    } members[] = {{"weights_resident", plan->weights_resident}, {"weights_mapped", plan->weights_mapped}, {"kv", plan->kv}, {"checkpoints", plan->checkpoints}, {"drafts", plan->drafts},
                   {"scratch", plan->scratch}, {"other", plan->other},
                   {"total_bytes", plan->total}, {"available_bytes", plan->available}, {"n_ctx", (uint64_t)plan->n_ctx}, {"n_batch", (uint64_t)plan->n_batch}};
    pn_json_object(w);
    for (size_t i = 0; i < PN_COUNT(members); i++) {
        pn_json_put_key(w, members[i].key);
        pn_json_uint(w, members[i].value);
    }
    pn_json_object_end(w);
}

void cli_show_plan(const pinch_memory_plan *plan)
{
    char text[64];
    const struct {
        const char *what;
        uint64_t bytes;
    } rows[] = {{"weights, packed", plan->weights_resident}, {"weights, mapped", plan->weights_mapped}, {"cache", plan->kv}, {"checkpoints", plan->checkpoints}, {"drafts", plan->drafts},
                {"scratch", plan->scratch}, {"other", plan->other}, {"together", plan->total}, {"available", plan->available}};
    cli_print("memory for a context of %" PRId32 ", batches of %" PRId32 "\n", plan->n_ctx, plan->n_batch);
    for (size_t i = 0; i < PN_COUNT(rows); i++) cli_print("  %-18s %12s\n", rows[i].what, rows[i].bytes == UINT64_MAX ? "unknown" : cli_bytes(text, rows[i].bytes));
}

int cli_print_plan(const cli_settings *s)
{
    pinch_error err = {PINCH_OK, ""};
    pinch_model *model = NULL;
    pinch_memory_plan plan;
    if (!cli_needs_model(s)) return CLI_MISUSED;
    const pinch_session_options session = cli_session_options(s);
    pinch_status st = cli_plan_model(s, &model, &err);
    if (st) return cli_error(s, &err);
    st = pinch_session_plan(model, &session, &plan, &err);
    pinch_model_close(model);
    if (st && plan.total == 0) return cli_error(s, &err);
    pn_json_writer w = {0};
    if (s->json) cli_put_plan(&w, &plan);
    else cli_show_plan(&plan);
    const int status = s->json ? cli_write_json(s, &w) : cli_flush(s);
    return st ? cli_error(s, &err) : status;
}

/* ---- drafts --------------------------------------------------------------------------------------------------- */

double cli_token_speed(const pinch_generate_result *result, double seconds) { return seconds > 0 && result->n_tokens > 1 ? (result->n_tokens - 1) / seconds : 0; }

const char *cli_draft_text(char text[192], const pinch_draft_stats *d)
{
    char a[64], b[64];
    const int n = snprintf(text, 192, "drafts: %" PRId32 " of %" PRId32 " tokens accepted%s", d->n_accepted, d->n_drafted, d->given_up ? ", given up" : "");
    if (d->draft_ms > 0) snprintf(text + n, 192 - (size_t)n, "; a token takes %s ms with them, %s ms without", cli_fixed(a, d->draft_ms, 2), cli_fixed(b, d->plain_ms, 2));
    return text;
}

void cli_put_drafts(pn_json_writer *w, const cli_settings *s, const pinch_draft_stats *d)
{
    pn_json_put_key(w, "spec");
    if (!s->draft) {
        pn_json_null(w);
        return;
    }
    pn_json_object(w);
    pn_json_put_key(w, "kind");
    pn_json_cstring(w, cli_draft_kinds[s->draft]);
    pn_json_put_key(w, "drafted");
    pn_json_int(w, d->n_drafted);
    pn_json_put_key(w, "accepted");
    pn_json_int(w, d->n_accepted);
    pn_json_put_key(w, "given_up");
    pn_json_bool(w, d->given_up);
    pn_json_put_key(w, "token_ms");
    pn_json_double(w, d->draft_ms);
    pn_json_put_key(w, "plain_token_ms");
    pn_json_double(w, d->plain_ms);
    pn_json_object_end(w);
}

/* ---- samplers ------------------------------------------------------------------------------------------------- */

static uint64_t new_seed(void)
{
    uint64_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed) seed = (uint64_t)(pn_now() * 1e9);
    return seed >> 11; /* 53 bits: JSON readers that know doubles only keep it whole */
}

/* "ID+X" or "ID-X": the sign belongs to X. */
static bool parse_bias(const char *text, pinch_logit_bias *out)
{
    const size_t n = strlen(text), digits = strspn(text, "0123456789");
    int64_t id;
    double bias;
    if (digits == 0 || (text[digits] != '+' && text[digits] != '-')) return false;
    if (pn_parse_int64(text, digits, &id) != digits || id > INT32_MAX) return false;
    if (pn_parse_double(text + digits, n - digits, &bias) != n - digits || bias > 3.4e38 || isnan(bias)) return false;
    *out = (pinch_logit_bias){(pinch_token)id, bias < -3.4e38 ? -INFINITY : (float)bias};
    return true;
}

/* "none" clears the list; the library's default where nothing was given. */
static void take_breakers(const cli_settings *s, pinch_sampler_options *o)
{
    if (s->breakers.n == 0) return;
    size_t first = 0;
    for (size_t i = 0; i < s->breakers.n; i++) {
        if (!strcmp(s->breakers.items[i], "none")) first = i + 1;
    }
    o->dry_breakers = s->breakers.items + first;
    o->n_dry_breakers = s->breakers.n - first;
}

int cli_open_sampler(cli_settings *s, const pinch_model *model, pinch_sampler **out)
{
    pinch_error err = {PINCH_OK, ""};
    pinch_sampler_options o = s->sampling;
    if (!s->seed_given) s->seed = new_seed();
    o.seed = s->seed;
    take_breakers(s, &o);
    pinch_logit_bias *bias = pn_alloc(s->logit_bias.n, sizeof *bias);
    if (!bias) return cli_fail(s, "out of memory");
    for (size_t i = 0; i < s->logit_bias.n; i++) {
        if (parse_bias(s->logit_bias.items[i], &bias[i])) continue;
        cli_misuse(s, "--logit-bias %s: a token id and a signed number are wanted, such as 15043+1 or 15043-inf", s->logit_bias.items[i]);
        free(bias);
        return CLI_MISUSED;
    }
    o.logit_bias = bias;
    o.n_logit_bias = s->logit_bias.n;
    const pinch_status st = pinch_sampler_open(out, model, &o, &err);
    free(bias);
    if (!st) return CLI_DONE;
    cli_error(s, &err);
    return st == PINCH_ERR_ARGUMENT ? CLI_MISUSED : CLI_FAILED;
}
