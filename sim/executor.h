/* SPDX-License-Identifier: Apache-2.0
 *
 * Executors: what the decisions of one event cost in time. One table of functions: count (no time), paper (the closed forms
 * of OLED-MoE §4.4 and §5.4), model (three servers, one shared resource, one clock). sim/TIMING.md has the formulas.
 * An executor belongs to one cell and is used by one thread at a time. Nothing allocates after creation.
 *
 * One event of a policy that prefetches:   prefetch / pause (from request, boundary, before_layer)
 *     → gate() → landed() → residency, hits and misses, dispatch → event()
 * and at the end of the pass, all layers done, end_pass(). Where nothing is prefetched gate() and landed() may be left out.
 */
#ifndef MOESIM_SIM_EXECUTOR_H
#define MOESIM_SIM_EXECUTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/costing.h"

/* One event as decided. Token arrays run parallel to the experts, in the order in which they are copied or computed. */
typedef struct moesim_work {
    uint32_t layer;
    uint32_t num_rows;           /* rows of the event (activations) */
    uint32_t n_hits;             /* resident experts of A */
    uint32_t n_moved, n_cpu;     /* each at most 1024, as n_hits */
    const uint32_t *hit_tokens;  /* [n_hits] each ≥ 1; read in mode model alone, else may be NULL */
    const uint32_t *moved_tokens;/* [n_moved] */
    const uint32_t *cpu_tokens;  /* [n_cpu] */
    const uint16_t *moved;       /* [n_moved] expert ids; read where the executor may prefetch only, else may be NULL */
} moesim_work;

/* Where the time of an event went. `total` is the sum of the first nine, which partition it, added in this order:
 * hits: grouped call of the resident experts; link: what copies and moved experts add after it; cpu: what the CPU path adds
 * beyond both; dram: what sharing DRAM adds. All ≥ 0. */
typedef struct moesim_parts {
    double other_gpu, other_host, sync, hits, link, cpu, dram, policy, head;
    double total;
    double busy_link, busy_cpu, busy_gpu;    /* seconds each server worked; link: host to device, prefetches included */
} moesim_parts;

/* One expert of one layer: a prefetch that is asked for or has landed. */
typedef struct moesim_landed { uint32_t layer, expert; } moesim_landed;

typedef struct moesim_executor moesim_executor;

typedef struct moesim_executor_ops {
    const char *name;            /* count, paper, model */
    /* Runs the clock to the moment when the gate of the next event is known (other, sync, policy; paper: the constant layer),
     * prefetches going on, and adds to *parts. event() does it itself where it was not called. */
    void (*gate)(moesim_executor *x, moesim_parts *parts);
    /* Times the rest of one event, beginning when the previous one ended; adds to *parts. */
    void (*event)(moesim_executor *x, const moesim_work *work, moesim_parts *parts);
    /* The head; all layers of the pass are done. Adds to *parts. */
    void (*end_pass)(moesim_executor *x, moesim_parts *parts);
    /* Replaces the prefetches that have not started (n 0: drops them) by entries in falling priority, of all layers. What is
     * over max_prefetch is left out. */
    void (*prefetch)(moesim_executor *x, const moesim_landed *entry, uint32_t n);
    /* on ≠ 0: no further copy starts until it is called with 0. What has started finishes. */
    void (*pause)(moesim_executor *x, int on);
    /* Prefetches landed since the last call in the order of landing, at most n; returns how many. count: all asked for, by
     * priority. A prefetch whose demand copy came first never lands; one that had started when its event was gated became
     * that event's first copy and does not land either: its expert is among `moved`. */
    uint32_t (*landed)(moesim_executor *x, moesim_landed *out, uint32_t n);
} moesim_executor_ops;

struct moesim_executor {
    const moesim_executor_ops *ops;
};

/* max_prefetch: most entries of a prefetch list; 0: the policy never prefetches (prefetch, pause and landed do nothing).
 * The costing outlives the executor; its mode chooses the table of functions. Caller destroys. */
moesim_code moesim_executor_create(const moesim_costing *costing, uint32_t max_prefetch, moesim_executor **out,
                                   moesim_error *err);
void moesim_executor_destroy(moesim_executor **executor);    /* NULL allowed */

/* Whether both are of mode model, do not prefetch and differ in their links alone. */
bool moesim_executors_alike(const moesim_executor *x, const moesim_executor *y);

/* event() of n executors, faster where they are all alike. */
void moesim_executors_event(moesim_executor *const *x, uint32_t n, bool alike, const moesim_work *work,
                            moesim_parts *const *parts);

/* Seconds since the run began, on the executor's clock. */
double moesim_executor_now(const moesim_executor *executor);

/* *to += *from, field by field. */
void moesim_parts_add(moesim_parts *to, const moesim_parts *from);

/* Between two passes: clock, queue and landings as bytes, for checkpoints; addresses are multiples of 8. restore: false, and
 * nothing changed, if the bytes cannot be the state of an executor of this costing and max_prefetch. */
size_t moesim_executor_state_bytes(const moesim_executor *executor);
void moesim_executor_save(const moesim_executor *executor, void *out);
bool moesim_executor_restore(moesim_executor *executor, const void *in);

#endif
