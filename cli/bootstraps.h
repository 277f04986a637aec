/* SPDX-License-Identifier: Apache-2.0
 *
 * A bootstrap for each thread, all of the same resamples.
 */
#ifndef MOESIM_CLI_BOOTSTRAPS_H
#define MOESIM_CLI_BOOTSTRAPS_H

#include "sim/stats.h"

typedef struct moesim_bootstraps {
    uint32_t n;                  /* threads that they serve */
    moesim_bootstrap **of;       /* [n] */
} moesim_bootstraps;

/* For at most `threads` threads (fewer where many would take much memory). Released by moesim_bootstraps_fini, whatever this
 * returns; *out is zeroed. */
moesim_code moesim_bootstraps_init(size_t requests, uint64_t seed, uint64_t threads, moesim_bootstraps *out, moesim_error *err);
void moesim_bootstraps_fini(moesim_bootstraps *b);

#endif
