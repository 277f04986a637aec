/* SPDX-License-Identifier: Apache-2.0
 *
 * Robust lines. Times span four orders of magnitude and their errors are relative, so every row is divided by what a first,
 * crude line says; that line is one of medians, since an outlier must not decide on its own weight.
 */
#include <float.h>
#include <math.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit.h>

#include "hwprofile/fit_parts.h"

#define MOST_STEPS 500u
#define LEAST_POINTS 3u          /* of a regression */

/* The median slope between points (Theil and Sen) and the median of what it leaves. */
static void crude(const double *x, const double *y, size_t n, double *a, double *b)
{
    double slope[MOESIM_LINE_POINTS], rest[MOESIM_LINE_POINTS];
    for (size_t i = 0; i < n; i++) {
        size_t m = 0;
        for (size_t k = 0; k < n; k++)
            if (x[k] != x[i])
                rest[m++] = (y[k] - y[i]) / (x[k] - x[i]);
        slope[i] = m > 0 ? moesim_raw_sort_median(rest, m) : 0.0;
    }
    *b = fmax(moesim_raw_sort_median(slope, n), 0.0);
    for (size_t i = 0; i < n; i++)
        rest[i] = y[i] - *b * x[i];
    *a = moesim_raw_sort_median(rest, n);
}

/* Never far below what was seen: no row may weigh without bound. */
static double scale(double a, double b, double x, double y)
{
    return fmax(a + b * x, 0.01 * y);
}

void moesim_fit_judge(const double *x, const double *y, size_t n, moesim_line *out)
{
    double square = 0.0;
    out->worst = 0.0;
    out->worst_at = 0;
    for (size_t i = 0; i < n; i++) {
        const double fit = fmax(out->a + out->b * x[i], DBL_MIN), off = (fit - y[i]) / fit;
        square += off * off;
        if (fabs(off) > fabs(out->worst)) {
            out->worst = off;
            out->worst_at = i;
        }
    }
    out->residual = sqrt(square / (double)n);
}

static int regress(const double *x, const double *y, size_t n, double a, double b, moesim_line *out)
{
    gsl_matrix *rows = gsl_matrix_alloc(n, 2), *covariance = gsl_matrix_alloc(2, 2);
    gsl_vector *want = gsl_vector_alloc(n), *line = gsl_vector_alloc(2);
    gsl_multifit_robust_workspace *work = gsl_multifit_robust_alloc(gsl_multifit_robust_bisquare, n, 2);
    int status = GSL_ENOMEM;
    if (rows != NULL && covariance != NULL && want != NULL && line != NULL && work != NULL) {
        const double unit = x[n - 1];        /* columns of like size */
        for (size_t i = 0; i < n; i++) {
            const double by = scale(a, b, x[i], y[i]);
            gsl_matrix_set(rows, i, 0, y[0] / by);
            gsl_matrix_set(rows, i, 1, x[i] / unit * (y[n - 1] / by));
            gsl_vector_set(want, i, y[i] / by);
        }
        (void)gsl_multifit_robust_maxiter(MOST_STEPS, work);
        status = gsl_multifit_robust(rows, want, line, covariance, work);
        out->a = gsl_vector_get(line, 0) * y[0];
        out->b = gsl_vector_get(line, 1) * y[n - 1] / unit;
    }
    gsl_multifit_robust_free(work);
    gsl_vector_free(line);
    gsl_vector_free(want);
    gsl_matrix_free(covariance);
    gsl_matrix_free(rows);
    return status;
}

moesim_code moesim_fit_line(const double *x, const double *y, size_t n, moesim_line *out, moesim_error *err)
{
    double a, b;
    if (n < 3 || n > MOESIM_LINE_POINTS)
        return moesim_fail(err, MOESIM_E_INTERNAL, "a line through %zu points", n);
    (void)gsl_set_error_handler_off();
    crude(x, y, n, &a, &b);
    const int status = regress(x, y, n, a, b, out);
    if (status == GSL_ENOMEM)
        return moesim_fail_nomem(err, "a regression", n * 4 * sizeof(double));
    /* Points that lie on a line to the last bit leave nothing to be robust against, and steps that do not settle leave a
     * line that is no better than the crude one. */
    if (status != GSL_SUCCESS || !isfinite(out->a) || !isfinite(out->b)) {
        out->a = a;
        out->b = b;
    }
    moesim_fit_judge(x, y, n, out);
    return MOESIM_OK;
}

bool moesim_fit_slope(const moesim_gathered *g, moesim_line *line)
{
    size_t i = 0;
    while (i < g->n && g->x[i] == g->x[0])
        i++;
    if (i == g->n)
        return false;
    if (g->n >= LEAST_POINTS)
        return moesim_fit_line(g->x, g->y, g->n, line, NULL) == MOESIM_OK;
    *line = (moesim_line){ .b = (g->y[1] - g->y[0]) / (g->x[1] - g->x[0]) };
    return true;
}
