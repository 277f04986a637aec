/* SPDX-License-Identifier: Apache-2.0
 *
 * Opening of datasets: every link, type, size and storage property is checked before a byte of content is read.
 */
#include "traces/h5.h"

#include <stdio.h>
#include <string.h>

#define BAND_BYTES ((size_t)64 << 10)   /* piece in which unchunked datasets are read: small, many cursors may be open */
#define MAX_STRING 4096

static moesim_code damaged(const moesim_h5_dataset *d, const char *what, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s: %s cannot be read: the file is damaged", d->file->path, d->name,
                       strcmp(what, d->name) == 0 ? "it" : what);
}

/* ---- links --------------------------------------------------------------------------------------------------------- */

/* Is there a hard link of this name (relative to the root, one step below the last checked one)? */
static moesim_code check_link(const moesim_h5_dataset *d, const char *step, bool *found, moesim_error *err)
{
    H5L_info_t info;
    const htri_t exists = H5Lexists(d->file->id, step, H5P_DEFAULT);
    *found = exists > 0;
    if (exists == 0)
        return MOESIM_OK;
    if (exists < 0 || H5Lget_info(d->file->id, step, &info, H5P_DEFAULT) < 0)
        return damaged(d, step, err);
    if (info.type != H5L_TYPE_HARD)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s is %s link, which could lead to another file; copy the object itself into the trace",
                           d->file->path, step, info.type == H5L_TYPE_EXTERNAL ? "an external" : "a soft or user-defined");
    return MOESIM_OK;
}

/* Objects of the old formats carry no checksums; they come with superblocks below 2, which are refused. */
static moesim_code check_object(const moesim_h5_dataset *d, const char *step, H5O_type_t want, moesim_error *err)
{
    H5O_info_t info;
    if (H5Oget_info_by_name2(d->file->id, step, &info, H5O_INFO_BASIC | H5O_INFO_HDR, H5P_DEFAULT) < 0)
        return damaged(d, step, err);
    if (info.type != want)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s is not a %s", d->file->path, step,
                           want == H5O_TYPE_GROUP ? "group" : "dataset");
    if (info.hdr.version < 2 && !d->file->old)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s is stored in HDF5's old format without checksums; repack the file with `moesim trace "
                           "convert --old-format IN OUT`",
                           d->file->path, step);
    return MOESIM_OK;
}

static moesim_code check_path(const moesim_h5_dataset *d, bool *found, moesim_error *err)
{
    char step[128];
    const size_t length = strlen(d->name);
    *found = false;
    if (length >= sizeof step)
        return moesim_fail(err, MOESIM_E_INTERNAL, "%s: name of a dataset too long", d->name);
    for (size_t i = 1; i <= length; i++) {
        if (d->name[i] != '/' && d->name[i] != '\0')
            continue;
        memcpy(step, d->name, i);
        step[i] = '\0';
        moesim_code code = check_link(d, step, found, err);
        if (code == MOESIM_OK && *found)
            code = check_object(d, step, i < length ? H5O_TYPE_GROUP : H5O_TYPE_DATASET, err);
        if (code != MOESIM_OK || !*found)
            return code;
    }
    return MOESIM_OK;
}

/* ---- type and shape ------------------------------------------------------------------------------------------------ */

static moesim_code check_type(moesim_h5_dataset *d, uint32_t types, moesim_error *err)
{
    static const char *const names[MOESIM_H5_TYPES] = {"uint8",   "uint16",  "uint32",  "uint64",  "int32",
                                                       "int64",   "float16", "float32", "float64", "fixed string"};
    char want[64] = "", have[64];
    if ((d->type = H5Dget_type(d->id)) < 0)
        return damaged(d, "its type", err);
    d->element = H5Tget_size(d->type);
    for (uint32_t k = 0; k < MOESIM_H5_TYPES; k++) {
        if ((types >> k & 1u) == 0)
            continue;
        const bool same = k == MOESIM_H5_STRING ? H5Tget_class(d->type) == H5T_STRING && H5Tis_variable_str(d->type) == 0 &&
                                                      d->element > 0 && d->element <= MAX_STRING
                                                : H5Tequal(d->type, moesim_h5_type_id((enum moesim_h5_type)k)) > 0;
        if (same) {
            d->kind = (enum moesim_h5_type)k;
            return MOESIM_OK;
        }
        const size_t used = strlen(want);
        (void)snprintf(want + used, sizeof want - used, "%s%s", used > 0 ? " or " : "", names[k]);
    }
    moesim_h5_describe(d->type, have, sizeof have);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has type %s, the format asks for %s (little-endian)", d->file->path,
                       d->name, have, want);
}

