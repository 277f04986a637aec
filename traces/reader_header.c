/* SPDX-License-Identifier: Apache-2.0
 *
 * What a trace says of itself: root attributes, and the shapes of all datasets against them.
 */
#include "traces/reader.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define FORMAT_NAME "moe-routing-trace"

static moesim_code missing(const moesim_trace *t, const char *name, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is missing, the format asks for it", t->info.path, name);
}

static moesim_code read_identity(moesim_trace *t, moesim_error *err)
{
    moesim_text format;
    uint64_t version = 0, complete = 0;
    bool found = false;
    moesim_code code = moesim_h5_attr_text(&t->file, "format", format, &found, err);
    if (code != MOESIM_OK)
        return code;
    if (!found || strcmp(format, FORMAT_NAME) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: attribute format is %s%.80s%s, a trace has \"" FORMAT_NAME "\": this is another kind of file",
                           t->info.path, found ? "\"" : "", found ? format : "missing", found ? "\"" : "");
    code = moesim_h5_attr_u64(&t->file, "format_version", &version, &found, err);
    if (code != MOESIM_OK)
        return code;
    if (!found)
        return missing(t, "format_version", err);
    if (version != 1)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: attribute format_version is %llu, this program reads version 1; a newer program is needed",
                           t->info.path, (unsigned long long)version);
    code = moesim_h5_attr_u64(&t->file, "complete", &complete, &found, err);
    if (code == MOESIM_OK && complete != 1 && !t->salvage)
        return moesim_fail(err, MOESIM_E_FORMAT,
                           "%s: attribute complete is %s: the recording was cut short (a recorder writes complete = 1 last); "
                           "`moesim trace salvage IN OUT` closes what is there",
                           t->info.path, found ? "not 1" : "missing");
    return code;
}

static moesim_code read_sizes(moesim_trace *t, moesim_error *err)
{
    const struct {
        const char *name;
        uint64_t most;
        uint32_t *out;
    } sizes[] = {{"num_moe_layers", 1024, &t->info.num_layers},
                 {"num_experts", 1024, &t->info.num_experts},
                 {"top_k", 64, &t->info.top_k},
                 {"block_length", 4096, &t->info.block_length}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t value = 0;
        bool found = false;
        const moesim_code code = moesim_h5_attr_u64(&t->file, sizes[i].name, &value, &found, err);
        if (code != MOESIM_OK)
            return code;
        if (!found)
            return missing(t, sizes[i].name, err);
        if (value < 1 || value > sizes[i].most)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute %s is %llu, allowed are 1 to %llu", t->info.path,
                               sizes[i].name, (unsigned long long)value, (unsigned long long)sizes[i].most);
        *sizes[i].out = (uint32_t)value;
    }
    if (t->info.top_k > t->info.num_experts)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute top_k is %u, more than num_experts = %u", t->info.path,
                           t->info.top_k, t->info.num_experts);
    return MOESIM_OK;
}

static moesim_code read_texts(moesim_trace *t, moesim_error *err)
{
    moesim_trace_info *info = &t->info;
    const struct {
        const char *name;
        char *out;
        bool required;
    } texts[] = {{"model_id", info->model_id, true},
                 {"gate_kind", info->gate_kind, true},
                 {"confidence_kind", info->confidence_kind, true},
                 {"weight_dtype", info->weight_dtype, false},
                 {"engine", info->engine, false},
                 {"engine_version", info->engine_version, false},
                 {"decoder", info->decoder, false},
                 {"dataset", info->dataset, false},
                 {"license", info->license, false},
                 {"created", info->created, false},
                 {"source_digest", info->source_digest, false}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bool found = false;
        const moesim_code code = moesim_h5_attr_text(&t->file, texts[i].name, texts[i].out, &found, err);
        if (code != MOESIM_OK)
            return code;
        if (!found && texts[i].required)
            return missing(t, texts[i].name, err);
    }
    info->gate_unnormalised =
        strstr(info->gate_kind, "unnormalised") != NULL || strstr(info->gate_kind, "unnormalized") != NULL;
    return MOESIM_OK;
}

moesim_code moesim_reader_header(moesim_trace *trace, moesim_error *err)
{
    moesim_trace_info *info = &trace->info;
    const struct {
        const char *name;
        uint64_t *out;
    } numbers[] = {{"hidden_size", &info->hidden_size},
                   {"expert_intermediate_size", &info->expert_intermediate_size},
                   {"shared_experts", &info->shared_experts}};
    bool found = false;
    moesim_code code = read_identity(trace, err);
    if (code == MOESIM_OK)
        code = read_sizes(trace, err);
    if (code == MOESIM_OK)
        code = read_texts(trace, err);
    for (size_t i = 0; code == MOESIM_OK && i < sizeof numbers / sizeof numbers[0]; i++)
        code = moesim_h5_attr_u64(&trace->file, numbers[i].name, numbers[i].out, &found, err);
    if (code == MOESIM_OK)
        code = moesim_h5_attr_real(&trace->file, "commit_threshold", &info->commit_threshold, &found, err);
    return code;
}

