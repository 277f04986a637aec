/* SPDX-License-Identifier: Apache-2.0
 *
 * What the model says that each event of a decision log takes. The log is joined with its trace once; the result can be priced
 * again and again, with other constants or with effects switched off. The same decisions give the sums of the timer
 * (sim/timer.h) to 1e-12, if no expert runs on the CPU: a log lists CPU experts in the order of their ids, in which
 * they are executed too, and the timer in that of dispatch.
 */
#ifndef MOESIM_STUDY_PREDICT_H
#define MOESIM_STUDY_PREDICT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/executor.h"
#include "sim/sim.h"
#include "sim/walk.h"

typedef struct moesim_works_event {
    uint64_t pass;               /* as in the log: first pass of the step */
    uint32_t layer, num_rows, n_hits, n_moved, n_cpu;
    uint64_t at;                 /* in `tokens`: those of the hits, of the moved experts, of the CPU experts */
    uint32_t request;            /* number in the trace, of the step's first member */
    bool counted;
} moesim_works_event;

/* The events of one log, steps of num_layers events. Const after reading. */
typedef struct moesim_works {
    uint64_t num_events;
    uint32_t num_layers;
    moesim_works_event *event;  /* [num_events] owned */
    uint32_t *tokens;            /* owned */
    uint64_t used, event_room, token_room;
} moesim_works;

/* Adds the next event to a works that began as {.num_layers = M}. FORMAT: an event out of turn. */
moesim_code moesim_works_add(moesim_works *works, const moesim_walk_event *event, moesim_error *err);

/* Reads a walk to its end. Release with fini, also after an error. */
moesim_code moesim_works_read(moesim_walk *walk, uint32_t num_layers, moesim_works *out, moesim_error *err);
void moesim_works_fini(moesim_works *works);

/* Records a run as it goes on, without a log: hand the sink to moesim_run. name: of the policy, for messages; outlives the
 * recorder. finish: the works, and the digest that a log would have; frees *recorder. One thread at a time. */
typedef struct moesim_recorder moesim_recorder;
moesim_code moesim_recorder_create(const moesim_trace_info *trace, const char *name, moesim_recorder **out, moesim_error *err);
const moesim_event_sink *moesim_recorder_sink(moesim_recorder *recorder);
void moesim_recorder_finish(moesim_recorder **recorder, moesim_works *works, char digest[MOESIM_DIGEST_CHARS]);
void moesim_recorder_destroy(moesim_recorder **recorder);        /* NULL allowed */

typedef struct moesim_prediction {
    double *seconds;             /* [num_events] from gate to gate: sync, hits, link, cpu, dram, policy, and what the costing
                                  * gives `other` of the layer that follows in the pass */
    uint8_t *gpu_bound;          /* [num_events] 1: computing hits and moved experts takes at least 3/4 of it, and copies at
                                  * most half of that */
    uint8_t *link_bound;         /* [num_events] 1: part link is more than half of it */
    uint8_t *cpu_bound;          /* [num_events] 1: the CPU path alone takes longer than the GPU path alone, and sharing DRAM
                                  * adds at most 5 % of the event: the CPU decides how long it takes */
    moesim_parts counted;        /* over the counted steps, added by request as the timer adds */
} moesim_prediction;

/* Release with fini, also after an error. */
moesim_code moesim_predict(const moesim_works *works, const moesim_costing *costing, moesim_prediction *out,
                           moesim_error *err);
void moesim_prediction_fini(moesim_prediction *prediction);

#endif
