/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of figures.
 */
#include "plots/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "plots/fill.h"

#define CELLS "cells:policy cache"
#define TIMED "moesim sweep TRACE --policy P… --cache N… --time model -o FILE"
#define COUNTED "moesim sweep TRACE --policy P… --cache N… -o FILE"
#define ABOVE "moesim sweep TRACE --policy P…,ideal --cache N… -o FILE"
#define SPREAD "moesim sweep TRACE --policy P… --cache N… --bandwidth 16,32,64,128 -o FILE"
#define REPORTED "cells:executed_by policy role"
#define HELD "moesim fidelity … --result FILE"
#define STATS "moesim trace stats TRACE -o FILE"

const moesim_figure moesim_figures[] = {
    { "misses", "Misses per pass by policy, and by trace or workload; bars at one capacity.", "sweep",
      CELLS " misses_per_pass", COUNTED, "bars", "Misses per pass", "misses_per_pass", "misses per pass [experts]", NULL,
      moesim_fill_bars },
    { "tpot", "Time per output token by policy, and by trace or workload; bars at one capacity.", "sweep", CELLS " tpot_ms",
      TIMED, "bars", "Time per output token", "tpot_ms", "TPOT [ms]", NULL, moesim_fill_bars },
    { "breakdown", "The parts of the time per output token by policy, stacked, at one capacity.", "sweep",
      CELLS " tpot_ms part_hits_ms part_link_ms", TIMED, "bars", "Parts of the time per output token", "tpot_ms", "TPOT [ms]",
      NULL, moesim_fill_breakdown },
    { "curve", "Misses per pass over capacity, a line a policy, with floor, knees and bounds.", "sweep",
      CELLS " misses_per_pass hit_rate", COUNTED, "lines", "Misses per pass over capacity", "misses_per_pass",
      "misses per pass [experts]", "cache", moesim_fill_capacity },
    { "tpot-curve", "Time per output token over capacity, a line a policy, with knees and bounds.", "sweep", CELLS " tpot_ms",
      TIMED, "lines", "Time per output token over capacity", "tpot_ms", "TPOT [ms]", "cache", moesim_fill_capacity },
    { "gap", "Misses per pass above those of the ideal cache over capacity, paired by request.", "sweep",
      CELLS " misses_per_pass", ABOVE, "lines", "Misses per pass above the ideal cache", "misses_per_pass",
      "experts above ideal *", "cache", moesim_fill_gap },
    { "bandwidth", "Time per output token over the link's bandwidth, a line a policy, at one capacity.", "sweep",
      CELLS " bandwidth_gbps tpot_ms", SPREAD, "lines", "Time per output token over link bandwidth", "tpot_ms", "TPOT [ms]",
      "bandwidth_gbps", moesim_fill_capacity },
    { "grid", "The best causal policy and its time per output token over capacity and bandwidth.", "sweep",
      CELLS " bandwidth_gbps tpot_ms", SPREAD, "grid", "Best policy over capacity and link bandwidth", "tpot_ms",
      "TPOT of the best [ms]", NULL, moesim_fill_grid },
    { "stability", "How many of a token's experts the next pass keeps, by confidence; with the published values.", "stats",
      "stability:confidence masked_n masked_kept masked_full all_n all_kept all_full", STATS, "lines",
      "Stability of routes by confidence", NULL, "share", NULL, moesim_fill_stability },
    { "overlap", "Overlap of the experts of two passes by lag and over block boundaries, over either set.", "stats",
      "overlap:lag over_new over_new_n over_old;boundary:over_new over_old", STATS, "lines",
      "Overlap of activated experts by lag", NULL, "share of experts in both passes", NULL, moesim_fill_overlap },
    { "fidelity", "Measured over predicted time per output token, a point a cell, with the line of agreement.", "fidelity",
      REPORTED " tpot_predicted_ms tpot_measured_ms", HELD, "points", "Time per output token, predicted and measured",
      "tpot_measured_ms", "measured [ms per output token]", "tpot_predicted_ms", moesim_fill_fidelity },
    { "fidelity-miss", "The same of miss time: TPOT less that of full residency.", "fidelity",
      REPORTED " miss_predicted_ms miss_measured_ms", HELD, "points", "Miss time, predicted and measured", "miss_measured_ms",
      "measured [ms per output token]", "miss_predicted_ms", moesim_fill_fidelity },
    { "residuals", "Errors of single events by their number of misses.", "fidelity", "misses:misses n p50 p90 p99", HELD,
      "lines", "Errors of events by misses", NULL, "|ln(measured / predicted)|", NULL, moesim_fill_residuals },
    { .name = NULL },
};

