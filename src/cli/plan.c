/* plan.c - what `pinch info` tells of a plan beyond the memory that it takes together: each layer's share of a sequence, and where the plan can be cut,
 * with everything that the second part needs of the first. Computes nothing that graph and state do not say. */
#include "cli/cli.h"

#include "engine/engine.h"

#include <stdlib.h>

/* A layer, and the plan cut behind it. */
typedef struct layer {
    pn_layer_memory memory;
    int32_t window;         /* 0: keys and values of all positions */
    int cut;                /* first step behind it; 0: not a place to cut */
    pn_buffer_set alive;    /* there */
    int32_t shared_until;   /* cuts behind layers from this one to that leave the keys and values of this one to be read; -1: no other layer reads them */
} layer;

typedef struct view {
    const pn_plan *plan;
    int32_t n;
    layer *layers;          /* [n], owned; NULL: out of memory */
} view;

static void look_at(const view *v, int32_t index, const pn_state_options *state)
{
    layer *l = &v->layers[index];
    const int cut = pn_plan_cut(v->plan, index);
    l->window = v->plan->shapes[index].window;
    l->shared_until = -1;
    pn_state_layer_memory(state, index, &l->memory);
    if (cut == 0 || pn_plan_cut(v->plan, index + 1) == 0) return; /* no layer behind it: that of a block that drafts tokens has no steps here */
    l->cut = cut;
    l->alive = v->plan->steps[cut - 1].alive;
}

static view view_open(const pinch_model *m, const pinch_memory_plan *memory)
{
    const pn_plan *plan = &m->network.plan;
    const pn_state_options state = {.layers = plan->shapes, .n_layers = plan->n_layers, .n_seq = 1, .n_ctx = memory->n_ctx, .n_batch = memory->n_batch,
                                    .type_k = memory->type_k, .type_v = memory->type_v};
    const view v = {.plan = plan, .n = plan->n_layers, .layers = pn_alloc_zero((uint64_t)plan->n_layers, sizeof *v.layers)};
    if (!v.layers) return (view){0};
    for (int32_t i = 0; i < v.n; i++) look_at(&v, i, &state);
    for (int32_t i = 0; i < v.n; i++)
        for (int32_t behind = i; behind < v.n && v.layers[behind].cut && pn_plan_shares_keys(plan, v.layers[behind].cut, i); behind++) v.layers[i].shared_until = behind;
    return v;
}

/* Whether a cut behind layer `behind` has to carry the new keys and values of layer `of`. */
static bool carries(const view *v, int32_t behind, int32_t of) { return of <= behind && behind <= v->layers[of].shared_until; }

static uint64_t cut_bytes(const view *v, int32_t behind)
{
    uint64_t bytes = 0;
    for (int b = 0; b < v->plan->n_buffers; b++)
        if (v->layers[behind].alive & pn_buffer_bit(b)) bytes += (uint64_t)v->plan->buffers[b].width * sizeof(float);
    for (int32_t i = 0; i <= behind; i++)
        if (carries(v, behind, i)) bytes += v->layers[i].memory.position;
    return bytes;
}

/* A sequence's bytes: of each position while it grows, and of what has its size from the start. */
static void sequence_bytes(const view *v, uint64_t *position, uint64_t *fixed, uint64_t *total)
{
    *position = *fixed = *total = 0;
    for (int32_t i = 0; i < v->n; i++) {
        const layer *l = &v->layers[i];
        *total += l->memory.kv + l->memory.recurrent;
        *fixed += l->memory.recurrent + (l->window ? l->memory.kv : 0);
        *position += l->window ? 0 : l->memory.position;
    }
}

/* ---- JSON ---------------------------------------------------------------------------------------------------- */

static void put_number(pn_json_writer *w, const char *key, uint64_t value)
{
    pn_json_put_key(w, key);
    pn_json_uint(w, value);
}

static void put_memory(pn_json_writer *w, const view *v)
{
    uint64_t position, fixed, total;
    sequence_bytes(v, &position, &fixed, &total);
    pn_json_put_key(w, "sequence");
    pn_json_object(w);
    put_number(w, "bytes", total);
    put_number(w, "position_bytes", position);
    put_number(w, "fixed_bytes", fixed);
    pn_json_put_key(w, "layers");
    pn_json_array(w);
    for (int32_t i = 0; i < v->n; i++) {
        const layer *l = &v->layers[i];
        pn_json_object(w);
        put_number(w, "layer", (uint64_t)i);
        put_number(w, "positions", (uint64_t)l->memory.cells);
        put_number(w, "window", (uint64_t)l->window);
        put_number(w, "position_bytes", l->memory.position);
        put_number(w, "kv_bytes", l->memory.kv);
        put_number(w, "recurrent_bytes", l->memory.recurrent);
        pn_json_object_end(w);
    }
    pn_json_array_end(w);
    pn_json_object_end(w);
}

