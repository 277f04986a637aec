/* SPDX-License-Identifier: Apache-2.0
 *
 * The union of results of one configuration: shards, or parts of a grid that were run apart.
 */
#include "sim/result.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/options.h"
#include "sim/result_pool.h"

#define MAX_SHARDS 4096u

typedef struct inputs {
    const moesim_result *result;
    const char *const *path;
    size_t n;
} inputs;

/* ---- shards -------------------------------------------------------------------------------------------------------- */

typedef struct shard_set {
    bool have[MAX_SHARDS + 1];   /* from 1 */
    uint64_t of;                 /* 0: none read yet */
    bool whole;                  /* a result that is no shard took part */
} shard_set;

static moesim_code bad_shard(const char *path, const char *text, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute shard is \"%.64s\"; it must be \"i/n\" with 1 ≤ i ≤ n ≤ %u", path,
                       text, MAX_SHARDS);
}

/* "2/4" or "1,3/4". */
static moesim_code read_shard(const char *path, const char *text, shard_set *set, moesim_error *err)
{
    char list[8 * MAX_SHARDS], *rest = list;
    const char *slash = strchr(text, '/');
    uint64_t of = 0;
    if (slash == NULL || (size_t)(slash - text) >= sizeof list ||
        moesim_parse_u64(slash + 1, 1, MAX_SHARDS, "shards", &of, NULL) != MOESIM_OK)
        return bad_shard(path, text, err);
    if (set->of != 0 && set->of != of)
        return moesim_fail(err, MOESIM_E_USAGE, "%s is a shard of %" PRIu64 ", the results before it are shards of %" PRIu64
                           "; shards of different divisions cannot be merged", path, of, set->of);
    set->of = of;
    memcpy(list, text, (size_t)(slash - text));
    list[slash - text] = '\0';
    while (rest != NULL) {
        uint64_t i = 0;
        if (moesim_parse_u64(strsep(&rest, ","), 1, of, "shard", &i, NULL) != MOESIM_OK)
            return bad_shard(path, text, err);
        set->have[i] = true;
    }
    return MOESIM_OK;
}

/* The union as text; "" where the result is whole. */
static void print_shards(const shard_set *set, char *out, size_t bytes)
{
    size_t used = 0, missing = 0;
    out[0] = '\0';
    for (uint64_t i = 1; i <= set->of; i++) {
        if (set->have[i])
            used += (size_t)snprintf(out + used, bytes - used, "%s%" PRIu64, used > 0 ? "," : "", i);
        missing += !set->have[i];
    }
    if (missing > 0 && !set->whole)
        (void)snprintf(out + used, bytes - used, "/%" PRIu64, set->of);
    else
        out[0] = '\0';
}

static moesim_code merge_shards(const inputs *in, moesim_result *out, moesim_error *err)
{
    shard_set set = {.of = 0};
    char text[8 * MAX_SHARDS];
    for (size_t i = 0; i < in->n; i++) {
        const char *shard = moesim_result_get(&in->result[i], "shard");
        set.whole = set.whole || shard == NULL;
        const moesim_code code = shard != NULL ? read_shard(in->path[i], shard, &set, err) : MOESIM_OK;
        if (code != MOESIM_OK)
            return code;
    }
    print_shards(&set, text, sizeof text);
    return moesim_result_set(out, "shard", text[0] != '\0' ? text : NULL, err);
}

/* ---- same configuration, same tables ------------------------------------------------------------------------------- */

static const char *kind_of(const moesim_column_data *c)
{
    return c->real != NULL ? "float64" : c->integer != NULL ? "int64" : "text";
}

static moesim_code check_table(const inputs *in, size_t i, const moesim_table *a, const moesim_table *b, moesim_error *err)
{
    if (b == NULL || a->num_columns != b->num_columns)
        return moesim_fail(err, MOESIM_E_USAGE, "%s and %s cannot be merged: table %s has %zu columns in the first and %zu in "
                           "the second", in->path[0], in->path[i], a->name, a->num_columns, b != NULL ? b->num_columns : 0);
    for (size_t k = 0; k < a->num_columns; k++) {
        const moesim_column_data *x = &a->column[k], *y = &b->column[k];
        if (strcmp(x->name, y->name) != 0 || strcmp(x->unit, y->unit) != 0 || strcmp(kind_of(x), kind_of(y)) != 0)
            return moesim_fail(err, MOESIM_E_USAGE, "%s and %s cannot be merged: column %zu of table %s is %s (%s, unit "
                               "\"%s\") in the first and %s (%s, unit \"%s\") in the second", in->path[0], in->path[i], k,
                               a->name, x->name, kind_of(x), x->unit, y->name, kind_of(y), y->unit);
    }
    return MOESIM_OK;
}

