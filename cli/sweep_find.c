/* SPDX-License-Identifier: Apache-2.0
 *
 * What a grid says, from its result alone: best policies, floors, knees and break-even bandwidths.
 */
#include "cli/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/parallel.h"
#include "cli/bootstraps.h"
#include "cli/paired.h"
#include "sim/stats.h"

#define ALMOST_ALL_HITS 0.95     /* knee of a curve of counts */

/* What is read of a result. */
typedef struct view {
    size_t n;
    char **trace, **policy, **profile, **dtype;
    const int64_t *cell, *cache, *batch, *requests, *clairvoyant, *non_causal;
    const double *gbps, *measure, *hits;     /* measure: what is ranked by */
    const double *num, *den;     /* of the measure, by request */
    size_t *first;               /* [n] first row of /requests */
    size_t *begin, *end;         /* [n] rows of the part that row i is of; parts lie together */
    bool timed;
} view;

static const moesim_column_data *column(const moesim_table *t, const char *name)
{
    static const moesim_column_data none = { .name = "" };
    const moesim_column_data *c = t != NULL ? moesim_table_find(t, name) : NULL;
    return c != NULL ? c : &none;
}

static bool same_real(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a <= b && a >= b);
}

/* Equal texts of one result are one pointer. */
static bool same_part(const view *v, size_t a, size_t b)
{
    return v->batch[a] == v->batch[b] && v->trace[a] == v->trace[b] && v->profile[a] == v->profile[b] &&
           v->dtype[a] == v->dtype[b];
}

static moesim_code place_rows(view *v, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(3 * v->n, sizeof *v->first, "cells", &p, err) != MOESIM_OK)
        return err->code;
    v->first = p;
    v->begin = v->first + v->n;
    v->end = v->begin + v->n;
    for (size_t i = 0, row = 0; i < v->n; row += (size_t)v->requests[i++]) {
        v->first[i] = row;
        v->begin[i] = i > 0 && same_part(v, i - 1, i) ? v->begin[i - 1] : i;
    }
    for (size_t i = v->n; i-- > 0;)
        v->end[i] = i + 1 < v->n && same_part(v, i, i + 1) ? v->end[i + 1] : i + 1;
    return MOESIM_OK;
}

static moesim_code open_view(const moesim_result *r, view *v, moesim_error *err)
{
    const moesim_table *c = moesim_result_find(r, "cells"), *q = moesim_result_find(r, "requests");
    v->timed = c != NULL && moesim_table_find(c, "tpot_ms") != NULL;
    v->n = c != NULL ? c->rows : 0;
    v->trace = column(c, "trace")->text;
    v->policy = column(c, "policy")->text;
    v->profile = column(c, "profile")->text;
    v->dtype = column(c, "dtype")->text;
    v->cell = column(c, "cell")->integer;
    v->cache = column(c, "cache")->integer;
    v->batch = column(c, "batch")->integer;
    v->requests = column(c, "requests")->integer;
    v->clairvoyant = column(c, "clairvoyant")->integer;
    v->non_causal = column(c, "non_causal")->integer;
    v->gbps = column(c, "bandwidth_gbps")->real;
    v->measure = column(c, v->timed ? "tpot_ms" : "misses_per_pass")->real;
    v->hits = column(c, "hit_rate")->real;
    v->num = column(q, v->timed ? "decode_ms" : "misses")->real;
    v->den = column(q, v->timed ? "output_tokens" : "passes")->real;
    const void *const needed[] = { v->trace, v->policy, v->profile, v->dtype, v->cell, v->cache, v->batch, v->requests,
                                   v->clairvoyant, v->non_causal, v->gbps, v->measure, v->hits, v->num, v->den };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        if (needed[i] == NULL)
            return moesim_fail(err, MOESIM_E_INTERNAL, "a result of a sweep lacks column %zu of those that are needed", i);
    return place_rows(v, err);
}

/* Within a part. */
static bool same_place(const view *v, size_t a, size_t b)
{
    return v->cache[a] == v->cache[b] && same_real(v->gbps[a], v->gbps[b]);
}

static bool same_curve(const view *v, size_t a, size_t b)
{
    return same_real(v->gbps[a], v->gbps[b]) && v->policy[a] == v->policy[b];
}

