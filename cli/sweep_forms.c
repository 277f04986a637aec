/* SPDX-License-Identifier: Apache-2.0
 *
 * A sweep as CSV (one row a cell) and as JSON, schema moesim.sweep/1. Undefined numbers are empty or null.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/print.h"
#include "cli/sweep.h"

#define SCHEMA "moesim.sweep/1"
#define EXACT_WHOLE 0x1p53

const moesim_table *moesim_sweep_cells(const moesim_result *r)
{
    return moesim_result_find(r, "cells");
}

double moesim_cell_real(const moesim_table *t, const char *name, size_t row)
{
    const moesim_column_data *c = moesim_table_find(t, name);
    return c != NULL && c->real != NULL ? c->real[row] : (double)NAN;
}

int64_t moesim_cell_whole(const moesim_table *t, const char *name, size_t row)
{
    const moesim_column_data *c = moesim_table_find(t, name);
    return c != NULL && c->integer != NULL ? c->integer[row] : 0;
}

const char *moesim_cell_text(const moesim_table *t, const char *name, size_t row)
{
    const moesim_column_data *c = moesim_table_find(t, name);
    return c != NULL && c->text != NULL ? c->text[row] : "";
}

/* ---- CSV ------------------------------------------------------------------------------------------------------------- */

static const char *const leading[] = { "trace", "policy", "cache", "bandwidth_gbps", "tpot_ms", "tpot_lo", "tpot_hi" };
#define NUM_LEADING (sizeof leading / sizeof leading[0])

/* Columns in the order of CSV: those first that everybody wants. */
static size_t order_columns(const moesim_table *t, const moesim_column_data *out[MOESIM_RESULT_COLUMNS])
{
    size_t n = 0;
    for (size_t k = 0; k < NUM_LEADING; k++) {
        out[n] = moesim_table_find(t, leading[k]);
        n += out[n] != NULL;
    }
    for (size_t c = 0; c < t->num_columns; c++) {
        bool done = false;
        for (size_t k = 0; k < NUM_LEADING; k++)
            done = done || strcmp(t->column[c].name, leading[k]) == 0;
        if (!done)
            out[n++] = &t->column[c];
    }
    return n;
}

static void put_value(FILE *out, const moesim_column_data *c, size_t row)
{
    if (c->text != NULL)
        moesim_print_csv(out, c->text[row]);
    else if (c->integer != NULL)
        fprintf(out, "%" PRId64, c->integer[row]);
    else if (isfinite(c->real[row]))
        fprintf(out, "%.17g", c->real[row]);
}

