/* SPDX-License-Identifier: Apache-2.0
 *
 * The schedule: which passes make up each step of a run, in execution order. A pure function of pass metadata, so it can be
 * walked forward once and, from saved marks, window by window in reverse.
 *
 * Without merging, every non-dummy pass of a selected request is a step, in file order; a trace with /pass/forward joins
 * consecutive passes of one forward call. batch b > 1: b slots hold requests in order; each turn merges the next decode pass
 * of every slot into one step; a request that has ended makes room for the next one; prefill passes run alone before the
 * merged step that their request joins.
 *
 * Memory: constant for batch 1; with batch > 1 eight bytes per selected pass, at most MOESIM_SCHEDULE_BYTES.
 * One schedule is used by one thread at a time; the trace outlives it.
 */
#ifndef MOESIM_SIM_SCHEDULE_H
#define MOESIM_SIM_SCHEDULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/window.h"
#include "traces/trace.h"

#define MOESIM_SCHEDULE_BYTES ((size_t)64 << 20)
#define MOESIM_MAX_PARTS 4096u   /* most passes of one step */

/* One pass within a step. */
typedef struct moesim_part {
    uint64_t pass;               /* number in the trace */
    moesim_pass info;
    uint32_t slot;               /* 0 .. batch − 1; 0 without merging */
    bool starts, ends;           /* first / last pass of its request in the run */
} moesim_part;

typedef struct moesim_planned {
    uint64_t clock, decode_passes;
    uint64_t num_rows;
    uint32_t kind;               /* enum moesim_kind */
    bool decode, counted;
    uint32_t num_parts;          /* 0: the run has ended */
    const moesim_part *part;     /* valid until the next peek after an advance */
} moesim_planned;

typedef struct moesim_schedule moesim_schedule;

/* Checks selection and batch (MOESIM_E_USAGE), indexes the passes for batch > 1 (MOESIM_E_LIMIT). Uses the request range,
 * warmup and batch of params. */
moesim_code moesim_schedule_open(moesim_trace *trace, const moesim_window_params *params, moesim_schedule **out,
                                 moesim_error *err);
void moesim_schedule_close(moesim_schedule **schedule);

const char *moesim_schedule_path(const moesim_schedule *schedule);   /* of its trace, for messages */

/* The step that comes next, without taking it. */
moesim_code moesim_schedule_peek(moesim_schedule *schedule, const moesim_planned **out, moesim_error *err);
void moesim_schedule_advance(moesim_schedule *schedule);   /* after a successful peek */

/* A mark is the place before the next step, mark_bytes of plain memory. */
size_t moesim_schedule_mark_bytes(const moesim_schedule *schedule);
const void *moesim_schedule_mark(const moesim_schedule *schedule);   /* valid until advance or restore */
void moesim_schedule_restore(moesim_schedule *schedule, const void *mark);

/* Selected requests [begin, end). */
void moesim_schedule_range(const moesim_schedule *schedule, uint32_t *begin, uint32_t *end);

#endif
