/* SPDX-License-Identifier: Apache-2.0
 *
 * Lines over capacity or bandwidth, one a policy: bounds dashed, the floor that no policy can avoid, knees.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "plots/fill.h"

#define KNEE 1.05                /* of the time at full residency */
#define KNEE_HITS 0.95           /* without times */

struct place { double x; size_t row; };

/* With one budget over all layers capacities are bytes, of which MiB are shown. */
static bool in_bytes(const moesim_cells *c, const char *axis)
{
    const moesim_column_data *column = moesim_table_find(c->table, axis);
    return column != NULL && strcmp(column->unit, "bytes") == 0;
}

static const char *capacity_label(const moesim_cells *c)
{
    return c->table != NULL && in_bytes(c, "cache") ? "cache over all layers [MiB]" : "slots per layer";
}

static int by_x(const void *p, const void *q)
{
    const struct place *a = p, *b = q;
    if (a->x != b->x)
        return a->x > b->x ? 1 : -1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Full residency at every capacity of the others. */
static moesim_code full_places(const moesim_cells *c, struct place *out, size_t *n, moesim_error *err)
{
    double *x = NULL;
    const moesim_code code = moesim_cells_distinct(c, "cache", &x, n, err);
    for (size_t i = 0; code == MOESIM_OK && i < *n; i++)
        out[i] = (struct place){ x[i], c->row[c->n - 1] };
    free(x);
    return code;
}

/* Rows of a policy in the order of the axis. */
static moesim_code places(const moesim_cells *c, const struct moesim_shown_policy *policy, const char *axis, struct place *out,
                          size_t *n, moesim_error *err)
{
    *n = 0;
    if (strcmp(axis, "cache") == 0 && moesim_cells_is_full(c, policy))
        return full_places(c, out, n, err);
    for (size_t i = 0; i < c->n; i++) {
        const double x = moesim_cells_number(c->table, axis, c->row[i]) / (in_bytes(c, axis) ? 0x1p20 : 1.0);
        if (!isnan(x) && moesim_cells_is(c, c->row[i], policy))
            out[(*n)++] = (struct place){ x, c->row[i] };
    }
    qsort(out, *n, sizeof *out, by_x);
    for (size_t i = 1; i < *n; i++)
        if (out[i].x == out[i - 1].x)
            return moesim_fail(err, MOESIM_E_USAGE, "the result has two cells of policy %.100s at %s %g that differ in nothing "
                               "which a figure can hold", policy->name, axis, out[i].x);
    return MOESIM_OK;
}

/* Value of a cell as a point. */
typedef moesim_code point_maker(const moesim_cells *c, const moesim_plot_request *q, const moesim_figure *f, size_t row,
                                moesim_point *out, moesim_error *err);

static moesim_code plain(const moesim_cells *c, const moesim_plot_request *q, const moesim_figure *f, size_t row,
                         moesim_point *out, moesim_error *err)
{
    (void)q;
    (void)err;
    moesim_cells_figure(c, f->value, row, out);
    return MOESIM_OK;
}

/* Misses per pass above the ideal's, paired by request. */
static moesim_code above_ideal(const moesim_cells *c, const moesim_plot_request *q, const moesim_figure *f, size_t row,
                               moesim_point *out, moesim_error *err)
{
    const moesim_ratio ratio = { "misses", NULL, "passes", NULL };
    const size_t ideal = moesim_cells_twin(c, row, "ideal", NULL);
    if (ideal == SIZE_MAX)
        return MOESIM_OK;
    const moesim_code code = moesim_cells_ratio(c, q, &ratio, row, ideal, out, err);
    out->y = moesim_cells_number(c->table, f->value, row) - moesim_cells_number(c->table, f->value, ideal);
    return code;
}

/* ---- knees and floor ----------------------------------------------------------------------------------------------- */

/* Is the cell within 5 % of full residency? By time where the result knows that of `full`, else by hits. */
static bool is_near_full(const moesim_cells *c, size_t row, bool *by_time)
{
    const size_t full = moesim_cells_twin(c, row, "full", "cache");
    const double reference = full == SIZE_MAX ? (double)NAN : moesim_cells_number(c->table, "tpot_ms", full);
    *by_time = !isnan(reference);
    if (*by_time)
        return moesim_cells_number(c->table, "tpot_ms", row) <= KNEE * reference;
    return moesim_cells_number(c->table, "hit_rate", row) >= KNEE_HITS;
}

static moesim_code add_knee(const moesim_cells *c, const struct place *place, size_t n, const moesim_series *line,
                            moesim_series *knees, moesim_error *err)
{
    bool by_time = false;
    for (size_t i = 0; i < n; i++) {
        if (!is_near_full(c, place[i].row, &by_time) || isnan(line->point[i].y))
            continue;
        moesim_point p = moesim_point_none();
        p.x = line->point[i].x;
        p.y = line->point[i].y;
        free(knees->name);
        knees->name = strdup(by_time ? "knee: TPOT ≤ 1.05 × full residency" : "knee: hit rate 95 %");
        if (knees->name == NULL)
            return moesim_fail_nomem(err, "a series", 64);
        return moesim_series_add(knees, p, err);
    }
    return MOESIM_OK;
}

/* Share of the accesses that no policy can avoid, times accesses per pass; the same for all policies of a capacity. */
static moesim_code add_floor(const moesim_cells *c, const moesim_plot_request *q, moesim_chart *chart, moesim_error *err)
{
    moesim_series *s;
    double *x = NULL;
    size_t n = 0;
    const moesim_ratio ratio = { "floor", NULL, "passes", NULL };
    moesim_plot_request quiet = *q;
    quiet.interval = NULL;
    moesim_code code = moesim_chart_add(chart, "floor", "miss floor", 0, &s, err);
    if (code == MOESIM_OK)
        code = moesim_cells_distinct(c, "cache", &x, &n, err);
    for (size_t k = 0, i = 0; code == MOESIM_OK && k < n; k++, i = 0) {
        while (i < c->n && moesim_cells_number(c->table, "cache", c->row[i]) != x[k])
            i++;
        moesim_point p = moesim_point_none();
        code = moesim_cells_ratio(c, &quiet, &ratio, c->row[i], SIZE_MAX, &p, err);
        p.x = x[k];
        if (code == MOESIM_OK && !isnan(p.y))
            code = moesim_series_add(s, p, err);
    }
    free(x);
    return code;
}

/* ---- figures ------------------------------------------------------------------------------------------------------- */

struct lines {
    const moesim_figure *figure;
    const moesim_plot_request *request;
    moesim_chart *chart;
    point_maker *make;
    moesim_series *knees;        /* NULL: without; not yet part of the chart */
};

static moesim_code add_line(const struct lines *l, const moesim_cells *c, const struct moesim_shown_policy *policy,
                            struct place *place, moesim_error *err)
{
    char label[MOESIM_RESULT_TEXT_BYTES + 8];
    size_t n;
    moesim_series *s;
    moesim_cells_label(policy, label, sizeof label);
    moesim_code code = places(c, policy, l->figure->axis, place, &n, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(l->chart, policy->bound ? "bound" : "line",
                                moesim_cells_is_full(c, policy) ? "full residency" : label, policy->look, &s, err);
    for (size_t i = 0; code == MOESIM_OK && i < n; i++) {
        moesim_point p = moesim_point_none();
        code = l->make(c, l->request, l->figure, place[i].row, &p, err);
        p.x = place[i].x;
        if (code == MOESIM_OK)
            code = moesim_series_add(s, p, err);
    }
    if (code == MOESIM_OK && l->knees != NULL && !policy->bound)
        code = add_knee(c, place, n, s, l->knees, err);
    return code;
}

static moesim_code add_lines(const struct lines *l, const moesim_cells *c, const char *const without[2], moesim_error *err)
{
    void *memory = NULL;
    moesim_code code = moesim_alloc(c->n, sizeof(struct place), "points of a line", &memory, err);
    for (size_t i = 0; code == MOESIM_OK && i < c->num_policies; i++)
        if (without == NULL || (strcmp(c->policy[i].name, without[0]) != 0 && strcmp(c->policy[i].name, without[1]) != 0))
            code = add_line(l, c, &c->policy[i], memory, err);
    free(memory);
    return code;
}

/* Points at either end keep clear of the frame. */
static void widen(moesim_chart *chart)
{
    double lo = INFINITY, hi = -INFINITY;
    for (size_t i = 0; i < chart->num_series; i++)
        for (size_t k = 0; k < chart->series[i].n; k++) {
            lo = fmin(lo, chart->series[i].point[k].x);
            hi = fmax(hi, chart->series[i].point[k].x);
        }
    if (!(hi >= lo))
        return;
    const double room = hi > lo ? 0.02 * (hi - lo) : fmax(0.5, 0.1 * fabs(hi));
    const double factor = hi > lo ? pow(hi / lo, 0.02) : 1.5;
    chart->x.lo = chart->x.log2 ? lo / factor : lo - room;
    chart->x.hi = chart->x.log2 ? hi * factor : hi + room;
}

/* Bandwidths double: a logarithmic axis with the values as ticks. */
static moesim_code bandwidth_axis(const moesim_cells *c, moesim_chart *chart, moesim_error *err)
{
    double *x = NULL;
    size_t n = 0;
    char text[32];
    moesim_code code = moesim_cells_distinct(c, "bandwidth_gbps", &x, &n, err);
    for (size_t i = 0; code == MOESIM_OK && i < n; i++) {
        (void)snprintf(text, sizeof text, "%g", x[i]);
        code = moesim_axis_tick(&chart->x, x[i], text, err);
    }
    chart->x.log2 = n > 0 && x[0] > 0;
    (void)snprintf(chart->x.label, sizeof chart->x.label, "link bandwidth [GB/s]");
    free(x);
    return code;
}

moesim_code moesim_fill_capacity(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                 moesim_chart *chart, moesim_error *err)
{
    moesim_cells c;
    const bool over_cache = strcmp(figure->axis, "cache") == 0;
    moesim_series knees = { .n = 0 }, *s;
    const struct lines l = { figure, request, chart, plain, over_cache ? &knees : NULL };
    moesim_code code = moesim_cells_select(result, request, over_cache ? MOESIM_OVER_CACHE : MOESIM_OVER_BANDWIDTH, chart, &c,
                                           err);
    (void)snprintf(chart->x.label, sizeof chart->x.label, "%s", capacity_label(&c));
    chart->y.lo = 0;
    if (code == MOESIM_OK)
        code = add_lines(&l, &c, NULL, err);
    if (code == MOESIM_OK)
        code = moesim_bound_line(&c, figure, chart, err);
    if (code == MOESIM_OK && !over_cache)
        code = bandwidth_axis(&c, chart, err);
    if (code == MOESIM_OK && strcmp(figure->value, "misses_per_pass") == 0 && !in_bytes(&c, "cache"))
        code = add_floor(&c, request, chart, err);
    if (code == MOESIM_OK && knees.n > 0)
        code = moesim_chart_add(chart, "knee", knees.name, 0, &s, err);
    for (size_t i = 0; code == MOESIM_OK && i < knees.n; i++)
        code = moesim_series_add(s, knees.point[i], err);
    free(knees.name);
    free(knees.point);
    widen(chart);
    if (code == MOESIM_OK)
        code = moesim_caption_cells(&c, chart, err);
    moesim_cells_fini(&c);
    return code;
}

moesim_code moesim_fill_gap(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                            moesim_chart *chart, moesim_error *err)
{
    static const char *const not_compared[2] = { "ideal", "full" };  /* full has all experts at any capacity */
    moesim_cells c;
    const struct lines l = { figure, request, chart, above_ideal, NULL };
    moesim_code code = moesim_cells_select(result, request, MOESIM_OVER_CACHE, chart, &c, err);
    if (code == MOESIM_OK && c.n > 0 && moesim_cells_twin(&c, c.row[0], "ideal", NULL) == SIZE_MAX)
        code = moesim_fail(err, MOESIM_E_USAGE, "figure %s needs cells of policy ideal; add `--policy ideal` to the `moesim "
                           "sweep` that wrote the result", figure->name);
    (void)snprintf(chart->x.label, sizeof chart->x.label, "slots per layer");
    chart->y.lo = 0;
    if (code == MOESIM_OK)
        code = add_lines(&l, &c, not_compared, err);
    widen(chart);
    if (code == MOESIM_OK)
        code = moesim_caption_cells(&c, chart, err);
    moesim_cells_fini(&c);
    return code;
}
