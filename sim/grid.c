/* SPDX-License-Identifier: Apache-2.0
 *
 * Cells to configurations and back. Cells that differ in bandwidth alone share a configuration unless its decisions read costs.
 */
#include "sim/grid.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

/* A configuration and the costings it is timed by. */
typedef struct group {
    size_t cell;                 /* the first one of it */
    uint32_t n;                  /* costings */
    const moesim_costing **costing;
} group;

typedef struct plan {
    size_t num_costings, num_groups;
    moesim_costing **costing;    /* one per distinct bandwidth */
    double *bandwidth;
    group *group;
    size_t *group_of;            /* [cells] */
    uint32_t *lane_of;           /* [cells] which of the group's costings */
    moesim_config *config;       /* [groups] */
    moesim_outcome *outcome;     /* [groups] */
} plan;

static void plan_fini(plan *p)
{
    for (size_t i = 0; i < p->num_costings; i++)
        moesim_costing_destroy(&p->costing[i]);
    for (size_t i = 0; i < p->num_groups; i++)
        free(p->group[i].costing);
    free(p->costing);
    free(p->bandwidth);
    free(p->group);
    free(p->group_of);
    free(p->lane_of);
    free(p->config);
    free(p->outcome);
}

/* ---- costings -------------------------------------------------------------------------------------------------------- */

static moesim_code add_costing(const moesim_trace_info *info, const moesim_grid *grid, const uint64_t *bytes, plan *p,
                               double bandwidth, moesim_error *err)
{
    const moesim_costing_params params = {
        .profile = grid->profile,
        .mode = grid->mode,
        .bandwidth = bandwidth,
        .effects = grid->effects,
        .staging = grid->run->staging,
        .num_layers = info->num_layers,
        .max_rows = info->block_length * (grid->run->batch > 0 ? grid->run->batch : 1u),
        .expert_bytes = bytes,
        .hidden_bytes = grid->hidden_bytes,
        .like = p->num_costings > 0 ? p->costing[0] : NULL,
    };
    if (moesim_costing_create(&params, &p->costing[p->num_costings], err) != MOESIM_OK)
        return err->code;
    p->bandwidth[p->num_costings++] = bandwidth;
    return MOESIM_OK;
}

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

static size_t find_costing(const plan *p, double bandwidth)
{
    size_t i = 0;
    while (i < p->num_costings && !same(p->bandwidth[i], bandwidth))
        i++;
    return i;
}

