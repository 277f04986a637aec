/* SPDX-License-Identifier: Apache-2.0
 *
 * What clairvoyant policies see: for every active expert the clock of its next use at that layer (belady; semantics §3).
 * One backward pass over the trace, window by window in reverse; the state at the end of every window is kept (in memory up
 * to MOESIM_FUTURE_BYTES, then in a temporary file), so that going forward a window is annotated backward from it.
 */
#ifndef MOESIM_SIM_FUTURE_H
#define MOESIM_SIM_FUTURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/layout.h"
#include "sim/load.h"
#include "sim/schedule.h"
#include "sim/spill.h"

#define MOESIM_FUTURE_BYTES ((size_t)64 << 20)

typedef struct moesim_future moesim_future;

/* marks: one record per window, the schedule's mark at its begin. layout and window_bytes are those of the forward walk;
 * most: the largest window. The schedule is left anywhere. Polls moesim_interrupted(). */
moesim_code moesim_future_create(moesim_trace *trace, moesim_schedule *schedule, const moesim_window_params *params,
                                 const moesim_layout *layout, const moesim_extent *most, const moesim_spill *marks,
                                 moesim_future **out, moesim_error *err);
void moesim_future_destroy(moesim_future **future);

/* Fills next_use and next_active of window `number` (from 0), whose lists are in place. */
moesim_code moesim_future_annotate(moesim_future *future, uint64_t number, moesim_buffer *buffer, moesim_error *err);

size_t moesim_future_memory(const moesim_future *future);

#endif
