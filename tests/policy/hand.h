/* SPDX-License-Identifier: Apache-2.0
 *
 * A host of a few lines for events made by hand: opens a policy, shows it one event, keeps the best `slots` candidates.
 * Written apart from sim/, so that values and order are checked against semantics §1 and not against the engine.
 * Before every call the state moves to fresh memory and the old one is filled with garbage, as when a run is resumed.
 * At most 8 layers and 64 experts. Failures abort the test (Check).
 */
#ifndef MOESIM_TESTS_POLICY_HAND_H
#define MOESIM_TESTS_POLICY_HAND_H

#include <stdbool.h>

#include "policies/registry.h"

#define HAND_LAYERS 8
#define HAND_EXPERTS 64

struct hand {
    moesim_policy_spec spec;
    moesim_shape shape;
    uint64_t expert_bytes[HAND_LAYERS];
    uint32_t slots[HAND_LAYERS];
    uint64_t resident[HAND_LAYERS], active;
    uint16_t list[HAND_EXPERTS];
    double value[HAND_EXPERTS], tie[HAND_EXPERTS];   /* answers of the last event */
    uint64_t key[HAND_EXPERTS];
    uint64_t cpu;                /* answers of the last dispatch: misses on the CPU, and the order of all misses */
    uint16_t order[HAND_EXPERTS];
    uint32_t misses;
    uint32_t traits;
    bool still;                  /* the state stays where it is */
    void *state;
    size_t state_bytes;
};

/* What hands show as open.costs: T_H2D = 1, 1 per token on the CPU, no step. Tests may put others, or NULL. */
extern const moesim_costs *hand_costs;

/* What an event shows; arrays parallel to ids, ascending. Zero fields are left out. */
struct hand_event {
    uint32_t layer, kind, first, num_masked;
    uint64_t clock;
    uint32_t n;
    const uint16_t *ids;
    const double *mass, *weighted, *hindsight, *class_sum;
    const uint32_t *count, *masked;
    const uint64_t *next_use, *touch;
    uint64_t next_active;
    uint32_t num_rows;           /* of row */
    const moesim_row *row;
};

/* Returns the answer of open; `error` (256 bytes, may be NULL) gets its message. */
int hand_try_open(struct hand *h, const char *policy, uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t slots,
                  uint32_t global_scope, uint64_t seed, char *error);
void hand_open(struct hand *h, const char *policy, uint32_t layers, uint32_t experts, uint32_t top_k, uint32_t slots);
void hand_close(struct hand *h);

/* Asks retain (or retain_pass) and selects. Every candidate must have got a value. */
void hand_retain(struct hand *h, const struct hand_event *event);
void hand_retain_pass(struct hand *h, const struct hand_event *event);

/* Asks dispatch, if there are misses. The answer is held back until the next hand_retain. */
void hand_dispatch(struct hand *h, const struct hand_event *event);

/* Asks retain_key into h->key, without selecting; returns what the policy returned. */
int hand_key(struct hand *h, const struct hand_event *event);

/* Boundary with so many decode passes ended; changes h->slots. Returns answer.eager. */
uint32_t hand_boundary(struct hand *h, uint64_t decode_passes);

#endif
