/* SPDX-License-Identifier: Apache-2.0
 *
 * Which cells a figure shows.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "plots/cells.h"

#define MAX_VALUES 1024u
#define MAX_CELLS 20000u

/* Policies that no running system can have, where the result does not say so itself. */
static const char *const bounds[] = { "belady", "belady-forced", "belady-pooled", "ideal", "ideal-pooled", "offline-cost",
                                      "full", "next-pass", NULL };

/* ---- dimensions ---------------------------------------------------------------------------------------------------- */

/* A dimension of the grid. format: how a held value stands under the title. */
struct dimension {
    const char *column, *option;
    unsigned axis;               /* bit, 0: never an axis */
    bool middle;                 /* not chosen: the middle value instead of the first */
    const char *format;
};

static const struct dimension dimensions[] = {
    { "trace", "--trace", MOESIM_OVER_TRACE, false, "trace %s" },
    { "profile", "--profile", 0, false, NULL },
    { "dtype", "--dtype", 0, false, "%s experts" },
    { "batch", "--batch", 0, false, "batch %s" },
    { "bandwidth_gbps", "--bandwidth", MOESIM_OVER_BANDWIDTH, false, "%s GB/s" },
    { "cache", "--cache", MOESIM_OVER_CACHE, true, "%s slots per layer" },
};

/* What the user chose of a dimension, as text; "" for nothing. */
static void wish(const moesim_plot_request *q, const struct dimension *d, char *out, size_t bytes)
{
    const struct { const char *column, *text; double number; } all[] = {
        { "trace", q->trace, 0 },     { "profile", q->profile, 0 },          { "dtype", q->dtype, 0 },
        { "batch", NULL, q->batch },  { "bandwidth_gbps", NULL, q->bandwidth }, { "cache", NULL, q->cache },
    };
    out[0] = '\0';
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(all[i].column, d->column) != 0)
            continue;
        if (all[i].text != NULL)
            (void)snprintf(out, bytes, "%s", all[i].text);
        else if (i >= 3 && !isnan(all[i].number))
            (void)snprintf(out, bytes, "%.10g", all[i].number);
    }
}

/* A value as it is written and compared; "" for undefined. */
static const char *written(const moesim_column_data *c, size_t row, char buffer[32])
{
    if (c->text != NULL)
        return c->text[row];
    const double v = c->real != NULL ? c->real[row] : (double)c->integer[row];
    (void)snprintf(buffer, 32, "%.10g", v);
    return isnan(v) ? "" : buffer;
}

struct values { size_t n; const char **text; char (*buffer)[32]; };

static int by_number(const void *x, const void *y)
{
    const char *const *a = x, *const *b = y;
    const double p = strtod(*a, NULL), q = strtod(*b, NULL);
    return (p > q) - (p < q);
}

static moesim_code distinct_texts(const moesim_cells *c, const moesim_column_data *column, struct values *out,
                                  moesim_error *err)
{
    char buffer[32];
    void *text = NULL, *room = NULL;
    moesim_code code = moesim_alloc(c->n, sizeof *out->text, "values of a dimension", &text, err);
    out->text = text;
    if (code == MOESIM_OK)
        code = moesim_alloc(c->n, sizeof *out->buffer, "values of a dimension", &room, err);
    out->buffer = room;
    for (size_t i = 0; code == MOESIM_OK && i < c->n; i++) {
        const char *v = written(column, c->row[i], buffer);
        size_t k = 0;
        while (k < out->n && strcmp(out->text[k], v) != 0)
            k++;
        if (k < out->n)
            continue;
        if (k == MAX_VALUES)
            return moesim_fail(err, MOESIM_E_LIMIT, "column %s has more than %u different values", column->name, MAX_VALUES);
        if (v == buffer)
            memcpy(out->buffer[k], buffer, sizeof buffer);
        out->text[out->n++] = v == buffer ? out->buffer[k] : v;
    }
    if (code == MOESIM_OK && column->text == NULL)
        qsort(out->text, out->n, sizeof *out->text, by_number);
    return code;
}

static void list_values(const struct values *v, char *out, size_t bytes)
{
    out[0] = '\0';
    for (size_t i = 0; i < v->n; i++) {
        if (i == 8 && v->n > 10) {
            moesim_text_add(out, bytes, ", …, %.60s", v->text[v->n - 1]);
            return;
        }
        moesim_text_add(out, bytes, "%s%.60s", i > 0 ? ", " : "", v->text[i]);
    }
}

static const char *short_name(const char *text)
{
    const char *slash = strrchr(text, '/');
    return slash != NULL && slash[1] != '\0' ? slash + 1 : text;
}

static void keep_only(moesim_cells *c, const moesim_column_data *column, const char *value)
{
    char buffer[32];
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(written(column, c->row[i], buffer), value) == 0)
            c->row[n++] = c->row[i];
    c->n = n;
}

