/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals and paired comparisons (library `stats`, the only user of GSL in sim/). Every figure is a ratio of sums
 * over requests: Σ num[r] / Σ den[r]; resampling is over requests (semantics §2).
 */
#ifndef MOESIM_SIM_STATS_H
#define MOESIM_SIM_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define MOESIM_RESAMPLES 10000u

/* Resamples for n requests: 10 000; beyond 6 710 requests fewer, so that the draws of a figure stay at 2^26, and never below
 * 400. Every output that holds intervals says how many there were. */
uint32_t moesim_resamples(size_t n);

typedef struct moesim_interval { double lo, hi; } moesim_interval;   /* NaN, NaN where undefined */

/* Resampling plan: the same resamples for every figure and configuration of one n, so that comparisons are paired.
 * Results do not depend on the order of calls. One thread at a time; bootstrap_share makes one for another thread, of the same
 * resamples, to be destroyed before `of`. n ≤ 2^32 − 1, else MOESIM_E_LIMIT. */
typedef struct moesim_bootstrap moesim_bootstrap;
moesim_code moesim_bootstrap_create(size_t n, uint32_t resamples, uint64_t seed, moesim_bootstrap **out,
                                    moesim_error *err);
moesim_code moesim_bootstrap_share(const moesim_bootstrap *of, moesim_bootstrap **out, moesim_error *err);
void moesim_bootstrap_destroy(moesim_bootstrap **b);   /* NULL allowed */

/* 95 % percentile interval of Σnum/Σden over resampled requests; num, den [n]. Resamples with Σden = 0 are left out (NaN
 * if all). n < 2: NaN, since one request says nothing about how requests differ. */
moesim_code moesim_bootstrap_ratio(moesim_bootstrap *b, const double *num, const double *den, moesim_interval *out,
                                   moesim_error *err);

/* The same for k ratios at once, num[k] and den[k], to the same digits and faster. */
moesim_code moesim_bootstrap_ratios(moesim_bootstrap *b, size_t k, const double *const *num, const double *const *den,
                                    moesim_interval *out, moesim_error *err);

/* 95 % interval of the smallest of n values that at least the share q of them does not exceed (0 < q ≤ 1): that of a
 * bootstrap over the values with infinitely many resamples, whose distribution is binomial. n < 2: NaN. */
moesim_code moesim_percentile_interval(const double *value, size_t n, double q, moesim_interval *out, moesim_error *err);

/* 95 % interval of the mean of n measurements by Student's t. n < 2: NaN. */
moesim_code moesim_mean_interval(const double *value, size_t n, moesim_interval *out, moesim_error *err);

typedef struct moesim_paired {
    double difference;           /* Σnum_a/Σden_a − Σnum_b/Σden_b */
    moesim_interval interval;    /* 95 %, same resamples for both */
    double p;                    /* two-sided sign-flip test on the per-request differences of the ratios */
    bool exact;                  /* all 2^n flips (n ≤ 20), else 100 000 seeded ones */
    size_t n;                    /* requests compared by the test: those with both ratios defined; 0: p is NaN */
} moesim_paired;
/* Counts the flips with |Σ ±d| ≥ |Σ d| (equal up to 1e-12 of Σ|d|); seeded flips count the observed one, so p > 0. */
moesim_code moesim_bootstrap_paired(moesim_bootstrap *b, const double *num_a, const double *den_a, const double *num_b,
                                    const double *den_b, uint64_t seed, moesim_paired *out, moesim_error *err);

#endif
