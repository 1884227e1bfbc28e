/* sched/pool.h - threads that walk a plan together: a pool, barriers, guided self-scheduling.
 *
 * Knows nothing of steps or models. The calling thread is worker 0. Waiting spins briefly, then sleeps on a futex. Threads that the system
 * gives no processor hold the others up at each barrier; pn_pool_fit notices and takes fewer. No signal, no affinity. */
#ifndef PN_POOL_H
#define PN_POOL_H

#include "base/base.h"

typedef struct pn_pool pn_pool;
typedef void (*pn_work_fn)(void *ctx, int thread, int n_threads);

pinch_status pn_pool_open(pn_pool **out, int n_threads, pinch_error *err); /* 1..64 */
void pn_pool_close(pn_pool *pool);                                        /* NULL is fine */
int pn_pool_size(const pn_pool *pool);
/* Runs fn on threads 0..n-1 (n <= size) and returns when all have. */
void pn_pool_run(pn_pool *pool, int n, pn_work_fn fn, void *ctx);
/* How many of n threads the next run had better take: n, or for a while as many as the processors that the last runs really got. Runs in which a
 * thread waited for the disk (major page faults) say nothing about that. */
int pn_pool_fit(pn_pool *pool, int n);
/* Inside a run: every one of the n threads must pass. */
void pn_pool_barrier(pn_pool *pool);
/* Barriers passed since the pool opened (counted once each). */
uint64_t pn_pool_barriers(const pn_pool *pool);

/* Guided self-scheduling over `total` units: each grab takes remaining / (2 * threads), at least total / 48 (and 1). One work counter serves one step;
 * counters are cache-line sized and reset by one thread between barriers. */
typedef struct pn_grab {
    _Alignas(64) _Atomic int64_t next;
} pn_grab;
void pn_grab_reset(pn_grab *grab);
/* False: nothing left. */
bool pn_grab_next(pn_grab *grab, int64_t total, int n_threads, int64_t *begin, int64_t *end);

#endif
