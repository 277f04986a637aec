/* SPDX-License-Identifier: Apache-2.0
 *
 * Writer of the trace format, version 1: byte-stable (the same content gives the same bytes), 1.10 file format with
 * checksummed metadata, chunks of 256 rows, shuffle + zstd (or gzip) + Fletcher-32, written under a temporary name.
 */
#ifndef MOESIM_TRACES_WRITER_H
#define MOESIM_TRACES_WRITER_H

#include "traces/trace.h"

enum moesim_compression { MOESIM_ZSTD = 0, MOESIM_GZIP = 1 };
extern const char *const moesim_compressions[];      /* their names, ended by NULL */

typedef struct moesim_writer moesim_writer;

typedef struct moesim_writer_options {
    int compression;             /* enum moesim_compression */
    int level;                   /* 0: default (zstd 3, gzip 6) */
} moesim_writer_options;

/* `info` gives header attributes and which optional columns exist (has_…); counts, digest and path are ignored.
 * expert_bytes and layer_ids [M]. The file appears under `path` only when moesim_writer_finish succeeds. */
moesim_code moesim_writer_create(const char *path, const moesim_trace_info *info, const int32_t *layer_ids,
                                 const uint64_t *expert_bytes, const moesim_writer_options *options, moesim_writer **out,
                                 moesim_error *err);

/* Sets source_digest to a text of any length, as the digests of several sources are; info's must be "". */
moesim_code moesim_writer_source(moesim_writer *w, const char *source_digest, moesim_error *err);

/* One request; requests are numbered in the order of these calls. */
moesim_code moesim_writer_request(moesim_writer *w, const moesim_trace_request *request, moesim_error *err);

/* One pass with its rows: pass->row_begin/row_end are ignored, rows->begin/end give the number; columns as in moesim_rows
 * (gate, confidence and prob are narrowed to f16 where info says so, exactly for values that came from f16). */
moesim_code moesim_writer_pass(moesim_writer *w, const moesim_pass *pass, const moesim_rows *rows, uint64_t pass_ns,
                               moesim_error *err);

/* Further rows of the pass last begun, so that a pass of any size is written in pieces of bounded memory. */
moesim_code moesim_writer_rows(moesim_writer *w, const moesim_rows *rows, moesim_error *err);

/* Writes `complete` last, closes, fsyncs and renames. Frees *w whatever happens. */
moesim_code moesim_writer_finish(moesim_writer **w, moesim_error *err);
void moesim_writer_discard(moesim_writer **w);

#endif
