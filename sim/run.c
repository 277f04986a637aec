/* SPDX-License-Identifier: Apache-2.0
 *
 * A run: one pass over the trace serves all configurations. Windows come one after the other; the configurations are spread
 * over threads within each window (queue by index, barrier at its end), so nothing depends on the number of threads.
 */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "sim/checkpoint.h"
#include "sim/instance.h"
#include "sim/team.h"
#include "sim/timing.h"

/* ---- what the policies need and the trace has -------------------------------------------------------------------- */

typedef struct need { uint32_t bits; bool present; const char *what; } need;

static moesim_code check_need(const moesim_config *config, const need *row, const char *path, moesim_error *err)
{
    const uint32_t needs = config->policy->needs != NULL ? config->policy->needs(config->options) : 0;
    if ((needs & row->bits) == 0 || row->present)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_USAGE, "%s: policy %s needs %s", path,
                       config->label != NULL ? config->label : config->policy->name, row->what);
}

static moesim_code check_needs(const moesim_trace_info *info, const moesim_config *config, size_t n, moesim_error *err)
{
    need list[] = {
        {MOESIM_NEED_GATE | MOESIM_NEED_MASS | MOESIM_NEED_WEIGHTED | MOESIM_NEED_HINDSIGHT, info->has_gate,
         "/routing/gate, which this trace does not have; record gate scores, or choose a policy that reads sets alone"},
        {MOESIM_NEED_CONFIDENCE | MOESIM_NEED_WEIGHTED | MOESIM_NEED_HINDSIGHT, info->has_confidence_values,
         "/token/confidence, which this trace does not have (or its confidence_kind is \"none\"); record confidences, or use "
         "confidence=none where the policy has that option"},
        {MOESIM_NEED_PROB, info->has_prob,
         "/routing/router_prob, which this trace does not have; record router probabilities, or choose another policy"},
        {MOESIM_NEED_COSTS, false,
         "a cost profile, which a run that counts does not have; give --time model, or choose another policy"},
        {MOESIM_NEED_PRIOR, false, "the totals of another trace, which this run was not given; choose another policy"},
    };
    for (size_t c = 0; c < n; c++)
        for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
            if (list[i].bits == MOESIM_NEED_COSTS)
                list[i].present = config[c].costs != NULL;
            if (check_need(&config[c], &list[i], info->path, err) != MOESIM_OK)
                return err->code;
        }
    return MOESIM_OK;
}

bool moesim_config_reads_costs(const moesim_policy *policy, const void *options)
{
    const uint32_t needs = policy->needs != NULL ? policy->needs(options) : 0;
    return (needs & MOESIM_NEED_COSTS) != 0 || (policy->traits & MOESIM_PREFETCHES) != 0 ||
           (policy->host_mode != MOESIM_HOST_NONE && policy->dispatch != NULL);
}

static moesim_code check_costings(const moesim_config *config, size_t n, moesim_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (config[i].num_costings > 1 && moesim_config_reads_costs(config[i].policy, config[i].options))
            return moesim_fail(err, MOESIM_E_INTERNAL, "policy %s decides by costs and was given %u at once",
                               config[i].policy->name, config[i].num_costings);
    return MOESIM_OK;
}

static moesim_code check_params(const moesim_trace_info *info, const moesim_run_params *params, size_t n, moesim_error *err)
{
    if (params->check_observed && !info->has_residency)
        return moesim_fail(err, MOESIM_E_USAGE,
                           "%s: --check-observed needs /observed/residency, which this trace does not have", info->path);
    if ((params->declog != NULL || params->sink != NULL) && n != 1)
        return moesim_fail(err, MOESIM_E_USAGE,
                           "a decision log holds one configuration; give one policy and one capacity instead of %zu", n);
    if (params->threads == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "--threads must be at least 1");
    return MOESIM_OK;
}

