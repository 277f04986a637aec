/* SPDX-License-Identifier: Apache-2.0
 *
 * Results made up for the tests of figures: a grid with figures, intervals and requests that are plausible and deterministic.
 */
#ifndef MOESIM_TESTS_UNIT_PLOTS_SAMPLE_H
#define MOESIM_TESTS_UNIT_PLOTS_SAMPLE_H

#include <stdint.h>

#include "plots/chart.h"
#include "sim/result.h"

struct sample {
    const char *const *policy;           /* the first is lru-like; "ideal" and "full" are bounds */
    size_t num_policies;
    const char *const *trace;
    size_t num_traces;
    size_t num_caches;                   /* 10, 20, … */
    size_t num_bandwidths;               /* 16, 32, …; 0: counts alone */
    size_t num_requests;                 /* of a cell */
    size_t num_workloads;
    const char *model, *priced_as, *profile;
    int64_t full_cache;                  /* 0: policy full is at all capacities; else it is at this one alone */
};

/* Policies lru, oled, oled:confidence=lag1,adapt=on,dispatch=reuse, surv, belady, ideal, full; one trace; 12 capacities; 4
 * bandwidths; 12 requests of 3 workloads. */
extern const struct sample sample_usual;

/* Fills *out, which the caller releases; prints why and aborts where it cannot. */
void sample_result(const struct sample *s, moesim_result *out);

/* The first series of a role and a name (NULL: whatever its name). sample_find: NULL where there is none; sample_series: fails
 * the test then. */
const moesim_series *sample_find(const moesim_chart *chart, const char *role, const char *name);
const moesim_series *sample_series(const moesim_chart *chart, const char *role, const char *name);

/* Value of the first cell with these coordinates, at any bandwidth where gbps is NaN; fails the test where there is none. */
double sample_cell(const moesim_result *r, const char *policy, double cache, double gbps, const char *column);

#endif
