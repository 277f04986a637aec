/* SPDX-License-Identifier: Apache-2.0
 *
 * Capacity × bandwidth: the least TPOT that a causal policy reaches as colour, and which policy it is as a mark.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/fill.h"

#define MAX_LABELS 12u           /* ticks of y */
#define LABEL_MM 10.0            /* room for a tick of an axis */

struct grid {
    const moesim_cells *cells;
    const moesim_plot_request *request;
    const moesim_figure *figure;
    double *cache, *bandwidth;
    size_t num_caches, num_bandwidths;
    moesim_series *tiles, **sure, **unsure;      /* marks: [num_policies] */
    bool any_unsure;
};

static bool competes(const struct moesim_shown_policy *p)
{
    return !p->bound && !p->clairvoyant;
}

/* Index of the row's policy, SIZE_MAX where it does not compete. */
static size_t competitor(const moesim_cells *c, size_t row)
{
    for (size_t k = 0; k < c->num_policies; k++)
        if (moesim_cells_is(c, row, &c->policy[k]))
            return competes(&c->policy[k]) ? k : SIZE_MAX;
    return SIZE_MAX;
}

/* Rows of the least and the second least figure at a place of the grid; SIZE_MAX where there is none. */
static void two_best(const struct grid *g, double cache, double bandwidth, size_t best[2])
{
    double value[2] = { INFINITY, INFINITY };
    best[0] = best[1] = SIZE_MAX;
    for (size_t i = 0; i < g->cells->n; i++) {
        const size_t row = g->cells->row[i];
        if (moesim_cells_number(g->cells->table, "cache", row) != cache ||
            moesim_cells_number(g->cells->table, "bandwidth_gbps", row) != bandwidth || competitor(g->cells, row) == SIZE_MAX)
            continue;
        const double v = moesim_cells_number(g->cells->table, g->figure->value, row);
        const size_t at = v < value[0] ? 0 : 1;
        if (!(v < value[1]))
            continue;
        if (at == 0) {
            value[1] = value[0];
            best[1] = best[0];
        }
        value[at] = v;
        best[at] = row;
    }
}

static moesim_code add_place(struct grid *g, size_t i, size_t k, moesim_error *err)
{
    const moesim_ratio ratio = { "tpot_ms", "output_tokens", "output_tokens", NULL };
    size_t best[2];
    two_best(g, g->cache[i], g->bandwidth[k], best);
    if (best[0] == SIZE_MAX)
        return MOESIM_OK;
    moesim_point p = moesim_point_none(), difference = moesim_point_none();
    moesim_code code = MOESIM_OK;
    if (best[1] != SIZE_MAX)
        code = moesim_cells_ratio(g->cells, g->request, &ratio, best[0], best[1], &difference, err);
    const bool unsure = difference.lo <= 0 && difference.hi >= 0;
    g->any_unsure = g->any_unsure || unsure;
    p.x = (double)i;
    p.y = (double)k;
    p.lo = moesim_cells_number(g->cells->table, g->figure->value, best[0]);
    if (code == MOESIM_OK)
        code = moesim_series_add(g->tiles, p, err);
    moesim_series **marks = unsure ? g->unsure : g->sure;
    return code == MOESIM_OK ? moesim_series_add(marks[competitor(g->cells, best[0])], p, err) : code;
}

/* A mark series for each policy that competes, solid ones named; an empty series still needs its place in the legend. */
static moesim_code add_marks(struct grid *g, moesim_chart *chart, moesim_error *err)
{
    uint32_t look = 0;
    moesim_code code = MOESIM_OK;
    g->sure = calloc(2 * g->cells->num_policies + 1, sizeof *g->sure);
    if (g->sure == NULL)
        return moesim_fail_nomem(err, "marks of a figure", 2 * g->cells->num_policies * sizeof *g->sure);
    g->unsure = g->sure + g->cells->num_policies;
    for (size_t i = 0; code == MOESIM_OK && i < g->cells->num_policies; i++) {
        if (!competes(&g->cells->policy[i]))
            continue;
        code = moesim_chart_add(chart, "mark", g->cells->policy[i].name, look, &g->sure[i], err);
        if (code == MOESIM_OK)
            code = moesim_chart_add(chart, "mark-open", "", look, &g->unsure[i], err);
        look++;
    }
    return code == MOESIM_OK && look == 0 ? moesim_fail(err, MOESIM_E_USAGE, "figure %s compares causal policies, and none is "
                                                        "among the chosen ones", g->figure->name) : code;
}

/* Ticks with the values, not more than have room. */
static moesim_code ticks(moesim_axis *axis, const double *value, size_t n, size_t most, moesim_error *err)
{
    char text[32];
    const size_t step = (n + most - 1) / most;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && i < n; i += step) {
        (void)snprintf(text, sizeof text, "%g", value[i]);
        code = moesim_axis_tick(axis, (double)i, text, err);
    }
    axis->lo = -0.5;
    axis->hi = (double)n - 0.5;
    return code;
}

/* Greatest over least. */
static double spread(const moesim_series *tiles)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < tiles->n; i++) {
        least = fmin(least, tiles->point[i].lo);
        most = fmax(most, tiles->point[i].lo);
    }
    return least > 0 ? most / least : 0;
}

static moesim_code fill(struct grid *g, moesim_chart *chart, moesim_error *err)
{
    moesim_code code = moesim_cells_distinct(g->cells, "cache", &g->cache, &g->num_caches, err);
    if (code == MOESIM_OK)
        code = moesim_cells_distinct(g->cells, "bandwidth_gbps", &g->bandwidth, &g->num_bandwidths, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "tile", "", 0, &g->tiles, err);
    if (code == MOESIM_OK)
        code = add_marks(g, chart, err);
    for (size_t i = 0; code == MOESIM_OK && i < g->num_caches; i++)
        for (size_t k = 0; code == MOESIM_OK && k < g->num_bandwidths; k++)
            code = add_place(g, i, k, err);
    if (code == MOESIM_OK)
        code = ticks(&chart->x, g->cache, g->num_caches, (size_t)(g->request->width_mm / LABEL_MM), err);
    if (code == MOESIM_OK)
        code = ticks(&chart->y, g->bandwidth, g->num_bandwidths, MAX_LABELS, err);
    (void)snprintf(chart->x.label, sizeof chart->x.label, "slots per layer");
    (void)snprintf(chart->y.label, sizeof chart->y.label, "link bandwidth [GB/s]");
    (void)snprintf(chart->colour_label, sizeof chart->colour_label, "%s", g->figure->label);
    chart->height = fmin(0.6, 0.12 + 0.06 * (double)g->num_bandwidths);
    chart->log_colour = code == MOESIM_OK && spread(g->tiles) > 8;
    if (g->any_unsure)
        moesim_line_add(chart->footer, "hollow mark: not distinguishable from the second best (paired interval contains 0)");
    free(g->cache);
    free(g->bandwidth);
    free(g->sure);
    return code;
}

moesim_code moesim_fill_grid(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                             moesim_chart *chart, moesim_error *err)
{
    moesim_cells c;
    struct grid g = { .cells = &c, .request = request, .figure = figure };
    moesim_code code = moesim_cells_select(result, request, MOESIM_OVER_CACHE | MOESIM_OVER_BANDWIDTH, chart, &c, err);
    if (code == MOESIM_OK)
        code = fill(&g, chart, err);
    for (size_t i = 0; i < c.num_policies; i++)
        c.policy[i].clairvoyant = false;     /* none of them is shown */
    if (code == MOESIM_OK)
        code = moesim_caption_cells(&c, chart, err);
    moesim_cells_fini(&c);
    return code;
}
