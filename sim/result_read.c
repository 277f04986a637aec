/* SPDX-License-Identifier: Apache-2.0
 *
 * Results from files, as untrusted input. Names come from the root's lists alone, each is checked before it is looked up, and
 * nothing is allocated by a number that the file's size does not bear out.
 */
#include "sim/result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/result_pool.h"
#include "traces/h5.h"

#define MAX_LIST ((size_t)64 << 10)      /* bytes of a list of names */
#define MAX_RATIO 1100u                  /* deflate makes at most 1032 bytes of one */
#define SMALL (UINT64_C(1) << 20)        /* bytes of a column that any file may declare */

/* The guards of a trace, with words that suit a result. */
static moesim_code open_file(const char *path, moesim_h5_file *file, moesim_error *err)
{
    const moesim_code code = moesim_h5_precheck(path, true, file, err);
    if (code == MOESIM_E_FORMAT && file->bytes > 0 && !file->hdf5)
        return moesim_fail(err, code, "%s: not an HDF5 file (no signature at byte 0), so not a result of `moesim sweep`", path);
    if (code == MOESIM_OK && file->old)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: an HDF5 file in the old format without checksums, or with a damaged root; `moesim sweep` does "
                           "not write such files, copy or run it again",
                           path);
    return code == MOESIM_OK ? moesim_h5_open(path, false, file, err) : code;
}

static moesim_code check_format(const moesim_h5_file *file, moesim_error *err)
{
    char format[256];
    bool found = false;
    uint64_t version = 0, complete = 0;
    moesim_code code = moesim_h5_attr_text(file, "format", format, &found, err);
    if (code == MOESIM_OK && strcmp(format, MOESIM_RESULT_FORMAT) != 0)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: not a result: attribute format is \"%s\", not \"%s\"; results are "
                           "written by `moesim sweep -o`, grids by `moesim fidelity -o`", file->path, found ? format : "",
                           MOESIM_RESULT_FORMAT);
    if (code == MOESIM_OK)
        code = moesim_h5_attr_u64(file, "format_version", &version, &found, err);
    if (code == MOESIM_OK && version != MOESIM_RESULT_VERSION)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: format version %llu of results, this program reads version %u; use the "
                           "version of moesim that wrote it", file->path, (unsigned long long)version, MOESIM_RESULT_VERSION);
    if (code == MOESIM_OK)
        code = moesim_h5_attr_u64(file, "complete", &complete, &found, err);
    if (code == MOESIM_OK && complete != 1)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute complete is not 1: the file was not written to its end; run it "
                           "again", file->path);
    return code;
}

/* ---- lists of names ------------------------------------------------------------------------------------------------ */

/* Called for each name of a list. */
typedef moesim_code name_taker(const moesim_h5_file *file, const char *name, void *to, moesim_error *err);

static moesim_code each_name(const moesim_h5_file *file, const char *attribute, size_t room, name_taker *take, void *to,
                             moesim_error *err)
{
    char *list = NULL;
    moesim_code code = moesim_h5_attr_string(file, attribute, MAX_LIST, &list, err);
    if (code == MOESIM_OK && list == NULL)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is missing, the format asks for it", file->path, attribute);
    char *rest = list;
    for (size_t i = 0; code == MOESIM_OK && rest != NULL && list[0] != '\0'; i++) {
        const char *name = strsep(&rest, ",");
        code = moesim_result_identifier(name, room)
                   ? take(file, name, to, err)
                   : moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s: name %zu (\"%.80s\") is no identifier of at most %zu "
                                 "bytes", file->path, attribute, i, name, room - 1);
    }
    free(list);
    return code;
}

static moesim_code twice(const moesim_h5_file *file, const char *what, const char *name, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s %s is listed twice, or is one of the format's own", file->path, what,
                       name);
}

static moesim_code take_attribute(const moesim_h5_file *file, const char *name, void *to, moesim_error *err)
{
    moesim_result *r = to;
    char *text = NULL;
    if (moesim_result_reserved(name) || moesim_result_get(r, name) != NULL)
        return twice(file, "attribute", name, err);
    moesim_code code = moesim_h5_attr_string(file, name, MOESIM_RESULT_ATTRIBUTE_BYTES, &text, err);
    if (code == MOESIM_OK && text == NULL)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is missing, although `attributes` lists it", file->path,
                           name);
    if (code == MOESIM_OK && moesim_result_set(r, name, text, err) != MOESIM_OK)
        code = moesim_fail_prefix(err, "%s", file->path);
    free(text);
    return code;
}

/* ---- columns ------------------------------------------------------------------------------------------------------- */

typedef struct table_reader {
    moesim_result *result;
    moesim_decoder *decoder;
    const char *name;
    moesim_table *table;         /* NULL before the first column */
} table_reader;

/* Attributes of a dataset are read as those of the root are: the place is another one. */
static moesim_code read_unit(const moesim_h5_dataset *d, char unit[256], moesim_error *err)
{
    const moesim_h5_file place = {.id = d->id, .path = d->file->path, .bytes = d->file->bytes};
    bool found = false;
    const moesim_code code = moesim_h5_attr_text(&place, "unit", unit, &found, err);
    if (code == MOESIM_OK && strlen(unit) >= sizeof ((moesim_column_data *)NULL)->unit)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s: unit \"%.32s…\" has more than 15 bytes", d->file->path, d->name,
                           unit);
    return code;
}

