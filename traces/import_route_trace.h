/* SPDX-License-Identifier: Apache-2.0
 *
 * Import of the public `route_trace v1` CSV (one line per token, layer and router slot).
 *
 * A turn becomes a request; its prefill one pass with a row per token (state 2), every decode step one pass of kind denoise
 * with one row (block length 1, block = number of the decode token, step 0, state 1). Confidence is not known. Cells that the
 * engine did not compute in the last layer of the prefill become 65535. Weights are kept as 32-bit floats, the residency that
 * the engine saw as /observed/residency, the dense bytes of all layers as /model/resident_bytes. Layers whose expert_bytes
 * are 0 are dense and do not appear. Which line carried the bytes of a read is checked and not kept.
 * Memory: the cells of one turn, at most 256 MiB.
 */
#ifndef MOESIM_TRACES_IMPORT_ROUTE_TRACE_H
#define MOESIM_TRACES_IMPORT_ROUTE_TRACE_H

#include "traces/writer.h"

typedef struct moesim_import_result {
    uint64_t lines;              /* data lines */
    uint32_t requests;
    uint64_t passes, rows;
    uint64_t dropped;            /* cells without a route */
} moesim_import_result;

/* model NULL: the file name in the header's model field; workload NULL: "unknown". Every line is checked; the first offence
 * is MOESIM_E_FORMAT with the line's number. Nothing appears under `out` unless all is well. result may be NULL. */
moesim_code moesim_import_route_trace(const char *in, const char *out, const char *model, const char *workload,
                                      const moesim_writer_options *options, moesim_import_result *result,
                                      moesim_error *err);

#endif
