/* SPDX-License-Identifier: Apache-2.0
 *
 * Bootstrap over requests and the paired sign-flip test. Resamples are stored as how often each request was drawn; where
 * that table would pass 96 MiB it is drawn again from the seed for every figure, which gives the same resamples.
 */
#include "sim/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_statistics_double.h>

#include "base/arena.h"
#include "base/log.h"

#define TABLE_BYTES  ((size_t)96 << 20)
#define DRAWS        ((size_t)1 << 26)   /* of one figure */
#define FEWEST       400u
#define EXACT_FLIPS  20u
#define SEEDED_FLIPS 100000u
#define TIE          1e-12        /* of Σ|d|: sums that differ by rounding alone count as equal */

struct moesim_bootstrap {
    size_t n;
    uint32_t resamples;
    uint64_t seed;
    uint16_t *table;              /* [resamples][n] times drawn, or NULL: regenerate */
    uint16_t *drawn;              /* [n] one row, when table is NULL */
    double *value;                /* [resamples] scratch */
    gsl_rng *rng;
};

/* The generator takes 32 bits: fold the rest in, so that every bit of a seed counts. */
static void seed_rng(gsl_rng *rng, uint64_t seed)
{
    gsl_rng_set(rng, (unsigned long)((seed ^ (seed >> 32)) & UINT32_MAX));
}

uint32_t moesim_resamples(size_t n)
{
    const size_t fit = n > 0 ? DRAWS / n : MOESIM_RESAMPLES;
    return fit >= MOESIM_RESAMPLES ? MOESIM_RESAMPLES : fit > FEWEST ? (uint32_t)fit : FEWEST;
}

/* A count stays at 65 535: with n below that it cannot be passed, and above it a request is drawn once on average. */
static void draw_row(gsl_rng *rng, uint16_t *drawn, size_t n)
{
    memset(drawn, 0, n * sizeof *drawn);
    for (size_t i = 0; i < n; i++) {
        uint16_t *one = &drawn[gsl_rng_uniform_int(rng, (unsigned long)n)];
        *one = (uint16_t)(*one + (*one < UINT16_MAX));
    }
}

static moesim_code allocate(moesim_bootstrap *b, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(b->resamples, sizeof *b->value, "bootstrap values", &p, err) != MOESIM_OK)
        return err->code;
    b->value = p;
    const bool fits = b->n <= TABLE_BYTES / sizeof *b->table / (b->resamples ? b->resamples : 1);
    const size_t rows = fits ? b->resamples : 1;
    if (moesim_alloc(rows * b->n, sizeof *b->table, "bootstrap resamples", &p, err) != MOESIM_OK)
        return err->code;
    *(fits ? &b->table : &b->drawn) = p;
    b->rng = gsl_rng_alloc(gsl_rng_mt19937);
    return b->rng != NULL ? MOESIM_OK : moesim_fail_nomem(err, "random generator", 0);
}

moesim_code moesim_bootstrap_create(size_t n, uint32_t resamples, uint64_t seed, moesim_bootstrap **out,
                                    moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    *out = NULL;
    if (n > UINT32_MAX)
        return moesim_fail(err, MOESIM_E_LIMIT,
                           "a bootstrap over %zu requests: at most %u; choose fewer with --requests", n, UINT32_MAX);
    gsl_set_error_handler_off();
    void *p = NULL;
    if (moesim_alloc(1, sizeof **out, "bootstrap", &p, err) != MOESIM_OK)
        return err->code;
    moesim_bootstrap *b = p;
    b->n = n;
    b->resamples = resamples < moesim_resamples(n) ? resamples : moesim_resamples(n);
    b->seed = seed;
    if (allocate(b, err) != MOESIM_OK) {
        moesim_bootstrap_destroy(&b);
        return err->code;
    }
    seed_rng(b->rng, seed);
    for (size_t i = 0; b->table != NULL && i < b->resamples; i++)
        draw_row(b->rng, b->table + i * n, n);
    *out = b;
    return MOESIM_OK;
}

void moesim_bootstrap_destroy(moesim_bootstrap **bootstrap)
{
    moesim_bootstrap *b = *bootstrap;
    *bootstrap = NULL;
    if (b == NULL)
        return;
    if (b->rng != NULL)
        gsl_rng_free(b->rng);
    free(b->table);
    free(b->drawn);
    free(b->value);
    free(b);
}

