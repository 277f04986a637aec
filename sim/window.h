/* SPDX-License-Identifier: Apache-2.0
 *
 * From trace to events. The schedule turns passes into steps (one pass, or the merged passes of a batch); the builder decodes
 * a window of steps once, tracks every row's input class and last confidence, and computes the reductions that the
 * configurations of the run declared. All configurations then advance over the same const window.
 */
#ifndef MOESIM_SIM_WINDOW_H
#define MOESIM_SIM_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "moesim/policy.h"
#include "traces/trace.h"

#define MOESIM_MAX_BATCH 256u

/* One step: all of its rows are executed together; one event per layer. */
typedef struct moesim_step {
    uint64_t clock;              /* from 1, over non-dummy steps of the run */
    uint64_t pass;               /* first pass of the step in the trace */
    uint64_t decode_passes;      /* counted passes' serial: decode steps begun so far in the run, this one included */
    uint32_t kind;               /* enum moesim_kind */
    uint32_t first;              /* any row in the first decode pass of its block */
    bool decode;                 /* not a prefill */
    bool counted;                /* decode and not warm-up: enters the metrics */
    uint32_t num_rows, num_masked;
    uint32_t row;                /* index of its first row in window.row */
    uint32_t num_requests;       /* members: 1 unless merged */
    uint32_t member;             /* index of its first member in window.member */
} moesim_step;

/* A request's part in a step. */
typedef struct moesim_member {
    uint32_t request;
    uint8_t starts, ends;        /* first / last step of the request in the run */
    uint16_t reserved;
    uint32_t committed;          /* rows with state 1 */
} moesim_member;

/* Arrays of events are indexed [step * M + layer]; pools by list_begin[event] .. list_begin[event + 1]. Reductions that no
 * configuration declared are NULL. All const for consumers. */
typedef struct moesim_window {
    uint32_t num_steps, num_layers, num_experts, top_k, words;
    moesim_step *step;           /* [num_steps] */
    moesim_member *member;
    uint64_t *active;            /* [events][words] */
    uint32_t *list_begin;        /* [events + 1] */
    uint16_t *list;              /* pool: active experts ascending */
    uint32_t *count;             /* pool */
    double *mass, *weighted, *hindsight, *class_sum;   /* pools */
    uint32_t *masked;            /* pool */
    uint64_t *next_use;          /* pool; MOESIM_NEVER where none */
    uint64_t *touch;             /* pool, scope global */
    double *mass_total, *weighted_total, *hindsight_total;   /* [events] */
    const uint64_t *next_active; /* [M][words]: active sets of the first step after this window (zero at the end) */
    uint16_t *sequence;          /* pool: the active experts in order of first touch (order flattened), or NULL */
    moesim_row *row;             /* rows of all steps; expert/gate/prob/previous point to layer 0 of the row: layer l of row
                                  * r is row.expert + l*K, gate + l*K, prob + l*E, previous + l*K; NULL unless needed */
    float *produced;             /* confidence that each row's own pass produced, parallel to row */
    uint8_t *state;              /* state at the end of the pass, parallel to row */
    const uint8_t *const *residency;   /* per row [M][K] what the recording system saw, or NULL */
} moesim_window;

typedef struct moesim_window_params {
    uint32_t needs;              /* or of all configurations' needs() */
    bool clairvoyant;            /* fill next_use and next_active */
    bool touch;                  /* scope global */
    bool sequence;               /* order flattened */
    bool residency;              /* --check-observed */
    const double *class_weight;  /* [3][8], the one table in use, or NULL */
    uint64_t request_begin, request_end;   /* --requests a:b; end clipped to Q */
    uint64_t warmup;             /* first N requests of the range run and are not counted */
    uint32_t batch;              /* 1..MOESIM_MAX_BATCH */
    size_t window_bytes;         /* memory for one decoded window; two windows are in use */
} moesim_window_params;

typedef struct moesim_source moesim_source;

/* Plans the schedule; with clairvoyant also makes the backward pass that next_use needs (progress: see below). */
moesim_code moesim_source_open(moesim_trace *trace, const moesim_window_params *params, moesim_source **out,
                               moesim_error *err);
void moesim_source_close(moesim_source **source);

/* Next window, or *out = NULL at the end. The previous window becomes invalid. Decoding of the following window goes on in
 * another thread meanwhile. */
moesim_code moesim_source_next(moesim_source *source, const moesim_window **out, moesim_error *err);

/* Numbers known before the run: steps in total, most rows of a decode step, steps per phase. */
typedef struct moesim_source_info {
    uint64_t steps, decode_steps, counted_steps;
    uint32_t max_decode_rows;
    uint32_t num_requests;       /* selected */
    size_t memory_bytes;         /* of windows and snapshots */
} moesim_source_info;
const moesim_source_info *moesim_source_get_info(const moesim_source *source);

#endif
