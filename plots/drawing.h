/* SPDX-License-Identifier: Apache-2.0
 *
 * A chart as gnuplot's input: a data file with one block of numbers a series, and a script made of settings, the figure's
 * template and one plot clause for each series and clause of its role. All sizes are in points, so that letters have the same
 * size at any width. The same chart gives the same bytes.
 */
#ifndef MOESIM_PLOTS_DRAWING_H
#define MOESIM_PLOTS_DRAWING_H

#include <stdio.h>

#include "plots/chart.h"

/* A template, embedded when built. A line "#: ROLE CLAUSE" is a plot clause of the series of a role, a line "#= ROLE COMMAND"
 * draws the legend's sample of one. Words: @INDEX of the data; @COLOUR @PART @MARK @OPEN @DASH @DASHED of its look; @X1 @X @X2
 * @Y1 @Y @Y2 place the sample. Everything else is copied. */
typedef struct moesim_plot_template {
    const char *name;                    /* NULL ends the table */
    const unsigned char *text;
    size_t bytes;
} moesim_plot_template;
extern const moesim_plot_template moesim_plot_templates[];

typedef struct moesim_drawing {
    const char *template_name;
    const char *terminal;                /* one of gnuplot's that moesim_terminal_for gave */
    double width_mm;
    const char *data_name, *output_name; /* as the script names them when it is run by hand */
} moesim_drawing;

/* Errors: NOMEM; INTERNAL for an unknown template or terminal. The caller checks the streams. */
moesim_code moesim_drawing_script(const moesim_drawing *d, const moesim_chart *chart, FILE *out, moesim_error *err);
void moesim_drawing_data(const moesim_chart *chart, FILE *out);

#endif
