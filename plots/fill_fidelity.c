/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of fidelity reports: measured over predicted times by cell, and errors of events by misses.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/fill.h"

#define LONGEST 16               /* interval below a point that widens the axes */
#define BEYOND 1e-9              /* of a point, far below every axis */
#define NARROW 4                 /* axes of up to this factor are linear: powers of two would be one or two */
#define MARGIN 1.25              /* of the axes beyond the outermost points */

/* The columns of "tpot" or "miss". */
typedef struct measure {
    char predicted[32], measured[32], lo[32], hi[32];
} measure;

typedef struct points {
    const moesim_table *cells;
    measure column;
    moesim_chart *chart;
    double lo, hi;               /* of all that is drawn, on either axis */
} points;

static measure columns_of(const moesim_figure *figure)
{
    measure m;
    const int stem = (int)strcspn(figure->value, "_");
    (void)snprintf(m.predicted, sizeof m.predicted, "%.*s_predicted_ms", stem, figure->value);
    (void)snprintf(m.measured, sizeof m.measured, "%.*s_measured_ms", stem, figure->value);
    (void)snprintf(m.lo, sizeof m.lo, "%.*s_measured_lo", stem, figure->value);
    (void)snprintf(m.hi, sizeof m.hi, "%.*s_measured_hi", stem, figure->value);
    return m;
}

static bool is(const points *p, size_t row, const char *column, const char *text)
{
    return strcmp(moesim_cells_text(p->cells, column, row), text) == 0;
}

/* Most axes are logarithmic and hold positive numbers alone; an interval that reaches 0 goes on to the edge. */
static bool get_point(const points *p, size_t row, moesim_point *out)
{
    *out = moesim_point_none();
    out->x = moesim_cells_number(p->cells, p->column.predicted, row);
    out->y = moesim_cells_number(p->cells, p->column.measured, row);
    out->lo = moesim_cells_number(p->cells, p->column.lo, row);
    out->hi = moesim_cells_number(p->cells, p->column.hi, row);
    if (out->lo <= 0)
        out->lo = out->y * BEYOND;
    return out->x > 0 && out->y > 0;
}

/* Intervals are part of what is drawn; one that all but reaches 0 would leave a logarithmic axis no room for the rest. */
static void include(points *p, moesim_point at)
{
    const double shortest = isnan(at.lo) ? at.y : fmax(at.lo, at.y / LONGEST);
    p->lo = fmin(p->lo, fmin(at.x, fmin(at.y, shortest)));
    p->hi = fmax(p->hi, fmax(at.x, fmax(at.y, at.hi)));
}

/* What `by` executed of the cells that have `text` in a column; no series where there is nothing. */
static moesim_code add_series(points *p, const char *by, const char *column, const char *text, const char *role,
                              const char *name, uint32_t look, moesim_error *err)
{
    moesim_series *s = NULL;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < p->cells->rows && code == MOESIM_OK; i++) {
        moesim_point at;
        if (!is(p, i, "executed_by", by) || !is(p, i, column, text) || !get_point(p, i, &at))
            continue;
        if (s == NULL)
            code = moesim_chart_add(p->chart, role, name, look, &s, err);
        if (code == MOESIM_OK)
            code = moesim_series_add(s, at, err);
        include(p, at);
    }
    return code;
}

/* Cells that cannot be drawn; the reference, which takes no longer than itself, is none. */
static size_t count_out(const points *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->cells->rows; i++) {
        moesim_point at;
        n += !is(p, i, "role", "reference") && !get_point(p, i, &at);
    }
    return n;
}

/* Each policy once, in the order of the cells. */
static moesim_code add_policies(points *p, moesim_error *err)
{
    uint32_t look = 0;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < p->cells->rows && code == MOESIM_OK; i++) {
        const char *policy = moesim_cells_text(p->cells, "policy", i);
        char witness[96];
        size_t first = 0;
        while (!is(p, first, "policy", policy))
            first++;
        if (first < i)
            continue;
        (void)snprintf(witness, sizeof witness, "%.64s, second witness", policy);
        code = add_series(p, "replay", "policy", policy, "cell", policy, look, err);
        if (code == MOESIM_OK)
            code = add_series(p, "witness", "policy", policy, "witness", witness, look, err);
        look++;
    }
    return code;
}

