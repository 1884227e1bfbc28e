/* Caches: sizes as the formula says, rings that keep exactly what a window needs, what is stored comes back, going back is answered honestly. */
#include "kernels/kernels.h"
#include "state/state.h"
#include "test.h"

#include <math.h>

enum { D = 64, HEADS = 2, CTX = 200, BATCH = 8, WINDOW = 20 };

static const pn_layer_shape shapes[] = {{HEADS, D, D, 0, 0}, {HEADS, D, D, WINDOW, 0}, {0, 0, 0, 0, 0}};

static pn_state *open_state(pinch_cache_type k, pinch_cache_type v, int32_t n_seq)
{
    pn_state *s = NULL;
    pinch_error err = {0};
    const pn_state_options o = {.layers = shapes, .n_layers = 3, .n_seq = n_seq, .n_ctx = CTX, .n_batch = BATCH, .type_k = k, .type_v = v};
    CHECK("state opens", pn_state_open(&s, &o, &err) == PINCH_OK, "%s", err.message);
    return s;
}

static void sizes(void)
{
    uint64_t bytes = 0;
    const pn_state_options o = {.layers = shapes, .n_layers = 3, .n_seq = 3, .n_ctx = CTX, .n_batch = BATCH, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16};
    const uint64_t whole = 208, ring = 32; /* 200 and 20 - 1 + 8 positions in tiles of 16 */
    CHECK("bytes are counted", pn_state_bytes(&o, &bytes), "overflow");
    CHECK("a whole layer holds the context, a ring window - 1 + batch, no layer without heads anything", bytes == 3 * (whole + ring) * HEADS * D * 2 * 2, "%llu", (unsigned long long)bytes);
    pn_state_options huge = o;
    huge.n_ctx = INT32_MAX / 4;
    huge.n_seq = INT32_MAX;
    CHECK("a size beyond 64 bits is refused", !pn_state_bytes(&huge, &bytes), "%llu", (unsigned long long)bytes);
}

static float element(int32_t head, int32_t position, int32_t i) { return sinf((float)(head * 7919 + position * 131 + i)) * 3.0f; }

/* dot(q, K) and p * V through the scalar operations find what was stored. */
static void stored(pinch_cache_type type, double tolerance)
{
    const pn_ops *ops = pn_ops_at(0, 0);
    pn_state *s = open_state(type, type, 2);
    if (!s) return;
    const int32_t layer = 1, seq = 1, positions = 100;
    const pn_kv kv = pn_state_kv(s, layer, seq);
    float x[D];
    for (int32_t p = 0; p < positions; p++)
        for (int32_t h = 0; h < HEADS; h++) {
            for (int32_t i = 0; i < D; i++) x[i] = element(h, p, i);
            pn_kv_store_k(&kv, ops, h, p, x);
            pn_kv_store_v(&kv, ops, h, p, x);
        }
    double worst = 0;
    for (int32_t p = positions - WINDOW; p < positions; p++) { /* what the ring must still hold */
        const int32_t cell = p % kv.cells;
        float q[D] = {0}, score[PN_TILE], weight = 1.0f, o[D] = {0};
        float *out = o;
        const float *query = q;
        for (int32_t i = 0; i < D; i++) {
            q[i] = 1.0f;
            ops->qk[type](score, PN_TILE, kv.k + kv.k_head + (size_t)(cell / PN_TILE) * kv.tile_bytes, kv.tile_bytes, 1, &query, 1, D);
            q[i] = 0.0f;
            worst = fmax(worst, fabs((double)score[cell % PN_TILE] - (double)element(1, p, i)));
        }
        ops->pv[type](&out, &weight, 1, kv.v + kv.v_head + (size_t)cell * kv.row_bytes, kv.row_bytes, 1, 1, D);
        for (int32_t i = 0; i < D; i++) worst = fmax(worst, fabs((double)o[i] - (double)element(1, p, i)));
    }
    CHECK("what is stored comes back", worst <= tolerance, "cache type %d: %g off", (int)type, worst);
    pn_state_close(s);
}

