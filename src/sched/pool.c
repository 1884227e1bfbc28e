/* A pool is one set of threads that sleep between runs. Two kinds of waiting exist: for a run to begin (workers) and at a barrier
 * (everybody); both wait for a counter to move on, spinning briefly and then sleeping on a condition variable. */
#include "sched/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

/* How long a waiter spins before it sleeps. Steps of a small model last 10 to 50 us and guided scheduling ends them within a few us of each
 * other, while a futex wake costs about 20 us; but a waiter that spins while its partner has lost its core keeps the partner off this one. */
#define SPIN_NS 40000
#define SPINS_PER_LOOK 64

/* A counter that others wait for. `sleepers` lets the mover skip the lock when nobody sleeps. */
typedef struct gate {
    _Alignas(64) _Atomic uint32_t turn;
    _Atomic uint32_t sleepers;
    pthread_mutex_t lock;
    pthread_cond_t moved;
} gate;

typedef struct worker {
    pn_pool *pool;
    pthread_t handle;
    int index;
    int64_t processor_ns; /* spent in the current run: written by the thread before the run's last barrier */
} worker;

/* Judges runs of one width by the processor time that they got, over at least WINDOW_NS. When n threads got the time of k < n processors, k are
 * taken for HOLD times as long; then n are tried again. */
#define WINDOW_NS 20000000
#define HOLD 32
typedef struct meter {
    int width;            /* of the runs counted */
    int64_t wall_ns;
    int64_t processor_ns; /* of all threads together */
    int64_t faults;       /* major ones of the process before these runs */
    int most;             /* threads for now; 0: no limit */
    int64_t until;        /* when the limit ends */
} meter;

struct pn_pool {
    gate start;    /* turn: runs begun << 8 | threads of the run: one word, so that a thread that sat out runs sees only whole ones */
    gate barrier;  /* turn: barriers passed by all */
    _Alignas(64) _Atomic int arrived; /* at the current barrier */
    pn_work_fn fn; /* of the current run; written before start.turn moves */
    void *ctx;
    int n_active;
    _Atomic bool spin; /* there is a processor for every thread of the run */
    int n_processors; /* as far as affinity tells */
    meter meter;
    int n_threads;
    int n_started; /* threads to join */
    bool gates_ready;
    worker workers[64];
};

static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__) || defined(__arm__)
    __asm__ volatile("yield");
#endif
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool gate_open(gate *g)
{
    if (pthread_mutex_init(&g->lock, NULL)) return false;
    if (!pthread_cond_init(&g->moved, NULL)) return true;
    pthread_mutex_destroy(&g->lock);
    return false;
}

static void gate_close(gate *g)
{
    pthread_cond_destroy(&g->moved);
    pthread_mutex_destroy(&g->lock);
}

/* The change of turn and the load of sleepers are sequentially consistent, as are their mirror images in gate_sleep: one of the two sees the other.
 * An exchange, as emulators (qemu 7.2) let a load-acquire overtake a store-release. */
static void gate_move(gate *g, uint32_t turn)
{
    atomic_exchange(&g->turn, turn);
    if (!atomic_load(&g->sleepers)) return;
    pthread_mutex_lock(&g->lock);
    pthread_cond_broadcast(&g->moved);
    pthread_mutex_unlock(&g->lock);
}

static void gate_sleep(gate *g, uint32_t turn)
{
    pthread_mutex_lock(&g->lock);
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->turn) == turn) pthread_cond_wait(&g->moved, &g->lock);
    atomic_fetch_sub(&g->sleepers, 1);
    pthread_mutex_unlock(&g->lock);
}

static bool gate_spin(const gate *g, uint32_t turn)
{
    const int64_t end = clock_ns(CLOCK_MONOTONIC) + SPIN_NS;
    do {
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            if (atomic_load_explicit(&g->turn, memory_order_acquire) != turn) return true;
            relax();
        }
    } while (clock_ns(CLOCK_MONOTONIC) < end);
    return false;
}

/* Returns once turn is another one. */
static void gate_wait(gate *g, uint32_t turn, const _Atomic bool *spin)
{
    if (atomic_load_explicit(&g->turn, memory_order_acquire) != turn) return;
    if (atomic_load_explicit(spin, memory_order_relaxed) && gate_spin(g, turn)) return;
    gate_sleep(g, turn);
}

void pn_pool_barrier(pn_pool *pool)
{
    const int n = pool->n_active; /* before arriving: once all have, thread 0 may begin a run of another n */
    if (n == 1) {
        atomic_fetch_add_explicit(&pool->barrier.turn, 1, memory_order_relaxed);
        return;
    }
    const uint32_t turn = atomic_load_explicit(&pool->barrier.turn, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&pool->arrived, 1, memory_order_acq_rel) + 1 < n) {
        gate_wait(&pool->barrier, turn, &pool->spin);
        return;
    }
    atomic_store_explicit(&pool->arrived, 0, memory_order_relaxed);
    gate_move(&pool->barrier, turn + 1);
}

/* ---- how many processors there really are ------------------------------------------------------------------------------- */

static int processors(void)
{
#if defined(__linux__) && defined(CPU_COUNT)
    cpu_set_t set;
    if (!sched_getaffinity(0, sizeof set, &set)) return CPU_COUNT(&set);
#endif
    return 1;
}

static int64_t major_faults(void)
{
    struct rusage r;
    return getrusage(RUSAGE_SELF, &r) ? 0 : r.ru_majflt;
}

