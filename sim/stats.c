/* SPDX-License-Identifier: Apache-2.0
 *
 * Bootstrap over requests. Resamples are kept as counts ("request r drawn k times") where they fit, else regenerated from the
 * seed for each figure: both give the same resamples.
 */
#include "sim/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_errno.h>
#include <gsl/gsl_statistics_double.h>

#include "base/arena.h"
#include "base/log.h"
#include "sim/kernels.h"
#include "sim/stats_inner.h"

#define TABLE_BYTES  ((size_t)96 << 20)
#define DRAWS        ((size_t)1 << 26)   /* of one figure */
#define FEWEST       400u

void moesim_seed_rng(gsl_rng *rng, uint64_t seed)
{
    gsl_rng_set(rng, (unsigned long)((seed ^ (seed >> 32)) & UINT32_MAX));
}

uint32_t moesim_resamples(size_t n)
{
    const size_t fit = n > 0 ? DRAWS / n : MOESIM_RESAMPLES;
    return fit >= MOESIM_RESAMPLES ? MOESIM_RESAMPLES : fit > FEWEST ? (uint32_t)fit : FEWEST;
}

/* ---- resamples ------------------------------------------------------------------------------------------------------- */

/* A count stays at 65 535: with n below that it cannot be passed, and above it a request is drawn once on average. */
static void draw_block(const moesim_bootstrap *b, size_t block, uint16_t *drawn)
{
    const size_t first = block * MOESIM_LANES;
    memset(drawn, 0, b->n * MOESIM_LANES * sizeof *drawn);
    for (size_t k = 0; k < MOESIM_LANES && first + k < b->resamples; k++)
        for (size_t i = 0; i < b->n; i++) {
            uint16_t *one = &drawn[gsl_rng_uniform_int(b->rng, (unsigned long)b->n) * MOESIM_LANES + k];
            *one = (uint16_t)(*one + (*one < UINT16_MAX));
        }
}

const uint16_t *moesim_resample_block(moesim_bootstrap *b, size_t i)
{
    if (b->table != NULL)
        return b->table + i * b->n * MOESIM_LANES;
    if (i == 0)
        moesim_seed_rng(b->rng, b->seed);
    draw_block(b, i, b->drawn);
    return b->drawn;
}

static const moesim_stats_kernels *kernels(void)
{
#ifdef MOESIM_STATS_AVX2
    /* whatever is above the baseline includes AVX2 */
    if (strcmp(moesim_kernels_get()->name, moesim_stats_kernels_base.name) != 0)
        return &moesim_stats_kernels_avx2;
#endif
    return &moesim_stats_kernels_base;
}

/* ---- life ------------------------------------------------------------------------------------------------------------ */

static bool fits(const moesim_bootstrap *b)
{
    return b->n <= TABLE_BYTES / sizeof *b->table / (b->resamples ? b->resamples : 1);
}

/* table: of another bootstrap over the same requests, or NULL. */
static moesim_code allocate(moesim_bootstrap *b, uint16_t *table, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(b->resamples, sizeof *b->value, "bootstrap values", &p, err) != MOESIM_OK)
        return err->code;
    b->value = p;
    b->table = table;
    b->borrowed = table != NULL;
    if (table == NULL) {
        const size_t blocks = fits(b) ? b->blocks : 1;
        if (moesim_alloc(blocks * b->n, MOESIM_LANES * sizeof *b->table, "bootstrap resamples", &p, err) != MOESIM_OK)
            return err->code;
        *(fits(b) ? &b->table : &b->drawn) = p;
    }
    b->rng = gsl_rng_alloc(gsl_rng_mt19937);
    return b->rng != NULL ? MOESIM_OK : moesim_fail_nomem(err, "random generator", 0);
}

static moesim_code make(size_t n, uint32_t resamples, uint64_t seed, uint16_t *table, moesim_bootstrap **out,
                        moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(1, sizeof **out, "bootstrap", &p, err) != MOESIM_OK)
        return err->code;
    moesim_bootstrap *b = p;
    b->n = n;
    b->resamples = resamples;
    b->blocks = (resamples + MOESIM_LANES - 1) / MOESIM_LANES;
    b->seed = seed;
    b->kernels = kernels();
    if (allocate(b, table, err) != MOESIM_OK) {
        moesim_bootstrap_destroy(&b);
        return err->code;
    }
    moesim_seed_rng(b->rng, seed);
    *out = b;
    return MOESIM_OK;
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
    const uint32_t most = moesim_resamples(n);
    if (make(n, resamples < most ? resamples : most, seed, NULL, out, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; (*out)->table != NULL && i < (*out)->blocks; i++)
        draw_block(*out, i, (*out)->table + i * n * MOESIM_LANES);
    return MOESIM_OK;
}

