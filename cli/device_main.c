/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim-device: the table of its verbs. It knows devices (CUDA, if built with it) and not GSL; `moesim` starts it and prints
 * the reports.
 */
#include <stdio.h>

#include "cli/device_verbs.h"
#include "cli/measure.h"
#include "cli/program.h"
#include "hwprofile/device.h"

static const char summary[] = "Executes and measures on devices, for `moesim`, which prints the reports.";

static const moesim_command commands[] = {
    { "replay", &moesim_usage_device_replay, moesim_cmd_device_replay },
    { "fidelity", &moesim_usage_device_fidelity, moesim_cmd_device_fidelity },
    { "measure", &moesim_usage_device_measure, moesim_cmd_device_measure },
    { "devices", &moesim_usage_device_devices, moesim_cmd_device_devices },
    { NULL, NULL, NULL },
};

static void print_version(void)
{
    printf("moesim-device %s (devices:", MOESIM_VERSION);
    for (const moesim_device_ops *const *d = moesim_device_backends(); *d != NULL; d++)
        printf(" %s", (*d)->name);
    printf(")\n");
}

int main(int argc, char **argv)
{
    static const moesim_program program = { "moesim-device", summary, commands, print_version };
    return moesim_program_run(&program, argc, argv);
}
