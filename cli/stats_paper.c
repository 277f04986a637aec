/* SPDX-License-Identifier: Apache-2.0
 *
 * The paper's values (OLED-MoE, arXiv 2609.33385) and how this trace compares. The paper does not say how it defines
 * overlap, so both denominators are shown.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cli/stats_report.h"

const double moesim_paper_stable[MOESIM_STATS_BINS] = { .13, .12, .16, .21, .25, .30, .34, .36, .39, .42 };

double moesim_stability_mean(const moesim_stability *s, uint32_t bin, uint32_t top_k)
{
    return s->n[bin] > 0 ? (double)s->kept[bin] / ((double)s->n[bin] * top_k) : NAN;
}

double moesim_stability_full(const moesim_stability *s, uint32_t bin, uint32_t top_k)
{
    return s->n[bin] > 0 ? (double)s->level[bin][top_k] / (double)s->n[bin] : NAN;
}

static double active_share(const moesim_trace_stats *s)
{
    return moesim_trace_stats_active(s) / s->num_experts;
}

static double active_growth(const moesim_trace_stats *s)
{
    return moesim_trace_stats_active(s) / s->top_k;
}

static double neighbour_new(const moesim_trace_stats *s)
{
    return moesim_mean_value(&s->overlap_new[1]);
}

static double neighbour_old(const moesim_trace_stats *s)
{
    return moesim_mean_value(&s->overlap_old[1]);
}

static double boundary_new(const moesim_trace_stats *s)
{
    return moesim_mean_value(&s->boundary_new);
}

static double boundary_old(const moesim_trace_stats *s)
{
    return moesim_mean_value(&s->boundary_old);
}

/* Share of the steps from lag to lag at which the overlap falls; NaN where no two lags have samples. */
static double falling(const moesim_trace_stats *s)
{
    uint32_t steps = 0, falls = 0;
    for (uint32_t lag = 2; lag <= MOESIM_STATS_LAGS && s->overlap_new[lag].n > 0; lag++) {
        steps++;
        falls += moesim_mean_value(&s->overlap_new[lag]) < moesim_mean_value(&s->overlap_new[lag - 1]);
    }
    return steps > 0 ? (double)falls / steps : NAN;
}

/* Share of the steps between bins with samples at which the mean stability rises. */
static double rising(const moesim_trace_stats *s, const moesim_stability *st)
{
    uint32_t steps = 0, rises = 0;
    double before = NAN;
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
        const double mean = moesim_stability_mean(st, b, s->top_k);
        if (isnan(mean))
            continue;
        steps += isnan(before) ? 0 : 1;
        rises += mean > before ? 1 : 0;   /* 0 for the first */
        before = mean;
    }
    return steps > 0 ? (double)rises / steps : NAN;
}

static double rising_masked(const moesim_trace_stats *s)
{
    return rising(s, &s->stability[0]);
}

static double rising_all(const moesim_trace_stats *s)
{
    return rising(s, &s->stability[1]);
}

/* Largest distance to the paper's P(stability = 1); bins without samples are left out. */
static double farthest(const moesim_trace_stats *s, const moesim_stability *st)
{
    double most = NAN;
    for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
        const double d = fabs(moesim_stability_full(st, b, s->top_k) - moesim_paper_stable[b]);
        if (!isnan(d) && !(d <= most))
            most = d;
    }
    return most;
}

static double farthest_masked(const moesim_trace_stats *s)
{
    return farthest(s, &s->stability[0]);
}

static double farthest_all(const moesim_trace_stats *s)
{
    return farthest(s, &s->stability[1]);
}

static double lowest_bin(const moesim_trace_stats *s)
{
    return moesim_stability_mean(&s->stability[0], 0, s->top_k);
}

static double highest_bin(const moesim_trace_stats *s)
{
    return moesim_stability_mean(&s->stability[0], MOESIM_STATS_BINS - 1, s->top_k);
}

const moesim_claim moesim_claims[] = {
    { "Fig. 4a", "active experts, share of E", .226, .255, ".226 to .255 (mini)", active_share },
    { "Fig. 4a", "active experts, times top-k", 7.2, 8.2, "7.2 to 8.2 (mini)", active_growth },
    { "Fig. 10c", "active experts per layer (mini)", 54, 66, "54 to 66 (about 60)", moesim_trace_stats_active },
    { "Fig. 10c", "active experts per layer (flash)", 81, 99, "81 to 99 (about 90)", moesim_trace_stats_active },
    { "Fig. 7", "overlap, lag 1, over the later set", .85, .90, ".85 to .90", neighbour_new },
    { "Fig. 7", "overlap, lag 1, over the earlier set", .85, .90, ".85 to .90", neighbour_old },
    { "Fig. 7", "over a block boundary, later set", .65, 1.0, "above .65", boundary_new },
    { "Fig. 7", "over a block boundary, earlier set", .65, 1.0, "above .65", boundary_old },
    { "Fig. 7", "steps of lag at which overlap falls", 1.0, 1.0, "all", falling },
    { "Fig. 10a", "bins where stability rises, masked", 1.0, 1.0, "all", rising_masked },
    { "Fig. 10a", "bins where stability rises, all", 1.0, 1.0, "all", rising_all },
    { "Fig. 10b", "P(=1), largest distance, masked", 0.0, .05, "0 to .05", farthest_masked },
    { "Fig. 10b", "P(=1), largest distance, all", 0.0, .05, "0 to .05", farthest_all },
    { "Fig. 10b", "mean stability, lowest bin, masked", .55, .65, ".55 to .65 (.60)", lowest_bin },
    { "Fig. 10b", "mean stability, highest bin, masked", .76, .86, ".76 to .86 (.81)", highest_bin },
    { NULL, NULL, 0.0, 0.0, NULL, NULL },
};

const char *moesim_claim_verdict(const moesim_claim *claim, double value)
{
    if (isnan(value))
        return "n/a";
    return value >= claim->lo && value <= claim->hi ? "inside" : "outside";
}

bool moesim_claims_comparable(const moesim_trace_info *info, char *text, size_t bytes)
{
    const char *model = info->model_id[0] != '\0' ? info->model_id : "(unnamed)";
    if (strstr(info->engine, "synthetic") != NULL) {   /* a merged trace may name several */
        snprintf(text, bytes, "The paper's values are for LLaDA2.0 with blocks of 16. This trace is synthetic: inside and "
                 "outside say how it was generated, nothing about a model.");
        return false;
    }
    if (strcasestr(model, "llada2") == NULL) {
        snprintf(text, bytes, "The paper's values are for LLaDA2.0 with blocks of 16. This trace is of another model, %.255s: "
                 "inside and outside are orientation, not a check of the paper.", model);
        return false;
    }
    snprintf(text, bytes, "The paper's values are for LLaDA2.0 with blocks of 16. This trace names the model %.255s and has "
             "blocks of %u.", model, info->block_length);
    return true;
}