/* ---- shapes -------------------------------------------------------------------------------------------------------- */

static moesim_code expect(const moesim_trace *t, const moesim_h5_dataset *d, uint32_t i, uint64_t want, const char *of,
                          moesim_error *err)
{
    if (d->id < 0 || d->dim[i] == want)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: dimension %u of %s is %llu, but %s is %llu", t->info.path, i, d->name,
                       (unsigned long long)d->dim[i], of, (unsigned long long)want);
}

/* The same for the length of a column, which a recorder that was killed may have left unlike. */
static moesim_code expect_length(const moesim_trace *t, const moesim_h5_dataset *d, uint64_t want, const char *of,
                                 moesim_error *err)
{
    return t->salvage ? MOESIM_OK : expect(t, d, 0, want, of, err);
}

/* Salvage: the shortest column tells how many entries the trace has at most. */
static void note_length(const moesim_trace *t, const moesim_h5_dataset *d, uint64_t length, uint64_t *least, uint64_t *most)
{
    if (!t->salvage || d->id < 0)
        return;
    *least = length < *least ? length : *least;
    *most = length > *most ? length : *most;
}

#define BIT(kind) (1u << (kind))

static moesim_code open_rows(moesim_trace *t, moesim_error *err)
{
    moesim_trace_info *info = &t->info;
    const bool none = strcmp(info->confidence_kind, "none") == 0;
    const struct {
        const char *name;
        uint32_t types, rank;
        bool required;
        uint64_t last;           /* of rank 3 */
        const char *last_name;
        bool *has;
    } rows[MOESIM_ROW_COLUMNS] = {
        {"/routing/expert", BIT(MOESIM_H5_U16), 3, true, info->top_k, "top_k", NULL},
        {"/routing/gate", BIT(MOESIM_H5_F16) | BIT(MOESIM_H5_F32), 3, false, info->top_k, "top_k", &info->has_gate},
        {"/token/confidence", BIT(MOESIM_H5_F16), 1, !none, 0, NULL, &info->has_confidence},
        {"/token/state", BIT(MOESIM_H5_U8), 1, true, 0, NULL, NULL},
        {"/token/position", BIT(MOESIM_H5_I32), 1, true, 0, NULL, NULL},
        {"/routing/router_prob", BIT(MOESIM_H5_F16), 3, false, info->num_experts, "num_experts", &info->has_prob},
        {"/token/id", BIT(MOESIM_H5_I32), 1, false, 0, NULL, &info->has_token_id},
        {"/observed/residency", BIT(MOESIM_H5_U8), 3, false, info->top_k, "top_k", &info->has_residency},
    };
    for (int i = 0; i < MOESIM_ROW_COLUMNS; i++) {
        moesim_h5_dataset *d = &t->row[i];
        moesim_code code = (rows[i].required ? moesim_h5_dataset_open : moesim_h5_dataset_open_optional)(
            &t->file, rows[i].name, rows[i].types, rows[i].rank, d, err);
        if (code == MOESIM_OK)
            code = expect_length(t, d, t->row[0].dim[0], "the number of rows in /routing/expert", err);
        if (code == MOESIM_OK && rows[i].rank == 3)
            code = expect(t, d, 1, info->num_layers, "num_moe_layers", err);
        if (code == MOESIM_OK && rows[i].rank == 3)
            code = expect(t, d, 2, rows[i].last, rows[i].last_name, err);
        if (code != MOESIM_OK)
            return code;
        if (rows[i].has != NULL)
            *rows[i].has = d->id >= 0;
        if (i == 0)
            info->num_rows = d->dim[0];
        note_length(t, d, d->dim[0], &info->num_rows, &t->found_rows);
    }
    info->gate_is_f32 = info->has_gate && t->row[1].kind == MOESIM_H5_F32;
    info->has_confidence_values = info->has_confidence && !none;
    return MOESIM_OK;
}

