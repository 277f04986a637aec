/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run` inside: what the command line asks for, the grid of cells (capacity × policy) with everything computed for
 * them, and its three printed forms. run.c parses and drives, run_plan.c makes the grid, run_figures.c the statistics.
 */
#ifndef MOESIM_CLI_RUN_H
#define MOESIM_CLI_RUN_H

#include <stdint.h>
#include <stdio.h>

#include "base/args.h"
#include "cli/cachelist.h"
#include "cli/figures.h"
#include "cli/gap.h"
#include "cli/modes.h"
#include "cli/paired.h"
#include "cli/pricing.h"
#include "policies/registry.h"
#include "sim/grid.h"
#include "sim/stats.h"
#include "traces/trace.h"

#define MOESIM_MAX_POLICIES 256u

/* The model whose traces surv's table was found on (policies/surv.c). */
#define MOESIM_SURV_MODEL "example/blockdiff-moe-20x256k8"

typedef struct moesim_run_options {
    moesim_list policy, cache;
    moesim_modes modes;
    int format;                  /* enum moesim_format (cli/print.h) */
    moesim_range requests;
    uint64_t warmup, batch, staging, prefetch_budget, threads, seed, window;
    const char *baseline, *decisions, *csv;
    bool gap, check_observed, old_format;
    moesim_pricing_words pricing;
    const char *bandwidth;
    const char *path;            /* the trace, as given */
} moesim_run_options;

/* Difference of one figure between a cell and the baseline's cell of the same capacity. */
typedef struct moesim_pair {
    size_t cell, baseline;
    size_t metric;               /* number of the figure */
    moesim_paired result;
} moesim_pair;

typedef struct moesim_gap_row {
    size_t cell;
    moesim_gap gap;
} moesim_gap_row;

/* num_metrics figures of cli/figures.h a cell. Cell (c, p) has index c * num_policies + p; cells of the policies from
 * num_shown on were added for --gap and are not printed. All arrays are owned. */
typedef struct moesim_report {
    const moesim_run_options *options;
    moesim_trace *trace;
    const moesim_trace_info *info;
    char digest[MOESIM_DIGEST_CHARS];            /* SHA-256 of the file named by the user */
    uint64_t request_begin, request_end;
    moesim_policy_spec *policy;
    size_t num_policies, num_shown;
    size_t baseline;                             /* index of a policy, or SIZE_MAX: none */
    moesim_cachelist cache;
    size_t num_cells, num_metrics;
    moesim_pricing pricing;
    moesim_cell *cell;                           /* [num_cells] */
    moesim_outcome *outcome;                     /* [num_cells] with one timing each, but in count mode */
    double *value;                               /* [num_cells][num_metrics], NaN where undefined */
    moesim_interval *interval;                   /* [num_cells][num_metrics] */
    size_t num_pairs, num_gaps;
    moesim_pair *pair;
    moesim_gap_row *gap;
    moesim_offline_cost *bound;                  /* [cache.n] with --bound, else NULL */
    char decisions_digest[MOESIM_DIGEST_CHARS];  /* "" without --decisions */
} moesim_report;

/* Parses policies, checks every word against the trace (report->trace, info and options are set), lays out the cells. */
moesim_code moesim_report_plan(moesim_report *report, moesim_error *err);

/* Values, intervals, paired differences and gaps, from the outcomes. */
moesim_code moesim_report_figures(moesim_report *report, moesim_error *err);

/* --bound: nothing without it. After the cells have run, the bounds, and in ms per output token. */
moesim_code moesim_report_bound(moesim_report *report, const moesim_run_params *params, moesim_error *err);
double moesim_report_bound_ms(const moesim_report *report, size_t cache);

void moesim_report_fini(moesim_report *report);

static inline const moesim_policy_spec *moesim_report_policy(const moesim_report *r, size_t cell)
{
    return &r->policy[cell % r->num_policies];
}
static inline uint64_t moesim_report_cache(const moesim_report *r, size_t cell)
{
    return r->cache.amount[cell / r->num_policies];
}
static inline bool moesim_report_shown(const moesim_report *r, size_t cell)
{
    return cell % r->num_policies < r->num_shown;
}
static inline double moesim_report_value(const moesim_report *r, size_t cell, size_t metric)
{
    return r->value[cell * r->num_metrics + metric];
}
static inline moesim_interval moesim_report_interval(const moesim_report *r, size_t cell, size_t metric)
{
    return r->interval[cell * r->num_metrics + metric];
}

/* cli/paired.h has the rule. */
bool moesim_pair_distinguishable(const moesim_pair *pair);

static inline bool moesim_report_timed(const moesim_report *r)
{
    return r->pricing.mode != MOESIM_TIME_COUNT;
}

/* moesim_modes_ratio_p95 of a cell. */
double moesim_report_ratio_p95(const moesim_report *r, size_t cell);

/* The printed forms. JSON also serves the decision log: moesim_run_config_json returns the configuration alone, malloc'd. */
void moesim_run_print_table(const moesim_report *report, FILE *out);
void moesim_run_print_csv(const moesim_report *report, FILE *out);
moesim_code moesim_run_print_json(const moesim_report *report, FILE *out, moesim_error *err);
char *moesim_run_config_json(const moesim_report *report);

#endif
