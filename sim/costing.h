/* SPDX-License-Identifier: Apache-2.0
 *
 * Costs prepared for one cell: a profile, a mode, a link bandwidth and switches, for the expert sizes of one model. Const
 * after creation, shared by threads. Times are seconds.
 */
#ifndef MOESIM_SIM_COSTING_H
#define MOESIM_SIM_COSTING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "hwprofile/profile.h"
#include "moesim/policy.h"

/* Effects that can be switched off, so that the error each one causes can be measured (timing-model: contention, sync,
 * overlap of copies with computation, policy cost, other, head). */
enum moesim_effect {
    MOESIM_EFFECT_CONTENTION = 1u << 0,
    MOESIM_EFFECT_SYNC = 1u << 1,
    MOESIM_EFFECT_OVERLAP = 1u << 2,
    MOESIM_EFFECT_POLICY = 1u << 3,
    MOESIM_EFFECT_OTHER = 1u << 4,
    MOESIM_EFFECT_HEAD = 1u << 5,
    MOESIM_EFFECT_ALL = (1u << 6) - 1
};

typedef struct moesim_costing_params {
    const moesim_profile *profile;
    enum moesim_time_mode mode;
    double bandwidth;            /* B/s of the link; 0: the profile's. In paper mode scales all of T_H2D */
    uint32_t effects;            /* enum moesim_effect */
    uint32_t staging;            /* experts between copy and computation, ≥ 1 */
    uint32_t num_layers, max_rows;
    const uint64_t *expert_bytes;/* [M] */
    uint64_t hidden_bytes;       /* bytes of one row's activation (hidden size × 2) */
} moesim_costing_params;

typedef struct moesim_costing moesim_costing;

/* Refuses a mode that the profile does not support, naming those it does. */
moesim_code moesim_costing_create(const moesim_costing_params *params, moesim_costing **out, moesim_error *err);
void moesim_costing_destroy(moesim_costing **costing);

/* What a policy may read; valid as long as the costing. */
const moesim_costs *moesim_costing_view(const moesim_costing *costing);
double moesim_costing_bandwidth(const moesim_costing *costing);

#endif
