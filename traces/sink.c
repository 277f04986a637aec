/* SPDX-License-Identifier: Apache-2.0
 *
 * The writing side of HDF5: file, groups, attributes and growing columns.
 */
#include "traces/sink.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
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
    if (strlen(path) >= sizeof out->path)
        return moesim_fail(err, MOESIM_E_USAGE, "the name of the output file is longer than %zu bytes",
                           sizeof out->path - 1);
    memcpy(out->path, path, strlen(path) + 1);
    moesim_code code = check_options(options, out, err);
    if (code == MOESIM_OK)
        code = moesim_output_open_file(path, &out->output, err);
    if (code == MOESIM_OK)
        code = moesim_h5_enter(err);
    if (code != MOESIM_OK) {
        moesim_output_discard(&out->output);
        return code;
    }
    errno = 0;
    out->file = open_file(moesim_output_temporary(out->output));
    if (out->file < 0) {
        code = fail(out, "creating the file", err);
        moesim_output_discard(&out->output);
    }
    moesim_h5_leave();
    return code;
}

void moesim_sink_file_discard(moesim_sink_file *file)
{
    if (file->file >= 0 && moesim_h5_enter(NULL) == MOESIM_OK) {
        H5Fclose(file->file);
        moesim_h5_leave();
    }
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
    const moesim_code code = status >= 0 ? MOESIM_OK : fail(file, name, err);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return code;
}

static moesim_code put_number(moesim_sink_file *file, const char *name, enum moesim_h5_type type, const void *value,
                              moesim_error *err)
{
    moesim_code code = moesim_h5_enter(err);
    if (code == MOESIM_OK) {
        code = put_attribute(file, name, moesim_h5_type_id(type), value, err);
        moesim_h5_leave();
    }
    return code;
}

moesim_code moesim_sink_text(moesim_sink_file *file, const char *name, const char *text, moesim_error *err)
{
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    code = put_attribute(file, name, type, &text, err);
    H5Tclose(type);
    moesim_h5_leave();
    return code;
}

moesim_code moesim_sink_u32(moesim_sink_file *file, const char *name, uint32_t value, moesim_error *err)
{
    return put_number(file, name, MOESIM_H5_U32, &value, err);
}

moesim_code moesim_sink_u64(moesim_sink_file *file, const char *name, uint64_t value, moesim_error *err)
{
    return put_number(file, name, MOESIM_H5_U64, &value, err);
}

moesim_code moesim_sink_real(moesim_sink_file *file, const char *name, double value, moesim_error *err)
{
    return put_number(file, name, MOESIM_H5_F64, &value, err);
}

/* Everything else is in the file before `complete` is, so that a torn file never claims to be whole. */
static moesim_code seal(moesim_sink_file *file, moesim_error *err)
{
    static const uint8_t one = 1;
    errno = 0;
    moesim_code code = H5Fflush(file->file, H5F_SCOPE_LOCAL) >= 0 ? MOESIM_OK : fail(file, "flushing the data", err);
    if (code == MOESIM_OK)
        code = put_attribute(file, "complete", moesim_h5_type_id(MOESIM_H5_U8), &one, err);
    errno = 0;
    if (H5Fclose(file->file) < 0 && code == MOESIM_OK)
        code = fail(file, "closing the file", err);
    file->file = -1;
    return code;
}

moesim_code moesim_sink_file_finish(moesim_sink_file *file, moesim_error *err)
{
    moesim_code code = moesim_h5_enter(err);
    if (code == MOESIM_OK) {
        code = seal(file, err);
        moesim_h5_leave();
    }
    if (code == MOESIM_OK)
        return moesim_output_commit(&file->output, err);
    moesim_sink_file_discard(file);
    return code;
}

moesim_code moesim_sink_group(moesim_sink_file *file, const char *name, moesim_error *err)
{
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    errno = 0;
    const hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(create, 0);
    const hid_t group = H5Gcreate2(file->file, name, H5P_DEFAULT, create, H5P_DEFAULT);
    H5Pclose(create);
    if (group < 0)
        code = fail(file, name, err);
    else
        H5Gclose(group);
    moesim_h5_leave();
    return code;
}

