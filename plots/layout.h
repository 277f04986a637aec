/* SPDX-License-Identifier: Apache-2.0
 *
 * Where everything of a figure stands. Points (1/72 inch) from the top left of the page; letters have the same size at any
 * width of the figure. Widths of texts are estimated by those of DejaVu Sans, which is wider than most.
 */
#ifndef MOESIM_PLOTS_LAYOUT_H
#define MOESIM_PLOTS_LAYOUT_H

#include <stdbool.h>

#include "plots/chart.h"

#define MOESIM_LINE 1.22                 /* height of a line, of the size of its letters */
#define MOESIM_SAMPLE 16.0               /* width of a legend's sample */

typedef struct moesim_entry { double x, y; } moesim_entry;   /* left end of the sample, middle of the line */

typedef struct moesim_layout {
    double width, height;
    double title, label, ticks, legend, small;   /* sizes of letters */
    double top, bottom, left, right;             /* of the plot area; left and right 0: as gnuplot wants */
    double margin;                               /* left of all texts */
    size_t tick_chars, legend_chars;             /* longest texts there */
    bool rotate;                                 /* ticks of x */
    moesim_entry entry[MOESIM_CHART_SERIES];     /* of the legend, by series; unnamed ones have none */
    char *head, *subtitle, *footer;              /* wrapped; owned */
} moesim_layout;

moesim_code moesim_layout_make(const moesim_chart *chart, double width_mm, moesim_layout *out, moesim_error *err);
void moesim_layout_fini(moesim_layout *l);

#endif
