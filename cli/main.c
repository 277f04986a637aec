/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim: the table of commands.
 */
#include <stdio.h>

#include "cli/cli.h"
#include "cli/program.h"

static const char summary[] =
    "Replays recorded routing traces of Mixture-of-Experts models through expert-cache policies and reports what each "
    "policy keeps, moves and misses.";

static const moesim_command commands[] = {
    { "run", &moesim_usage_run, moesim_cmd_run },
    { "sweep", &moesim_usage_sweep, moesim_cmd_sweep },
    { "compare", &moesim_usage_compare, moesim_cmd_compare },
    { "merge", &moesim_usage_merge, moesim_cmd_merge },
    { "replay", &moesim_usage_replay, moesim_cmd_replay },
    { "fidelity", &moesim_usage_fidelity, moesim_cmd_fidelity },
    { "plot", &moesim_usage_plot, moesim_cmd_plot },
    { "policies", &moesim_usage_policies, moesim_cmd_policies },
    { "policy", &moesim_usage_policy, moesim_cmd_policy },
    { "trace", &moesim_usage_trace, moesim_cmd_trace },
    { "profile", &moesim_usage_profile, moesim_cmd_profile },
    { NULL, NULL, NULL },
};

static void print_version(void)
{
    printf("moesim %s (%s)\n", MOESIM_VERSION, MOESIM_LIBRARIES);
}

int main(int argc, char **argv)
{
    static const moesim_program program = { "moesim", summary, commands, print_version };
    return moesim_program_run(&program, argc, argv);
}
