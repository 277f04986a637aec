/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs prepared for one cell: a profile, a mode, a link bandwidth and switches, for the expert sizes of one model. Const
 * after creation, shared by threads. Times are seconds. sim/TIMING.md is the model.
 */
#ifndef MOESIM_SIM_COSTING_H
#define MOESIM_SIM_COSTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hwprofile/profile.h"
#include "moesim/policy.h"

/* Effects that can be switched off, so that the error each one causes can be measured. They belong to model mode: paper mode
 * has none of them, and a switch changes nothing there (nor in count mode). */
enum moesim_effect {
    MOESIM_EFFECT_CONTENTION = 1u << 0,  /* link and CPU share DRAM */
    MOESIM_EFFECT_SYNC = 1u << 1,        /* the fixed time between gate and dispatch */
    MOESIM_EFFECT_OVERLAP = 1u << 2,     /* off: hits, then copies and moved experts in turn, then the CPU path */
    MOESIM_EFFECT_POLICY = 1u << 3,
    MOESIM_EFFECT_OTHER = 1u << 4,       /* both parts */
    MOESIM_EFFECT_HEAD = 1u << 5,
    MOESIM_EFFECT_ALL = (1u << 6) - 1
};

/* Names of the effects in the order of their bits ("contention", "sync", …), NULL-ended. */
extern const char *const moesim_effect_names[];

typedef struct moesim_costing moesim_costing;

typedef struct moesim_costing_params {
    const moesim_profile *profile;   /* outlives the costing; NULL in count mode */
    enum moesim_time_mode mode;
    double bandwidth;            /* B/s of the link; 0: the profile's. In paper mode scales all of T_H2D */
    uint32_t effects;            /* enum moesim_effect */
    uint32_t staging;            /* experts between copy and computation, ≥ 1; paper mode has no staging */
    uint32_t num_layers, max_rows;   /* max_rows: most rows of a decode event; prefill events may have more */
    const uint64_t *expert_bytes;/* [M], copied; paper mode ignores them: T_H2D and τ are constants of one model */
    uint64_t hidden_bytes;       /* bytes of one row's activation (hidden size × 2) */
    const moesim_costing *like;  /* or NULL; outlives the costing, which shares its tables if profile and max_rows are its */
} moesim_costing_params;

/* USAGE errors: a mode that the profile does not support (those it does are named), a bandwidth that is not finite and
 * positive, staging 0. Caller destroys. */
moesim_code moesim_costing_create(const moesim_costing_params *params, moesim_costing **out, moesim_error *err);
void moesim_costing_destroy(moesim_costing **costing);       /* NULL allowed */

/* What a policy may read, valid as long as the costing; NULL in count mode. cpu_s has max_rows + 1 entries; where layers
 * differ in bytes it holds the CPU time of an expert of their mean size. */
const moesim_costs *moesim_costing_view(const moesim_costing *costing);
/* Bytes of the tables of one profile, which costings share (`like`). */
double moesim_cost_rows_bytes(const moesim_profile *profile, uint32_t max_rows);
double moesim_costing_bandwidth(const moesim_costing *costing);      /* B/s in force; 0 in count mode */

#endif
