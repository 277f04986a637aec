/* SPDX-License-Identifier: Apache-2.0
 *
 * Many cells on one bench: jobs × repeats in ABBA order (A B C …, then … C B A, and so on), so that a slow drift of the machine
 * cancels. Cells that the file has are left out: an interrupted grid goes on where it was.
 */
#ifndef MOESIM_REPLAY_GRID_H
#define MOESIM_REPLAY_GRID_H

#include "replay/replay.h"

typedef struct moesim_grid_job { uint32_t plan; double bandwidth_cap; } moesim_grid_job;

typedef struct moesim_replay_grid {
    const moesim_grid_job *job;
    uint32_t num_jobs, repeats;
    double time_limit;           /* s from `started`; 0: none. Stops before a cell that would not end in time */
    double started;              /* moesim_clock_seconds() then */
    const char *output;          /* NULL: nothing is written */
    bool scratch;                /* output is thrown away: no message promises that it is kept */
} moesim_replay_grid;

typedef struct moesim_grid_progress {
    uint32_t planned, finished, executed;    /* of the grid; in the file; by this call */
    bool out_of_time;
} moesim_grid_progress;

/* Executes what is missing. The file is written after every cell, and at least once. An interruption or a failure keeps what
 * is finished, and the message says so; being out of time is no error. */
moesim_code moesim_grid_execute(moesim_bench *bench, const moesim_replay_grid *grid, moesim_grid_progress *progress,
                                moesim_error *err);

#endif
