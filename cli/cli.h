/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands. Each returns a code and fills the error; program.c prints it once and turns it into the exit status
 * (base/error.h). Adding a command: its file, its row here and in the table of main.c (or trace.c), its line in
 * cli/meson.build; tests/cli compares README's list of commands with `moesim --help`.
 */
#ifndef MOESIM_CLI_CLI_H
#define MOESIM_CLI_CLI_H

#include "base/args.h"
#include "base/error.h"

typedef struct moesim_command {
    const char *name;
    const moesim_usage *usage;
    moesim_code (*run)(int argc, char **argv, moesim_error *err);   /* argv[0] is the command's own name */
} moesim_command;

/* Finds argv[1] in a NULL-name-ended table and runs it; without a name or with --help lists the table. */
moesim_code moesim_dispatch_command(const moesim_command *table, const char *prefix, const char *summary, int argc,
                                    char **argv, moesim_error *err);

#define MOESIM_COMMAND(id) \
    extern const moesim_usage moesim_usage_##id; \
    moesim_code moesim_cmd_##id(int argc, char **argv, moesim_error *err)

MOESIM_COMMAND(run);
MOESIM_COMMAND(trace);            /* dispatches to the ones below */
MOESIM_COMMAND(trace_info);
MOESIM_COMMAND(trace_validate);
MOESIM_COMMAND(trace_stats);
MOESIM_COMMAND(trace_head);
MOESIM_COMMAND(trace_select);
MOESIM_COMMAND(trace_convert);
MOESIM_COMMAND(trace_merge);
MOESIM_COMMAND(trace_diff);
MOESIM_COMMAND(trace_salvage);
MOESIM_COMMAND(trace_import);
MOESIM_COMMAND(trace_gen);
MOESIM_COMMAND(trace_plugin_path);
MOESIM_COMMAND(compare);
MOESIM_COMMAND(merge);
MOESIM_COMMAND(sweep);
MOESIM_COMMAND(replay);
MOESIM_COMMAND(fidelity);
MOESIM_COMMAND(plot);
MOESIM_COMMAND(policies);
MOESIM_COMMAND(policy);           /* policy new NAME */
MOESIM_COMMAND(profile);          /* dispatches to the ones below */
MOESIM_COMMAND(profile_show);
MOESIM_COMMAND(profile_models);
MOESIM_COMMAND(profile_measure);
MOESIM_COMMAND(profile_fit);
MOESIM_COMMAND(profile_derive);

/* Opens a trace for a command. old_format: a file with an old superblock is first converted by a child process under memory
 * and CPU limits into a temporary file, which is opened instead and unlinked. */
struct moesim_trace;
moesim_code moesim_cli_open_trace(const char *path, bool old_format, struct moesim_trace **out, moesim_error *err);

#endif
