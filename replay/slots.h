/* SPDX-License-Identifier: Apache-2.0
 *
 * Which slot of the device holds which expert. The device knows slots alone; that no slot is overwritten while somebody still
 * needs it follows from the order given here:
 *   a moved expert that stays goes into a slot that was free before the event, else into that of an expert which leaves in this
 *   event and is not in A (nobody reads it now), else into that of a hit which leaves (the device waits for its last reader);
 *   a moved expert that does not stay goes through a ring of staging slots, the last ones of the device.
 * Nothing is copied within the device. One thread at a time.
 */
#ifndef MOESIM_REPLAY_SLOTS_H
#define MOESIM_REPLAY_SLOTS_H

#include <stdint.h>

#include "hwprofile/device.h"
#include "sim/walk.h"

#define MOESIM_NO_SLOT UINT32_MAX

typedef struct moesim_slots_shape {
    uint32_t num_layers, num_experts;
    uint32_t slots, staging;     /* staging ≥ 1; slots without staging */
    uint32_t pool;               /* expert e of layer l lies at (l·E + e) mod pool */
    bool aliased;                /* expert e of layer l is always in slot (l·E + e) mod slots, slots ≥ E: everything is a hit */
} moesim_slots_shape;

typedef struct moesim_slots moesim_slots;

/* Caller destroys. */
moesim_code moesim_slots_create(const moesim_slots_shape *shape, moesim_slots **out, moesim_error *err);
void moesim_slots_destroy(moesim_slots **slots);     /* NULL allowed */

/* All free; then `initial` [M][words] get slots in ascending order (not where aliased). LIMIT: more than the slots. */
moesim_code moesim_slots_reset(moesim_slots *slots, const uint64_t *initial, moesim_error *err);

/* What slot i holds after reset: index in the pool, or MOESIM_NO_SLOT; for fills. i below slots. */
uint32_t moesim_slots_content(const moesim_slots *slots, uint32_t i);

/* Places one event: device[n_active] is filled in the order hits, moved, cpu, and *work points into it. Rows point to those of
 * the event. INTERNAL: more residents than slots, or a hit without a slot. */
moesim_code moesim_slots_event(moesim_slots *slots, const moesim_walk_event *event, moesim_device_expert *device,
                               moesim_device_work *work, moesim_error *err);

#endif