/* One table of class weights serves a run. */
static moesim_code find_weights(const moesim_config *config, size_t n, const double **out, moesim_error *err)
{
    const moesim_config *owner = NULL;
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        const moesim_policy *p = config[i].policy;
        const uint32_t needs = p->needs != NULL ? p->needs(config[i].options) : 0;
        if ((needs & MOESIM_NEED_CLASS) == 0 || p->class_weight == NULL || p->class_weight == *out)
            continue;
        if (*out != NULL && memcmp(*out, p->class_weight, 24 * sizeof **out) != 0)
            return moesim_fail(err, MOESIM_E_USAGE,
                               "policies %s and %s weigh row classes by different tables; run them one after the other",
                               owner->policy->name, p->name);
        owner = &config[i];
        *out = p->class_weight;
    }
    return MOESIM_OK;
}

static moesim_code open_source(moesim_trace *trace, const moesim_run_params *params, const moesim_config *config, size_t n,
                               moesim_source **out, moesim_error *err)
{
    moesim_window_params w = {
        .touch = params->scope == MOESIM_SCOPE_GLOBAL,
        .sequence = params->order == MOESIM_FLATTENED,
        .residency = params->check_observed,
        .needs = (params->check_observed || params->sink != NULL ? MOESIM_NEED_ROWS : 0u) |
                 (params->sink != NULL ? MOESIM_NEED_COUNTS : 0u),
        .request_begin = params->request_begin,
        .request_end = params->request_end,
        .warmup = params->warmup,
        .batch = params->batch,
        .window_bytes = params->window_bytes,
    };
    if (find_weights(config, n, &w.class_weight, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < n; i++) {
        const moesim_policy *p = config[i].policy;
        w.needs |= p->needs != NULL ? p->needs(config[i].options) : 0;
        w.needs |= config[i].num_costings > 0 ? MOESIM_NEED_COUNTS : 0u;
        w.needs |= config[i].costs != NULL ? MOESIM_NEED_COUNTS : 0u;
        w.clairvoyant |= (p->traits & MOESIM_CLAIRVOYANT) != 0 && p->host_mode == MOESIM_HOST_NONE;
        w.clairvoyant |= p->host_mode == MOESIM_HOST_BELADY_POOLED;
    }
    return moesim_source_open(trace, &w, out, err);
}

/* ---- the run --------------------------------------------------------------------------------------------------------- */

static moesim_code make_instances(moesim_team *t, moesim_trace *trace, const moesim_run_params *params,
                                  const moesim_config *config, const moesim_source_info *planned, moesim_error *err)
{
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    const moesim_shape shape = {
        .size = sizeof shape,
        .num_layers = info->num_layers,
        .num_experts = info->num_experts,
        .top_k = info->top_k,
        .block_length = info->block_length,
        .words = (info->num_experts + 63u) / 64u,
        .max_rows = planned->max_decode_rows,
        .expert_bytes = params->expert_bytes != NULL ? params->expert_bytes : moesim_trace_expert_bytes(trace),
    };
    const uint64_t counted = planned->num_requests > params->warmup ? planned->num_requests - params->warmup : 0;
    for (size_t i = 0; i < t->n; i++) {
        if (moesim_instance_create(&shape, params, &config[i], &t->instance[i], err) != MOESIM_OK)
            return err->code;
        t->instance[i]->trace = trace;
        if (moesim_account_reserve(&t->instance[i]->account, counted, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

/* At the end of a window: when it is time, everything is written down. */
static moesim_code keep(moesim_team *t, const moesim_checkpoint *c, uint64_t windows, double *last, moesim_error *err)
{
    if (c->stop_after > 0 && windows >= c->stop_after)
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "stopped after %llu windows", (unsigned long long)windows);
    if (c->every_s > 0 && moesim_clock_seconds() - *last < c->every_s)
        return MOESIM_OK;
    const moesim_code code = moesim_checkpoint_write(c, t->instance, t->n, windows, err);
    *last = moesim_clock_seconds();
    return code;
}

static moesim_code run_windows(moesim_team *t, moesim_source *source, const moesim_run_params *params, moesim_error *err)
{
    const moesim_checkpoint *checkpoint = params->checkpoint;
    const moesim_window *window = NULL;
    uint64_t steps = 0, windows = 0, finished = 0;
    double last = moesim_clock_seconds();
    moesim_code code = checkpoint != NULL ? moesim_checkpoint_read(checkpoint, t->instance, t->n, &finished, err) : MOESIM_OK;
    while (code == MOESIM_OK) {
        code = moesim_interrupted() ? moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted")
                                    : moesim_source_next(source, &window, err);
        if (code != MOESIM_OK || window == NULL)
            break;
        windows++;
        if (windows > finished)
            code = moesim_team_window(t, window, err);
        steps += window->num_steps;
        if (params->progress != NULL)
            moesim_progress_update(params->progress, steps);
        if (code == MOESIM_OK && checkpoint != NULL && windows > finished)
            code = keep(t, checkpoint, windows, &last, err);
    }
    return code;
}

static void total_times(const moesim_outcome *out, moesim_timing *timing)
{
    for (uint32_t i = 0; i < out->num_requests; i++) {
        timing->request[i].output_tokens = out->request[i].output_tokens;
        timing->request[i].requests = 1;
        moesim_time_sums_add(&timing->total, &timing->request[i]);
    }
}

/* Output tokens as recorded, where they are; the row of the first disagreement, by its number in the trace. */
static moesim_code complete(moesim_instance *in, moesim_trace *trace, moesim_outcome *out, moesim_error *err)
{
    double tokens = 0;
    if (moesim_instance_finish(in, out, err) != MOESIM_OK)
        return err->code;
    for (uint32_t i = 0; i < out->num_requests; i++) {
        const moesim_trace_request *request = moesim_trace_get_request(trace, out->request_id[i]);
        if (request->output_tokens_known)
            out->request[i].output_tokens = request->output_tokens;
        tokens += out->request[i].output_tokens;
    }
    out->total.output_tokens = tokens;
    for (uint32_t t = 0; t < out->num_timings; t++)
        total_times(out, &out->timing[t]);
    if (out->observed_wrong == 0)
        return MOESIM_OK;
    moesim_pass pass;
    if (moesim_trace_pass(trace, in->wrong_pass, &pass, err) != MOESIM_OK)
        return err->code;
    out->observed_first_wrong += pass.row_begin * in->shape.num_layers * in->shape.top_k;
    return MOESIM_OK;
}

static moesim_code run_all(moesim_team *t, moesim_trace *trace, moesim_source *source, const moesim_run_params *params,
                           const moesim_config *config, moesim_error *err)
{
    const moesim_source_info *planned = moesim_source_get_info(source);
    if (make_instances(t, trace, params, config, planned, err) != MOESIM_OK)
        return err->code;
    if (params->progress != NULL)
        moesim_progress_begin(params->progress, params->progress->what != NULL ? params->progress->what : "events",
                              planned->steps, t->n * moesim_trace_get_info(trace)->num_layers, "events");
    moesim_code code = run_windows(t, source, params, err);
    if (params->progress != NULL)
        moesim_progress_end(params->progress);
    return code;
}

moesim_code moesim_run(moesim_trace *trace, const moesim_run_params *params, const moesim_config *config, size_t n,
                       moesim_outcome *outcome, moesim_error *err)
{
    moesim_error local = MOESIM_ERROR_INIT;
    err = err != NULL ? err : &local;
    moesim_team t = {.threads = 0};
    moesim_source *source = NULL;
    const moesim_trace_info *info = moesim_trace_get_info(trace);
    if (check_params(info, params, n, err) != MOESIM_OK || check_needs(info, config, n, err) != MOESIM_OK ||
        check_costings(config, n, err) != MOESIM_OK ||
        open_source(trace, params, config, n, &source, err) != MOESIM_OK)
        return err->code;
    moesim_code code = moesim_team_start(&t, params->threads, n, err);
    if (code == MOESIM_OK)
        code = run_all(&t, trace, source, params, config, err);
    moesim_source_close(&source);
    for (size_t i = 0; i < n && code == MOESIM_OK; i++)
        code = complete(t.instance[i], trace, &outcome[i], err);
    moesim_team_stop(&t);
    for (size_t i = 0; i < n && code != MOESIM_OK; i++)
        moesim_outcome_fini(&outcome[i]);
    return code;
}
