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

#endif