/* Row i of the resamples; rows are asked for in order from 0. */
static const uint16_t *resample(moesim_bootstrap *b, size_t i)
{
    if (b->table != NULL)
        return b->table + i * b->n;
    if (i == 0)
        seed_rng(b->rng, b->seed);
    draw_row(b->rng, b->drawn, b->n);
    return b->drawn;
}

/* Σ drawn·num / Σ drawn·den; NaN where the denominator is 0. */
static double weighted_ratio(const uint16_t *drawn, const double *num, const double *den, size_t n)
{
    double a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        a += drawn[i] * num[i];
        b += drawn[i] * den[i];
    }
    return b != 0 ? a / b : NAN;
}

static double plain_ratio(const double *num, const double *den, size_t n)
{
    double a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        a += num[i];
        b += den[i];
    }
    return b != 0 ? a / b : NAN;
}

/* What gsl_stats_quantile_from_sorted_data gives, without sorting: only two order statistics are needed. */
static double quantile(double *value, size_t n, double share)
{
    const double at = (double)(n - 1) * share;
    const size_t below = (size_t)at;
    const double fraction = at - (double)below;
    const double low = gsl_stats_select(value, 1, n, below);
    return below + 1 == n ? low : (1 - fraction) * low + fraction * gsl_stats_select(value, 1, n, below + 1);
}

static moesim_interval percentiles(double *value, size_t n)
{
    if (n == 0)
        return (moesim_interval){ NAN, NAN };
    return (moesim_interval){ quantile(value, n, 0.025), quantile(value, n, 0.975) };
}

/* The interval of ratio a, or of a − b where num_b is given. */
static moesim_code interval(moesim_bootstrap *b, const double *num_a, const double *den_a, const double *num_b,
                            const double *den_b, moesim_interval *out, moesim_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; b->n >= 2 && i < b->resamples; i++) {
        if (i % 64 == 0 && moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        const uint16_t *drawn = resample(b, i);
        double v = weighted_ratio(drawn, num_a, den_a, b->n);
        if (num_b != NULL)
            v -= weighted_ratio(drawn, num_b, den_b, b->n);
        if (isfinite(v))
            b->value[kept++] = v;
    }
    *out = percentiles(b->value, kept);
    return MOESIM_OK;
}

moesim_code moesim_bootstrap_ratio(moesim_bootstrap *b, const double *num, const double *den, moesim_interval *out,
                                   moesim_error *err)
{
    return interval(b, num, den, NULL, NULL, out, err);
}

/* One resample of k ratios: sums of each in the order of the requests, as weighted_ratio makes them. term: [n][2·k]. */
static void weighted_sums(const uint16_t *drawn, const double *term, size_t n, size_t width, double *sum)
{
    memset(sum, 0, width * sizeof *sum);
    for (size_t i = 0; i < n; i++) {
        const double times = drawn[i];
        const double *row = term + i * width;
        for (size_t f = 0; drawn[i] != 0 && f < width; f++)
            sum[f] += times * row[f];
    }
}

typedef struct ratios {
    size_t k, width;
    double *term, *sum, *value;  /* [n][2·k], [2·k], [k][resamples] */
    size_t *kept;                /* [k] */
} ratios;

static moesim_code resample_ratios(moesim_bootstrap *b, ratios *r, moesim_interval *out, moesim_error *err)
{
    for (size_t i = 0; b->n >= 2 && i < b->resamples; i++) {
        if (i % 64 == 0 && moesim_interrupted())
            return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted");
        weighted_sums(resample(b, i), r->term, b->n, r->width, r->sum);
        for (size_t f = 0; f < r->k; f++) {
            const double v = r->sum[r->k + f] != 0 ? r->sum[f] / r->sum[r->k + f] : (double)NAN;
            if (isfinite(v))
                r->value[f * b->resamples + r->kept[f]++] = v;
        }
    }
    for (size_t f = 0; f < r->k; f++)
        out[f] = percentiles(r->value + f * b->resamples, r->kept[f]);
    return MOESIM_OK;
}

