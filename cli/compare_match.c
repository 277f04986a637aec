/* SPDX-License-Identifier: Apache-2.0
 *
 * The cells that two results have in common: equal in the columns that identify a cell.
 */
#include "cli/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

#define LOOKED_AT 2000u          /* rows that the explanation of an empty match looks at */

/* Always part of the identity, where both results have them. Of alternatives the first. */
static const char *const identity[][2] = {
    {"trace_digest", "trace"}, {"policy", NULL}, {"cache", NULL}, {"bandwidth_gbps", NULL}, {"batch", NULL},
};

/* Part of it only where the cells of one result could not be told apart otherwise: these may differ between two results, and
 * often that difference is the question. */
static const char *const finer[] = {"profile", "dtype", "scope", "context", "mode", "options"};

const char *moesim_compare_policy(const moesim_comparison *c, int side, size_t row)
{
    const moesim_column_data *policy = moesim_table_find(c->cells[side], "policy");
    return policy != NULL && policy->text != NULL ? policy->text[row] : "";
}

const char *moesim_compare_value(const moesim_column_data *column, size_t row, char out[32])
{
    if (column->text != NULL)
        return column->text[row];
    if (column->integer != NULL)
        (void)snprintf(out, 32, "%" PRId64, column->integer[row]);
    else if (isnan(column->real[row]))
        out[0] = '\0';
    else
        (void)snprintf(out, 32, "%.10g", column->real[row]);
    return out;
}

/* ---- order of cells by their keys ---------------------------------------------------------------------------------- */

static int order_reals(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

static int order_values(const moesim_column_data *a, size_t i, const moesim_column_data *b, size_t j)
{
    if (a->text != NULL)
        return strcmp(a->text[i], b->text[j]);
    if (a->integer != NULL)
        return (a->integer[i] > b->integer[j]) - (a->integer[i] < b->integer[j]);
    return order_reals(a->real[i], b->real[j]);
}

static int order_cells(const moesim_comparison *c, int x, size_t i, int y, size_t j)
{
    int order = 0;
    for (size_t k = 0; k < c->num_keys && order == 0; k++)
        order = order_values(c->key[k].column[x], i, c->key[k].column[y], j);
    return order;
}

typedef struct side { const moesim_comparison *comparison; int number; size_t *row, n; } side;

static int by_key(const void *x, const void *y, void *cookie)
{
    const side *s = cookie;
    const size_t i = *(const size_t *)x, j = *(const size_t *)y;
    const int order = order_cells(s->comparison, s->number, i, s->number, j);
    return order != 0 ? order : (i > j) - (i < j);
}

static void sort(side *s)
{
    qsort_r(s->row, s->n, sizeof s->row[0], by_key, s);
}

/* First of two neighbours with equal keys, or n. Sorted. */
static size_t find_twin(const side *s)
{
    size_t i = 1;
    while (i < s->n && order_cells(s->comparison, s->number, s->row[i - 1], s->number, s->row[i]) != 0)
        i++;
    return i < s->n ? i - 1 : s->n;
}

/* ---- keys ---------------------------------------------------------------------------------------------------------- */

static bool same_kind(const moesim_column_data *a, const moesim_column_data *b)
{
    return (a->text != NULL) == (b->text != NULL) && (a->integer != NULL) == (b->integer != NULL);
}

static bool add_key(moesim_comparison *c, const char *name)
{
    const moesim_column_data *a = moesim_table_find(c->cells[0], name), *b = moesim_table_find(c->cells[1], name);
    if (a == NULL || b == NULL || !same_kind(a, b))
        return false;
    c->key[c->num_keys++] = (moesim_compare_key){name, {a, b}};
    return true;
}

static void add_identity(moesim_comparison *c)
{
    for (size_t i = 0; i < sizeof identity / sizeof identity[0]; i++) {
        const bool chosen = c->options->policy[0] != NULL && strcmp(identity[i][0], "policy") == 0;
        if (!chosen && !add_key(c, identity[i][0]) && identity[i][1] != NULL)
            (void)add_key(c, identity[i][1]);
    }
}

static void key_names(const moesim_comparison *c, char *out, size_t bytes)
{
    size_t used = 0;
    out[0] = '\0';
    for (size_t k = 0; k < c->num_keys && used < bytes; k++)
        used += (size_t)snprintf(out + used, bytes - used, "%s%s", k > 0 ? ", " : "", c->key[k].name);
}

/* Adds finer keys until no side has two cells of one identity. */
static moesim_code refine(moesim_comparison *c, side s[2], moesim_error *err)
{
    char names[300];
    for (size_t i = 0;; i++) {
        sort(&s[0]);
        sort(&s[1]);
        const int bad = find_twin(&s[0]) < s[0].n ? 0 : find_twin(&s[1]) < s[1].n ? 1 : -1;
        if (bad < 0)
            return MOESIM_OK;
        if (i < sizeof finer / sizeof finer[0]) {
            (void)add_key(c, finer[i]);
            continue;
        }
        const size_t at = find_twin(&s[bad]);
        key_names(c, names, sizeof names);
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: rows %zu and %zu of /cells are equal in %s, so that the other result's "
                           "cells cannot be matched with them", c->options->path[bad], s[bad].row[at], s[bad].row[at + 1],
                           names);
    }
}

/* ---- match --------------------------------------------------------------------------------------------------------- */

