/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs a trace file through policies, the way the command does.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/metrics.h"
#include "tests/support/support.h"

void test_spec(moesim_policy_spec *spec, const char *policy)
{
    moesim_error err = MOESIM_ERROR_INIT;
    memset(spec, 0, sizeof *spec);
    if (moesim_policy_spec_init(spec, policy, &err) != MOESIM_OK)
        test_die("%s", err.text);
}

/* Made-up costs, unlike from layer to layer, flat in tokens at first; NULL for a policy that reads none. */
static const moesim_costs *costs_for(const moesim_policy_spec *spec)
{
    static double h2d[1024], cpu[65];
    static const moesim_costs costs = {.size = sizeof costs, .cpu_tokens = 64, .h2d_s = h2d, .cpu_s = cpu, .cpu_step_s = 2e-5};
    for (size_t l = 0; l < 1024; l++)
        h2d[l] = 1e-4 * (1 + .25 * (double)(l % 3));
    for (size_t n = 1; n <= 64; n++)
        cpu[n] = 1.5e-4 + 3e-5 * (double)n;
    const uint32_t needs = spec->policy->needs != NULL ? spec->policy->needs(spec->options) : 0;
    return (needs & MOESIM_NEED_COSTS) != 0 ? &costs : NULL;
}

static moesim_code run_one(const char *path, const char *policy, uint32_t cache, uint64_t bytes,
                           const moesim_run_params *params, moesim_outcome *out, moesim_error *err)
{
    moesim_policy_spec spec;
    moesim_trace *trace = NULL;
    moesim_run_params defaults;
    moesim_run_params_defaults(&defaults);
    memset(out, 0, sizeof *out);
    test_spec(&spec, policy);
    moesim_code code = moesim_trace_open(path, NULL, &trace, err);
    if (code == MOESIM_OK) {
        moesim_config config = {.policy = spec.policy, .options = spec.options, .label = policy, .cache = cache,
                                .cache_bytes = bytes, .costs = costs_for(&spec)};
        code = moesim_run(trace, params != NULL ? params : &defaults, &config, 1, out, err);
        moesim_trace_close(&trace);
    }
    moesim_policy_spec_fini(&spec);
    return code;
}

moesim_code test_try_run(const char *trace, const char *policy, uint32_t cache, const moesim_run_params *params,
                         moesim_outcome *out, moesim_error *err)
{
    return run_one(trace, policy, cache, 0, params, out, err);
}

void test_run(const char *trace, const char *policy, uint32_t cache, const moesim_run_params *params, moesim_outcome *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    if (run_one(trace, policy, cache, 0, params, out, &err) != MOESIM_OK)
        test_die("%s at %u slots: %s", policy, cache, err.text);
}

void test_run_global(const char *trace, const char *policy, uint64_t bytes, const moesim_run_params *params,
                     moesim_outcome *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_run_params global;
    moesim_run_params_defaults(&global);
    if (params != NULL)
        global = *params;
    global.scope = MOESIM_SCOPE_GLOBAL;
    if (run_one(trace, policy, 0, bytes, &global, out, &err) != MOESIM_OK)
        test_die("%s in %llu bytes: %s", policy, (unsigned long long)bytes, err.text);
}

void test_run_grid(const char *path, const char *const *policies, size_t n_policies, const uint32_t *caches,
                   size_t n_caches, const moesim_run_params *params, moesim_outcome *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_run_params defaults;
    moesim_run_params_defaults(&defaults);
    moesim_policy_spec *spec = calloc(n_policies + 1, sizeof *spec);
    moesim_config *config = calloc(n_policies * n_caches + 1, sizeof *config);
    if (spec == NULL || config == NULL)
        test_die("no memory");
    for (size_t p = 0; p < n_policies; p++) {
        test_spec(&spec[p], policies[p]);
        for (size_t c = 0; c < n_caches; c++)
            config[p * n_caches + c] = (moesim_config){.policy = spec[p].policy, .options = spec[p].options,
                                                       .label = policies[p], .cache = caches[c],
                                                       .costs = costs_for(&spec[p])};
    }
    memset(out, 0, n_policies * n_caches * sizeof *out);
    moesim_trace *trace = NULL;
    if (moesim_trace_open(path, NULL, &trace, &err) != MOESIM_OK ||
        moesim_run(trace, params != NULL ? params : &defaults, config, n_policies * n_caches, out, &err) != MOESIM_OK)
        test_die("%s", err.text);
    moesim_trace_close(&trace);
    for (size_t p = 0; p < n_policies; p++)
        moesim_policy_spec_fini(&spec[p]);
    free(spec);
    free(config);
}

double test_metric(const moesim_outcome *out, const char *name)
{
    for (const moesim_metric *m = moesim_metrics; m->name != NULL; m++)
        if (strcmp(m->name, name) == 0)
            return moesim_metric_value(m, out);
    test_die("no metric is called %s", name);
}

static bool counters_equal(const moesim_outcome *a, const moesim_outcome *b)
{
    if (a->num_counters != b->num_counters)
        return false;
    for (uint32_t i = 0; i < a->num_counters; i++)
        if (strcmp(a->counter[i].name, b->counter[i].name) != 0 ||
            memcmp(&a->counter[i].value, &b->counter[i].value, sizeof(double)) != 0)
            return false;
    return true;
}

bool test_outcome_equal(const moesim_outcome *a, const moesim_outcome *b)
{
    const uint64_t x[] = {a->evictions, a->insertions, a->all_accesses, a->all_hits, a->read_bytes, a->pending, a->refused,
                          a->peak_bytes, a->overshoot_bytes, a->capacity_changes, a->oscillations};
    const uint64_t y[] = {b->evictions, b->insertions, b->all_accesses, b->all_hits, b->read_bytes, b->pending, b->refused,
                          b->peak_bytes, b->overshoot_bytes, b->capacity_changes, b->oscillations};
    size_t n = a->num_requests;
    if (memcmp(x, y, sizeof x) != 0 || n != b->num_requests || memcmp(&a->total, &b->total, sizeof a->total) != 0)
        return false;
    if (n > 0 && (memcmp(a->request_id, b->request_id, n * sizeof *a->request_id) != 0 ||
                  memcmp(a->request, b->request, n * sizeof *a->request) != 0))
        return false;
    if (a->num_layers != b->num_layers || memcmp(a->layer, b->layer, a->num_layers * sizeof *a->layer) != 0)
        return false;
    return memcmp(&a->ratio_p95, &b->ratio_p95, sizeof a->ratio_p95) == 0 && counters_equal(a, b);
}
