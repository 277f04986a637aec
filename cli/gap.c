/* SPDX-License-Identifier: Apache-2.0
 *
 * Gap decomposition from three outcomes.
 */
#include "cli/gap.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"

#define MOST_OVER 0.05            /* share of events with |A| > C above which belady-forced says nothing */

static const char *reason(const moesim_outcome *policy, const moesim_outcome *belady)
{
    if (belady->total.ratio_over > MOST_OVER * belady->total.events)
        return "r > 1 in more than 5 % of events";
    if (policy->capacity_changes > 0)
        return "capacities changed";
    return policy->total.misses > belady->total.misses ? NULL : "no misses above belady";
}

moesim_code moesim_gap_compute(moesim_bootstrap *bootstrap, const moesim_outcome *policy, const moesim_outcome *forced,
                               const moesim_outcome *belady, moesim_gap *out, moesim_error *err)
{
    const double above = policy->total.misses - belady->total.misses;
    const size_t n = policy->num_requests;
    *out = (moesim_gap){ above / policy->total.passes, NAN, NAN, { NAN, NAN }, { NAN, NAN }, reason(policy, belady) };
    if (out->why != NULL)
        return MOESIM_OK;
    void *p = NULL;
    if (moesim_alloc(3 * n, sizeof(double), "gap decomposition", &p, err) != MOESIM_OK)
        return err->code;
    double *gap = p, *admission = gap + n, *victim = admission + n;
    for (size_t r = 0; r < n; r++) {
        gap[r] = policy->request[r].misses - belady->request[r].misses;
        admission[r] = forced->request[r].misses - belady->request[r].misses;
        victim[r] = policy->request[r].misses - forced->request[r].misses;
    }
    out->admission = (forced->total.misses - belady->total.misses) / above;
    out->victim = (policy->total.misses - forced->total.misses) / above;
    moesim_code code = moesim_bootstrap_ratio(bootstrap, admission, gap, &out->admission_ci, err);
    if (code == MOESIM_OK)
        code = moesim_bootstrap_ratio(bootstrap, victim, gap, &out->victim_ci, err);
    free(p);
    return code;
}
