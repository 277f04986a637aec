/* SPDX-License-Identifier: Apache-2.0
 *
 * A machine of round numbers for timelines by hand, and random events for properties. One unit is one second, one expert
 * 900 bytes:
 *   link: α = 1, β = 100 B/s, so a copy takes 1 + 9 = 10; two rows go to the host and results come back in 1 + 2·10/10 = 3
 *   CPU: step 2, t(1) = 6, t(2) = 8, t(4) = 12 and 2 more for each token; combine 1
 *   GPU: g0 = 1; g(1, n) = 1 + n; g(3, n) = 2 + 2·n; in between linear; arrival 0, moved 0
 *   other 5 on the GPU and 2 on the host, sync 1, policy 0.5: the gate is known at 8.5; head 4; DRAM far away
 */
#ifndef MOESIM_TESTS_UNIT_TIMING_MACHINE_H
#define MOESIM_TESTS_UNIT_TIMING_MACHINE_H

#include "base/rng.h"
#include "sim/executor.h"

enum { MACHINE_LAYERS = 3, MACHINE_ROWS = 16, MACHINE_BYTES = 900, MACHINE_HIDDEN = 10 };
#define MACHINE_GATE 8.5

void machine_profile(moesim_profile *out);       /* model */
void machine_paper(moesim_profile *out);         /* T_H2D 2 at 10 B/s, τ 3, layer 7 */

/* A costing of it; aborts the test where it is refused. */
moesim_costing *machine_costing(const moesim_profile *profile, enum moesim_time_mode mode, double bandwidth, uint32_t effects,
                                uint32_t staging);
moesim_executor *machine_executor(const moesim_costing *costing, uint32_t max_prefetch);

/* One event on a fresh executor, without prefetches. */
moesim_parts machine_event(const moesim_profile *profile, double bandwidth, uint32_t effects, uint32_t staging,
                           const moesim_work *work);

/* A machine of random constants: combine ≤ a + g(1, n) + c, tables rise. */
void machine_random_profile(moesim_rng *rng, moesim_profile *out);

/* A random event with its arrays. */
typedef struct machine_work {
    moesim_work work;
    uint32_t hit_tokens[32], moved_tokens[32], cpu_tokens[32];
    uint16_t moved[32];
} machine_work;
void machine_random_work(moesim_rng *rng, machine_work *out);

#endif
