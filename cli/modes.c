/* SPDX-License-Identifier: Apache-2.0
 *
 * --scope, --order, --cache and --bound, for every command that replays.
 */
#include "cli/modes.h"

#include <math.h>
#include <string.h>

const char *const moesim_scope_names[] = { "layer", "global", NULL };
const char *const moesim_order_names[] = { "atomic", "flattened", NULL };
const char *const moesim_bound_names[] = { "offline-cost", NULL };

moesim_code moesim_modes_caches(const moesim_modes *modes, const moesim_list *texts, uint32_t experts, moesim_cachelist *out,
                                moesim_error *err)
{
    const bool global = modes->scope == MOESIM_SCOPE_GLOBAL;
    const moesim_code code = moesim_cachelist_parse(texts, global, out, err);
    return code == MOESIM_OK && !global ? moesim_cachelist_check(out, experts, err) : code;
}

void moesim_modes_params(const moesim_modes *modes, moesim_run_params *out)
{
    out->scope = modes->scope == MOESIM_SCOPE_GLOBAL ? MOESIM_SCOPE_GLOBAL : MOESIM_SCOPE_LAYER;
    out->order = modes->order == MOESIM_FLATTENED ? MOESIM_FLATTENED : MOESIM_ATOMIC;
}

moesim_cell moesim_modes_cell(const moesim_modes *modes, const moesim_policy_spec *spec, uint64_t cache, double bandwidth)
{
    const bool global = modes->scope == MOESIM_SCOPE_GLOBAL;
    return (moesim_cell){ .policy = spec->policy, .options = spec->options, .label = spec->given,
                          .cache = global ? 0 : (uint32_t)cache, .cache_bytes = global ? cache : 0, .bandwidth = bandwidth };
}

double moesim_modes_ratio_p95(const moesim_modes *modes, const moesim_outcome *outcome, uint64_t cache)
{
    const bool defined = modes->scope == MOESIM_SCOPE_LAYER && cache > 0 && outcome->total.events > 0;
    return defined ? outcome->ratio_p95 : (double)NAN;
}

/* ---- --bound ----------------------------------------------------------------------------------------------------------- */

moesim_code moesim_modes_check_bound(const moesim_modes *modes, bool timed, bool merged, moesim_error *err)
{
    if (modes->bound == MOESIM_NO_BOUND)
        return MOESIM_OK;
    if (!timed)
        return moesim_fail(err, MOESIM_E_USAGE, "option --bound has no effect on counts; give --profile or --time model with "
                           "it (the bounds of counts are policies: belady, ideal)");
    if (merged)
        return moesim_fail(err, MOESIM_E_USAGE, "option --bound: with --batch a step is charged to every member, so that a "
                           "bound of all steps compares with none of the figures");
    return MOESIM_OK;
}

moesim_code moesim_bounds_open(moesim_trace *trace, const moesim_pricing *pricing, const moesim_run_params *params,
                               moesim_bounds *out, moesim_error *err)
{
    const moesim_window_params window = {
        .request_begin = params->request_begin, .request_end = params->request_end, .warmup = params->warmup, .batch = 1,
        .window_bytes = params->window_bytes,
    };
    *out = (moesim_bounds){
        .pricing = pricing, .info = moesim_trace_get_info(trace), .staging = params->staging,
        .expert_bytes = pricing->expert_bytes != NULL ? pricing->expert_bytes : moesim_trace_expert_bytes(trace),
    };
    return moesim_bound_open(trace, &window, MOESIM_BOUND_BYTES, &out->uses, err);
}

void moesim_bounds_close(moesim_bounds *b)
{
    moesim_bound_close(&b->uses);
}

moesim_code moesim_bounds_solve(const moesim_bounds *b, double bandwidth, const uint64_t *cache, size_t n,
                                moesim_offline_cost *out, moesim_error *err)
{
    const moesim_pricing *p = b->pricing;
    const moesim_costing_params params = {
        .profile = p->profile, .mode = p->mode, .bandwidth = bandwidth, .effects = p->effects, .staging = b->staging,
        .num_layers = b->info->num_layers, .max_rows = b->info->block_length, .expert_bytes = b->expert_bytes,
        .hidden_bytes = p->hidden_bytes,
    };
    /* without overlap link and CPU work one after the other */
    const bool apart = p->mode == MOESIM_TIME_MODEL && (p->effects & MOESIM_EFFECT_OVERLAP) == 0;
    moesim_costing *costing = NULL;
    moesim_code code = moesim_costing_create(&params, &costing, err);
    for (size_t i = 0; i < n && code == MOESIM_OK; i++)
        code = moesim_bound_offline_cost(b->uses, costing, (uint32_t)cache[i], apart ? MOESIM_PATHS_ONE : MOESIM_PATHS_TWO,
                                         &out[i], err);
    moesim_costing_destroy(&costing);
    return code;
}

double moesim_bounds_ms(const moesim_offline_cost *cost, const moesim_outcome *outcome)
{
    return 1e3 * cost->seconds / outcome->total.output_tokens;
}
