/* SPDX-License-Identifier: Apache-2.0
 *
 * What `moesim trace stats -o` writes, as tables of a result: a group becomes a table, as far as its datasets are known and
 * have the table's number of rows. Untrusted as any other file.
 */
#include "sim/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "traces/h5.h"

#define STATS_FORMAT "moesim-stats"
#define STATS_VERSION 1u
#define MAX_ROWS 65536u          /* experts or layers; lags and bins are ten each */

static const char *const texts[] = { "model_id", "engine", "dataset", "trace_digest", NULL };
static const char *const numbers[] = { "num_moe_layers", "num_experts", "top_k", "block_length", "num_requests",
                                       "decode_passes", "committed", NULL };

/* Tables with their columns; the first column sets the number of rows. masked_level and all_level hold all bins one after the
 * other and become the columns masked_full and all_full: samples that kept all K ids. */
static const struct stats_table {
    const char *name;
    const char *column[12];
} tables[] = {
    { "overlap", { "lag", "over_new", "over_new_n", "over_old", "over_old_n" } },
    { "boundary", { "over_new", "over_new_n", "over_old", "over_old_n" } },
    { "persistence", { "all", "all_n", "masked", "masked_n", "just_committed", "just_committed_n", "long_committed",
                       "long_committed_n" } },
    { "stability", { "confidence", "masked_n", "masked_kept", "all_n", "all_kept" } },
    { "activation", { "layer_sum" } },
};

typedef struct stats_reader {
    const moesim_h5_file *file;
    moesim_decoder *decoder;
    moesim_result *result;
} stats_reader;

static moesim_code read_texts(const stats_reader *r, moesim_error *err)
{
    char text[256];
    bool found = false;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && texts[i] != NULL; i++) {
        code = moesim_h5_attr_text(r->file, texts[i], text, &found, err);
        if (code == MOESIM_OK && found)
            code = moesim_result_set(r->result, texts[i], text, err);
    }
    return code;
}

static moesim_code read_numbers(const stats_reader *r, uint64_t *top_k, moesim_error *err)
{
    char text[32];
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && numbers[i] != NULL; i++) {
        uint64_t value = 0;
        bool found = false;
        code = moesim_h5_attr_u64(r->file, numbers[i], &value, &found, err);
        (void)snprintf(text, sizeof text, "%" PRIu64, value);
        if (code == MOESIM_OK && found)
            code = moesim_result_set(r->result, numbers[i], text, err);
        if (strcmp(numbers[i], "top_k") == 0)
            *top_k = value;
    }
    return code;
}

static moesim_code read_head(const stats_reader *r, uint64_t *top_k, moesim_error *err)
{
    bool found = false;
    uint64_t value = 0;
    moesim_code code = moesim_h5_attr_u64(r->file, "format_version", &value, &found, err);
    if (code == MOESIM_OK && value != STATS_VERSION)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: format version %" PRIu64 " of statistics, this program reads version %u; "
                           "run `moesim trace stats` of this version again", r->file->path, value, STATS_VERSION);
    if (code == MOESIM_OK)
        code = moesim_result_set(r->result, "kind", "stats", err);
    if (code == MOESIM_OK)
        code = read_texts(r, err);
    if (code == MOESIM_OK)
        code = read_numbers(r, top_k, err);
    if (code == MOESIM_OK && (*top_k < 1 || *top_k > 64))
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute top_k is %" PRIu64 ", not 1 to 64", r->file->path, *top_k);
    return code;
}
/* Opens a dataset of one dimension with exactly *rows rows (0: any, which are stored). */
static moesim_code open_rows(const stats_reader *r, const char *path, uint64_t *rows, moesim_h5_column *out, moesim_error *err)
{
    const moesim_code code = moesim_h5_dataset_open(r->file, path, 1u << MOESIM_H5_F64 | 1u << MOESIM_H5_U64, 1, &out->dataset,
                                                    err);
    if (code != MOESIM_OK)
        return code;
    const uint64_t n = out->dataset.dim[0];
    if (n == 0 || n > MAX_ROWS || (*rows != 0 && n != *rows))
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: %s has %" PRIu64 " rows, which is not what `moesim trace stats` writes",
                           r->file->path, path, n);
    *rows = n;
    return MOESIM_OK;
}

/* Counts stay below 2^63; a file that says otherwise is wrong. */
static moesim_code read_counts(const stats_reader *r, moesim_h5_column *c, moesim_table *t, const char *name, moesim_error *err)
{
    int64_t *integer = NULL;
    uint64_t value = 0;
    moesim_code code = moesim_table_integers(t, name, "", &integer, err);
    for (size_t i = 0; code == MOESIM_OK && i < t->rows; i++) {
        code = moesim_h5_column_read(c, r->decoder, i, 1, &value, err);
        if (code == MOESIM_OK && value > INT64_MAX)
            code = moesim_fail(err, MOESIM_E_FORMAT, "%s: %s[%zu] is no count", r->file->path, c->dataset.name, i);
        integer[i] = (int64_t)value;
    }
    return code;
}