/* The policies that a side has, each once, as far as there is room. */
static void policy_names(const moesim_comparison *c, int number, char *out, size_t bytes)
{
    size_t used = 0;
    for (size_t i = 0; i < c->cells[number]->rows && i < LOOKED_AT && used < bytes; i++) {
        const char *name = moesim_compare_policy(c, number, i);
        bool known = false;
        for (size_t j = 0; j < i && !known; j++)
            known = strcmp(name, moesim_compare_policy(c, number, j)) == 0;
        if (!known)
            used += (size_t)snprintf(out + used, bytes - used, "%s%s", used > 0 ? ", " : "", name);
    }
}

static moesim_code select_rows(const moesim_comparison *c, side *s, moesim_error *err)
{
    const char *policy = c->options->policy[s->number];
    char names[400] = "";
    void *p = NULL;
    const moesim_code code = moesim_alloc(c->cells[s->number]->rows, sizeof s->row[0], "cells", &p, err);
    s->row = p;
    for (size_t i = 0; code == MOESIM_OK && i < c->cells[s->number]->rows; i++)
        if (policy == NULL || strcmp(moesim_compare_policy(c, s->number, i), policy) == 0)
            s->row[s->n++] = i;
    if (code != MOESIM_OK || s->n > 0 || policy == NULL)
        return code;
    policy_names(c, s->number, names, sizeof names);
    return moesim_fail(err, MOESIM_E_USAGE, "%s has no cell of policy '%s'; it has: %s", c->options->path[s->number], policy,
                       names);
}

static bool shares_value(const moesim_compare_key *key, const side s[2])
{
    for (size_t i = 0; i < s[0].n && i < LOOKED_AT; i++)
        for (size_t j = 0; j < s[1].n && j < LOOKED_AT; j++)
            if (order_values(key->column[0], s[0].row[i], key->column[1], s[1].row[j]) == 0)
                return true;
    return false;
}

/* A sweep that counts has no bandwidths. */
static bool has_times(const moesim_compare_key *key, const side *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!isnan(key->column[s->number]->real[s->row[i]]))
            return true;
    return false;
}

/* The side that has times where the other has not, or -1. */
static int timed_alone(const moesim_comparison *c, const side s[2])
{
    for (size_t k = 0; k < c->num_keys; k++) {
        const moesim_compare_key *key = &c->key[k];
        if (strcmp(key->name, "bandwidth_gbps") == 0 && key->column[0]->real != NULL &&
            has_times(key, &s[0]) != has_times(key, &s[1]))
            return has_times(key, &s[1]);
    }
    return -1;
}

static const char *value_or_none(const moesim_column_data *column, size_t row, char out[32])
{
    const char *text = moesim_compare_value(column, row, out);
    return text[0] != '\0' ? text : "none";
}

static moesim_code nothing_common(const moesim_comparison *c, const side s[2], moesim_error *err)
{
    char why[500] = "", names[300], a[32], b[32];
    size_t used = 0;
    const int timed = s[0].n > 0 && s[1].n > 0 ? timed_alone(c, s) : -1;
    if (timed >= 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s has times and %s counts alone, so that no cell has the bandwidth of one "
                           "of the other; make both with --profile and the same --bandwidth, or both without",
                           c->options->path[timed], c->options->path[!timed]);
    for (size_t k = 0; s[0].n > 0 && s[1].n > 0 && k < c->num_keys && used < sizeof why; k++)
        if (!shares_value(&c->key[k], s))
            used += (size_t)snprintf(why + used, sizeof why - used, "; no %s agrees (%.40s against %.40s, for one)",
                                     c->key[k].name, value_or_none(c->key[k].column[0], s[0].row[0], a),
                                     value_or_none(c->key[k].column[1], s[1].row[0], b));
    key_names(c, names, sizeof names);
    return moesim_fail(err, MOESIM_E_FORMAT, "%s (%zu cells) and %s (%zu cells) have no cell in common by %s%s",
                       c->options->path[0], s[0].n, c->options->path[1], s[1].n, names, why);
}

static int by_first(const void *x, const void *y)
{
    const moesim_compare_pair *a = x, *b = y;
    return (a->row[0] > b->row[0]) - (a->row[0] < b->row[0]);
}

static moesim_code join(moesim_comparison *c, const side s[2], moesim_error *err)
{
    void *p = NULL;
    const moesim_code code = moesim_alloc(s[0].n < s[1].n ? s[0].n : s[1].n, sizeof *c->pair, "common cells", &p, err);
    if (code != MOESIM_OK)
        return code;
    c->pair = p;
    for (size_t i = 0, j = 0; i < s[0].n && j < s[1].n;) {
        const int order = order_cells(c, 0, s[0].row[i], 1, s[1].row[j]);
        if (order == 0)
            c->pair[c->num_pairs++] = (moesim_compare_pair){{s[0].row[i], s[1].row[j]}};
        i += order <= 0;
        j += order >= 0;
    }
    c->alone[0] = s[0].n - c->num_pairs;
    c->alone[1] = s[1].n - c->num_pairs;
    qsort(c->pair, c->num_pairs, sizeof c->pair[0], by_first);
    return c->num_pairs > 0 ? MOESIM_OK : nothing_common(c, s, err);
}

moesim_code moesim_compare_match(moesim_comparison *c, moesim_error *err)
{
    side s[2] = {{c, 0, NULL, 0}, {c, 1, NULL, 0}};
    add_identity(c);
    moesim_code code = select_rows(c, &s[0], err);
    if (code == MOESIM_OK)
        code = select_rows(c, &s[1], err);
    if (code == MOESIM_OK)
        code = refine(c, s, err);
    if (code == MOESIM_OK)
        code = join(c, s, err);
    free(s[0].row);
    free(s[1].row);
    return code;
}
