/* SPDX-License-Identifier: Apache-2.0
 *
 * A chart as a picture file. The picture appears under its name when it is whole, or not at all.
 */
#ifndef MOESIM_PLOTS_RENDER_H
#define MOESIM_PLOTS_RENDER_H

#include <stdbool.h>

#include "plots/chart.h"

/* path ends in .png, .svg or .pdf. keep: leaves script and data as path.gp and path.dat. SVG and PDF of the same chart are the
 * same bytes with the same gnuplot: its name, version and the time are taken out. Errors: those of plots/gnuplot.h, IO. */
moesim_code moesim_plot_render(const moesim_chart *chart, const char *template_name, double width_mm, const char *path,
                               bool keep, moesim_error *err);

#endif
