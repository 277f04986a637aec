/* SPDX-License-Identifier: Apache-2.0
 *
 * Real numbers in order, and which of them is a percentile. Thread-safe.
 */
#ifndef MOESIM_BASE_SORT_H
#define MOESIM_BASE_SORT_H

#include <stddef.h>

/* Ascending; none is NaN. */
void moesim_sort_reals(double *value, size_t n);

/* Nearest rank: the index, among n ≥ 1 ascending values, of the smallest that at least the share q (0 to 1) of them does not
 * exceed. */
size_t moesim_rank_index(size_t n, double q);

#endif
