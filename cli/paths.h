/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions about file names on the command line.
 */
#ifndef MOESIM_CLI_PATHS_H
#define MOESIM_CLI_PATHS_H

#include "base/paths.h"

#endif
