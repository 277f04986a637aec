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
    uint32_t next, held, group;
    int32_t block;
    bool started;                /* block is valid */
} moesim_open_request;

/* Sees each decode pass after it was filled (lag 0) and before it is compared; `held` of the block's passes lie before it. */
typedef struct moesim_stats_observer {
    void (*pass)(void *cookie, const moesim_pass *pass, moesim_open_request *request);
    void *cookie;
} moesim_stats_observer;

/* moesim_trace_stats_compute over groups of blocks: the i-th block that begins counts in out[i % groups], so that the
 * scatter between groups tells what the sums are worth. Numbers of passes and rows by kind stand in out[0]. Release every
 * out[g] with fini, also after an error. observer may be NULL. */
moesim_code moesim_trace_stats_groups(moesim_trace *trace, moesim_trace_stats *out, uint32_t groups,
                                      const moesim_stats_observer *observer, moesim_error *err);

/* Memory of all open requests together. */
typedef struct moesim_stats_memory {
    uint32_t layers, top_k, words;
    size_t used, limit;
} moesim_stats_memory;

moesim_code moesim_open_request_create(moesim_stats_memory *memory, moesim_open_request **out, moesim_error *err);
void moesim_open_request_destroy(moesim_stats_memory *memory, moesim_open_request **request);

/* The pass `lag` (0..held) before the one being filled. */
moesim_past *moesim_open_request_pass(moesim_open_request *request, uint32_t lag);

/* The pass that was filled becomes an earlier one. */
static inline void moesim_open_request_advance(moesim_open_request *request)
{
    request->next = (request->next + 1) % MOESIM_STATS_PASSES;
    request->held += request->held < MOESIM_STATS_LAGS;
}

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
