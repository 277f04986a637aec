/* SPDX-License-Identifier: Apache-2.0
 *
 * What each request's earlier passes tell about a row: its input class (M, J, L; semantics §6), the confidence of the previous
 * pass of its block (lag 1; semantics §5), and where that pass routed it.
 *
 * A pass belongs to (request, block). Of each open request the MOESIM_TRACKED_BLOCKS blocks used last are remembered, so a
 * block that returns later than that counts as new; a request is forgotten when it ends. Within a pass, the last row of a
 * position counts. Memory is bounded: beyond MOESIM_TRACKER_BYTES a pass is MOESIM_E_LIMIT. One thread at a time.
 */
#ifndef MOESIM_SIM_TRACKER_H
#define MOESIM_SIM_TRACKER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "moesim/policy.h"
#include "traces/trace.h"

#define MOESIM_TRACKED_BLOCKS 16u
#define MOESIM_TRACKER_BYTES ((size_t)64 << 20)

typedef struct moesim_tracker moesim_tracker;

/* Requests begin .. end − 1. row_ids: expert ids per row (M·K) to remember for `previous`, 0: none. */
moesim_code moesim_tracker_create(uint32_t begin, uint32_t end, size_t row_ids, moesim_tracker **out, moesim_error *err);
void moesim_tracker_destroy(moesim_tracker **tracker);

/* The rows of one pass as read, and where the answers go; every array has n entries. */
typedef struct moesim_tracked_pass {
    const moesim_pass *pass;
    uint64_t number;             /* of the pass, for messages */
    uint32_t n;
    const int32_t *position;
    const uint8_t *state;
    const float *confidence;     /* produced by this pass; NaN where not known */
    const uint16_t *expert;      /* [n][row_ids]; used if row_ids > 0 */
    moesim_row *row;             /* out: request, position, block, step, kind, input, first, confidence */
    float *lag;                  /* out: c of the lag-1 rule, 1 where there is none */
    uint16_t *previous;          /* out [n][row_ids] if row_ids > 0; row.previous then points here, or is NULL */
} moesim_tracked_pass;

/* Describes the rows and remembers the pass. Passes of a request come in file order. */
moesim_code moesim_tracker_pass(moesim_tracker *tracker, const moesim_tracked_pass *pass, moesim_error *err);

void moesim_tracker_end(moesim_tracker *tracker, uint32_t request);

#endif
