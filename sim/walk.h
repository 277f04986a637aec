/* SPDX-License-Identifier: Apache-2.0
 *
 * The events of a run joined with what a decision log says of them: which experts of A hit, were moved or ran on the CPU, and
 * which rows each of them serves. What the replayer executes and what its times are held against. Checked on the way: the log
 * is of this trace (digest) and this selection, hits ∪ moved ∪ cpu = A without overlap, and residency follows from the log
 * alone: R' = (R ∪ moved) \ evicted. What is moved while the log has it resident had left before its event (an eager shrink,
 * another layer's need) and came back in it.
 * One walk or join is used by one thread at a time.
 */
#ifndef MOESIM_SIM_WALK_H
#define MOESIM_SIM_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/window.h"
#include "traces/declog_read.h"
#include "traces/trace.h"

#define MOESIM_WALK_ROWS 65535u      /* most rows of one event */

/* One expert of A. tokens: rows that chose it. row[listed]: these rows, ascending; in an event of more than max_rows rows (a
 * prefill longer than what a device takes) one row for each expert, so that the experts still have work. */
typedef struct moesim_walk_expert {
    uint16_t expert, listed;
    uint32_t tokens;
    const uint16_t *row;
} moesim_walk_expert;

typedef struct moesim_walk_event {
    uint64_t index;              /* of the event in the run, from 0 */
    uint64_t pass, clock;        /* as in the log: first pass of the step, number of the step from 1 */
    uint32_t layer;              /* events of a step come in the order of layers */
    uint32_t request;            /* of the step's first member, number in the trace */
    uint32_t num_rows;           /* of the step */
    uint32_t listed_rows;        /* min(num_rows, max_rows): row[] stays below it */
    bool decode, counted;
    bool first, last;            /* of its step */
    uint32_t n_active, n_hits, n_moved, n_cpu, n_evicted;
    const moesim_walk_expert *active;               /* [n_active] ascending */
    const moesim_walk_expert *hits, *moved, *cpu;   /* moved in copy order, hits and cpu ascending */
    const uint8_t *kept;         /* [n_moved] 1: stays resident after the event */
    const uint16_t *evicted;     /* [n_evicted] ascending; those that were moved and not kept included */
} moesim_walk_event;

/* ---- one event at a time: for live replay --------------------------------------------------------------------------- */

typedef struct moesim_join moesim_join;

/* max_rows 1..MOESIM_WALK_ROWS. name: of the log or the policy, for messages; outlives the join. Caller destroys. */
moesim_code moesim_join_create(uint32_t num_layers, uint32_t num_experts, uint32_t top_k, uint32_t max_rows, const char *name,
                               moesim_join **out, moesim_error *err);
void moesim_join_destroy(moesim_join **join);                    /* NULL allowed */

/* Event `index` (step · M + layer) of the window, whose rows must be filled, with its decision. *out is valid until the next
 * call. FORMAT errors name the event and what does not fit. */
moesim_code moesim_join_event(moesim_join *join, const moesim_window *window, const moesim_step *step, size_t index,
                              const moesim_decision *decision, moesim_walk_event *out, moesim_error *err);
void moesim_join_restart(moesim_join *join);                     /* as after create */

/* ---- a whole run ----------------------------------------------------------------------------------------------------- */

/* What the log alone tells. Residents before the first event are those that hit or leave before they are ever moved. */
typedef struct moesim_log_facts {
    uint32_t num_layers, words;
    uint64_t *initial;           /* [M][words], owned */
    uint64_t num_initial;
    uint64_t peak;               /* most residents after an event, all layers together */
    uint32_t max_unkept;         /* most experts that one event moves and does not keep */
} moesim_log_facts;

/* Reads the log from its beginning to its end and rewinds it. Release with moesim_log_facts_fini. FORMAT errors: residency does
 * not follow from the log (bounds that reload freely, as ideal does, cannot be executed). */
moesim_code moesim_log_facts_read(moesim_declog_reader *log, moesim_log_facts *out, moesim_error *err);
void moesim_log_facts_fini(moesim_log_facts *facts);

typedef struct moesim_walk_params {
    uint64_t request_begin, request_end, warmup;     /* as the run that wrote the log; end is clipped */
    uint32_t batch;
    uint32_t max_rows;
    size_t window_bytes;
} moesim_walk_params;

typedef struct moesim_walk moesim_walk;

/* The trace's digest must have been computed (moesim_trace_digest); trace and log outlive the walk and are not used otherwise
 * meanwhile. USAGE: the log belongs to another trace, or to a model of other sizes. Caller closes. */
moesim_code moesim_walk_open(moesim_trace *trace, moesim_declog_reader *log, const moesim_walk_params *params,
                             moesim_walk **out, moesim_error *err);
void moesim_walk_close(moesim_walk **walk);                      /* NULL allowed */

/* The next event, valid until the next call; *end when trace and log have both ended. USAGE: the log is of another selection
 * of requests (--requests, --warmup, --batch). */
moesim_code moesim_walk_next(moesim_walk *walk, moesim_walk_event *out, bool *end, moesim_error *err);

/* Of the selection: steps, most rows of a decode step, requests. */
const moesim_source_info *moesim_walk_get_info(const moesim_walk *walk);

#endif