static void say(moesim_chart *chart, const struct dimension *d, const char *value)
{
    if (d->format == NULL || value[0] == '\0' || (strcmp(d->column, "batch") == 0 && strcmp(value, "1") == 0))
        return;
    const size_t used = strlen(chart->subtitle);
    moesim_text_add(chart->subtitle, sizeof chart->subtitle, "%s", used > 0 && chart->subtitle[used - 1] != '\n' ? ", " : "");
    char text[128];
    (void)snprintf(text, sizeof text, "%.100s", d->axis == MOESIM_OVER_TRACE ? short_name(value) : value);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    moesim_text_add(chart->subtitle, sizeof chart->subtitle, d->format, text);
#pragma GCC diagnostic pop
}

/* A capacity of one budget over all layers. */
static void say_bytes(moesim_chart *chart, const char *value)
{
    static const struct dimension budget = { "cache", "--cache", MOESIM_OVER_CACHE, true, "%s MiB over all layers" };
    char text[32];
    (void)snprintf(text, sizeof text, "%.6g", strtod(value, NULL) / 0x1p20);
    say(chart, &budget, text);
}

/* Holds a dimension at one value. */
static moesim_code hold(moesim_cells *c, const struct dimension *d, const char *wanted, moesim_chart *chart, moesim_error *err)
{
    struct values v = { 0, NULL, NULL };
    char list[512], value[MOESIM_RESULT_TEXT_BYTES] = "";
    const moesim_column_data *column = moesim_table_find(c->table, d->column);
    if (column == NULL)
        return wanted[0] == '\0' ? MOESIM_OK : moesim_fail(err, MOESIM_E_USAGE, "option %s: the result has no column %s",
                                                           d->option, d->column);
    moesim_code code = distinct_texts(c, column, &v, err);
    if (code == MOESIM_OK && v.n > 0) {
        list_values(&v, list, sizeof list);
        (void)snprintf(value, sizeof value, "%s", wanted[0] != '\0' ? wanted : v.text[d->middle ? (v.n - 1) / 2 : 0]);
        keep_only(c, column, value);
        if (c->n == 0)
            code = moesim_fail(err, MOESIM_E_USAGE, "option %s: the result has no cells of '%.100s'; it has %s", d->option,
                               value, list);
        else if (v.n > 1 && wanted[0] == '\0')
            moesim_text_add(chart->chosen, sizeof chart->chosen, "%s %.100s of %s\n", d->option, value, list);
        if (code == MOESIM_OK && strcmp(column->unit, "bytes") == 0)
            say_bytes(chart, value);
        else if (code == MOESIM_OK)
            say(chart, d, value);
    }
    free(v.text);
    free(v.buffer);
    return code;
}

/* ---- full residency ------------------------------------------------------------------------------------------------ */

static moesim_code same_capacities(const moesim_cells *a, const moesim_cells *b, bool *out, moesim_error *err)
{
    double *x[2] = { NULL, NULL };
    size_t n[2] = { 0, 0 };
    moesim_code code = moesim_cells_distinct(a, "cache", &x[0], &n[0], err);
    if (code == MOESIM_OK)
        code = moesim_cells_distinct(b, "cache", &x[1], &n[1], err);
    *out = n[0] == n[1];
    for (size_t i = 0; code == MOESIM_OK && *out && i < n[0]; i++)
        *out = x[0][i] == x[1][i];
    free(x[0]);
    free(x[1]);
    return code;
}

/* Full residency does not depend on the capacity, so that a sweep adds it once, at the capacity of all experts. Where policy
 * full is not at the capacities of the others, its cells go to the end and hold for every capacity. */
static moesim_code set_full_apart(moesim_cells *c, moesim_error *err)
{
    void *memory = NULL;
    moesim_cells others = *c, full = *c;
    bool same = true;
    others.n = full.n = 0;
    moesim_code code = moesim_alloc(2 * c->n, sizeof *c->row, "rows", &memory, err);
    if (code != MOESIM_OK)
        return code;
    others.row = memory;
    full.row = others.row + c->n;
    for (size_t i = 0; i < c->n; i++) {
        const bool is_full = strcmp(moesim_cells_text(c->table, "policy", c->row[i]), "full") == 0;
        moesim_cells *part = is_full ? &full : &others;
        part->row[part->n++] = c->row[i];
    }
    if (others.n > 0 && full.n > 0)
        code = same_capacities(&others, &full, &same, err);
    if (code == MOESIM_OK && !same) {
        memcpy(c->row, others.row, others.n * sizeof *c->row);
        c->n = others.n;
        for (size_t i = 0; i < full.n; i++)      /* one of those that only the capacity tells apart */
            if (moesim_cells_twin(c, full.row[i], "full", "cache") == full.row[i])
                c->row[c->n++] = full.row[i];
        c->num_full = c->n - others.n;
    }
    free(memory);
    return code;
}

/* Holds the capacity; cells of full residency stay at any. */
static moesim_code hold_beside_full(moesim_cells *c, const struct dimension *d, const char *wanted, moesim_chart *chart,
                                    moesim_error *err)
{
    const size_t others = c->n - c->num_full;
    c->n = others;
    const moesim_code code = hold(c, d, wanted, chart, err);
    memmove(c->row + c->n, c->row + others, c->num_full * sizeof *c->row);
    c->n += c->num_full;
    return code;
}

