/* SPDX-License-Identifier: Apache-2.0
 *
 * The interval of a mean of few values.
 */
#include "sim/stats.h"

#include <math.h>

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_statistics_double.h>

moesim_code moesim_mean_interval(const double *value, size_t n, moesim_interval *out, moesim_error *err)
{
    *out = (moesim_interval){NAN, NAN};
    if (n < 2)
        return MOESIM_OK;
    if (n > UINT32_MAX)
        return moesim_fail(err, MOESIM_E_LIMIT, "the interval of a mean of more than 2^32 - 1 values was asked for");
    const double mean = gsl_stats_mean(value, 1, n), sd = gsl_stats_sd(value, 1, n);
    const double half = gsl_cdf_tdist_Pinv(0.975, (double)(n - 1)) * sd / sqrt((double)n);
    *out = (moesim_interval){mean - half, mean + half};
    return MOESIM_OK;
}
