/* SPDX-License-Identifier: Apache-2.0
 *
 * The writing side of HDF5: file, groups, attributes and growing columns.
 */
#include "traces/sink.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "traces/filter.h"
#include "traces/h5.h"
#include "traces/half.h"

/* HDF5 says no more than "failed"; errno, cleared before the call, tells a full disk from the rest. */
static moesim_code fail(const moesim_sink_file *file, const char *place, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_IO, "cannot write %s: %s: %s; nothing was kept", file->path, place,
                       errno != 0 ? strerror(errno) : "the HDF5 library refused");
}

static hid_t open_file(const char *path)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS), create = H5Pcreate(H5P_FILE_CREATE);
    hid_t file = -1;
    /* Attributes stay in the root's header: a later switch to indexed storage would only add metadata. The file is private
     * to this process, so locks, which some network file systems refuse, are not needed. */
    if (access >= 0 && create >= 0 && H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110) >= 0 &&
        H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0 && H5Pset_file_locking(access, 0, 1) >= 0 &&
        H5Pset_obj_track_times(create, 0) >= 0 && H5Pset_attr_phase_change(create, 128, 64) >= 0)
        file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    H5Pclose(create);
    H5Pclose(access);
    return file;
}

static moesim_code check_options(const moesim_writer_options *options, moesim_sink_file *out, moesim_error *err)
{
    static const int max_level[] = {[MOESIM_ZSTD] = 19, [MOESIM_GZIP] = 9};
    static const int default_level[] = {[MOESIM_ZSTD] = 3, [MOESIM_GZIP] = 6};
    const moesim_writer_options given = options != NULL ? *options : (moesim_writer_options){MOESIM_ZSTD, 0};
    if (given.compression != MOESIM_ZSTD && given.compression != MOESIM_GZIP)
        return moesim_fail(err, MOESIM_E_USAGE, "%s: unknown compression %d; use zstd or gzip", out->path,
                           given.compression);
    if (given.level < 0 || given.level > max_level[given.compression])
        return moesim_fail(err, MOESIM_E_USAGE, "%s: compression level %d is outside 1..%d", out->path, given.level,
                           max_level[given.compression]);
    out->compression = given.compression;
    out->level = given.level != 0 ? given.level : default_level[given.compression];
    return MOESIM_OK;
}

moesim_code moesim_sink_file_create(const char *path, const moesim_writer_options *options, moesim_sink_file *out,
                                    moesim_error *err)
{
    *out = (moesim_sink_file){.file = -1};
    if (strcmp(path, "-") == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "an HDF5 file cannot be written to standard output; name a file");
    if (strlen(path) >= sizeof out->path)
        return moesim_fail(err, MOESIM_E_USAGE, "the name of the output file is longer than %zu bytes",
                           sizeof out->path - 1);
    memcpy(out->path, path, strlen(path) + 1);
    moesim_code code = check_options(options, out, err);
    if (code == MOESIM_OK)
        code = moesim_h5_init(err);
    if (code == MOESIM_OK)
        code = moesim_output_open(path, &out->output, err);
    if (code != MOESIM_OK)
        return code;
    errno = 0;
    out->file = open_file(moesim_output_temporary(out->output));
    if (out->file < 0) {
        code = fail(out, "creating the file", err);
        moesim_output_discard(&out->output);
    }
    return code;
}

void moesim_sink_file_discard(moesim_sink_file *file)
{
    if (file->file >= 0)
        H5Fclose(file->file);
    file->file = -1;
    moesim_output_discard(&file->output);
}

static moesim_code put_attribute(moesim_sink_file *file, const char *name, hid_t type, const void *value,
                                 moesim_error *err)
{
    errno = 0;
    const hid_t space = H5Screate(H5S_SCALAR);
    const hid_t attribute = H5Acreate2(file->file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const herr_t status = attribute >= 0 ? H5Awrite(attribute, type, value) : -1;
    moesim_code code = status >= 0 ? MOESIM_OK : fail(file, name, err);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return code;
}

moesim_code moesim_sink_text(moesim_sink_file *file, const char *name, const char *text, moesim_error *err)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    const moesim_code code = put_attribute(file, name, type, &text, err);
    H5Tclose(type);
    return code;
}

moesim_code moesim_sink_u32(moesim_sink_file *file, const char *name, uint32_t value, moesim_error *err)
{
    return put_attribute(file, name, H5T_STD_U32LE, &value, err);
}