static moesim_code check_inputs(const inputs *in, moesim_error *err)
{
    char difference[700];
    const moesim_result *a = &in->result[0];
    for (size_t i = 1; i < in->n; i++) {
        const moesim_result *b = &in->result[i];
        if (moesim_result_same(a, b, difference, sizeof difference) != MOESIM_OK)
            return moesim_fail(err, MOESIM_E_USAGE, "%s and %s have different configurations and cannot be merged: %s",
                               in->path[0], in->path[i], difference);
        if (a->num_tables != b->num_tables)
            return moesim_fail(err, MOESIM_E_USAGE, "%s and %s cannot be merged: they have %zu and %zu tables", in->path[0],
                               in->path[i], a->num_tables, b->num_tables);
        for (size_t t = 0; t < a->num_tables; t++) {
            const moesim_code code = check_table(in, i, &a->table[t], moesim_result_find(b, a->table[t].name), err);
            if (code != MOESIM_OK)
                return code;
        }
    }
    return MOESIM_OK;
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

typedef struct entry {
    int64_t cell;
    size_t input, row;
} entry;

static int by_cell(const void *x, const void *y)
{
    const entry *a = x, *b = y;
    if (a->cell != b->cell)
        return a->cell < b->cell ? -1 : 1;
    if (a->input != b->input)
        return a->input < b->input ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* One table of all inputs, and its rows. */
typedef struct merging {
    const inputs *in;
    const moesim_table **table;  /* [in->n] */
    entry *entry;
    size_t entries;
} merging;

static void value_text(const moesim_column_data *c, size_t row, char out[64])
{
    if (c->real != NULL)
        (void)snprintf(out, 64, "%.17g", c->real[row]);
    else if (c->integer != NULL)
        (void)snprintf(out, 64, "%" PRId64, c->integer[row]);
    else
        (void)snprintf(out, 64, "\"%.60s\"", c->text[row]);
}

/* Bit by bit, so that undefined equals undefined. */
static bool same_value(const moesim_column_data *a, size_t i, const moesim_column_data *b, size_t j)
{
    if (a->real != NULL)
        return memcmp(&a->real[i], &b->real[j], sizeof a->real[i]) == 0;
    return a->integer != NULL ? a->integer[i] == b->integer[j] : strcmp(a->text[i], b->text[j]) == 0;
}

static moesim_code compare_rows(const merging *m, const entry *a, const entry *b, moesim_error *err)
{
    const moesim_table *x = m->table[a->input], *y = m->table[b->input];
    char left[64], right[64];
    for (size_t k = 0; k < x->num_columns; k++) {
        if (same_value(&x->column[k], a->row, &y->column[k], b->row))
            continue;
        value_text(&x->column[k], a->row, left);
        value_text(&y->column[k], b->row, right);
        return moesim_fail(err, MOESIM_E_USAGE, "%s and %s both have cell %" PRId64 " and disagree on it: column %s of table "
                           "%s is %s in row %zu of the first and %s in row %zu of the second", m->in->path[a->input],
                           m->in->path[b->input], a->cell, x->column[k].name, x->name, left, a->row, right, b->row);
    }
    return MOESIM_OK;
}

static size_t run_length(const merging *m, size_t first)
{
    size_t i = first;
    while (i < m->entries && m->entry[i].cell == m->entry[first].cell && m->entry[i].input == m->entry[first].input)
        i++;
    return i - first;
}

/* Keeps the first input's rows of every cell, in place; the rows of the others must be the same. */
static moesim_code unite(merging *m, moesim_error *err)
{
    size_t kept = 0, first = 0, rows = 0;    /* first, rows: of the last kept cell */
    for (size_t i = 0, n; i < m->entries; i += n) {
        n = run_length(m, i);
        if (kept == 0 || m->entry[first].cell != m->entry[i].cell) {
            memmove(&m->entry[kept], &m->entry[i], n * sizeof m->entry[0]);
            first = kept;
            rows = n;
            kept += n;
            continue;
        }
        if (n != rows)
            return moesim_fail(err, MOESIM_E_USAGE, "%s and %s both have cell %" PRId64 " and disagree on it: table %s has %zu "
                               "rows of it in the first and %zu in the second", m->in->path[m->entry[first].input],
                               m->in->path[m->entry[i].input], m->entry[i].cell, m->table[0]->name, rows, n);
        for (size_t k = 0; k < n; k++) {
            const moesim_code code = compare_rows(m, &m->entry[first + k], &m->entry[i + k], err);
            if (code != MOESIM_OK)
                return code;
        }
    }
    m->entries = kept;
    return MOESIM_OK;
}

static moesim_code copy_column(const merging *m, size_t k, moesim_table *out, moesim_error *err)
{
    const moesim_column_data *like = &m->table[0]->column[k];
    double *real = NULL;
    int64_t *integer = NULL;
    char **text = NULL;
    moesim_code code = like->real != NULL      ? moesim_table_reals(out, like->name, like->unit, &real, err)
                       : like->integer != NULL ? moesim_table_integers(out, like->name, like->unit, &integer, err)
                                               : moesim_table_texts(out, like->name, &text, err);
    for (size_t i = 0; code == MOESIM_OK && i < m->entries; i++) {
        const moesim_column_data *c = &m->table[m->entry[i].input]->column[k];
        const size_t row = m->entry[i].row;
        if (real != NULL)
            real[i] = c->real[row];
        else if (integer != NULL)
            integer[i] = c->integer[row];
        else
            code = moesim_table_text(out, text, i, c->text[row], err);
    }
    return code;
}

static moesim_code list_rows(merging *m, moesim_error *err)
{
    size_t total = 0, at = 0;
    void *p = NULL;
    for (size_t i = 0; i < m->in->n; i++)
        total += m->table[i]->rows;
    const moesim_code code = moesim_alloc(total, sizeof *m->entry, "rows to merge", &p, err);
    m->entry = p;
    for (size_t i = 0; code == MOESIM_OK && i < m->in->n; i++) {
        const moesim_column_data *cell = moesim_table_find(m->table[i], "cell");
        for (size_t row = 0; row < m->table[i]->rows; row++)
            m->entry[at++] = (entry){cell != NULL && cell->integer != NULL ? cell->integer[row] : 0, i, row};
    }
    m->entries = at;
    return code;
}

static moesim_code merge_table(const inputs *in, const moesim_table **scratch, size_t t, moesim_result *out, moesim_error *err)
{
    merging m = {.in = in, .table = scratch};
    moesim_table *table = NULL;
    for (size_t i = 0; i < in->n; i++)
        m.table[i] = moesim_result_find(&in->result[i], in->result[0].table[t].name);
    moesim_code code = list_rows(&m, err);
    if (code == MOESIM_OK) {
        qsort(m.entry, m.entries, sizeof m.entry[0], by_cell);
        code = unite(&m, err);
    }
    if (code == MOESIM_OK)
        code = moesim_result_table(out, m.table[0]->name, m.entries, &table, err);
    for (size_t k = 0; code == MOESIM_OK && k < m.table[0]->num_columns; k++)
        code = copy_column(&m, k, table, err);
    free(m.entry);
    return code;
}

moesim_code moesim_result_merge(const moesim_result *r, const char *const *path, size_t n, moesim_result *out,
                                moesim_error *err)
{
    const inputs in = {r, path, n};
    void *scratch = NULL;
    moesim_result_init(out);
    moesim_code code = n > 0 ? check_inputs(&in, err) : moesim_fail(err, MOESIM_E_USAGE, "there are no results to merge");
    if (code == MOESIM_OK)
        code = moesim_alloc(n, sizeof(moesim_table *), "results to merge", &scratch, err);
    for (size_t i = 0; code == MOESIM_OK && i < r[0].num_attributes; i++)
        code = moesim_result_set(out, r[0].attribute[i].name, r[0].attribute[i].text, err);
    if (code == MOESIM_OK)
        code = merge_shards(&in, out, err);
    for (size_t t = 0; code == MOESIM_OK && t < r[0].num_tables; t++)
        code = merge_table(&in, scratch, t, out, err);
    free(scratch);
    if (code != MOESIM_OK)
        moesim_result_fini(out);
    return code;
}
