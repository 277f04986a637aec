/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads over independent pieces.
 */
#include "base/parallel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/arena.h"

typedef struct crew {
    size_t n;
    moesim_piece_fn *work;
    void *cookie;
    moesim_progress *progress;
    size_t next, done;           /* atomic access only */
    bool failed;                 /* atomic access only */
} crew;

/* One thread: the first piece that failed on it. Pieces are taken in order, so those below a failed one all ran. */
typedef struct worker {
    crew *crew;
    pthread_t thread;
    uint32_t number;
    size_t at;
    moesim_error error;
} worker;

static moesim_code run_piece(worker *w, size_t i)
{
    if (moesim_interrupted())
        return moesim_fail(&w->error, MOESIM_E_INTERRUPTED, "interrupted");
    return w->crew->work(w->crew->cookie, w->number, i, &w->error);
}

static void *run_worker(void *cookie)
{
    worker *w = cookie;
    crew *c = w->crew;
    while (!__atomic_load_n(&c->failed, __ATOMIC_RELAXED)) {
        const size_t i = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
        if (i >= c->n)
            break;
        if (run_piece(w, i) != MOESIM_OK) {
            w->at = i;
            __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
            break;
        }
        const size_t done = __atomic_add_fetch(&c->done, 1, __ATOMIC_RELAXED);
        if (w->number == 0 && c->progress != NULL)
            moesim_progress_update(c->progress, done);
    }
    return NULL;
}

moesim_code moesim_parallel(uint32_t threads, size_t n, moesim_piece_fn *work, void *cookie, moesim_progress *progress,
                            moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    crew c = { .n = n, .work = work, .cookie = cookie, .progress = progress };
    const uint32_t wanted = threads == 0 || n <= 1 ? 1 : threads < n ? threads : (uint32_t)n;
    void *p = NULL;
    if (moesim_alloc(wanted, sizeof(worker), "threads", &p, err) != MOESIM_OK)
        return err->code;
    worker *w = p;
    uint32_t started = 1;
    for (uint32_t i = 0; i < wanted; i++)
        w[i] = (worker){ .crew = &c, .number = i, .at = n, .error = MOESIM_ERROR_INIT };
    while (started < wanted && pthread_create(&w[started].thread, NULL, run_worker, &w[started]) == 0)
        started++;
    run_worker(&w[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(w[i].thread, NULL);
    const worker *first = &w[0];
    for (uint32_t i = 1; i < started; i++)
        if (w[i].at < first->at)
            first = &w[i];
    const moesim_code code = first->at < n ? first->error.code : MOESIM_OK;
    if (code != MOESIM_OK)
        *err = first->error;
    free(p);
    return code;
}