static void going_back(void)
{
    pn_state *s = open_state(PINCH_CACHE_F32, PINCH_CACHE_F32, 2);
    if (!s) return;
    pn_state_advance(s, 0, 25);
    CHECK("nothing lost yet", pn_state_can_rewind(s, 0, 3) == 3, "%d", (int)pn_state_can_rewind(s, 0, 3));
    pn_state_advance(s, 0, 25); /* 50 stored, the ring's 32 cells hold 18 .. 49 */
    CHECK("a window of 20 before 37 begins at 18: kept", pn_state_can_rewind(s, 0, 37) == 37, "%d", (int)pn_state_can_rewind(s, 0, 37));
    CHECK("one before is lost", pn_state_can_rewind(s, 0, 36) == 0, "%d", (int)pn_state_can_rewind(s, 0, 36));
    pn_state_rewind(s, 0, 40);
    pn_state_touch(s, 0, 12); /* a batch that failed: 40 .. 51 were written, 18 and 19 are gone */
    CHECK("what a failed batch overwrote is lost", pn_state_can_rewind(s, 0, 38) == 0 && pn_state_can_rewind(s, 0, 39) == 39, "%d", (int)pn_state_can_rewind(s, 0, 38));
    CHECK("going on is always possible", pn_state_can_rewind(s, 0, 40) == 40, "%d", (int)pn_state_can_rewind(s, 0, 40));
    pn_state_copy(s, 0, 1);
    CHECK("a copy has lost the same", pn_state_length(s, 1) == 40 && pn_state_can_rewind(s, 1, 38) == 0, "%d", (int)pn_state_length(s, 1));
    pn_state_rewind(s, 0, 0);
    pn_state_advance(s, 0, 10);
    CHECK("a new start forgets what was lost", pn_state_can_rewind(s, 0, 5) == 5, "%d", (int)pn_state_can_rewind(s, 0, 5));
    pn_state_close(s);
}

static void refusal(void)
{
    const pn_layer_shape odd = {1, 40, 40, 0, 0};
    const pn_state_options o = {.layers = &odd, .n_layers = 1, .n_seq = 1, .n_ctx = 16, .n_batch = 1, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_Q8_0};
    pn_state *s = NULL;
    pinch_error err = {0};
    CHECK("heads of 40 channels have no q8_0 cache", pn_state_open(&s, &o, &err) == PINCH_ERR_ARGUMENT && strstr(err.message, "values") && strstr(err.message, "40"), "%s", err.message);
}

