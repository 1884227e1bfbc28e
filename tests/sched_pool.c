/* The pool runs everybody, barriers hold, guided scheduling hands out each unit once, oversubscription neither hangs nor crawls, and more threads
 * than processors are noticed. */
#include "sched/pool.h"
#include "test.h"

#include <sched.h>
#include <stdatomic.h>
#include <time.h>

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

static void burn(void *ctx, int thread, int n)
{
    (void)ctx, (void)thread, (void)n;
    struct timespec t;
    int64_t begin = -1, now;
    do { /* 10 ms of this thread's own time */
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        if (begin < 0) begin = now;
    } while (now - begin < 10000000);
}

/* Four threads that may use one processor: the next run had better take one, for a while. */
static void try_crowded(void)
{
    cpu_set_t before, one;
    CPU_ZERO(&one);
    bool placed = !sched_getaffinity(0, sizeof before, &before);
    for (size_t i = 0; placed && i < CPU_SETSIZE && !CPU_COUNT(&one); i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    placed = placed && !sched_setaffinity(0, sizeof one, &one);
    if (!placed) {
        pn_skip("more threads than processors", "no affinity on this system");
        return;
    }
    pinch_error err;
    pn_pool *pool;
    if (CHECK("a pool of 4 opens on one processor", pn_pool_open(&pool, 4, &err) == PINCH_OK, "%s", err.message)) {
        CHECK("nothing measured, nothing limited", pn_pool_fit(pool, 4) == 4, "%d", pn_pool_fit(pool, 4));
        pn_pool_run(pool, 4, burn, NULL);
        CHECK("four threads with one processor's time become one", pn_pool_fit(pool, 4) == 1, "%d", pn_pool_fit(pool, 4));
        CHECK("a narrower run is not widened", pn_pool_fit(pool, 1) == 1, "%d", pn_pool_fit(pool, 1));
        const time_t end = time(NULL) + 30;
        while (pn_pool_fit(pool, 4) == 1 && time(NULL) < end) burn(NULL, 0, 1);
        CHECK("all four are tried again later", pn_pool_fit(pool, 4) == 4, "%d", pn_pool_fit(pool, 4));
        pn_pool_close(pool);
    }
    sched_setaffinity(0, sizeof before, &before);
}

int main(void)
{
    try_crowded();
    for (int n = 1; n <= 4; n++) try_threads(4, n);
    try_threads(1, 1);
    try_threads(8, 8);
    pinch_error err;
    pn_pool *pool;
    CHECK("no pool of 0 threads", pn_pool_open(&pool, 0, &err) == PINCH_ERR_ARGUMENT, "%d", (int)err.status);
    CHECK("no pool of 65 threads", pn_pool_open(&pool, 65, &err) == PINCH_ERR_ARGUMENT, "%d", (int)err.status);
    return pn_done();
}
