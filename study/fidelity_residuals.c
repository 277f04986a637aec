/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity: how far single events and passes are off. Every repeat of every event is a sample of its own, so noise of the
 * measurement counts as error.
 */
#include "study/fidelity_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/sort.h"

/* Samples of several groups, gathered one after another. */
typedef struct samples {
    double *value;               /* ln(measured / predicted) */
    uint16_t *layer;
    uint8_t *class;
    size_t n;
} samples;

/* Sorts and overwrites the values. */
static moesim_residuals summarise(double *value, size_t n)
{
    moesim_residuals out = {.n = n, .bias = NAN, .p50 = NAN, .p90 = NAN, .p99 = NAN};
    if (n == 0)
        return out;
    moesim_sort_reals(value, n);
    out.bias = value[moesim_rank_index(n, 0.5)];
    for (size_t i = 0; i < n; i++)
        value[i] = fabs(value[i]);
    moesim_sort_reals(value, n);
    out.p50 = value[moesim_rank_index(n, 0.5)];
    out.p90 = value[moesim_rank_index(n, 0.9)];
    out.p99 = value[moesim_rank_index(n, 0.99)];
    return out;
}

static uint8_t class_of(uint32_t misses)
{
    uint8_t c = 0;
    for (; misses > 0 && c + 1u < MOESIM_MISS_CLASSES; misses >>= 1)
        c++;
    return c;
}

/* ---- gathering ----------------------------------------------------------------------------------------------------- */

static void gather_events(const moesim_fidelity_work *w, const moesim_fidelity_cell *c, size_t variant, samples *s)
{
    const uint32_t layers = w->in->num_layers;
    const size_t events = (size_t)w->in->num_passes * layers;
    for (uint32_t r = 0; r < c->repeats; r++)
        for (size_t i = 0; i < events; i++) {
            const double predicted = c->predicted[variant][i];
            if (w->unit[i / layers] == MOESIM_NO_REQUEST || c->measured[r][i] == 0 || !(predicted > 0))
                continue;
            s->layer[s->n] = (uint16_t)(i % layers);
            s->class[s->n] = class_of(c->misses[i]);
            s->value[s->n++] = log(1e-9 * c->measured[r][i] / predicted);
        }
}

static void gather_passes(const moesim_fidelity_work *w, const moesim_fidelity_cell *c, samples *s)
{
    const uint32_t layers = w->in->num_layers;
    for (uint32_t r = 0; r < c->repeats; r++)
        for (uint32_t p = 0; p < w->in->num_passes; p++) {
            double predicted = 0, measured = 0;
            for (uint32_t l = 0; l < layers; l++) {
                predicted += c->predicted[0][(size_t)p * layers + l];
                measured += 1e-9 * c->measured[r][(size_t)p * layers + l];
            }
            if (w->unit[p] != MOESIM_NO_REQUEST && predicted > 0 && measured > 0)
                s->value[s->n++] = log(measured / predicted);
        }
}

/* Residuals of the samples of each layer, and of each class of misses. */
static void by_layer(const samples *s, uint32_t layers, double *scratch, moesim_residuals *out)
{
    for (uint32_t l = 0; l < layers; l++) {
        size_t n = 0;
        for (size_t i = 0; i < s->n; i++)
            if (s->layer[i] == l)
                scratch[n++] = s->value[i];
        out[l] = summarise(scratch, n);
    }
}

static void by_class(const samples *s, double *scratch, moesim_residuals *out)
{
    for (uint32_t k = 0; k < MOESIM_MISS_CLASSES; k++) {
        size_t n = 0;
        for (size_t i = 0; i < s->n; i++)
            if (s->class[i] == k)
                scratch[n++] = s->value[i];
        out[k] = summarise(scratch, n);
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

static void each_cell(const moesim_fidelity_work *w, samples *s, moesim_fidelity *out)
{
    for (size_t i = 0; i < w->in->num_cells; i++) {
        s->n = 0;
        gather_events(w, &w->in->cell[i], MOESIM_VARIANT_MODEL, s);
        out->row[i].event = summarise(s->value, s->n);
        s->n = 0;
        gather_passes(w, &w->in->cell[i], s);
        out->row[i].pass = summarise(s->value, s->n);
    }
}

static void all_cells(const moesim_fidelity_work *w, samples *s, double *scratch, moesim_fidelity *out)
{
    for (size_t v = 0; v < MOESIM_VARIANTS; v++) {
        s->n = 0;
        for (size_t i = 0; i < w->in->num_cells; i++)
            if (moesim_fidelity_is_test(&w->in->cell[i]))
                gather_events(w, &w->in->cell[i], v, s);
        if (v == MOESIM_VARIANT_MODEL) {
            by_layer(s, w->in->num_layers, scratch, out->layer);
            by_class(s, scratch, out->miss_class);
        }
        out->variant[v].event = summarise(s->value, s->n);
    }
    s->n = 0;
    for (size_t i = 0; i < w->in->num_cells; i++)
        if (moesim_fidelity_is_test(&w->in->cell[i]))
            gather_passes(w, &w->in->cell[i], s);
    out->pass = summarise(s->value, s->n);
}

moesim_code moesim_fidelity_residuals(const moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err)
{
    size_t most = 0;
    void *p[4] = {NULL};
    for (size_t i = 0; i < w->in->num_cells; i++)
        most += (size_t)w->in->cell[i].repeats * w->in->num_passes * w->in->num_layers;
    static const size_t each[4] = {sizeof(double), sizeof(uint16_t), sizeof(uint8_t), sizeof(double)};
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < 4 && code == MOESIM_OK; i++)
        code = moesim_alloc(most, each[i], "residuals", &p[i], err);
    if (code == MOESIM_OK) {
        samples s = {.value = p[0], .layer = p[1], .class = p[2]};
        each_cell(w, &s, out);
        all_cells(w, &s, p[3], out);
    }
    for (size_t i = 0; i < 4; i++)
        free(p[i]);
    return code;
}
