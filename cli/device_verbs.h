/* SPDX-License-Identifier: Apache-2.0
 *
 * The verbs of moesim-device; measure is in cli/measure.h.
 */
#ifndef MOESIM_CLI_DEVICE_VERBS_H
#define MOESIM_CLI_DEVICE_VERBS_H

#include "cli/cli.h"

MOESIM_COMMAND(device_replay);
MOESIM_COMMAND(device_fidelity);
MOESIM_COMMAND(device_devices);

#endif
