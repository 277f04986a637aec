/* SPDX-License-Identifier: Apache-2.0
 *
 * What both programs do around their commands: standard streams, signals, --version and help, the one place that turns an
 * error into a message and an exit status.
 */
#ifndef MOESIM_CLI_PROGRAM_H
#define MOESIM_CLI_PROGRAM_H

#include "cli/cli.h"

typedef struct moesim_program {
    const char *name, *summary;
    const moesim_command *commands;      /* ended by a NULL name */
    void (*print_version)(void);
} moesim_program;

/* Standard output: whatever was printed counts as success only once the system has taken it. moesim_program_run calls it
 * after a command that succeeds; a command that prints a result and then returns another code calls it itself. */
moesim_code moesim_program_flush(moesim_error *err);

/* The whole of main(): returns the exit status. */
int moesim_program_run(const moesim_program *program, int argc, char **argv);

#endif