/* A recurrent layer's floats: apart for each sequence, zero at the start, copied, and never believed after going back. */
static void carried(void)
{
    static const pn_layer_shape mixed[] = {{HEADS, D, D, 0, 0}, {0, 0, 0, 0, 100}, {HEADS, D, D, 0, 7}};
    const pn_state_options o = {.layers = mixed, .n_layers = 3, .n_seq = 2, .n_ctx = CTX, .n_batch = BATCH, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16};
    uint64_t bytes = 0;
    CHECK("a recurrent layer takes its floats once a sequence", pn_state_bytes(&o, &bytes) && bytes == 2 * (2 * (uint64_t)208 * HEADS * D * 2 * 2 + 448 + 64), "%llu", (unsigned long long)bytes);
    pn_state *s = NULL;
    pinch_error err = {0};
    if (!CHECK("a mixed state opens", pn_state_open(&s, &o, &err) == PINCH_OK, "%s", err.message)) return;
    float *a = pn_state_recurrent(s, 1, 0), *b = pn_state_recurrent(s, 1, 1), *c = pn_state_recurrent(s, 2, 0);
    CHECK("floats are aligned", (uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0 && (uintptr_t)c % 64 == 0, "%p %p %p", (void *)a, (void *)b, (void *)c);
    CHECK("floats begin as zero", a[0] == 0 && a[99] == 0 && c[6] == 0, "%g", (double)a[0]);
    a[0] = a[99] = c[6] = 3;
    pn_state_advance(s, 0, 5);
    CHECK("sequences are apart", b[0] == 0 && b[99] == 0, "%g", (double)b[0]);
    CHECK("staying is exact", pn_state_can_rewind(s, 0, 5) == 5, "%d", (int)pn_state_can_rewind(s, 0, 5));
    CHECK("going back starts over", pn_state_can_rewind(s, 0, 4) == 0, "%d", (int)pn_state_can_rewind(s, 0, 4));
    pn_state_copy(s, 0, 1);
    CHECK("a copy carries the floats", b[99] == 3 && pn_state_can_rewind(s, 1, 5) == 5, "%g", (double)b[99]);
    pn_state_touch(s, 0, 1);
    CHECK("rows that were begun and not kept spoil the floats", pn_state_can_rewind(s, 0, 5) == 0, "%d", (int)pn_state_can_rewind(s, 0, 5));
    pn_state_rewind(s, 0, 0);
    CHECK("a start is from zero", a[0] == 0 && a[99] == 0 && c[6] == 0 && b[0] == 3, "%g", (double)a[0]);
    pn_state_close(s);
}

/* Checkpoints hold what going on changes, until the sequence goes back below them; the one used longest ago gives way. */
static void checkpoints(void)
{
    static const pn_layer_shape mixed[] = {{HEADS, D, D, 0, 0}, {HEADS, D, D, WINDOW, 0}, {0, 0, 0, 0, 100}};
    pn_state_options o = {.layers = mixed, .n_layers = 3, .n_seq = 2, .n_ctx = CTX, .n_batch = BATCH, .n_checkpoints = 2, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16};
    uint64_t bytes = 0;
    CHECK("a checkpoint holds the ring and the floats", pn_state_checkpoint_bytes(&o, &bytes) && bytes == (uint64_t)32 * HEADS * D * 2 * 2 + 448, "%llu", (unsigned long long)bytes);
    pn_state *s = NULL;
    pinch_error err = {0};
    if (!CHECK("a state with checkpoints opens", pn_state_open(&s, &o, &err) == PINCH_OK, "%s", err.message)) return;
    const pn_kv ring = pn_state_kv(s, 1, 0);
    float *carry = pn_state_recurrent(s, 2, 0);
    for (int32_t at = 10; at <= 40; at += 10) { /* checkpoints at 10 and 20 give way to 30 and 40 */
        pn_state_advance(s, 0, 10);
        ring.k[0] = (uint8_t)at;
        carry[0] = (float)at;
        pn_state_checkpoint(s, 0);
    }
    pn_state_advance(s, 0, 10);
    ring.k[0] = 50;
    carry[0] = 50;
    CHECK("the newest at or before", pn_state_can_rewind(s, 0, 49) == 40 && pn_state_can_rewind(s, 0, 39) == 30, "%d", (int)pn_state_can_rewind(s, 0, 39));
    CHECK("the oldest gave way", pn_state_can_rewind(s, 0, 29) == 0, "%d", (int)pn_state_can_rewind(s, 0, 29));
    CHECK("another sequence has none", pn_state_can_rewind(s, 1, 0) == 0, "%d", (int)pn_state_can_rewind(s, 1, 0));
    pn_state_rewind(s, 0, 40);
    CHECK("going back brings ring and floats", pn_state_length(s, 0) == 40 && ring.k[0] == 40 && carry[0] == 40.0f, "%d %g", ring.k[0], (double)carry[0]);
    pn_state_rewind(s, 0, 30);
    pn_state_advance(s, 0, 15);
    CHECK("one beyond where it went back to is gone", pn_state_can_rewind(s, 0, 44) == 30, "%d", (int)pn_state_can_rewind(s, 0, 44));
    pn_state_checkpoint(s, 0);
    pn_state_copy(s, 0, 1);
    CHECK("a copy brings no checkpoints", pn_state_can_rewind(s, 1, 44) == 0 && pn_state_can_rewind(s, 1, 45) == 45, "%d", (int)pn_state_can_rewind(s, 1, 44));
    pn_state_close(s);
}

/* A batch that may end after any of its rows: what was kept after each comes back, once, and for that sequence alone. */
static void kept(void)
{
    enum { FIRST = 5, ROWS = 4 };
    static const pn_layer_shape mixed[] = {{HEADS, D, D, WINDOW, 0}, {0, 0, 0, 0, 100}, {HEADS, D, D, 0, 7}};
    pn_state_options o = {.layers = mixed, .n_layers = 3, .n_seq = 2, .n_ctx = CTX, .n_batch = BATCH, .n_kept = ROWS - 1, .type_k = PINCH_CACHE_F16, .type_v = PINCH_CACHE_F16};
    uint64_t bytes = 0;
    CHECK("a kept row holds all recurrent floats", pn_state_kept_bytes(&o, &bytes) && bytes == (ROWS - 1) * (448 + 64), "%llu", (unsigned long long)bytes);
    pn_state *s = NULL;
    pinch_error err = {0};
    if (!CHECK("a state that keeps rows opens", pn_state_open(&s, &o, &err) == PINCH_OK, "%s", err.message)) return;
    pn_state_advance(s, 0, FIRST);
    CHECK("nothing is kept unasked", !pn_state_kept(s, 1, 0, FIRST), "%p", (void *)pn_state_kept(s, 1, 0, FIRST));
    for (int32_t end = 1; end <= ROWS; end++) { /* rows that stay */
        float *a = pn_state_recurrent(s, 1, 0), *b = pn_state_recurrent(s, 2, 0);
        const int32_t first = pn_state_length(s, 0);
        pn_state_keep(s, 0, ROWS);
        pn_state_advance(s, 0, ROWS);
        for (int32_t p = first; p < first + ROWS; p++) {
            a[0] = a[99] = b[6] = (float)p;
            const bool last = p + 1 == first + ROWS;
            float *const at[] = {pn_state_kept(s, 1, 0, p), pn_state_kept(s, 2, 0, p)};
            CHECK("every row but the last has a place", last ? !at[0] && !at[1] : at[0] && at[1] && at[0] != at[1], "row %d", (int)(p - first));
            if (last || !at[0] || !at[1]) continue;
            memcpy(at[0], a, 100 * sizeof *a);
            memcpy(at[1], b, 7 * sizeof *b);
        }
        CHECK("rows before it, and another sequence's, have none", !pn_state_kept(s, 1, 0, first - 1) && !pn_state_kept(s, 1, 1, first), "%d", (int)first);
        CHECK("before the batch nothing is kept", pn_state_can_rewind(s, 0, first) == 0, "%d", (int)pn_state_can_rewind(s, 0, first));
        const int32_t n = first + end;
        CHECK("behind any row going back is exact", pn_state_can_rewind(s, 0, n) == n, "%d, not %d", (int)pn_state_can_rewind(s, 0, n), (int)n);
        pn_state_rewind(s, 0, n);
        a = pn_state_recurrent(s, 1, 0);
        b = pn_state_recurrent(s, 2, 0);
        CHECK("and brings the floats of that row", pn_state_length(s, 0) == n && a[0] == (float)(n - 1) && a[99] == (float)(n - 1) && b[6] == (float)(n - 1), "%d: %g", (int)n, (double)a[0]);
        CHECK("going on from there is exact", pn_state_can_rewind(s, 0, n) == n, "%d", (int)pn_state_can_rewind(s, 0, n));
        CHECK("and what was kept is gone", pn_state_can_rewind(s, 0, n - 1) == 0 && !pn_state_kept(s, 1, 0, first), "%d", (int)pn_state_can_rewind(s, 0, n - 1));
    }
    pn_state_keep(s, 0, ROWS);
    pn_state_advance(s, 0, ROWS);
    const int32_t n = pn_state_length(s, 0);
    pn_state_advance(s, 1, n);
    pn_state_copy(s, 1, 0);
    CHECK("another sequence's floats are not those that were kept", pn_state_can_rewind(s, 0, n - 1) == 0 && pn_state_can_rewind(s, 0, n) == n, "%d", (int)pn_state_can_rewind(s, 0, n - 1));
    pn_state_close(s);
    const pn_layer_shape plain = {HEADS, D, D, 0, 0};
    o.layers = &plain;
    o.n_layers = 1;
    CHECK("without recurrent layers nothing is kept", pn_state_kept_bytes(&o, &bytes) && bytes == 0, "%llu", (unsigned long long)bytes);
    const pn_layer_shape large = {.recurrent = (int64_t)(SIZE_MAX / 64)};
    o.layers = &large;
    o.n_kept = 3;
    CHECK("what an address space holds is counted", pn_state_bytes(&o, &bytes) && pn_state_kept_bytes(&o, &bytes), "%llu", (unsigned long long)bytes);
    o.n_kept = 8;
    CHECK("more than that is refused", !pn_state_kept_bytes(&o, &bytes), "%llu", (unsigned long long)bytes);
    CHECK("and cannot be opened, in a sentence", pn_state_open(&s, &o, &err) == PINCH_ERR_MEMORY && strstr(err.message, "recurrent"), "%s", err.message);
}

int main(void)
{
    kept();
    carried();
    checkpoints();
    sizes();
    stored(PINCH_CACHE_F32, 0.0);
    stored(PINCH_CACHE_F16, 3.0 / 2048);
    stored(PINCH_CACHE_Q8_0, 3.0 / 254 + 3.0 / 2048);
    going_back();
    refusal();
    return pn_done();
}
