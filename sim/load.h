/* SPDX-License-Identifier: Apache-2.0
 *
 * Fills windows: reads the rows of planned steps through cursors, follows rows through their blocks, builds events.
 */
#ifndef MOESIM_SIM_LOAD_H
#define MOESIM_SIM_LOAD_H

#include <stdbool.h>

#include "base/error.h"
#include "sim/build.h"
#include "sim/layout.h"
#include "sim/schedule.h"
#include "sim/tracker.h"
#include "sim/window.h"

typedef struct moesim_loader moesim_loader;

/* layout decides which columns are opened. The trace outlives the loader; one thread at a time. */
moesim_code moesim_loader_create(moesim_trace *trace, const moesim_layout *layout, const moesim_window_params *params,
                                 uint32_t request_begin, uint32_t request_end, moesim_loader **out, moesim_error *err);
void moesim_loader_destroy(moesim_loader **loader);

/* Appends one step to the buffer, which has room for it. */
moesim_code moesim_loader_step(moesim_loader *loader, moesim_buffer *buffer, const moesim_planned *planned,
                               moesim_error *err);

/* Takes the steps of one window off the schedule: as many as fit window_bytes under `layout`, at least one (a step that does
 * not fit alone is MOESIM_E_USAGE, of --window). `each` (may be NULL) is called per step; *extent is left empty at the end of
 * the run. Polls moesim_interrupted(). */
typedef moesim_code moesim_walk_fn(void *cookie, const moesim_planned *planned, moesim_error *err);
moesim_code moesim_walk_window(moesim_schedule *schedule, const moesim_layout *layout, size_t window_bytes,
                               moesim_walk_fn *each, void *cookie, moesim_extent *extent, moesim_error *err);

#endif
