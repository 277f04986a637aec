/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening and closing of traces.
 */
#include "traces/reader.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* From here on messages and the digest speak of the file that a converted copy came from. */
static void show_as(moesim_trace *t, const moesim_trace_options *options)
{
    if (options == NULL || options->shown_path == NULL)
        return;
    (void)snprintf(t->info.path, sizeof t->info.path, "%s", options->shown_path);
    t->info.superblock_old = true;
}

static moesim_code open_all(moesim_trace *t, const moesim_trace_options *options, moesim_error *err)
{
    moesim_code code = moesim_decoder_create(&t->decoder, err);
    if (code == MOESIM_OK)
        code = moesim_h5_open(t->info.path, options != NULL && options->old_format, &t->file, err);
    if (code == MOESIM_OK) {
        t->info.file_bytes = t->file.bytes;
        t->info.superblock_old = t->file.old;
        t->salvage = options != NULL && options->salvage;
        code = moesim_reader_header(t, err);
    }
    if (code == MOESIM_OK)
        code = moesim_reader_shapes(t, err);
    if (code == MOESIM_OK)
        code = moesim_reader_requests(t, err);
    if (code == MOESIM_OK)
        code = moesim_reader_passes(t, err);
    if (code == MOESIM_OK)
        show_as(t, options);   /* last: attributes are read from the file by its name */
    return code;
}

moesim_code moesim_trace_open(const char *path, const moesim_trace_options *options, moesim_trace **out, moesim_error *err)
{
    *out = NULL;
    moesim_trace *t = calloc(1, sizeof *t);
    if (t == NULL)
        return moesim_fail_nomem(err, "trace", sizeof *t);
    t->file = (moesim_h5_file){.id = -1};
    for (int i = 0; i < MOESIM_ROW_COLUMNS; i++)
        t->row[i] = (moesim_h5_dataset)MOESIM_H5_DATASET_INIT;
    for (int i = 0; i < MOESIM_PASS_COLUMNS; i++)
        t->pass[i] = (moesim_h5_column)MOESIM_H5_COLUMN_INIT;
    t->info.commit_threshold = NAN;
    const size_t length = strlen(path);
    moesim_code code = MOESIM_OK;
    if (length >= sizeof t->info.path)
        code = moesim_fail(err, MOESIM_E_IO, "the path of the trace has %zu bytes, at most %zu are allowed", length,
                           sizeof t->info.path - 1);
    if (code == MOESIM_OK) {
        memcpy(t->info.path, path, length + 1);
        code = open_all(t, options, err);
    }
    if (code != MOESIM_OK)
        moesim_trace_close(&t);
    *out = t;
    return code;
}

void moesim_trace_close(moesim_trace **trace)
{
    moesim_trace *t = *trace;
    *trace = NULL;
    if (t == NULL)
        return;
    for (int i = 0; i < MOESIM_ROW_COLUMNS; i++)
        moesim_h5_dataset_close(&t->row[i]);
    for (int i = 0; i < MOESIM_PASS_COLUMNS; i++)
        moesim_h5_column_close(&t->pass[i]);
    moesim_h5_close(&t->file);
    moesim_decoder_destroy(&t->decoder);
    moesim_reader_drop_passes(t);
    free(t->layer_ids);
    free(t->expert_bytes);
    free(t->request);
    free(t);
}

const moesim_trace_info *moesim_trace_get_info(const moesim_trace *trace)
{
    return &trace->info;
}

moesim_code moesim_trace_digest(moesim_trace *trace, moesim_error *err)
{
    return moesim_digest_file(trace->info.path, trace->info.digest, err);
}

const int32_t *moesim_trace_layer_ids(const moesim_trace *trace)
{
    return trace->layer_ids;
}

const uint64_t *moesim_trace_expert_bytes(const moesim_trace *trace)
{
    return trace->expert_bytes;
}

const moesim_trace_request *moesim_trace_get_request(const moesim_trace *trace, uint32_t q)
{
    return &trace->request[q];
}
