/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of a trace beside the values that the OLED-MoE paper reports for LLaDA2.0.
 */
#ifndef MOESIM_CLI_STATS_REPORT_H
#define MOESIM_CLI_STATS_REPORT_H

#include <jansson.h>

#include "traces/stats.h"

/* P(stability = 1) in the confidence bins .05, .15 … .95 (Fig. 10b). */
extern const double moesim_paper_stable[MOESIM_STATS_BINS];

/* A statement of the paper and its value on this trace. */
typedef struct moesim_claim {
    const char *place;           /* "Fig. 4a" */
    const char *what;
    double lo, hi;               /* inside: lo <= value <= hi; hi may be infinite */
    const char *paper;           /* the paper's value as written there, with the tolerance applied here */
    double (*value)(const moesim_trace_stats *stats);
} moesim_claim;

extern const moesim_claim moesim_claims[];   /* what NULL ends it */

/* "inside", "outside" or "n/a". */
const char *moesim_claim_verdict(const moesim_claim *claim, double value);

/* True if the trace names one of the paper's models and was not generated; the sentence to print is written to text. */
bool moesim_claims_comparable(const moesim_trace_info *info, char *text, size_t bytes);

/* Mean stability and P(stability = 1) of a bin; NaN where it has no samples. */
double moesim_stability_mean(const moesim_stability *s, uint32_t bin, uint32_t top_k);
double moesim_stability_full(const moesim_stability *s, uint32_t bin, uint32_t top_k);

/* Every figure as one row: what CSV and JSON are made of. */
typedef struct moesim_stat_row {
    const char *figure, *key;    /* "overlap_over_new", "lag 3" */
    double value;                /* NaN: undefined */
    uint64_t n;                  /* samples behind it */
} moesim_stat_row;
typedef void moesim_stat_fn(void *cookie, const moesim_stat_row *row);
void moesim_stats_each(const moesim_trace_stats *stats, const uint32_t *caches, size_t n, moesim_stat_fn *each, void *cookie);

void moesim_stats_print_table(const moesim_trace_stats *stats, const moesim_trace_info *info, const uint32_t *caches, size_t n);

#endif