moesim_code moesim_sink_u64(moesim_sink_file *file, const char *name, uint64_t value, moesim_error *err)
{
    return put_attribute(file, name, H5T_STD_U64LE, &value, err);
}

moesim_code moesim_sink_real(moesim_sink_file *file, const char *name, double value, moesim_error *err)
{
    return put_attribute(file, name, H5T_IEEE_F64LE, &value, err);
}

moesim_code moesim_sink_file_finish(moesim_sink_file *file, moesim_error *err)
{
    errno = 0;
    moesim_code code = H5Fflush(file->file, H5F_SCOPE_LOCAL) >= 0 ? MOESIM_OK : fail(file, "flushing the data", err);
    const uint8_t one = 1;
    if (code == MOESIM_OK)
        code = put_attribute(file, "complete", H5T_STD_U8LE, &one, err);
    errno = 0;
    if (H5Fclose(file->file) < 0 && code == MOESIM_OK)
        code = fail(file, "closing the file", err);
    file->file = -1;
    if (code == MOESIM_OK)
        return moesim_output_commit(&file->output, err);
    moesim_output_discard(&file->output);
    return code;
}

moesim_code moesim_sink_group(moesim_sink_file *file, const char *name, moesim_error *err)
{
    errno = 0;
    const hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(create, 0);
    const hid_t group = H5Gcreate2(file->file, name, H5P_DEFAULT, create, H5P_DEFAULT);
    H5Pclose(create);
    if (group < 0)
        return fail(file, name, err);
    H5Gclose(group);
    return MOESIM_OK;
}

moesim_code moesim_sink_array(moesim_sink_file *file, const char *name, hid_t type, uint64_t n, const void *data,
                              moesim_error *err)
{
    errno = 0;
    const hsize_t dims[1] = {n};
    const hid_t space = H5Screate_simple(1, dims, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(create, 0);
    const hid_t dataset = H5Dcreate2(file->file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    const herr_t status = dataset >= 0 ? H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) : -1;
    const moesim_code code = status >= 0 ? MOESIM_OK : fail(file, name, err);
    if (dataset >= 0)
        H5Dclose(dataset);
    H5Pclose(create);
    H5Sclose(space);
    return code;
}

hid_t moesim_sink_half_type(void)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    if (type >= 0) {
        H5Tset_fields(type, 15, 10, 5, 0, 10);
        H5Tset_size(type, 2);
        H5Tset_ebias(type, 15);
    }
    return type;
}

/* shuffle, then the compressor, then Fletcher-32; a fill of zeros keeps the unused end of the last chunk the same always. */
static hid_t column_plist(const moesim_sink *s, hid_t type, size_t item_bytes)
{
    const hsize_t chunk[3] = {s->chunk_rows, s->width[0], s->width[1]};
    const unsigned level = (unsigned)s->file->level;
    static const unsigned char zero[8] = {0};
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    bool ok = create >= 0 && H5Pset_obj_track_times(create, 0) >= 0 && H5Pset_chunk(create, (int)s->rank, chunk) >= 0 &&
              H5Pset_fill_value(create, type, zero) >= 0 && H5Pset_fill_time(create, H5D_FILL_TIME_ALLOC) >= 0 &&
              (item_bytes == 1 || H5Pset_shuffle(create) >= 0);
    if (s->file->compression == MOESIM_GZIP)
        ok = ok && H5Pset_deflate(create, level) >= 0;
    else
        ok = ok && H5Pset_filter(create, MOESIM_FILTER_ZSTD, H5Z_FLAG_MANDATORY, 1, &level) >= 0;
    if (ok && H5Pset_fletcher32(create) >= 0)
        return create;
    H5Pclose(create);
    return -1;
}

static hid_t create_column(const moesim_sink *s, const char *name, hid_t type)
{
    const hsize_t dims[3] = {0, s->width[0], s->width[1]}, max[3] = {H5S_UNLIMITED, s->width[0], s->width[1]};
    const hid_t create = column_plist(s, type, s->item_bytes), access = H5Pcreate(H5P_DATASET_ACCESS);
    const hid_t space = H5Screate_simple((int)s->rank, dims, max);
    hid_t dataset = -1;
    /* Whole chunks are written at once, so a chunk cache would only hold them back. */
    if (create >= 0 && access >= 0 && space >= 0 && H5Pset_chunk_cache(access, 1, 0, 1.0) >= 0)
        dataset = H5Dcreate2(s->file->file, name, type, space, H5P_DEFAULT, create, access);
    H5Sclose(space);
    H5Pclose(access);
    if (create >= 0)
        H5Pclose(create);
    return dataset;
}