static moesim_code read_column(const stats_reader *r, const char *path, const char *name, moesim_table *t, moesim_error *err)
{
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    uint64_t rows = t->rows;
    double *real = NULL;
    moesim_code code = open_rows(r, path, &rows, &column, err);
    if (code == MOESIM_OK && column.dataset.kind == MOESIM_H5_U64) {
        code = read_counts(r, &column, t, name, err);
    } else if (code == MOESIM_OK) {
        code = moesim_table_reals(t, name, "", &real, err);
        if (code == MOESIM_OK)
            code = moesim_h5_column_read(&column, r->decoder, 0, rows, real, err);
    }
    moesim_h5_column_close(&column);
    return code;
}

/* A dataset of table boundary has its place in group overlap. */
static void place_of(const struct stats_table *t, size_t column, char out[96])
{
    const bool boundary = strcmp(t->name, "boundary") == 0;
    (void)snprintf(out, 96, "/%s/%s%s", boundary ? "overlap" : t->name, boundary ? "boundary_" : "", t->column[column]);
}

static moesim_code count_rows(const stats_reader *r, const char *path, uint64_t *rows, moesim_error *err)
{
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    const moesim_code code = open_rows(r, path, rows, &column, err);
    moesim_h5_column_close(&column);
    return code;
}

static moesim_code read_table(const stats_reader *r, const struct stats_table *spec, moesim_table **out, moesim_error *err)
{
    char path[96];
    uint64_t rows = 0;
    place_of(spec, 0, path);
    moesim_code code = count_rows(r, path, &rows, err);
    if (code == MOESIM_OK)
        code = moesim_result_table(r->result, spec->name, (size_t)rows, out, err);
    for (size_t k = 0; code == MOESIM_OK && k < sizeof spec->column / sizeof spec->column[0] && spec->column[k] != NULL; k++) {
        place_of(spec, k, path);
        code = read_column(r, path, spec->column[k], *out, err);
    }
    return code;
}

static moesim_code read_full(const stats_reader *r, const char *path, const char *name, uint64_t top_k, moesim_table *t,
                             moesim_error *err)
{
    moesim_h5_column column = MOESIM_H5_COLUMN_INIT;
    uint64_t rows = t->rows * (top_k + 1), value = 0;
    int64_t *full = NULL;
    moesim_code code = open_rows(r, path, &rows, &column, err);
    if (code == MOESIM_OK)
        code = moesim_table_integers(t, name, "", &full, err);
    if (code == MOESIM_OK && column.dataset.kind != MOESIM_H5_U64)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s: %s holds no counts", r->file->path, path);
    for (size_t i = 0; code == MOESIM_OK && i < t->rows; i++) {
        code = moesim_h5_column_read(&column, r->decoder, i * (top_k + 1) + top_k, 1, &value, err);
        full[i] = (int64_t)(value < INT64_MAX ? value : INT64_MAX);
    }
    moesim_h5_column_close(&column);
    return code;
}

static moesim_code read_all(const stats_reader *r, moesim_error *err)
{
    uint64_t top_k = 0;
    moesim_table *t = NULL;
    moesim_code code = read_head(r, &top_k, err);
    for (size_t i = 0; code == MOESIM_OK && i < sizeof tables / sizeof tables[0]; i++) {
        code = read_table(r, &tables[i], &t, err);
        if (code != MOESIM_OK || strcmp(tables[i].name, "stability") != 0)
            continue;
        code = read_full(r, "/stability/masked_level", "masked_full", top_k, t, err);
        if (code == MOESIM_OK)
            code = read_full(r, "/stability/all_level", "all_full", top_k, t, err);
    }
    return code;
}

/* Is it a whole file of statistics? What cannot be opened is left to moesim_result_read, which says why. */
static bool is_stats(const moesim_h5_file *file)
{
    char format[256];
    bool found = false;
    uint64_t complete = 0;
    return moesim_h5_attr_text(file, "format", format, &found, NULL) == MOESIM_OK && found &&
           strcmp(format, STATS_FORMAT) == 0 &&
           moesim_h5_attr_u64(file, "complete", &complete, &found, NULL) == MOESIM_OK && complete == 1;
}

moesim_code moesim_result_read_any(const char *path, moesim_result *out, moesim_error *err)
{
    moesim_h5_file file = { .id = -1 };
    moesim_result_init(out);
    const bool stats = moesim_h5_open(path, false, &file, NULL) == MOESIM_OK && is_stats(&file);
    moesim_code code = MOESIM_OK;
    if (stats) {
        stats_reader r = { .file = &file, .result = out };
        code = moesim_decoder_create(&r.decoder, err);
        if (code == MOESIM_OK)
            code = read_all(&r, err);
        moesim_decoder_destroy(&r.decoder);
        if (code != MOESIM_OK)
            moesim_result_fini(out);
    }
    moesim_h5_close(&file);
    return stats ? code : moesim_result_read(path, out, err);
}