static moesim_code read_texts(const table_reader *reader, moesim_h5_column *c, char **out, moesim_error *err)
{
    const size_t each = c->dataset.row_bytes;
    char text[MOESIM_RESULT_TEXT_BYTES];
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && i < reader->table->rows; i++) {
        code = moesim_h5_column_read(c, reader->decoder, i, 1, text, err);
        if (code == MOESIM_OK)
            code = moesim_result_pool_text(reader->table->pool, text, each, &out[i], err);
    }
    return code;
}

static moesim_code read_values(const table_reader *reader, moesim_h5_column *c, const char *name, moesim_error *err)
{
    moesim_table *t = reader->table;
    char unit[256] = "", **text = NULL;
    double *real = NULL;
    int64_t *integer = NULL;
    moesim_code code = read_unit(&c->dataset, unit, err);
    if (code != MOESIM_OK)
        return code;
    if (c->dataset.kind == MOESIM_H5_STRING) {
        code = moesim_table_texts(t, name, &text, err);
        return code == MOESIM_OK ? read_texts(reader, c, text, err) : code;
    }
    code = c->dataset.kind == MOESIM_H5_F64 ? moesim_table_reals(t, name, unit, &real, err)
                                            : moesim_table_integers(t, name, unit, &integer, err);
    void *out = real != NULL ? (void *)real : (void *)integer;
    return code == MOESIM_OK ? moesim_h5_column_read(c, reader->decoder, 0, t->rows, out, err) : code;
}

static moesim_code check_rows(table_reader *reader, const moesim_h5_dataset *d, moesim_error *err)
{
    const uint64_t bytes = d->row_bytes * d->dim[0];
    if (bytes > SMALL && bytes / MAX_RATIO > d->file->bytes)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s declares %llu bytes, which a file of %llu bytes cannot hold",
                           d->file->path, d->name, (unsigned long long)bytes, (unsigned long long)d->file->bytes);
    if (reader->table == NULL)
        return moesim_result_table(reader->result, reader->name, (size_t)d->dim[0], &reader->table, err);
    if (reader->table->rows != d->dim[0])
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has %llu rows, the table's first column has %zu", d->file->path,
                           d->name, (unsigned long long)d->dim[0], reader->table->rows);
    return MOESIM_OK;
}

static moesim_code take_column(const moesim_h5_file *file, const char *name, void *to, moesim_error *err)
{
    table_reader *reader = to;
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    char path[128];
    (void)snprintf(path, sizeof path, "/%s/%s", reader->name, name);
    if (reader->table != NULL && moesim_table_find(reader->table, name) != NULL)
        return twice(file, "column", path, err);
    moesim_code code = moesim_h5_dataset_open(file, path, 1u << MOESIM_H5_F64 | 1u << MOESIM_H5_I64 | 1u << MOESIM_H5_STRING, 1,
                                              &column.dataset, err);
    if (code == MOESIM_OK)
        code = check_rows(reader, &column.dataset, err);
    if (code == MOESIM_OK)
        code = read_values(reader, &column, name, err);
    if (code == MOESIM_E_LIMIT || code == MOESIM_E_NOMEM)
        code = moesim_fail_prefix(err, "%s: %s", file->path, path);
    moesim_h5_column_close(&column);
    return code;
}

static moesim_code take_table(const moesim_h5_file *file, const char *name, void *to, moesim_error *err)
{
    table_reader *all = to;
    table_reader reader = {.result = all->result, .decoder = all->decoder, .name = name};
    char list[64];
    (void)snprintf(list, sizeof list, "columns_%s", name);
    if (moesim_result_find(all->result, name) != NULL)
        return twice(file, "table", name, err);
    const moesim_code code = each_name(file, list, sizeof ((moesim_column_data *)NULL)->name, take_column, &reader, err);
    if (code != MOESIM_OK || reader.table != NULL)
        return code;
    const moesim_code made = moesim_result_table(all->result, name, 0, &reader.table, err);
    return made == MOESIM_OK ? MOESIM_OK : moesim_fail_prefix(err, "%s", file->path);
}

moesim_code moesim_result_read(const char *path, moesim_result *out, moesim_error *err)
{
    moesim_h5_file file = {.id = -1};
    table_reader reader = {.result = out};
    moesim_result_init(out);
    moesim_code code = open_file(path, &file, err);
    if (code == MOESIM_OK)
        code = check_format(&file, err);
    if (code == MOESIM_OK)
        code = each_name(&file, "attributes", sizeof out->attribute->name, take_attribute, out, err);
    if (code == MOESIM_OK)
        code = moesim_decoder_create(&reader.decoder, err);
    if (code == MOESIM_OK)
        code = each_name(&file, "tables", sizeof out->table->name, take_table, &reader, err);
    moesim_decoder_destroy(&reader.decoder);
    moesim_h5_close(&file);
    if (code != MOESIM_OK)
        moesim_result_fini(out);
    return code;
}
