/* SPDX-License-Identifier: Apache-2.0
 *
 * Checkpoints: what every configuration of a run knows between two windows, so that a run that was killed goes on there and
 * ends with the same bytes. Written under a temporary name at window ends; a checkpoint of another trace, configuration,
 * program version or machine type is refused. The state of a policy is plain bytes (moesim/policy.h); next uses and windows
 * are made anew, so windows that were finished are decoded and skipped.
 */
#ifndef MOESIM_SIM_CHECKPOINT_H
#define MOESIM_SIM_CHECKPOINT_H

#include <stdint.h>

#include "base/error.h"

typedef struct moesim_checkpoint {
    const char *path;            /* read if it exists, written while the run goes on, removed by the caller at the end */
    const char *identity;        /* digest of everything that the run depends on */
    double every_s;              /* seconds between two writings at least; 0: after every window (tests) */
    uint64_t stop_after;         /* windows after which the run ends as if interrupted, for tests; 0: never */
} moesim_checkpoint;

struct moesim_instance;

/* n configurations after `windows` windows. */
moesim_code moesim_checkpoint_write(const moesim_checkpoint *c, struct moesim_instance *const *instance, size_t n,
                                    uint64_t windows, moesim_error *err);

/* *windows = 0 where there is no file. */
moesim_code moesim_checkpoint_read(const moesim_checkpoint *c, struct moesim_instance *const *instance, size_t n,
                                   uint64_t *windows, moesim_error *err);

#endif
