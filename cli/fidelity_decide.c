/* SPDX-License-Identifier: Apache-2.0
 *
 * What was executed, decided once more: the policies run on the trace again, and digests tell whether it is the same.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "cli/fidelity.h"
#include "policies/registry.h"
#include "sim/grid.h"

/* ---- decisions ------------------------------------------------------------------------------------------------------- */

static bool same_event(const moesim_works_event *e, const moesim_replay_plan *plan, uint64_t i)
{
    return e->layer == plan->layer[i] && e->pass == plan->pass[i] && e->counted == (plan->counted[i] != 0);
}

/* The raw file's own counts, which nothing else reads; where decisions differ, the digests say so. */
static bool same_counts(const moesim_works_event *e, const moesim_replay_plan *plan, uint64_t i)
{
    return e->n_hits == plan->hits[i] && e->n_moved == plan->moved[i] && e->n_cpu == plan->cpu[i];
}

static moesim_code check_works(const moesim_replay_plan *plan, const moesim_replayed *d, moesim_error *err)
{
    const moesim_works *s = &d->works;
    uint64_t i = 0;
    const bool decided = strcmp(plan->decisions, d->digest) == 0;
    while (i < s->num_events && i < plan->num_events && same_event(&s->event[i], plan, i) &&
           (!decided || same_counts(&s->event[i], plan, i)))
        i++;
    if (i < s->num_events || i < plan->num_events)
        return moesim_fail(err, MOESIM_E_FORMAT, "the raw file's events of %s at %" PRIu64 " are not those of its trace, from "
                           "event %" PRIu64 " on; it cannot be used", plan->policy, plan->cache, i);
    return MOESIM_OK;
}

/* Output tokens of the counted requests. */
static moesim_code take_tokens(moesim_fidelity_set *set, const moesim_outcome *o, moesim_error *err)
{
    void *p = NULL;
    if (set->tokens != NULL)
        return MOESIM_OK;
    if (moesim_alloc(o->num_requests, sizeof *set->tokens, "requests", &p, err) != MOESIM_OK)
        return err->code;
    set->tokens = p;
    set->num_requests = o->num_requests;
    for (uint32_t i = 0; i < o->num_requests; i++)
        set->tokens[i] = o->request[i].output_tokens;
    return MOESIM_OK;
}

/* sink NULL: the tokens alone are wanted. */
static moesim_code run_policy(moesim_fidelity_report *r, moesim_fidelity_set *set, const moesim_policy_spec *spec,
                              const moesim_replay_plan *p, const moesim_event_sink *sink, moesim_error *err)
{
    const moesim_replay_config *c = &set->file.config;
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.request_begin = c->request_begin;
    params.request_end = c->request_end;
    params.warmup = c->warmup;
    params.batch = (uint32_t)c->batch;
    params.staging = (uint32_t)c->staging;
    params.seed = c->seed;
    params.sink = sink;
    const moesim_cell cell = {.policy = spec->policy, .options = spec->options, .label = spec->given,
                              .cache = (uint32_t)p->cache, .bandwidth = p->bandwidth};
    const moesim_grid grid = {
        .run = &params, .profile = r->told, .mode = r->told != NULL ? MOESIM_TIME_MODEL : MOESIM_TIME_COUNT,
        .effects = MOESIM_EFFECT_ALL, .expert_bytes = r->expert_bytes, .hidden_bytes = 2 * c->hidden, .num_cells = 1,
        .cell = &cell,
    };
    moesim_cell_result result = {0};
    moesim_code code = moesim_grid_run(r->trace, &grid, &result, err);
    if (code == MOESIM_OK)
        code = take_tokens(set, result.outcome, err);
    moesim_cell_results_fini(&result, 1);
    return code;
}

static moesim_code decide(moesim_fidelity_report *r, moesim_fidelity_set *set, size_t plan, moesim_error *err)
{
    const moesim_replay_plan *p = &set->file.plan[plan];
    moesim_replayed *d = &set->replayed[plan];
    moesim_policy_spec spec;
    moesim_recorder *recorder = NULL;
    if (moesim_policy_spec_init(&spec, p->policy, err) != MOESIM_OK)
        return moesim_fail_prefix(err, "a policy of the raw file");
    moesim_code code = MOESIM_OK;
    if (spec.policy->host_mode == MOESIM_HOST_FULL && !p->full)
        code = moesim_fail(err, MOESIM_E_FORMAT, "the raw file says that policy %s is not full residency; it is damaged",
                           p->policy);
    if (code == MOESIM_OK)
        code = moesim_recorder_create(r->info, p->policy, &recorder, err);
    if (code == MOESIM_OK)
        code = run_policy(r, set, &spec, p, moesim_recorder_sink(recorder), err);
    if (code == MOESIM_OK)
        moesim_recorder_finish(&recorder, &d->works, d->digest);
    moesim_recorder_destroy(&recorder);
    moesim_policy_spec_fini(&spec);
    return code == MOESIM_OK ? check_works(p, d, err) : code;
}

/* Nobody knows which program wrote a log, so it is read and not made again; output tokens come with any policy. */
static moesim_code read_log(moesim_fidelity_report *r, moesim_fidelity_set *set, moesim_error *err)
{
    const moesim_replay_config *c = &set->file.config;
    const moesim_walk_params params = {
        .request_begin = c->request_begin, .request_end = c->request_end, .warmup = c->warmup, .batch = (uint32_t)c->batch,
        .max_rows = MOESIM_WALK_ROWS, .window_bytes = (size_t)32 << 20,
    };
    moesim_replayed *d = &set->replayed[0];
    moesim_declog_reader *log = NULL;
    moesim_walk *walk = NULL;
    moesim_policy_spec spec = {0};
    moesim_code code = moesim_declog_open(r->words->decisions, &log, err);
    if (code == MOESIM_OK)
        code = moesim_walk_open(r->trace, log, &params, &walk, err);
    if (code == MOESIM_OK)
        code = moesim_works_read(walk, r->info->num_layers, &d->works, err);
    if (code == MOESIM_OK)
        snprintf(d->digest, sizeof d->digest, "%s", moesim_declog_get_info(log)->digest);
    moesim_walk_close(&walk);
    moesim_declog_close(&log);
    if (code == MOESIM_OK)
        code = check_works(&set->file.plan[0], d, err);
    if (code == MOESIM_OK)
        code = moesim_policy_spec_init(&spec, "full", err);
    if (code == MOESIM_OK)
        code = run_policy(r, set, &spec, &set->file.plan[0], NULL, err);
    moesim_policy_spec_fini(&spec);
    return code;
}

moesim_code moesim_fidelity_decide(moesim_fidelity_report *r, moesim_fidelity_set *set, moesim_error *err)
{
    void *p = NULL;
    moesim_code code = moesim_alloc(set->file.num_plans, sizeof *set->replayed, "decisions", &p, err);
    set->replayed = p;
    if (code == MOESIM_OK && r->words->decisions != NULL && set == &r->main) {
        if (set->file.num_plans != 1)
            return moesim_fail(err, MOESIM_E_USAGE, "option --decisions: the raw file holds %zu policies and capacities, a log "
                               "one", set->file.num_plans);
        return read_log(r, set, err);
    }
    for (size_t i = 0; code == MOESIM_OK && i < set->file.num_plans; i++)
        code = decide(r, set, i, err);
    return code;
}
