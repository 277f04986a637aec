/* SPDX-License-Identifier: Apache-2.0
 *
 * Closes a trace that a killed recorder left: the core of `trace salvage`. What holds by every rule of the format, from the
 * first pass on, is written as a whole trace; the input is only read. Work happens on a copy beside the output, in a forked
 * child under limits, since damaged files can crash the HDF5 library. Call from a single-threaded process.
 */
#ifndef MOESIM_TRACES_SALVAGE_H
#define MOESIM_TRACES_SALVAGE_H

#include "traces/copy.h"

typedef struct moesim_salvage_result {
    bool complete;               /* the input was marked so, and was damaged later */
    bool whole;                  /* complete, and nothing would be lost: no file was written */
    uint64_t found_passes, found_rows, found_requests;   /* entries of the longest column */
    moesim_copy_result kept;
    uint32_t dropped_requests;   /* last ones without a pass or a committed token */
    uint32_t corrected_requests; /* those whose output_tokens counted rows that are lost */
    char reason[1024];           /* why the trace ends where it ends; "": there the shortest column does */
} moesim_salvage_result;

/* source_digest of the output is the digest of `in`. MOESIM_E_FORMAT where not a single pass can be kept, MOESIM_E_USAGE where
 * out is the input. options may be NULL, err not. */
moesim_code moesim_trace_salvage(const char *in, const char *out, const moesim_writer_options *options,
                                 moesim_salvage_result *result, moesim_error *err);

#endif
