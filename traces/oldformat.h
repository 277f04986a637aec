/* SPDX-License-Identifier: Apache-2.0
 *
 * Traces with an old HDF5 superblock. Damaged ones can crash the HDF5 library, so they are parsed in a forked child under
 * memory and CPU limits, which rewrites them into a temporary file in the new format; a crash of the child becomes an
 * error of the parent. Call from a single-threaded process.
 */
#ifndef MOESIM_TRACES_OLDFORMAT_H
#define MOESIM_TRACES_OLDFORMAT_H

#include "traces/trace.h"

typedef struct moesim_child_limits {
    uint64_t memory_bytes;       /* address space (not limited in builds with AddressSanitizer, which reserves terabytes) */
    uint64_t cpu_seconds;
} moesim_child_limits;

#define MOESIM_OLD_FORMAT_LIMITS { .memory_bytes = UINT64_C(2) << 30, .cpu_seconds = 600 }

typedef moesim_code moesim_child_work(void *cookie, moesim_error *err);

/* Runs work(cookie) in a forked child whose standard output and error lead nowhere. Its error becomes this one's; an end by
 * a signal or a limit is MOESIM_E_FORMAT that names `path`, the cause and the limits. An interruption ends the child. */
moesim_code moesim_child_run(moesim_child_work *work, void *cookie, const moesim_child_limits *limits, const char *path,
                             moesim_error *err);

/* Converts path in a child into a temporary file (in TMPDIR, else /tmp), opens that and removes its name; the trace names
 * path in its messages, and its digest is that of path. */
moesim_code moesim_trace_open_old(const char *path, moesim_trace **out, moesim_error *err);

#endif
