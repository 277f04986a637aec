/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace: the table of its commands.
 */
#include <stddef.h>

#include "cli/cli.h"

const moesim_usage moesim_usage_trace = {
    .command = "moesim trace",
    .synopsis = "COMMAND TRACE [options]",
    .summary = "Looks at, checks, characterises and rewrites recorded traces.",
};

static const moesim_command commands[] = {
    { "info", &moesim_usage_trace_info, moesim_cmd_trace_info },
    { "validate", &moesim_usage_trace_validate, moesim_cmd_trace_validate },
    { "stats", &moesim_usage_trace_stats, moesim_cmd_trace_stats },
    { "head", &moesim_usage_trace_head, moesim_cmd_trace_head },
    { "select", &moesim_usage_trace_select, moesim_cmd_trace_select },
    { "convert", &moesim_usage_trace_convert, moesim_cmd_trace_convert },
    { "diff", &moesim_usage_trace_diff, moesim_cmd_trace_diff },
    { "merge", &moesim_usage_trace_merge, moesim_cmd_trace_merge },
    { "salvage", &moesim_usage_trace_salvage, moesim_cmd_trace_salvage },
    { "import", &moesim_usage_trace_import, moesim_cmd_trace_import },
    { "gen", &moesim_usage_trace_gen, moesim_cmd_trace_gen },
    { "plugin-path", &moesim_usage_trace_plugin_path, moesim_cmd_trace_plugin_path },
    { NULL, NULL, NULL },
};

moesim_code moesim_cmd_trace(int argc, char **argv, moesim_error *err)
{
    return moesim_dispatch_command(commands, moesim_usage_trace.command, moesim_usage_trace.summary, argc, argv, err);
}
