/* SPDX-License-Identifier: Apache-2.0
 *
 * A figure as data, before gnuplot: texts, axes, and series of points with a role. Roles are drawn by the figure's template
 * (plots/NAME.gp), which has one or more plot clauses for each role that it knows.
 * Thread safety: one chart belongs to one thread.
 */
#ifndef MOESIM_PLOTS_CHART_H
#define MOESIM_PLOTS_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_CHART_SERIES 64u          /* most series of one figure */
#define MOESIM_CHART_POINTS 200000u      /* most points of one figure */
#define MOESIM_CHART_TEXT 1024u          /* bytes of a text, the final zero included */

/* Numbers of a point; what they mean depends on the role. NaN: not drawn. Unused ones are NaN. */
typedef struct moesim_point {
    double x, y;
    double lo, hi;                       /* line: interval of y; rectangle: y from lo to hi; value and tile: lo is the number */
    double from, to;                     /* rectangle and lying interval: x from .. to */
} moesim_point;

/* role: word that the template's clauses begin with. */
typedef struct moesim_series {
    char role[16];
    char *name;                          /* in the legend, "" for none; owned */
    uint32_t look;                       /* number of colour and mark */
    size_t n, room;
    moesim_point *point;                 /* owned */
} moesim_series;

typedef struct moesim_tick { char *text; double at; } moesim_tick;

typedef struct moesim_axis {
    char label[128];                     /* with unit */
    double lo, hi;                       /* NaN: as the data want it */
    int log2;                            /* logarithmic, base 2 */
    size_t num_ticks;                    /* 0: gnuplot chooses */
    moesim_tick *tick;                   /* owned */
} moesim_axis;

typedef struct moesim_chart {
    char title[MOESIM_CHART_TEXT];
    char subtitle[MOESIM_CHART_TEXT];    /* lines separated by '\n' */
    char footer[2 * MOESIM_CHART_TEXT];  /* small print, the same */
    char chosen[MOESIM_CHART_TEXT];      /* what was chosen where the result has more than the figure shows, for the terminal */
    char colour_label[128];              /* of the colour scale, "" without one */
    int log_colour;                      /* its scale is logarithmic */
    double height;                       /* of the plot area over the figure's width */
    moesim_axis x, y;
    size_t num_series;
    moesim_series series[MOESIM_CHART_SERIES];
} moesim_chart;

void moesim_chart_init(moesim_chart *c);
void moesim_chart_fini(moesim_chart *c);

/* Adds a series; LIMIT where there are too many. The pointer holds as long as the chart. */
moesim_code moesim_chart_add(moesim_chart *c, const char *role, const char *name, uint32_t look, moesim_series **out,
                             moesim_error *err);
moesim_code moesim_series_add(moesim_series *s, moesim_point point, moesim_error *err);
moesim_code moesim_axis_tick(moesim_axis *a, double at, const char *text, moesim_error *err);

static inline moesim_point moesim_point_none(void)
{
    const double none = __builtin_nan("");
    const moesim_point p = { none, none, none, none, none, none };
    return p;
}

#endif
