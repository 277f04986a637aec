/* SPDX-License-Identifier: Apache-2.0
 *
 * Which file a name leads to. Every command that reads one file and writes another asks here first, so that nothing is
 * written over what is still read, and no two outputs meet. Thread-safe.
 */
#ifndef MOESIM_BASE_PATHS_H
#define MOESIM_BASE_PATHS_H

#include <stdbool.h>

#include "base/error.h"

/* Do both names lead to one file, whatever way they take (".", links, absolute)? A file that does not exist yet is its folder
 * and its last name. "-" is standard output, NULL leads nowhere. */
bool moesim_same_file(const char *a, const char *b);

/* A name on the command line: `what` as messages call it ("option --csv"); path NULL: not given. */
typedef struct moesim_named_file { const char *what, *path; } moesim_named_file;

/* MOESIM_E_USAGE if an output is an input, or another output. */
moesim_code moesim_check_outputs(const moesim_named_file *input, size_t inputs, const moesim_named_file *output,
                                 size_t outputs, moesim_error *err);

/* MOESIM_E_USAGE if a file is one of STEM.1, STEM.2, …, whatever way its name takes: those are written and removed. */
moesim_code moesim_check_numbered(const moesim_named_file *file, size_t n, const char *stem, moesim_error *err);

/* The number of the open file of this process that the name stands for ("/dev/stdout", "/proc/self/fd/3"), or -1. */
int moesim_path_stream(const char *path);

#endif