moesim_code moesim_figure_find(const char *name, const moesim_figure **out, moesim_error *err)
{
    const char *names[sizeof moesim_figures / sizeof moesim_figures[0]];
    size_t i = 0;
    *out = NULL;
    for (; moesim_figures[i].name != NULL; i++) {
        names[i] = moesim_figures[i].name;
        if (strcmp(names[i], name) == 0)
            *out = &moesim_figures[i];
    }
    names[i] = NULL;
    if (*out != NULL)
        return MOESIM_OK;
    const char *near = moesim_nearest(name, names);
    return moesim_fail(err, MOESIM_E_USAGE, "there is no figure '%.60s'%s%s%s; `moesim plot --list` shows all", name,
                       near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'" : "");
}

/* Does the result have all of needs? Else `missing` names the first table or column that it lacks. */
static bool has_all(const moesim_result *r, const char *needs, char *missing, size_t bytes)
{
    const moesim_table *table = NULL;
    char word[64];
    for (const char *at = needs; *at != '\0';) {
        const size_t n = strcspn(at, ":; ");
        (void)snprintf(word, sizeof word, "%.*s", (int)n, at);
        if (at[n] == ':') {
            table = moesim_result_find(r, word);
            (void)snprintf(missing, bytes, "table %s", word);
        } else {
            (void)snprintf(missing, bytes, "column %s/%s", table != NULL ? table->name : "", word);
        }
        if (table == NULL || (at[n] != ':' && moesim_table_find(table, word) == NULL))
            return false;
        at += n + (at[n] != '\0' ? 1u : 0u);
    }
    return true;
}

static moesim_code refuse(const moesim_figure *f, const char *path, const char *why, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_USAGE, "%s: figure %s cannot be drawn from it: %s; what it needs is written by `%s`", path,
                       f->name, why, f->source);
}

/* The first option that chooses a part of a sweep, or NULL. */
static const char *chosen(const moesim_plot_request *q)
{
    const struct { const char *option; bool given; } word[] = {
        { "--policy", q->num_policies > 0 }, { "--trace", q->trace != NULL }, { "--profile", q->profile != NULL },
        { "--dtype", q->dtype != NULL }, { "--cache", !isnan(q->cache) }, { "--bandwidth", !isnan(q->bandwidth) },
        { "--batch", !isnan(q->batch) },
    };
    for (size_t i = 0; i < sizeof word / sizeof word[0]; i++)
        if (word[i].given)
            return word[i].option;
    return NULL;
}

static bool is_finite(const moesim_chart *chart)
{
    for (size_t i = 0; i < chart->num_series; i++)
        for (size_t k = 0; k < chart->series[i].n; k++)
            if (isfinite(chart->series[i].point[k].x) && isfinite(chart->series[i].point[k].y))
                return true;
    return false;
}

moesim_code moesim_figure_chart(const moesim_figure *figure, const moesim_result *result, const char *path,
                                const moesim_plot_request *request, moesim_chart *chart, moesim_error *err)
{
    char missing[128], why[256];
    const char *kind = moesim_result_get(result, "kind");
    if (kind == NULL || strcmp(kind, figure->kind) != 0) {
        (void)snprintf(why, sizeof why, "it is a result of kind %.60s, not %s", kind != NULL ? kind : "\"\"", figure->kind);
        return refuse(figure, path, why, err);
    }
    if (strcmp(figure->kind, "sweep") != 0 && chosen(request) != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "option %s chooses from the cells of a sweep; figure %s shows all of its file",
                           chosen(request), figure->name);
    if (!has_all(result, figure->needs, missing, sizeof missing)) {
        (void)snprintf(why, sizeof why, "it has no %s", missing);
        return refuse(figure, path, why, err);
    }
    (void)snprintf(chart->title, sizeof chart->title, "%s", figure->title);
    (void)snprintf(chart->y.label, sizeof chart->y.label, "%s", figure->axis != NULL ? figure->label : "");
    const moesim_code code = figure->fill(figure, result, request, chart, err);
    if (code == MOESIM_OK && !is_finite(chart)) {
        (void)snprintf(why, sizeof why, "%s is undefined in every cell", figure->value != NULL ? figure->value : "the figure");
        return refuse(figure, path, why, err);
    }
    return code;
}
