/* SPDX-License-Identifier: Apache-2.0
 *
 * What `run` and `sweep` share beyond prices: the words and rules of --scope, --order, --cache and --bound.
 */
#ifndef MOESIM_CLI_MODES_H
#define MOESIM_CLI_MODES_H

#include <stdint.h>

#include "cli/cachelist.h"
#include "cli/pricing.h"
#include "policies/registry.h"
#include "sim/bound.h"
#include "sim/grid.h"

extern const char *const moesim_scope_names[], *const moesim_order_names[], *const moesim_bound_names[];

#define MOESIM_SCOPE_HELP "Every layer owns its slots (default), or one budget in bytes serves all layers."
#define MOESIM_ORDER_HELP \
    "Event-atomic (default), or the experts of an event one after the other, which shows what that would distort."
#define MOESIM_NO_BOUND (-1)

/* As given on the command line; enum moesim_scope, enum moesim_order_mode; MOESIM_NO_BOUND or 0: offline-cost. */
typedef struct moesim_modes {
    int scope, order, bound;
} moesim_modes;

/* Capacities of --cache: slots per layer up to `experts`, or bytes in scope global. USAGE. Free with fini, also after an
 * error. */
moesim_code moesim_modes_caches(const moesim_modes *modes, const moesim_list *texts, uint32_t experts, moesim_cachelist *out,
                                moesim_error *err);

void moesim_modes_params(const moesim_modes *modes, moesim_run_params *out);
moesim_cell moesim_modes_cell(const moesim_modes *modes, const moesim_policy_spec *spec, uint64_t cache, double bandwidth);

/* 95th percentile of |A|/C; NaN where C = 0 or the scope is global. */
double moesim_modes_ratio_p95(const moesim_modes *modes, const moesim_outcome *outcome, uint64_t cache);

/* ---- --bound ----------------------------------------------------------------------------------------------------------- */

/* USAGE where it says nothing: without time, and where passes of requests are merged. Nothing without --bound. */
moesim_code moesim_modes_check_bound(const moesim_modes *modes, bool timed, bool merged, moesim_error *err);

/* What offline-cost is asked of: the uses of a trace, read once, and what they cost. */
typedef struct moesim_bounds {
    moesim_bound *uses;          /* owned */
    const moesim_pricing *pricing;
    const moesim_trace_info *info;
    const uint64_t *expert_bytes;
    uint32_t staging;
} moesim_bounds;

/* Of params: request range, warmup, window_bytes, staging. Close also after an error; the trace and pricing stay in use. */
moesim_code moesim_bounds_open(moesim_trace *trace, const moesim_pricing *pricing, const moesim_run_params *params,
                               moesim_bounds *out, moesim_error *err);
void moesim_bounds_close(moesim_bounds *b);

/* The bound of each of n capacities at one bandwidth (B/s, 0: the profile's). */
moesim_code moesim_bounds_solve(const moesim_bounds *b, double bandwidth, const uint64_t *cache, size_t n,
                                moesim_offline_cost *out, moesim_error *err);

/* In ms per output token of the counted requests. */
double moesim_bounds_ms(const moesim_offline_cost *cost, const moesim_outcome *outcome);

#endif
