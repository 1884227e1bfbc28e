/* cmd_info.c - `pinch info`: what is in a model file, what runs it here, and what memory it takes. */
#include "cli/cli.h"

#include "base/cpu.h"
#include "engine/engine.h"
#include "gguf/gguf.h"

#include <stddef.h>
#include <stdlib.h>

static const cli_group *const groups[] = {&cli_model_group, &cli_context_group, &cli_compute_group, &cli_draft_group, &cli_output_group, NULL};
static const cli_example examples[] = {
    {"pinch info -m model.gguf", "metadata, tensors, kernels and memory"},
    {"pinch info -m model.gguf -c 256 --json", "the same for scripts, planned for a context of 256"},
    {"pinch info -m model.gguf -c 256 --plan", "memory, layer by layer, and what is alive where the plan can be cut"},
};

/* ---- what the file is asked for --------------------------------------------------------------------------- */

typedef struct info {
    const cli_settings *s;
    pn_gguf *file;
    pinch_model *model;      /* NULL: nothing here runs it, err says why */
    pinch_session_options session;
    pinch_memory_plan plan;  /* of such a session; total 0: none */
    pinch_error err, plan_err;
} info;

typedef struct type_total {
    uint64_t tensors, elements, bytes;
} type_total;

static uint64_t elements(const pn_tensor *t) { return (uint64_t)t->ne[0] * (uint64_t)t->ne[1] * (uint64_t)t->ne[2] * (uint64_t)t->ne[3]; }

static void add_types(const pn_gguf *g, type_total totals[PN_TYPE_COUNT])
{
    for (size_t i = 0; i < pn_gguf_n_tensors(g); i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        type_total *total = &totals[t->type];
        total->tensors++;
        total->elements += elements(t);
        total->bytes += t->bytes;
    }
}

/* What computes with weights of a type; NULL: they never meet a kernel, or the model does not run. */
static const char *kernel_name(const info *x, pn_type type)
{
    const pn_kernel *kernel = x->model ? pn_model_kernel(x->model, type) : pn_kernel_best(type, pn_cpu_features());
    return kernel ? kernel->name : NULL;
}

/* ---- JSON -------------------------------------------------------------------------------------------------- */

enum { SHOWN_ITEMS = 16 }; /* of a metadata array; vocabularies have a quarter of a million */

static void put_scalar(pn_json_writer *w, const pn_gguf_value *v, pn_gguf_kind kind, uint64_t i)
{
    int64_t integer;
    double number;
    if (kind == PN_GGUF_BOOL) pn_json_bool(w, v->data[i] != 0);
    else if (kind != PN_GGUF_F32 && kind != PN_GGUF_F64 && pn_gguf_int_at(v, i, &integer)) pn_json_int(w, integer);
    else if (kind == PN_GGUF_F32 && pn_gguf_float_at(v, i, &number)) pn_json_float(w, (float)number);
    else if (pn_gguf_float_at(v, i, &number)) pn_json_double(w, number);
    else pn_json_null(w);
}

static void put_items(pn_json_writer *w, const pn_gguf_value *v, pn_gguf_kind kind, uint64_t n)
{
    uint64_t cursor = 0;
    pn_str text;
    for (uint64_t i = 0; i < n; i++) {
        if (kind != PN_GGUF_STRING) put_scalar(w, v, kind, i);
        else if (pn_gguf_next_string(v, &cursor, &text)) pn_json_string(w, text.p, text.n);
    }
}

/* A long array becomes {"count", "first"}. */
static void put_value(pn_json_writer *w, const pn_gguf_value *v)
{
    if (v->kind != PN_GGUF_ARRAY) {
        put_items(w, v, v->kind, 1);
        return;
    }
    const bool is_long = v->count > SHOWN_ITEMS;
    if (is_long) {
        pn_json_object(w);
        pn_json_put_key(w, "count");
        pn_json_uint(w, v->count);
        pn_json_put_key(w, "first");
    }
    pn_json_array(w);
    put_items(w, v, v->item, is_long ? SHOWN_ITEMS : v->count);
    pn_json_array_end(w);
    if (is_long) pn_json_object_end(w);
}

static void put_metadata(pn_json_writer *w, const pn_gguf *g)
{
    pn_json_put_key(w, "metadata");
    pn_json_object(w);
    for (size_t i = 0; i < pn_gguf_n_values(g); i++) {
        const pn_gguf_value *v = pn_gguf_value_at(g, i);
        char key[1024];
        const size_t n = v->key.n < sizeof key ? v->key.n : sizeof key - 1;
        memcpy(key, v->key.p, n);
        key[n] = 0;
        pn_json_put_key(w, key);
        put_value(w, v);
    }
    pn_json_object_end(w);
}

