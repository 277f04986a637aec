/* SPDX-License-Identifier: Apache-2.0
 *
 * Safe output files: written under a temporary name in the same folder, then fsync, close and rename; a failure or an
 * interruption leaves nothing behind and an older file untouched.
 */
#ifndef MOESIM_BASE_OUTPUT_H
#define MOESIM_BASE_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/error.h"

/* Temporary files are ".NAME.PID-N.tmp", of longer names this many bytes alone. */
#define MOESIM_TEMPORARY_NAME 200

/* Opaque; owns the temporary file until commit or discard. */
typedef struct moesim_output moesim_output;

/* Opens a temporary file beside `path`. What is no regular file is written to as it is, without a temporary name: "-"
 * (standard output), "/dev/stdout" and other files that are open by number, pipes, character devices. Refuses folders, sockets,
 * disks, and the file that standard output or standard error goes to by its name (MOESIM_E_USAGE). */
moesim_code moesim_output_open(const char *path, moesim_output **out, moesim_error *err);

/* The same for files that libraries write by name (HDF5) or that are read back: streams are MOESIM_E_USAGE. */
moesim_code moesim_output_open_file(const char *path, moesim_output **out, moesim_error *err);

/* Can it be written? Makes a temporary file and removes it; streams, which cannot be tried, pass. For names that are written
 * to only after long work. */
moesim_code moesim_output_try(const char *path, moesim_error *err);

/* Writes out what `stream` holds back. 0, or the errno of what failed now or before (EIO where nobody knows it any more). */
int moesim_output_flush(FILE *stream);

/* The stream to write to, and the temporary path (for libraries that open files by name, HDF5). */
FILE *moesim_output_stream(moesim_output *out);
const char *moesim_output_temporary(const moesim_output *out);

/* Flushes, checks every earlier write, fsyncs, renames, fsyncs the folder; frees *out and sets it NULL whatever happens. */
moesim_code moesim_output_commit(moesim_output **out, moesim_error *err);

/* Removes the temporary file; NULL allowed. */
void moesim_output_discard(moesim_output **out);

/* Removes the temporary files of `path`, with `parts` of path.1, path.2, … too, that killed processes left behind: regular
 * files of this user named after a process that is there no more. All others stay, and so does what cannot be removed. For
 * files that one process at a time writes: processes of another machine cannot be seen. */
void moesim_output_clean(const char *path, bool parts);

/* Removes the temporary files of all outputs still open (called on the way out after an interruption). Async-signal-safe. */
void moesim_output_discard_all(void);

#endif