void moesim_sweep_csv(const moesim_result *r, FILE *out)
{
    const moesim_table *t = moesim_sweep_cells(r);
    const moesim_column_data *column[MOESIM_RESULT_COLUMNS];
    const size_t n = order_columns(t, column);
    for (size_t k = 0; k < n; k++)
        fprintf(out, "%s%s", k > 0 ? "," : "", column[k]->name);
    fputc('\n', out);
    for (size_t row = 0; row < t->rows; row++) {
        for (size_t k = 0; k < n; k++) {
            if (k > 0)
                fputc(',', out);
            put_value(out, column[k], row);
        }
        fputc('\n', out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------ */

static json_t *json_value(const moesim_column_data *c, size_t row)
{
    if (c->text != NULL)
        return json_string(c->text[row]);
    if (c->integer != NULL)
        return json_integer(c->integer[row]);
    const double v = c->real[row];
    return v == floor(v) && fabs(v) < EXACT_WHOLE && c->unit[0] == '\0' ? json_integer((json_int_t)v) : moesim_json_real(v);
}

static json_t *json_cells(const moesim_result *r)
{
    const moesim_table *t = moesim_sweep_cells(r);
    json_t *array = json_array();
    for (size_t row = 0; row < t->rows; row++) {
        json_t *o = json_object();
        for (size_t k = 0; k < t->num_columns; k++)
            json_object_set_new(o, t->column[k].name, json_value(&t->column[k], row));
        json_array_append_new(array, o);
    }
    return array;
}

/* What a finding is about. */
static json_t *json_place(const moesim_table *t, size_t row, bool cache, bool bandwidth)
{
    json_t *o = json_object();
    json_object_set_new(o, "trace", json_string(moesim_cell_text(t, "trace", row)));
    json_object_set_new(o, "batch", json_integer(moesim_cell_whole(t, "batch", row)));
    json_object_set_new(o, "profile", json_string(moesim_cell_text(t, "profile", row)));
    json_object_set_new(o, "dtype", json_string(moesim_cell_text(t, "dtype", row)));
    json_object_set_new(o, "policy", json_string(moesim_cell_text(t, "policy", row)));
    if (cache)
        json_object_set_new(o, "cache", json_integer(moesim_cell_whole(t, "cache", row)));
    if (bandwidth)
        json_object_set_new(o, "bandwidth_gbps", moesim_json_real(moesim_cell_real(t, "bandwidth_gbps", row)));
    return o;
}

static json_t *json_best(const moesim_table *t, const moesim_findings *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->num_best; i++) {
        json_t *o = json_place(t, f->best[i].row, true, true), *equal = json_array();
        for (size_t k = 0; k < f->best[i].num_equal; k++)
            json_array_append_new(equal, json_string(moesim_cell_text(t, "policy", f->best[i].equal[k])));
        json_object_set_new(o, "not_distinguishable", equal);
        json_object_set_new(o, "and_more", json_integer((json_int_t)f->best[i].more));
        json_array_append_new(array, o);
    }
    return array;
}

static json_t *json_knees(const moesim_table *t, const moesim_findings *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->num_knees; i++) {
        json_t *o = json_place(t, f->knee[i].row, false, true);
        json_object_set_new(o, "cache", f->knee[i].cache >= 0 ? json_integer(f->knee[i].cache) : json_null());
        json_array_append_new(array, o);
    }
    return array;
}

static json_t *json_breaks(const moesim_table *t, const moesim_findings *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->num_breaks; i++) {
        json_t *o = json_place(t, f->even[i].row, true, false);
        json_object_set_new(o, "break_even_gbps", moesim_json_real(f->even[i].gbps));
        json_object_set_new(o, "at_most", json_boolean(f->even[i].below));
        json_array_append_new(array, o);
    }
    return array;
}

static json_t *json_floors(const moesim_table *t, const moesim_findings *f)
{
    json_t *array = json_array();
    for (size_t i = 0; i < f->num_floors; i++) {
        json_t *o = json_place(t, f->floor[i], false, true);
        json_object_set_new(o, "tpot_ms", moesim_json_real(moesim_cell_real(t, "tpot_ms", f->floor[i])));
        json_array_append_new(array, o);
    }
    return array;
}

moesim_code moesim_sweep_json(const moesim_sweep *s, const moesim_result *r, const moesim_findings *f, FILE *out,
                              moesim_error *err)
{
    const moesim_table *t = moesim_sweep_cells(r);
    json_t *o = json_object(), *caution = json_array();
    json_object_set_new(o, "schema", json_string(SCHEMA));
    for (size_t i = 0; i < r->num_attributes; i++)
        if (strcmp(r->attribute[i].name, "config") != 0)
            json_object_set_new(o, r->attribute[i].name, json_string(r->attribute[i].text));
    for (size_t i = 0; i < s->profile.n; i++)
        json_array_append_new(caution, json_string(moesim_pricing_caution(&s->part[i * s->dtype.n].pricing)));
    json_object_set_new(o, "profile_caution", caution);
    json_object_set_new(o, "config", json_loads(s->config, 0, NULL));
    json_object_set_new(o, "cells", json_cells(r));
    json_object_set_new(o, "best", json_best(t, f));
    json_object_set_new(o, "knee", json_knees(t, f));
    json_object_set_new(o, "break_even", json_breaks(t, f));
    json_object_set_new(o, "floor", json_floors(t, f));
    return moesim_print_json(out, o, err);
}
