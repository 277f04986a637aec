/* SPDX-License-Identifier: Apache-2.0
 *
 * Reader of decision logs (traces/FORMAT.md, "Decision log"). A log is untrusted input, guarded as a trace is. Opening reads
 * the whole log once: every id, order and length is checked and the digest of the decisions formed again, so that what is
 * handed out later is what was decided. Memory: one chunk a column.
 * One reader is used by one thread at a time.
 */
#ifndef MOESIM_TRACES_DECLOG_READ_H
#define MOESIM_TRACES_DECLOG_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "traces/declog.h"
#include "traces/trace.h"

typedef struct moesim_declog_info {
    char path[4096];
    char trace_digest[MOESIM_DIGEST_CHARS], digest[MOESIM_DIGEST_CHARS];
    moesim_text model_id, policy;
    char *options, *config;      /* owned by the reader; never NULL */
    uint32_t num_layers, num_experts;    /* each 1..1024 */
    uint32_t cache;              /* slots per layer; 0 in scope global */
    uint64_t seed;
    uint64_t events, counted_events;
    uint32_t max_moved;          /* most moved experts of one event */
} moesim_declog_info;

typedef struct moesim_declog_reader moesim_declog_reader;

/* FORMAT errors name dataset and first bad index, and the remedy. Caller closes. */
moesim_code moesim_declog_open(const char *path, moesim_declog_reader **out, moesim_error *err);
void moesim_declog_close(moesim_declog_reader **reader);         /* NULL allowed */
const moesim_declog_info *moesim_declog_get_info(const moesim_declog_reader *reader);

/* The next event; *end at the end of the log. Lists stay valid until the next call. */
moesim_code moesim_declog_next(moesim_declog_reader *reader, moesim_decision *out, bool *end, moesim_error *err);
void moesim_declog_rewind(moesim_declog_reader *reader);

#endif
