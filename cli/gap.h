/* SPDX-License-Identifier: Apache-2.0
 *
 * Gap decomposition (semantics of the metric table): of the misses that a policy has above belady, which share comes from
 * having to admit every miss and which from choosing the wrong victim. With m = misses:
 * admission = (m_forced − m_belady) / (m_policy − m_belady), victim = (m_policy − m_forced) / (m_policy − m_belady).
 */
#ifndef MOESIM_CLI_GAP_H
#define MOESIM_CLI_GAP_H

#include "sim/sim.h"
#include "sim/stats.h"

typedef struct moesim_gap {
    double misses;               /* per pass above belady; NaN without passes */
    double admission, victim;    /* shares, they add up to 1; NaN: not applicable, see why */
    moesim_interval admission_ci, victim_ci;
    const char *why;             /* NULL, or a few words on why there is no decomposition */
} moesim_gap;

/* The three outcomes are of one capacity and one selection of requests. No shares where more than 5 % of the events have
 * |A| > C (belady-forced must then drop experts that it has just admitted), where the policy has no misses above belady,
 * and where the policy moved its capacities (belady's are fixed). */
moesim_code moesim_gap_compute(moesim_bootstrap *bootstrap, const moesim_outcome *policy, const moesim_outcome *forced,
                               const moesim_outcome *belady, moesim_gap *out, moesim_error *err);

#endif