static void put_tensors(pn_json_writer *w, const pn_gguf *g)
{
    pn_json_put_key(w, "tensors");
    pn_json_array(w);
    for (size_t i = 0; i < pn_gguf_n_tensors(g); i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        pn_json_object(w);
        pn_json_put_key(w, "name");
        pn_json_string(w, t->name.p, t->name.n);
        pn_json_put_key(w, "type");
        pn_json_cstring(w, pn_type_get((uint32_t)t->type)->name);
        pn_json_put_key(w, "shape");
        pn_json_array(w);
        for (int d = 0; d < t->n_dims; d++) pn_json_int(w, t->ne[d]);
        pn_json_array_end(w);
        pn_json_put_key(w, "bytes");
        pn_json_uint(w, t->bytes);
        pn_json_object_end(w);
    }
    pn_json_array_end(w);
}

static void put_types(pn_json_writer *w, const info *x, const type_total totals[PN_TYPE_COUNT])
{
    pn_json_put_key(w, "types");
    pn_json_object(w);
    for (uint32_t i = 0; i < PN_TYPE_COUNT; i++) {
        if (totals[i].tensors == 0) continue;
        pn_json_put_key(w, pn_type_get(i)->name);
        pn_json_object(w);
        pn_json_put_key(w, "tensors");
        pn_json_uint(w, totals[i].tensors);
        pn_json_put_key(w, "params");
        pn_json_uint(w, totals[i].elements);
        pn_json_put_key(w, "bytes");
        pn_json_uint(w, totals[i].bytes);
        pn_json_object_end(w);
    }
    pn_json_object_end(w);
    pn_json_put_key(w, "kernels");
    pn_json_object(w);
    for (uint32_t i = 0; i < PN_TYPE_COUNT; i++) {
        const char *name = totals[i].tensors ? kernel_name(x, (pn_type)i) : NULL;
        if (!name) continue;
        pn_json_put_key(w, pn_type_get(i)->name);
        pn_json_cstring(w, name);
    }
    pn_json_object_end(w);
}

static uint64_t parameters(const pn_gguf *g)
{
    uint64_t n = 0;
    for (size_t i = 0; i < pn_gguf_n_tensors(g); i++) n += elements(pn_gguf_tensor_at(g, i));
    return n;
}

static pn_str string_of(const pn_gguf *g, const char *key)
{
    pn_str text = {"", 0};
    bool found;
    if (pn_gguf_get_string(g, key, &text, &found, NULL) || !found) return (pn_str){"", 0};
    return text;
}

static int print_json(const info *x, const type_total totals[PN_TYPE_COUNT])
{
    pn_json_writer w = {0};
    const pn_str arch = string_of(x->file, "general.architecture");
    pn_json_object(&w);
    pn_json_put_key(&w, "arch");
    pn_json_string(&w, arch.p, arch.n);
    pn_json_put_key(&w, "params");
    pn_json_uint(&w, parameters(x->file));
    pn_json_put_key(&w, "files");
    pn_json_int(&w, pn_gguf_n_parts(x->file));
    pn_json_put_key(&w, "runs");
    pn_json_bool(&w, x->model != NULL);
    if (!x->model) {
        pn_json_put_key(&w, "why_not");
        pn_json_cstring(&w, x->err.message);
    }
    put_tensors(&w, x->file);
    put_metadata(&w, x->file);
    put_types(&w, x, totals);
    pn_json_put_key(&w, "plan");
    if (x->plan.total) cli_put_plan(&w, &x->plan);
    else pn_json_null(&w);
    if (x->plan.total) cli_put_layers(&w, x->model, &x->plan);
    pn_json_object_end(&w);
    return cli_write_json(x->s, &w);
}

/* ---- text --------------------------------------------------------------------------------------------------- */

static void print_value(const pn_gguf_value *v)
{
    pn_json_writer w = {0};
    put_value(&w, v);
    const size_t shown = w.n < 100 ? w.n : 100;
    cli_print("  ");
    cli_write_safe(v->key.p, v->key.n);
    cli_print(" = ");
    if (shown) cli_write_safe(w.data, shown);
    cli_print("%s\n", shown < w.n ? " ..." : "");
    pn_json_writer_free(&w);
}

static void print_types(const info *x, const type_total totals[PN_TYPE_COUNT])
{
    char a[64], b[64];
    if (pn_gguf_n_tensors(x->file) == 0) return;
    cli_print("\n%-8s %8s %14s %12s  kernel\n", "type", "tensors", "parameters", "size");
    for (uint32_t i = 0; i < PN_TYPE_COUNT; i++) {
        if (totals[i].tensors == 0) continue;
        const char *kernel = kernel_name(x, (pn_type)i);
        cli_print("%-8s %8" PRIu64 " %12s M %12s  %s\n", pn_type_get(i)->name, totals[i].tensors, cli_fixed(a, (double)totals[i].elements / 1e6, 2), cli_bytes(b, totals[i].bytes),
                  kernel ? kernel : "exact");
    }
}

