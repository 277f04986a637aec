/* SPDX-License-Identifier: Apache-2.0
 *
 * Real numbers in order.
 */
#include "base/sort.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *x, const void *y)
{
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

void moesim_sort_reals(double *value, size_t n)
{
    qsort(value, n, sizeof *value, ascending);
}

size_t moesim_rank_index(size_t n, double q)
{
    /* 0.99 · 100 must give rank 99 although the product may lie a digit above it */
    const double rank = ceil(q * (double)n - 1e-9);
    return rank >= 1 ? (size_t)rank - 1 : 0;
}
