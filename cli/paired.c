/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule that says when two figures differ.
 */
#include "cli/paired.h"

#define SIGNIFICANT 0.05

bool moesim_paired_distinguishable(const moesim_paired *paired)
{
    return (paired->interval.lo > 0 || paired->interval.hi < 0) && paired->p < SIGNIFICANT;
}
