/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures: each is a ratio of two sums (semantics §2), named as in JSON and CSV.
 */
#ifndef MOESIM_SIM_METRICS_H
#define MOESIM_SIM_METRICS_H

#include "sim/sim.h"

typedef struct moesim_metric {
    const char *name;            /* JSON and CSV key */
    const char *unit;            /* "" for a share */
    const char *help;
    double (*num)(const moesim_sums *s);
    double (*den)(const moesim_sums *s);
    bool macro;                  /* mean over requests of num/den instead of Σnum/Σden */
    bool in_global;              /* defined in scope global */
} moesim_metric;

/* name NULL ends the table. */
extern const moesim_metric moesim_metrics[];

/* Value for the whole outcome; NaN where undefined (C = 0, scope global, no events). */
double moesim_metric_value(const moesim_metric *metric, const moesim_outcome *outcome);

#endif
