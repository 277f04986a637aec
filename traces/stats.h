/* SPDX-License-Identifier: Apache-2.0
 *
 * What characterises a trace: activation, overlap between passes, persistence of routes, confidence against stability,
 * commits. One streaming pass with bounded memory. Decode passes (denoise, commit) only; dummy passes are skipped; prefill
 * passes are counted and otherwise left out. "Neighbouring" and "lag" count decode passes of one block of one request.
 */
#ifndef MOESIM_TRACES_STATS_H
#define MOESIM_TRACES_STATS_H

#include "traces/trace.h"

#define MOESIM_STATS_LAGS 10u
#define MOESIM_STATS_BINS 10u        /* confidence [0, .1), [.1, .2) … [.9, 1] */

/* A mean under construction; sum/n, NaN where n is 0. */
typedef struct moesim_mean {
    double sum;
    uint64_t n;
} moesim_mean;
double moesim_mean_value(const moesim_mean *mean);

/* Rows by what they are to the pass after: masked, committed or edited by this pass, committed earlier. These are the input
 * states with which the next pass of the block meets them. */
enum moesim_stats_class { MOESIM_STATS_ALL, MOESIM_STATS_MASKED, MOESIM_STATS_JUST, MOESIM_STATS_LONG, MOESIM_STATS_CLASSES };

/* Confidence against stability (OLED-MoE §3.3, Fig. 10). A sample is one (row, layer) of a pass whose row has a confidence, K
 * routes, and a row of the same position in the next pass of the block; its stability is the share of the K ids that this
 * row holds too. */
typedef struct moesim_stability {
    uint64_t level[MOESIM_STATS_BINS][65];   /* [bin][ids kept, 0..K] */
    uint64_t n[MOESIM_STATS_BINS];
    uint64_t kept[MOESIM_STATS_BINS];        /* Σ ids kept: mean stability = kept / (K·n) */
} moesim_stability;

typedef struct moesim_trace_stats {
    uint32_t num_layers, num_experts, top_k, num_requests;
    uint64_t passes[4], rows[4];             /* by enum moesim_pass_kind */
    uint64_t decode_passes;                  /* denoise + commit */
    uint64_t *active_sum;                    /* [M] Σ |A| over decode passes; owned */
    uint64_t *active_hist;                   /* [E + 1] events by |A|; owned */
    moesim_mean overlap_new[MOESIM_STATS_LAGS + 1];   /* [lag] |A_i ∩ A_{i+lag}| / |A_{i+lag}|; index 0 unused */
    moesim_mean overlap_old[MOESIM_STATS_LAGS + 1];   /* [lag] the same over |A_i| */
    moesim_mean boundary_new, boundary_old;  /* last decode pass of a block → first of the request's next block */
    moesim_mean persistence[MOESIM_STATS_CLASSES][MOESIM_STATS_LAGS + 1];   /* share of a row's ids that the same position
                                              * holds `lag` passes later, by the row's class in pass i */
    moesim_stability stability[2];           /* [0] rows whose input was masked, [1] all rows */
    uint64_t committed;                      /* rows with state 1 in decode passes */
} moesim_trace_stats;

/* Fills *out (release with fini, also after an error). Shows progress on standard error when it takes long. Requests that are
 * open at the same time share a fixed memory budget; beyond it the error is MOESIM_E_LIMIT. */
moesim_code moesim_trace_stats_compute(moesim_trace *trace, moesim_trace_stats *out, moesim_error *err);
void moesim_trace_stats_fini(moesim_trace_stats *stats);

/* Regime r = |A| / slots over events (slots > 0): mean, 95th percentile (nearest rank), share of events above 1. */
typedef struct moesim_regime { double mean, p95, above_one; } moesim_regime;
moesim_regime moesim_trace_stats_regime(const moesim_trace_stats *stats, uint32_t slots);

/* Mean |A| over all layers and decode passes. */
double moesim_trace_stats_active(const moesim_trace_stats *stats);

/* Writes everything as 1-D datasets of an HDF5 file (root attribute format = "moesim-stats", format_version = 1), for
 * plotting. caches [n]: the capacities for which the regime is written. */
moesim_code moesim_trace_stats_write(const moesim_trace_stats *stats, const moesim_trace_info *info, const uint32_t *caches,
                                     size_t n, const char *path, moesim_error *err);

#endif
