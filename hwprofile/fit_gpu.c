/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU. Grouped calls are timed with work queued before them, so that launching does not show; whole events show it. The
 * model prices hits as launch + table(h, n), and a moved expert as table(1, n) after its copy. So what follows a copy beyond
 * the pure computation (noticing its end, launching, adding up) belongs to the table, and the launch is what hits take
 * beyond that.
 */
#include <math.h>
#include <string.h>

#include "hwprofile/fit_parts.h"

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

/* Time of an expert after its copy, from an event of m moved ones: copies and computations overlap, and whichever is longer
 * is waited for m times. The inverse of the model, which is continuous where both are equal. */
static double after_copy(const moesim_fitting *f, const moesim_raw_point *p)
{
    const double beyond = p->median - f->profile->sync.value, m = p->key.experts;
    const double tail = beyond - m * f->copy;
    return tail <= f->copy ? tail : (beyond - f->copy) / m;
}

static double modelled_moved(const moesim_fitting *f, const moesim_raw_point *p, double each)
{
    const double m = p->key.experts;
    return f->profile->sync.value + (each <= f->copy ? m * f->copy + each : f->copy + m * each);
}

/* Events of one kind: what each takes beyond pure computation. */
static moesim_code gather_events(const moesim_fitting *f, uint32_t kind, moesim_gathered *g, const char *what,
                                 moesim_error *err)
{
    for (size_t i = 0; i < f->raw->num_points; i++) {
        const moesim_raw_point *p = &f->raw->point[i];
        if (p->key.kind != kind)
            continue;
        const double rest = kind == MOESIM_RAW_EVENT_MOVED
                                ? after_copy(f, p) - pure(f, 1.0, p->key.tokens)
                                : p->median - f->profile->sync.value - pure(f, p->key.experts, p->key.tokens);
        moesim_gather(g, p, p->median, rest);
    }
    return g->n > 0 ? MOESIM_OK : moesim_fit_lacks(f, err, "%s: no such event was measured", what);
}

/* Relative error of the whole event, given what it takes beyond computing. */
static double residual_of(const moesim_fitting *f, const moesim_gathered *g, double rest)
{
    double square = 0.0;
    for (size_t i = 0; i < g->n; i++) {
        const moesim_raw_point *p = g->point[i];
        const double model = p->key.kind == MOESIM_RAW_EVENT_MOVED
                                 ? modelled_moved(f, p, fmax(pure(f, 1.0, p->key.tokens) + rest, 0.0))
                                 : p->median - g->y[i] + rest;
        square += (model - p->median) * (model - p->median) / (p->median * p->median);
    }
    return sqrt(square / (double)g->n);
}

/* `all` goes to every entry; what is left of `moved` to those of one expert, which keep a tenth at least. Where that puts one
 * expert above a few (whose events see no such tail), or noise puts fewer tokens above more, the later entry is raised: a
 * table in which more experts cost less would make hits cheaper by missing. */
static void add_to_table(moesim_gpu_table *t, double all, double moved)
{
    for (uint32_t i = 0; i < t->num_experts; i++) {
        for (uint32_t j = 0; j < t->num_tokens; j++) {
            const double before = t->seconds[i][j];
            t->seconds[i][j] = before + all;
            if (t->experts[i] <= 1.0)
                t->seconds[i][j] = fmax(before + moved, 0.1 * before);
            if (i > 0)
                t->seconds[i][j] = fmax(t->seconds[i][j], t->seconds[i - 1][j]);
            if (j > 0)
                t->seconds[i][j] = fmax(t->seconds[i][j], t->seconds[i][j - 1]);
        }
    }
}

moesim_code moesim_fit_gpu(moesim_fitting *f, moesim_error *err)
{
    moesim_gathered grouped = { .n = 0 }, hits = { .n = 0 }, moved = { .n = 0 };
    double apart = NAN;
    moesim_code code = pure_table(f, &grouped, &apart, err);
    if (code == MOESIM_OK)
        code = gather_events(f, MOESIM_RAW_EVENT_HITS, &hits, "gpu.launch: events with hits", err);
    if (code == MOESIM_OK)
        code = gather_events(f, MOESIM_RAW_EVENT_MOVED, &moved, "gpu.table: events with copies", err);
    if (code != MOESIM_OK)
        return code;
    const double launch = fmax(moesim_gathered_median(&hits), 0.0), after = moesim_gathered_median(&moved);
    const double all = fmin(fmax(after, 0.0), launch);
    moesim_fit_set(&f->profile->gpu_launch, launch - all, hits.samples, moesim_gathered_spread(&hits),
                   residual_of(f, &hits, launch), "events with hits take %.3g us beyond computing, %.3g us of it in the table",
                   1e6 * launch, 1e6 * all);
    moesim_fit_set(&f->profile->gpu.facts, 0.0, grouped.samples, moesim_gathered_spread(&grouped),
                   residual_of(f, &moved, after), "grouped calls (sweeps differ by at most %.1f %%) and what follows a copy "
                   "in events: %.3g us", 100.0 * apart, 1e6 * after);
    add_to_table(&f->profile->gpu, all, after);
    return MOESIM_OK;
}