static moesim_code check_shape(moesim_h5_dataset *d, uint32_t rank, moesim_error *err)
{
    hsize_t dims[H5S_MAX_RANK] = {0};
    const hid_t space = H5Dget_space(d->id);
    const int n = space >= 0 && H5Sis_simple(space) > 0 ? H5Sget_simple_extent_ndims(space) : -1;
    const bool ok = n >= 0 && n <= H5S_MAX_RANK && H5Sget_simple_extent_dims(space, dims, NULL) == n;
    const bool simple = ok && H5Sget_simple_extent_type(space) != H5S_NULL;
    if (space >= 0)
        (void)H5Sclose(space);
    if (!ok)
        return damaged(d, "its shape", err);
    if (!simple || (uint32_t)n != rank)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has %d dimensions, the format asks for %u", d->file->path, d->name, n,
                           rank);
    uint64_t bytes = d->element;
    d->rank = rank;
    for (uint32_t i = rank; i-- > 0;) {
        d->dim[i] = dims[i];
        if (i == 0)
            d->row_bytes = (size_t)bytes;
        if (__builtin_mul_overflow(bytes, dims[i], &bytes) || bytes > MOESIM_H5_MAX_BYTES)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s declares more than 2^48 bytes", d->file->path, d->name);
    }
    return MOESIM_OK;
}

/* ---- storage ------------------------------------------------------------------------------------------------------- */

static moesim_code add_filter(moesim_h5_dataset *d, hid_t list, unsigned i, moesim_error *err)
{
    static const struct {
        H5Z_filter_t id;
        uint8_t kind;
    } known[] = {{H5Z_FILTER_SHUFFLE, MOESIM_STAGE_SHUFFLE},
                 {H5Z_FILTER_FLETCHER32, MOESIM_STAGE_FLETCHER},
                 {H5Z_FILTER_DEFLATE, MOESIM_STAGE_DEFLATE},
                 {MOESIM_FILTER_ZSTD, MOESIM_STAGE_ZSTD}};
    unsigned flags = 0, values[8] = {0};
    size_t n = sizeof values / sizeof values[0];
    moesim_pipeline *p = &d->pipeline;
    const H5Z_filter_t id = H5Pget_filter2(list, i, &flags, &n, values, 0, NULL, NULL);
    uint8_t kind = 0;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
        kind = known[k].id == id ? known[k].kind : kind;
    if (kind == 0)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s uses HDF5 filter %d; only shuffle (2), Fletcher-32 (3), deflate (1) and zstd (32015) are "
                           "read. Repack it: h5repack -f SHUF -f GZIP=6 --low=2 IN OUT",
                           d->file->path, d->name, (int)id);
    bool good = p->n < MOESIM_MAX_STAGES;
    for (uint32_t k = 0; k < p->n; k++)
        good = good && p->stage[k].kind != kind && (p->stage[k].kind < MOESIM_STAGE_DEFLATE || kind < MOESIM_STAGE_DEFLATE);
    if (kind == MOESIM_STAGE_SHUFFLE)
        good = good && p->n == 0 && n >= 1 && values[0] == d->element;
    if (!good)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s: filter %u (number %d) is out of place; read are shuffle by whole elements first, then at "
                           "most one compressor and one Fletcher-32",
                           d->file->path, d->name, i, (int)id);
    p->stage[p->n++] = (moesim_stage){.kind = kind, .optional = (flags & H5Z_FLAG_OPTIONAL) != 0};
    return MOESIM_OK;
}

static moesim_code check_chunks(moesim_h5_dataset *d, hid_t list, moesim_error *err)
{
    hsize_t chunk[H5S_MAX_RANK] = {0};
    unsigned options = 0;
    const int rank = H5Pget_chunk(list, H5S_MAX_RANK, chunk);
    const int filters = H5Pget_nfilters(list);
    if (rank != (int)d->rank || filters < 0 || H5Pget_chunk_opts(list, &options) < 0)
        return damaged(d, "its chunk shape", err);
    if (options != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s leaves chunks at its edges unfiltered, which is not supported",
                           d->file->path, d->name);
    uint64_t bytes = d->element, band = d->row_bytes;
    bool large = __builtin_mul_overflow(band, (uint64_t)chunk[0], &band) || band > MOESIM_H5_MAX_CHUNK;
    for (uint32_t i = 0; i < d->rank; i++) {
        d->chunk[i] = chunk[i];
        large = large || chunk[i] == 0 || __builtin_mul_overflow(bytes, (uint64_t)chunk[i], &bytes) ||
                bytes > MOESIM_H5_MAX_CHUNK;
    }
    if (large)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s has chunks of %llu rows, which decode to more than 64 MiB; write chunks of about 256 rows",
                           d->file->path, d->name, (unsigned long long)chunk[0]);
    d->band_rows = d->chunk[0];
    d->pipeline.chunk_bytes = (size_t)bytes;
    moesim_code code = MOESIM_OK;
    for (int i = 0; code == MOESIM_OK && i < filters; i++)
        code = add_filter(d, list, (unsigned)i, err);
    return code;
}

