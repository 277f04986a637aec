/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid of `moesim run`: policies × capacities, every word checked against the trace before anything runs.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/options.h"
#include "base/output.h"
#include "cli/outputs.h"
#include "cli/run.h"

#define OUTCOME_BYTES ((size_t)1 << 30)     /* most memory for per-request sums */

static moesim_code add_policy(void *cookie, const char *name, moesim_error *err)
{
    moesim_report *r = cookie;
    return moesim_policy_spec_add(r->policy, &r->num_policies, MOESIM_MAX_POLICIES, "policy", name, err);
}

/* Index of the policy of that name, whatever its options, or num_policies. */
static size_t find_policy(const moesim_report *r, const char *name)
{
    for (size_t i = 0; i < r->num_policies; i++)
        if (strcmp(r->policy[i].policy->name, name) == 0)
            return i;
    return r->num_policies;
}

static moesim_code find_baseline(moesim_report *r, moesim_error *err)
{
    const char *name = r->options->baseline, *given[MOESIM_MAX_POLICIES + 1];
    r->baseline = SIZE_MAX;
    if (name == NULL)
        return MOESIM_OK;
    for (size_t i = 0; i < r->num_policies; i++) {
        given[i] = r->policy[i].given;
        if (strcmp(given[i], name) == 0)
            r->baseline = i;
    }
    given[r->num_policies] = NULL;
    if (r->baseline == SIZE_MAX) {
        const char *nearest = moesim_nearest(name, given);
        return moesim_fail(err, MOESIM_E_USAGE, "option --baseline: '%s' is none of the policies of this run%s%s%s", name,
                           nearest != NULL ? "; did you mean '" : ", write it as its --policy is written",
                           nearest != NULL ? nearest : "", nearest != NULL ? "'?" : "");
    }
    if (r->num_policies == 1)
        return moesim_fail(err, MOESIM_E_USAGE, "option --baseline: '%s' is the only policy; give another to compare", name);
    return MOESIM_OK;
}

