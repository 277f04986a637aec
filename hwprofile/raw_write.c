/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw samples to a file: attributes of the root, one column a field of the points, all samples in one column.
 */
#include <stdio.h>
#include <string.h>

#include "hwprofile/raw.h"
#include "traces/sink.h"

static moesim_code write_attributes(const moesim_raw *raw, moesim_sink_file *file, moesim_error *err)
{
    const struct { const char *name, *text; } text[] = {
        { "format", MOESIM_RAW_FORMAT }, { "moesim_version", MOESIM_VERSION }, { "device", raw->device },
        { "model", raw->model },
    };
    const struct { const char *name; uint32_t value; } number[] = {
        { "format_version", MOESIM_RAW_VERSION }, { "hidden", raw->hidden }, { "intermediate", raw->intermediate },
        { "top_k", raw->top_k }, { "threads", raw->threads }, { "quick", raw->quick }, { "sweeps", MOESIM_RAW_SWEEPS },
        { "num_facts", (uint32_t)raw->num_facts },
    };
    char name[32], fact[192];
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < sizeof text / sizeof text[0] && code == MOESIM_OK; i++)
        code = moesim_sink_text(file, text[i].name, text[i].text, err);
    for (size_t i = 0; i < sizeof number / sizeof number[0] && code == MOESIM_OK; i++)
        code = moesim_sink_u32(file, number[i].name, number[i].value, err);
    if (code == MOESIM_OK)
        code = moesim_sink_u64(file, "expert_bytes", raw->expert_bytes, err);
    for (size_t i = 0; i < raw->num_facts && code == MOESIM_OK; i++) {
        (void)snprintf(name, sizeof name, "fact_%02zu", i);
        (void)snprintf(fact, sizeof fact, "%s: %s", raw->fact[i].key, raw->fact[i].value);
        code = moesim_sink_text(file, name, fact, err);
    }
    return code;
}

/* One column: value i of the points by `get`, `each` bytes long. */
typedef void getter(const moesim_raw_point *point, const moesim_raw_field *field, void *out);

static void get_kind(const moesim_raw_point *point, const moesim_raw_field *field, void *out)
{
    (void)field;
    memset(out, 0, MOESIM_SINK_TEXT);
    (void)snprintf(out, MOESIM_SINK_TEXT, "%s", moesim_raw_kind_infos[point->key.kind].name);
}

static void get_key(const moesim_raw_point *point, const moesim_raw_field *field, void *out)
{
    memcpy(out, (const char *)&point->key + field->offset, field->wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

static void get_member(const moesim_raw_point *point, const moesim_raw_field *field, void *out)
{
    memcpy(out, (const char *)point + field->offset, field->wide ? sizeof(uint64_t) : sizeof(uint32_t));
}

static moesim_code write_column(const moesim_raw *raw, moesim_sink_file *file, const char *name, enum moesim_h5_type type,
                                getter *get, const moesim_raw_field *field, moesim_error *err)
{
    moesim_sink sink = { .file = NULL };
    unsigned char value[MOESIM_SINK_TEXT];
    moesim_code code = moesim_sink_open(file, name, type, NULL, MOESIM_SINK_ROWS, &sink, err);
    for (size_t i = 0; i < raw->num_points && code == MOESIM_OK; i++) {
        get(&raw->point[i], field, value);
        code = moesim_sink_append(&sink, 1, value, err);
    }
    if (code == MOESIM_OK)
        code = moesim_sink_flush(&sink, err);
    moesim_sink_close(&sink);
    return code;
}

static moesim_code write_points(const moesim_raw *raw, moesim_sink_file *file, moesim_error *err)
{
    char name[64];
    moesim_code code = moesim_sink_group(file, "/points", err);
    if (code == MOESIM_OK)
        code = write_column(raw, file, "/points/kind", MOESIM_H5_STRING, get_kind, NULL, err);
    for (const moesim_raw_field *f = moesim_raw_fields; f->name != NULL && code == MOESIM_OK; f++) {
        (void)snprintf(name, sizeof name, "/points/%s", f->name);
        code = write_column(raw, file, name, f->wide ? MOESIM_H5_U64 : MOESIM_H5_U32, get_key, f, err);
    }
    for (const moesim_raw_field *f = moesim_raw_numbers; f->name != NULL && code == MOESIM_OK; f++) {
        (void)snprintf(name, sizeof name, "/points/%s", f->name);
        code = write_column(raw, file, name, f->wide ? MOESIM_H5_U64 : MOESIM_H5_U32, get_member, f, err);
    }
    for (const moesim_raw_field *f = moesim_raw_figures; f->name != NULL && code == MOESIM_OK; f++) {
        (void)snprintf(name, sizeof name, "/points/%s", f->name);
        code = write_column(raw, file, name, MOESIM_H5_F64, get_member, f, err);
    }
    return code;
}

static moesim_code write_samples(const moesim_raw *raw, moesim_sink_file *file, moesim_error *err)
{
    moesim_sink sink = { .file = NULL };
    moesim_code code = moesim_sink_open(file, "/samples", MOESIM_H5_F64, NULL, MOESIM_SINK_ROWS, &sink, err);
    if (code == MOESIM_OK)
        code = moesim_sink_append(&sink, raw->num_samples, raw->sample, err);
    if (code == MOESIM_OK)
        code = moesim_sink_flush(&sink, err);
    moesim_sink_close(&sink);
    return code;
}

moesim_code moesim_raw_write(const moesim_raw *raw, const char *path, moesim_error *err)
{
    static const moesim_writer_options options = { MOESIM_GZIP, 6 };     /* h5py reads it without a plug-in */
    moesim_sink_file file;
    moesim_code code = moesim_sink_file_create(path, &options, &file, err);
    if (code != MOESIM_OK)
        return code;
    code = write_attributes(raw, &file, err);
    if (code == MOESIM_OK)
        code = write_points(raw, &file, err);
    if (code == MOESIM_OK)
        code = write_samples(raw, &file, err);
    if (code == MOESIM_OK)
        return moesim_sink_file_finish(&file, err);
    moesim_sink_file_discard(&file);
    return code;
}