moesim_code moesim_sink_array(moesim_sink_file *file, const char *name, enum moesim_h5_type type, uint64_t n,
                              const void *data, moesim_error *err)
{
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    errno = 0;
    const hid_t id = moesim_h5_type_id(type);
    const hsize_t dims[1] = {n};
    const hid_t space = H5Screate_simple(1, dims, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(create, 0);
    const hid_t dataset = H5Dcreate2(file->file, name, id, space, H5P_DEFAULT, create, H5P_DEFAULT);
    const herr_t status = dataset >= 0 ? H5Dwrite(dataset, id, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) : -1;
    if (status < 0)
        code = fail(file, name, err);
    if (dataset >= 0)
        H5Dclose(dataset);
    H5Pclose(create);
    H5Sclose(space);
    moesim_h5_leave();
    return code;
}

/* shuffle, then the compressor, then Fletcher-32; a fill of zeros keeps the unused end of the last chunk the same always. */
static hid_t column_plist(const moesim_sink *s)
{
    const hsize_t chunk[3] = {s->chunk_rows, s->width[0], s->width[1]};
    const unsigned level = (unsigned)s->file->level;
    static const unsigned char zero[MOESIM_SINK_TEXT] = {0};
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    bool ok = create >= 0 && H5Pset_obj_track_times(create, 0) >= 0 && H5Pset_chunk(create, (int)s->rank, chunk) >= 0 &&
              H5Pset_fill_value(create, s->type, zero) >= 0 && H5Pset_fill_time(create, H5D_FILL_TIME_ALLOC) >= 0 &&
              (s->item_bytes == 1 || H5Pset_shuffle(create) >= 0);
    if (s->file->compression == MOESIM_GZIP)
        ok = ok && H5Pset_deflate(create, level) >= 0;
    else
        ok = ok && H5Pset_filter(create, MOESIM_FILTER_ZSTD, H5Z_FLAG_MANDATORY, 1, &level) >= 0;
    if (ok && H5Pset_fletcher32(create) >= 0)
        return create;
    H5Pclose(create);
    return -1;
}

static hid_t create_column(const moesim_sink *s)
{
    const hsize_t dims[3] = {0, s->width[0], s->width[1]}, max[3] = {H5S_UNLIMITED, s->width[0], s->width[1]};
    const hid_t create = column_plist(s), access = H5Pcreate(H5P_DATASET_ACCESS);
    const hid_t space = H5Screate_simple((int)s->rank, dims, max);
    hid_t dataset = -1;
    /* Whole chunks are written at once, so a chunk cache would only hold them back. */
    if (create >= 0 && access >= 0 && space >= 0 && H5Pset_chunk_cache(access, 1, 0, 1.0) >= 0)
        dataset = H5Dcreate2(s->file->file, s->name, s->type, space, H5P_DEFAULT, create, access);
    H5Sclose(space);
    H5Pclose(access);
    if (create >= 0)
        H5Pclose(create);
    return dataset;
}

static hid_t item_type(enum moesim_h5_type type)
{
    if (type != MOESIM_H5_STRING)
        return H5Tcopy(moesim_h5_type_id(type));
    const hid_t text = H5Tcopy(H5T_C_S1);
    H5Tset_size(text, MOESIM_SINK_TEXT);
    H5Tset_strpad(text, H5T_STR_NULLPAD);
    return text;
}

static moesim_code prepare(moesim_sink *s, const uint64_t width[2], uint64_t chunk_rows, moesim_error *err)
{
    s->rank = width != NULL ? 3 : 1;
    for (int i = 0; i < 2; i++)
        s->width[i] = width != NULL ? width[i] : 1;
    s->item_bytes = s->type >= 0 ? H5Tget_size(s->type) : 1;
    s->row_items = (size_t)(s->width[0] * s->width[1]);
    const uint64_t most = MOESIM_SINK_CHUNK_BYTES / (s->item_bytes * s->row_items);
    s->chunk_rows = (size_t)(chunk_rows < most ? chunk_rows : most > 0 ? most : 1);
    void *buffer = NULL;
    const moesim_code code = moesim_alloc(s->chunk_rows * s->row_items, s->item_bytes, s->name, &buffer, err);
    s->buffer = buffer;
    return code;
}

moesim_code moesim_sink_open(moesim_sink_file *file, const char *name, enum moesim_h5_type type, const uint64_t width[2],
                             uint64_t chunk_rows, moesim_sink *out, moesim_error *err)
{
    *out = (moesim_sink){.type = -1, .dataset = -1};
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    errno = 0;
    *out = (moesim_sink){.file = file, .name = name, .type = item_type(type), .dataset = -1};
    code = prepare(out, width, chunk_rows, err);
    if (code == MOESIM_OK) {
        out->dataset = out->type >= 0 ? create_column(out) : -1;
        code = out->dataset >= 0 ? MOESIM_OK : fail(file, name, err);
    }
    moesim_h5_leave();
    return code;
}

static herr_t write_rows(const moesim_sink *s)
{
    const hsize_t dims[3] = {s->rows + s->fill, s->width[0], s->width[1]}, start[3] = {s->rows, 0, 0};
    const hsize_t count[3] = {s->fill, s->width[0], s->width[1]};
    if (H5Dset_extent(s->dataset, dims) < 0)
        return -1;
    const hid_t memory = H5Screate_simple((int)s->rank, count, NULL), space = H5Dget_space(s->dataset);
    herr_t status = space >= 0 ? H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) : -1;
    if (status >= 0)
        status = H5Dwrite(s->dataset, s->type, memory, space, H5P_DEFAULT, s->buffer);
    if (space >= 0)
        H5Sclose(space);
    H5Sclose(memory);
    return status;
}

