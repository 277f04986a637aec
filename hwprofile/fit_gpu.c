/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU. Grouped calls are timed with work queued before them, so that launching does not show; whole events show it. What
 * hits take beyond the table is the launch. What follows a copy beyond the table (its end noticed, launching, adding up) is a
 * latency of each moved expert, which the one that is computed before it hides: the arrival. What one moved expert more adds
 * to an event beyond the longer of its copy and its computation is what they take from each other.
 */
#include <math.h>
#include <string.h>

#include "hwprofile/fit_parts.h"

#define NOISE 0.03               /* a slope that is so much steeper shows something */

static bool axis_add(double *axis, uint32_t *n, double value)
{
    uint32_t i = 0, k;
    while (i < *n && axis[i] < value)
        i++;
    if (i < *n && axis[i] == value)
        return true;
    if (*n >= MOESIM_TABLE_MAX)
        return false;
    for (k = *n; k > i; k--)
        axis[k] = axis[k - 1];
    axis[i] = value;
    ++*n;
    return true;
}

/* The grid of what was measured; every number of experts with every number of tokens. */
static moesim_code pure_table(moesim_fitting *f, moesim_gathered *g, double *apart, moesim_error *err)
{
    moesim_gpu_table *t = &f->profile->gpu;
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind != MOESIM_RAW_GROUPED)
            continue;
        if (!axis_add(t->experts, &t->num_experts, p->key.experts) || !axis_add(t->tokens, &t->num_tokens, p->key.tokens))
            return moesim_fit_lacks(f, err, "gpu.table: more than %u numbers of experts or tokens", MOESIM_TABLE_MAX);
        moesim_gather(g, p, p->key.experts, p->median);
    }
    if (t->num_experts < 2 || t->num_tokens < 2)
        return moesim_fit_lacks(f, err, "gpu.table: %u numbers of experts and %u of tokens, 2 of each are needed",
                                t->num_experts, t->num_tokens);
    for (uint32_t i = 0; i < t->num_experts; i++) {
        for (uint32_t j = 0; j < t->num_tokens; j++) {
            const moesim_raw_key key = { .kind = MOESIM_RAW_GROUPED, .experts = (uint32_t)t->experts[i],
                                         .tokens = (uint32_t)t->tokens[j] };
            if (!moesim_raw_median(f->raw, &key, &t->seconds[i][j]))
                return moesim_fit_lacks(f, err, "gpu.table: %u experts with %u tokens were not measured", key.experts,
                                        key.tokens);
        }
    }
    t->expert_bytes = (double)f->raw->expert_bytes;
    *apart = moesim_raw_compare(f->raw, MOESIM_RAW_GROUPED).worst;
    return MOESIM_OK;
}

static double pure(const moesim_fitting *f, double experts, double tokens)
{
    return moesim_profile_gpu_s(f->profile, experts, tokens, (double)f->raw->expert_bytes);
}

/* An event of m moved experts as long as each is computed the moment its copy ends: copies and computations overlap, and
 * whichever is longer is waited for m times. What an arrival takes is added once. Copies but the first one are slower beside
 * computations as these are beside copies: otherwise what they lose would seem to be arrivals. */
static double without_arrival(const moesim_fitting *f, const moesim_raw_point *p)
{
    const double m = p->key.experts, moved = f->profile->gpu_moved.value, each = pure(f, 1.0, p->key.tokens) + moved;
    return f->profile->sync.value + f->copy + fmax((m - 1.0) * (f->copy + moved) + each, m * each);
}

/* What each moved expert adds to an event beyond the longer of one copy and one computation: all events are made ones of the
 * number of tokens for which that is least. */
static double beyond_the_longer(const moesim_fitting *f, moesim_gathered *g, moesim_line *line)
{
    double least = INFINITY;
    for (size_t i = 0; i < f->raw->num_points; i++)
        if (f->raw->point[i].key.kind == MOESIM_RAW_EVENT_MOVED)
            least = fmin(least, fmax(f->copy, pure(f, 1.0, f->raw->point[i].key.tokens)));
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind == MOESIM_RAW_EVENT_MOVED)
            moesim_gather(g, p, p->key.experts,
                          p->median - p->key.experts * (fmax(f->copy, pure(f, 1.0, p->key.tokens)) - least));
    }
    if (!moesim_fit_slope(g, line))
        return NAN;
    return line->b > (1.0 + NOISE) * least ? line->b - least : 0.0;
}

