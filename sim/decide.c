/* SPDX-License-Identifier: Apache-2.0
 *
 * A grid of one cell with a decision log.
 */
#include "sim/decide.h"

#include <stdio.h>
#include <string.h>

bool moesim_decide_reads_costs(const moesim_cell *cell)
{
    return moesim_config_reads_costs(cell->policy, cell->options);
}

static moesim_code check(const moesim_decide *d, moesim_error *err)
{
    if ((d->cell.policy->traits & MOESIM_PREFETCHES) != 0)
        return moesim_fail(err, MOESIM_E_USAGE, "policy %s prefetches (trait prefetches): what has landed when an event is "
                           "gated depends on time, so its decisions cannot be replayed; choose a policy without that trait",
                           d->given);
    if (moesim_decide_reads_costs(&d->cell) && d->profile == NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "policy %s divides misses by what they cost; give --profile", d->given);
    return MOESIM_OK;
}

static moesim_code create(moesim_trace *trace, const moesim_decide *d, const char *path, moesim_declog **log, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    char config[256];
    (void)snprintf(config, sizeof config, "{\"requests\": [%llu, %llu], \"warmup\": %llu, \"batch\": %u, \"staging\": %u}",
                   (unsigned long long)d->run.request_begin, (unsigned long long)d->run.request_end,
                   (unsigned long long)d->run.warmup, d->run.batch, d->run.staging);
    const moesim_declog_header header = {
        .trace_digest = info->digest, .model_id = info->model_id, .policy = d->given, .options = d->effective, .config = config,
        .num_layers = info->num_layers, .num_experts = info->num_experts, .cache = d->cell.cache, .seed = d->run.seed,
    };
    return moesim_declog_create(path, &header, log, err);
}

moesim_code moesim_decide_log(moesim_trace *trace, const moesim_decide *d, const char *path, char digest[MOESIM_DIGEST_CHARS],
                              moesim_error *err)
{
    moesim_declog *log = NULL;
    moesim_cell_result result = {.outcome = NULL};
    moesim_run_params run = d->run;
    moesim_cell cell = d->cell;
    if (check(d, err) != MOESIM_OK || (path != NULL && create(trace, d, path, &log, err) != MOESIM_OK))
        return err->code;
    const bool costs = moesim_decide_reads_costs(&cell);
    cell.bandwidth = costs ? cell.bandwidth : 0;
    run.declog = log;
    run.progress = NULL;
    run.checkpoint = NULL;
    const moesim_grid grid = {
        .run = &run, .profile = costs ? d->profile : NULL, .mode = costs ? MOESIM_TIME_MODEL : MOESIM_TIME_COUNT,
        .effects = MOESIM_EFFECT_ALL, .expert_bytes = d->expert_bytes, .hidden_bytes = d->hidden_bytes, .num_cells = 1,
        .cell = &cell,
    };
    moesim_code code = moesim_grid_run(trace, &grid, &result, err);
    moesim_cell_results_fini(&result, 1);
    if (digest != NULL)
        digest[0] = '\0';
    if (code == MOESIM_OK && log != NULL)
        return moesim_declog_finish(&log, digest, err);
    moesim_declog_discard(&log);
    return code;
}
