/* SPDX-License-Identifier: Apache-2.0
 *
 * The model a second time, written from its rules alone: at each moment everything that can start is started, the speeds of all
 * servers are found, and time goes on to the first thing that ends. Slow, plain, with a clock for all servers at once.
 */
#ifndef MOESIM_TESTS_UNIT_TIMING_REFERENCE_H
#define MOESIM_TESTS_UNIT_TIMING_REFERENCE_H

#include "sim/executor.h"

/* Link as an event finds and leaves it. */
typedef struct reference_link {
    int busy;                    /* a prefetch is in flight */
    moesim_landed flying;
    double fixed, stream;        /* seconds it still takes */
    moesim_landed list[64];
    uint32_t n;
    moesim_landed landed[256];
    uint32_t num_landed;
} reference_link;

typedef struct reference_machine {
    const moesim_profile *profile;
    double bandwidth;
    uint32_t staging;
    int contention, overlap;
} reference_machine;

/* Seconds from the gate to the end of the event; *busy: seconds in which the link worked. */
double reference_event(const reference_machine *m, const moesim_work *work, reference_link *link, double *busy);

/* Prefetches alone. */
double reference_run(const reference_machine *m, reference_link *link, double seconds);

#endif
