/* SPDX-License-Identifier: Apache-2.0
 *
 * One configuration (policy × capacity) while it runs: residency, slots, the policy's state, the event in flight, sums.
 * Internal to sim/: everything between sim/sim.h and the event steps. All memory of an instance lies in one arena, made at
 * creation; the steps allocate nothing. One thread at a time per instance; windows are shared and const.
 */
#ifndef MOESIM_SIM_INSTANCE_H
#define MOESIM_SIM_INSTANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "sim/account.h"
#include "sim/kernels.h"
#include "sim/sim.h"

#define MOESIM_MAX_STATE_BYTES ((size_t)1 << 30)

/* The event in flight. With RETAIN_AT_PASS one a layer, since all stay open until the pass ends; else one. Sets are
 * [words]. */
typedef struct moesim_turn {
    uint32_t layer, n_active, n_hits, n_misses, n_moved;
    const uint64_t *active;
    uint64_t *before;            /* resident before the event */
    uint64_t *misses, *cpu, *moved, *candidates, *keep;
    uint16_t *order;             /* [n_misses] the order in which misses are copied */
} moesim_turn;

typedef struct moesim_instance moesim_instance;

/* Executes all events of one step. */
typedef moesim_code moesim_step_fn(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err);

/* Age layers in use: [from, to). */
typedef struct moesim_ages {
    size_t from, to;
} moesim_ages;

struct moesim_prefetcher;
struct moesim_pool;
struct moesim_global;
struct moesim_timer;

struct moesim_instance {
    moesim_arena *arena;
    moesim_shape shape;
    moesim_run_params params;
    moesim_config config;
    const moesim_policy *policy;
    const moesim_kernels *kernels;
    moesim_trace *trace;         /* tells requests their workload and lengths; NULL: unknown */
    void *state;
    uint32_t traits, needs;
    bool opened, at_pass;
    bool dispatches;             /* dispatch is asked which misses run on the CPU */
    bool by_key;                 /* retain_key is asked instead of retain */
    bool logs;                   /* decisions go to a log or a sink */
    bool loose;                  /* a layer may hold more than its slots until its event of this step */
    moesim_step_fn *step;

    uint32_t *slots;             /* [M] */
    uint64_t total_slots;        /* what the configuration grants; no answer may pass it */
    uint64_t slot_bytes, most_slot_bytes, overshoot;
    uint64_t *resident;          /* [M][words] */
    uint64_t *landed;            /* [M][words] prefetches landed since the layer's previous event */
    uint64_t *dropped;           /* [M][words] evicted outside of the layer's events since the last one (decision log) */
    moesim_turn *turn;
    double *value, *tie;         /* [M or 1][words·64]: standing keys of each layer, or one scratch pair */
    uint64_t *padded;            /* [words·64] copy of integer keys where E is no multiple of 64, else NULL */
    moesim_hint *hint;           /* [M][2] */
    size_t key_stride;           /* words·64, or 0 for the scratch pair */
    moesim_account account;
    struct moesim_timer *timer;  /* tells time, or NULL */

    /* what the policy is shown */
    moesim_event base;           /* the same for all events of a step */
    moesim_event view;           /* the event in flight */
    bool pass_ended;             /* RETAIN_AT_PASS: this pass's confidences exist now */
    moesim_row *row;             /* rows of the step, as far as this policy may see them */
    moesim_row *ended;           /* rows of the step before, for boundary */
    size_t row_capacity, ended_capacity;
    uint32_t num_ended;
    uint64_t decode_ended;

    /* capacities that change */
    uint32_t *answer;            /* [M] the boundary's answer */
    uint32_t *slots_1, *slots_2; /* [M] one and two re-splits ago */
    uint8_t *swings;             /* [M] period-2 swings running; 255: counted */
    uint32_t capacity_changes, oscillations;

    /* modes of their own */
    struct moesim_prefetcher *prefetch;
    struct moesim_pool *pool;    /* belady-pooled */
    struct moesim_global *global;
    uint64_t *age;               /* order recency: [M][age_depth][words], newest first */
    moesim_ages *ages;           /* [M] */
    size_t age_depth;
    uint64_t accesses;           /* order flattened: number of the last access */
    uint16_t *logged;            /* [4][E] id lists for the decision log */

    uint64_t refused;
    uint64_t observed_checked, observed_wrong;
    uint64_t wrong_pass, wrong_index;   /* first disagreement: pass, and index from the pass's first row */
};

/* setup.c: refuses what cannot run (names the rule), allocates, opens the policy, chooses the step. */
moesim_code moesim_instance_setup(moesim_instance *in, moesim_error *err);

/* Names the policy in every message: "policy lru (as given)". */
moesim_code moesim_instance_fail(const moesim_instance *in, moesim_error *err, moesim_code code, const char *fmt, ...)
    MOESIM_PRINTF(4, 5);

/* Remembers bytes above the capacities, all layers together, as they are now. */
void moesim_instance_overshoot(moesim_instance *in);

/* ---- view.c: what a policy is shown ------------------------------------------------------------------------------ */

/* Parts that are the same for all events of a step. */
moesim_code moesim_view_step(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err);

/* The event of one layer; index = its number in the window. */
void moesim_view_event(moesim_instance *in, const moesim_window *w, const moesim_turn *turn, size_t index);

/* Debug builds: what a policy kept a pointer to reads as garbage. */
void moesim_view_poison(moesim_instance *in);

/* Keeps the rows of a step that has ended, with the confidences it produced. */
moesim_code moesim_view_keep(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err);

/* ---- boundary.c: callbacks between steps ------------------------------------------------------------------------- */

moesim_code moesim_boundary_before(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err);
moesim_code moesim_boundary_after(moesim_instance *in, const moesim_window *w, const moesim_step *step, moesim_error *err);

/* One expert leaves outside of an event. */
void moesim_evict(moesim_instance *in, uint32_t layer, uint32_t expert);

/* The resident with the lowest (value, tie), of equals the highest id; UINT32_MAX if none or all have just landed. */
uint32_t moesim_worst(const moesim_instance *in, uint32_t layer);

/* ---- steps --------------------------------------------------------------------------------------------------------- */

/* One table per instruction set. */
typedef struct moesim_steps {
    const char *name;            /* as the kernels of the same instruction set */
    moesim_step_fn *generic, *recency, *active;
} moesim_steps;
extern const moesim_steps moesim_steps_base, moesim_steps_avx2;
moesim_step_fn moesim_step_generic_base, moesim_step_generic_avx2;

moesim_step_fn moesim_step_ideal, moesim_step_ideal_pooled, moesim_step_full, moesim_step_belady_pooled;
moesim_step_fn moesim_step_global, moesim_step_flat;

/* Memory that belady-pooled and scope global need; called at creation, before the first step. */
moesim_code moesim_pooled_init(moesim_instance *in, moesim_error *err);
moesim_code moesim_global_init(moesim_instance *in, moesim_error *err);

/* Around an event: the sink hears of its gate; after it has settled, decision log and sink are told. */
moesim_code moesim_log_gate(moesim_instance *in, const moesim_window *w, const moesim_step *step, size_t index,
                            moesim_error *err);
moesim_code moesim_log_event(moesim_instance *in, const moesim_window *w, const moesim_step *step, const moesim_turn *turn,
                             moesim_error *err);

#endif
