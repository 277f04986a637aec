/* SPDX-License-Identifier: Apache-2.0
 *
 * The search over λ. The least total weight f(λ) is concave and piecewise linear: the misses chosen at one λ give a line that
 * lies on or above f everywhere. A line that rises and one that falls bracket the maximum and cross above it, so each step
 * evaluates f where they cross, which also tells how far off the best value can be.
 */
#include <math.h>
#include <stdlib.h>

#include "base/arena.h"
#include "sim/bound_uses.h"
#include "sim/cost_tables.h"

#define ENOUGH 1e-9              /* relative; the value is a bound wherever the search ends */
#define MOST_EVALUATIONS 64u

typedef struct solver {
    const moesim_bound *bound;
    const double *h2d, *cpu;     /* [M], [kinds][M] */
    uint32_t cache;
    moesim_flow *flow;
    double *weight;              /* [kinds] of one layer */
    int64_t *profit;             /* [kinds] the same as integers */
    uint64_t *missed;            /* [kinds] misses of one layer */
} solver;

/* Value and slope of a line through (lambda, value) that is nowhere below f. */
typedef struct tangent { double lambda, value, slope; } tangent;

/* Least weight of one layer: fills `missed` from weights. */
static moesim_code solve_layer(solver *s, uint32_t layer, moesim_error *err)
{
    const moesim_bound *b = s->bound;
    const moesim_line *line = &b->line[layer];
    const uint32_t *kept = NULL;
    double most = 0;
    for (uint32_t k = 0; k < b->info.kinds; k++) {
        most = fmax(most, s->weight[k]);
        s->missed[k] = b->first[(size_t)k * b->info.layers + layer];
    }
    const double scale = most > 0 ? ldexp(1.0, (int)moesim_flow_bits(line->points)) / most : 0;
    for (uint32_t k = 0; k < b->info.kinds; k++)
        s->profit[k] = most > 0 ? (int64_t)(s->weight[k] * scale) : 0;
    if (moesim_flow_select(s->flow, line, s->cache, s->profit, &kept, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < line->num_spans; i++)
        s->missed[line->span[i].kind] += line->span[i].many - kept[i];
    return MOESIM_OK;
}

/* f and one of its slopes at λ, with weights min(link·T_H2D, host·T_CPU). */
static moesim_code evaluate(solver *s, double link, double host, tangent *out, moesim_error *err)
{
    const moesim_bound_info *info = &s->bound->info;
    *out = (tangent){ .lambda = link };
    for (uint32_t layer = 0; layer < info->layers; layer++) {
        const double copy = s->h2d[layer];
        for (uint32_t k = 0; k < info->kinds; k++)
            s->weight[k] = fmin(link * copy, host * s->cpu[(size_t)k * info->layers + layer]);
        if (solve_layer(s, layer, err) != MOESIM_OK)
            return err->code;
        for (uint32_t k = 0; k < info->kinds; k++) {
            const double cpu = s->cpu[(size_t)k * info->layers + layer], n = (double)s->missed[k];
            out->value += n * s->weight[k];
            out->slope += n * (link * copy < host * cpu ? copy : -cpu);
        }
    }
    return MOESIM_OK;
}

/* Where nothing is kept: at λ = 0 all misses would be copied for nothing, at λ = 1 all computed. */
static void first_lines(const solver *s, tangent *rising, tangent *falling)
{
    const moesim_bound *b = s->bound;
    *rising = (tangent){ .lambda = 0 };
    *falling = (tangent){ .lambda = 1 };
    for (uint32_t layer = 0; layer < b->info.layers; layer++) {
        const moesim_line *line = &b->line[layer];
        for (uint32_t k = 0; k < b->info.kinds; k++)
            s->missed[k] = b->first[(size_t)k * b->info.layers + layer];
        for (uint32_t i = 0; i < line->num_spans; i++)
            s->missed[line->span[i].kind] += line->span[i].many;
        for (uint32_t k = 0; k < b->info.kinds; k++) {
            rising->slope += (double)s->missed[k] * s->h2d[layer];
            falling->slope -= (double)s->missed[k] * s->cpu[(size_t)k * b->info.layers + layer];
        }
    }
}

static moesim_code search(solver *s, moesim_offline_cost *out, moesim_error *err)
{
    tangent rising, falling, at;
    first_lines(s, &rising, &falling);
    *out = (moesim_offline_cost){ .lambda = 0.5 };
    while (rising.slope > 0 && falling.slope < 0 && out->evaluations < MOST_EVALUATIONS) {
        const double lambda = (falling.value - falling.slope * falling.lambda - rising.value + rising.slope * rising.lambda) /
            (rising.slope - falling.slope);
        out->upper = fmax(out->seconds, rising.value + rising.slope * (lambda - rising.lambda));
        if (out->upper - out->seconds <= ENOUGH * out->upper || !(lambda > rising.lambda && lambda < falling.lambda))
            break;
        if (evaluate(s, lambda, 1.0 - lambda, &at, err) != MOESIM_OK)
            return err->code;
        out->evaluations++;
        if (at.value > out->seconds) {
            out->seconds = at.value;
            out->lambda = lambda;
        }
        if (at.slope >= 0)
            rising = at;
        if (at.slope <= 0)
            falling = at;
    }
    out->upper = fmax(out->upper, out->seconds);
    return MOESIM_OK;
}

static moesim_code solve_one_path(solver *s, moesim_offline_cost *out, moesim_error *err)
{
    tangent at;
    if (evaluate(s, 1.0, 1.0, &at, err) != MOESIM_OK)
        return err->code;
    *out = (moesim_offline_cost){ .seconds = at.value, .upper = at.value, .lambda = NAN, .evaluations = 1 };
    return MOESIM_OK;
}

static moesim_code check(const moesim_bound *bound, const double *h2d_s, const double *cpu_s, uint32_t cache,
                         moesim_error *err)
{
    const moesim_bound_info *info = &bound->info;
    if (cache > info->experts)
        return moesim_fail(err, MOESIM_E_USAGE, "offline-cost: the trace has E = %u experts a layer, so %u slots are too many",
                           info->experts, cache);
    for (size_t i = 0; i < (size_t)info->layers * (info->kinds + 1); i++) {
        const double cost = i < info->layers ? h2d_s[i] : cpu_s[i - info->layers];
        if (!isfinite(cost) || cost < 0)
            return moesim_fail(err, MOESIM_E_INTERNAL, "offline-cost: a miss of layer %zu costs %g s",
                               i % info->layers, cost);
    }
    return MOESIM_OK;
}

moesim_code moesim_bound_solve(const moesim_bound *bound, const double *h2d_s, const double *cpu_s, uint32_t cache,
                               enum moesim_paths paths, moesim_offline_cost *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    solver s = { .bound = bound, .h2d = h2d_s, .cpu = cpu_s, .cache = cache };
    const size_t kinds = bound->info.kinds;
    moesim_code code = check(bound, h2d_s, cpu_s, cache, err);
    if (code == MOESIM_OK)
        code = moesim_flow_create((uint32_t)bound->info.steps, bound->most_spans, &s.flow, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(kinds, sizeof *s.weight, "offline-cost", (void **)&s.weight, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(kinds, sizeof *s.profit, "offline-cost", (void **)&s.profit, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(kinds, sizeof *s.missed, "offline-cost", (void **)&s.missed, err);
    if (code == MOESIM_OK)
        code = paths == MOESIM_PATHS_ONE ? solve_one_path(&s, out, err) : search(&s, out, err);
    moesim_flow_destroy(&s.flow);
    free(s.weight);
    free(s.profit);
    free(s.missed);
    return code;
}

/* T_CPU of every kind and layer, for each layer's own bytes. */
static void fill_cpu(const moesim_bound *bound, const moesim_costing *c, double *cpu)
{
    const moesim_bound_info *info = &bound->info;
    for (uint32_t k = 0; k < info->kinds; k++) {
        for (uint32_t layer = 0; layer < info->layers; layer++)
            cpu[(size_t)k * info->layers + layer] = c->mode == MOESIM_TIME_PAPER
                ? c->paper_tau * info->tokens[k] : moesim_cost_cpu(c, c->layer[layer], info->tokens[k]);
    }
}

moesim_code moesim_bound_offline_cost(const moesim_bound *bound, const moesim_costing *costing, uint32_t cache,
                                      enum moesim_paths paths, moesim_offline_cost *out, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    double *cpu = NULL;
    err = err != NULL ? err : &local;
    if (costing->mode == MOESIM_TIME_COUNT)
        return moesim_fail(err, MOESIM_E_USAGE, "offline-cost weighs misses by their time, and --time count has none; "
                           "give --time model or --time paper with a --profile");
    if (costing->num_layers != bound->info.layers)
        return moesim_fail(err, MOESIM_E_INTERNAL, "offline-cost: costs of %u layers for a trace of %u", costing->num_layers,
                           bound->info.layers);
    if (moesim_alloc((size_t)bound->info.kinds * bound->info.layers, sizeof *cpu, "offline-cost", (void **)&cpu,
                     err) != MOESIM_OK)
        return err->code;
    fill_cpu(bound, costing, cpu);
    moesim_code code = moesim_bound_solve(bound, costing->h2d_s, cpu, cache, paths, out, err);
    free(cpu);
    return code;
}