moesim_code moesim_bootstrap_ratios(moesim_bootstrap *b, size_t k, const double *const *num, const double *const *den,
                                    moesim_interval *out, moesim_error *err)
{
    ratios r = {.k = k, .width = 2 * k};
    void *values = NULL, *kept = NULL;
    moesim_code code = moesim_alloc(b->n * r.width + r.width + k * b->resamples, sizeof *r.value,
                                    "bootstrap of several figures", &values, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(k, sizeof *r.kept, "bootstrap of several figures", &kept, err);
    if (code == MOESIM_OK) {
        r.term = values;
        r.sum = r.term + b->n * r.width;
        r.value = r.sum + r.width;
        r.kept = kept;
        for (size_t i = 0; i < b->n; i++)
            for (size_t f = 0; f < k; f++) {
                r.term[i * r.width + f] = num[f][i];
                r.term[i * r.width + k + f] = den[f][i];
            }
        code = resample_ratios(b, &r, out, err);
    }
    free(values);
    free(kept);
    return code;
}

/* All sums ±d[0] ±d[1] … of n ≤ 10 terms, by Gray code: one addition a sum, from the one with every sign plus. */
static size_t all_sums(const double *d, size_t n, double *sum)
{
    double sign[EXACT_FLIPS / 2], s = 0;
    for (size_t i = 0; i < n; i++) {
        sign[i] = 1;
        s += d[i];
    }
    const size_t count = (size_t)1 << n;
    sum[0] = s;
    for (size_t k = 1; k < count; k++) {
        const int bit = __builtin_ctzll(k);
        s -= 2 * sign[bit] * d[bit];
        sign[bit] = -sign[bit];
        sum[k] = s;
    }
    return count;
}

/* Halves are enumerated apart and joined pair by pair: a running sum over all 2^20 would gather rounding errors. */
static double exact_p(const double *d, size_t n, double threshold)
{
    double low[1 << (EXACT_FLIPS / 2)], high[1 << (EXACT_FLIPS / 2)];
    const size_t half = n / 2;
    const size_t n_low = all_sums(d, half, low), n_high = all_sums(d + half, n - half, high);
    size_t extreme = 0;
    for (size_t i = 0; i < n_low; i++)
        for (size_t k = 0; k < n_high; k++)
            extreme += fabs(low[i] + high[k]) >= threshold;
    return (double)extreme / (double)(n_low * n_high);
}

/* The observed signs count as one of the flips, so p is never 0. */
static double seeded_p(gsl_rng *rng, uint64_t seed, const double *d, size_t n, double threshold)
{
    seed_rng(rng, seed);
    size_t extreme = 1;
    for (size_t f = 0; f < SEEDED_FLIPS; f++) {
        double s = 0;
        unsigned long bits = 0;
        for (size_t i = 0; i < n; i++) {
            if (i % 32 == 0)
                bits = gsl_rng_get(rng);
            s += (bits & 1) != 0 ? d[i] : -d[i];
            bits >>= 1;
        }
        extreme += fabs(s) >= threshold;
    }
    return (double)extreme / (double)(SEEDED_FLIPS + 1);
}

static void sign_flip(moesim_bootstrap *b, const double *d, size_t n, uint64_t seed, moesim_paired *out)
{
    double observed = 0, scale = 0;
    for (size_t i = 0; i < n; i++) {
        observed += d[i];
        scale += fabs(d[i]);
    }
    const double threshold = fabs(observed) - TIE * scale;
    out->n = n;
    out->exact = n <= EXACT_FLIPS;
    out->p = n == 0 ? NAN : out->exact ? exact_p(d, n, threshold) : seeded_p(b->rng, seed, d, n, threshold);
}

moesim_code moesim_bootstrap_paired(moesim_bootstrap *b, const double *num_a, const double *den_a, const double *num_b,
                                    const double *den_b, uint64_t seed, moesim_paired *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    void *p = NULL;
    if (interval(b, num_a, den_a, num_b, den_b, &out->interval, err) != MOESIM_OK ||
        moesim_alloc(b->n, sizeof(double), "paired differences", &p, err) != MOESIM_OK)
        return err->code;
    double *d = p;
    size_t kept = 0;
    for (size_t i = 0; i < b->n; i++) {
        const double v = num_a[i] / den_a[i] - num_b[i] / den_b[i];
        if (isfinite(v))
            d[kept++] = v;
    }
    out->difference = plain_ratio(num_a, den_a, b->n) - plain_ratio(num_b, den_b, b->n);
    sign_flip(b, d, kept, seed, out);
    free(d);
    return MOESIM_OK;
}
