/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures (semantics §2).
 */
#include "sim/metrics.h"

#include <math.h>

#define FIELD(name) \
    static double get_##name(const moesim_sums *s) { return s->name; }

FIELD(passes)
FIELD(events)
FIELD(active)
FIELD(hits)
FIELD(misses)
FIELD(floor)
FIELD(utilisation)
FIELD(cpu)
FIELD(moved_bytes)
FIELD(prefetched_bytes)
FIELD(unused)
FIELD(transfers_judged)
FIELD(transfers_used)
FIELD(ratio_sum)
FIELD(ratio_over)
FIELD(output_tokens)

static double get_transfers(const moesim_sums *s) { return s->moved + s->prefetched; }

const moesim_metric moesim_metrics[] = {
    {"utilisation", "", "share of the slots that hold an expert of the pass: |A∩R| / C, mean over events", get_utilisation,
     get_events, false, false},
    {"utilisation_macro", "", "the same, mean over requests of their means", get_utilisation, get_events, true, false},
    {"hit_rate", "", "activated experts found resident", get_hits, get_active, false, true},
    {"miss_floor", "", "activated experts beyond the slots, which no policy can avoid", get_floor, get_active, false, false},
    {"misses_per_pass", "experts", "activated experts not resident, all layers, per decode pass", get_misses, get_passes, false,
     true},
    {"moved_bytes_per_token", "bytes", "copied on demand per output token", get_moved_bytes, get_output_tokens, false, true},
    {"prefetched_bytes_per_token", "bytes", "prefetched per output token", get_prefetched_bytes, get_output_tokens, false,
     true},
    {"wasted_share", "", "transfers that were never used before they left", get_unused, get_transfers, false, true},
    {"effective_transfer_ratio", "", "experts moved in a pass that are kept and activated in the next one of the layer",
     get_transfers_used, get_transfers_judged, false, true},
    {"ratio_mean", "", "regime r = |A| / C, mean over events", get_ratio_sum, get_events, false, false},
    {"ratio_over_share", "", "events that activate more experts than there are slots", get_ratio_over, get_events, false,
     false},
    {"active_mean", "experts", "activated experts per event", get_active, get_events, false, true},
    {"cpu_share", "", "misses run on the CPU", get_cpu, get_misses, false, true},
    {"tokens_per_pass", "tokens", "output tokens per decode pass", get_output_tokens, get_passes, false, true},
    {.name = NULL},
};

static double ratio(const moesim_metric *metric, const moesim_sums *s)
{
    const double den = metric->den(s);
    return den > 0 ? metric->num(s) / den : NAN;
}

double moesim_metric_value(const moesim_metric *metric, const moesim_outcome *outcome)
{
    if (!metric->macro)
        return ratio(metric, &outcome->total);
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < outcome->num_requests; i++) {
        if (!(metric->den(&outcome->request[i]) > 0))
            continue;
        sum += ratio(metric, &outcome->request[i]);
        n++;
    }
    return n > 0 ? sum / n : NAN;
}
