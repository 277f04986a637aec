/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule that says when two figures differ; one for all commands that compare.
 */
#ifndef MOESIM_CLI_PAIRED_H
#define MOESIM_CLI_PAIRED_H

#include <stdbool.h>

#include "sim/stats.h"

/* True where the interval is defined and does not contain 0, and the sign-flip test agrees (p < 0.05). With few requests the
 * interval alone would say so too easily: with five or fewer, p cannot get below 0.05. */
bool moesim_paired_distinguishable(const moesim_paired *paired);

/* The same of two ratios over n requests, without resampling where the difference is many standard errors. */
moesim_code moesim_paired_differ(moesim_bootstrap *b, const double *num_a, const double *den_a, const double *num_b,
                                 const double *den_b, size_t n, uint64_t seed, bool *out, moesim_error *err);

#endif
