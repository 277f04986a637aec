/* SPDX-License-Identifier: Apache-2.0
 *
 * What one policy at one capacity decides, as a decision log on disk: for replays, and for predictions of what was replayed.
 * Both sides call this, so that a policy that reads costs is told the same ones.
 */
#ifndef MOESIM_SIM_DECIDE_H
#define MOESIM_SIM_DECIDE_H

#include <stdbool.h>

#include "sim/grid.h"

typedef struct moesim_decide {
    moesim_run_params run;       /* selection, batch, staging, seed; scope layer, order atomic. A sink is told too; progress,
                                  * declog and checkpoint are not used */
    moesim_cell cell;            /* policy, options, cache; bandwidth of the link (B/s, 0: the profile's) for policies that read
                                  * costs, else ignored */
    const char *given, *effective;       /* the policy as given; all options in force */
    const moesim_profile *profile;       /* may be NULL for policies that read no costs */
    const uint64_t *expert_bytes;        /* [M] of the model that is priced */
    uint64_t hidden_bytes;               /* of one row's activation */
} moesim_decide;

/* Does the log depend on bandwidth and profile? */
bool moesim_decide_reads_costs(const moesim_cell *cell);

/* Runs the trace, whose digest must have been computed, and writes the log to path (NULL: no file, the sink alone). digest
 * (NULL: not wanted) is that of the decisions; "" without a path. USAGE: a policy that reads costs without a profile; one that
 * prefetches (what lands depends on time, which a log of decisions cannot say). Costs are those of mode model with every
 * effect. */
moesim_code moesim_decide_log(moesim_trace *trace, const moesim_decide *decide, const char *path,
                              char digest[MOESIM_DIGEST_CHARS], moesim_error *err);

#endif
