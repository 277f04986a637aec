/* SPDX-License-Identifier: Apache-2.0
 *
 * offline-cost (semantics §3): how cheap the misses of a trace can be made by anyone who knows its future. Lower bound of
 * Σ max(link, CPU) over the counted events, link = T_H2D per moved expert, CPU = T_CPU(n) per expert of n tokens run there,
 * with every layer holding at most C experts between two of its events (fixed, uniform capacity; scope layer).
 *
 * For λ in [0, 1], Σ max(link, CPU) ≥ Σ (λ·link + (1−λ)·CPU), so a miss weighs at least w = min(λ·T_H2D, (1−λ)·T_CPU(n)),
 * whichever path it takes, and misses are avoided by retention alone: two uses i → j of an expert that follow each other are
 * an interval over the gaps i .. j − 1 that saves w at j. The least total weight is interval selection (sim/flow.h), concave
 * in λ, and maximised over λ; any λ gives a valid bound, so the answer is one whatever the tolerance. First uses always miss.
 * Uses in uncounted passes (prefill, warm-up) cost nothing, re-enter free and occupy slots only if kept for a counted use.
 * Admission is free: an expert may stay after it ran on the CPU, which no policy can do, and time that prefetching hides is
 * not known to the bound: it holds for policies that do not prefetch.
 *
 * A bound is const after opening and may be shared by threads. Times are seconds.
 */
#ifndef MOESIM_SIM_BOUND_H
#define MOESIM_SIM_BOUND_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/costing.h"
#include "sim/window.h"
#include "traces/trace.h"

/* Memory for the uses of a whole trace where the caller has no better limit. Traces with about 60 active experts an event take
 * about 250 bytes per event; time grows with events times min(C, most experts awaiting a use − C). */
#define MOESIM_BOUND_BYTES ((size_t)1 << 30)

enum moesim_paths {
    MOESIM_PATHS_TWO = 0,        /* link and CPU work side by side: max of the two */
    MOESIM_PATHS_ONE = 1         /* one after the other: w = min(T_H2D, T_CPU(n)), and the value is the exact optimum */
};

typedef struct moesim_offline_cost {
    double seconds;              /* the bound, Σ over all counted events of all layers */
    double upper;                /* no λ gives more than this; the search ends within 1e-9 of it, relative */
    double lambda;               /* where; NaN with one path */
    uint32_t evaluations;        /* values of λ tried */
} moesim_offline_cost;

typedef struct moesim_bound moesim_bound;

typedef struct moesim_bound_info {
    uint32_t layers, experts;
    uint64_t steps, counted_uses, first_uses;    /* first uses: of those counted, the ones that no retention can save */
    uint32_t kinds;              /* different numbers of tokens of a counted use */
    const uint32_t *tokens;      /* [kinds] */
    size_t memory_bytes;         /* held, working memory of one solution included */
} moesim_bound_info;

/* Reads the uses of the whole trace. Of params only request range, warmup, batch and window_bytes count. Errors of the
 * source; MOESIM_E_LIMIT where more than memory_bytes would be needed. The trace may be closed afterwards. */
moesim_code moesim_bound_open(moesim_trace *trace, const moesim_window_params *params, size_t memory_bytes,
                              moesim_bound **out, moesim_error *err);
void moesim_bound_close(moesim_bound **bound);               /* NULL allowed */
const moesim_bound_info *moesim_bound_get_info(const moesim_bound *bound);

/* One cell. The costing gives T_H2D (bandwidth included) and T_CPU; USAGE errors: it has no times (--time count), or
 * cache > E. MOESIM_E_INTERRUPTED. */
moesim_code moesim_bound_offline_cost(const moesim_bound *bound, const moesim_costing *costing, uint32_t cache,
                                      enum moesim_paths paths, moesim_offline_cost *out, moesim_error *err);

/* The same from plain numbers: h2d_s[M]; cpu_s[kinds][M] for the info's numbers of tokens. All finite and ≥ 0, else
 * MOESIM_E_INTERNAL. */
moesim_code moesim_bound_solve(const moesim_bound *bound, const double *h2d_s, const double *cpu_s, uint32_t cache,
                               enum moesim_paths paths, moesim_offline_cost *out, moesim_error *err);

#endif
