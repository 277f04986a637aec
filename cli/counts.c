/* SPDX-License-Identifier: Apache-2.0
 *
 * Counts of a cell that are printed beside its figures.
 */
#include <math.h>

#include "cli/figures.h"

#define COUNT(name) \
    static double count_##name(const moesim_outcome *o) { return (double)o->name; }
#define SUM(name) \
    static double sum_##name(const moesim_outcome *o) { return o->total.name; }

SUM(passes) SUM(events) SUM(active) SUM(hits) SUM(misses) SUM(moved) SUM(cpu) SUM(prefetched) SUM(unused)
SUM(output_tokens) SUM(prefill_passes) SUM(prefill_misses)
COUNT(evictions) COUNT(insertions) COUNT(all_accesses) COUNT(all_hits) COUNT(read_bytes) COUNT(pending) COUNT(refused)
COUNT(peak_bytes) COUNT(overshoot_bytes) COUNT(capacity_changes) COUNT(oscillations)

const moesim_count moesim_counts[] = {
    { "events", "", sum_events },
    { "passes", "", sum_passes },
    { "accesses", "", sum_active },
    { "hits", "", sum_hits },
    { "misses", "", sum_misses },
    { "moved", "", sum_moved },
    { "cpu", "", sum_cpu },
    { "prefetched", "", sum_prefetched },
    { "unused", "", sum_unused },
    { "output_tokens", "", sum_output_tokens },
    { "prefill_passes", "", sum_prefill_passes },
    { "prefill_misses", "", sum_prefill_misses },
    { "evictions", "", count_evictions },
    { "insertions", "", count_insertions },
    { "all_accesses", "", count_all_accesses },
    { "all_hits", "", count_all_hits },
    { "read_bytes", "bytes", count_read_bytes },
    { "pending", "", count_pending },
    { "refused", "", count_refused },
    { "peak_bytes", "bytes", count_peak_bytes },
    { "overshoot_bytes", "bytes", count_overshoot_bytes },
    { "capacity_changes", "", count_capacity_changes },
    { "oscillations", "", count_oscillations },
    { NULL, NULL, NULL },
};

double moesim_all_hit_rate(const moesim_outcome *outcome)
{
    return outcome->all_accesses > 0 ? (double)outcome->all_hits / (double)outcome->all_accesses : (double)NAN;
}
