/* SPDX-License-Identifier: Apache-2.0
 *
 * Result files: one HDF5 file with plain columns, one row a cell, and tables per request and per layer, beside the whole
 * configuration, digests, versions and seed. The contract between sweeps and everything that is built on results (plots,
 * compare, merge): readable with h5py or pandas in three lines. Byte-stable. sim/RESULT.md is the format.
 */
#ifndef MOESIM_SIM_RESULT_H
#define MOESIM_SIM_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_RESULT_FORMAT "moesim-result"
#define MOESIM_RESULT_VERSION 1u

/* A column: exactly one of the arrays is set; `n` of its table. Names are the JSON and CSV keys. Strings are NUL-ended. */
typedef struct moesim_column_data {
    char name[64];
    char unit[16];
    double *real;
    int64_t *integer;
    char **text;
} moesim_column_data;

/* A table: /cells, /requests (cell, request, …) or /layers (cell, layer, …). */
typedef struct moesim_table {
    char name[32];
    size_t rows, num_columns;
    moesim_column_data *column;
} moesim_table;

/* In memory. attribute: /config and root attributes as text (format, version, kind "sweep", config as JSON, versions, trace
 * digests and models, profile name, label and digest, seed, "priced_as", shard "i/n"). Owned; fini frees everything. */
typedef struct moesim_attribute { char name[64]; char *text; } moesim_attribute;
typedef struct moesim_result {
    size_t num_attributes, num_tables;
    moesim_attribute *attribute;
    moesim_table *table;
} moesim_result;

void moesim_result_init(moesim_result *r);
void moesim_result_fini(moesim_result *r);

/* Building. Text is copied. */
moesim_code moesim_result_set(moesim_result *r, const char *name, const char *text, moesim_error *err);
moesim_code moesim_result_table(moesim_result *r, const char *name, size_t rows, moesim_table **out, moesim_error *err);
moesim_code moesim_table_reals(moesim_table *t, const char *name, const char *unit, double **out, moesim_error *err);
moesim_code moesim_table_integers(moesim_table *t, const char *name, const char *unit, int64_t **out, moesim_error *err);
moesim_code moesim_table_texts(moesim_table *t, const char *name, char ***out, moesim_error *err);
moesim_code moesim_table_text(moesim_table *t, char **column, size_t row, const char *text, moesim_error *err);

/* Reading. NULL where absent. */
const char *moesim_result_get(const moesim_result *r, const char *name);
const moesim_table *moesim_result_find(const moesim_result *r, const char *table);
const moesim_column_data *moesim_table_find(const moesim_table *t, const char *column);

/* Files. Written under a temporary name; read as untrusted input (same guards as a trace), versions checked. */
moesim_code moesim_result_write(const moesim_result *r, const char *path, moesim_error *err);
moesim_code moesim_result_read(const char *path, moesim_result *out, moesim_error *err);

/* Same configuration? Fills the names of the attributes that differ into `difference` (text for a message). */
moesim_code moesim_result_same(const moesim_result *a, const moesim_result *b, char *difference, size_t bytes);

#endif
