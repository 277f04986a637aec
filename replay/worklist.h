/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole run prepared for a device: every event's work with slots, in memory before the clock starts, so that nothing is read
 * or decoded while times are taken. Const after building.
 */
#ifndef MOESIM_REPLAY_WORKLIST_H
#define MOESIM_REPLAY_WORKLIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest.h"
#include "replay/slots.h"
#include "sim/walk.h"

#define MOESIM_WORKLIST_BYTES ((size_t)4 << 30)    /* most memory of one list */

typedef struct moesim_worklist_event {
    moesim_device_work work;
    const uint16_t *expert;      /* [hits + moved + cpu] ids, for messages */
    uint64_t pass;
    uint32_t layer, rows;        /* rows of the event; work.num_rows of them are computed */
    bool counted, last;          /* last of its pass */
} moesim_worklist_event;

typedef struct moesim_worklist {
    size_t num_events, num_steps;
    moesim_worklist_event *event;  /* [num_events] */
    uint32_t *fill;              /* [slots] pool index that each slot must hold before the first event, or MOESIM_NO_SLOT */
    uint32_t slots;              /* staging not included */
    size_t most_routes;          /* of an event */
    char executed[MOESIM_DIGEST_CHARS];  /* digest of what the works say */
    size_t bytes;
    struct moesim_arena *arena;
} moesim_worklist;

/* Walks the log over the trace. max_rows ≤ MOESIM_DEVICE_ROWS_MAX. LIMIT: it needs too much memory (--requests), or a decode
 * event has more than max_rows rows (--batch). Release with moesim_worklist_fini, also after an error. */
moesim_code moesim_worklist_build(moesim_trace *trace, moesim_declog_reader *log, const moesim_walk_params *params,
                                const moesim_log_facts *facts, const moesim_slots_shape *shape, moesim_worklist *out,
                                moesim_error *err);
void moesim_worklist_fini(moesim_worklist *list);

/* The decision that a walk event stands for; id [n_active] gets its hits, moved and CPU experts. For digests of what is
 * executed. */
void moesim_event_decision(const moesim_walk_event *event, uint16_t *id, moesim_decision *out);

#endif
