/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim fidelity`: a grid is executed on a device, and the report says how far the model was off.
 */
#include "cli/cli.h"
#include "cli/fidelity_run.h"

#define REPEATS 3u

static const moesim_arg args[] = {
    MOESIM_DEVICE_ARGS(moesim_fidelity_settings, device),
    MOESIM_REPORT_ARGS(moesim_fidelity_settings),
    { "calibrate", 0, MOESIM_ARG_STRING, offsetof(moesim_fidelity_settings, words.calibrate), "P:N", 0, 0, NULL,
      "Fit sync, GPU table, link and CPU table, each on the events that tell it, on the cells of this policy and capacity "
      "alone, which then test nothing; 'none' takes the profile as it is (default: lru, or else the first policy, at the "
      "second capacity)." },
    { "witness", 0, MOESIM_ARG_STRING, offsetof(moesim_fidelity_settings, words.witness), "FILE", 0, 0, NULL,
      "A raw file of the same decisions, executed by another program (tests/witness): held against the same predictions." },
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

const moesim_usage moesim_usage_fidelity = {
    .command = "moesim fidelity",
    .synopsis = "[TRACE] --policy P[,P…] --cache N[,N…] | --raw F[,F…] [options]",
    .summary = "Holds the timing model against a machine. Executes a grid of policies and capacities on a device, decision by "
               "decision, with moesim-device, and prints predicted and measured time per output token and miss time with "
               "intervals, errors of events and passes, the order of policies, and what each effect of the model is worth. "
               "Exit status 77: there is no such device.",
    .examples = "  moesim fidelity t.h5 --policy lru,oled,surv --cache 20,40 --as llada2.0-mini \\\n"
                "      --device cuda --profile h200-host -o raw.h5 --markdown table.md\n"
                "  moesim fidelity --raw a.h5,b.h5 --profile mine.json --calibrate none\n",
    .args = args,
    .min_positional = 0,
    .max_positional = 1,
};

moesim_code moesim_cmd_fidelity(int argc, char **argv, moesim_error *err)
{
    return moesim_fidelity_run(&moesim_usage_fidelity, "fidelity", REPEATS, argc, argv, moesim_fidelity_print_table, err);
}
