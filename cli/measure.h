/* SPDX-License-Identifier: Apache-2.0
 *
 * The words of `moesim-device measure`, which `moesim profile measure` takes too.
 */
#ifndef MOESIM_CLI_MEASURE_H
#define MOESIM_CLI_MEASURE_H

#include "cli/cli.h"

typedef struct moesim_measure_settings {
    const char *device, *as, *output, *isa, *cpus;
    bool quick, allow_pageable;
    int other;                   /* 0 off, 1 on, which is the default: MOESIM_MEASURE_DEFAULTS */
    uint64_t threads, rounds, index, context, hidden, intermediate, host_pool, gpu_memory;
} moesim_measure_settings;

#define MOESIM_MEASURE_DEFAULTS { .other = 1 }

extern const moesim_arg moesim_measure_args[];

MOESIM_COMMAND(device_measure);   /* of moesim-device; moesim's own is in cli/cli.h */

#endif
