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

/* Small print of sweeps: "routing of X priced as Y", n, digests, profile. Call after the series are there. */
moesim_code moesim_caption_cells(const moesim_cells *cells, moesim_chart *chart, moesim_error *err);

/* The same of statistics. */
void moesim_caption_stats(const moesim_result *result, moesim_chart *chart);

/* A line of the subtitle or the footer. */
#define moesim_line_add(text, ...) moesim_line_add_to((text), sizeof(text), __VA_ARGS__)
void moesim_line_add_to(char *text, size_t bytes, const char *fmt, ...) MOESIM_PRINTF(3, 4);

#endif
