/* SPDX-License-Identifier: Apache-2.0
 *
 * Results to files: attributes, then one group a table and one dataset a column, whole columns at once.
 */
#include "sim/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "traces/sink.h"

#define CHUNK_ROWS 8192u
#define LEVEL 4                  /* of deflate, which h5py reads without a plug-in */

static moesim_code fail(const moesim_sink_file *file, const char *place, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_IO, "cannot write %s: %s: %s; nothing was kept", file->path, place,
                       errno != 0 ? strerror(errno) : "the HDF5 library refused");
}

/* ---- lists of names ------------------------------------------------------------------------------------------------ */

typedef struct name_list { char *text; size_t used, room; } name_list;

static moesim_code list_begin(name_list *l, size_t names, moesim_error *err)
{
    void *p = NULL;
    *l = (name_list){.room = 64 * names + 1};
    const moesim_code code = moesim_alloc(l->room, 1, "names of a result", &p, err);
    l->text = p;
    return code;
}

static void list_add(name_list *l, const char *name)
{
    const int n = snprintf(l->text + l->used, l->room - l->used, "%s%s", l->used > 0 ? "," : "", name);
    l->used += n > 0 ? (size_t)n : 0;
}

static moesim_code list_end(name_list *l, moesim_sink_file *file, const char *name, moesim_error *err)
{
    const moesim_code code = moesim_sink_text(file, name, l->text, err);
    free(l->text);
    return code;
}

static moesim_code write_attributes(const moesim_result *r, moesim_sink_file *file, moesim_error *err)
{
    name_list list;
    moesim_code code = moesim_sink_text(file, "format", MOESIM_RESULT_FORMAT, err);
    if (code == MOESIM_OK)
        code = moesim_sink_u32(file, "format_version", MOESIM_RESULT_VERSION, err);
    if (code == MOESIM_OK)
        code = list_begin(&list, r->num_attributes, err);
    if (code != MOESIM_OK)
        return code;
    for (size_t i = 0; i < r->num_attributes; i++)
        list_add(&list, r->attribute[i].name);
    code = list_end(&list, file, "attributes", err);
    for (size_t i = 0; code == MOESIM_OK && i < r->num_attributes; i++)
        code = moesim_sink_text(file, r->attribute[i].name, r->attribute[i].text, err);
    return code;
}

static moesim_code write_columns_list(const moesim_table *t, moesim_sink_file *file, moesim_error *err)
{
    char name[64];
    name_list list;
    const moesim_code code = list_begin(&list, t->num_columns, err);
    if (code != MOESIM_OK)
        return code;
    for (size_t k = 0; k < t->num_columns; k++)
        list_add(&list, t->column[k].name);
    (void)snprintf(name, sizeof name, "columns_%s", t->name);
    return list_end(&list, file, name, err);
}

static moesim_code write_lists(const moesim_result *r, moesim_sink_file *file, moesim_error *err)
{
    name_list list;
    moesim_code code = list_begin(&list, r->num_tables, err);
    if (code != MOESIM_OK)
        return code;
    for (size_t i = 0; i < r->num_tables; i++)
        list_add(&list, r->table[i].name);
    code = list_end(&list, file, "tables", err);
    for (size_t i = 0; code == MOESIM_OK && i < r->num_tables; i++)
        code = write_columns_list(&r->table[i], file, err);
    return code;
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

/* Links in order of creation, so that h5py lists columns as the table does; kept in the group's header, however many. */
static hid_t create_group(hid_t file, const char *name)
{
    const hid_t create = H5Pcreate(H5P_GROUP_CREATE);
    hid_t group = -1;
    if (create >= 0 && H5Pset_obj_track_times(create, 0) >= 0 &&
        H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED) >= 0 &&
        H5Pset_link_phase_change(create, MOESIM_RESULT_COLUMNS, 0) >= 0)
        group = H5Gcreate2(file, name, H5P_DEFAULT, create, H5P_DEFAULT);
    H5Pclose(create);
    return group;
}

static hid_t column_plist(size_t rows)
{
    const hsize_t chunk[1] = {rows < CHUNK_ROWS ? rows : CHUNK_ROWS};
    const hid_t create = H5Pcreate(H5P_DATASET_CREATE);
    bool ok = create >= 0 && H5Pset_obj_track_times(create, 0) >= 0;
    if (rows > 0)
        ok = ok && H5Pset_chunk(create, 1, chunk) >= 0 && H5Pset_fill_time(create, H5D_FILL_TIME_ALLOC) >= 0 &&
             H5Pset_shuffle(create) >= 0 && H5Pset_deflate(create, LEVEL) >= 0 && H5Pset_fletcher32(create) >= 0;
    if (ok)
        return create;
    H5Pclose(create);
    return -1;
}

