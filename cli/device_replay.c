/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim-device replay` and `moesim-device fidelity`: execute decisions on a device, write what every event took.
 */
#include "cli/device_load.h"
#include "cli/device_verbs.h"

typedef struct device_options { moesim_device_words w; } device_options;

#define OUTPUT_ROW(help) { "output", 'o', MOESIM_ARG_STRING, offsetof(device_options, w.output), "FILE", 0, 0, NULL, help }
#define OUTPUT_HELP "Write the times of every event (HDF5, replay/REPLAY.md); a file that is there is gone on with."

#define SCRATCH_ROW \
    { "scratch", 0, MOESIM_ARG_FLAG, offsetof(device_options, w.scratch), NULL, 0, 0, NULL, \
      "With -o: FILE is read once and thrown away, by moesim without -o; messages do not name it." }

static const moesim_arg replay_args[] = {
    MOESIM_DEVICE_ARGS(device_options, w),
    MOESIM_DEVICE_DECISIONS(device_options, w),
    OUTPUT_ROW(OUTPUT_HELP),
    SCRATCH_ROW,
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

static const moesim_arg fidelity_args[] = {
    MOESIM_DEVICE_ARGS(device_options, w),
    OUTPUT_ROW(OUTPUT_HELP " Required."),
    SCRATCH_ROW,
    { NULL, 0, MOESIM_ARG_FLAG, 0, NULL, 0, 0, NULL, NULL },
};

const moesim_usage moesim_usage_device_replay = {
    .command = "moesim-device replay",
    .synopsis = "TRACE --policy P[,P…] --cache N[,N…] [options]",
    .summary = "Executes what policies decide on a device: hits as one grouped call, copies in order, moved experts as they "
               "arrive, CPU experts beside them. Outputs of sampled events are verified. Writes the time of every event; "
               "'moesim replay' prints the report.",
    .examples = "  moesim-device replay t.h5 --policy lru --cache 40 --as llada2.0-mini -o raw.h5\n"
                "  moesim-device replay t.h5 --decisions log.h5 --device host -o raw.h5\n",
    .args = replay_args,
    .min_positional = 1,
    .max_positional = 1,
};

const moesim_usage moesim_usage_device_fidelity = {
    .command = "moesim-device fidelity",
    .synopsis = "TRACE --policy P[,P…] --cache N[,N…] -o FILE [options]",
    .summary = "Measures a grid of replays, policies by capacities by caps of the link and full residency beside them, in ABBA "
               "order. Goes on where the file ends. 'moesim fidelity' prints the report.",
    .examples = "  moesim-device fidelity t.h5 --policy naive,lru,oled --cache 20,40,60 \\\n"
                "      --as llada2.0-mini --bandwidth none,16 --time-limit 600 -o grid.h5\n",
    .args = fidelity_args,
    .min_positional = 1,
    .max_positional = 1,
};

static moesim_code run(const moesim_usage *usage, uint64_t repeat, bool full, int argc, char **argv, moesim_error *err)
{
    device_options options;
    moesim_list positional = { 0, 0, NULL };
    bool help = false;
    moesim_device_defaults(&options.w, repeat);
    moesim_code code = moesim_args_parse(usage, argc, argv, &options, &positional, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(usage, stdout);
    if (code == MOESIM_OK && !help && full && options.w.output == NULL)
        code = moesim_fail(err, MOESIM_E_USAGE, "option -o is missing: a grid is measured into a file");
    if (code == MOESIM_OK && !help) {
        moesim_device_session session = { .words = &options.w, .path = positional.item[0], .full = full };
        code = moesim_device_load(&session, err);
        if (code == MOESIM_OK)
            code = moesim_device_execute(&session, err);
        moesim_device_session_fini(&session);
    }
    moesim_list_fini(&positional);
    moesim_device_words_fini(&options.w);
    return code;
}

moesim_code moesim_cmd_device_replay(int argc, char **argv, moesim_error *err)
{
    return run(&moesim_usage_device_replay, 1, false, argc, argv, err);
}

moesim_code moesim_cmd_device_fidelity(int argc, char **argv, moesim_error *err)
{
    return run(&moesim_usage_device_fidelity, 3, true, argc, argv, err);
}
