/* SPDX-License-Identifier: Apache-2.0
 *
 * Differences between two results: figures as ratios of sums over the requests that both have (semantics §2).
 */
#include "cli/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/log.h"

/* Columns of /requests that make a figure: num/den, or, where num is missing, the request's own figure weighed by den. */
typedef struct recipe {
    const char *name, *alias, *unit, *num, *den, *own;
} recipe;

static const recipe recipes[] = {
    {"tpot_ms", "tpot", "ms", "decode_ms", "output_tokens", "tpot_ms"},
    {"ttft_ms", "ttft", "ms", "ttft_ms", NULL, NULL},
    {"misses_per_pass", "misses", "experts", "misses", "passes", "misses_per_pass"},
    {"utilisation", NULL, "", "utilisation_sum", "events", "utilisation"},
    {"hit_rate", NULL, "", "hits", "active", "hit_rate"},
    {"moved_bytes_per_token", NULL, "bytes", "moved_bytes", "output_tokens", "moved_bytes_per_token"},
    {"prefetched_bytes_per_token", NULL, "bytes", "prefetched_bytes", "output_tokens", "prefetched_bytes_per_token"},
    {"cpu_share", NULL, "", "cpu", "misses", "cpu_share"},
    {"tokens_per_pass", NULL, "tokens", "output_tokens", "passes", "tokens_per_pass"},
};
#define RECIPES (sizeof recipes / sizeof recipes[0])

static const char *const usual[] = {"tpot_ms", "misses_per_pass"};

/* ---- metrics ------------------------------------------------------------------------------------------------------- */

/* A column of numbers that both sides have. */
static bool find_numbers(const moesim_comparison *c, const char *name, const moesim_column_data *out[2])
{
    for (int side = 0; side < 2; side++) {
        out[side] = name != NULL ? moesim_table_find(c->requests[side], name) : NULL;
        if (out[side] == NULL || out[side]->text != NULL)
            return false;
    }
    return true;
}

static bool prepare(const moesim_comparison *c, const recipe *r, moesim_compare_metric *out)
{
    *out = (moesim_compare_metric){.unit = r->unit};
    (void)snprintf(out->name, sizeof out->name, "%s", r->name);
    if (r->den != NULL && !find_numbers(c, r->den, out->den))
        return false;
    if (find_numbers(c, r->num, out->num))
        return true;
    out->ratio = true;
    return find_numbers(c, r->own, out->num);
}

/* A figure of the table, or the mean over requests of any column. */
static bool find_metric(const moesim_comparison *c, const char *name, moesim_compare_metric *out)
{
    for (size_t i = 0; i < RECIPES; i++)
        if (strcmp(name, recipes[i].name) == 0 || (recipes[i].alias != NULL && strcmp(name, recipes[i].alias) == 0))
            return prepare(c, &recipes[i], out);
    const recipe mean = {.name = name, .unit = "", .num = name};
    if (strcmp(name, "cell") == 0 || strcmp(name, "request") == 0 || !prepare(c, &mean, out))
        return false;
    out->unit = out->num[0]->unit;
    return true;
}

static moesim_code unknown_metric(const moesim_comparison *c, const char *name, moesim_error *err)
{
    char text[600] = "";
    size_t used = 0;
    moesim_compare_metric metric;
    for (size_t i = 0; i < RECIPES && used < sizeof text; i++)
        if (prepare(c, &recipes[i], &metric))
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used > 0 ? ", " : "", recipes[i].name);
    return moesim_fail(err, MOESIM_E_USAGE, "metric '%s' cannot be formed from the tables `requests` of both results; these "
                       "can: %s, and the mean over requests of any other column of numbers", name, used > 0 ? text : "none");
}

static moesim_code add_metric(moesim_comparison *c, const char *name, moesim_error *err)
{
    moesim_compare_metric *m = &c->metric[c->num_metrics];
    if (c->num_metrics == MOESIM_COMPARE_METRICS)
        return moesim_fail(err, MOESIM_E_USAGE, "more than %u metrics", MOESIM_COMPARE_METRICS);
    if (!find_metric(c, name, m))
        return unknown_metric(c, name, err);
    for (size_t i = 0; i < c->num_metrics; i++)
        if (strcmp(c->metric[i].name, m->name) == 0)
            return moesim_fail(err, MOESIM_E_USAGE, "metric '%s' is given twice", m->name);
    c->num_metrics++;
    return MOESIM_OK;
}

static moesim_code add_list(moesim_comparison *c, const char *list, moesim_error *err)
{
    char *copy = strdup(list), *rest = copy;
    moesim_code code = copy != NULL ? MOESIM_OK : moesim_fail_nomem(err, "metrics", strlen(list) + 1);
    while (code == MOESIM_OK && rest != NULL)
        code = add_metric(c, strsep(&rest, ","), err);
    free(copy);
    return code;
}

