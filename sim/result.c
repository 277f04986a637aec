/* SPDX-License-Identifier: Apache-2.0
 *
 * Results in memory: attributes, tables, columns.
 */
#include "sim/result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "sim/result_pool.h"
#include "traces/h5.h"

void moesim_result_init(moesim_result *r)
{
    *r = (moesim_result){0};
}

void moesim_result_fini(moesim_result *r)
{
    for (size_t i = 0; i < r->num_attributes; i++)
        free(r->attribute[i].text);
    for (size_t i = 0; i < r->num_tables; i++) {
        for (size_t k = 0; k < r->table[i].num_columns; k++) {
            free(r->table[i].column[k].real);
            free(r->table[i].column[k].integer);
            free(r->table[i].column[k].text);
        }
        free(r->table[i].column);
    }
    free(r->attribute);
    free(r->table);
    moesim_result_pool_destroy(&r->pool);
    moesim_result_init(r);
}

static moesim_code check_name(const char *name, size_t room, bool taken, moesim_error *err)
{
    if (!moesim_result_identifier(name, room))
        return moesim_fail(err, MOESIM_E_INTERNAL, "a result cannot name something \"%s\"", name);
    return taken ? moesim_fail(err, MOESIM_E_INTERNAL, "a result has %s twice", name) : MOESIM_OK;
}

/* Room for the n-th entry of an array that never has more than `most`. *array may be NULL. */
static moesim_code reserve(void **array, size_t n, size_t most, size_t each, const char *what, moesim_error *err)
{
    if (n >= most)
        return moesim_fail(err, MOESIM_E_LIMIT, "a result has at most %zu %s", most, what);
    return *array != NULL ? MOESIM_OK : moesim_alloc(most, each, what, array, err);
}

/* ---- attributes ---------------------------------------------------------------------------------------------------- */

static size_t attribute_index(const moesim_result *r, const char *name)
{
    size_t i = 0;
    while (i < r->num_attributes && strcmp(r->attribute[i].name, name) != 0)
        i++;
    return i;
}

static void remove_attribute(moesim_result *r, size_t i)
{
    if (i >= r->num_attributes)
        return;
    free(r->attribute[i].text);
    r->num_attributes--;
    memmove(&r->attribute[i], &r->attribute[i + 1], (r->num_attributes - i) * sizeof r->attribute[0]);
    r->attribute[r->num_attributes] = (moesim_attribute){.text = NULL};
}

static moesim_code clean_copy(const char *name, const char *text, char **out, moesim_error *err)
{
    const size_t length = strlen(text);
    if (length > MOESIM_RESULT_ATTRIBUTE_BYTES)
        return moesim_fail(err, MOESIM_E_LIMIT, "attribute %s of a result has %zu bytes, at most %zu are allowed", name, length,
                           MOESIM_RESULT_ATTRIBUTE_BYTES);
    if ((*out = malloc(length + 1)) == NULL)
        return moesim_fail_nomem(err, name, length + 1);
    moesim_text_clean(text, length, *out, length + 1);
    return MOESIM_OK;
}

moesim_code moesim_result_set(moesim_result *r, const char *name, const char *text, moesim_error *err)
{
    const size_t i = attribute_index(r, name);
    char *copy = NULL;
    if (text == NULL) {
        remove_attribute(r, i);
        return MOESIM_OK;
    }
    moesim_code code = check_name(name, sizeof r->attribute->name, moesim_result_reserved(name), err);
    if (code == MOESIM_OK)
        code = clean_copy(name, text, &copy, err);
    if (code == MOESIM_OK && i == r->num_attributes) {
        void *array = r->attribute;
        code = reserve(&array, i, MOESIM_RESULT_ATTRIBUTES, sizeof *r->attribute, "attributes", err);
        r->attribute = array;
    }
    if (code != MOESIM_OK) {
        free(copy);
        return code;
    }
    if (i == r->num_attributes) {
        (void)snprintf(r->attribute[i].name, sizeof r->attribute[i].name, "%s", name);
        r->num_attributes++;
    }
    free(r->attribute[i].text);
    r->attribute[i].text = copy;
    return MOESIM_OK;
}

const char *moesim_result_get(const moesim_result *r, const char *name)
{
    const size_t i = attribute_index(r, name);
    return i < r->num_attributes ? r->attribute[i].text : NULL;
}

/* ---- tables -------------------------------------------------------------------------------------------------------- */

