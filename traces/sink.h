/* SPDX-License-Identifier: Apache-2.0
 *
 * The writing side of HDF5, shared by the trace writer and the decision log: a file under a temporary name, attributes,
 * and columns that grow. Byte-stable: no time stamps, 1.10 file format, whole chunks in the order in which they fill.
 * Memory: one chunk per column. One file belongs to one thread at a time; different files may be written by different threads
 * (every function brackets its HDF5 calls with moesim_h5_enter and leave).
 */
#ifndef MOESIM_TRACES_SINK_H
#define MOESIM_TRACES_SINK_H

#include "base/output.h"
#include "traces/h5.h"
#include "traces/writer.h"

#define MOESIM_SINK_ROWS 8192u               /* chunk of a one-dimensional column, in entries */
#define MOESIM_SINK_TEXT 64u                 /* bytes of a text entry */
#define MOESIM_SINK_CHUNK_BYTES (8u << 20)   /* upper bound of any chunk, far below the reader's 64 MiB */

typedef struct moesim_sink_file {
    char path[4096];
    moesim_output *output;
    hid_t file;                  /* negative: not open */
    int compression, level;      /* as in moesim_writer_options, checked */
} moesim_sink_file;

/* Creates the file (1.10 format). On an error nothing is open and nothing is left in the folder. */
moesim_code moesim_sink_file_create(const char *path, const moesim_writer_options *options, moesim_sink_file *out,
                                    moesim_error *err);

/* Writes the attribute `complete` = 1 as the last thing, closes, fsyncs and renames; on an error everything is removed. */
moesim_code moesim_sink_file_finish(moesim_sink_file *file, moesim_error *err);
void moesim_sink_file_discard(moesim_sink_file *file);   /* also after finish: does nothing */

moesim_code moesim_sink_group(moesim_sink_file *file, const char *name, moesim_error *err);

/* Attributes of the root. Text: variable-length UTF-8, as h5py writes it. */
moesim_code moesim_sink_text(moesim_sink_file *file, const char *name, const char *text, moesim_error *err);
moesim_code moesim_sink_u32(moesim_sink_file *file, const char *name, uint32_t value, moesim_error *err);
moesim_code moesim_sink_u64(moesim_sink_file *file, const char *name, uint64_t value, moesim_error *err);
moesim_code moesim_sink_real(moesim_sink_file *file, const char *name, double value, moesim_error *err);

/* A small dataset of n entries, stored in one piece without filters; not for MOESIM_H5_STRING. */
moesim_code moesim_sink_array(moesim_sink_file *file, const char *name, enum moesim_h5_type type, uint64_t n,
                              const void *data, moesim_error *err);

/* A dataset whose first dimension grows. A zeroed struct is a column that does not exist: append and close do nothing. */
typedef struct moesim_sink {
    moesim_sink_file *file;
    const char *name;
    hid_t type, dataset;
    uint32_t rank;               /* 1 or 3 */
    uint64_t width[2];           /* inner dimensions; 1, 1 where rank is 1 */
    size_t item_bytes, row_items, chunk_rows, fill;
    uint64_t rows;               /* on disk */
    unsigned char *buffer;
} moesim_sink;

/* width NULL: one dimension. chunk_rows is an upper bound; name and file must outlive the column. MOESIM_H5_STRING is text of
 * MOESIM_SINK_TEXT bytes, padded with zeros. */
moesim_code moesim_sink_open(moesim_sink_file *file, const char *name, enum moesim_h5_type type, const uint64_t width[2],
                             uint64_t chunk_rows, moesim_sink *out, moesim_error *err);
moesim_code moesim_sink_append(moesim_sink *sink, uint64_t rows, const void *data, moesim_error *err);

/* Narrowed to half precision; a finite value beyond 65504 is an error. */
moesim_code moesim_sink_append_half(moesim_sink *sink, uint64_t rows, const float *data, moesim_error *err);
moesim_code moesim_sink_flush(moesim_sink *sink, moesim_error *err);
void moesim_sink_close(moesim_sink *sink);   /* without flush */

#endif
