/* SPDX-License-Identifier: Apache-2.0
 *
 * Statistics of `moesim run`: every figure with its interval, paired differences from the baseline, gap decompositions. All
 * of them share one set of resamples.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/run.h"

/* Figures that --baseline compares: misses rank policies, utilisation is the paper's measure; the last with time alone. */
static const char *const compared[] = { "misses_per_pass", "utilisation", "tpot_ms" };
#define NUM_COMPARED (sizeof compared / sizeof compared[0])

static size_t num_compared(const moesim_report *r)
{
    return moesim_report_timed(r) ? NUM_COMPARED : NUM_COMPARED - 1;
}

double moesim_report_ratio_p95(const moesim_report *r, size_t cell)
{
    return moesim_modes_ratio_p95(&r->options->modes, &r->outcome[cell], moesim_report_cache(r, cell));
}

bool moesim_pair_distinguishable(const moesim_pair *pair)
{
    return moesim_paired_distinguishable(&pair->result);
}

static moesim_figure_source source_of(const moesim_report *r, size_t cell)
{
    const moesim_outcome *o = &r->outcome[cell];
    return (moesim_figure_source){ o, o->num_timings > 0 ? o->timing : NULL, r->options->modes.scope == MOESIM_SCOPE_GLOBAL };
}

static moesim_code fill_values(moesim_report *r, moesim_bootstrap *b, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (size_t cell = 0; cell < r->num_cells && code == MOESIM_OK; cell++) {
        const moesim_figure_source source = source_of(r, cell);
        const size_t at = cell * r->num_metrics;
        const bool shown = moesim_report_shown(r, cell);
        code = moesim_figures_fill(b, &source, 0, r->num_metrics, &r->value[at], shown ? &r->interval[at] : NULL, err);
    }
    return code;
}

static moesim_code compare(moesim_report *r, moesim_bootstrap *b, moesim_pair *pair, double *scratch, moesim_error *err)
{
    const moesim_figure figure = moesim_figure_at(pair->metric);
    const moesim_figure_source a = source_of(r, pair->cell), base = source_of(r, pair->baseline);
    const size_t n = a.outcome->num_requests;
    if (!isfinite(moesim_report_value(r, pair->cell, pair->metric)) ||
        !isfinite(moesim_report_value(r, pair->baseline, pair->metric))) {
        pair->result = (moesim_paired){ NAN, { NAN, NAN }, NAN, true, 0 };
        return MOESIM_OK;
    }
    moesim_figure_terms(&figure, &a, scratch, scratch + n);
    moesim_figure_terms(&figure, &base, scratch + 2 * n, scratch + 3 * n);
    return moesim_bootstrap_paired(b, scratch, scratch + n, scratch + 2 * n, scratch + 3 * n, r->options->seed, &pair->result,
                                   err);
}

static moesim_code fill_pairs(moesim_report *r, moesim_bootstrap *b, double *scratch, moesim_error *err)
{
    for (size_t cell = 0; r->baseline != SIZE_MAX && cell < r->num_cells; cell++) {
        const size_t policy = cell % r->num_policies;
        if (policy == r->baseline || !moesim_report_shown(r, cell))
            continue;
        for (size_t k = 0; k < num_compared(r); k++) {
            moesim_pair *pair = &r->pair[r->num_pairs];
            *pair = (moesim_pair){ .cell = cell, .baseline = cell - policy + r->baseline,
                                   .metric = moesim_figure_index(compared[k]) };
            if (compare(r, b, pair, scratch, err) != MOESIM_OK)
                return err->code;
            r->num_pairs++;
        }
    }
    return MOESIM_OK;
}

/* Without options, which neither bound has, a name stands for one policy. */
static size_t index_of(const moesim_report *r, const char *name)
{
    size_t i = 0;
    while (strcmp(r->policy[i].policy->name, name) != 0)
        i++;
    return i;
}

static moesim_code fill_gaps(moesim_report *r, moesim_bootstrap *b, moesim_error *err)
{
    if (!r->options->gap)
        return MOESIM_OK;
    const size_t belady = index_of(r, "belady"), forced = index_of(r, "belady-forced");
    for (size_t cell = 0; cell < r->num_cells; cell++) {
        const size_t first = cell - cell % r->num_policies;
        const moesim_outcome *o = &r->outcome[cell];
        if (!moesim_report_shown(r, cell) || (o->traits & MOESIM_CLAIRVOYANT) != 0 ||
            r->policy[cell % r->num_policies].policy->host_mode != MOESIM_HOST_NONE)
            continue;
        r->gap[r->num_gaps].cell = cell;
        if (moesim_gap_compute(b, o, &r->outcome[first + forced], &r->outcome[first + belady], &r->gap[r->num_gaps].gap,
                               err) != MOESIM_OK)
            return err->code;
        r->num_gaps++;
    }
    return MOESIM_OK;
}

/* Allocates and stores the pointer at `at`, whatever it points to. */
static moesim_code take(void *at, size_t n, size_t each, const char *what, moesim_error *err)
{
    void *p = NULL;
    const moesim_code code = moesim_alloc(n, each, what, &p, err);
    memcpy(at, &p, sizeof p);
    return code;
}

static moesim_code reserve(moesim_report *r, size_t requests, double **scratch, moesim_error *err)
{
    const size_t figures = r->num_cells * r->num_metrics;
    const size_t pairs = r->baseline == SIZE_MAX ? 0 : r->num_cells * num_compared(r);
    moesim_code code = take(&r->value, figures, sizeof *r->value, "figures", err);
    if (code == MOESIM_OK)
        code = take(&r->interval, figures, sizeof *r->interval, "intervals", err);
    if (code == MOESIM_OK)
        code = take(&r->pair, pairs, sizeof *r->pair, "comparisons", err);
    if (code == MOESIM_OK)
        code = take(&r->gap, r->options->gap ? r->num_cells : 0, sizeof *r->gap, "gap decompositions", err);
    if (code == MOESIM_OK)
        code = take(scratch, 4 * requests, sizeof **scratch, "figures by request", err);
    return code;
}

moesim_code moesim_report_figures(moesim_report *r, moesim_error *err)
{
    const size_t requests = r->outcome[0].num_requests;
    moesim_bootstrap *b = NULL;
    double *scratch = NULL;
    r->num_metrics = moesim_num_figures(moesim_report_timed(r));
    moesim_code code = reserve(r, requests, &scratch, err);
    if (code == MOESIM_OK)
        code = moesim_bootstrap_create(requests, MOESIM_RESAMPLES, r->options->seed, &b, err);
    if (code == MOESIM_OK)
        code = fill_values(r, b, err);
    if (code == MOESIM_OK)
        code = fill_pairs(r, b, scratch, err);
    if (code == MOESIM_OK)
        code = fill_gaps(r, b, err);
    moesim_bootstrap_destroy(&b);
    free(scratch);
    return code;
}