static bool is_full(const view *v, size_t i)
{
    return strcmp(v->policy[i], "full") == 0;
}

static bool a_policy(const view *v, size_t i)
{
    return !v->clairvoyant[i] && !v->non_causal[i] && !is_full(v, i) && isfinite(v->measure[i]);
}

/* The cell of policy full in the same part at the same bandwidth, or n. */
static size_t floor_of(const view *v, size_t i)
{
    for (size_t k = v->begin[i]; k < v->end[i]; k++)
        if (is_full(v, k) && same_real(v->gbps[k], v->gbps[i]))
            return k;
    return v->n;
}

/* ---- best ------------------------------------------------------------------------------------------------------------ */

static moesim_code distinguish(const view *v, moesim_bootstrap *b, uint64_t seed, size_t x, size_t y, bool *out,
                                moesim_error *err)
{
    const double *nx = v->num + v->first[x], *dx = v->den + v->first[x], *ny = v->num + v->first[y], *dy = v->den + v->first[y];
    return moesim_paired_differ(b, nx, dx, ny, dy, (size_t)v->requests[x], seed, out, err);
}

static moesim_code find_equals(const view *v, moesim_bootstrap *b, uint64_t seed, moesim_best *best, moesim_error *err)
{
    for (size_t i = v->begin[best->row]; i < v->end[best->row]; i++) {
        bool differs = true;
        if (i == best->row || !a_policy(v, i) || !same_place(v, i, best->row))
            continue;
        if (distinguish(v, b, seed, best->row, i, &differs, err) != MOESIM_OK)
            return err->code;
        if (!differs && best->num_equal < sizeof best->equal / sizeof best->equal[0])
            best->equal[best->num_equal++] = i;
        else if (!differs)
            best->more++;
    }
    return MOESIM_OK;
}

/* The least of every place, in the order of the cells. */
static void find_least(const view *v, moesim_findings *out)
{
    for (size_t i = 0; i < v->n; i++) {
        size_t first = v->begin[i], least = i;
        if (!a_policy(v, i))
            continue;
        while (!(a_policy(v, first) && same_place(v, first, i)))
            first++;
        if (first != i)
            continue;
        for (size_t k = i + 1; k < v->end[i]; k++)
            if (a_policy(v, k) && same_place(v, k, i) && v->measure[k] < v->measure[least])
                least = k;
        out->best[out->num_best++] = (moesim_best){ .row = least };
    }
}

/* Some neighbours among the best, all with the same number of requests. */
typedef struct comparison {
    const view *view;
    moesim_best *best;
    uint64_t seed;
    moesim_bootstraps bootstraps;
} comparison;

static moesim_code compare_one(void *cookie, uint32_t worker, size_t i, moesim_error *err)
{
    const comparison *c = cookie;
    return find_equals(c->view, c->bootstraps.of[worker], c->seed, &c->best[i], err);
}

/* All traces may have different numbers of requests; the bootstraps of one number serve all neighbours that have it. */
static moesim_code find_best(const view *v, uint64_t seed, uint64_t threads, moesim_findings *out, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    find_least(v, out);
    for (size_t i = 0, n = 0; i < out->num_best && code == MOESIM_OK; i += n) {
        comparison c = { .view = v, .best = &out->best[i], .seed = seed };
        moesim_progress progress = { .always = false };
        const int64_t requests = v->requests[c.best->row];
        for (n = 1; i + n < out->num_best && v->requests[out->best[i + n].row] == requests;)
            n++;
        code = moesim_bootstraps_init((size_t)requests, seed, threads, &c.bootstraps, err);
        if (code == MOESIM_OK) {
            moesim_progress_begin(&progress, "comparisons", n, 1, "places");
            code = moesim_parallel(c.bootstraps.n, n, compare_one, &c, &progress, err);
            moesim_progress_end(&progress);
        }
        moesim_bootstraps_fini(&c.bootstraps);
    }
    return code;
}

/* ---- knees and break-even -------------------------------------------------------------------------------------------- */

static bool near(const view *v, size_t i, size_t floor)
{
    return v->timed ? floor < v->n && v->measure[i] <= MOESIM_NEAR * v->measure[floor] : v->hits[i] >= ALMOST_ALL_HITS;
}

