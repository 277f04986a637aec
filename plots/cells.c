/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures, requests and distinct values of the cells that are shown.
 */
#include "plots/cells.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"

double moesim_cells_number(const moesim_table *t, const char *column, size_t row)
{
    const moesim_column_data *c = moesim_table_find(t, column);
    if (c == NULL || row >= t->rows)
        return NAN;
    return c->real != NULL ? c->real[row] : c->integer != NULL ? (double)c->integer[row] : NAN;
}

const char *moesim_cells_text(const moesim_table *t, const char *column, size_t row)
{
    const moesim_column_data *c = moesim_table_find(t, column);
    return c != NULL && c->text != NULL && row < t->rows ? c->text[row] : "";
}

void moesim_cells_figure(const moesim_cells *c, const char *name, size_t row, moesim_point *out)
{
    char column[80];
    const size_t n = strlen(name);
    const bool ms = n > 3 && strcmp(name + n - 3, "_ms") == 0;
    double *end[2] = { &out->lo, &out->hi };
    static const char *const suffix[2] = { "_lo", "_hi" };
    out->y = moesim_cells_number(c->table, name, row);
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(column, sizeof column, "%s%s", name, suffix[i]);
        *end[i] = moesim_cells_number(c->table, column, row);
        (void)snprintf(column, sizeof column, "%.*s%s", (int)(n - 3), name, suffix[i]);
        if (ms && isnan(*end[i]))
            *end[i] = moesim_cells_number(c->table, column, row);
    }
}

bool moesim_cells_is(const moesim_cells *c, size_t row, const struct moesim_shown_policy *policy)
{
    return strcmp(moesim_cells_text(c->table, "policy", row), policy->name) == 0;
}

bool moesim_cells_is_full(const moesim_cells *c, const struct moesim_shown_policy *policy)
{
    return c->num_full > 0 && moesim_cells_is(c, c->row[c->n - 1], policy);
}

/* Are two rows of one column equal? Undefined equals undefined; an absent column makes no difference. */
static bool same(const moesim_table *t, const char *column, size_t a, size_t b)
{
    const moesim_column_data *c = moesim_table_find(t, column);
    if (c == NULL)
        return true;
    if (c->text != NULL)
        return strcmp(c->text[a], c->text[b]) == 0;
    if (c->integer != NULL)
        return c->integer[a] == c->integer[b];
    return c->real[a] == c->real[b] || (isnan(c->real[a]) && isnan(c->real[b]));
}

size_t moesim_cells_twin(const moesim_cells *c, size_t row, const char *policy, const char *column)
{
    static const char *const grid[] = { "trace", "profile", "dtype", "batch", "bandwidth_gbps", "cache" };
    const moesim_column_data *names = moesim_table_find(c->table, "policy");
    for (size_t i = 0; names != NULL && names->text != NULL && i < c->table->rows; i++) {
        bool twin = strcmp(names->text[i], policy) == 0;
        for (size_t k = 0; twin && k < sizeof grid / sizeof grid[0]; k++)
            twin = (column != NULL && strcmp(grid[k], column) == 0) || same(c->table, grid[k], i, row);
        if (twin)
            return i;
    }
    return SIZE_MAX;
}

void moesim_cells_label(const struct moesim_shown_policy *policy, char *out, size_t bytes)
{
    (void)snprintf(out, bytes, policy->mark != 0 ? "%s %c" : "%s", policy->name, policy->mark);
}