static moesim_code open_passes(moesim_trace *t, moesim_error *err)
{
    static const struct {
        const char *name;
        enum moesim_h5_type type;
        bool required;
    } columns[MOESIM_PASS_COLUMNS] = {
        {"/pass/row_offset", MOESIM_H5_U64, true}, {"/pass/kind", MOESIM_H5_U8, true},
        {"/pass/request", MOESIM_H5_U32, true},    {"/pass/block", MOESIM_H5_I32, true},
        {"/pass/step", MOESIM_H5_I32, true},       {"/pass/forward", MOESIM_H5_U64, false},
        {"/observed/pass_ns", MOESIM_H5_U64, false},
    };
    for (int i = 0; i < MOESIM_PASS_COLUMNS; i++) {
        moesim_h5_dataset *d = &t->pass[i].dataset;
        moesim_code code = (columns[i].required ? moesim_h5_dataset_open : moesim_h5_dataset_open_optional)(
            &t->file, columns[i].name, BIT(columns[i].type), 1, d, err);
        if (code == MOESIM_OK && i == MOESIM_PASS_OFFSET && d->dim[0] == 0)
            code = moesim_fail(err, MOESIM_E_FORMAT, "%s: /pass/row_offset is empty, it has one entry more than passes",
                               t->info.path);
        if (code == MOESIM_OK && i == MOESIM_PASS_OFFSET)
            t->info.num_passes = d->dim[0] - 1;
        else if (code == MOESIM_OK)
            code = expect_length(t, d, t->info.num_passes, "the number of passes (entries of /pass/row_offset less one)", err);
        if (code != MOESIM_OK)
            return code;
        note_length(t, d, i == MOESIM_PASS_OFFSET ? d->dim[0] - 1 : d->dim[0], &t->info.num_passes, &t->found_passes);
    }
    t->info.has_forward = t->pass[MOESIM_PASS_FORWARD].dataset.id >= 0;
    t->info.has_pass_ns = t->pass[MOESIM_PASS_NS].dataset.id >= 0;
    return MOESIM_OK;
}

/* A small dataset of known length, whole. */
static moesim_code read_small(moesim_trace *t, const char *name, enum moesim_h5_type type, uint64_t n, const char *of,
                              void *out, bool *found, moesim_error *err)
{
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    moesim_code code = (found != NULL ? moesim_h5_dataset_open_optional : moesim_h5_dataset_open)(
        &t->file, name, BIT(type), 1, &column.dataset, err);
    if (found != NULL)
        *found = code == MOESIM_OK && column.dataset.id >= 0;
    if (code == MOESIM_OK)
        code = expect(t, &column.dataset, 0, n, of, err);
    if (code == MOESIM_OK && column.dataset.id >= 0)
        code = moesim_h5_column_read(&column, t->decoder, 0, n, out, err);
    moesim_h5_column_close(&column);
    return code;
}

/* Sums of bytes are kept in 64 bits: 2^34 bytes leave room for a million events that miss 1024 experts each. */
#define MOST_EXPERT_BYTES (UINT64_C(1) << 34)

static moesim_code check_expert_bytes(const moesim_trace *t, moesim_error *err)
{
    for (uint32_t l = 0; l < t->info.num_layers; l++)
        if (t->expert_bytes[l] < 1 || t->expert_bytes[l] > MOST_EXPERT_BYTES)
            return moesim_fail(err, MOESIM_E_FORMAT,
                               "%s: /model/expert_bytes[%u] is %llu; an expert has 1 to 2^34 bytes. Write the bytes of one "
                               "routed expert as stored for transfer",
                               t->info.path, l, (unsigned long long)t->expert_bytes[l]);
    return MOESIM_OK;
}

moesim_code moesim_reader_shapes(moesim_trace *trace, moesim_error *err)
{
    moesim_trace_info *info = &trace->info;
    const uint32_t m = info->num_layers;
    void *ids = NULL, *bytes = NULL;
    moesim_code code = moesim_alloc(m, sizeof(int32_t), "/model/moe_layer_id", &ids, err);
    trace->layer_ids = ids;
    if (code == MOESIM_OK)
        code = moesim_alloc(m, sizeof(uint64_t), "/model/expert_bytes", &bytes, err);
    trace->expert_bytes = bytes;
    if (code == MOESIM_OK)
        code = read_small(trace, "/model/moe_layer_id", MOESIM_H5_I32, m, "num_moe_layers", ids, NULL, err);
    if (code == MOESIM_OK)
        code = read_small(trace, "/model/expert_bytes", MOESIM_H5_U64, m, "num_moe_layers", bytes, NULL, err);
    if (code == MOESIM_OK)
        code = check_expert_bytes(trace, err);
    if (code == MOESIM_OK)
        code = read_small(trace, "/model/resident_bytes", MOESIM_H5_U64, 1, "its length by the format",
                          &info->resident_bytes, &info->has_resident_bytes, err);
    if (code == MOESIM_OK)
        code = open_rows(trace, err);
    if (code == MOESIM_OK)
        code = open_passes(trace, err);
    return code;
}
