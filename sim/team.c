/* SPDX-License-Identifier: Apache-2.0
 *
 * Threads over configurations: a queue by index within a window, a barrier at its end.
 */
#include "sim/team.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"

static void work(moesim_team *t)
{
    for (;;) {
        const size_t i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED);
        if (i >= t->n)
            return;
        if (moesim_interrupted())
            moesim_fail(&t->error[i], MOESIM_E_INTERRUPTED, "interrupted");
        else
            moesim_instance_advance(t->instance[i], t->window, &t->error[i]);
    }
}

static void *worker(void *cookie)
{
    moesim_team *t = cookie;
    uint64_t seen = 0;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        while (t->round == seen && !t->stop)
            pthread_cond_wait(&t->begin, &t->lock);
        if (t->stop)
            break;
        seen = t->round;
        pthread_mutex_unlock(&t->lock);
        work(t);
        pthread_mutex_lock(&t->lock);
        if (--t->busy == 0)
            pthread_cond_signal(&t->done);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* Every configuration over one window; the error of the first in order. */
moesim_code moesim_team_window(moesim_team *t, const moesim_window *window, moesim_error *err)
{
    pthread_mutex_lock(&t->lock);
    t->window = window;
    __atomic_store_n(&t->next, 0, __ATOMIC_RELAXED);
    t->busy = t->threads;
    t->round++;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    work(t);
    pthread_mutex_lock(&t->lock);
    while (t->busy > 0)
        pthread_cond_wait(&t->done, &t->lock);
    pthread_mutex_unlock(&t->lock);
    for (size_t i = 0; i < t->n; i++)
        if (t->error[i].code != MOESIM_OK) {
            *err = t->error[i];
            return err->code;
        }
    return MOESIM_OK;
}

moesim_code moesim_team_start(moesim_team *t, uint32_t threads, size_t n, moesim_error *err)
{
    const uint32_t helpers = threads - 1u < n ? threads - 1u : (uint32_t)n;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begin, NULL);
    pthread_cond_init(&t->done, NULL);
    if (moesim_alloc(n, sizeof(moesim_instance *), "the configurations", (void **)&t->instance, err) != MOESIM_OK ||
        moesim_alloc(n, sizeof *t->error, "the configurations", (void **)&t->error, err) != MOESIM_OK ||
        moesim_alloc(helpers, sizeof *t->thread, "the threads", (void **)&t->thread, err) != MOESIM_OK)
        return err->code;
    t->n = n;
    /* a thread that the system refuses is done without */
    while (t->threads < helpers && pthread_create(&t->thread[t->threads], NULL, worker, t) == 0)
        t->threads++;
    return MOESIM_OK;
}

void moesim_team_stop(moesim_team *t)
{
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->begin);
    pthread_mutex_unlock(&t->lock);
    for (uint32_t i = 0; i < t->threads; i++)
        pthread_join(t->thread[i], NULL);
    for (size_t i = 0; t->instance != NULL && i < t->n; i++)
        moesim_instance_destroy(&t->instance[i]);
    free(t->instance);
    free(t->error);
    free(t->thread);
    pthread_cond_destroy(&t->done);
    pthread_cond_destroy(&t->begin);
    pthread_mutex_destroy(&t->lock);
}
