/* SPDX-License-Identifier: Apache-2.0
 *
 * The configurations of a run and the threads that advance them over one window after the other. Nothing that they compute
 * depends on the number of threads. Internal to sim/.
 */
#ifndef MOESIM_SIM_TEAM_H
#define MOESIM_SIM_TEAM_H

#include <pthread.h>
#include <stdbool.h>

#include "sim/instance.h"

typedef struct moesim_team {
    moesim_instance **instance;
    moesim_error *error;         /* [n] of each configuration */
    size_t n;
    size_t next;                 /* index in the queue; atomic access only */
    pthread_t *thread;
    uint32_t threads;            /* started, beside the caller's */
    pthread_mutex_t lock;
    pthread_cond_t begin, done;
    uint64_t round;              /* windows handed out; under the lock, as the rest */
    uint32_t busy;
    bool stop;
    const moesim_window *window;
} moesim_team;

/* Room for n configurations, whose instances the caller makes, and threads − 1 threads beside the caller's. Released by
 * moesim_team_stop, whatever this returns. *t is zeroed. */
moesim_code moesim_team_start(moesim_team *t, uint32_t threads, size_t n, moesim_error *err);

/* Every configuration over one window; the error of the first in order. */
moesim_code moesim_team_window(moesim_team *t, const moesim_window *window, moesim_error *err);

/* Ends the threads and destroys the instances. */
void moesim_team_stop(moesim_team *t);

#endif
