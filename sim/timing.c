/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of timed figures.
 */
#include "sim/timing.h"

#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/sort.h"

void moesim_time_sums_add(moesim_time_sums *to, const moesim_time_sums *from)
{
    moesim_parts_add(&to->decode, &from->decode);
    to->waited += from->waited;
    to->ttft += from->ttft;
    to->share += from->share;
    to->output_tokens += from->output_tokens;
    to->requests += from->requests;
}

/* Milliseconds of one part. */
#define PART(name) \
    static double ms_##name(const moesim_time_sums *s) { return 1e3 * s->decode.name; }

PART(other_gpu)
PART(other_host)
PART(sync)
PART(hits)
PART(link)
PART(cpu)
PART(dram)
PART(policy)
PART(head)

#define SECONDS(name, value) \
    static double name(const moesim_time_sums *s) { return value; }

SECONDS(ms_decode, 1e3 * (s->decode.total + s->waited))
SECONDS(ms_waited, 1e3 * s->waited)
SECONDS(ms_ttft, 1e3 * s->ttft)
SECONDS(ms_miss, 1e3 * (s->decode.link + s->decode.cpu + s->decode.dram))
SECONDS(busy_link, s->decode.busy_link)
SECONDS(busy_cpu, s->decode.busy_cpu)
SECONDS(busy_gpu, s->decode.busy_gpu)
SECONDS(decode, s->decode.total)
SECONDS(share, s->share)
SECONDS(tokens, s->output_tokens)
SECONDS(requests, s->requests)

const moesim_time_metric moesim_time_metrics[] = {
    {"tpot_ms", "ms", "time per output token: decode passes, and prefills waited for", ms_decode, tokens},
    {"ttft_ms", "ms", "time of the request's prefill, mean over requests", ms_ttft, requests},
    {"tokens_per_s", "tokens/s", "output tokens of all requests per second", tokens, share},
    {"miss_ms", "ms", "of TPOT: what misses add (link, CPU, DRAM)", ms_miss, tokens},
    {"part_other_gpu_ms", "ms", "of TPOT: attention, router, shared expert", ms_other_gpu, tokens},
    {"part_other_host_ms", "ms", "of TPOT: host overhead", ms_other_host, tokens},
    {"part_sync_ms", "ms", "of TPOT: routing to the host, launch", ms_sync, tokens},
    {"part_hits_ms", "ms", "of TPOT: resident experts", ms_hits, tokens},
    {"part_link_ms", "ms", "of TPOT: copies and moved experts after the hits", ms_link, tokens},
    {"part_cpu_ms", "ms", "of TPOT: CPU path beyond those", ms_cpu, tokens},
    {"part_dram_ms", "ms", "of TPOT: link and CPU sharing DRAM", ms_dram, tokens},
    {"part_policy_ms", "ms", "of TPOT: deciding", ms_policy, tokens},
    {"part_head_ms", "ms", "of TPOT: LM head and decoder", ms_head, tokens},
    {"waited_ms", "ms", "of TPOT: prefills of other requests", ms_waited, tokens},
    {"busy_link", "", "share of decode time in which the link copies to the device", busy_link, decode},
    {"busy_cpu", "", "share of decode time in which the CPU computes experts", busy_cpu, decode},
    {"busy_gpu", "", "share of decode time in which the GPU computes", busy_gpu, decode},
    {.name = NULL},
};

double moesim_time_metric_value(const moesim_time_metric *metric, const moesim_time_sums *sums)
{
    const double den = metric->den(sums);
    return den > 0 ? metric->num(sums) / den : NAN;
}

moesim_code moesim_time_percentiles(const moesim_time_metric *metric, const moesim_timing *timing, const double *q, uint32_t n,
                                    double *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    double *value = NULL;
    uint32_t defined = 0;
    if (moesim_alloc(timing->num_requests, sizeof *value, "percentiles", (void **)&value, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < timing->num_requests; i++) {
        value[defined] = moesim_time_metric_value(metric, &timing->request[i]);
        defined += isnan(value[defined]) ? 0u : 1u;
    }
    moesim_sort_reals(value, defined);
    for (uint32_t i = 0; i < n; i++)
        out[i] = defined == 0 ? NAN : value[moesim_rank_index(defined, q[i])];
    free(value);
    return MOESIM_OK;
}
