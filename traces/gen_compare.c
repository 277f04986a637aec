/* SPDX-License-Identifier: Apache-2.0
 *
 * The two-sample check between a trace and one that is to be like it. Every statistic is a ratio of sums over blocks, so that
 * its standard error comes from leaving out one group of blocks after the other.
 */
#include <math.h>
#include <stdio.h>

#include "traces/gen_like.h"

#define ERRORS 2.0               /* standard errors of a difference that count as alike beyond the margin */
#define MOST 4.0                 /* margins beyond which a tolerance tells nothing */

const char *const moesim_gen_verdicts[] = { "alike", "APART", "few" };   /* order of enum moesim_gen_verdict */

typedef struct ratio { double over, under; } ratio;

/* One statistic of one group; a and b say which. */
typedef ratio (*statistic)(const moesim_trace_stats *s, uint32_t a, uint32_t b);

typedef struct comparison {
    const moesim_trace_stats *side[2];
    void (*line)(void *cookie, const moesim_gen_line *line);
    void *cookie;
    uint32_t apart;
} comparison;

static ratio of_mean(const moesim_mean *mean)
{
    return (ratio){ mean->sum, (double)mean->n };
}

static ratio layer_active(const moesim_trace_stats *s, uint32_t layer, uint32_t b)
{
    (void)b;
    return (ratio){ (double)s->active_sum[layer], (double)s->decode_passes };
}

static ratio active(const moesim_trace_stats *s, uint32_t a, uint32_t b)
{
    (void)a;
    (void)b;
    ratio r = { 0.0, (double)s->decode_passes * s->num_layers };
    for (uint32_t l = 0; l < s->num_layers; l++)
        r.over += (double)s->active_sum[l];
    return r;
}

/* Events with at most `most` active experts. */
static ratio active_at_most(const moesim_trace_stats *s, uint32_t most, uint32_t b)
{
    (void)b;
    ratio r = { 0.0, (double)s->decode_passes * s->num_layers };
    for (uint32_t n = 0; n <= most; n++)
        r.over += (double)s->active_hist[n];
    return r;
}

static ratio tokens(const moesim_trace_stats *s, uint32_t a, uint32_t b)
{
    (void)a;
    (void)b;
    return (ratio){ (double)s->committed, (double)s->decode_passes };
}

static ratio overlap_later(const moesim_trace_stats *s, uint32_t lag, uint32_t b)
{
    (void)b;
    return of_mean(&s->overlap_new[lag]);
}

static ratio overlap_earlier(const moesim_trace_stats *s, uint32_t lag, uint32_t b)
{
    (void)b;
    return of_mean(&s->overlap_old[lag]);
}

static ratio boundary(const moesim_trace_stats *s, uint32_t earlier, uint32_t b)
{
    (void)b;
    return of_mean(earlier ? &s->boundary_old : &s->boundary_new);
}

static ratio persistence(const moesim_trace_stats *s, uint32_t lag, uint32_t class)
{
    return of_mean(&s->persistence[class][lag]);
}

static ratio stability_mean(const moesim_trace_stats *s, uint32_t bin, uint32_t rows)
{
    return (ratio){ (double)s->stability[rows].kept[bin], (double)s->stability[rows].n[bin] * s->top_k };
}

static ratio stability_full(const moesim_trace_stats *s, uint32_t bin, uint32_t rows)
{
    return (ratio){ (double)s->stability[rows].level[bin][s->top_k], (double)s->stability[rows].n[bin] };
}

/* Value of a statistic over all groups; *error: its standard error. NaN where there are no samples. */
static double estimate(const moesim_trace_stats *group, statistic f, uint32_t a, uint32_t b, double *error)
{
    ratio all = { 0.0, 0.0 }, part[MOESIM_GEN_GROUPS];
    double left[MOESIM_GEN_GROUPS], mean = 0.0, sum = 0.0, n = 0.0;
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++) {
        part[g] = f(&group[g], a, b);
        all.over += part[g].over;
        all.under += part[g].under;
    }
    *error = INFINITY;
    if (all.under <= 0.0)
        return NAN;
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++) {
        if (part[g].under <= 0.0)
            continue;
        if (all.under - part[g].under <= 0.0)
            return all.over / all.under;               /* one group alone */
        left[g] = (all.over - part[g].over) / (all.under - part[g].under);
        mean += left[g];
        n += 1.0;
    }
    mean /= n;
    for (uint32_t g = 0; g < MOESIM_GEN_GROUPS; g++)
        sum += part[g].under > 0.0 ? (left[g] - mean) * (left[g] - mean) : 0.0;
    *error = sqrt(sum * (n - 1.0) / n);
    return all.over / all.under;
}

