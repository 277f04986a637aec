/* SPDX-License-Identifier: Apache-2.0
 *
 * Paired comparisons: the sign-flip test on the differences by request, with the interval of the difference.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "sim/stats_inner.h"

#define EXACT_FLIPS  20u
#define SEEDED_FLIPS 100000u
#define TIE          1e-12        /* of Σ|d|: sums that differ by rounding alone count as equal */

_Static_assert(SEEDED_FLIPS % MOESIM_LANES == 0, "flips come in whole groups");

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

/* The observed signs count as one of the flips, so p is never 0. A flip takes the next ⌈n/32⌉ numbers of the generator. */
static double seeded_p(moesim_bootstrap *b, uint64_t seed, const double *d, size_t n, double threshold, uint64_t *bits)
{
    const size_t words = (n + 31) / 32;
    double sum[MOESIM_LANES];
    size_t extreme = 1;
    moesim_seed_rng(b->rng, seed);
    for (size_t f = 0; f < SEEDED_FLIPS; f += MOESIM_LANES) {
        for (size_t k = 0; k < MOESIM_LANES; k++)
            for (size_t w = 0; w < words; w++)
                bits[w * MOESIM_LANES + k] = gsl_rng_get(b->rng);
        b->kernels->flip(bits, d, n, sum);
        for (size_t k = 0; k < MOESIM_LANES; k++)
            extreme += fabs(sum[k]) >= threshold;
    }
    return (double)extreme / (double)(SEEDED_FLIPS + 1);
}

static moesim_code sign_flip(moesim_bootstrap *b, const double *d, size_t n, uint64_t seed, moesim_paired *out,
                             moesim_error *err)
{
    double observed = 0, scale = 0;
    void *bits = NULL;
    for (size_t i = 0; i < n; i++) {
        observed += d[i];
        scale += fabs(d[i]);
    }
    const double threshold = fabs(observed) - TIE * scale;
    out->n = n;
    out->exact = n <= EXACT_FLIPS;
    if (!out->exact && moesim_alloc((n + 31) / 32 * MOESIM_LANES, sizeof(uint64_t), "sign flips", &bits, err) != MOESIM_OK)
        return err->code;
    out->p = n == 0       ? (double)NAN
             : out->exact ? exact_p(d, n, threshold)
                          : seeded_p(b, seed, d, n, threshold, bits);
    free(bits);
    return MOESIM_OK;
}

static moesim_code interval(moesim_bootstrap *b, const double *const *column, moesim_interval *out, moesim_error *err)
{
    const moesim_summed *got[4];
    size_t kept = 0;
    if (b->n < 2) {
        *out = (moesim_interval){ NAN, NAN };
        return MOESIM_OK;
    }
    if (moesim_summed_get(b, column, 4, got, err) != MOESIM_OK)
        return err->code;
    const double *a = got[0]->sum, *per_a = got[1]->sum, *other = got[2]->sum, *per_other = got[3]->sum;
    for (size_t i = 0; i < b->resamples; i++) {
        const double v = a[i] / per_a[i] - other[i] / per_other[i];
        b->value[kept] = v;
        kept += per_a[i] != 0 && per_other[i] != 0 && isfinite(v);
    }
    *out = moesim_percentiles(b->value, kept);
    return MOESIM_OK;
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

moesim_code moesim_bootstrap_paired(moesim_bootstrap *b, const double *num_a, const double *den_a, const double *num_b,
                                    const double *den_b, uint64_t seed, moesim_paired *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    const double *const column[] = { num_a, den_a, num_b, den_b };
    void *p = NULL;
    if (interval(b, column, &out->interval, err) != MOESIM_OK ||
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
    const moesim_code code = sign_flip(b, d, kept, seed, out, err);
    free(d);
    return code;
}