moesim_code moesim_sink_open(moesim_sink_file *file, const char *name, hid_t type, const uint64_t width[2],
                             uint64_t chunk_rows, moesim_sink *out, moesim_error *err)
{
    const uint64_t w0 = width != NULL ? width[0] : 1, w1 = width != NULL ? width[1] : 1;
    *out = (moesim_sink){.file = file, .name = name, .rank = width != NULL ? 3 : 1, .width = {w0, w1},
                         .type = -1, .dataset = -1, .item_bytes = H5Tget_size(type), .row_items = (size_t)(w0 * w1)};
    const uint64_t most = MOESIM_SINK_CHUNK_BYTES / (out->item_bytes * out->row_items);
    out->chunk_rows = (size_t)(chunk_rows < most ? chunk_rows : most > 0 ? most : 1);
    void *buffer;
    const moesim_code code = moesim_alloc(out->chunk_rows * out->row_items, out->item_bytes, name, &buffer, err);
    if (code != MOESIM_OK)
        return code;
    out->buffer = buffer;
    errno = 0;
    out->type = H5Tcopy(type);
    out->dataset = out->type >= 0 ? create_column(out, name, type) : -1;
    return out->dataset >= 0 ? MOESIM_OK : fail(file, name, err);
}

moesim_code moesim_sink_flush(moesim_sink *s, moesim_error *err)
{
    if (s->fill == 0)
        return MOESIM_OK;
    errno = 0;
    const hsize_t dims[3] = {s->rows + s->fill, s->width[0], s->width[1]}, start[3] = {s->rows, 0, 0};
    const hsize_t count[3] = {s->fill, s->width[0], s->width[1]};
    herr_t status = H5Dset_extent(s->dataset, dims);
    const hid_t memory = H5Screate_simple((int)s->rank, count, NULL);
    const hid_t space = status >= 0 ? H5Dget_space(s->dataset) : -1;
    status = space >= 0 ? H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) : -1;
    if (status >= 0)
        status = H5Dwrite(s->dataset, s->type, memory, space, H5P_DEFAULT, s->buffer);
    if (space >= 0)
        H5Sclose(space);
    H5Sclose(memory);
    if (status < 0)
        return fail(s->file, s->name, err);
    s->rows += s->fill;
    s->fill = 0;
    return MOESIM_OK;
}

static moesim_code append(moesim_sink *s, uint64_t rows, const void *data, const float *floats, moesim_error *err)
{
    uint64_t done = 0;
    while (done < rows) {
        const size_t room = s->chunk_rows - s->fill, n = rows - done < room ? (size_t)(rows - done) : room;
        unsigned char *to = s->buffer + s->fill * s->row_items * s->item_bytes;
        const size_t items = n * s->row_items;
        if (floats == NULL) {
            memcpy(to, (const unsigned char *)data + done * s->row_items * s->item_bytes, items * s->item_bytes);
        } else {
            const float *from = floats + done * s->row_items;
            uint16_t *half = (uint16_t *)(void *)to;
            uint32_t lost = 0;
            for (size_t i = 0; i < items; i++) {
                half[i] = moesim_half_from_float(from[i]);
                lost |= (half[i] & 0x7fffu) == 0x7c00u && isfinite(from[i]);
            }
            if (lost != 0)
                return moesim_fail(err, MOESIM_E_FORMAT, "cannot write %s: %s: a value beyond 65504 does not fit half "
                                   "precision; store the column as 32-bit floats", s->file->path, s->name);
        }
        s->fill += n;
        done += n;
        const moesim_code code = s->fill == s->chunk_rows ? moesim_sink_flush(s, err) : MOESIM_OK;
        if (code != MOESIM_OK)
            return code;
    }
    return MOESIM_OK;
}

moesim_code moesim_sink_append(moesim_sink *s, uint64_t rows, const void *data, moesim_error *err)
{
    return s->buffer != NULL ? append(s, rows, data, NULL, err) : MOESIM_OK;
}

moesim_code moesim_sink_append_half(moesim_sink *s, uint64_t rows, const float *data, moesim_error *err)
{
    return s->buffer != NULL ? append(s, rows, NULL, data, err) : MOESIM_OK;
}

void moesim_sink_close(moesim_sink *s)
{
    if (s->buffer == NULL)
        return;
    if (s->dataset >= 0)
        H5Dclose(s->dataset);
    if (s->type >= 0)
        H5Tclose(s->type);
    free(s->buffer);
    *s = (moesim_sink){.type = -1, .dataset = -1};
}
