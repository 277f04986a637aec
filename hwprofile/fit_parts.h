/* SPDX-License-Identifier: Apache-2.0
 *
 * Between the files of the fit. Private to hwprofile/.
 */
#ifndef MOESIM_HWPROFILE_FIT_PARTS_H
#define MOESIM_HWPROFILE_FIT_PARTS_H

#include "hwprofile/fit.h"

#define MOESIM_LINE_POINTS 256u

/* y ≈ a + b·x. residual: root of the mean square of (fit − y) / fit over all points, outliers included. */
typedef struct moesim_line { double a, b, residual, worst; size_t worst_at; } moesim_line;

/* Robust regression (bisquare) of relative errors, 3 ≤ n ≤ MOESIM_LINE_POINTS, x and y positive, at least two different x. */
moesim_code moesim_fit_line(const double *x, const double *y, size_t n, moesim_line *out, moesim_error *err);

/* Residual and worst point of a line that was found otherwise. */
void moesim_fit_judge(const double *x, const double *y, size_t n, moesim_line *line);

/* A fit under way: what is known so far is in *profile. */
typedef struct moesim_fitting {
    const moesim_raw *raw;
    const moesim_fit_options *options;
    moesim_profile *profile;
    uint32_t threads;                    /* of the CPU table */
    double copy;                         /* seconds of one expert's copy */
} moesim_fitting;

/* Points of one kind: values by a rule, with what their samples say. */
typedef struct moesim_gathered {
    double x[MOESIM_LINE_POINTS], y[MOESIM_LINE_POINTS];
    const moesim_raw_point *point[MOESIM_LINE_POINTS];
    size_t n;
    uint64_t samples;
} moesim_gathered;
void moesim_gather(moesim_gathered *g, const moesim_raw_point *point, double x, double y);

/* Median of the coefficients of variation of the points. */
double moesim_gathered_spread(const moesim_gathered *g);
/* Median of y, without changing the order; NaN without any. */
double moesim_gathered_median(const moesim_gathered *g);

/* y over x. Two points are a slope too (one sweep of quick samples); false: fewer than two different x, or no line. */
bool moesim_fit_slope(const moesim_gathered *g, moesim_line *line);

/* Sets a constant; the note is cut where it is too long. */
void moesim_fit_set(moesim_constant *c, double value, uint64_t n, double spread, double residual, const char *fmt, ...)
    MOESIM_PRINTF(6, 7);

/* "FILE: what; remedy", code FORMAT. */
moesim_code moesim_fit_lacks(const moesim_fitting *f, moesim_error *err, const char *fmt, ...) MOESIM_PRINTF(3, 4);

/* The parts, in this order. Those before moesim_fit_late reckon with the step of starts alone. */
moesim_code moesim_fit_link(moesim_fitting *f, moesim_error *err);       /* link, return */
moesim_code moesim_fit_fixed(moesim_fitting *f, moesim_error *err);      /* sync, other, head, policy */
moesim_code moesim_fit_cpu(moesim_fitting *f, moesim_error *err);        /* cpu.step, cpu.table, cpu.combine */
moesim_code moesim_fit_gpu(moesim_fitting *f, moesim_error *err);        /* gpu: table, launch, arrival, moved */
moesim_code moesim_fit_dram(moesim_fitting *f, moesim_error *err);       /* dram.bandwidth */
moesim_code moesim_fit_late(moesim_fitting *f, moesim_error *err);       /* cpu.step as events have it */

#endif
