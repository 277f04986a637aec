/* SPDX-License-Identifier: Apache-2.0
 *
 * Time per request and the figures made of it (semantics §2): TPOT, TTFT, their percentiles, tokens per second, busy shares.
 */
#ifndef MOESIM_SIM_TIMING_H
#define MOESIM_SIM_TIMING_H

#include <stdint.h>

#include "sim/executor.h"

/* Sums of one request, or of all counted ones. With merged steps every member waits for the whole step, so each is charged
 * all of it, and a prefill that runs between two merged steps is charged to all that wait (`waited`). Seconds. */
typedef struct moesim_time_sums {
    moesim_parts decode;         /* parts.total: time of the decode passes */
    double waited;               /* prefills of other requests while this one decoded */
    double ttft;                 /* time of this request's prefill passes */
    double share;                /* decode passes and prefills between them, each divided by those it was charged to: what
                                  * all requests add up to is the time that passed */
    double output_tokens;
    double requests;             /* 1; in the total their number */
} moesim_time_sums;

typedef struct moesim_timing {
    moesim_time_sums total, *request;    /* [num_requests] as in moesim_outcome */
    uint32_t num_requests;
    double wall;                 /* all counted decode passes, each once, and prefills between them */
    double bandwidth;            /* of the costing, B/s */
} moesim_timing;

/* *to += *from, field by field. */
void moesim_time_sums_add(moesim_time_sums *to, const moesim_time_sums *from);

/* Same shape as moesim_metric: num/den over sums, so that intervals are those of a ratio. name NULL ends the table; the
 * first is tpot_ms. */
typedef struct moesim_time_metric {
    const char *name, *unit, *help;
    double (*num)(const moesim_time_sums *s);
    double (*den)(const moesim_time_sums *s);
} moesim_time_metric;
extern const moesim_time_metric moesim_time_metrics[];

/* NaN where undefined (no tokens, no time). */
double moesim_time_metric_value(const moesim_time_metric *metric, const moesim_time_sums *sums);

/* Percentiles over the requests in which the figure is defined: the smallest value that at least the share q[i] of them does
 * not exceed (0 < q ≤ 1); NaN without any. NOMEM errors. */
moesim_code moesim_time_percentiles(const moesim_time_metric *metric, const moesim_timing *timing, const double *q, uint32_t n,
                                    double *out, moesim_error *err);

#endif
