/* SPDX-License-Identifier: Apache-2.0
 *
 * offline-cost in figures of TPOT: a bound that is of no policy but of capacity, bandwidth and trace, so that every cell there
 * carries it (column tpot_bound_ms).
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/fill.h"

#define COLUMN "tpot_bound_ms"

double moesim_bound_at(const moesim_cells *c, const char *column, double at, const char *trace)
{
    for (size_t i = 0; i < c->n; i++) {
        const size_t row = c->row[i];
        const double v = moesim_cells_number(c->table, COLUMN, row);
        if (isnan(v) || (column != NULL && moesim_cells_number(c->table, column, row) != at) ||
            (trace != NULL && strcmp(moesim_cells_text(c->table, "trace", row), trace) != 0))
            continue;
        return v;
    }
    return NAN;
}

bool moesim_bound_shown(const moesim_cells *c, const moesim_figure *figure, moesim_chart *chart)
{
    if (strcmp(figure->value, "tpot_ms") != 0 || isnan(moesim_bound_at(c, NULL, 0, NULL)))
        return false;
    moesim_line_add(chart->footer, MOESIM_BOUND_NAME ": lower bound for any policy of fixed slots that does not prefetch");
    return true;
}

moesim_code moesim_bound_line(const moesim_cells *c, const moesim_figure *figure, moesim_chart *chart, moesim_error *err)
{
    moesim_series *s;
    double *x = NULL;
    size_t n = 0;
    if (!moesim_bound_shown(c, figure, chart))
        return MOESIM_OK;
    moesim_code code = moesim_chart_add(chart, "bound", MOESIM_BOUND_NAME, MOESIM_BOUND_LOOK, &s, err);
    if (code == MOESIM_OK)
        code = moesim_cells_distinct(c, figure->axis, &x, &n, err);
    for (size_t i = 0; code == MOESIM_OK && i < n; i++) {
        moesim_point p = moesim_point_none();
        p.x = x[i];
        p.y = moesim_bound_at(c, figure->axis, x[i], NULL);
        if (!isnan(p.y))
            code = moesim_series_add(s, p, err);
    }
    free(x);
    return code;
}
