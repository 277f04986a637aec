/* SPDX-License-Identifier: Apache-2.0
 *
 * Fidelity: totals, errors over cells, the link's rate.
 */
#include "study/fidelity_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

const char *const moesim_variant_names[MOESIM_VARIANTS] = {"model", "without contention", "without sync", "without overlap"};
const char *const moesim_miss_classes[MOESIM_MISS_CLASSES] = {"0", "1", "2-3", "4-7", "8-15", "16-31", "32-63", "64-127",
                                                              "128+"};

size_t moesim_fidelity_reference(const moesim_fidelity_input *in, size_t cell)
{
    size_t any = in->num_cells;
    for (size_t i = 0; i < in->num_cells; i++) {
        if (!in->cell[i].reference)
            continue;
        if (in->cell[i].cap <= in->cell[cell].cap && in->cell[i].cap >= in->cell[cell].cap)
            return i;
        any = any < in->num_cells ? any : i;
    }
    return any;
}

/* ---- totals -------------------------------------------------------------------------------------------------------- */

static double pass_seconds(const double *event, uint32_t pass, uint32_t layers)
{
    double s = 0;
    for (uint32_t l = 0; l < layers; l++)
        s += event[(size_t)pass * layers + l];
    return s;
}

static double pass_measured(const uint32_t *event, uint32_t pass, uint32_t layers)
{
    uint64_t ns = 0;
    for (uint32_t l = 0; l < layers; l++)
        ns += event[(size_t)pass * layers + l];
    return 1e-9 * (double)ns;
}

/* A unit is a request, or a run of passes of one that ends with a block. */
static moesim_code find_units(moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err)
{
    const moesim_fidelity_input *in = w->in;
    void *p = NULL;
    uint32_t last = MOESIM_NO_REQUEST, length = 0;
    if (moesim_alloc(in->num_passes, sizeof *w->unit, "passes", &p, err) != MOESIM_OK)
        return err->code;
    w->unit = p;
    out->unit_is_request = in->num_requests >= MOESIM_FIDELITY_FEW;
    for (uint32_t i = 0; i < in->num_passes; i++) {
        const uint32_t request = in->pass[i].request;
        w->unit[i] = MOESIM_NO_REQUEST;
        if (request == MOESIM_NO_REQUEST)
            continue;
        const bool full = !out->unit_is_request && in->pass[i].first && length >= MOESIM_FIDELITY_RUN;
        if (w->num_units == 0 || request != last || full) {
            w->num_units++;
            length = 0;
        }
        last = request;
        length++;
        w->unit[i] = (uint32_t)(w->num_units - 1);
    }
    out->num_units = w->num_units;
    if (w->num_units == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "no decode pass is counted, so there is nothing to compare; choose other "
                           "--requests or a smaller --warmup");
    return MOESIM_OK;
}