static void find_knees(const view *v, moesim_findings *out)
{
    for (size_t i = 0; i < v->n; i++) {
        size_t first = v->begin[i], points = 0;
        while (!same_curve(v, first, i))
            first++;
        if (first != i || is_full(v, i))
            continue;
        const size_t floor = floor_of(v, i);
        moesim_knee knee = { i, -1, NAN };
        for (size_t k = i; k < v->end[i]; k++) {
            if (!same_curve(v, k, i))
                continue;
            points++;
            if (near(v, k, floor) && (knee.cache < 0 || v->cache[k] < knee.cache))
                knee = (moesim_knee){ k, v->cache[k], v->timed ? v->measure[k] : (double)NAN };
        }
        if (points > 1)
            out->knee[out->num_knees++] = knee;
    }
}

/* The smallest bandwidth from which on no larger one leaves the neighbourhood of the floor is found among neighbours. */
static moesim_break_even cross(const view *v, size_t row, const size_t *at, size_t n)
{
    size_t k = n;
    while (k > 0 && near(v, at[k - 1], floor_of(v, at[k - 1])))
        k--;
    if (k == n)
        return (moesim_break_even){ row, NAN, false };
    if (k == 0)
        return (moesim_break_even){ row, v->gbps[at[0]], true };
    const size_t a = at[k - 1], b = at[k];
    const double want = MOESIM_NEAR * v->measure[floor_of(v, b)];
    const double share = (v->measure[a] - want) / (v->measure[a] - v->measure[b]);
    return (moesim_break_even){ row, 1 / (1 / v->gbps[a] + share * (1 / v->gbps[b] - 1 / v->gbps[a])), false };
}

static int by_value(const void *x, const void *y, void *cookie)
{
    const double *gbps = cookie;
    const double a = gbps[*(const size_t *)x], b = gbps[*(const size_t *)y];
    return (a > b) - (a < b);
}

static moesim_code find_breaks(const view *v, moesim_findings *out, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(v->n, sizeof(size_t), "bandwidths", &p, err) != MOESIM_OK)
        return err->code;
    size_t *at = p;
    for (size_t i = 0; i < v->n && v->timed; i++) {
        size_t n = 0;
        if (is_full(v, i))
            continue;
        for (size_t k = v->begin[i]; k < v->end[i]; k++)
            if (v->cache[k] == v->cache[i] && v->policy[k] == v->policy[i])
                at[n++] = k;
        if (n < 2 || at[0] != i)
            continue;
        qsort_r(at, n, sizeof *at, by_value, (void *)(uintptr_t)v->gbps);
        out->even[out->num_breaks++] = cross(v, i, at, n);
    }
    free(p);
    return MOESIM_OK;
}

static void find_floors(const view *v, moesim_findings *out)
{
    for (size_t i = 0; i < v->n; i++)
        if (is_full(v, i) && floor_of(v, i) == i)
            out->floor[out->num_floors++] = i;
}

moesim_code moesim_sweep_find(const moesim_result *r, uint64_t seed, uint64_t threads, moesim_findings *out,
                              moesim_error *err)
{
    view v = { 0 };
    void *best = NULL, *knee = NULL, *even = NULL, *floor = NULL;
    memset(out, 0, sizeof *out);
    moesim_code code = open_view(r, &v, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(v.n, sizeof *out->best, "findings", &best, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(v.n, sizeof *out->knee, "findings", &knee, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(v.n, sizeof *out->even, "findings", &even, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(v.n, sizeof *out->floor, "findings", &floor, err);
    *out = (moesim_findings){ .timed = v.timed, .best = best, .knee = knee, .even = even, .floor = floor };
    if (code == MOESIM_OK)
        code = find_best(&v, seed, threads, out, err);
    if (code == MOESIM_OK) {
        find_floors(&v, out);
        find_knees(&v, out);
        code = find_breaks(&v, out, err);
    }
    free(v.first);
    return code;
}

void moesim_findings_fini(moesim_findings *f)
{
    free(f->best);
    free(f->knee);
    free(f->even);
    free(f->floor);
    memset(f, 0, sizeof *f);
}
