/* SPDX-License-Identifier: Apache-2.0
 *
 * All figures of a cell by one number each: those of counts (moesim_metrics), then those of time (moesim_time_metrics), then
 * percentiles of TPOT over requests. Commands that print cells share the order, the names and how intervals are made.
 */
#ifndef MOESIM_CLI_FIGURES_H
#define MOESIM_CLI_FIGURES_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/metrics.h"
#include "sim/stats.h"
#include "sim/timing.h"

typedef struct moesim_figure {
    const char *name, *unit, *help;
    const moesim_metric *count;          /* one of the three kinds: */
    const moesim_time_metric *time;
    double percentile;                   /* of `time`, which is then the first; else 0 */
} moesim_figure;

/* Number of figures; without time only those of counts, which come first. */
size_t moesim_num_figures(bool timed);

moesim_figure moesim_figure_at(size_t k);

/* By name; a name that does not exist is a bug (the number of all figures is returned). */
size_t moesim_figure_index(const char *name);

/* "f_lo", "f_hi"; a final _ms is left out: tpot_ms has tpot_lo and tpot_hi. Returns out. */
const char *moesim_figure_bound(const char *name, const char *end, char out[64]);

/* What figures are made of. timing NULL: only those of counts are defined. */
typedef struct moesim_figure_source {
    const moesim_outcome *outcome;
    const moesim_timing *timing;
    bool global;                         /* scope global has no slots: figures of them are undefined */
} moesim_figure_source;

/* NaN where undefined. */
moesim_code moesim_figure_value(const moesim_figure *figure, const moesim_figure_source *source, double *out,
                                moesim_error *err);

/* Numerators and denominators by request, [num_requests]; not for percentiles. */
void moesim_figure_terms(const moesim_figure *figure, const moesim_figure_source *source, double *num, double *den);

/* Values and intervals of figures [begin, end); intervals NULL: values alone. Undefined ones are NaN. */
moesim_code moesim_figures_fill(moesim_bootstrap *bootstrap, const moesim_figure_source *source, size_t begin, size_t end,
                                double *value, moesim_interval *interval, moesim_error *err);

/* Counts of an outcome, beside the figures: JSON and CSV share their names. */
typedef struct moesim_count {
    const char *name;            /* NULL ends the table */
    const char *unit;            /* "bytes", "" for plain counts */
    double (*get)(const moesim_outcome *outcome);   /* whole numbers below 2^53; shares of merged passes have fractions */
} moesim_count;
extern const moesim_count moesim_counts[];

/* Cumulative: hits / accesses over every event, prefill and warm-up included; NaN without accesses. Published hit curves are
 * of this kind. */
double moesim_all_hit_rate(const moesim_outcome *outcome);

#endif