static moesim_code sum_cell(const moesim_fidelity_work *w, const moesim_fidelity_cell *c, moesim_cell_sums *s,
                            moesim_error *err)
{
    const moesim_fidelity_input *in = w->in;
    void *measured = NULL, *predicted = NULL, *units = NULL;
    moesim_code code = moesim_alloc(c->repeats, sizeof(double), "sums", &measured, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(w->num_units, sizeof(double), "sums", &predicted, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(w->num_units * c->repeats, sizeof(double), "sums", &units, err);
    s->measured = measured;
    s->unit_predicted = predicted;
    s->unit_measured = units;
    for (uint32_t p = 0; p < in->num_passes && code == MOESIM_OK; p++) {
        const uint32_t u = w->unit[p];
        if (u == MOESIM_NO_REQUEST)
            continue;
        for (size_t v = 0; v < MOESIM_VARIANTS; v++)
            s->predicted[v] += pass_seconds(c->predicted[v], p, in->num_layers);
        s->unit_predicted[u] += pass_seconds(c->predicted[0], p, in->num_layers);
        for (uint32_t r = 0; r < c->repeats; r++) {
            const double t = pass_measured(c->measured[r], p, in->num_layers);
            s->measured[r] += t;
            s->unit_measured[r * w->num_units + u] += t;
        }
    }
    return code;
}

moesim_code moesim_fidelity_sum(moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err)
{
    void *p = NULL;
    if (find_units(w, out, err) != MOESIM_OK ||
        moesim_alloc(w->in->num_cells, sizeof *w->sums, "sums", &p, err) != MOESIM_OK)
        return err->code;
    w->sums = p;
    for (uint32_t r = 0; r < w->in->num_requests; r++)
        w->tokens += w->in->output_tokens[r];
    for (size_t i = 0; i < w->in->num_cells; i++)
        if (sum_cell(w, &w->in->cell[i], &w->sums[i], err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

void moesim_fidelity_work_fini(moesim_fidelity_work *w)
{
    for (size_t i = 0; w->sums != NULL && i < w->in->num_cells; i++) {
        free(w->sums[i].measured);
        free(w->sums[i].unit_predicted);
        free(w->sums[i].unit_measured);
    }
    free(w->sums);
    free(w->unit);
    memset(w, 0, sizeof *w);
}

/* ---- errors over cells --------------------------------------------------------------------------------------------- */

static void add_error(moesim_fidelity_errors *e, double error, size_t cell)
{
    if (isnan(error))
        return;
    if (e->n == 0 || fabs(error) > e->worst) {
        e->worst = fabs(error);
        e->worst_cell = cell;
    }
    e->mape = ((double)e->n * (e->n > 0 ? e->mape : 0) + fabs(error)) / (double)(e->n + 1);
    e->bias = ((double)e->n * (e->n > 0 ? e->bias : 0) + error) / (double)(e->n + 1);
    e->n++;
}

static double variant_error(const moesim_fidelity_work *w, const moesim_fidelity *out, size_t cell, size_t v, bool miss)
{
    const size_t ref = moesim_fidelity_reference(w->in, cell);
    const moesim_fidelity_figure *f = miss ? &out->row[cell].miss : &out->row[cell].tpot;
    double predicted = w->sums[cell].predicted[v];
    if (miss && ref == w->in->num_cells)
        return NAN;
    if (miss)
        predicted -= w->sums[ref].predicted[v];
    return f->measured > 0 ? predicted / w->tokens / f->measured - 1 : (double)NAN;
}

void moesim_fidelity_errors_of(const moesim_fidelity_work *w, moesim_fidelity *out)
{
    for (size_t v = 0; v < MOESIM_VARIANTS; v++) {
        moesim_fidelity_variant *variant = &out->variant[v];
        variant->tpot = variant->miss = (moesim_fidelity_errors){.mape = NAN, .bias = NAN, .worst = NAN};
        for (size_t i = 0; i < w->in->num_cells; i++) {
            if (!moesim_fidelity_is_test(&w->in->cell[i]))
                continue;
            add_error(&variant->tpot, variant_error(w, out, i, v, false), i);
            add_error(&variant->miss, variant_error(w, out, i, v, true), i);
        }
    }
}

/* ---- the link ------------------------------------------------------------------------------------------------------ */

/* Bytes and seconds of the events in which copies decide, over all repeats. */
static void link_rate(const moesim_fidelity_work *w, const moesim_fidelity_cell *c, moesim_fidelity_row *row)
{
    const moesim_fidelity_input *in = w->in;
    double bytes = 0, seconds = 0;
    row->link_rate = row->link_share = NAN;
    for (uint32_t r = 0; c->busy_link != NULL && r < c->repeats; r++)
        for (size_t i = 0; i < (size_t)in->num_passes * in->num_layers; i++) {
            if (w->unit[i / in->num_layers] == MOESIM_NO_REQUEST || !c->link_bound[i] || c->busy_link[r][i] == 0)
                continue;
            bytes += (double)c->bytes[i];
            seconds += 1e-9 * c->busy_link[r][i];
            row->link_events += r == 0;
        }
    if (seconds > 0) {
        row->link_rate = bytes / seconds;
        row->link_share = row->link_rate / c->link_rate;
    }
}

static void link_rates(const moesim_fidelity_work *w, moesim_fidelity *out)
{
    double sum = 0;
    size_t n = 0;
    out->link_share = out->least_link_share = NAN;
    for (size_t i = 0; i < w->in->num_cells; i++) {
        moesim_fidelity_row *row = &out->row[i];
        link_rate(w, &w->in->cell[i], row);
        if (isnan(row->link_share) || !moesim_fidelity_is_test(&w->in->cell[i]))
            continue;
        sum += row->link_share;
        out->least_link_share = n == 0 || row->link_share < out->least_link_share ? row->link_share : out->least_link_share;
        out->link_share = sum / (double)++n;
    }
}

/* ---- all of it ----------------------------------------------------------------------------------------------------- */

moesim_code moesim_fidelity_compute(const moesim_fidelity_input *in, moesim_fidelity *out, moesim_error *err)
{
    moesim_fidelity_work w = {.in = in};
    void *rows = NULL, *layers = NULL;
    memset(out, 0, sizeof *out);
    moesim_code code = moesim_alloc(in->num_cells, sizeof *out->row, "cells", &rows, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(in->num_layers, sizeof *out->layer, "layers", &layers, err);
    out->row = rows;
    out->layer = layers;
    if (code == MOESIM_OK)
        code = moesim_fidelity_sum(&w, out, err);
    if (code == MOESIM_OK)
        code = moesim_fidelity_figures(&w, out, err);
    if (code == MOESIM_OK)
        code = moesim_fidelity_residuals(&w, out, err);
    if (code == MOESIM_OK)
        code = moesim_fidelity_rank(&w, out, err);
    if (code == MOESIM_OK) {
        moesim_fidelity_errors_of(&w, out);
        link_rates(&w, out);
        for (size_t i = 0; i < in->num_cells; i++) {
            out->num_test += moesim_fidelity_is_test(&in->cell[i]);
            out->num_same += in->cell[i].same_decisions;
        }
    }
    moesim_fidelity_work_fini(&w);
    return code;
}

void moesim_fidelity_fini(moesim_fidelity *f)
{
    free(f->row);
    free(f->layer);
    free(f->knee);
    memset(f, 0, sizeof *f);
}
