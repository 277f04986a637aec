/* SPDX-License-Identifier: Apache-2.0
 *
 * The rule that says when two figures differ.
 */
#include "cli/paired.h"

#include <math.h>

#define SIGNIFICANT 0.05
#define FAR 8.0                  /* standard errors at which no resampling is needed */
#define MANY 20u                 /* … from so many requests on */

bool moesim_paired_distinguishable(const moesim_paired *paired)
{
    return (paired->interval.lo > 0 || paired->interval.hi < 0) && paired->p < SIGNIFICANT;
}

/* So far apart that resampling would only cost time: |mean of the differences| in standard errors. */
static bool far_apart(const double *num_a, const double *num_b, const double *den_a, const double *den_b, size_t n)
{
    double sum = 0, squares = 0;
    if (n < MANY)
        return false;
    for (size_t r = 0; r < n; r++)
        sum += num_a[r] / den_a[r] - num_b[r] / den_b[r];
    const double mean = sum / (double)n;
    for (size_t r = 0; r < n; r++) {
        const double d = num_a[r] / den_a[r] - num_b[r] / den_b[r] - mean;
        squares += d * d;
    }
    const double error = sqrt(squares / (double)(n - 1) / (double)n);
    return fabs(mean) > FAR * error && error > 0;
}

moesim_code moesim_paired_differ(moesim_bootstrap *b, const double *num_a, const double *den_a, const double *num_b,
                                 const double *den_b, size_t n, uint64_t seed, bool *out, moesim_error *err)
{
    moesim_paired paired;
    *out = far_apart(num_a, num_b, den_a, den_b, n);
    if (*out)
        return MOESIM_OK;
    const moesim_code code = moesim_bootstrap_paired(b, num_a, den_a, num_b, den_b, seed, &paired, err);
    *out = code == MOESIM_OK && moesim_paired_distinguishable(&paired);
    return code;
}
