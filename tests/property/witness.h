/* SPDX-License-Identifier: Apache-2.0
 *
 * A second, plain implementation of event-atomic replay, written from the definitions alone: dense arrays, a full sort per
 * event, no windows, no bitsets, nothing shared with the engine. Slow and small; the engine must agree with it exactly.
 */
#ifndef MOESIM_TESTS_WITNESS_H
#define MOESIM_TESTS_WITNESS_H

#include "tests/support/support.h"

struct witness {
    double passes, events, active, hits, misses, floor, utilisation, bytes, ratio_sum, ratio_over, judged, used, tokens, unused;
    double most;                 /* Σ min(1, |A|/C): what no policy can exceed in `utilisation` */
    double prefill_passes, prefill_misses, prefill_bytes;
    uint64_t pending;            /* transfers of counted steps, still resident at the end and not hit since */
    uint64_t insertions, evictions, accesses, all_hits, read_bytes;
};

/* naive lru lfu lfru oled oled:confidence=none oled:confidence=hindsight surv:boundary=commit belady belady-forced; every miss
 * is moved. Uses the request range, warmup and batch of params. */
void witness_run(const struct test_trace *t, const char *policy, uint32_t slots, const moesim_run_params *params,
                 struct witness *out);

/* Hits and accesses of plain LRU, layer by layer, over the experts of each step one at a time in order of first touch. */
void witness_flattened(const struct test_trace *t, uint32_t slots, const moesim_run_params *params, struct witness *out);

/* Scope global: lru, lfu or belady in `bytes` over all layers. Fills hits, active (counted), accesses, all_hits, read_bytes,
 * insertions and evictions. */
void witness_global(const struct test_trace *t, const char *policy, uint64_t bytes, const moesim_run_params *params,
                    struct witness *out);

#endif
