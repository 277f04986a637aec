/* SPDX-License-Identifier: Apache-2.0
 *
 * The timer of an instance: hands each event, as decided, to one executor per costing, and charges the time of a step to the
 * requests that took part (semantics §1 "Batch size", §2 TPOT and TTFT). What an instance decided is laid out once, so a
 * second bandwidth costs its executor alone. One thread at a time; nothing allocates between steps of known requests.
 */
#ifndef MOESIM_SIM_TIMER_H
#define MOESIM_SIM_TIMER_H

#include "moesim/policy.h"
#include "sim/timing.h"
#include "sim/window.h"

typedef struct moesim_timer moesim_timer;

/* One executor for each of the n costings, which outlive the timer. Requests below first_request warm up and are not
 * charged. max_prefetch: as of moesim_executor_create. */
moesim_code moesim_timer_create(const moesim_costing *const *costing, uint32_t n, uint32_t max_prefetch, uint64_t first_request,
                                moesim_timer **out, moesim_error *err);
void moesim_timer_destroy(moesim_timer **timer);         /* NULL allowed */

/* Runs the clock to the moment when the next event's gate is known (for policies that prefetch; else the event does). */
void moesim_timer_gate(moesim_timer *timer);

/* One event as decided. index: its number in the window, whose `count` must be filled. misses and cpu (NULL: none) are
 * [words]; order (NULL: ascending) lists all n_misses in the order in which they are copied. */
void moesim_timer_event(moesim_timer *timer, const moesim_window *w, size_t index, const uint64_t *misses, const uint64_t *cpu,
                        const uint16_t *order, uint32_t n_misses);

/* All events of the step are done: adds the head and charges. */
moesim_code moesim_timer_end(moesim_timer *timer, const moesim_window *w, const moesim_step *step, moesim_error *err);

/* Sums of the first num_requests counted requests, whose output tokens are given; fills timing[n], freed by the caller with
 * moesim_timing_fini. */
moesim_code moesim_timer_finish(const moesim_timer *timer, uint32_t num_requests, moesim_timing *timing, moesim_error *err);
void moesim_timing_fini(moesim_timing *timing);

/* Executor i, for prefetches; its costing's number of executors. */
moesim_executor *moesim_timer_executor(moesim_timer *timer, uint32_t i);
uint32_t moesim_timer_count(const moesim_timer *timer);

#endif
