/* SPDX-License-Identifier: Apache-2.0
 *
 * One event after its gate, step by step: link, CPU pool and GPU stream, with or without sharing of DRAM. For events with
 * CPU experts or prefetches; sim/exec_model.c has the loop for all others. sim/TIMING.md §4.
 */
#ifndef MOESIM_SIM_TIMELINE_H
#define MOESIM_SIM_TIMELINE_H

#include "sim/cost_tables.h"
#include "sim/executor.h"
#include "sim/link.h"

/* Seconds after the gate. */
typedef struct moesim_timeline {
    double gpu;                  /* last moved expert computed; without any the end of the hits */
    double cpu;                  /* CPU results combined; 0 without CPU experts */
    double end;                  /* the later of both */
    double busy_link, busy_cpu;
    double moved;                /* GPU seconds of the moved experts */
} moesim_timeline;

/* hits: seconds of the grouped call; done: scratch [n_moved]. The link advances to the end of the event. */
void moesim_timeline_run(const moesim_costing *costing, const moesim_work *work, double hits, bool shared, moesim_link *link,
                         double *done, moesim_timeline *out);

#endif
