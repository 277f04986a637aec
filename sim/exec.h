/* SPDX-License-Identifier: Apache-2.0
 *
 * What all executors are made of; only sim/exec*.c and sim/executor.c include it.
 */
#ifndef MOESIM_SIM_EXEC_H
#define MOESIM_SIM_EXEC_H

#include "sim/cost_tables.h"
#include "sim/executor.h"
#include "sim/link.h"

typedef struct moesim_clocked {
    moesim_executor base;
    const moesim_costing *costing;
    double now;
    bool gated;                  /* the clock stands at the gate of the event to come */
    moesim_link link;
    double done[MOESIM_MOST_EXPERTS];    /* ends of the moved experts of the event in work */
} moesim_clocked;

static inline moesim_clocked *moesim_clocked_of(moesim_executor *x) { return (moesim_clocked *)(void *)x; }

/* Left to right, so that the total of an event without misses is other + sync + hits + policy to the last bit. */
static inline void moesim_parts_total(moesim_parts *p)
{
    p->total = p->other_gpu + p->other_host + p->sync + p->hits + p->link + p->cpu + p->dram + p->policy + p->head;
}

extern const moesim_executor_ops moesim_exec_count, moesim_exec_paper, moesim_exec_model;

/* One event of MOESIM_TOGETHER executors of mode model that are all alike (below), to the digits of event() on each. What does
 * not depend on the link is looked up once, and the chains of copies run side by side. No expert may be on the CPU. */
#define MOESIM_TOGETHER 4u
void moesim_exec_model_together(moesim_executor *const *x, const moesim_work *work, moesim_parts *const *parts);

/* The same for paper and model. */
void moesim_exec_prefetch(moesim_executor *x, const moesim_landed *entry, uint32_t n);
void moesim_exec_pause(moesim_executor *x, int on);
uint32_t moesim_exec_landed(moesim_executor *x, moesim_landed *out, uint32_t n);

#endif
