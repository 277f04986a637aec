/* SPDX-License-Identifier: Apache-2.0
 *
 * Capacity × bandwidth: the least TPOT that a causal policy reaches as colour, and which policy it is as a mark.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/text.h"
#include "plots/fill.h"
#include "plots/look.h"

#define MAX_LABELS 12u           /* ticks of y */
#define LABEL_MM 10.0            /* room for a tick of an axis */

/* One combination of capacity and bandwidth: its best row, SIZE_MAX where nothing competes. */
struct place { size_t best; bool unsure; };

struct grid {
    const moesim_cells *cells;
    const moesim_plot_request *request;
    const moesim_figure *figure;
    double *cache, *bandwidth;
    size_t num_caches, num_bandwidths;
    struct place *place;         /* [num_caches][num_bandwidths] */
    uint32_t *look;              /* [num_policies]; that of a policy which is best somewhere, else NONE */
    moesim_series *tiles, *mark[2][MOESIM_LOOK_MARKS];       /* solid, hollow */
    uint32_t num_looks;
};

#define NONE UINT32_MAX

static bool competes(const struct moesim_shown_policy *p)
{
    return !p->bound && p->mark == 0;
}

/* Index of the row's policy, SIZE_MAX where it does not compete. */
static size_t competitor(const moesim_cells *c, size_t row)
{
    for (size_t k = 0; k < c->num_policies; k++)
        if (moesim_cells_is(c, row, &c->policy[k]))
            return competes(&c->policy[k]) ? k : SIZE_MAX;
    return SIZE_MAX;
}

static bool is_at(const struct grid *g, size_t row, double cache, double bandwidth)
{
    return moesim_cells_number(g->cells->table, "cache", row) == cache &&
           moesim_cells_number(g->cells->table, "bandwidth_gbps", row) == bandwidth && competitor(g->cells, row) != SIZE_MAX;
}

static double value_of(const struct grid *g, size_t row)
{
    return moesim_cells_number(g->cells->table, g->figure->value, row);
}

/* The best row, and whether there is one that it cannot be told from. */
static moesim_code find_best(const struct grid *g, double cache, double bandwidth, struct place *p, moesim_error *err)
{
    const moesim_table *requests = moesim_result_find(g->cells->result, "requests");
    const bool sums = requests != NULL && moesim_table_find(requests, "decode_ms") != NULL;
    const moesim_ratio ratio = { sums ? "decode_ms" : "tpot_ms", sums ? NULL : "output_tokens", "output_tokens", NULL };
    double least = INFINITY;
    *p = (struct place){ SIZE_MAX, false };
    for (size_t i = 0; i < g->cells->n; i++) {
        const size_t row = g->cells->row[i];
        if (!is_at(g, row, cache, bandwidth) || !(value_of(g, row) < least))
            continue;
        least = value_of(g, row);
        p->best = row;
    }
    for (size_t i = 0; i < g->cells->n && p->best != SIZE_MAX && !p->unsure; i++) {
        const size_t row = g->cells->row[i];
        bool differs = true;
        if (row == p->best || !is_at(g, row, cache, bandwidth) || isnan(value_of(g, row)))
            continue;
        if (moesim_cells_differ(g->cells, g->request, &ratio, p->best, row, &differs, err) != MOESIM_OK)
            return err->code;
        p->unsure = !differs;
    }
    return MOESIM_OK;
}

/* Looks for the policies that are best somewhere: only so many shapes are told apart. */
static moesim_code give_looks(struct grid *g, moesim_error *err)
{
    char names[256] = "";
    for (size_t k = 0; k < g->cells->num_policies; k++) {
        bool best = false;
        for (size_t i = 0; i < g->num_caches * g->num_bandwidths; i++)
            best = best || (g->place[i].best != SIZE_MAX && competitor(g->cells, g->place[i].best) == k);
        g->look[k] = best ? g->num_looks++ : NONE;
        if (best)
            moesim_text_add(names, sizeof names, "%s%.40s", names[0] != '\0' ? ", " : "", g->cells->policy[k].name);
    }
    if (g->num_looks == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "figure %s compares causal policies, and none is among the chosen ones",
                           g->figure->name);
    if (g->num_looks > MOESIM_LOOK_MARKS)
        return moesim_fail(err, MOESIM_E_USAGE, "figure %s has marks for %u policies, and %u are best somewhere (%s); choose "
                           "some with --policy", g->figure->name, MOESIM_LOOK_MARKS, g->num_looks, names);
    return MOESIM_OK;
}