/* Undefined numbers are no value. */
moesim_code moesim_cells_distinct(const moesim_cells *c, const char *column, double **out, size_t *n, moesim_error *err)
{
    void *memory = NULL;
    *n = 0;
    *out = NULL;
    const moesim_code code = moesim_alloc(c->n, sizeof **out, "values of a dimension", &memory, err);
    if (code != MOESIM_OK)
        return code;
    double *value = memory;
    size_t all = 0;
    for (size_t i = 0; i + c->num_full < c->n; i++) {
        value[all] = moesim_cells_number(c->table, column, c->row[i]);
        all += isnan(value[all]) ? 0u : 1u;
    }
    moesim_sort_reals(value, all);
    for (size_t i = 0; i < all; i++)
        if (*n == 0 || value[i] != value[*n - 1])
            value[(*n)++] = value[i];
    *out = value;
    return MOESIM_OK;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

static size_t first_at_least(const int64_t *cell, size_t n, int64_t wanted)
{
    size_t lo = 0;
    while (n > 0) {
        const size_t half = n / 2;
        if (cell[lo + half] < wanted) {
            lo += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return lo;
}

moesim_code moesim_cells_requests(const moesim_cells *c, size_t row, size_t *begin, size_t *end, moesim_error *err)
{
    const moesim_table *t = moesim_result_find(c->result, "requests");
    const moesim_column_data *cell = t != NULL ? moesim_table_find(t, "cell") : NULL;
    const double id = moesim_cells_number(c->table, "cell", row);
    *begin = *end = 0;
    if (cell == NULL || cell->integer == NULL || isnan(id))
        return MOESIM_OK;
    *begin = first_at_least(cell->integer, t->rows, (int64_t)id);
    *end = first_at_least(cell->integer, t->rows, (int64_t)id + 1);
    for (size_t i = *begin; i < *end; i++)
        if (cell->integer[i] != (int64_t)id)
            return moesim_fail(err, MOESIM_E_FORMAT, "table requests is not ordered by cell (row %zu)", i);
    return *begin <= *end ? MOESIM_OK : moesim_fail(err, MOESIM_E_FORMAT, "table requests is not ordered by cell");
}

/* Numerators and denominators of the requests that count, and how many; 0 where the cells do not go together. */
static size_t collect(const moesim_cells *c, const moesim_ratio *q, const size_t begin[2], size_t n, bool paired, double *num,
                      double *den)
{
    const moesim_table *t = moesim_result_find(c->result, "requests");
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t a = begin[0] + i, b = begin[1] + i;
        if (q->workload != NULL && strcmp(moesim_cells_text(t, "workload", a), q->workload) != 0)
            continue;
        double v = moesim_cells_number(t, q->value, a) * (q->times != NULL ? moesim_cells_number(t, q->times, a) : 1.0);
        if (paired)
            v -= moesim_cells_number(t, q->value, b) * (q->times != NULL ? moesim_cells_number(t, q->times, b) : 1.0);
        if (paired && moesim_cells_number(t, "request", a) != moesim_cells_number(t, "request", b))
            return 0;
        const double w = moesim_cells_number(t, q->weight, a);
        if (!isfinite(v) || !isfinite(w))
            continue;
        num[used] = v;
        den[used++] = w;
    }
    return used;
}

moesim_code moesim_cells_ratio(const moesim_cells *c, const moesim_plot_request *request, const moesim_ratio *ratio, size_t row,
                               size_t base, moesim_point *out, moesim_error *err)
{
    size_t begin[2] = { 0, 0 }, end[2] = { 0, 0 };
    void *memory = NULL;
    out->y = out->lo = out->hi = NAN;
    moesim_code code = moesim_cells_requests(c, row, &begin[0], &end[0], err);
    if (code == MOESIM_OK && base != SIZE_MAX)
        code = moesim_cells_requests(c, base, &begin[1], &end[1], err);
    const size_t n = end[0] - begin[0];
    if (code != MOESIM_OK || n == 0 || (base != SIZE_MAX && n != end[1] - begin[1]))
        return code;
    code = moesim_alloc(2 * n, sizeof(double), "requests of a figure", &memory, err);
    double *num = memory, *den = num + n, sums[2] = { 0, 0 };
    if (code != MOESIM_OK)
        return code;
    const size_t used = collect(c, ratio, begin, n, base != SIZE_MAX, num, den);
    for (size_t i = 0; i < used; i++) {
        sums[0] += num[i];
        sums[1] += den[i];
    }
    if (sums[1] > 0) {
        out->y = sums[0] / sums[1];
        if (request->interval != NULL)
            code = request->interval(request->cookie, num, den, used, &out->lo, &out->hi, err);
    }
    free(memory);
    return code;
}

/* Both sides of the requests that count, [4][n]: num and den of a, then of b. Returns how many, 0 where the cells do not go
 * together. */
static size_t collect_both(const moesim_table *t, const moesim_ratio *q, const size_t begin[2], size_t n, double *side)
{
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        double v[4];
        if (moesim_cells_number(t, "request", begin[0] + i) != moesim_cells_number(t, "request", begin[1] + i))
            return 0;
        for (size_t k = 0; k < 2; k++) {
            v[2 * k] = moesim_cells_number(t, q->value, begin[k] + i) *
                       (q->times != NULL ? moesim_cells_number(t, q->times, begin[k] + i) : 1.0);
            v[2 * k + 1] = moesim_cells_number(t, q->weight, begin[k] + i);
        }
        if (!isfinite(v[0] + v[1] + v[2] + v[3]))
            continue;
        for (size_t k = 0; k < 4; k++)
            side[k * n + used] = v[k];
        used++;
    }
    return used;
}

moesim_code moesim_cells_differ(const moesim_cells *c, const moesim_plot_request *request, const moesim_ratio *ratio, size_t a,
                                size_t b, bool *out, moesim_error *err)
{
    size_t begin[2] = { 0, 0 }, end[2] = { 0, 0 };
    void *memory = NULL;
    *out = false;
    moesim_code code = moesim_cells_requests(c, a, &begin[0], &end[0], err);
    if (code == MOESIM_OK)
        code = moesim_cells_requests(c, b, &begin[1], &end[1], err);
    const size_t n = end[0] - begin[0];
    if (code != MOESIM_OK || n == 0 || n != end[1] - begin[1] || request->differ == NULL)
        return code;
    code = moesim_alloc(4 * n, sizeof(double), "requests of two cells", &memory, err);
    double *side = memory;
    if (code != MOESIM_OK)
        return code;
    const size_t used = collect_both(moesim_result_find(c->result, "requests"), ratio, begin, n, side);
    if (used > 0)
        code = request->differ(request->cookie, side, side + n, side + 2 * n, side + 3 * n, used, out, err);
    free(memory);
    return code;
}

void moesim_cells_fini(moesim_cells *c)
{
    free(c->row);
    free(c->policy);
    memset(c, 0, sizeof *c);
}
