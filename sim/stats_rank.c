/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals of percentiles. A resample of n values has its m-th smallest at or below the k-th of the n with the probability
 * that at least m of n draws are among the lowest k: binomial, so nothing is drawn.
 */
#include "sim/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_cdf.h>

#include "base/arena.h"
#include "base/sort.h"

/* Smallest k, from 1, at which the probability reaches p; it grows with k. */
static size_t rank_at(size_t n, size_t m, double p)
{
    size_t low = 1, high = n;
    while (low < high) {
        const size_t k = low + (high - low) / 2;
        if (gsl_cdf_binomial_Q((unsigned)m - 1u, (double)k / (double)n, (unsigned)n) >= p)
            high = k;
        else
            low = k + 1;
    }
    return low;
}

moesim_code moesim_percentile_interval(const double *value, size_t n, double q, moesim_interval *out, moesim_error *err)
{
    void *p = NULL;
    *out = (moesim_interval){NAN, NAN};
    if (n < 2 || n > UINT32_MAX)
        return MOESIM_OK;
    const moesim_code code = moesim_alloc(n, sizeof *value, "percentiles", &p, err);
    if (code != MOESIM_OK)
        return code;
    double *sorted = p;
    memcpy(sorted, value, n * sizeof *sorted);
    moesim_sort_reals(sorted, n);
    const size_t m = moesim_rank_index(n, q) + 1;
    *out = (moesim_interval){sorted[rank_at(n, m, 0.025) - 1], sorted[rank_at(n, m, 0.975) - 1]};
    free(p);
    return MOESIM_OK;
}
