/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions that fill charts, and the texts that all figures share.
 */
#ifndef MOESIM_PLOTS_FILL_H
#define MOESIM_PLOTS_FILL_H

#include "plots/cells.h"
#include "plots/chart.h"
#include "plots/figures.h"

moesim_figure_fill moesim_fill_capacity;     /* curve, tpot-curve, bandwidth: value over an axis, a line a policy */
moesim_figure_fill moesim_fill_gap;          /* misses above ideal over capacity */
moesim_figure_fill moesim_fill_bars;         /* value by policy and workload */
moesim_figure_fill moesim_fill_breakdown;    /* parts of TPOT, stacked */
moesim_figure_fill moesim_fill_grid;         /* best policy over capacity and bandwidth */
moesim_figure_fill moesim_fill_stability;
moesim_figure_fill moesim_fill_overlap;
moesim_figure_fill moesim_fill_fidelity;     /* measured over predicted, a point a cell */
moesim_figure_fill moesim_fill_residuals;    /* errors of events by misses */

/* offline-cost, where cells carry it and the figure shows TPOT. shown also says in the footer what it is; at: its TPOT at a
 * value of a column (NULL: any) of a trace (NULL: any), NaN where there is none; line: drawn over the figure's axis. */
#define MOESIM_BOUND_NAME "offline-cost"
#define MOESIM_BOUND_LOOK 6u             /* black */
bool moesim_bound_shown(const moesim_cells *c, const moesim_figure *figure, moesim_chart *chart);
double moesim_bound_at(const moesim_cells *c, const char *column, double at, const char *trace);
moesim_code moesim_bound_line(const moesim_cells *c, const moesim_figure *figure, moesim_chart *chart, moesim_error *err);

/* An attribute of a result, "" where it has none. */
const char *moesim_attribute_text(const moesim_result *r, const char *name);

/* Small print of sweeps: "routing of X priced as Y", n, digests, profile. Call after the series are there. */
moesim_code moesim_caption_cells(const moesim_cells *cells, moesim_chart *chart, moesim_error *err);

/* The same of statistics. */
void moesim_caption_stats(const moesim_result *result, moesim_chart *chart);

/* A line of the subtitle or the footer. */
#define moesim_line_add(text, ...) moesim_line_add_to((text), sizeof(text), __VA_ARGS__)
void moesim_line_add_to(char *text, size_t bytes, const char *fmt, ...) MOESIM_PRINTF(3, 4);

#endif
