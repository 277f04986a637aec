/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about file names on the command line.
 */
#ifndef MOESIM_CLI_PATHS_H
#define MOESIM_CLI_PATHS_H

#include <stdbool.h>

/* Do both name one file, by words or through links? NULL names none. */
bool moesim_same_file(const char *a, const char *b);

#endif
