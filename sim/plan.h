/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks of what a policy answered, before the host applies it. Every refusal is MOESIM_E_POLICY and names the policy, the
 * layer, the clock and the rule. Thread-safe for different instances.
 */
#ifndef MOESIM_SIM_PLAN_H
#define MOESIM_SIM_PLAN_H

#include "sim/instance.h"

/* A callback returned non-zero. */
moesim_code moesim_plan_stopped(const moesim_instance *in, const char *callback, uint64_t clock, moesim_error *err);

/* Which misses run on the CPU and the order in which the others are copied: asks dispatch where the policy has one, checks the
 * answer, and sets order, cpu, moved, candidates and n_moved. misses, before and n_misses are set, moved holds all misses. */
moesim_code moesim_plan_split(moesim_instance *in, moesim_turn *turn, moesim_error *err);

/* dispatch: cpu is a subset of the misses, order holds every miss once. */
moesim_code moesim_plan_dispatch(const moesim_instance *in, const moesim_turn *turn, moesim_error *err);

/* retain left NaN in a candidate's value or tie: finds it. */
moesim_code moesim_plan_nan(const moesim_instance *in, const moesim_turn *turn, const double *value, const double *tie,
                            moesim_error *err);

/* Slots per layer: each in 0..E, the sum at most what the configuration grants. */
moesim_code moesim_plan_slots(const moesim_instance *in, const uint32_t *slots, const char *callback, moesim_error *err);

/* open: experts resident from the start fit into the slots and exist. */
moesim_code moesim_plan_initial(const moesim_instance *in, const uint64_t *initial, moesim_error *err);

/* A prefetch list: layers and experts exist, no priority is NaN, n within the capacity offered. */
moesim_code moesim_plan_prefetch(const moesim_instance *in, const moesim_prefetch *list, const char *callback,
                                 moesim_error *err);

/* victim: the expert is in the set it was shown. */
moesim_code moesim_plan_victim(const moesim_instance *in, uint32_t layer, const uint64_t *shown, uint32_t expert,
                               moesim_error *err);

#endif
