/* memory_limit holds for a model and all sessions that are open at once, in whatever threads they open and close. Meant for ThreadSanitizer as well. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "engine_case.h"

enum { WIDE_CTX = 16384, FIT = 2, N_THREADS = 4, ROUNDS = 6, MOST_TRIES = 20000 };

static pinch_session_options wide(void)
{
    pinch_session_options o = pinch_session_options_default();
    o.n_ctx = WIDE_CTX;
    o.n_batch = 16;
    o.n_threads = o.n_threads_batch = 1;
    return o;
}

/* With room for FIT sessions of `wide` and half of one more. */
static pinch_model *limited_model(const golden_case *c)
{
    pinch_model_options o = pinch_model_options_default();
    const pinch_session_options so = wide();
    pinch_memory_plan plan;
    pinch_model *m = case_model(c, PINCH_ACTIVATIONS_Q8);
    pinch_error err = {0};
    if (!m || !CHECK("a session is planned", !pinch_session_plan(m, &so, &plan, &err), "%s", err.message)) return NULL;
    pinch_model_close(m);
    const uint64_t one = plan.kv + plan.scratch;
    o.memory_limit = plan.total - plan.weights_mapped + (FIT - 1) * one + one / 2;
    m = NULL;
    CHECK("a model opens under a limit", !pinch_model_open(&m, c->path, &o, &err), "%s", err.message);
    return m;
}

static void one_after_the_other(pinch_model *m)
{
    pinch_session_options o = wide();
    pinch_session *s[FIT + 1] = {0}, *small = NULL;
    pinch_memory_plan before, after;
    pinch_error err = {0};
    pinch_session_plan(m, &o, &before, &err);
    for (int i = 0; i < FIT; i++) CHECK("sessions open as long as the limit holds them", !pinch_session_open(&s[i], m, &o, &err), "session %d: %s", i, err.message);
    CHECK("one more does not", pinch_session_open(&s[FIT], m, &o, &err) == PINCH_ERR_MEMORY && strstr(err.message, "beside the model's other sessions"), "%s", err.message);
    CHECK("planning says the same", pinch_session_plan(m, &o, &after, &err) == PINCH_ERR_MEMORY && after.available < before.available, "%s", err.message);
    o.n_ctx = 0;
    CHECK("one that chooses its context finds one that fits", !pinch_session_open(&small, m, &o, &err) && pinch_session_n_ctx(small) <= WIDE_CTX / 2, "%s", err.message);
    pinch_session_close(small);
    pinch_session_close(s[0]);
    o.n_ctx = WIDE_CTX;
    s[0] = NULL;
    CHECK("a closed one leaves its room", !pinch_session_open(&s[FIT], m, &o, &err), "%s", err.message);
    for (int i = 0; i <= FIT; i++) pinch_session_close(s[i]);
    CHECK("in the end all is free again", !pinch_session_plan(m, &o, &after, &err) && after.available == before.available, "%s", err.message);
}

/* What cannot be had is said with its parts, which add up. */
static void parts(void)
{
    pinch_model *m = NULL;
    pinch_session_options o = pinch_session_options_default();
    pinch_memory_plan plan;
    pinch_error err = {0};
    if (!CHECK("a model with windows opens", !pinch_model_open(&m, "tests/golden/gemma3-q8/model.gguf", NULL, &err), "%s", err.message)) return;
    o.n_ctx = INT32_MAX / 4;
    o.n_seq = o.n_checkpoints = 4096;
    CHECK("a plan beyond all memory is refused", pinch_session_plan(m, &o, &plan, &err) == PINCH_ERR_MEMORY, "%s", err.message);
#if SIZE_MAX == UINT32_MAX
    CHECK("and said to be more than an address space", strstr(err.message, "more than an address space holds") != NULL, "%s", err.message);
#else
    unsigned long long needed = 0, part[6] = {0}, sum = 0;
    const char *numbers = strstr(err.message, ": ");
    const int n = numbers ? sscanf(numbers, ": %llu MiB needed (weights %llu, cache %llu, checkpoints %llu, drafts %llu, scratch %llu, other %llu)", &needed, &part[0], &part[1], &part[2], &part[3],
                                   &part[4], &part[5]) : 0;
    for (size_t i = 0; i < PN_COUNT(part); i++) sum += part[i];
    CHECK("and its parts add up, each rounded down", n == 7 && part[2] > 0 && needed > sum && needed <= sum + PN_COUNT(part), "%llu, not %llu: %s", sum, needed, err.message);
#endif
    pinch_model_close(m);
}

typedef struct crowd {
    pinch_model *model;
    const golden_case *c;
    atomic_int open, most, opened, wrong;
} crowd;

/* Who is refused waits a millisecond: how long others keep their room depends on the machine, that they give it back does not. */
static void *open_and_close(void *user)
{
    static const struct timespec wait = {.tv_nsec = 1000000};
    crowd *c = user;
    const pinch_session_options o = wide();
    for (int opened = 0, tries = 0; opened < ROUNDS && tries < MOST_TRIES; tries++) {
        pinch_session *s = NULL;
        pinch_error err = {0};
        const pinch_status st = pinch_session_open(&s, c->model, &o, &err);
        if (st) {
            c->wrong += st != PINCH_ERR_MEMORY;
            nanosleep(&wait, NULL);
            continue;
        }
        opened++;
        int now = ++c->open, most = c->most;
        while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now)) {}
        c->opened++;
        c->wrong += pinch_session_feed(s, 0, c->c->prompt, 16, &err) != PINCH_OK;
        c->open--;
        pinch_session_close(s);
    }
    return NULL;
}

static void all_at_once(const golden_case *gold, pinch_model *m)
{
    crowd c = {.model = m, .c = gold};
    pthread_t threads[N_THREADS];
    int started = 0;
    while (started < N_THREADS && pthread_create(&threads[started], NULL, open_and_close, &c) == 0) started++;
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
    CHECK("threads start", started == N_THREADS, "%d", started);
    CHECK("never more sessions than the limit holds", c.most <= FIT && c.most > 0, "%d at once", c.most);
    CHECK("refusals are for want of memory, and what opens computes", c.wrong == 0, "%d others", c.wrong);
    CHECK("and every thread gets its sessions", c.opened == N_THREADS * ROUNDS, "%d of %d", c.opened, N_THREADS * ROUNDS);
}

int main(void)
{
    golden_case c;
    parts();
    if (!case_load(&c, "llama-f32")) return pn_done();
    pinch_model *m = limited_model(&c);
    if (m) {
        one_after_the_other(m);
        all_at_once(&c, m);
    }
    pinch_model_close(m);
    case_free(&c);
    return pn_done();
}
