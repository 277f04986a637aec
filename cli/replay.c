/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim replay`: the same decisions on real hardware, predicted and measured.
 */
#include "cli/cli.h"
#include "cli/fidelity_run.h"

#define REPEATS 1u

static const moesim_arg args[] = {
    MOESIM_DEVICE_ARGS(moesim_fidelity_settings, device),
    MOESIM_DEVICE_DECISIONS(moesim_fidelity_settings, device),
    MOESIM_REPORT_ARGS(moesim_fidelity_settings),
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

const moesim_usage moesim_usage_replay = {
    .command = "moesim replay",
    .synopsis = "[TRACE] --policy P --cache N | --decisions F | --raw F[,F…] [options]",
    .summary = "Executes what a policy decides on a device, and prints predicted and measured times. moesim-device copies "
               "experts over the link, computes them, checks outputs against a double-precision reference, and times every "
               "event from gate to gate. Exit status 77: there is no such device.",
    .examples = "  moesim replay t.h5 --policy oled --cache 40 --as llada2.0-mini --device cuda\n"
                "  moesim replay t.h5 --policy lru --cache 40 --device host --hidden 256 \\\n"
                "      --intermediate 64\n"
                "  moesim run t.h5 --policy lru --cache 40 --decisions d.h5\n"
                "  moesim replay t.h5 --decisions d.h5 --device host -o raw.h5\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 1,
};

moesim_code moesim_cmd_replay(int argc, char **argv, moesim_error *err)
{
    return moesim_fidelity_run(&moesim_usage_replay, "replay", REPEATS, argc, argv, moesim_replay_print_table, err);
}
