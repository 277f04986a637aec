/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run --bound offline-cost`: what copies and the CPU take at least, whoever decides, at each capacity.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/arena.h"
#include "cli/run.h"

moesim_code moesim_report_check_bound(const moesim_report *r, moesim_error *err)
{
    if (r->options->bound < 0)
        return MOESIM_OK;
    if (!moesim_report_timed(r))
        return moesim_fail(err, MOESIM_E_USAGE, "option --bound has no effect on counts; give --profile or --time model with "
                           "it (the bounds of counts are policies: belady, ideal)");
    if (r->options->batch > 1)
        return moesim_fail(err, MOESIM_E_USAGE, "option --bound: with --batch a step is charged to every member, so that a "
                           "bound of all steps compares with none of the figures");
    return MOESIM_OK;
}

static moesim_code make_costing(const moesim_report *r, moesim_costing **out, moesim_error *err)
{
    const moesim_pricing *p = &r->pricing;
    const moesim_costing_params params = {
        .profile = p->profile, .mode = p->mode, .bandwidth = r->cell[0].bandwidth, .effects = p->effects,
        .staging = (uint32_t)r->options->staging, .num_layers = r->info->num_layers, .max_rows = r->info->block_length,
        .expert_bytes = p->expert_bytes != NULL ? p->expert_bytes : moesim_trace_expert_bytes(r->trace),
        .hidden_bytes = p->hidden_bytes,
    };
    return moesim_costing_create(&params, out, err);
}

static moesim_code solve(moesim_report *r, const moesim_bound *bound, const moesim_costing *costing, moesim_error *err)
{
    /* without overlap link and CPU work one after the other */
    const bool apart = r->pricing.mode == MOESIM_TIME_MODEL && (r->pricing.effects & MOESIM_EFFECT_OVERLAP) == 0;
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < r->cache.n && code == MOESIM_OK; i++)
        code = moesim_bound_offline_cost(bound, costing, (uint32_t)r->cache.amount[i],
                                         apart ? MOESIM_PATHS_ONE : MOESIM_PATHS_TWO, &r->bound[i], err);
    return code;
}

moesim_code moesim_report_bound(moesim_report *r, moesim_error *err)
{
    const moesim_window_params params = {
        .request_begin = r->request_begin, .request_end = r->request_end, .warmup = r->options->warmup, .batch = 1,
        .window_bytes = r->options->window,
    };
    moesim_bound *bound = NULL;
    moesim_costing *costing = NULL;
    void *p = NULL;
    if (r->options->bound < 0)
        return MOESIM_OK;
    moesim_code code = moesim_alloc(r->cache.n, sizeof *r->bound, "bounds", &p, err);
    r->bound = p;
    if (code == MOESIM_OK)
        code = make_costing(r, &costing, err);
    if (code == MOESIM_OK)
        code = moesim_bound_open(r->trace, &params, MOESIM_BOUND_BYTES, &bound, err);
    if (code == MOESIM_OK)
        code = solve(r, bound, costing, err);
    moesim_bound_close(&bound);
    moesim_costing_destroy(&costing);
    return code;
}

double moesim_report_bound_ms(const moesim_report *r, size_t cache)
{
    return 1e3 * r->bound[cache].seconds / r->outcome[0].total.output_tokens;
}