static void meter_judge(meter *m)
{
    const int carried = (int)((m->processor_ns + m->wall_ns - 1) / m->wall_ns);
    if (carried >= m->width || major_faults() != m->faults) return;
    m->most = carried > 1 ? carried : 1;
    m->until = clock_ns(CLOCK_MONOTONIC) + HOLD * m->wall_ns;
}

static void meter_add(meter *m, int width, int64_t wall_ns, int64_t processor_ns)
{
    if (m->width != width) *m = (meter){.width = width, .faults = major_faults(), .most = m->most, .until = m->until};
    m->wall_ns += wall_ns;
    m->processor_ns += processor_ns;
    if (m->wall_ns < WINDOW_NS) return;
    meter_judge(m);
    m->width = 0;
}

int pn_pool_fit(pn_pool *pool, int n)
{
    meter *m = &pool->meter;
    if (m->most && clock_ns(CLOCK_MONOTONIC) > m->until) {
        m->most = 0;
        pool->n_processors = processors();
    }
    return m->most && m->most < n ? m->most : n;
}

/* ---- runs ------------------------------------------------------------------------------------------------------------------ */

static void work(pn_pool *pool, worker *w, int n)
{
    const int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    pool->fn(pool->ctx, w->index, n);
    w->processor_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin;
    pn_pool_barrier(pool);
}

static void *worker_main(void *arg)
{
    worker *w = arg;
    pn_pool *pool = w->pool;
    uint32_t turn = 0;
    for (;;) {
        gate_wait(&pool->start, turn, &pool->spin);
        turn = atomic_load_explicit(&pool->start.turn, memory_order_acquire);
        const int n = (int)(turn & 255);
        if (n == 0) return NULL;
        if (w->index < n) work(pool, w, n);
    }
}

/* Begins a run of n threads; 0 sends the workers home. */
static void start(pn_pool *pool, int n)
{
    const uint32_t turn = atomic_load_explicit(&pool->start.turn, memory_order_relaxed);
    gate_move(&pool->start, ((turn >> 8) + 1) << 8 | (uint32_t)n);
}

pinch_status pn_pool_open(pn_pool **out, int n_threads, pinch_error *err)
{
    if (n_threads < 1 || n_threads > (int)PN_COUNT(((pn_pool *)0)->workers))
        return pn_fail(err, PINCH_ERR_ARGUMENT, "threads: %d is not in 1..%d", n_threads, (int)PN_COUNT(((pn_pool *)0)->workers));
    pn_pool *pool = NULL;
    if (posix_memalign((void **)&pool, 64, sizeof *pool)) return pn_fail_memory(err, "a thread pool", sizeof *pool);
    memset(pool, 0, sizeof *pool);
    pool->n_threads = n_threads;
    pool->n_active = n_threads;
    pool->n_processors = processors();
    pool->workers[0].pool = pool;
    bool ok = gate_open(&pool->start);
    if (ok && !gate_open(&pool->barrier)) {
        gate_close(&pool->start);
        ok = false;
    }
    pool->gates_ready = ok;
    for (int i = 1; ok && i < n_threads; i++) {
        pool->workers[i] = (worker){.pool = pool, .index = i};
        ok = !pthread_create(&pool->workers[i].handle, NULL, worker_main, &pool->workers[i]);
        pool->n_started += ok;
    }
    if (!ok) {
        pn_pool_close(pool);
        return pn_fail(err, PINCH_ERR_MEMORY, "threads: the system does not give %d of them", n_threads);
    }
    *out = pool;
    return PINCH_OK;
}

void pn_pool_close(pn_pool *pool)
{
    if (!pool) return;
    if (pool->gates_ready) {
        start(pool, 0);
        for (int i = 1; i <= pool->n_started; i++) pthread_join(pool->workers[i].handle, NULL);
        gate_close(&pool->start);
        gate_close(&pool->barrier);
    }
    free(pool);
}

int pn_pool_size(const pn_pool *pool) { return pool->n_threads; }

void pn_pool_run(pn_pool *pool, int n, pn_work_fn fn, void *ctx)
{
    pool->n_active = n;
    if (n == 1) {
        fn(ctx, 0, 1);
        return;
    }
    const int64_t begin = clock_ns(CLOCK_MONOTONIC);
    pool->fn = fn;
    pool->ctx = ctx;
    atomic_store_explicit(&pool->spin, n <= pool->n_processors, memory_order_relaxed);
    start(pool, n);
    work(pool, &pool->workers[0], n);
    int64_t processor_ns = 0;
    for (int i = 0; i < n; i++) processor_ns += pool->workers[i].processor_ns;
    meter_add(&pool->meter, n, clock_ns(CLOCK_MONOTONIC) - begin, processor_ns);
}

uint64_t pn_pool_barriers(const pn_pool *pool) { return atomic_load_explicit(&pool->barrier.turn, memory_order_relaxed); }

void pn_grab_reset(pn_grab *grab) { atomic_store_explicit(&grab->next, 0, memory_order_relaxed); }

bool pn_grab_next(pn_grab *grab, int64_t total, int n_threads, int64_t *begin, int64_t *end)
{
    const int64_t least = pn_max64(1, total / 48);
    int64_t at = atomic_load_explicit(&grab->next, memory_order_relaxed);
    int64_t take;
    do {
        if (at >= total) return false;
        take = n_threads == 1 ? total : pn_max64(least, (total - at) / (2 * n_threads));
        take = pn_min64(take, total - at);
    } while (!atomic_compare_exchange_weak_explicit(&grab->next, &at, at + take, memory_order_relaxed, memory_order_relaxed));
    *begin = at;
    *end = at + take;
    return true;
}
