/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity: the figures of every cell with their intervals. The draws of units are the same for every cell, and a cell and
 * its reference are drawn together, so that what they have in common cancels.
 */
#include "study/fidelity_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/rng.h"
#include "base/sort.h"

#define FULL_RESAMPLES 10000u
#define LEAST_RESAMPLES 400u
#define MOST_STEPS ((size_t)1 << 28)     /* of all cells together */

typedef struct draws {
    const moesim_fidelity_work *w;
    moesim_rng rng;
    uint32_t resamples, most_repeats;
    uint32_t *unit;              /* [units] how often each is drawn */
    double *error[2];            /* [num_cells][resamples] of TPOT and of miss time */
    double *measured;            /* [num_cells] of this resample */
    double *predicted;
} draws;

static double mean(const double *value, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++)
        s += value[i];
    return s / (double)n;
}

static double error_of(double predicted, double measured)
{
    return measured > 0 ? predicted / measured - 1 : (double)NAN;
}

/* ---- what was measured, over repeats ------------------------------------------------------------------------------- */

static moesim_code measured_intervals(const moesim_fidelity_work *w, size_t cell, size_t ref, double *value,
                                      moesim_fidelity_row *row, moesim_error *err)
{
    const moesim_fidelity_cell *c = w->in->cell;
    const uint32_t n = c[cell].repeats;
    for (uint32_t r = 0; r < n; r++)
        value[r] = w->sums[cell].measured[r] / w->tokens;
    if (moesim_mean_interval(value, n, &row->tpot.measured_interval, err) != MOESIM_OK)
        return err->code;
    row->miss.measured_interval = (moesim_interval){NAN, NAN};
    if (ref == w->in->num_cells)
        return MOESIM_OK;
    /* repeat r of both was measured in the same round */
    const uint32_t both = n < c[ref].repeats ? n : c[ref].repeats;
    for (uint32_t r = 0; r < both; r++)
        value[r] -= w->sums[ref].measured[r] / w->tokens;
    return moesim_mean_interval(value, both, &row->miss.measured_interval, err);
}

static void values(const moesim_fidelity_work *w, size_t cell, size_t ref, moesim_fidelity_row *row)
{
    const moesim_cell_sums *s = &w->sums[cell];
    row->tpot.predicted = s->predicted[0] / w->tokens;
    row->tpot.measured = mean(s->measured, w->in->cell[cell].repeats) / w->tokens;
    row->tpot.error = error_of(row->tpot.predicted, row->tpot.measured);
    row->miss.predicted = row->miss.measured = row->miss.error = NAN;
    if (ref == w->in->num_cells || w->in->cell[cell].reference)
        return;
    row->miss.predicted = row->tpot.predicted - w->sums[ref].predicted[0] / w->tokens;
    row->miss.measured = row->tpot.measured - mean(w->sums[ref].measured, w->in->cell[ref].repeats) / w->tokens;
    row->miss.error = error_of(row->miss.predicted, row->miss.measured);
}

/* ---- errors, over units and repeats -------------------------------------------------------------------------------- */

static void draw_units(draws *d)
{
    const uint32_t n = (uint32_t)d->w->num_units;
    memset(d->unit, 0, n * sizeof *d->unit);
    for (uint32_t i = 0; i < n; i++)
        d->unit[moesim_rng_below(&d->rng, n)]++;
}

static void sum_drawn(draws *d, size_t cell)
{
    const moesim_cell_sums *s = &d->w->sums[cell];
    const size_t units = d->w->num_units;
    const uint32_t repeats = d->w->in->cell[cell].repeats;
    double predicted = 0, measured = 0;
    for (size_t u = 0; u < units; u++)
        predicted += d->unit[u] * s->unit_predicted[u];
    for (uint32_t i = 0; i < repeats; i++) {
        const double *t = s->unit_measured + moesim_rng_below(&d->rng, repeats) * units;
        for (size_t u = 0; u < units; u++)
            measured += d->unit[u] * t[u];
    }
    d->predicted[cell] = predicted;
    d->measured[cell] = measured / repeats;
}

