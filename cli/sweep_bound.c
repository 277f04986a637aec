/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim sweep --bound offline-cost`: columns of /cells with the least time per output token at the cell's capacity and
 * bandwidth, whoever decides.
 */
#include "cli/sweep.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/log.h"
#include "base/parallel.h"

/* A place: a capacity and a bandwidth of the part. */
typedef struct job {
    const moesim_sweep *sweep;
    const moesim_sweep_part *part;
    const size_t *index;
    const moesim_cell_result *result;
    size_t n, num_places;
    size_t *needed, num_needed;  /* places of cells that have a bound */
    moesim_offline_cost *cost;   /* [num_places] of those */
    moesim_bounds bounds;
} job;

/* SIZE_MAX where nothing bounds the cell: host modes reload for free, or hold everything from the start. */
static size_t place_of(const job *j, size_t i)
{
    const moesim_sweep_cell c = moesim_sweep_cell_at(j->sweep, j->part, j->index[i]);
    if (c.policy->policy->host_mode != MOESIM_HOST_NONE)
        return SIZE_MAX;
    return c.group % j->part->cache.n * j->sweep->num_bandwidths + j->index[i] % j->sweep->num_bandwidths;
}

static void find_needed(job *j)
{
    for (size_t i = 0; i < j->n; i++) {
        const size_t place = place_of(j, i);
        if (place != SIZE_MAX)
            j->needed[place] = 1;
    }
    for (size_t place = 0; place < j->num_places; place++)     /* flags become a list */
        if (j->needed[place] != 0)
            j->needed[j->num_needed++] = place;
}

static moesim_code solve_one(void *cookie, uint32_t worker, size_t i, moesim_error *err)
{
    job *j = cookie;
    const size_t place = j->needed[i], bandwidths = j->sweep->num_bandwidths;
    (void)worker;
    return moesim_bounds_solve(&j->bounds, j->sweep->bandwidth[place % bandwidths], &j->part->cache.amount[place / bandwidths],
                               1, &j->cost[place], err);
}

static moesim_code solve(job *j, moesim_error *err)
{
    const moesim_run_params params = moesim_sweep_params(j->sweep, j->part);
    moesim_progress progress = { .what = "bounds" };
    moesim_code code = moesim_bounds_open(j->part->trace->trace, &j->part->pricing, &params, &j->bounds, err);
    if (code == MOESIM_OK) {
        moesim_progress_begin(&progress, "bounds", j->num_needed, 1, "cells");
        code = moesim_parallel((uint32_t)j->sweep->options->threads, j->num_needed, solve_one, j, &progress, err);
        moesim_progress_end(&progress);
    }
    moesim_bounds_close(&j->bounds);
    return code;
}

/* What every policy takes beside copies and CPU, by token: the same whoever decides. In mode paper hits are a constant too. */
static double fixed_ms(const moesim_timing *timing, enum moesim_time_mode mode)
{
    const moesim_parts *d = &timing->total.decode;
    const double seconds = d->other_gpu + d->other_host + d->sync + d->policy + d->head;
    return 1e3 * (mode == MOESIM_TIME_PAPER ? seconds + d->hits : seconds) / timing->total.output_tokens;
}

static moesim_code add_columns(const job *j, moesim_table *t, moesim_error *err)
{
    double *cost = NULL, *tpot = NULL;
    if (moesim_table_reals(t, "offline_cost_ms", "ms", &cost, err) != MOESIM_OK ||
        moesim_table_reals(t, MOESIM_TPOT_BOUND, "ms", &tpot, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < j->n; i++) {
        const size_t place = place_of(j, i);
        if (place == SIZE_MAX)
            continue;
        cost[i] = moesim_bounds_ms(&j->cost[place], j->result[i].outcome);
        tpot[i] = fixed_ms(j->result[i].timing, j->part->pricing.mode) + cost[i];
    }
    return MOESIM_OK;
}

moesim_code moesim_sweep_bound(const moesim_sweep *s, const moesim_sweep_part *part, const size_t *index,
                               const moesim_cell_result *result, size_t n, moesim_table *cells, moesim_error *err)
{
    void *needed = NULL, *cost = NULL;
    if (s->options->modes.bound == MOESIM_NO_BOUND)
        return MOESIM_OK;
    job j = { .sweep = s, .part = part, .index = index, .result = result, .n = n };
    j.num_places = part->cache.n * s->num_bandwidths;
    moesim_code code = moesim_alloc(j.num_places, sizeof *j.needed, "places", &needed, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(j.num_places, sizeof *j.cost, "bounds", &cost, err);
    j.needed = needed;
    j.cost = cost;
    if (code == MOESIM_OK) {
        find_needed(&j);
        code = solve(&j, err);
    }
    if (code == MOESIM_OK)
        code = add_columns(&j, cells, err);
    free(needed);
    free(cost);
    return code;
}