moesim_code moesim_sink_flush(moesim_sink *s, moesim_error *err)
{
    if (s->fill == 0)
        return MOESIM_OK;
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    errno = 0;
    if (write_rows(s) < 0)
        code = fail(s->file, s->name, err);
    moesim_h5_leave();
    s->rows += s->fill;
    s->fill = 0;
    return code;
}

/* False if a finite value does not fit. */
static bool narrow(size_t n, const float *from, uint16_t *to)
{
    uint32_t lost = 0;
    for (size_t i = 0; i < n; i++) {
        to[i] = moesim_half_from_float(from[i]);
        lost |= (to[i] & 0x7fffu) == 0x7c00u && isfinite(from[i]);
    }
    return lost == 0;
}

static moesim_code append(moesim_sink *s, uint64_t rows, const unsigned char *data, const float *floats, moesim_error *err)
{
    uint64_t done = 0;
    while (done < rows) {
        const size_t room = s->chunk_rows - s->fill, n = rows - done < room ? (size_t)(rows - done) : room;
        unsigned char *to = s->buffer + s->fill * s->row_items * s->item_bytes;
        const size_t items = n * s->row_items, first = (size_t)done * s->row_items;
        if (floats == NULL)
            memcpy(to, data + first * s->item_bytes, items * s->item_bytes);
        else if (!narrow(items, floats + first, (uint16_t *)(void *)to))
            return moesim_fail(err, MOESIM_E_FORMAT, "cannot write %s: %s: a value beyond 65504 does not fit half "
                               "precision; store the column as 32-bit floats", s->file->path, s->name);
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
    if (s->file == NULL)   /* a column that does not exist */
        return;
    if (moesim_h5_enter(NULL) == MOESIM_OK) {
        if (s->dataset >= 0)
            H5Dclose(s->dataset);
        if (s->type >= 0)
            H5Tclose(s->type);
        moesim_h5_leave();
    }
    free(s->buffer);
    *s = (moesim_sink){.type = -1, .dataset = -1};
}
