/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of fidelity reports: measured over predicted times by cell, and errors of events by misses.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/fill.h"

#define MARGIN 1.25              /* of the axes beyond the outermost points */
#define MOST_POLICIES 32u

/* The measured column that goes with a predicted one: "tpot" or "miss". */
typedef struct measure {
    char predicted[32], measured[32], lo[32], hi[32];
} measure;

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

/* Logarithmic axes hold positive numbers alone. */
static bool get_point(const moesim_table *t, const measure *m, size_t row, moesim_point *out)
{
    *out = moesim_point_none();
    out->x = moesim_cells_number(t, m->predicted, row);
    out->y = moesim_cells_number(t, m->measured, row);
    out->lo = moesim_cells_number(t, m->lo, row);
    out->hi = moesim_cells_number(t, m->hi, row);
    if (!(out->lo > 0))
        out->lo = out->hi = NAN;
    return out->x > 0 && out->y > 0;
}

static moesim_code add_series(const moesim_table *t, const measure *m, const char *role, const char *name, uint32_t look,
                              const char *by, const char *policy, moesim_chart *chart, double *lo, double *hi,
                              moesim_error *err)
{
    moesim_series *s = NULL;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < t->rows && code == MOESIM_OK; i++) {
        moesim_point p;
        if (strcmp(moesim_cells_text(t, "executed_by", i), by) != 0 ||
            strcmp(moesim_cells_text(t, policy != NULL ? "policy" : "role", i), policy != NULL ? policy : "calibration") != 0 ||
            !get_point(t, m, i, &p))
            continue;
        if (s == NULL)
            code = moesim_chart_add(chart, role, name, look, &s, err);
        if (code == MOESIM_OK)
            code = moesim_series_add(s, p, err);
        *lo = fmin(*lo, fmin(p.x, p.y));
        *hi = fmax(*hi, fmax(p.x, p.y));
    }
    return code;
}

static moesim_code add_agreement(moesim_chart *chart, double lo, double hi, moesim_error *err)
{
    moesim_series *s = NULL;
    moesim_code code = moesim_chart_add(chart, "agree", "predicted = measured", 0, &s, err);
    for (size_t i = 0; i < 2 && code == MOESIM_OK; i++) {
        moesim_point p = moesim_point_none();
        p.x = p.y = i == 0 ? lo : hi;
        code = moesim_series_add(s, p, err);
    }
    return code;
}

static size_t list_policies(const moesim_table *t, const char *list[MOST_POLICIES])
{
    size_t n = 0;
    for (size_t i = 0; i < t->rows; i++) {
        const char *policy = moesim_cells_text(t, "policy", i);
        size_t k = 0;
        while (k < n && strcmp(list[k], policy) != 0)
            k++;
        if (k == n && n < MOST_POLICIES)
            list[n++] = policy;
    }
    return n;
}

static void caption(const moesim_result *r, moesim_chart *chart)
{
    const char *const name[] = {"gpu", "device", "profile", "profile_digest", "fitted", "trace_digest", "model_id",
                                "priced_as"};
    const char *text[8];
    for (size_t i = 0; i < 8; i++) {
        const char *value = moesim_result_get(r, name[i]);
        text[i] = value != NULL ? value : "";
    }
    moesim_line_add(chart->subtitle, "%.60s", text[0][0] != '\0' ? text[0] : text[1]);
    moesim_line_add(chart->subtitle, "routing of %.80s executed as %.60s", text[6][0] != '\0' ? text[6] : "(unnamed model)",
                    text[7][0] != '\0' ? text[7] : "itself");
    moesim_line_add(chart->footer, "profile %.60s sha256 %.12s; trace sha256 %.12s", text[2], text[3], text[5]);
    moesim_line_add(chart->footer, "%s%.200s", text[4][0] != '\0' ? "fitted on " : "nothing fitted", text[4]);
}

moesim_code moesim_fill_fidelity(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                 moesim_chart *chart, moesim_error *err)
{
    const moesim_table *t = moesim_result_find(result, "cells");
    const measure m = columns_of(figure);
    const char *policy[MOST_POLICIES];
    const size_t n = list_policies(t, policy);
    double lo = INFINITY, hi = 0;
    moesim_code code = MOESIM_OK;
    char name[96];
    (void)request;
    for (size_t k = 0; k < n && code == MOESIM_OK; k++) {
        code = add_series(t, &m, "cell", policy[k], (uint32_t)k, "replay", policy[k], chart, &lo, &hi, err);
        (void)snprintf(name, sizeof name, "%.64s, second witness", policy[k]);
        if (code == MOESIM_OK)
            code = add_series(t, &m, "witness", name, (uint32_t)k, "witness", policy[k], chart, &lo, &hi, err);
    }
    if (code == MOESIM_OK)
        code = add_series(t, &m, "fitted", "calibrated on", 0, "replay", NULL, chart, &lo, &hi, err);
    if (code != MOESIM_OK || !(lo <= hi))
        return code;
    lo /= MARGIN;
    hi *= MARGIN;
    chart->x.lo = chart->y.lo = lo;
    chart->x.hi = chart->y.hi = hi;
    chart->x.log2 = chart->y.log2 = 1;
    chart->height = 1;
    (void)snprintf(chart->x.label, sizeof chart->x.label, "predicted [ms per output token]");
    moesim_line_add(chart->footer, "bars: 95 %% intervals of the measurement over repeats (Student's t)");
    caption(result, chart);
    return add_agreement(chart, lo, hi, err);
}

moesim_code moesim_fill_residuals(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                  moesim_chart *chart, moesim_error *err)
{
    static const struct { const char *column, *name; } curve[] = {
        {"p50", "50th percentile"}, {"p90", "90th percentile"}, {"p99", "99th percentile"}};
    const moesim_table *t = moesim_result_find(result, "misses");
    moesim_code code = MOESIM_OK;
    (void)request;
    (void)figure;
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
    (void)snprintf(chart->y.label, sizeof chart->y.label, "|ln(measured / predicted)|");
    caption(result, chart);
    return code;
}