moesim_code moesim_result_table(moesim_result *r, const char *name, size_t rows, moesim_table **out, moesim_error *err)
{
    void *array = r->table;
    *out = NULL;
    moesim_code code = check_name(name, sizeof r->table->name, moesim_result_find(r, name) != NULL, err);
    if (code == MOESIM_OK && r->pool == NULL)
        code = moesim_result_pool_create(&r->pool, err);
    if (code == MOESIM_OK)
        code = reserve(&array, r->num_tables, MOESIM_RESULT_TABLES, sizeof *r->table, "tables", err);
    r->table = array;
    if (code != MOESIM_OK)
        return code;
    moesim_table *t = &r->table[r->num_tables++];
    *t = (moesim_table){.rows = rows, .pool = r->pool};
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    *out = t;
    return MOESIM_OK;
}

const moesim_table *moesim_result_find(const moesim_result *r, const char *table)
{
    for (size_t i = 0; i < r->num_tables; i++)
        if (strcmp(r->table[i].name, table) == 0)
            return &r->table[i];
    return NULL;
}

const moesim_column_data *moesim_table_find(const moesim_table *t, const char *column)
{
    for (size_t i = 0; i < t->num_columns; i++)
        if (strcmp(t->column[i].name, column) == 0)
            return &t->column[i];
    return NULL;
}

/* A column without its array, which is returned in *data: rows × each bytes. */
static moesim_code add_column(moesim_table *t, const char *name, const char *unit, size_t each, moesim_column_data **out,
                              void **data, moesim_error *err)
{
    void *array = t->column;
    moesim_code code = check_name(name, sizeof t->column->name, moesim_table_find(t, name) != NULL, err);
    if (code == MOESIM_OK && strlen(unit) >= sizeof t->column->unit)
        code = moesim_fail(err, MOESIM_E_INTERNAL, "unit \"%s\" of column %s is too long", unit, name);
    if (code == MOESIM_OK)
        code = reserve(&array, t->num_columns, MOESIM_RESULT_COLUMNS, sizeof *t->column, "columns in a table", err);
    t->column = array;
    if (code == MOESIM_OK)
        code = moesim_result_pool_charge(t->pool, t->rows, each, name, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(t->rows, each, name, data, err);
    if (code != MOESIM_OK)
        return code;
    *out = &t->column[t->num_columns++];
    **out = (moesim_column_data){.real = NULL};
    (void)snprintf((*out)->name, sizeof (*out)->name, "%s", name);
    moesim_text_clean(unit, strlen(unit), (*out)->unit, sizeof (*out)->unit);
    return MOESIM_OK;
}

moesim_code moesim_table_reals(moesim_table *t, const char *name, const char *unit, double **out, moesim_error *err)
{
    moesim_column_data *column = NULL;
    void *data = NULL;
    *out = NULL;
    const moesim_code code = add_column(t, name, unit, sizeof **out, &column, &data, err);
    if (code != MOESIM_OK)
        return code;
    *out = column->real = data;
    for (size_t i = 0; i < t->rows; i++)
        column->real[i] = (double)NAN;
    return MOESIM_OK;
}

moesim_code moesim_table_integers(moesim_table *t, const char *name, const char *unit, int64_t **out, moesim_error *err)
{
    moesim_column_data *column = NULL;
    void *data = NULL;
    *out = NULL;
    const moesim_code code = add_column(t, name, unit, sizeof **out, &column, &data, err);
    if (code != MOESIM_OK)
        return code;
    *out = column->integer = data;
    return MOESIM_OK;
}

moesim_code moesim_table_texts(moesim_table *t, const char *name, char ***out, moesim_error *err)
{
    moesim_column_data *column = NULL;
    void *data = NULL;
    char *empty = NULL;
    *out = NULL;
    moesim_code code = moesim_result_pool_text(t->pool, "", 0, &empty, err);
    if (code == MOESIM_OK)
        code = add_column(t, name, "", sizeof **out, &column, &data, err);
    if (code != MOESIM_OK)
        return code;
    *out = column->text = data;
    for (size_t i = 0; i < t->rows; i++)
        column->text[i] = empty;
    return MOESIM_OK;
}

moesim_code moesim_table_text(moesim_table *t, char **column, size_t row, const char *text, moesim_error *err)
{
    if (row >= t->rows)
        return moesim_fail(err, MOESIM_E_INTERNAL, "table %s has no row %zu", t->name, row);
    return moesim_result_pool_text(t->pool, text, strlen(text), &column[row], err);
}