static moesim_code choose_metrics(moesim_comparison *c, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    const moesim_list *asked = &c->options->metric;
    for (size_t i = 0; i < asked->n && code == MOESIM_OK; i++)
        code = add_list(c, asked->item[i], err);
    for (size_t i = 0; asked->n == 0 && i < sizeof usual / sizeof usual[0]; i++)
        c->num_metrics += find_metric(c, usual[i], &c->metric[c->num_metrics]);
    return code == MOESIM_OK && c->num_metrics == 0 ? unknown_metric(c, usual[0], err) : code;
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

/* Rows of /requests by (cell, request). */
typedef struct index {
    const int64_t *cell, *request;
    size_t *row, n;
} index_of_requests;

static int by_request(const void *x, const void *y, void *cookie)
{
    const index_of_requests *index = cookie;
    const size_t i = *(const size_t *)x, j = *(const size_t *)y;
    if (index->cell[i] != index->cell[j])
        return index->cell[i] < index->cell[j] ? -1 : 1;
    return (index->request[i] > index->request[j]) - (index->request[i] < index->request[j]);
}

static moesim_code make_index(const moesim_comparison *c, int side, index_of_requests *out, moesim_error *err)
{
    const moesim_table *t = c->requests[side];
    const moesim_column_data *cell = moesim_table_find(t, "cell"), *request = moesim_table_find(t, "request");
    void *p = NULL;
    if (cell == NULL || cell->integer == NULL || request == NULL || request->integer == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: table requests lacks the integer columns cell and request",
                           c->options->path[side]);
    const moesim_code code = moesim_alloc(t->rows, sizeof(size_t), "rows of requests", &p, err);
    *out = (index_of_requests){cell->integer, request->integer, p, code == MOESIM_OK ? t->rows : 0};
    for (size_t i = 0; i < out->n; i++)
        out->row[i] = i;
    if (code == MOESIM_OK)
        qsort_r(out->row, out->n, sizeof out->row[0], by_request, out);
    for (size_t i = 1; i < out->n; i++)
        if (by_request(&out->row[i - 1], &out->row[i], out) == 0)
            return moesim_fail(err, MOESIM_E_FORMAT, "%s: rows %zu and %zu of /requests are both request %" PRId64 " of cell %"
                               PRId64, c->options->path[side], out->row[i - 1], out->row[i], out->request[out->row[i]],
                               out->cell[out->row[i]]);
    return code;
}

/* The first of the index's rows whose cell is not below `cell`. */
static size_t find_cell(const index_of_requests *index, int64_t cell)
{
    size_t low = 0, high = index->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (index->cell[index->row[middle]] < cell)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- differences --------------------------------------------------------------------------------------------------- */

typedef struct work {
    index_of_requests index[2];
    size_t *common[2];           /* rows of /requests that belong together */
    double *num[2], *den[2];
    size_t room, n;              /* n: common requests of the pair */
    moesim_bootstrap *bootstrap;
    size_t bootstrap_n;
} work;

static void pair_requests(moesim_comparison *c, work *w, const moesim_compare_pair *pair)
{
    size_t at[2], end[2], seen[2];
    for (int side = 0; side < 2; side++) {
        const moesim_column_data *cell = moesim_table_find(c->cells[side], "cell");
        const int64_t id = cell->integer[pair->row[side]];
        at[side] = find_cell(&w->index[side], id);
        end[side] = id < INT64_MAX ? find_cell(&w->index[side], id + 1) : w->index[side].n;
        seen[side] = end[side] - at[side];
    }
    w->n = 0;
    while (at[0] < end[0] && at[1] < end[1]) {
        const size_t i = w->index[0].row[at[0]], j = w->index[1].row[at[1]];
        const int64_t a = w->index[0].request[i], b = w->index[1].request[j];
        if (a == b) {
            w->common[0][w->n] = i;
            w->common[1][w->n++] = j;
        }
        at[0] += a <= b;
        at[1] += b <= a;
    }
    const size_t most = seen[0] > seen[1] ? seen[0] : seen[1];
    c->unpaired = most - w->n > c->unpaired ? most - w->n : c->unpaired;
}

static double number(const moesim_column_data *column, size_t row)
{
    return column->real != NULL ? column->real[row] : (double)column->integer[row];
}

/* Numerators and denominators of the common requests. One that is undefined on a side counts on neither. */
static void terms(const moesim_compare_metric *m, work *w)
{
    for (size_t r = 0; r < w->n; r++) {
        bool defined = true;
        for (int side = 0; side < 2; side++) {
            const size_t row = w->common[side][r];
            const double den = m->den[side] != NULL ? number(m->den[side], row) : 1.0;
            const double num = number(m->num[side], row);
            w->den[side][r] = den;
            w->num[side][r] = !m->ratio ? num : den != 0 ? num * den : 0;
            defined = defined && isfinite(w->den[side][r]) && isfinite(w->num[side][r]);
        }
        for (int side = 0; side < 2 && !defined; side++)
            w->num[side][r] = w->den[side][r] = 0;
    }
}

static double ratio_of_sums(const double *num, const double *den, size_t n)
{
    double sum_num = 0, sum_den = 0;
    for (size_t r = 0; r < n; r++) {
        sum_num += num[r];
        sum_den += den[r];
    }
    return sum_den > 0 ? sum_num / sum_den : (double)NAN;
}

static moesim_code difference(const moesim_comparison *c, work *w, moesim_compare_row *row, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    terms(&c->metric[row->metric], w);
    for (int side = 0; side < 2; side++)
        row->value[side] = ratio_of_sums(w->num[side], w->den[side], w->n);
    row->requests = w->n;
    row->result = (moesim_paired){NAN, {NAN, NAN}, NAN, true, 0};
    if (isnan(row->value[0]) || isnan(row->value[1]))
        return MOESIM_OK;
    if (w->bootstrap == NULL || w->bootstrap_n != w->n) {
        moesim_bootstrap_destroy(&w->bootstrap);
        code = moesim_bootstrap_create(w->n, MOESIM_RESAMPLES, c->options->seed, &w->bootstrap, err);
        w->bootstrap_n = w->n;
    }
    return code == MOESIM_OK ? moesim_bootstrap_paired(w->bootstrap, w->num[0], w->den[0], w->num[1], w->den[1],
                                                       c->options->seed, &row->result, err)
                             : code;
}

static moesim_code reserve(moesim_comparison *c, work *w, moesim_error *err)
{
    void *p = NULL;
    w->room = w->index[0].n < w->index[1].n ? w->index[0].n : w->index[1].n;
    moesim_code code = moesim_alloc(c->num_pairs * c->num_metrics, sizeof *c->row, "differences", &p, err);
    c->row = p;
    for (int side = 0; side < 2 && code == MOESIM_OK; side++) {
        code = moesim_alloc(w->room, sizeof(size_t), "common requests", &p, err);
        w->common[side] = code == MOESIM_OK ? p : NULL;
        if (code == MOESIM_OK)
            code = moesim_alloc(2 * w->room, sizeof(double), "figures by request", &p, err);
        w->num[side] = code == MOESIM_OK ? p : NULL;
        w->den[side] = code == MOESIM_OK ? w->num[side] + w->room : NULL;
    }
    return code;
}

/* One difference, if the pair has requests in common. */
static moesim_code add_row(moesim_comparison *c, work *w, size_t metric, size_t pair, moesim_error *err)
{
    moesim_compare_row *row = &c->row[c->num_rows];
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
    pair_requests(c, w, &c->pair[pair]);
    if (w->n == 0)
        return MOESIM_OK;
    c->num_rows++;
    *row = (moesim_compare_row){.pair = pair, .metric = metric};
    return difference(c, w, row, err);
}

static moesim_code fill(moesim_comparison *c, work *w, moesim_error *err)
{
    moesim_progress progress = {0};
    const size_t total = c->num_metrics * c->num_pairs;
    moesim_code code = reserve(c, w, err);
    if (code != MOESIM_OK)
        return code;
    moesim_progress_begin(&progress, "compare", total, 1, "differences");
    for (size_t i = 0; i < total && code == MOESIM_OK; i++) {
        code = add_row(c, w, i / c->num_pairs, i % c->num_pairs, err);
        moesim_progress_update(&progress, i + 1);
    }
    moesim_progress_end(&progress);
    if (code == MOESIM_OK && c->num_rows == 0)
        code = moesim_fail(err, MOESIM_E_FORMAT, "%s and %s have cells in common, but no request of any of them",
                           c->options->path[0], c->options->path[1]);
    return code;
}

moesim_code moesim_compare_figures(moesim_comparison *c, moesim_error *err)
{
    work w = {.n = 0};
    moesim_code code = choose_metrics(c, err);
    for (int side = 0; side < 2 && code == MOESIM_OK; side++)
        code = make_index(c, side, &w.index[side], err);
    if (code == MOESIM_OK)
        code = fill(c, &w, err);
    for (int side = 0; side < 2; side++) {
        free(w.index[side].row);
        free(w.common[side]);
        free(w.num[side]);
    }
    moesim_bootstrap_destroy(&w.bootstrap);
    return code;
}
