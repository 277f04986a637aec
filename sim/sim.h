/* SPDX-License-Identifier: Apache-2.0
 *
 * The one loop: events through policies, event-atomic. A run advances any number of configurations (policy × capacity) over
 * one pass of the trace. Metrics: sums per configuration and per request, from which sim/metrics.h derives every figure.
 */
#ifndef MOESIM_SIM_SIM_H
#define MOESIM_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/log.h"
#include "moesim/policy.h"
#include "sim/window.h"
#include "traces/declog.h"
#include "traces/trace.h"

enum moesim_scope { MOESIM_SCOPE_LAYER = 0, MOESIM_SCOPE_GLOBAL = 1 };
enum moesim_order_mode { MOESIM_ATOMIC = 0, MOESIM_FLATTENED = 1 };

/* One configuration. The policy and its options outlive the run. */
typedef struct moesim_config {
    const moesim_policy *policy;
    const void *options;         /* the policy's option struct */
    const char *label;           /* the option string as given; used in messages */
    uint32_t cache;              /* slots per layer (scope layer), 0..E */
    uint64_t cache_bytes;        /* scope global: the budget */
    const moesim_costs *costs;   /* what the policy may read; NULL without a profile; outlives the run */
    const struct moesim_costing *const *costing;   /* [num_costings] time is told by each of them; outlive the run */
    uint32_t num_costings;       /* at most 1 where the policy reads costs or prefetches: moesim_config_reads_costs */
} moesim_config;

/* Whoever executes events as they are decided. Called by the thread that called moesim_run; the window's rows are filled. With
 * an error the run ends. Outlives the run. */
typedef struct moesim_event_sink {
    void *cookie;
    /* The routing of event `index` of the window (step · M + layer) is about to be shown to the policy. Not called where the
     * policy retains at the end of a pass, whose events are all told then, nor in scope global and order flattened. */
    moesim_code (*gate)(void *cookie, const moesim_window *w, const moesim_step *step, size_t index, moesim_error *err);
    /* It has been decided: what the decision log would say. */
    moesim_code (*event)(void *cookie, const moesim_window *w, const moesim_step *step, size_t index,
                         const moesim_decision *decision, moesim_error *err);
} moesim_event_sink;

typedef struct moesim_run_params {
    enum moesim_scope scope;
    enum moesim_order_mode order;
    uint64_t request_begin, request_end;
    uint64_t warmup;
    uint32_t batch;
    uint32_t staging;            /* experts; default 4 */
    uint32_t prefetch_budget;    /* most prefetches that land per layer and pass; default: no limit (UINT32_MAX) */
    uint32_t threads;            /* ≥ 1 */
    uint64_t seed;
    size_t window_bytes;
    const uint64_t *expert_bytes;/* [M] to price and count bytes with instead of the trace's (--as), or NULL */
    const struct moesim_checkpoint *checkpoint;    /* sim/checkpoint.h, or NULL */
    bool generic;                /* ignore declared order kinds (tests: the fast paths give the same decisions) */
    bool check_observed;         /* compare residency with /observed/residency */
    moesim_declog *declog;       /* for a single configuration, else NULL */
    const moesim_event_sink *sink;    /* for a single configuration, else NULL */
    moesim_progress *progress;   /* may be NULL */
} moesim_run_params;

void moesim_run_params_defaults(moesim_run_params *params);

/* Sums over the counted events of one request (or of all). With merged steps each member is charged an equal share, hence
 * doubles; without merging every value is an exact integer. */
typedef struct moesim_sums {
    double passes;               /* counted decode passes (steps) */
    double events;
    double active, hits, misses; /* Σ|A|, Σ|A∩R|, Σ|M| */
    double floor;                /* Σ max(0, |A| − C) */
    double utilisation;          /* Σ |A∩R|/C */
    double moved;                /* experts copied on demand */
    double cpu;                  /* misses run on the CPU */
    double prefetched;           /* experts prefetched */
    double moved_bytes, prefetched_bytes;
    double unused;               /* moved or prefetched, and gone without a later hit */
    double transfers_judged;     /* moved experts whose layer has a next pass */
    double transfers_used;       /* of these: retained and activated in that next pass */
    double ratio_sum, ratio_over; /* Σ |A|/C, events with |A| > C */
    double output_tokens;        /* by the definition of semantics §2 */
    double prefill_passes, prefill_misses, prefill_moved_bytes;   /* phase apart */
} moesim_sums;

/* Sums over the counted events of one MoE layer, of all counted requests together; whole numbers, with merged steps too. */
typedef struct moesim_layer_sums {
    uint64_t events;             /* one a layer and counted pass */
    uint64_t active, hits, misses;
    uint64_t moved, cpu;         /* of the misses: copied on demand, run on the CPU */
    uint64_t moved_bytes;
    uint64_t slots;              /* Σ C of the layer at each event; 0 in scope global */
} moesim_layer_sums;

typedef struct moesim_outcome {
    moesim_sums total;
    moesim_sums *request;        /* [num_requests] in order of the selected range, warm-up left out */
    uint32_t *request_id;        /* [num_requests] numbers in the trace */
    uint32_t num_requests;
    moesim_layer_sums *layer;    /* [num_layers] */
    uint32_t num_layers;
    double ratio_p95;            /* 95th percentile of |A|/C over counted events (exact, from a histogram of |A|) */
    uint64_t evictions, insertions;      /* over all events */
    uint64_t all_accesses, all_hits;     /* over every event, prefill included (the published curves are cumulative) */
    uint64_t read_bytes;                 /* over every event: bytes copied */
    uint64_t pending;            /* moved or prefetched, still resident at the end, not hit since */
    uint64_t refused;            /* value −∞ in a free slot */
    uint64_t peak_bytes;         /* slots + staging + overshoot */
    uint64_t overshoot_bytes;    /* most bytes above the capacity between events */
    uint32_t capacity_changes, oscillations;   /* layer-adaptive capacity: re-splits; period-2 swings seen */
    uint64_t observed_checked, observed_wrong; /* --check-observed */
    uint64_t observed_first_wrong;             /* row·M·K index of the first disagreement */
    uint32_t traits;             /* of policy and instance: clairvoyant, non-causal, … */
    moesim_counter counter[16];
    uint32_t num_counters;
    struct moesim_timing *timing;/* [num_timings] one per costing (sim/timing.h) */
    uint32_t num_timings;
} moesim_outcome;

/* Do decisions of this configuration depend on costs (dispatch by costs, prefetches that take time)? Then it needs an
 * instance per bandwidth. */
bool moesim_config_reads_costs(const moesim_policy *policy, const void *options);

/* Runs n configurations; outcome[n] is caller-allocated and zeroed; release each with moesim_outcome_fini. Output does not
 * depend on threads. */
moesim_code moesim_run(moesim_trace *trace, const moesim_run_params *params, const moesim_config *config, size_t n,
                       moesim_outcome *outcome, moesim_error *err);
void moesim_outcome_fini(moesim_outcome *outcome);

/* ---- the pieces of moesim_run, for benchmarks and tests that bring their own windows ------------------------------ */

typedef struct moesim_instance moesim_instance;

moesim_code moesim_instance_create(const moesim_shape *shape, const moesim_run_params *params, const moesim_config *config,
                                   moesim_instance **out, moesim_error *err);
moesim_code moesim_instance_advance(moesim_instance *instance, const moesim_window *window, moesim_error *err);
moesim_code moesim_instance_finish(moesim_instance *instance, moesim_outcome *outcome, moesim_error *err);
void moesim_instance_destroy(moesim_instance **instance);

#endif
