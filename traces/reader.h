/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of an open trace, shared by reader*.c, cursor.c and validate.c only.
 */
#ifndef MOESIM_TRACES_READER_H
#define MOESIM_TRACES_READER_H

#include "traces/h5.h"
#include "traces/trace.h"

#define MOESIM_ROW_COLUMNS 8   /* column i is the bit 1 << i of enum moesim_column */

enum moesim_pass_column {
    MOESIM_PASS_OFFSET,
    MOESIM_PASS_KIND,
    MOESIM_PASS_REQUEST,
    MOESIM_PASS_BLOCK,
    MOESIM_PASS_STEP,
    MOESIM_PASS_FORWARD,
    MOESIM_PASS_NS,
    MOESIM_PASS_COLUMNS
};

/* Blocks of pass metadata, set-associative: 256 blocks of 1024 passes, so that a batch of 256 requests fits. */
typedef struct moesim_pass_cache moesim_pass_cache;

struct moesim_trace {
    moesim_trace_info info;
    moesim_h5_file file;
    moesim_decoder *decoder;                          /* shared by the passes and all cursors */
    moesim_h5_dataset row[MOESIM_ROW_COLUMNS];
    moesim_h5_column pass[MOESIM_PASS_COLUMNS];
    moesim_pass_cache *cache;
    int32_t *layer_ids;                               /* [M] */
    uint64_t *expert_bytes;                           /* [M] */
    moesim_trace_request *request;                    /* [Q] */
    bool salvage;                                     /* columns may be of unlike length; the trace ends where one does */
    uint64_t found_passes, found_rows, found_requests;    /* salvage: of the longest column */
    moesim_error cut;                                 /* salvage: why the trace ends before its shortest column does */
};

/* Steps of opening; each assumes the ones before. */
moesim_code moesim_reader_header(moesim_trace *trace, moesim_error *err);
moesim_code moesim_reader_shapes(moesim_trace *trace, moesim_error *err);
moesim_code moesim_reader_requests(moesim_trace *trace, moesim_error *err);
moesim_code moesim_reader_passes(moesim_trace *trace, moesim_error *err);
void moesim_reader_drop_passes(moesim_trace *trace);

/* Salvage: the first `passes` passes, which are readable, and their rows are the trace from now on. */
moesim_code moesim_reader_cut(moesim_trace *trace, uint64_t passes, moesim_error *err);

/* Salvage: cursors opened from now on see `rows` rows; at most info.num_rows. */
void moesim_reader_end_rows(moesim_trace *trace, uint64_t rows);

#endif