moesim_code moesim_bootstrap_share(const moesim_bootstrap *of, moesim_bootstrap **out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    *out = NULL;
    return make(of->n, of->resamples, of->seed, of->table, out, err != NULL ? err : &local);
}

void moesim_bootstrap_destroy(moesim_bootstrap **bootstrap)
{
    moesim_bootstrap *b = *bootstrap;
    *bootstrap = NULL;
    if (b == NULL)
        return;
    if (b->rng != NULL)
        gsl_rng_free(b->rng);
    if (!b->borrowed)
        free(b->table);
    moesim_summed_fini(b);
    free(b->drawn);
    free(b->value);
    free(b);
}

/* ---- intervals ------------------------------------------------------------------------------------------------------- */

/* What gsl_stats_quantile_from_sorted_data gives, without sorting: selecting leaves nothing smaller behind the place asked
 * for, so the next one is the least of what lies there. */
static double quantile(double *value, size_t n, double share)
{
    const double at = (double)(n - 1) * share;
    const size_t below = (size_t)at;
    const double fraction = at - (double)below;
    const double low = gsl_stats_select(value, 1, n, below);
    if (below + 1 == n)
        return low;
    double next = value[below + 1];
    for (size_t i = below + 2; i < n; i++)
        next = value[i] < next ? value[i] : next;
    return (1 - fraction) * low + fraction * next;
}

moesim_interval moesim_percentiles(double *value, size_t n)
{
    if (n == 0)
        return (moesim_interval){ NAN, NAN };
    return (moesim_interval){ quantile(value, n, 0.025), quantile(value, n, 0.975) };
}

/* Many figures are the same in every cell, and selecting takes longer than summing: the last intervals are remembered. */
static moesim_interval ratio_interval(moesim_bootstrap *b, const moesim_summed *num, const moesim_summed *den)
{
    size_t kept = 0;
    for (size_t i = 0; i < MOESIM_KNOWN; i++)
        if (b->known[i].num == num->serial && b->known[i].den == den->serial)
            return b->known[i].interval;
    for (size_t i = 0; i < b->resamples; i++) {
        const double v = num->sum[i] / den->sum[i];
        b->value[kept] = v;
        kept += den->sum[i] != 0 && isfinite(v);
    }
    moesim_known *k = &b->known[b->oldest++ % MOESIM_KNOWN];
    *k = (moesim_known){ num->serial, den->serial, moesim_percentiles(b->value, kept) };
    return k->interval;
}

static moesim_code some_ratios(moesim_bootstrap *b, size_t k, const double *const *num, const double *const *den,
                               moesim_interval *out, moesim_error *err)
{
    const double *column[2 * MOESIM_AT_ONCE];
    const moesim_summed *got[2 * MOESIM_AT_ONCE];
    for (size_t f = 0; f < k; f++) {
        column[2 * f] = num[f];
        column[2 * f + 1] = den[f];
    }
    const moesim_code code = moesim_summed_get(b, column, 2 * k, got, err);
    for (size_t f = 0; f < k && code == MOESIM_OK; f++)
        out[f] = ratio_interval(b, got[2 * f], got[2 * f + 1]);
    return code;
}

moesim_code moesim_bootstrap_ratios(moesim_bootstrap *b, size_t k, const double *const *num, const double *const *den,
                                    moesim_interval *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    moesim_code code = MOESIM_OK;
    err = err != NULL ? err : &local;
    for (size_t f = 0; b->n < 2 && f < k; f++)
        out[f] = (moesim_interval){ NAN, NAN };
    for (size_t f = 0; b->n >= 2 && f < k && code == MOESIM_OK; f += MOESIM_AT_ONCE)
        code = some_ratios(b, k - f < MOESIM_AT_ONCE ? k - f : MOESIM_AT_ONCE, num + f, den + f, out + f, err);
    return code;
}

moesim_code moesim_bootstrap_ratio(moesim_bootstrap *b, const double *num, const double *den, moesim_interval *out,
                                   moesim_error *err)
{
    return moesim_bootstrap_ratios(b, 1, &num, &den, out, err);
}
