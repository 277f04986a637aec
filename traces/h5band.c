/* SPDX-License-Identifier: Apache-2.0
 *
 * Content of datasets, band by band: the stored bytes of a chunk come from HDF5, everything after that happens here.
 */
#include "traces/h5.h"

#include <stdlib.h>
#include <string.h>

size_t moesim_h5_band_bytes(const moesim_h5_dataset *dataset)
{
    return (size_t)dataset->band_rows * dataset->row_bytes;
}

static moesim_code cut_short(const moesim_h5_dataset *d, uint64_t row, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT,
                       "%s: %s was cut short: the chunk that begins at row %llu is missing or damaged; record or copy the "
                       "file again",
                       d->file->path, d->name, (unsigned long long)row);
}

/* Stored bytes of the chunk at `at` into the decoder's buffer. */
static moesim_code fetch(const moesim_h5_dataset *d, moesim_decoder *decoder, const hsize_t *at, void **stored,
                         size_t *bytes, uint32_t *mask, moesim_error *err)
{
    hsize_t size = 0;
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    if (H5Dget_chunk_storage_size(d->id, at, &size) < 0 || size == 0 || size > d->file->bytes) {
        code = cut_short(d, at[0], err);
    } else if (size > moesim_pipeline_bound(&d->pipeline)) {
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: %s: the chunk at row %llu takes %llu bytes, more than its content can",
                           d->file->path, d->name, (unsigned long long)at[0], (unsigned long long)size);
    } else if ((*stored = moesim_decoder_stored(decoder, (size_t)size)) == NULL) {
        code = moesim_fail_nomem(err, d->name, (size_t)size);
    } else if (H5Dread_chunk(d->id, H5P_DEFAULT, at, mask, *stored) < 0) {
        code = cut_short(d, at[0], err);
    }
    *bytes = (size_t)size;
    moesim_h5_leave();
    return code;
}

static moesim_code decode_chunk(const moesim_h5_dataset *d, moesim_decoder *decoder, const hsize_t *at, void *out,
                                moesim_error *err)
{
    void *stored = NULL;
    size_t bytes = 0;
    uint32_t mask = 0;
    const moesim_code code = fetch(d, decoder, at, &stored, &bytes, &mask, err);
    if (code != MOESIM_OK)
        return code;
    const char *bad = moesim_decoder_run(decoder, &d->pipeline, mask, stored, bytes, out);
    if (bad != NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s: the chunk that begins at row %llu %s", d->file->path, d->name,
                           (unsigned long long)at[0], bad);
    return MOESIM_OK;
}

/* Copies what lies inside the dataset of a tile at (·, at1, at2) into whole rows. */
static void scatter(const moesim_h5_dataset *d, const unsigned char *tile, uint64_t at1, uint64_t at2, unsigned char *out)
{
    const uint64_t n1 = d->dim[1] - at1 < d->chunk[1] ? d->dim[1] - at1 : d->chunk[1];
    const uint64_t n2 = d->dim[2] - at2 < d->chunk[2] ? d->dim[2] - at2 : d->chunk[2];
    for (uint64_t r = 0; r < d->chunk[0]; r++)
        for (uint64_t i = 0; i < n1; i++)
            memcpy(out + ((r * d->dim[1] + at1 + i) * d->dim[2] + at2) * d->element,
                   tile + (r * d->chunk[1] + i) * d->chunk[2] * d->element, (size_t)n2 * d->element);
}

static moesim_code read_tiles(const moesim_h5_dataset *d, moesim_decoder *decoder, uint64_t row, unsigned char *out,
                              moesim_error *err)
{
    void *tile = moesim_decoder_tile(decoder, d->pipeline.chunk_bytes);
    if (tile == NULL)
        return moesim_fail_nomem(err, d->name, d->pipeline.chunk_bytes);
    for (uint64_t i = 0; i < d->dim[1]; i += d->chunk[1]) {
        for (uint64_t j = 0; j < d->dim[2]; j += d->chunk[2]) {
            const hsize_t at[MOESIM_H5_MAX_RANK] = {row, i, j};
            const moesim_code code = decode_chunk(d, decoder, at, tile, err);
            if (code != MOESIM_OK)
                return code;
            scatter(d, tile, i, j, out);
        }
    }
    return MOESIM_OK;
}

/* Contiguous or compact: no filters, so HDF5 copies the bytes; the memory type is the file's, nothing is converted. */
static moesim_code read_flat(const moesim_h5_dataset *d, uint64_t row, uint64_t n, void *out, moesim_error *err)
{
    const hsize_t start[MOESIM_H5_MAX_RANK] = {row, 0, 0}, count[MOESIM_H5_MAX_RANK] = {n, d->dim[1], d->dim[2]};
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    const hid_t file_space = H5Dget_space(d->id);
    const hid_t memory_space = H5Screate_simple((int)d->rank, count, NULL);
    if (file_space < 0 || memory_space < 0 ||
        H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL) < 0 ||
        H5Dread(d->id, d->type, memory_space, file_space, H5P_DEFAULT, out) < 0)
        code = cut_short(d, row, err);
    if (memory_space >= 0)
        (void)H5Sclose(memory_space);
    if (file_space >= 0)
        (void)H5Sclose(file_space);
    moesim_h5_leave();
    return code;
}

moesim_code moesim_h5_read_band(const moesim_h5_dataset *dataset, moesim_decoder *decoder, uint64_t band, void *out,
                                moesim_error *err)
{
    const moesim_h5_dataset *d = dataset;
    const uint64_t row = band * d->band_rows;
    if (row >= d->dim[0])
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s: band %llu is outside", d->name, (unsigned long long)band);
    if (d->row_bytes == 0)
        return MOESIM_OK;
    if (d->chunk[0] == 0)
        return read_flat(d, row, d->dim[0] - row < d->band_rows ? d->dim[0] - row : d->band_rows, out, err);
    const hsize_t at[MOESIM_H5_MAX_RANK] = {row, 0, 0};
    const bool whole = d->rank == 1 || (d->chunk[1] == d->dim[1] && d->chunk[2] == d->dim[2]);
    return whole ? decode_chunk(d, decoder, at, out, err) : read_tiles(d, decoder, row, out, err);
}

moesim_code moesim_h5_column_read(moesim_h5_column *column, moesim_decoder *decoder, uint64_t begin, uint64_t n, void *out,
                                  moesim_error *err)
{
    const moesim_h5_dataset *d = &column->dataset;
    unsigned char *to = out;
    if (column->raw == NULL && n > 0 && (column->raw = malloc(moesim_h5_band_bytes(d) + 1)) == NULL)
        return moesim_fail_nomem(err, d->name, moesim_h5_band_bytes(d));
    while (n > 0) {
        const uint64_t band = begin / d->band_rows, skip = begin % d->band_rows;
        const uint64_t left = d->band_rows - skip, take = n < left ? n : left;
        if (band != column->band) {
            column->band = UINT64_MAX;
            const moesim_code code = moesim_h5_read_band(d, decoder, band, column->raw, err);
            if (code != MOESIM_OK)
                return code;
            column->band = band;
        }
        memcpy(to, column->raw + (size_t)skip * d->row_bytes, (size_t)take * d->row_bytes);
        to += (size_t)take * d->row_bytes;
        begin += take;
        n -= take;
    }
    return MOESIM_OK;
}

void moesim_h5_column_close(moesim_h5_column *column)
{
    moesim_h5_dataset_close(&column->dataset);
    free(column->raw);
    column->raw = NULL;
    column->band = UINT64_MAX;
}
