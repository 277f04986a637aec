/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of a trace's statistics: stability by confidence (OLED-MoE Fig. 10) and overlap by lag (Fig. 7).
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/fill.h"

static moesim_code add_point(moesim_series *s, double x, double y, moesim_error *err)
{
    moesim_point p = moesim_point_none();
    p.x = x;
    p.y = y;
    return moesim_series_add(s, p, err);
}

/* Σ samples behind a curve, least and most by point. */
static void say_samples(const moesim_table *t, const char *column, const char *what, moesim_chart *chart)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < t->rows; i++) {
        const double n = moesim_cells_number(t, column, i);
        least = fmin(least, n);
        most = fmax(most, n);
    }
    moesim_line_add(chart->footer, "%s: %.0f to %.0f samples a point; no intervals, since the file holds sums over all "
                    "requests", what, least, most);
}

/* One curve: numerator over `scale` times samples, of the rows that have samples. */
static moesim_code add_curve(const moesim_table *t, const char *role, const char *name, uint32_t look,
                             const char *const column[2], double scale, moesim_chart *chart, moesim_error *err)
{
    moesim_series *s;
    moesim_code code = moesim_chart_add(chart, role, name, look, &s, err);
    for (size_t i = 0; code == MOESIM_OK && i < t->rows; i++) {
        const double n = moesim_cells_number(t, column[1], i), v = moesim_cells_number(t, column[0], i);
        code = add_point(s, moesim_cells_number(t, "confidence", i), n > 0 ? v / (scale * n) : (double)NAN, err);
    }
    return code;
}

static void share_axis(moesim_chart *chart, const char *x, const char *y)
{
    (void)snprintf(chart->x.label, sizeof chart->x.label, "%s", x);
    (void)snprintf(chart->y.label, sizeof chart->y.label, "%s", y);
    chart->y.lo = 0;
    chart->y.hi = 1;
}

moesim_code moesim_fill_stability(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                  moesim_chart *chart, moesim_error *err)
{
    static const struct { const char *role, *name, *column[2]; uint32_t look; bool share; } curves[] = {
        { "line", "all K kept, masked rows", { "masked_full", "masked_n" }, 0, false },
        { "line", "all K kept, all rows", { "all_full", "all_n" }, 1, false },
        { "bound", "mean share kept, masked rows", { "masked_kept", "masked_n" }, 0, true },
        { "bound", "mean share kept, all rows", { "all_kept", "all_n" }, 1, true },
    };
    const moesim_table *t = moesim_result_find(result, "stability");
    const char *text = moesim_result_get(result, "top_k");
    double top_k = 0;
    moesim_series *s;
    moesim_code code = text != NULL && sscanf(text, "%lf", &top_k) == 1 && top_k >= 1
                           ? MOESIM_OK
                           : moesim_fail(err, MOESIM_E_FORMAT, "figure %s: attribute top_k is missing", figure->name);
    for (size_t i = 0; code == MOESIM_OK && i < sizeof curves / sizeof curves[0]; i++)
        code = add_curve(t, curves[i].role, curves[i].name, curves[i].look, curves[i].column, curves[i].share ? top_k : 1.0,
                         chart, err);
    if (code == MOESIM_OK && request->published != NULL)
        code = moesim_chart_add(chart, "reference", "all K kept, published", 0, &s, err);
    for (size_t i = 0; code == MOESIM_OK && request->published != NULL && i < request->num_published && i < t->rows; i++)
        code = add_point(s, moesim_cells_number(t, "confidence", i), request->published[i], err);
    share_axis(chart, "confidence (middle of the bin)", figure->label);
    chart->x.lo = 0;
    chart->x.hi = 1;
    moesim_caption_stats(result, chart);
    if (request->published != NULL)
        moesim_line_add(chart->footer, "published: %s, of that model and its requests, not of this trace",
                        request->published_name);
    say_samples(t, "all_n", "all rows", chart);
    return code;
}

moesim_code moesim_fill_overlap(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                moesim_chart *chart, moesim_error *err)
{
    static const struct { const char *name, *level, *column; } rows[] = {
        { "over the later pass's experts", "later pass's, block to block", "over_new" },
        { "over the earlier pass's experts", "earlier pass's, block to block", "over_old" },
    };
    const moesim_table *t = moesim_result_find(result, "overlap"), *boundary = moesim_result_find(result, "boundary");
    moesim_code code = MOESIM_OK;
    moesim_series *s;
    (void)request;
    for (uint32_t k = 0; k < 2 && code == MOESIM_OK; k++) {
        code = moesim_chart_add(chart, "line", rows[k].name, k, &s, err);
        for (size_t i = 0; i < t->rows && code == MOESIM_OK; i++)
            code = add_point(s, moesim_cells_number(t, "lag", i), moesim_cells_number(t, rows[k].column, i), err);
    }
    for (uint32_t k = 0; k < 2 && code == MOESIM_OK; k++) {
        const double level = moesim_cells_number(boundary, rows[k].column, 0);
        if (isnan(level))
            continue;
        code = moesim_chart_add(chart, "bound", rows[k].level, k, &s, err);
        for (size_t i = 0; i < t->rows && code == MOESIM_OK; i++)
            code = add_point(s, moesim_cells_number(t, "lag", i), level, err);
    }
    chart->x.lo = 0.7;
    chart->x.hi = moesim_cells_number(t, "lag", t->rows - 1) + 0.3;
    share_axis(chart, "lag [passes of one block]", figure->label);
    moesim_caption_stats(result, chart);
    say_samples(t, "over_new_n", "by lag", chart);
    return code;
}