static moesim_code make_costings(moesim_trace *trace, const moesim_grid *grid, plan *p, moesim_error *err)
{
    const uint64_t *bytes = grid->expert_bytes != NULL ? grid->expert_bytes : moesim_trace_expert_bytes(trace);
    if (grid->mode == MOESIM_TIME_COUNT)
        return MOESIM_OK;
    for (size_t i = 0; i < grid->num_cells; i++)
        if (find_costing(p, grid->cell[i].bandwidth) == p->num_costings &&
            add_costing(moesim_trace_get_info(trace), grid, bytes, p, grid->cell[i].bandwidth, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

/* ---- groups ---------------------------------------------------------------------------------------------------------- */

static bool shares(const moesim_cell *a, const moesim_cell *b)
{
    return a->policy == b->policy && a->options == b->options && a->cache == b->cache &&
           a->cache_bytes == b->cache_bytes &&
           (same(a->bandwidth, b->bandwidth) || !moesim_config_reads_costs(a->policy, a->options));
}

static moesim_code join(const moesim_grid *grid, plan *p, size_t cell, moesim_error *err)
{
    const moesim_cell *c = &grid->cell[cell];
    size_t g = 0;
    while (g < p->num_groups && !shares(&grid->cell[p->group[g].cell], c))
        g++;
    group *into = &p->group[g];
    if (g == p->num_groups) {
        *into = (group){.cell = cell};
        if (moesim_alloc(p->num_costings, sizeof(moesim_costing *), "a grid", (void **)&into->costing, err) != MOESIM_OK)
            return err->code;
        p->num_groups++;
    }
    p->group_of[cell] = g;
    if (grid->mode == MOESIM_TIME_COUNT)
        return MOESIM_OK;
    const moesim_costing *costing = p->costing[find_costing(p, c->bandwidth)];
    for (p->lane_of[cell] = 0; p->lane_of[cell] < into->n; p->lane_of[cell]++)
        if (into->costing[p->lane_of[cell]] == costing)
            return MOESIM_OK;
    into->costing[into->n++] = costing;
    return MOESIM_OK;
}

static void configure(const moesim_grid *grid, plan *p)
{
    for (size_t g = 0; g < p->num_groups; g++) {
        const moesim_cell *c = &grid->cell[p->group[g].cell];
        p->config[g] = (moesim_config){
            .policy = c->policy, .options = c->options, .label = c->label, .cache = c->cache, .cache_bytes = c->cache_bytes,
            .costing = p->group[g].costing, .num_costings = p->group[g].n,
        };
        if (p->group[g].n > 0 && moesim_config_reads_costs(c->policy, c->options))
            p->config[g].costs = moesim_costing_view(p->group[g].costing[0]);
    }
}

static moesim_code make_plan(moesim_trace *trace, const moesim_grid *grid, plan *p, moesim_error *err)
{
    const size_t n = grid->num_cells;
    const struct { size_t each; void **out; } piece[] = {
        {sizeof *p->costing, (void **)&p->costing},   {sizeof *p->bandwidth, (void **)&p->bandwidth},
        {sizeof *p->group, (void **)&p->group},       {sizeof *p->group_of, (void **)&p->group_of},
        {sizeof *p->lane_of, (void **)&p->lane_of},   {sizeof *p->config, (void **)&p->config},
        {sizeof *p->outcome, (void **)&p->outcome},
    };
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++)
        if (moesim_alloc(n, piece[i].each, "a grid", piece[i].out, err) != MOESIM_OK)
            return err->code;
    if (make_costings(trace, grid, p, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < n; i++)
        if (join(grid, p, i, err) != MOESIM_OK)
            return err->code;
    configure(grid, p);
    return MOESIM_OK;
}

/* ---- results ----------------------------------------------------------------------------------------------------------- */

/* The first cell of a group owns the outcome, which outlives the plan. */
static moesim_code give(const moesim_grid *grid, plan *p, moesim_cell_result *result, moesim_error *err)
{
    for (size_t g = 0; g < p->num_groups; g++) {
        moesim_outcome *own = NULL;
        if (moesim_alloc(1, sizeof *own, "the result of a cell", (void **)&own, err) != MOESIM_OK) {
            for (; g < p->num_groups; g++)
                moesim_outcome_fini(&p->outcome[g]);
            return err->code;
        }
        *own = p->outcome[g];
        result[p->group[g].cell].outcome = own;
    }
    for (size_t i = 0; i < grid->num_cells; i++) {
        const size_t first = p->group[p->group_of[i]].cell;
        result[i].outcome = result[first].outcome;
        result[i].shared = i != first;
        if (grid->mode != MOESIM_TIME_COUNT)
            result[i].timing = &result[i].outcome->timing[p->lane_of[i]];
    }
    return MOESIM_OK;
}

moesim_code moesim_grid_run(moesim_trace *trace, const moesim_grid *grid, moesim_cell_result *result, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    plan p = {.num_costings = 0};
    moesim_run_params params = *grid->run;
    params.expert_bytes = grid->expert_bytes;
    params.checkpoint = grid->checkpoint;
    moesim_code code = make_plan(trace, grid, &p, err);
    if (code == MOESIM_OK)
        code = moesim_run(trace, &params, p.config, p.num_groups, p.outcome, err);
    if (code == MOESIM_OK && give(grid, &p, result, err) != MOESIM_OK) {
        moesim_cell_results_fini(result, grid->num_cells);
        code = err->code;
    }
    plan_fini(&p);
    return code;
}

void moesim_cell_results_fini(moesim_cell_result *result, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (result[i].outcome != NULL && !result[i].shared) {
            moesim_outcome_fini(result[i].outcome);
            free(result[i].outcome);
        }
    }
    memset(result, 0, n * sizeof *result);
}
