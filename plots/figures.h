/* SPDX-License-Identifier: Apache-2.0
 *
 * The figures of `moesim plot`: a table of what each shows, which tables and columns of a result it needs, and the template
 * that draws it. A figure becomes a gnuplot script with a data file (plots/drawing.h).
 * Thread safety: everything here is a function of its arguments.
 */
#ifndef MOESIM_PLOTS_FIGURES_H
#define MOESIM_PLOTS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "sim/result.h"

struct moesim_chart;
struct moesim_figure;

/* 95 % interval of Σnum/Σden over n requests; NaN where undefined. */
typedef moesim_code moesim_plot_interval(void *cookie, const double *num, const double *den, size_t n, double *lo, double *hi,
                                         moesim_error *err);

/* May Σnum/Σden of a and b over the same n requests be told apart? */
typedef moesim_code moesim_plot_differ(void *cookie, const double *num_a, const double *den_a, const double *num_b,
                                       const double *den_b, size_t n, bool *out, moesim_error *err);

/* What the command line chose. NULL and NaN: not chosen. Borrowed. */
typedef struct moesim_plot_request {
    const char *const *policy;           /* only these, 0: all */
    size_t num_policies;
    const char *trace, *profile, *dtype;
    double cache, bandwidth, batch;      /* slots per layer, GB/s, requests */
    double width_mm;                     /* of the figure, MOESIM_PLOT_MIN_MM to MOESIM_PLOT_MAX_MM */
    moesim_plot_interval *interval;      /* for figures that are formed from requests; NULL: drawn without */
    moesim_plot_differ *differ;          /* for figures that compare policies; NULL: none is told from another */
    void *cookie;                        /* of both */
    const double *published;             /* stability: P(stability = 1) by bin of confidence, as published; NULL: not shown */
    size_t num_published;
    const char *published_name;
} moesim_plot_request;

#define MOESIM_PLOT_MIN_MM 60.0
#define MOESIM_PLOT_MAX_MM 600.0

typedef moesim_code moesim_figure_fill(const struct moesim_figure *figure, const moesim_result *result,
                                       const moesim_plot_request *request, struct moesim_chart *chart, moesim_error *err);

typedef struct moesim_figure {
    const char *name;                    /* NULL ends the table */
    const char *help;
    const char *kind;                    /* of the result: "sweep", "stats" or "fidelity" */
    const char *needs;                   /* "table:column column;table:column" */
    const char *source;                  /* the command that writes what is needed */
    const char *template_name;
    const char *title;
    const char *value, *label;           /* column that is shown, and the label of its axis with unit */
    const char *axis;                    /* column of the other axis, NULL: none */
    moesim_figure_fill *fill;
} moesim_figure;

extern const moesim_figure moesim_figures[];

/* USAGE error that names the nearest. */
moesim_code moesim_figure_find(const char *name, const moesim_figure **out, moesim_error *err);

/* Checks kind, tables and columns (USAGE error that says which command writes what is missing; path for the message), refuses
 * choices where there is nothing to choose (USAGE) and fills the chart, which the caller initialised and releases, also after
 * an error. */
moesim_code moesim_figure_chart(const moesim_figure *figure, const moesim_result *result, const char *path,
                                const moesim_plot_request *request, struct moesim_chart *chart, moesim_error *err);

#endif