/* margin: absolute, or where negative, the share of the trace's value. */
static void compare(comparison *c, const char *what, statistic f, uint32_t a, uint32_t b, double margin)
{
    double error[2];
    moesim_gen_line line = { .trace = estimate(c->side[0], f, a, b, &error[0]),
                             .generated = estimate(c->side[1], f, a, b, &error[1]), .verdict = MOESIM_GEN_ALIKE };
    if (isnan(line.trace) && isnan(line.generated))
        return;
    const double least = margin < 0.0 ? -margin * line.trace : margin;
    snprintf(line.what, sizeof line.what, "%s", what);
    line.tolerance = least + ERRORS * hypot(error[0], error[1]);
    if (fabs(line.trace - line.generated) > line.tolerance)
        line.verdict = MOESIM_GEN_APART;
    else if (!(line.tolerance <= MOST * least) || isnan(line.trace - line.generated))
        line.verdict = MOESIM_GEN_FEW;
    c->apart += line.verdict == MOESIM_GEN_APART;
    if (c->line != NULL)
        c->line(c->cookie, &line);
}

static void compare_active(comparison *c)
{
    const moesim_trace_stats *s = c->side[0];
    char what[64];
    compare(c, "active experts per layer, mean", active, 0, 0, -0.03);
    for (uint32_t l = 0; l < s->num_layers; l++) {
        snprintf(what, sizeof what, "active experts, layer %u", l);
        compare(c, what, layer_active, l, 0, -0.03);
    }
    for (uint32_t quarter = 1, last = 0; quarter < 4; quarter++) {
        double events = 0.0, error;
        uint32_t most = 0;
        while (most < s->num_experts && !(events >= 0.25 * quarter))
            events = estimate(s, active_at_most, ++most, 0, &error);
        if (most == last)                           /* quarters of a narrow distribution meet: no statistic of its own */
            continue;
        last = most;
        snprintf(what, sizeof what, "events with at most %u active experts", most);
        compare(c, what, active_at_most, most, 0, 0.05);
    }
}

static void compare_sets(comparison *c)
{
    char what[64];
    for (uint32_t lag = 1; lag <= MOESIM_STATS_LAGS; lag++) {
        snprintf(what, sizeof what, "overlap over the later set, lag %u", lag);
        compare(c, what, overlap_later, lag, 0, lag == 1 ? 0.015 : 0.02);
    }
    for (uint32_t lag = 1; lag <= MOESIM_STATS_LAGS; lag++) {
        snprintf(what, sizeof what, "overlap over the earlier set, lag %u", lag);
        compare(c, what, overlap_earlier, lag, 0, lag == 1 ? 0.015 : 0.02);
    }
    compare(c, "block boundary, over the later set", boundary, 0, 0, 0.015);
    compare(c, "block boundary, over the earlier set", boundary, 1, 0, 0.015);
}

static void compare_rows(comparison *c)
{
    static const char *const class[] = { "all", "masked", "just committed", "long committed" };
    static const char *const rows[] = { "masked", "all" };
    char what[64];
    for (uint32_t k = 0; k < MOESIM_STATS_CLASSES; k++)
        for (uint32_t lag = 1; lag <= MOESIM_STATS_LAGS; lag++) {
            snprintf(what, sizeof what, "persistence, %s rows, lag %u", class[k], lag);
            compare(c, what, persistence, lag, k, 0.02);
        }
    for (uint32_t r = 0; r < 2; r++)
        for (uint32_t b = 0; b < MOESIM_STATS_BINS; b++) {
            snprintf(what, sizeof what, "mean stability, %s rows, confidence %.2f", rows[r], (b + 0.5) / MOESIM_STATS_BINS);
            compare(c, what, stability_mean, b, r, 0.02);
            snprintf(what, sizeof what, "P(stability = 1), %s rows, confidence %.2f", rows[r], (b + 0.5) / MOESIM_STATS_BINS);
            compare(c, what, stability_full, b, r, 0.02);
        }
}

uint32_t moesim_gen_compare(const moesim_trace_stats *trace, const moesim_trace_stats *generated,
                            void (*line)(void *cookie, const moesim_gen_line *line), void *cookie)
{
    comparison c = { .side = { trace, generated }, .line = line, .cookie = cookie };
    compare_active(&c);
    compare_sets(&c);
    compare_rows(&c);
    compare(&c, "tokens committed per decode pass", tokens, 0, 0, -0.03);
    return c.apart;
}
