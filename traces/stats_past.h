/* SPDX-License-Identifier: Apache-2.0
 *
 * The last decode passes of one open request, as statistics need them. Internal to traces/stats*.c.
 */
#ifndef MOESIM_TRACES_STATS_PAST_H
#define MOESIM_TRACES_STATS_PAST_H

#include "traces/stats.h"

#define MOESIM_STATS_PASSES (MOESIM_STATS_LAGS + 1u)   /* the current one and LAGS earlier ones */

/* One decode pass; rows sorted by position. */
typedef struct moesim_past {
    uint32_t rows, capacity;
    int32_t *position;           /* [rows] */
    uint8_t *state;              /* [rows] */
    float *confidence;           /* [rows] NaN: not known */
    uint16_t *expert;            /* [rows][M][K] */
    uint64_t *active;            /* [M][words] */
    void *memory;                /* what the row arrays lie in */
} moesim_past;

/* A ring: pass[next] is filled next; `held` earlier passes of the current block lie before it. */
typedef struct moesim_open_request {
    moesim_past pass[MOESIM_STATS_PASSES];
    uint32_t next, held;
    int32_t block;
    bool started;                /* block is valid */
} moesim_open_request;

/* Memory of all open requests together. */
typedef struct moesim_stats_memory {
    uint32_t layers, top_k, words;
    size_t used, limit;
} moesim_stats_memory;

moesim_code moesim_open_request_create(moesim_stats_memory *memory, moesim_open_request **out, moesim_error *err);
void moesim_open_request_destroy(moesim_stats_memory *memory, moesim_open_request **request);

/* The pass `lag` (0..held) before the one being filled. */
moesim_past *moesim_open_request_pass(moesim_open_request *request, uint32_t lag);

/* Copies the rows of a pass, sorted by position, and computes its active sets. */
moesim_code moesim_past_fill(moesim_stats_memory *memory, moesim_past *past, const moesim_rows *rows, moesim_error *err);

/* |A ∩ B| over |B| and over |A|, one sample a layer; a layer without experts in the denominator gives none. */
void moesim_stats_compare_sets(const moesim_stats_memory *memory, const moesim_past *old, const moesim_past *now,
                               moesim_mean *over_new, moesim_mean *over_old);

typedef struct moesim_stats_scratch {
    int32_t *match;              /* [LAGS][capacity] row of the earlier pass with the same position, or −1; owned */
    uint32_t capacity;
} moesim_stats_scratch;

/* Adds the current pass of `request` (already filled) to the statistics: overlaps, persistence, stability. */
moesim_code moesim_stats_compare(moesim_trace_stats *stats, const moesim_stats_memory *memory, moesim_open_request *request,
                                 moesim_stats_scratch *scratch, moesim_error *err);

#endif
