/* SPDX-License-Identifier: Apache-2.0
 *
 * Time per request and the figures made of it (semantics §2): TPOT, TTFT, their percentiles, tokens per second, busy shares.
 */
#ifndef MOESIM_SIM_TIMING_H
#define MOESIM_SIM_TIMING_H

#include <stdint.h>

#include "sim/executor.h"

/* Sums over counted decode passes of one request, or of all. With merged steps every member waits for the whole step, so each
 * is charged all of it, and a prefill that runs between two merged steps is charged to all that wait (`waited`); `wall` of the
 * total counts each step once. Seconds. */
typedef struct moesim_time_sums {
    moesim_parts decode;         /* parts.total: time of the decode passes */
    double waited;               /* prefills of other requests while this one decoded */
    double ttft;                 /* time of this request's prefill passes */
    double output_tokens;
} moesim_time_sums;

typedef struct moesim_timing {
    moesim_time_sums total, *request;    /* [num_requests] as in moesim_outcome */
    uint32_t num_requests;
    double wall;                 /* all counted decode passes, each once, and prefills between them */
    double bandwidth;            /* of the costing, B/s */
} moesim_timing;

/* Same shape as moesim_metric: num/den over sums. name NULL ends the table. TPOT in ms: tpot_ms; ttft_ms; miss_ms (link + cpu +
 * dram per token); each part in ms per token: part_other_gpu_ms, …; busy_link, busy_cpu, busy_gpu shares of decode time. */
typedef struct moesim_time_metric {
    const char *name, *unit, *help;
    double (*num)(const moesim_time_sums *s);
    double (*den)(const moesim_time_sums *s);
} moesim_time_metric;
extern const moesim_time_metric moesim_time_metrics[];

double moesim_time_metric_value(const moesim_time_metric *metric, const moesim_time_sums *sums);

#endif
