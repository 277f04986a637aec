/* SPDX-License-Identifier: Apache-2.0
 *
 * Outputs of sampled events against a double-precision reference (hwprofile/cpu_expert.h), while the clock stands still
 * (replay/stepper.h): 1 in 200 events, 8 to 64, chosen by seed; of each, every output must be a number and up to three experts
 * (a hit, a moved one and one of the CPU, or two where all are of one kind; four rows of each) must agree to 1e-2 in each row.
 * A wrong result ends the run.
 */
#ifndef MOESIM_REPLAY_VERIFY_H
#define MOESIM_REPLAY_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "hwprofile/device.h"

#define MOESIM_VERIFY_ERROR 1e-2     /* relative, normwise over one row of one expert */
#define MOESIM_VERIFY_ONE_IN 200u
#define MOESIM_VERIFY_LEAST 8u
#define MOESIM_VERIFY_MOST 64u       /* events of one execution */

typedef struct moesim_verifier moesim_verifier;

/* The device and its sizes stay until destroy. A device without weights (null) verifies nothing. most_routes: of an event. */
moesim_code moesim_verifier_create(moesim_device *device, uint32_t hidden, uint32_t intermediate, uint32_t max_rows,
                                   size_t most_routes, moesim_verifier **out, moesim_error *err);
void moesim_verifier_destroy(moesim_verifier **verifier);        /* NULL allowed */

/* Chooses the events of an execution of n events. */
void moesim_verifier_begin(moesim_verifier *verifier, size_t num_events, uint64_t seed);

/* Is event i, the next one not asked for yet, chosen? Ascending i. */
bool moesim_verifier_chosen(moesim_verifier *verifier, size_t i);

/* The event has ended (after gate or end_pass). id: of its experts, hits, moved, cpu. FORMAT error: expert and row, the
 * relative error; the caller adds the event. */
moesim_code moesim_verifier_check(moesim_verifier *verifier, const moesim_device_work *work, const uint16_t *id,
                                  moesim_error *err);

/* Since begin. */
uint64_t moesim_verifier_experts(const moesim_verifier *verifier);
double moesim_verifier_worst(const moesim_verifier *verifier);

#endif
