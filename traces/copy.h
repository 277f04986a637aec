/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies a trace, or the part of it that a selection names, into a new file: the core of `trace select`, `trace convert`,
 * `trace merge` and `trace salvage`.
 * Attributes are kept, `source_digest` becomes the digest of the input. Memory is bounded whatever the length of the trace
 * or of a pass. One thread.
 */
#ifndef MOESIM_TRACES_COPY_H
#define MOESIM_TRACES_COPY_H

#include "traces/writer.h"

typedef struct moesim_copy_selection {
    uint64_t request_begin, request_end;   /* [begin, end) of request numbers; end UINT64_MAX: to the last */
    uint64_t layer_begin, layer_end;       /* [begin, end) of MoE layer numbers; end UINT64_MAX: to the last */
    const char *workload;                  /* keep requests of this workload alone; NULL: any */
} moesim_copy_selection;

typedef struct moesim_copy_result {
    uint32_t requests, layers;
    uint64_t passes, rows;
} moesim_copy_result;

/* selection NULL: everything. Kept requests are numbered anew from 0, kept layers too (their /model/moe_layer_id stays).
 * source_digest: what to store; NULL computes the digest of the input. A selection without a request, a layer or a pass or
 * beyond what the trace has, and an output that is the input, are MOESIM_E_USAGE. options, result and err may be NULL. */
moesim_code moesim_trace_copy(moesim_trace *in, const char *path, const moesim_copy_selection *selection,
                              const char *source_digest, const moesim_writer_options *options, moesim_copy_result *result,
                              moesim_error *err);

/* Appends all passes of `in` to an open writer of the same shape, to which requests first_request … were declared; columns that
 * the writer lacks are left out. forward_shift is added to the number of every forward call, modulo 2^64. result counts passes
 * and rows on. */
moesim_code moesim_trace_append(moesim_trace *in, moesim_writer *writer, uint32_t first_request, uint64_t forward_shift,
                                moesim_copy_result *result, moesim_error *err);

/* MOESIM_E_USAGE if both names lead to the same file. */
moesim_code moesim_refuse_same_file(const char *in, const char *out, moesim_error *err);

#endif