static void print_tensors(const pn_gguf *g)
{
    char a[64];
    cli_print("\ntensors\n");
    for (size_t i = 0; i < pn_gguf_n_tensors(g); i++) {
        const pn_tensor *t = pn_gguf_tensor_at(g, i);
        cli_print("  ");
        cli_write_safe(t->name.p, t->name.n);
        cli_print("%*s %-8s %12s  [", t->name.n < 40 ? (int)(40 - t->name.n) : 0, "", pn_type_get((uint32_t)t->type)->name, cli_bytes(a, t->bytes));
        for (int d = 0; d < t->n_dims; d++) cli_print("%s%" PRId64, d ? ", " : "", t->ne[d]);
        cli_print("]\n");
    }
}

/* Whether a seed means the same on every machine: only BOUNDED kernels could differ. */
static void print_promise(const info *x, const type_total totals[PN_TYPE_COUNT])
{
    for (uint32_t i = 0; i < PN_TYPE_COUNT; i++) {
        const pn_kernel *kernel = totals[i].tensors ? pn_model_kernel(x->model, (pn_type)i) : NULL;
        if (kernel && kernel->promise == PN_BOUNDED) {
            cli_print("exactness     %s rounds differently from other kernels: a seed may give other text on other machines\n", kernel->name);
            return;
        }
    }
    cli_print("exactness     bit for bit: a seed gives the same text on every machine\n");
}

static int print_text(const info *x, const type_total totals[PN_TYPE_COUNT])
{
    const pn_gguf *g = x->file;
    const pn_str arch = string_of(g, "general.architecture"), name = string_of(g, "general.name");
    uint64_t bytes = 0;
    char a[64];
    for (int i = 0; i < pn_gguf_n_parts(g); i++) bytes += pn_file_size(pn_gguf_file(g, i));
    cli_print("file          %s (GGUF %" PRIu32 ", %s", pn_gguf_name(g), pn_gguf_version(g), cli_bytes(a, bytes));
    if (pn_gguf_n_parts(g) > 1) cli_print(" in %d files", pn_gguf_n_parts(g));
    cli_print(")\nmodel         ");
    cli_write_safe(name.p, name.n);
    if (name.n) cli_print(", ");
    cli_write_safe(arch.p, arch.n);
    cli_print(", %s M parameters\n", cli_fixed(a, (double)parameters(g) / 1e6, 1));
    if (x->model) cli_print("runs          yes\n");
    else cli_print("runs          no: %s\n", x->err.message);
    if (x->model) print_promise(x, totals);
    print_types(x, totals);
    if (x->s->verbose) print_tensors(g);
    cli_print("\nmetadata\n");
    for (size_t i = 0; i < pn_gguf_n_values(g); i++) print_value(pn_gguf_value_at(g, i));
    if (x->plan.total) {
        cli_print("\n");
        cli_show_plan(&x->plan);
        if (x->plan_err.message[0]) cli_print("  does not fit: %s\n", x->plan_err.message);
    }
    return cli_flush(x->s);
}

/* Who asks for the plan learns by the status that there is none, or that it does not fit. */
static int plan_status(const info *x)
{
    if (!x->plan.total) return cli_error(x->s, x->model ? &x->plan_err : &x->err);
    return x->plan_err.status ? cli_error(x->s, &x->plan_err) : CLI_DONE;
}

/* The plan alone. */
static int print_plan(const info *x)
{
    if (!x->plan.total) return CLI_DONE;
    cli_show_plan(&x->plan);
    cli_show_layers(x->model, &x->plan);
    return cli_flush(x->s);
}

static int print(const info *x, const type_total totals[PN_TYPE_COUNT])
{
    if (x->err.status == PINCH_ERR_ARGUMENT) return cli_error(x->s, &x->err); /* a wrong --kernel, say */
    const int status = x->s->json ? print_json(x, totals) : x->s->plan ? print_plan(x) : print_text(x, totals);
    return status == CLI_DONE && x->s->plan ? plan_status(x) : status;
}

static int run(cli_settings *s)
{
    info x = {.s = s, .session = cli_session_options(s)};
    type_total totals[PN_TYPE_COUNT] = {0};
    if (!cli_needs_model(s)) return CLI_MISUSED;
    if (pn_gguf_open(&x.file, s->model, &x.err)) return cli_error(s, &x.err);
    add_types(x.file, totals);
    if (cli_plan_model(s, &x.model, &x.err) == PINCH_OK) pinch_session_plan(x.model, &x.session, &x.plan, &x.plan_err);
    const int status = print(&x, totals);
    pinch_model_close(x.model);
    pn_gguf_close(x.file);
    return status;
}

const cli_command cli_info = {"info", "shows what is in a model file", "Shows what is in a model file, whether and with which kernels it runs here, and what memory it takes.", groups, examples,
                              PN_COUNT(examples), run};
