/* SPDX-License-Identifier: Apache-2.0
 *
 * A grid of cells, policy × capacity × bandwidth, over one trace in one pass. Cells whose policy does not read costs share one
 * instance per (policy, capacity) and are timed by one executor per bandwidth. Output does not depend on the number of
 * threads. With a checkpoint file the run goes on after a kill where the last finished window was.
 */
#ifndef MOESIM_SIM_GRID_H
#define MOESIM_SIM_GRID_H

#include "sim/checkpoint.h"
#include "sim/sim.h"
#include "sim/timing.h"

typedef struct moesim_cell {
    const moesim_policy *policy;
    const void *options;
    const char *label;
    uint32_t cache;
    uint64_t cache_bytes;        /* scope global: the budget */
    double bandwidth;            /* B/s, 0: the profile's */
} moesim_cell;

typedef struct moesim_grid {
    const moesim_run_params *run;
    const moesim_profile *profile;     /* NULL: count mode */
    enum moesim_time_mode mode;
    uint32_t effects;
    const uint64_t *expert_bytes;      /* [M] bytes to price with (--as), NULL: the trace's */
    uint64_t hidden_bytes;
    size_t num_cells;
    const moesim_cell *cell;
    const moesim_checkpoint *checkpoint;   /* NULL: none (sim/checkpoint.h) */
} moesim_grid;

/* One per cell; zeroed by the caller, released together with moesim_cell_results_fini. */
typedef struct moesim_cell_result {
    moesim_outcome *outcome;     /* of the instance, shared by the cells that it serves */
    const moesim_timing *timing; /* within outcome; NULL in count mode */
    bool shared;                 /* another cell owns the outcome */
} moesim_cell_result;

moesim_code moesim_grid_run(moesim_trace *trace, const moesim_grid *grid, moesim_cell_result *result, moesim_error *err);
void moesim_cell_results_fini(moesim_cell_result *result, size_t n);

#endif
