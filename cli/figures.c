/* SPDX-License-Identifier: Apache-2.0
 *
 * Values and intervals of the figures of a cell.
 */
#include "cli/figures.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

static const struct { const char *name, *help; double q; } percentiles[] = {
    { "tpot_p50_ms", "TPOT of the median request", 0.50 },
    { "tpot_p90_ms", "TPOT that 90 % of the requests do not exceed", 0.90 },
    { "tpot_p99_ms", "TPOT that 99 % of the requests do not exceed", 0.99 },
};
#define NUM_PERCENTILES (sizeof percentiles / sizeof percentiles[0])

static size_t num_counts(void)
{
    size_t n = 0;
    while (moesim_metrics[n].name != NULL)
        n++;
    return n;
}

static size_t num_times(void)
{
    size_t n = 0;
    while (moesim_time_metrics[n].name != NULL)
        n++;
    return n;
}

size_t moesim_num_figures(bool timed)
{
    return num_counts() + (timed ? num_times() + NUM_PERCENTILES : 0);
}

moesim_figure moesim_figure_at(size_t k)
{
    const size_t counts = num_counts(), times = num_times();
    if (k < counts) {
        const moesim_metric *m = &moesim_metrics[k];
        return (moesim_figure){ m->name, m->unit, m->help, m, NULL, 0 };
    }
    if (k < counts + times) {
        const moesim_time_metric *m = &moesim_time_metrics[k - counts];
        return (moesim_figure){ m->name, m->unit, m->help, NULL, m, 0 };
    }
    const size_t p = k - counts - times;
    return (moesim_figure){ percentiles[p].name, "ms", percentiles[p].help, NULL, moesim_time_metrics, percentiles[p].q };
}

size_t moesim_figure_index(const char *name)
{
    const size_t all = moesim_num_figures(true);
    size_t k = 0;
    while (k < all && strcmp(moesim_figure_at(k).name, name) != 0)
        k++;
    return k;
}

const char *moesim_figure_bound(const char *name, const char *end, char out[64])
{
    const size_t n = strlen(name), kept = n > 3 && strcmp(name + n - 3, "_ms") == 0 ? n - 3 : n;
    snprintf(out, 64, "%.*s%s", (int)kept, name, end);
    return out;
}

void moesim_figure_terms(const moesim_figure *figure, const moesim_figure_source *source, double *num, double *den)
{
    for (size_t r = 0; r < source->outcome->num_requests; r++) {
        if (figure->count == NULL) {
            num[r] = figure->time->num(&source->timing->request[r]);
            den[r] = figure->time->den(&source->timing->request[r]);
            continue;
        }
        num[r] = figure->count->num(&source->outcome->request[r]);
        den[r] = figure->count->den(&source->outcome->request[r]);
        if (figure->count->macro) {
            num[r] = den[r] != 0 ? num[r] / den[r] : 0;
            den[r] = den[r] != 0;
        }
    }
}

moesim_code moesim_figure_value(const moesim_figure *figure, const moesim_figure_source *source, double *out,
                                moesim_error *err)
{
    *out = NAN;
    if (figure->count != NULL)
        *out = source->global && !figure->count->in_global ? (double)NAN
                                                           : moesim_metric_value(figure->count, source->outcome);
    else if (source->timing != NULL && figure->percentile > 0)
        return moesim_time_percentiles(figure->time, source->timing, &figure->percentile, 1, out, err);
    else if (source->timing != NULL)
        *out = moesim_time_metric_value(figure->time, &source->timing->total);
    return MOESIM_OK;
}

static moesim_code percentile_interval(const moesim_figure *figure, const moesim_figure_source *source, double *scratch,
                                       moesim_interval *out, moesim_error *err)
{
    size_t defined = 0;
    for (size_t r = 0; r < source->timing->num_requests; r++) {
        scratch[defined] = moesim_time_metric_value(figure->time, &source->timing->request[r]);
        defined += isnan(scratch[defined]) ? 0u : 1u;
    }
    return moesim_percentile_interval(scratch, defined, figure->percentile, out, err);
}

/* The ratios among the figures, all at once. */
typedef struct batch {
    size_t n;
    double *memory;
    const double **num, **den;
    size_t *of;                          /* [n] which figure */
    moesim_interval *interval;
} batch;

static void batch_fini(batch *b)
{
    free(b->memory);
    free(b->num);
    free(b->of);
    free(b->interval);
}

static moesim_code batch_init(batch *b, size_t figures, size_t requests, moesim_error *err)
{
    void *memory = NULL, *pointer = NULL, *of = NULL, *interval = NULL;
    moesim_code code = moesim_alloc(figures * 2 + 1, requests * sizeof(double), "figures by request", &memory, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(figures * 2, sizeof(double *), "figures by request", &pointer, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(figures, sizeof *b->of, "figures by request", &of, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(figures, sizeof *b->interval, "intervals", &interval, err);
    *b = (batch){ .memory = memory, .num = pointer, .of = of, .interval = interval };
    b->den = pointer != NULL ? b->num + figures : NULL;
    return code;
}

static moesim_code fill_intervals(moesim_bootstrap *bootstrap, const moesim_figure_source *source, size_t begin, size_t end,
                                  const double *value, moesim_interval *interval, batch *b, moesim_error *err)
{
    const size_t requests = source->outcome->num_requests;
    double *scratch = b->memory + 2 * (end - begin) * requests;
    moesim_code code = MOESIM_OK;
    for (size_t k = begin; k < end && code == MOESIM_OK; k++) {
        const moesim_figure figure = moesim_figure_at(k);
        interval[k - begin] = (moesim_interval){ NAN, NAN };
        if (!isfinite(value[k - begin]))
            continue;
        if (figure.percentile > 0) {
            code = percentile_interval(&figure, source, scratch, &interval[k - begin], err);
            continue;
        }
        double *num = b->memory + 2 * b->n * requests;
        moesim_figure_terms(&figure, source, num, num + requests);
        b->num[b->n] = num;
        b->den[b->n] = num + requests;
        b->of[b->n++] = k - begin;
    }
    if (code == MOESIM_OK && b->n > 0)
        code = moesim_bootstrap_ratios(bootstrap, b->n, b->num, b->den, b->interval, err);
    for (size_t i = 0; i < b->n && code == MOESIM_OK; i++)
        interval[b->of[i]] = b->interval[i];
    return code;
}

moesim_code moesim_figures_fill(moesim_bootstrap *bootstrap, const moesim_figure_source *source, size_t begin, size_t end,
                                double *value, moesim_interval *interval, moesim_error *err)
{
    batch b = { .n = 0 };
    moesim_code code = MOESIM_OK;
    for (size_t k = begin; k < end && code == MOESIM_OK; k++) {
        const moesim_figure figure = moesim_figure_at(k);
        code = moesim_figure_value(&figure, source, &value[k - begin], err);
    }
    if (interval == NULL || code != MOESIM_OK)
        return code;
    code = batch_init(&b, end - begin, source->outcome->num_requests, err);
    if (code == MOESIM_OK)
        code = fill_intervals(bootstrap, source, begin, end, value, interval, &b, err);
    batch_fini(&b);
    return code;
}