static void put_cut(pn_json_writer *w, const view *v, int32_t behind)
{
    pn_json_object(w);
    put_number(w, "layer", (uint64_t)behind);
    put_number(w, "row_bytes", cut_bytes(v, behind));
    pn_json_put_key(w, "alive");
    pn_json_object(w);
    for (int b = 0; b < v->plan->n_buffers; b++)
        if (v->layers[behind].alive & pn_buffer_bit(b)) put_number(w, v->plan->buffers[b].name, (uint64_t)v->plan->buffers[b].width);
    pn_json_object_end(w);
    pn_json_put_key(w, "keys_and_values_of");
    pn_json_array(w);
    for (int32_t i = 0; i <= behind; i++)
        if (carries(v, behind, i)) pn_json_uint(w, (uint64_t)i);
    pn_json_array_end(w);
    pn_json_object_end(w);
}

void cli_put_layers(pn_json_writer *w, const pinch_model *model, const pinch_memory_plan *plan)
{
    const view v = view_open(model, plan);
    if (!v.layers) return;
    put_memory(w, &v);
    pn_json_put_key(w, "cuts");
    pn_json_array(w);
    for (int32_t i = 0; i < v.n; i++)
        if (v.layers[i].cut) put_cut(w, &v, i);
    pn_json_array_end(w);
    free(v.layers);
}

/* ---- text: layers that are alike share a line ------------------------------------------------------------------- */

typedef bool (*alike_fn)(const view *v, int32_t a, int32_t b);

static bool same_memory(const view *v, int32_t a, int32_t b)
{
    const layer *x = &v->layers[a], *y = &v->layers[b];
    return x->memory.cells == y->memory.cells && x->window == y->window && x->memory.position == y->memory.position && x->memory.recurrent == y->memory.recurrent;
}

static bool same_cut(const view *v, int32_t a, int32_t b)
{
    bool same = !v->layers[a].cut == !v->layers[b].cut && v->layers[a].alive == v->layers[b].alive;
    for (int32_t i = 0; i < v->n && same; i++) same = carries(v, a, i) == carries(v, b, i);
    return same;
}

static bool stands_already(const view *v, alike_fn alike, int32_t of)
{
    int32_t i = 0;
    while (i < of && !alike(v, i, of)) i++;
    return i < of;
}

/* "0-2, 4": the layers that are like `first`, which is the first of them. */
static void show_alike(const view *v, alike_fn alike, int32_t first)
{
    for (int32_t i = first; i < v->n; i++) {
        if (!alike(v, first, i)) continue;
        const int32_t begin = i;
        while (i + 1 < v->n && alike(v, first, i + 1)) i++;
        cli_print("%s%" PRId32, begin == first ? "" : ", ", begin);
        if (i > begin) cli_print("-%" PRId32, i);
    }
}

static void show_memory(const view *v)
{
    uint64_t position, fixed, total;
    sequence_bytes(v, &position, &fixed, &total);
    cli_print("\na sequence of it: %" PRIu64 " bytes, of which each position takes %" PRIu64 " and %" PRIu64 " are fixed\n", total, position, fixed);
    cli_print("  %10s %10s %12s %12s  layers\n", "positions", "bytes each", "together", "recurrent");
    for (int32_t i = 0; i < v->n; i++) {
        const layer *l = &v->layers[i];
        if (stands_already(v, same_memory, i)) continue;
        cli_print("  %10" PRId32 " %10" PRIu64 " %12" PRIu64 " %12" PRIu64 "  ", l->memory.cells, l->memory.position, l->memory.kv, l->memory.recurrent);
        show_alike(v, same_memory, i);
        if (l->window) cli_print(" (a window of %" PRId32 ")", l->window);
        cli_print("\n");
    }
}

static void show_cuts(const view *v)
{
    if (v->n < 2) return;
    cli_print("\nalive where the plan is cut, bytes a row\n");
    for (int32_t i = 0; i < v->n; i++) {
        if (!v->layers[i].cut || stands_already(v, same_cut, i)) continue;
        cli_print("  %10" PRIu64 "  behind layer ", cut_bytes(v, i));
        show_alike(v, same_cut, i);
        const char *before = ": ";
        for (int b = 0; b < v->plan->n_buffers; b++) {
            if (!(v->layers[i].alive & pn_buffer_bit(b))) continue;
            cli_print("%s%s %" PRIu64, before, v->plan->buffers[b].name, (uint64_t)v->plan->buffers[b].width * sizeof(float));
            before = ", ";
        }
        for (int32_t of = 0; of <= i; of++)
            if (carries(v, i, of)) cli_print(", keys and values of layer %" PRId32 " %" PRIu64, of, v->layers[of].memory.position);
        cli_print("\n");
    }
}

void cli_show_layers(const pinch_model *model, const pinch_memory_plan *plan)
{
    const view v = view_open(model, plan);
    if (!v.layers) return;
    show_memory(&v);
    show_cuts(&v);
    free(v.layers);
}
