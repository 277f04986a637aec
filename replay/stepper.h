/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives a device through the events of one execution and takes their times; locked and live replay are both made of it. One
 * thread drives a stepper, the one that drives the device.
 */
#ifndef MOESIM_REPLAY_STEPPER_H
#define MOESIM_REPLAY_STEPPER_H

#include <stdbool.h>
#include <stdint.h>

#include "replay/verify.h"
#include "sim/replay_file.h"

typedef struct moesim_stepper {
    moesim_device *device;
    moesim_verifier *verifier;   /* NULL: nothing is verified */
    moesim_replay_cell *cell;    /* NULL: times are dropped (warming up) */
    uint32_t *content;           /* [slots + staging] what each slot holds, kept up to date */
    /* inside */
    size_t index;                /* of the event in flight, and its pass and layer for messages */
    uint64_t pass;
    uint32_t layer;
    bool in_flight, passed;      /* an event runs; a pass has ended before */
    uint64_t gate, ended;        /* host's clock: of the event in flight; of the last end of a pass */
    const moesim_device_work *work;
    const uint16_t *id;
} moesim_stepper;

/* The gate of event `index` of the execution, of rows > 0 rows; the event before, if one is in flight, ends here. */
moesim_code moesim_stepper_gate(moesim_stepper *s, size_t index, uint64_t pass, uint32_t layer, uint32_t rows,
                                moesim_error *err);

/* The gated event. work and id stay valid until the next gate or end. */
moesim_code moesim_stepper_work(moesim_stepper *s, const moesim_device_work *work, const uint16_t *id, moesim_error *err);

/* The pass ends, and with it its last event. */
moesim_code moesim_stepper_end(moesim_stepper *s, uint32_t rows, bool head, moesim_error *err);

#endif
