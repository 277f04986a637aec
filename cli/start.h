/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts `moesim-device`, the program that knows CUDA and not GSL: the one beside this program's own file, else on PATH.
 */
#ifndef MOESIM_CLI_START_H
#define MOESIM_CLI_START_H

#include "base/error.h"

/* Replaces this process by `moesim-device VERB argv[1] …`, whose messages and exit status are then the user's. Returns only
 * if that fails (USAGE where there is no such program: where it was looked for and how to get it). */
moesim_code moesim_device_become(const char *verb, int argc, char **argv, moesim_error *err);

/* Runs `moesim-device VERB argv[1] …` and waits; its exit status, or 128 + the number of the signal that ended it. Ctrl-C
 * reaches both, which belong to one group; a signal to this process alone is passed on after two seconds. */
moesim_code moesim_device_call(const char *verb, int argc, char **argv, int *status, moesim_error *err);

#endif
