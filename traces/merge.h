/* SPDX-License-Identifier: Apache-2.0
 *
 * Requests of several traces of one model in one trace: the core of `trace merge`. Parts follow one another; memory is bounded
 * whatever their number and length (about 8 KiB a part), and one part is open at a time. One thread.
 */
#ifndef MOESIM_TRACES_MERGE_H
#define MOESIM_TRACES_MERGE_H

#include "traces/copy.h"
#include "traces/validate.h"

typedef struct moesim_merge_options {
    moesim_writer_options writer;
    const char *model;           /* model_id of the merged trace, whatever the parts say; NULL: the parts must agree */
    bool old_format;             /* parts are opened with moesim_trace_open_old */
    moesim_warning_fn *note;     /* told of each column and attribute that is left out; NULL: nobody is */
    void *cookie;
} moesim_merge_options;

/* What parts must have in common, and what becomes of the rest, is in traces/FORMAT.md. Parts that differ are MOESIM_E_FORMAT
 * naming the first difference, both files and both values; a file given twice and an output that is a part MOESIM_E_USAGE.
 * Requests, forward calls and passes stand in the order of the parts. The same parts give the same bytes; one part gives the
 * bytes of moesim_trace_copy. result and err may be NULL. */
moesim_code moesim_trace_merge(const char *const *path, size_t n, const char *out, const moesim_merge_options *options,
                               moesim_copy_result *result, moesim_error *err);

#endif
