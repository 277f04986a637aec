/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads `route_trace v1` CSV line by line: "# route_trace v1", one "# model=… arch=… n_layer=… n_expert=… n_expert_used=…",
 * one "# layer=i expert_bytes=… dense_bytes=…" per layer, the names of the columns, then data. Every number is checked
 * against its range; messages carry the line's number. One thread per reader.
 */
#ifndef MOESIM_TRACES_ROUTE_TRACE_H
#define MOESIM_TRACES_ROUTE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define MOESIM_ROUTE_LAYERS 1024u   /* most layers of a model, dense ones included */

typedef struct moesim_route_header {
    char model[256];             /* as written, cut to fit */
    uint32_t num_layers, num_experts, top_k;
    uint64_t expert_bytes[MOESIM_ROUTE_LAYERS], dense_bytes[MOESIM_ROUTE_LAYERS];
} moesim_route_header;

typedef struct moesim_route_line {
    uint64_t turn;               /* below 2^32 */
    uint32_t phase;              /* 0 prefill, 1 decode */
    uint32_t step;               /* absolute position, below 2^31 */
    uint32_t layer, slot, expert;
    float weight;                /* finite, not negative */
    uint32_t residency;          /* 0 miss, 1 hit, 2 hit through prefetch */
    uint64_t expert_bytes;       /* 0, or the layer's expert_bytes */
} moesim_route_line;

typedef struct moesim_route_reader {
    FILE *file;
    const char *path;            /* owned by the caller */
    uint64_t line;               /* number of the line read last, from 1 */
    moesim_route_header header;
    char text[4096];
} moesim_route_reader;

/* Opens a regular file and reads the header. On an error nothing is open. */
moesim_code moesim_route_open(moesim_route_reader *reader, const char *path, moesim_error *err);

/* The next data line; *end at the end of the file (out is untouched then). */
moesim_code moesim_route_next(moesim_route_reader *reader, moesim_route_line *out, bool *end, moesim_error *err);
void moesim_route_close(moesim_route_reader *reader);

/* MOESIM_E_FORMAT "path: line N: …". */
moesim_code moesim_route_fail(const moesim_route_reader *reader, moesim_error *err, const char *fmt, ...) MOESIM_PRINTF(3, 4);

#endif