static moesim_code add_policies(moesim_report *r, moesim_error *err)
{
    const moesim_list *texts = &r->options->policy;
    void *p = NULL;
    if (texts->n == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "no policy: give --policy, for example --policy lru,oled,belady; "
                           "'moesim policies' lists them");
    if (moesim_alloc(MOESIM_MAX_POLICIES, sizeof *r->policy, "policies", &p, err) != MOESIM_OK)
        return err->code;
    r->policy = p;
    for (size_t i = 0; i < texts->n; i++)
        if (moesim_policy_split(texts->item[i], add_policy, r, err) != MOESIM_OK)
            return err->code;
    if (find_baseline(r, err) != MOESIM_OK)
        return err->code;
    r->num_shown = r->num_policies;
    static const char *const needed[] = { "belady", "belady-forced" };
    for (size_t i = 0; r->options->gap && i < 2; i++)
        if (find_policy(r, needed[i]) == r->num_policies && add_policy(r, needed[i], err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

static moesim_code check_requests(moesim_report *r, moesim_error *err)
{
    const moesim_range *range = &r->options->requests;
    const uint32_t have = r->info->num_requests;
    r->request_begin = range->given ? range->begin : 0;
    r->request_end = range->given && range->end != UINT64_MAX ? range->end : have;
    if (range->given && (r->request_begin >= have || r->request_end > have))
        return moesim_fail(err, MOESIM_E_USAGE, "option --requests: the trace has %" PRIu32 " requests, 0:%" PRIu32, have,
                           have);
    const uint64_t n = r->request_end - r->request_begin;
    if (r->options->warmup > 0 && r->options->warmup >= n)
        return moesim_fail(err, MOESIM_E_USAGE, "option --warmup: %" PRIu64 " of %" PRIu64 " requests leave none to count",
                           r->options->warmup, n);
    return MOESIM_OK;
}

static moesim_code check_files(const moesim_report *r, moesim_error *err)
{
    const moesim_run_options *o = r->options;
    const moesim_named_file input = { "the trace", o->path };
    const moesim_named_file output[] = { { "option --csv", o->csv }, { "option --decisions", o->decisions } };
    moesim_code code = moesim_check_outputs(&input, 1, output, 2, err);
    if (code == MOESIM_OK)
        code = moesim_check_sources(&o->pricing.profile, 1, r->policy, r->num_policies, output, 2, err);
    return code == MOESIM_OK && o->csv != NULL ? moesim_output_try(o->csv, err) : code;
}

static moesim_code check_together(const moesim_report *r, moesim_error *err)
{
    const moesim_run_options *o = r->options;
    if (o->decisions != NULL && (r->num_policies != 1 || r->cache.n != 1))
        return moesim_fail(err, MOESIM_E_USAGE, "option --decisions needs exactly one policy and one capacity; this run has "
                           "%zu and %zu%s", r->num_policies, r->cache.n,
                           r->num_policies > r->num_shown ? " (--gap adds its own)" : "");
    if (o->gap && o->modes.scope == MOESIM_SCOPE_GLOBAL)
        return moesim_fail(err, MOESIM_E_USAGE, "option --gap: scope global admits every miss, there is nothing to split");
    if (o->check_observed && !r->info->has_residency)
        return moesim_fail(err, MOESIM_E_USAGE, "option --check-observed: %s records no /observed/residency", o->path);
    return MOESIM_OK;
}

/* Before anything runs, and with the remedy of this command. */
static moesim_code check_costs(const moesim_report *r, moesim_error *err)
{
    for (size_t i = 0; !moesim_report_timed(r) && i < r->num_policies; i++)
        if (moesim_pricing_missing(&r->policy[i]))
            return moesim_fail(err, MOESIM_E_USAGE, MOESIM_PRICING_MISSING, r->policy[i].given);
    return MOESIM_OK;
}

static moesim_code lay_out(moesim_report *r, moesim_error *err)
{
    const uint64_t requests = r->request_end - r->request_begin;
    r->num_cells = r->num_policies * r->cache.n;
    if (requests > OUTCOME_BYTES / sizeof(moesim_sums) / r->num_cells)
        return moesim_fail(err, MOESIM_E_LIMIT, "%zu configurations of %" PRIu64 " requests need more than %zu MiB for their "
                           "sums; split --cache or choose fewer --requests", r->num_cells, requests, OUTCOME_BYTES >> 20);
    void *cell = NULL, *outcome = NULL;
    double bandwidth = 0;
    moesim_code code = moesim_alloc(r->num_cells, sizeof *r->cell, "configurations", &cell, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(r->num_cells, sizeof *r->outcome, "outcomes", &outcome, err);
    r->cell = cell;
    r->outcome = outcome;
    if (code == MOESIM_OK && r->options->bandwidth != NULL)
        code = moesim_profile_parse_bandwidth(r->options->bandwidth, "option --bandwidth", &bandwidth, err);
    for (size_t i = 0; code == MOESIM_OK && i < r->num_cells; i++)
        r->cell[i] = moesim_modes_cell(&r->options->modes, moesim_report_policy(r, i), moesim_report_cache(r, i), bandwidth);
    return code;
}

moesim_code moesim_report_plan(moesim_report *r, moesim_error *err)
{
    if (add_policies(r, err) != MOESIM_OK ||
        moesim_modes_caches(&r->options->modes, &r->options->cache, r->info->num_experts, &r->cache, err) != MOESIM_OK ||
        check_together(r, err) != MOESIM_OK || check_requests(r, err) != MOESIM_OK || check_files(r, err) != MOESIM_OK ||
        moesim_pricing_load(&r->options->pricing, r->info, &r->pricing, err) != MOESIM_OK || check_costs(r, err) != MOESIM_OK ||
        moesim_modes_check_bound(&r->options->modes, moesim_report_timed(r), r->options->batch > 1, err) != MOESIM_OK)
        return err->code;
    return lay_out(r, err);
}

void moesim_report_fini(moesim_report *r)
{
    for (size_t i = 0; r->outcome != NULL && i < r->num_cells; i++)
        moesim_outcome_fini(&r->outcome[i]);
    for (size_t i = 0; i < r->num_policies; i++)
        moesim_policy_spec_fini(&r->policy[i]);
    moesim_cachelist_fini(&r->cache);
    free(r->policy);
    moesim_pricing_fini(&r->pricing);
    free(r->cell);
    free(r->outcome);
    free(r->value);
    free(r->interval);
    free(r->pair);
    free(r->gap);
    free(r->bound);
    moesim_trace_close(&r->trace);
    memset(r, 0, sizeof *r);
}
