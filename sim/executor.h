/* SPDX-License-Identifier: Apache-2.0
 *
 * Executors: what the decisions of one event cost in time. One table of functions: count (no time), paper (the closed forms
 * of OLED-MoE §4.4 and §5.4), model (three servers, one shared resource, one clock; hwprofile/TIMING.md).
 * An executor belongs to one cell and is used by one thread at a time.
 */
#ifndef MOESIM_SIM_EXECUTOR_H
#define MOESIM_SIM_EXECUTOR_H

#include <stdint.h>

#include "sim/costing.h"

/* One event as decided. Token arrays run parallel to the experts, in the order in which they are copied or computed. */
typedef struct moesim_work {
    uint32_t layer;
    uint32_t num_rows;           /* rows of the event (activations) */
    uint32_t n_hits, hit_tokens; /* resident experts of A and routes to them */
    uint32_t n_moved, n_cpu;
    const uint32_t *moved_tokens;/* [n_moved] */
    const uint32_t *cpu_tokens;  /* [n_cpu] */
} moesim_work;

/* Where the time of an event went; `total` is the sum of the first nine, which partition it: `link` is what waiting for
 * copies added after the hits (dram-free), `cpu` what the CPU path added beyond that, `dram` what sharing DRAM added. */
typedef struct moesim_parts {
    double other_gpu, other_host, sync, hits, link, cpu, dram, policy, head;
    double total;
    double busy_link, busy_cpu, busy_gpu;    /* seconds each server worked */
} moesim_parts;

/* A prefetch in the link queue. */
typedef struct moesim_landed { uint32_t layer, expert; } moesim_landed;

typedef struct moesim_executor moesim_executor;

typedef struct moesim_executor_ops {
    const char *name;            /* count, paper, model */
    /* Times one event beginning when the previous one ended; adds to *parts. */
    void (*event)(moesim_executor *x, const moesim_work *work, moesim_parts *parts);
    void (*end_pass)(moesim_executor *x, moesim_parts *parts);
    /* Replaces the prefetches that have not started; entries in falling priority. pause: start nothing more. */
    void (*prefetch)(moesim_executor *x, const moesim_landed *entry, uint32_t n, int pause);
    /* Prefetches landed since the last call, at most n; returns how many. `wait` names an expert of the layer about to run
     * whose copy has started: its remaining time is charged to the event. */
    uint32_t (*landed)(moesim_executor *x, moesim_landed *out, uint32_t n);
} moesim_executor_ops;

struct moesim_executor {
    const moesim_executor_ops *ops;
};

moesim_code moesim_executor_create(const moesim_costing *costing, moesim_executor **out, moesim_error *err);
void moesim_executor_destroy(moesim_executor **executor);

/* Seconds since the run began, on the executor's clock. */
double moesim_executor_now(const moesim_executor *executor);

#endif