static moesim_code add_agreement(const points *p, moesim_error *err)
{
    moesim_series *s = NULL;
    moesim_code code = moesim_chart_add(p->chart, "agree", "predicted = measured", 0, &s, err);
    for (size_t i = 0; i < 2 && code == MOESIM_OK; i++) {
        moesim_point end = moesim_point_none();
        end.x = end.y = i == 0 ? p->lo : p->hi;
        code = moesim_series_add(s, end, err);
    }
    return code;
}

static void caption(const moesim_result *r, moesim_chart *chart)
{
    const char *gpu = moesim_attribute_text(r, "gpu"), *model = moesim_attribute_text(r, "model_id");
    const char *as = moesim_attribute_text(r, "priced_as"), *fitted = moesim_attribute_text(r, "fitted");
    moesim_line_add(chart->subtitle, "%.60s", gpu[0] != '\0' ? gpu : moesim_attribute_text(r, "device"));
    moesim_line_add(chart->subtitle, "routing of %.80s%s%.60s", model[0] != '\0' ? model : "(unnamed model)",
                    as[0] != '\0' ? " executed as " : "", as);
    moesim_line_add(chart->footer, "profile %.60s sha256 %.12s; trace sha256 %.12s", moesim_attribute_text(r, "profile"),
                    moesim_attribute_text(r, "profile_digest"), moesim_attribute_text(r, "trace_digest"));
    moesim_line_add(chart->footer, "%s%.200s", fitted[0] != '\0' ? "fitted on " : "nothing fitted", fitted);
}

moesim_code moesim_fill_fidelity(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                 moesim_chart *chart, moesim_error *err)
{
    points p = { moesim_result_find(result, "cells"), columns_of(figure), chart, INFINITY, 0 };
    moesim_code code = add_policies(&p, err);
    (void)request;
    if (code == MOESIM_OK)
        code = add_series(&p, "replay", "role", "calibration", "fitted", "calibrated on", 0, err);
    if (code != MOESIM_OK || !(p.lo <= p.hi))
        return code;
    p.lo /= MARGIN;
    p.hi *= MARGIN;
    chart->x.lo = chart->y.lo = p.lo;
    chart->x.hi = chart->y.hi = p.hi;
    chart->x.log2 = chart->y.log2 = p.hi / p.lo > NARROW;
    chart->height = 1;
    (void)snprintf(chart->x.label, sizeof chart->x.label, "predicted [ms per output token]");
    moesim_line_add(chart->footer, "bars: 95 %% intervals of the measurement over repeats (Student's t), to the edge "
                    "where they reach 0");
    const size_t out = count_out(&p);
    if (out > 0)
        moesim_line_add(chart->footer, "%zu cell%s of a time of 0 or less, which these axes cannot hold", out,
                        out == 1 ? "" : "s");
    caption(result, chart);
    return add_agreement(&p, err);
}

moesim_code moesim_fill_residuals(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                  moesim_chart *chart, moesim_error *err)
{
    static const struct { const char *column, *name; } curve[] = {
        {"p50", "50th percentile"}, {"p90", "90th percentile"}, {"p99", "99th percentile"}};
    const moesim_table *t = moesim_result_find(result, "misses");
    moesim_code code = MOESIM_OK;
    (void)request;
    for (uint32_t k = 0; k < 3 && code == MOESIM_OK; k++) {
        moesim_series *s = NULL;
        code = moesim_chart_add(chart, "line", curve[k].name, k, &s, err);
        for (size_t i = 0; i < t->rows && code == MOESIM_OK; i++) {
            moesim_point p = moesim_point_none();
            p.x = (double)i;
            p.y = moesim_cells_number(t, curve[k].column, i);
            code = moesim_series_add(s, p, err);
        }
    }
    for (size_t i = 0; i < t->rows && code == MOESIM_OK; i++)
        code = moesim_axis_tick(&chart->x, (double)i, moesim_cells_text(t, "misses", i), err);
    chart->x.lo = -0.3;
    chart->x.hi = (double)t->rows - 0.7;
    chart->y.lo = 0;
    (void)snprintf(chart->x.label, sizeof chart->x.label, "misses of the event [experts]");
    (void)snprintf(chart->y.label, sizeof chart->y.label, "%s", figure->label);
    caption(result, chart);
    return code;
}
