/* SPDX-License-Identifier: Apache-2.0
 *
 * Result files: one HDF5 file with plain columns, one row a cell, and tables per request and per layer, beside the whole
 * configuration, digests, versions and seed. The contract between sweeps and everything that is built on results (plots,
 * compare, merge): readable with h5py or pandas in three lines. Byte-stable. sim/RESULT.md is the format.
 *
 * Names of attributes, tables and columns are identifiers: a letter or '_', then letters, digits and '_'. Text has no control
 * characters (they become '?') and ends at its first zero, so that what is read equals what was set.
 * Thread safety: one result belongs to one thread at a time.
 */
#ifndef MOESIM_SIM_RESULT_H
#define MOESIM_SIM_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_RESULT_FORMAT "moesim-result"
#define MOESIM_RESULT_VERSION 1u

#define MOESIM_RESULT_TABLES 16u
#define MOESIM_RESULT_COLUMNS 512u                       /* of one table */
#define MOESIM_RESULT_ATTRIBUTES 64u
#define MOESIM_RESULT_ATTRIBUTE_BYTES ((size_t)1 << 20)  /* of one attribute */
#define MOESIM_RESULT_TEXT_BYTES 4096u                   /* of one text in a column, the final zero included */
#define MOESIM_RESULT_BYTES (UINT64_C(2) << 30)          /* of all columns and texts, in memory */

/* A column: exactly one of the arrays is set; `n` of its table. Names are the JSON and CSV keys. Texts are NUL-ended, never
 * NULL, and shared: equal texts of one result are one pointer, so they must not be written to or freed. */
typedef struct moesim_column_data {
    char name[64];
    char unit[16];               /* "" for text and plain numbers; "ms", "GB/s", "bytes" */
    double *real;                /* NaN where undefined */
    int64_t *integer;
    char **text;
} moesim_column_data;

/* A table: /cells, /requests (cell, request, …) or /layers (cell, layer, …). A new column is filled with NaN, 0 or "". Pointers
 * to a moesim_column_data hold until the table gets another column, its arrays for as long as the result. */
typedef struct moesim_table {
    char name[32];
    size_t rows, num_columns;
    moesim_column_data *column;
    struct moesim_result_pool *pool;     /* of the result: texts */
} moesim_table;

/* In memory. attribute: the root attributes as text (kind "sweep", config as JSON, versions, trace digests and models, profile
 * name, label and digest, seed, "priced_as", shard), in order. What the writer adds by itself is not among them: format,
 * format_version, the lists of names, complete. Owned; fini frees everything. */
typedef struct moesim_attribute { char name[64]; char *text; } moesim_attribute;
typedef struct moesim_result {
    size_t num_attributes, num_tables;
    moesim_attribute *attribute;
    moesim_table *table;
    struct moesim_result_pool *pool;
} moesim_result;

void moesim_result_init(moesim_result *r);
void moesim_result_fini(moesim_result *r);           /* leaves it as after init */

/* Building. Text is copied. set replaces; NULL removes the attribute. A name that is taken or is no identifier is
 * MOESIM_E_INTERNAL, more than a limit above MOESIM_E_LIMIT. Tables keep their place: *out holds as long as the result. */
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

/* Files. Written under a temporary name; read as untrusted input (same guards as a trace), versions checked. out need not be
 * initialised and is empty on an error. */
moesim_code moesim_result_write(const moesim_result *r, const char *path, moesim_error *err);
moesim_code moesim_result_read(const char *path, moesim_result *out, moesim_error *err);

/* Reads a file of `moesim trace stats -o` too: attribute kind "stats", model_id, engine, dataset, trace_digest and the numbers
 * of its header; tables overlap (by lag), boundary (one row), persistence (by lag), stability (by bin of confidence, with
 * masked_full and all_full, the samples that kept all K ids) and activation (by layer). */
moesim_code moesim_result_read_any(const char *path, moesim_result *out, moesim_error *err);

/* Same configuration? All attributes but `shard` are compared. MOESIM_OK with difference "" where all are equal; else
 * MOESIM_E_USAGE, and `difference` names the attributes that differ with both values (long ones around the first difference),
 * as text for a message, at most `bytes`. */
moesim_code moesim_result_same(const moesim_result *a, const moesim_result *b, char *difference, size_t bytes);

/* Union of results of one configuration into *out (which need not be initialised; empty on an error). Rows are ordered by the
 * integer column `cell`, the index of the cell in the whole grid, and within a cell as they were; a table without that column
 * must be the same everywhere. A cell that several results have must have the same rows in all of them. path[n] for messages.
 * Attribute shard, "i/n" with 1 ≤ i ≤ n (after an incomplete merge "1,3/4"), becomes the union, and is dropped once all are
 * there. Errors: MOESIM_E_USAGE, nothing is merged. */
moesim_code moesim_result_merge(const moesim_result *r, const char *const *path, size_t n, moesim_result *out,
                                moesim_error *err);

#endif
