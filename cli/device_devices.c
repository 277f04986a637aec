/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim-device devices`: the backends of this build, and what is there.
 */
#include <stdio.h>

#include "cli/device_verbs.h"
#include "hwprofile/device.h"

static const moesim_arg args[] = {
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

const moesim_usage moesim_usage_device_devices = {
    .command = "moesim-device devices",
    .synopsis = "",
    .summary = "Lists the devices that this program can drive, whether they are there, and what they are.",
    .args = args,
};

/* What the smallest device of this backend says of itself. */
static void list_facts(const moesim_device_ops *ops)
{
    const moesim_device_config config = { .hidden = 64, .intermediate = 64, .max_rows = 1, .top_k = 1, .slots = 1, .pool = 1,
                                          .seed = 1, .allow_pageable = true };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_device *device = NULL;
    moesim_device_fact fact;
    if (ops->open(&config, &device, &err) != MOESIM_OK) {
        moesim_args_row(stdout, "", 0, 8, err.text);
        return;
    }
    for (size_t i = 0; ops->fact(device, i, &fact); i++)
        moesim_args_row(stdout, fact.key, 8, 28, fact.value);
    ops->close(&device);
}

moesim_code moesim_cmd_device_devices(int argc, char **argv, moesim_error *err)
{
    moesim_list positional = { 0, 0, NULL };
    char unused = 0, why[256];
    bool help = false;
    const moesim_code code = moesim_args_parse(&moesim_usage_device_devices, argc, argv, &unused, &positional, &help, err);
    moesim_list_fini(&positional);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_device_devices, stdout);
    if (code != MOESIM_OK || help)
        return code;
    for (const moesim_device_ops *const *d = moesim_device_backends(); *d != NULL; d++) {
        const bool present = (*d)->present(0, why);
        moesim_args_row(stdout, (*d)->name, 0, 8, (*d)->help);
        if (present)
            list_facts(*d);
        else
            moesim_args_row(stdout, "", 0, 8, why);
    }
    return MOESIM_OK;
}