static hid_t text_type(size_t bytes)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type >= 0 && H5Tset_size(type, bytes) >= 0 && H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 &&
        H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        return type;
    H5Tclose(type);
    return -1;
}

static herr_t put_unit(hid_t dataset, const char *unit)
{
    const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    hid_t attribute = -1;
    if (type >= 0 && H5Tset_size(type, H5T_VARIABLE) >= 0 && H5Tset_cset(type, H5T_CSET_UTF8) >= 0)
        attribute = H5Acreate2(dataset, "unit", type, space, H5P_DEFAULT, H5P_DEFAULT);
    const herr_t status = attribute >= 0 ? H5Awrite(attribute, type, &unit) : -1;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    return status;
}

static herr_t put_column(hid_t group, const moesim_column_data *c, size_t rows, hid_t type, const void *data)
{
    const hsize_t dims[1] = {rows};
    const hid_t space = H5Screate_simple(1, dims, NULL), create = column_plist(rows);
    const hid_t dataset = space >= 0 && create >= 0 ? H5Dcreate2(group, c->name, type, space, H5P_DEFAULT, create, H5P_DEFAULT)
                                                    : -1;
    herr_t status = dataset >= 0 ? 0 : -1;
    if (status >= 0 && rows > 0)
        status = H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data);
    if (status >= 0 && c->unit[0] != '\0')
        status = put_unit(dataset, c->unit);
    if (dataset >= 0 && H5Dclose(dataset) < 0)
        status = -1;
    if (create >= 0)
        H5Pclose(create);
    if (space >= 0)
        H5Sclose(space);
    return status;
}

/* Texts side by side, each in as many bytes as the longest has. */
static moesim_code pack(const moesim_column_data *c, size_t rows, size_t *width, void **out, moesim_error *err)
{
    *width = 1;
    for (size_t i = 0; i < rows; i++) {
        const size_t n = strlen(c->text[i]);
        *width = n > *width ? n : *width;
    }
    const moesim_code code = moesim_alloc(rows, *width, c->name, out, err);
    for (size_t i = 0; code == MOESIM_OK && i < rows; i++)
        memcpy((char *)*out + i * *width, c->text[i], strlen(c->text[i]));
    return code;
}

static moesim_code write_column(const moesim_sink_file *file, hid_t group, const moesim_table *t, size_t k, moesim_error *err)
{
    const moesim_column_data *c = &t->column[k];
    const void *data = c->real != NULL ? (const void *)c->real : (const void *)c->integer;
    void *packed = NULL;
    size_t width = 0;
    if (c->text != NULL) {
        const moesim_code code = pack(c, t->rows, &width, &packed, err);
        if (code != MOESIM_OK)
            return code;
        data = packed;
    }
    errno = 0;
    const hid_t type = c->text != NULL ? text_type(width)
                                       : H5Tcopy(moesim_h5_type_id(c->real != NULL ? MOESIM_H5_F64 : MOESIM_H5_I64));
    const herr_t status = type >= 0 ? put_column(group, c, t->rows, type, data) : -1;
    const moesim_code code = status >= 0 ? MOESIM_OK : fail(file, c->name, err);
    if (type >= 0)
        H5Tclose(type);
    free(packed);
    return code;
}

static moesim_code write_table(const moesim_sink_file *file, const moesim_table *t, moesim_error *err)
{
    moesim_code code = moesim_h5_enter(err);
    if (code != MOESIM_OK)
        return code;
    errno = 0;
    const hid_t group = create_group(file->file, t->name);
    if (group < 0)
        code = fail(file, t->name, err);
    for (size_t k = 0; code == MOESIM_OK && k < t->num_columns; k++)
        code = write_column(file, group, t, k, err);
    errno = 0;
    if (group >= 0 && H5Gclose(group) < 0 && code == MOESIM_OK)
        code = fail(file, t->name, err);
    moesim_h5_leave();
    return code;
}

moesim_code moesim_result_write(const moesim_result *r, const char *path, moesim_error *err)
{
    static const moesim_writer_options options = {MOESIM_GZIP, LEVEL};
    moesim_sink_file file;
    moesim_code code = moesim_sink_file_create(path, &options, &file, err);
    if (code != MOESIM_OK)
        return code;
    code = write_attributes(r, &file, err);
    if (code == MOESIM_OK)
        code = write_lists(r, &file, err);
    for (size_t i = 0; code == MOESIM_OK && i < r->num_tables; i++)
        code = write_table(&file, &r->table[i], err);
    if (code == MOESIM_OK)
        return moesim_sink_file_finish(&file, err);
    moesim_sink_file_discard(&file);
    return code;
}