static void resample(draws *d, uint32_t k)
{
    const size_t n = d->w->in->num_cells;
    draw_units(d);
    for (size_t i = 0; i < n; i++)
        sum_drawn(d, i);
    for (size_t i = 0; i < n; i++) {
        const size_t ref = moesim_fidelity_reference(d->w->in, i);
        const bool miss = ref < n && !d->w->in->cell[i].reference;
        d->error[0][i * d->resamples + k] = error_of(d->predicted[i], d->measured[i]);
        d->error[1][i * d->resamples + k] =
            miss ? error_of(d->predicted[i] - d->predicted[ref], d->measured[i] - d->measured[ref]) : (double)NAN;
    }
}

/* Of the defined values; nearest rank. */
static moesim_interval percentiles(double *value, size_t n)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(value[i]))
            value[m++] = value[i];
    if (m == 0)
        return (moesim_interval){NAN, NAN};
    moesim_sort_reals(value, m);
    return (moesim_interval){value[moesim_rank_index(m, 0.025)], value[moesim_rank_index(m, 0.975)]};
}

static moesim_code error_intervals(draws *d, moesim_fidelity *out, moesim_error *err)
{
    const size_t n = d->w->in->num_cells;
    void *p[4] = {NULL};
    moesim_code code = moesim_alloc(d->w->num_units, sizeof *d->unit, "resamples", &p[0], err);
    if (code == MOESIM_OK)
        code = moesim_alloc(2 * n, sizeof(double), "resamples", &p[1], err);
    for (size_t i = 0; i < 2 && code == MOESIM_OK; i++)
        code = moesim_alloc(n * d->resamples, sizeof(double), "resamples", &p[2 + i], err);
    if (code == MOESIM_OK) {
        d->unit = p[0];
        d->measured = p[1];
        d->predicted = d->measured + n;
        d->error[0] = p[2];
        d->error[1] = p[3];
        for (uint32_t k = 0; k < d->resamples; k++)
            resample(d, k);
        for (size_t i = 0; i < n; i++) {
            out->row[i].tpot.error_interval = percentiles(d->error[0] + i * d->resamples, d->resamples);
            out->row[i].miss.error_interval = percentiles(d->error[1] + i * d->resamples, d->resamples);
        }
    }
    for (size_t i = 0; i < 4; i++)
        free(p[i]);
    return code;
}

/* As many as fit a bounded number of steps. */
static uint32_t count_resamples(const moesim_fidelity_work *w, uint32_t most_repeats)
{
    const size_t steps = w->num_units * w->in->num_cells * ((size_t)most_repeats + 1);
    const size_t fit = MOST_STEPS / (steps > 0 ? steps : 1);
    return fit >= FULL_RESAMPLES ? FULL_RESAMPLES : fit > LEAST_RESAMPLES ? (uint32_t)fit : LEAST_RESAMPLES;
}

moesim_code moesim_fidelity_figures(const moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err)
{
    draws d = {.w = w, .most_repeats = 1};
    void *value = NULL;
    for (size_t i = 0; i < w->in->num_cells; i++)
        d.most_repeats = w->in->cell[i].repeats > d.most_repeats ? w->in->cell[i].repeats : d.most_repeats;
    moesim_code code = moesim_alloc(d.most_repeats, sizeof(double), "repeats", &value, err);
    for (size_t i = 0; i < w->in->num_cells && code == MOESIM_OK; i++) {
        const size_t ref = moesim_fidelity_reference(w->in, i);
        values(w, i, ref, &out->row[i]);
        out->row[i].tpot.error_interval = out->row[i].miss.error_interval = (moesim_interval){NAN, NAN};
        code = measured_intervals(w, i, w->in->cell[i].reference ? w->in->num_cells : ref, value, &out->row[i], err);
    }
    free(value);
    out->resamples = count_resamples(w, d.most_repeats);
    d.resamples = out->resamples;
    moesim_rng_seed(&d.rng, w->in->seed);
    return code == MOESIM_OK && w->num_units > 1 ? error_intervals(&d, out, err) : code;
}
