/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim profile measure: moesim-device does it. Words are checked here too, so that a slip is told without it.
 */
#include "cli/measure.h"
#include "cli/start.h"

const moesim_usage moesim_usage_profile_measure = {
    .command = "moesim profile measure",
    .synopsis = "--device cuda|host --as MODEL -o FILE [options]",
    .summary = "Measures what copies and computation cost on this machine, each alone and link and CPU together, the whole "
               "twice, and writes every sample to a file for 'moesim profile fit'. The program moesim-device does the work: it "
               "lies beside moesim, or on PATH, and can be used alone on another machine. Exit status 77: there is no such "
               "device.",
    .examples = "  moesim profile measure --device cuda --as llada2.0-mini -o raw.h5\n"
                "  moesim profile measure --device host --as llada2.0-mini --quick -o raw.h5\n"
                "  moesim profile fit raw.h5 -o profile.json\n",
    .args = moesim_measure_args,
    .min_positional = 0,
    .max_positional = 0,
};

moesim_code moesim_cmd_profile_measure(int argc, char **argv, moesim_error *err)
{
    moesim_measure_settings s = MOESIM_MEASURE_DEFAULTS;
    moesim_list words = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_profile_measure, argc, argv, &s, &words, &help, err);
    moesim_list_fini(&words);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_profile_measure, stdout);
    else if (code == MOESIM_OK)
        code = moesim_device_become("measure", argc, argv, err);
    return code;
}