/* Holds the dimensions that are not an axis; the capacity comes last, when the rest is held. */
static moesim_code hold_all(moesim_cells *c, const moesim_plot_request *request, unsigned axes, moesim_chart *chart,
                            moesim_error *err)
{
    char wanted[MOESIM_RESULT_TEXT_BYTES];
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && i < sizeof dimensions / sizeof dimensions[0]; i++) {
        const struct dimension *d = &dimensions[i];
        wish(request, d, wanted, sizeof wanted);
        if (d->axis == MOESIM_OVER_CACHE)
            code = set_full_apart(c, err);
        if (code != MOESIM_OK)
            return code;
        if ((d->axis & axes) != 0 && wanted[0] != '\0')
            code = moesim_fail(err, MOESIM_E_USAGE, "option %s: this figure shows all of them", d->option);
        else if ((d->axis & axes) == 0)
            code = hold_beside_full(c, d, wanted, chart, err);
    }
    return code;
}

/* ---- policies ------------------------------------------------------------------------------------------------------ */

static bool is_bound(const char *policy)
{
    const size_t n = strcspn(policy, ":");
    for (size_t i = 0; bounds[i] != NULL; i++)
        if (strlen(bounds[i]) == n && strncmp(bounds[i], policy, n) == 0)
            return true;
    return false;
}

/* Clairvoyant, or not causal: no running system can know what it reads. */
static char mark_of(const moesim_table *t, size_t row, const char *policy)
{
    const double said = moesim_cells_number(t, "clairvoyant", row), not_causal = moesim_cells_number(t, "non_causal", row);
    if (isnan(said))
        return is_bound(policy) ? '*' : strstr(policy, "hindsight") != NULL ? '!' : '\0';
    return said != 0 ? '*' : !isnan(not_causal) && not_causal != 0 ? '!' : '\0';
}

static bool wanted_policy(const moesim_plot_request *q, const char *name)
{
    for (size_t i = 0; i < q->num_policies; i++)
        if (strcmp(q->policy[i], name) == 0)
            return true;
    return q->num_policies == 0;
}

/* Numbers the policies of the whole table, then drops those that are not wanted. */
static moesim_code find_policies(moesim_cells *c, const moesim_plot_request *q, moesim_error *err)
{
    char names[512] = "";
    void *memory = NULL;
    moesim_code code = moesim_alloc(c->table->rows, sizeof *c->policy, "policies", &memory, err);
    if (code != MOESIM_OK)
        return code;
    c->policy = memory;
    size_t all = 0;
    for (size_t i = 0; i < c->table->rows; i++) {
        const char *name = moesim_cells_text(c->table, "policy", i);
        size_t k = 0;
        while (k < all && strcmp(c->policy[k].name, name) != 0)
            k++;
        if (k < all)
            continue;
        if (k == MAX_VALUES)
            return moesim_fail(err, MOESIM_E_LIMIT, "the result has more than %u policies", MAX_VALUES);
        c->policy[all++] = (struct moesim_shown_policy){ name, is_bound(name), mark_of(c->table, i, name), (uint32_t)k };
        moesim_text_add(names, sizeof names, "%s%.80s", k > 0 ? ", " : "", name);
    }
    for (size_t i = 0; i < q->num_policies; i++) {
        size_t k = 0;
        while (k < all && strcmp(c->policy[k].name, q->policy[i]) != 0)
            k++;
        if (k == all)
            return moesim_fail(err, MOESIM_E_USAGE, "option --policy: the result has no policy '%.100s'; it has %s",
                               q->policy[i], names);
    }
    for (size_t i = 0; i < all; i++)
        if (wanted_policy(q, c->policy[i].name))
            c->policy[c->num_policies++] = c->policy[i];
    return MOESIM_OK;
}

moesim_code moesim_cells_select(const moesim_result *result, const moesim_plot_request *request, unsigned axes,
                                moesim_chart *chart, moesim_cells *out, moesim_error *err)
{
    void *memory = NULL;
    memset(out, 0, sizeof *out);
    out->result = result;
    out->table = moesim_result_find(result, "cells");
    moesim_code code = find_policies(out, request, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(out->table->rows, sizeof *out->row, "rows", &memory, err);
    out->row = memory;
    for (size_t i = 0; code == MOESIM_OK && i < out->table->rows; i++)
        if (wanted_policy(request, moesim_cells_text(out->table, "policy", i)))
            out->row[out->n++] = i;
    if (code == MOESIM_OK)
        code = hold_all(out, request, axes, chart, err);
    if (code == MOESIM_OK && out->n > MAX_CELLS)
        code = moesim_fail(err, MOESIM_E_LIMIT, "%zu cells for one figure, at most %u; choose some with --policy", out->n,
                           MAX_CELLS);
    return code;
}
