/* Two models and four sessions in four threads at once: each has the bits that it has alone. Meant for ThreadSanitizer as well. */
#include <pthread.h>

#include "engine_case.h"

enum { N_MODELS = 2, N_SESSIONS = 4, ROUNDS = 2 };

typedef struct worker {
    const golden_case *c;
    pinch_model *model;
    const float *want; /* [n_vocab] of the last prompt token, computed alone */
    int failures;
} worker;

/* Opens, feeds and closes sessions of its own; CHECK counts are not for threads, so it only counts. */
static void *work(void *user)
{
    worker *w = user;
    for (int round = 0; round < ROUNDS; round++) {
        pinch_session_options options = pinch_session_options_default();
        options.n_ctx = CASE_CTX;
        options.n_threads = options.n_threads_batch = 2;
        options.type_k = w->c->type_k;
        options.type_v = w->c->type_v;
        pinch_session *session = NULL;
        pinch_error err = {0};
        const bool fed = pinch_session_open(&session, w->model, &options, &err) == PINCH_OK && pinch_session_feed(session, 0, w->c->prompt, w->c->n_prompt, &err) == PINCH_OK;
        w->failures += !fed || memcmp(pinch_session_logits(session), w->want, (size_t)w->c->n_vocab * sizeof(float)) != 0;
        pinch_session_close(session);
    }
    return NULL;
}

int main(void)
{
    golden_case cases[N_MODELS];
    pinch_model *models[N_MODELS] = {0};
    float *want[N_MODELS] = {0};
    for (int i = 0; i < N_MODELS; i++) {
        if (!case_load(&cases[i], golden_names[i])) return pn_done();
        models[i] = case_model(&cases[i], PINCH_ACTIVATIONS_Q8);
        pinch_session *alone = models[i] ? case_session(&cases[i], models[i], 1, 0, 1) : NULL;
        want[i] = alone ? case_logits(&cases[i], alone, cases[i].prompt, cases[i].n_prompt) : NULL;
        pinch_session_close(alone);
        if (!want[i]) return pn_done();
    }
    worker workers[N_SESSIONS];
    pthread_t threads[N_SESSIONS];
    bool started[N_SESSIONS];
    for (int i = 0; i < N_SESSIONS; i++) {
        const golden_case *c = &cases[i % N_MODELS];
        workers[i] = (worker){.c = c, .model = models[i % N_MODELS], .want = want[i % N_MODELS] + (c->n_prompt - 1) * (size_t)c->n_vocab};
        started[i] = pthread_create(&threads[i], NULL, work, &workers[i]) == 0;
    }
    for (int i = 0; i < N_SESSIONS; i++) {
        if (started[i]) pthread_join(threads[i], NULL);
        CHECK("a session among others in other threads has the bits that it has alone", started[i] && workers[i].failures == 0, "session %d: %d of %d rounds", i, workers[i].failures, ROUNDS);
    }
    for (int i = 0; i < N_MODELS; i++) {
        free(want[i]);
        pinch_model_close(models[i]);
        case_free(&cases[i]);
    }
    return pn_done();
}
