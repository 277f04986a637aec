/* SPDX-License-Identifier: Apache-2.0
 *
 * The decision log: what one policy at one capacity decided, event by event, so that it can be replayed and compared.
 * One HDF5 file (traces/FORMAT.md, section "Decision log"); CSR arrays per event: hits, moved (in copy order), cpu, evicted.
 */
#ifndef MOESIM_TRACES_DECLOG_H
#define MOESIM_TRACES_DECLOG_H

#include <stdint.h>

#include "base/digest.h"
#include "base/error.h"

typedef struct moesim_declog_header {
    const char *trace_digest, *model_id, *policy, *options, *config;   /* config: the run's configuration as JSON */
    uint32_t num_layers, num_experts, cache;
    uint64_t seed;
} moesim_declog_header;

/* One event. Ids of hits, cpu and evicted ascend; moved is in copy order. evicted: what left `layer` since its previous event
 * (in this event, or before it for another layer's sake in scope global), and what was moved and not kept. */
typedef struct moesim_decision {
    uint64_t pass;               /* pass number in the trace (first one of a merged step) */
    uint64_t clock;
    uint32_t layer;
    uint32_t counted;            /* 1: decode and not warm-up */
    uint32_t n_hits, n_moved, n_cpu, n_evicted;
    const uint16_t *hits, *moved, *cpu, *evicted;
} moesim_decision;

/* Adds one event to a digest of decisions, in the canonical form of traces/FORMAT.md. */
void moesim_decision_digest(moesim_digest *digest, const moesim_decision *decision);

typedef struct moesim_declog moesim_declog;

moesim_code moesim_declog_create(const char *path, const moesim_declog_header *header, moesim_declog **out,
                                 moesim_error *err);
/* Ids are below num_experts and layers below num_layers, else MOESIM_E_INTERNAL. */
moesim_code moesim_declog_append(moesim_declog *log, const moesim_decision *decision, moesim_error *err);

/* Digest of all decisions (independent of compression); also stored in the file. Frees *log. digest may be NULL. */
moesim_code moesim_declog_finish(moesim_declog **log, char digest[MOESIM_DIGEST_CHARS], moesim_error *err);
void moesim_declog_discard(moesim_declog **log);

#endif
