/* SPDX-License-Identifier: Apache-2.0
 *
 * A second, plain implementation of event-atomic replay, written from the definitions alone: dense arrays, a full sort per
 * event, no windows, no bitsets, nothing shared with the engine. Slow and small; the engine must agree with it exactly.
 */
#ifndef MOESIM_TESTS_WITNESS_H
#define MOESIM_TESTS_WITNESS_H

#include "tests/support/support.h"

struct witness {
    double passes, events, active, hits, misses, floor, utilisation, bytes, ratio_sum, ratio_over, judged, used, tokens;
    double most;                 /* Σ min(1, |A|/C): what no policy can exceed in `utilisation` */
    double prefill_passes, prefill_misses, prefill_bytes;
    uint64_t insertions, evictions, accesses, all_hits, read_bytes;
};

/* naive lru lfu lfru oled oled:confidence=none oled:confidence=hindsight surv:boundary=commit belady belady-forced; every miss
 * is moved. Uses the request range, warmup and batch of params. */
void witness_run(const struct test_trace *t, const char *policy, uint32_t slots, const moesim_run_params *params,
                 struct witness *out);

#endif