/* Contiguous storage that was never written, or that ends behind the file, would read as zeros. */
static moesim_code check_flat(moesim_h5_dataset *d, bool contiguous, moesim_error *err)
{
    const uint64_t bytes = d->row_bytes * d->dim[0];
    d->band_rows = d->row_bytes > 0 && d->row_bytes < BAND_BYTES ? BAND_BYTES / d->row_bytes : 1;
    if (d->band_rows > d->dim[0])
        d->band_rows = d->dim[0] > 0 ? d->dim[0] : 1;
    if (d->row_bytes > MOESIM_H5_MAX_CHUNK)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has rows of more than 64 MiB", d->file->path, d->name);
    if (!contiguous || bytes == 0)
        return MOESIM_OK;
    const haddr_t at = H5Dget_offset(d->id);
    if (H5Dget_storage_size(d->id) < bytes || at == HADDR_UNDEF || at > d->file->bytes || d->file->bytes - at < bytes)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s was cut short: it declares %llu bytes that the file does not hold; record or copy it again",
                           d->file->path, d->name, (unsigned long long)bytes);
    return MOESIM_OK;
}

static moesim_code check_storage(moesim_h5_dataset *d, moesim_error *err)
{
    const hid_t list = H5Dget_create_plist(d->id);
    if (list < 0)
        return damaged(d, "its storage", err);
    d->pipeline = (moesim_pipeline){.element = d->element};
    const H5D_layout_t layout = H5Pget_layout(list);
    moesim_code code = MOESIM_OK;
    if (layout == H5D_VIRTUAL)
        code = moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: %s is a virtual dataset, which takes its data from other files; copy the data themselves",
                           d->file->path, d->name);
    else if (H5Pget_external_count(list) != 0)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: %s keeps its data in external files; copy them into the trace",
                           d->file->path, d->name);
    else if (layout == H5D_CHUNKED)
        code = check_chunks(d, list, err);
    else if (layout == H5D_CONTIGUOUS || layout == H5D_COMPACT)
        code = check_flat(d, layout == H5D_CONTIGUOUS, err);
    else
        code = damaged(d, "its layout", err);
    (void)H5Pclose(list);
    return code;
}

/* ---- open and close ------------------------------------------------------------------------------------------------ */

moesim_code moesim_h5_dataset_open_optional(const moesim_h5_file *file, const char *name, uint32_t types, uint32_t rank,
                                            moesim_h5_dataset *out, moesim_error *err)
{
    bool found = false;
    *out = (moesim_h5_dataset){.id = -1, .type = -1, .file = file, .name = name};
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    code = check_path(out, &found, err);
    if (code == MOESIM_OK && found) {
        if ((out->id = H5Dopen2(file->id, name, H5P_DEFAULT)) < 0)
            code = damaged(out, "it", err);
        if (code == MOESIM_OK)
            code = check_type(out, types, err);
        if (code == MOESIM_OK)
            code = check_shape(out, rank, err);
        if (code == MOESIM_OK)
            code = check_storage(out, err);
        if (code != MOESIM_OK)
            moesim_h5_dataset_close(out);
    }
    moesim_h5_leave();
    return code;
}

moesim_code moesim_h5_dataset_open(const moesim_h5_file *file, const char *name, uint32_t types, uint32_t rank,
                                   moesim_h5_dataset *out, moesim_error *err)
{
    const moesim_code code = moesim_h5_dataset_open_optional(file, name, types, rank, out, err);
    if (code == MOESIM_OK && out->id < 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: dataset %s is missing, the format asks for it", file->path, name);
    return code;
}

void moesim_h5_dataset_close(moesim_h5_dataset *dataset)
{
    if (dataset->id < 0 || moesim_h5_enter(NULL) != MOESIM_OK)
        return;
    if (dataset->type >= 0)
        (void)H5Tclose(dataset->type);
    (void)H5Dclose(dataset->id);
    dataset->id = dataset->type = -1;
    moesim_h5_leave();
}