/* A solid and a hollow series for each of them; the hollow ones have one entry in the legend. */
static moesim_code add_marks(struct grid *g, moesim_chart *chart, bool unsure, moesim_error *err)
{
    moesim_series *hollow;
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; code == MOESIM_OK && k < g->cells->num_policies; k++) {
        const uint32_t look = g->look[k];
        if (look == NONE)
            continue;
        code = moesim_chart_add(chart, "mark", g->cells->policy[k].name, look, &g->mark[0][look], err);
        if (code == MOESIM_OK)
            code = moesim_chart_add(chart, "mark-open", "", look, &g->mark[1][look], err);
    }
    return code == MOESIM_OK && unsure ? moesim_chart_add(chart, "mark-open", "hollow: not distinguishable", 0, &hollow, err)
                                       : code;
}

static moesim_code add_place(struct grid *g, size_t i, size_t k, moesim_error *err)
{
    const struct place *at = &g->place[i * g->num_bandwidths + k];
    if (at->best == SIZE_MAX)
        return MOESIM_OK;
    moesim_point p = moesim_point_none();
    p.x = (double)i;
    p.y = (double)k;
    p.lo = value_of(g, at->best);
    const moesim_code code = moesim_series_add(g->tiles, p, err);
    return code == MOESIM_OK
               ? moesim_series_add(g->mark[at->unsure][g->look[competitor(g->cells, at->best)]], p, err) : code;
}

/* Finds the best of every place, and draws it. */
static moesim_code add_places(struct grid *g, moesim_chart *chart, moesim_error *err)
{
    bool unsure = false;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && i < g->num_caches * g->num_bandwidths; i++) {
        code = find_best(g, g->cache[i / g->num_bandwidths], g->bandwidth[i % g->num_bandwidths], &g->place[i], err);
        unsure = unsure || g->place[i].unsure;
    }
    if (code == MOESIM_OK)
        code = give_looks(g, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "tile", "", 0, &g->tiles, err);
    if (code == MOESIM_OK)
        code = add_marks(g, chart, unsure, err);
    for (size_t i = 0; code == MOESIM_OK && i < g->num_caches * g->num_bandwidths; i++)
        code = add_place(g, i / g->num_bandwidths, i % g->num_bandwidths, err);
    if (unsure)
        moesim_line_add(chart->footer, "hollow: the best cannot be told from another one (paired on requests: 95 %% interval "
                        "contains 0, or sign-flip p ≥ .05)");
    return code;
}

/* Which policies were compared; the legend names those alone that are best somewhere. */
static void say_compared(const struct grid *g, moesim_chart *chart)
{
    char names[512] = "";
    for (size_t k = 0; k < g->cells->num_policies; k++)
        if (competes(&g->cells->policy[k]))
            moesim_text_add(names, sizeof names, "%s%.60s", names[0] != '\0' ? ", " : "", g->cells->policy[k].name);
    moesim_line_add(chart->footer, "compared: %s", names);
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
    void *place = NULL, *look = NULL;
    if (code == MOESIM_OK)
        code = moesim_alloc(g->num_caches * g->num_bandwidths, sizeof *g->place, "places of a grid", &place, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(g->cells->num_policies, sizeof *g->look, "looks", &look, err);
    g->place = place;
    g->look = look;
    if (code == MOESIM_OK)
        code = add_places(g, chart, err);
    if (code == MOESIM_OK)
        code = ticks(&chart->x, g->cache, g->num_caches, (size_t)(g->request->width_mm / LABEL_MM), err);
    if (code == MOESIM_OK)
        code = ticks(&chart->y, g->bandwidth, g->num_bandwidths, MAX_LABELS, err);
    (void)snprintf(chart->x.label, sizeof chart->x.label, "slots per layer");
    (void)snprintf(chart->y.label, sizeof chart->y.label, "link bandwidth [GB/s]");
    (void)snprintf(chart->colour_label, sizeof chart->colour_label, "%s", g->figure->label);
    chart->height = fmin(0.6, 0.12 + 0.06 * (double)g->num_bandwidths);
    chart->log_colour = code == MOESIM_OK && spread(g->tiles) > 8;
    say_compared(g, chart);
    free(g->cache);
    free(g->bandwidth);
    free(place);
    free(look);
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
        c.policy[i].mark = 0;     /* none of them is shown */
    if (code == MOESIM_OK)
        code = moesim_caption_cells(&c, chart, err);
    moesim_cells_fini(&c);
    return code;
}
