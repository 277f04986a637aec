/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of a bench, shared by replay/bench*.c and live.c.
 */
#ifndef MOESIM_REPLAY_BENCH_H
#define MOESIM_REPLAY_BENCH_H

#include "replay/replay.h"
#include "replay/stepper.h"
#include "replay/worklist.h"

#define MOESIM_NO_PLAN UINT32_MAX

typedef struct moesim_bench_entry {
    moesim_cell cell;
    char *given, *effective;     /* owned */
    bool costs;                  /* decided by costs: cell.bandwidth tells plans apart */
    bool from_log;               /* executes a log that was given */
    bool full;                   /* every expert stays resident */
    moesim_declog_reader *log;   /* owned */
    moesim_log_facts facts;      /* owned */
    moesim_worklist list;        /* built when first executed */
    bool listed;
    uint32_t plan;               /* in the file, or MOESIM_NO_PLAN */
} moesim_bench_entry;

struct moesim_bench {
    moesim_bench_config config;
    const moesim_trace_info *info;
    uint64_t expert_bytes;
    uint64_t *layer_bytes;       /* [M] the same number, owned */
    uint32_t max_rows;
    moesim_bench_entry *entry;   /* owned */
    uint32_t num_entries;
    moesim_replay_file file;
    moesim_device *device;       /* NULL before open */
    uint32_t slots, pool;        /* in force; slots without staging */
    uint32_t *content;           /* [slots + staging] */
    double cap;                  /* in force */
    uint32_t session;
    bool warm;                   /* something has been executed */
};

/* One line to config.out. */
void moesim_bench_say(const moesim_bench *bench, const char *fmt, ...) MOESIM_PRINTF(2, 3);

moesim_walk_params moesim_bench_walk(const moesim_bench *bench);
moesim_decide moesim_bench_decide(const moesim_bench *bench, const moesim_cell *cell, const char *given, const char *effective);
moesim_slots_shape moesim_bench_shape(const moesim_bench *bench, const moesim_bench_entry *entry);

/* live.c: the policy decides while its events are executed; digest: of what was executed. */
moesim_code moesim_bench_live(moesim_bench *bench, moesim_bench_entry *entry, moesim_stepper *stepper,
                              char digest[MOESIM_DIGEST_CHARS], moesim_error *err);

#endif
