/* The pool runs everybody, barriers hold, guided scheduling hands out each unit once, oversubscription neither hangs nor crawls. */
#include "sched/pool.h"
#include "test.h"

#include <stdatomic.h>

enum { UNITS = 10007, ROUNDS = 300, MOST = 9 };

typedef struct shared {
    pn_pool *pool;
    pn_grab grab[ROUNDS];
    unsigned char taken[UNITS];
    _Atomic int twice, early, ran;
    int phase[MOST * 16];
    int n;
} shared;

static void walk(void *arg, int thread, int n)
{
    shared *s = arg;
    atomic_fetch_add(&s->ran, 1);
    for (int round = 0; round < ROUNDS; round++) {
        s->phase[thread * 16] = round;
        pn_pool_barrier(s->pool);
        for (int t = 0; t < n; t++)
            if (s->phase[t * 16] != round) atomic_fetch_add(&s->early, 1);
        int64_t a, b;
        while (pn_grab_next(&s->grab[round], UNITS, n, &a, &b))
            for (int64_t i = a; i < b; i++) s->taken[i]++;
        pn_pool_barrier(s->pool);
    }
}

static void try_threads(int size, int n)
{
    static shared s;
    memset(&s, 0, sizeof s);
    s.n = n;
    pinch_error err;
    if (!CHECK("pool opens", pn_pool_open(&s.pool, size, &err) == PINCH_OK, "%s", err.message)) return;
    const uint64_t before = pn_pool_barriers(s.pool);
    pn_pool_run(s.pool, n, walk, &s);
    const uint64_t passed = pn_pool_barriers(s.pool) - before;
    int wrong = 0;
    for (int i = 0; i < UNITS; i++) wrong += s.taken[i] != (unsigned char)ROUNDS;
    CHECK("every unit is handed out once a round", wrong == 0, "%d of %d threads: %d units wrong", n, size, wrong);
    CHECK("no thread passes a barrier early", atomic_load(&s.early) == 0, "%d times with %d of %d threads", atomic_load(&s.early), n, size);
    CHECK("exactly n threads run", atomic_load(&s.ran) == n, "%d of %d", atomic_load(&s.ran), n);
    CHECK("barriers are counted once each", passed == 2 * ROUNDS + (n > 1), "%d", (int)passed);
    for (int i = 0; i < 50; i++) { /* runs of changing width: threads that sit out must not join late */
        const int width = 1 + i % size;
        atomic_store(&s.ran, 0);
        for (int r = 0; r < ROUNDS; r++) pn_grab_reset(&s.grab[r]);
        if (i % 10 == 0) {
            pn_pool_run(s.pool, width, walk, &s);
            CHECK("a run of another width uses that many threads", atomic_load(&s.ran) == width, "%d of %d", atomic_load(&s.ran), width);
        }
    }
    pn_pool_close(s.pool);
}

int main(void)
{
    for (int n = 1; n <= 4; n++) try_threads(4, n);
    try_threads(1, 1);
    try_threads(8, 8);
    pinch_error err;
    pn_pool *pool;
    CHECK("no pool of 0 threads", pn_pool_open(&pool, 0, &err) == PINCH_ERR_ARGUMENT, "%d", (int)err.status);
    CHECK("no pool of 65 threads", pn_pool_open(&pool, 65, &err) == PINCH_ERR_ARGUMENT, "%d", (int)err.status);
    return pn_done();
}