/* Events show by how much the longer of link and GPU is slowed, and the other one is taken to be slowed by as much: neither
 * shows alone. Only what the GPU loses is a constant. What the link loses decides where it is the slower one; `--copies events`
 * puts it into the link, and nothing is left here. */
static void fit_moved(moesim_fitting *f)
{
    moesim_gathered g = { .n = 0 };
    moesim_line line = { .residual = 0.0 };
    const double moved = beyond_the_longer(f, &g, &line);
    if (isnan(moved))
        moesim_fit_set(&f->profile->gpu_moved, 0.0, 0, NAN, NAN, "events with copies tell no slope");
    else
        moesim_fit_set(&f->profile->gpu_moved, moved, g.samples, moesim_gathered_spread(&g), line.residual,
                       "what one more copy adds to an event beyond itself and its computation%s",
                       moved > 0.0 ? "" : ": nothing that shows");
}

/* Events of one kind: what each takes beyond its known parts. */
static moesim_code gather_events(const moesim_fitting *f, uint32_t kind, moesim_gathered *g, const char *what,
                                 moesim_error *err)
{
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind != kind)
            continue;
        const double known = kind == MOESIM_RAW_EVENT_MOVED
                                 ? without_arrival(f, p)
                                 : f->profile->sync.value + pure(f, p->key.experts, p->key.tokens);
        moesim_gather(g, p, p->median, p->median - known);
    }
    return g->n > 0 ? MOESIM_OK : moesim_fit_lacks(f, err, "%s: no such event was measured", what);
}

/* Relative error of the whole event, given what it takes beyond its known parts. */
static double residual_of(const moesim_gathered *g, double rest)
{
    double square = 0.0;
    for (size_t i = 0; i < g->n; i++)
        square += (g->y[i] - rest) * (g->y[i] - rest) / (g->x[i] * g->x[i]);
    return sqrt(square / (double)g->n);
}

/* Where noise puts fewer experts or tokens above more, the later entry is raised: a table in which more experts cost less
 * would make hits cheaper by missing. */
static void raise_table(moesim_gpu_table *t)
{
    for (uint32_t i = 0; i < t->num_experts; i++) {
        for (uint32_t j = 0; j < t->num_tokens; j++) {
            if (i > 0)
                t->seconds[i][j] = fmax(t->seconds[i][j], t->seconds[i - 1][j]);
            if (j > 0)
                t->seconds[i][j] = fmax(t->seconds[i][j], t->seconds[i][j - 1]);
        }
    }
}

static const char *none_if(double rest)
{
    return rest < 0.0 ? ": less than their parts, so 0" : "";
}

moesim_code moesim_fit_gpu(moesim_fitting *f, moesim_error *err)
{
    moesim_gathered grouped = { .n = 0 }, hits = { .n = 0 }, moved = { .n = 0 };
    double apart = NAN;
    moesim_code code = pure_table(f, &grouped, &apart, err);
    if (code == MOESIM_OK) {
        raise_table(&f->profile->gpu);
        fit_moved(f);
    }
    if (code == MOESIM_OK)
        code = gather_events(f, MOESIM_RAW_EVENT_HITS, &hits, "gpu.launch: events with hits", err);
    if (code == MOESIM_OK)
        code = gather_events(f, MOESIM_RAW_EVENT_MOVED, &moved, "gpu.arrival: events with copies", err);
    if (code != MOESIM_OK)
        return code;
    const double launch = fmax(moesim_gathered_median(&hits), 0.0), arrival = fmax(moesim_gathered_median(&moved), 0.0);
    moesim_fit_set(&f->profile->gpu_launch, launch, hits.samples, moesim_gathered_spread(&hits), residual_of(&hits, launch),
                   "what events with hits take beyond sync and computing%s", none_if(moesim_gathered_median(&hits)));
    moesim_fit_set(&f->profile->gpu_arrival, arrival, moved.samples, moesim_gathered_spread(&moved),
                   residual_of(&moved, arrival), "what events with copies take beyond sync, copies and computing%s",
                   none_if(moesim_gathered_median(&moved)));
    moesim_fit_set(&f->profile->gpu.facts, 0.0, grouped.samples, moesim_gathered_spread(&grouped), 0.5 * apart,
                   "grouped calls; the sweeps differ by at most %.1f %%", 100.0 * apart);
    return MOESIM_OK;
}
