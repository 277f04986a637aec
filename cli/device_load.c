/* SPDX-License-Identifier: Apache-2.0
 *
 * From the words of replay and fidelity to a bench.
 */
#include "cli/device_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/output.h"
#include "cli/cli.h"
#include "cli/outputs.h"

#define MAX_POLICIES 64u
#define MAX_CAPS 64u

/* ---- words ----------------------------------------------------------------------------------------------------- */

static moesim_code add_policy(void *cookie, const char *name, moesim_error *err)
{
    moesim_device_session *s = cookie;
    return moesim_policy_spec_add(s->policy, &s->num_policies, MAX_POLICIES, "option --policy:", name, err);
}

static moesim_code parse_policies(moesim_device_session *s, moesim_error *err)
{
    const moesim_device_words *w = s->words;
    void *p = NULL;
    if (w->decisions != NULL && (w->policy.n > 0 || w->cache.n > 0))
        return moesim_fail(err, MOESIM_E_USAGE, "option --decisions executes what a log says; leave --policy and --cache away");
    if (moesim_alloc(MAX_POLICIES, sizeof *s->policy, "policies", &p, err) != MOESIM_OK)
        return err->code;
    s->policy = p;
    for (size_t i = 0; i < w->policy.n; i++)
        if (moesim_policy_split(w->policy.item[i], add_policy, s, err) != MOESIM_OK)
            return err->code;
    if (w->decisions != NULL)
        return MOESIM_OK;
    if (s->num_policies == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "no policy: give --policy, for example --policy lru,oled");
    if (moesim_cachelist_parse(&w->cache, false, &s->cache, err) != MOESIM_OK)
        return err->code;
    return moesim_cachelist_check(&s->cache, moesim_trace_get_info(s->trace)->num_experts, err);
}

static moesim_code add_cap(moesim_device_session *s, const char *word, moesim_error *err)
{
    double cap = 0;
    if (strcmp(word, "none") != 0 && moesim_profile_parse_bandwidth(word, "option --bandwidth", &cap, err) != MOESIM_OK)
        return err->code;
    if (cap != 0 && !(cap >= MOESIM_DEVICE_CAP_MIN && cap <= MOESIM_DEVICE_CAP_MAX))
        return moesim_fail(err, MOESIM_E_USAGE, "option --bandwidth: %s is outside 1 MB/s to 10 TB/s", word);
    for (size_t i = 0; i < s->num_caps; i++)
        if (s->cap[i] == cap)
            return moesim_fail(err, MOESIM_E_USAGE, "option --bandwidth: %s is given twice", word);
    if (s->num_caps == MAX_CAPS)
        return moesim_fail(err, MOESIM_E_USAGE, "option --bandwidth: more than %u caps", MAX_CAPS);
    s->cap[s->num_caps++] = cap;
    return MOESIM_OK;
}

static moesim_code parse_caps(moesim_device_session *s, moesim_error *err)
{
    void *p = NULL;
    if (moesim_alloc(MAX_CAPS, sizeof *s->cap, "caps", &p, err) != MOESIM_OK)
        return err->code;
    s->cap = p;
    for (size_t i = 0; i < s->words->bandwidth.n; i++) {
        char *copy = strdup(s->words->bandwidth.item[i]), *rest = copy;
        moesim_code code = copy != NULL ? MOESIM_OK : moesim_fail_nomem(err, "words", 64);
        while (code == MOESIM_OK && rest != NULL)
            code = add_cap(s, strsep(&rest, ","), err);
        free(copy);
        if (code != MOESIM_OK)
            return code;
    }
    return s->num_caps > 0 ? MOESIM_OK : add_cap(s, "none", err);
}

static moesim_code check_model(const moesim_geometry *g, const moesim_trace_info *t, moesim_error *err)
{
    if (g->experts != t->num_experts || g->top_k != t->top_k)
        return moesim_fail(err, MOESIM_E_USAGE, "option --as: %s routes to %u of %u experts, this trace to %u of %u; they must "
                           "match", g->name, g->top_k, g->experts, t->top_k, t->num_experts);
    if (g->hidden == 0 || g->intermediate == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --as: the sizes of %s's experts are not known", g->name);
    return MOESIM_OK;
}

static moesim_code choose_model(moesim_device_session *s, moesim_error *err)
{
    const moesim_device_words *w = s->words;
    if (w->as == NULL)
        return w->other == 0 ? MOESIM_OK : moesim_fail(err, MOESIM_E_USAGE, "option --other on: attention and router need the "
                                                       "sizes of a model; give --as");
    if (w->hidden > 0 || w->intermediate > 0)
        return moesim_fail(err, MOESIM_E_USAGE, "options --hidden and --intermediate are in place of --as");
    if (moesim_geometry_find(w->as, &s->geometry, err) != MOESIM_OK)
        return err->code;
    return check_model(s->geometry, moesim_trace_get_info(s->trace), err);
}

static moesim_code choose_sizes(moesim_device_session *s, moesim_bench_config *c, moesim_error *err)
{
    const moesim_device_words *w = s->words;
    const moesim_trace_info *t = moesim_trace_get_info(s->trace);
    if (choose_model(s, err) != MOESIM_OK)
        return err->code;
    const uint64_t hidden = s->geometry != NULL ? s->geometry->hidden : w->hidden > 0 ? w->hidden : t->hidden_size;
    const uint64_t inner = s->geometry != NULL ? s->geometry->intermediate : w->intermediate > 0 ? w->intermediate
                                                                                                  : t->expert_intermediate_size;
    if (hidden == 0 || inner == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "%s does not record the sizes of its experts; give --as MODEL", s->path);
    if (hidden > UINT32_MAX || inner > UINT32_MAX)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: hidden size %" PRIu64 " and intermediate size %" PRIu64 " are too large",
                           s->path, hidden, inner);
    c->hidden = (uint32_t)hidden;
    c->intermediate = (uint32_t)inner;
    c->geometry = s->geometry;
    return MOESIM_OK;
}

static moesim_code choose_requests(moesim_device_session *s, moesim_bench_config *c, moesim_error *err)
{
    const moesim_range *range = &s->words->requests;
    const uint32_t have = moesim_trace_get_info(s->trace)->num_requests;
    c->request_begin = range->given ? range->begin : 0;
    c->request_end = range->given && range->end != UINT64_MAX ? range->end : have;
    if (range->given && (c->request_begin >= have || c->request_end > have))
        return moesim_fail(err, MOESIM_E_USAGE, "option --requests: the trace has %u requests, 0:%u", have, have);
    if (s->words->warmup > 0 && s->words->warmup >= c->request_end - c->request_begin)
        return moesim_fail(err, MOESIM_E_USAGE, "option --warmup: %" PRIu64 " of %" PRIu64 " requests leave none to count",
                           s->words->warmup, c->request_end - c->request_begin);
    c->warmup = s->words->warmup;
    return MOESIM_OK;
}

/* Only where a policy reads it. */
static moesim_code load_profile(moesim_device_session *s, moesim_bench_config *c, moesim_error *err)
{
    const char *name = s->words->profile != NULL ? s->words->profile : moesim_profile_names()[0];
    bool costs = s->words->profile != NULL;
    void *p = NULL;
    c->profile_name = c->profile_digest = "";
    for (size_t i = 0; i < s->num_policies; i++)
        costs |= moesim_config_reads_costs(s->policy[i].policy, s->policy[i].options);
    if (!costs)
        return MOESIM_OK;
    if (moesim_alloc(1, sizeof *s->profile, "profile", &p, err) != MOESIM_OK)
        return err->code;
    s->profile = p;
    if (moesim_profile_load(name, s->profile, err) != MOESIM_OK)
        return err->code;
    c->profile = s->profile;
    c->profile_name = name;
    c->profile_digest = s->profile->digest;
    return MOESIM_OK;
}

static moesim_code check_files(const moesim_device_session *s, moesim_error *err)
{
    const moesim_device_words *w = s->words;
    const moesim_named_file input[] = { { "the trace", s->path }, { "option --decisions", w->decisions } };
    const moesim_named_file output = { "option -o", w->output };
    moesim_code code = moesim_check_outputs(input, 2, &output, 1, err);
    if (code == MOESIM_OK)
        code = moesim_check_sources(&w->profile, 1, s->policy, s->num_policies, &output, 1, err);
    return code == MOESIM_OK && w->output != NULL ? moesim_output_try(w->output, err) : code;
}

static moesim_code find_device(moesim_device_session *s, moesim_error *err)
{
    char why[256];
    s->ops = moesim_device_backends()[0];
    if (s->words->device != NULL && moesim_device_find(s->words->device, &s->ops, err) != MOESIM_OK)
        return err->code;
    if (!s->ops->present((int)s->words->index, why))
        return moesim_fail(err, MOESIM_E_ABSENT, "device %s: %s", s->ops->name, why);
    return MOESIM_OK;
}

/* ---- plans -------------------------------------------------------------------------------------------------------------- */

static moesim_code add_job(moesim_device_session *s, const moesim_bench_plan *plan, double cap, moesim_error *err)
{
    moesim_grid_job *job = &s->job[s->num_jobs];
    if (moesim_bench_plan_add(s->bench, plan, &job->plan, err) != MOESIM_OK)
        return err->code;
    job->bandwidth_cap = cap;
    s->num_jobs++;
    return MOESIM_OK;
}

/* Full residency does not depend on the capacity. */
static moesim_code add_policy_jobs(moesim_device_session *s, const moesim_policy_spec *spec, double cap, moesim_error *err)
{
    const uint32_t experts = moesim_trace_get_info(s->trace)->num_experts;
    const bool full = spec->policy->host_mode == MOESIM_HOST_FULL;
    for (size_t i = 0; i < (full ? 1 : s->cache.n); i++) {
        const moesim_bench_plan plan = {
            .cell = {.policy = spec->policy, .options = spec->options, .label = spec->given,
                     .cache = full ? experts : (uint32_t)s->cache.amount[i], .bandwidth = cap},
            .given = spec->given, .effective = spec->effective,
        };
        if (add_job(s, &plan, cap, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

static bool has_full(const moesim_device_session *s)
{
    for (size_t i = 0; i < s->num_policies; i++)
        if (s->policy[i].policy->host_mode == MOESIM_HOST_FULL)
            return true;
    return false;
}

static moesim_code add_jobs(moesim_device_session *s, moesim_error *err)
{
    const size_t most = (s->words->decisions != NULL ? 1 : s->num_policies * s->cache.n + 1) * s->num_caps + 1;
    void *p = NULL;
    if (most * s->words->repeat > MOESIM_DEVICE_MAX_CELLS)
        return moesim_fail(err, MOESIM_E_USAGE, "more than %u cells (policies, capacities, caps and repeats)",
                           MOESIM_DEVICE_MAX_CELLS);
    if (moesim_alloc(most, sizeof *s->job, "jobs", &p, err) != MOESIM_OK)
        return err->code;
    s->job = p;
    for (size_t c = 0; c < s->num_caps; c++) {
        const moesim_bench_plan log = {.decisions = s->words->decisions};
        if (log.decisions != NULL && add_job(s, &log, s->cap[c], err) != MOESIM_OK)
            return err->code;
        for (size_t i = 0; i < s->num_policies; i++) {
            const bool full = s->policy[i].policy->host_mode == MOESIM_HOST_FULL;    /* without transfers caps mean nothing */
            if ((c == 0 || !full) && add_policy_jobs(s, &s->policy[i], full ? 0 : s->cap[c], err) != MOESIM_OK)
                return err->code;
        }
    }
    if (!s->full || has_full(s))
        return MOESIM_OK;
    if (add_policy(s, "full", err) != MOESIM_OK)
        return err->code;
    return add_policy_jobs(s, &s->policy[s->num_policies - 1], 0, err);
}

/* ---- all ------------------------------------------------------------------------------------------------------- */

static moesim_code open_bench(moesim_device_session *s, moesim_error *err)
{
    moesim_replay_file file;
    moesim_replay_file_init(&file);
    if (s->words->output != NULL && access(s->words->output, F_OK) == 0 &&
        moesim_replay_file_read(s->words->output, &file, err) != MOESIM_OK)
        return moesim_fail_prefix(err, "option -o: the file is there and is gone on with");
    const moesim_code code = moesim_bench_open(s->bench, &file, err);
    moesim_replay_file_fini(&file);
    return code;
}

static moesim_code configure(moesim_device_session *s, moesim_bench_config *c, moesim_error *err)
{
    const moesim_device_words *w = s->words;
    *c = (moesim_bench_config){
        .trace = s->trace, .trace_path = s->path, .ops = s->ops, .index = (int)w->index, .batch = (uint32_t)w->batch,
        .staging = (uint32_t)w->staging, .seed = w->seed, .window_bytes = w->window, .mode = (enum moesim_replay_mode)w->mode,
        .other = w->other != 0, .allow_pageable = w->allow_pageable, .context = (uint32_t)w->context, .host_pool = w->host_pool,
        .gpu_memory = w->gpu_memory, .cpu = {.threads = (uint32_t)w->threads, .isa = w->isa, .cpus = w->cpus}, .out = stdout,
    };
    moesim_code code = choose_sizes(s, c, err);
    if (code == MOESIM_OK)
        code = choose_requests(s, c, err);
    return code == MOESIM_OK ? load_profile(s, c, err) : code;
}

static void say_begin(const moesim_device_session *s, const moesim_bench_config *c)
{
    const moesim_trace_info *t = moesim_trace_get_info(s->trace);
    printf("trace    %s, requests %" PRIu64 ":%" PRIu64 "; %u layers of %u experts, top %u\n", s->path, c->request_begin,
           c->request_end, t->num_layers, t->num_experts, t->top_k);
    if (s->geometry != NULL)
        printf("model    routing of %s executed as %s (%u layers there, %u here)\n",
               t->model_id[0] != '\0' ? t->model_id : "an unnamed model", s->geometry->name, s->geometry->moe_layers,
               t->num_layers);
    printf("experts  %u x %u bf16, other %s, decisions %s\n", c->hidden, c->intermediate, moesim_off_on[s->words->other],
           moesim_replay_modes[s->words->mode]);
    (void)fflush(stdout);
}

moesim_code moesim_device_load(moesim_device_session *s, moesim_error *err)
{
    moesim_bench_config config;
    s->started = moesim_clock_seconds();
    if (find_device(s, err) != MOESIM_OK || moesim_cli_open_trace(s->path, false, &s->trace, err) != MOESIM_OK ||
        moesim_trace_digest(s->trace, err) != MOESIM_OK || parse_policies(s, err) != MOESIM_OK ||
        parse_caps(s, err) != MOESIM_OK || configure(s, &config, err) != MOESIM_OK || check_files(s, err) != MOESIM_OK ||
        moesim_bench_create(&config, &s->bench, err) != MOESIM_OK)
        return err->code;
    say_begin(s, &config);
    return add_jobs(s, err) == MOESIM_OK ? open_bench(s, err) : err->code;
}

void moesim_device_session_fini(moesim_device_session *s)
{
    moesim_bench_destroy(&s->bench);
    for (size_t i = 0; i < s->num_policies; i++)
        moesim_policy_spec_fini(&s->policy[i]);
    moesim_cachelist_fini(&s->cache);
    free(s->policy);
    free(s->profile);
    free(s->cap);
    free(s->job);
    moesim_trace_close(&s->trace);
}

static void say_facts(const moesim_device_session *s)
{
    const moesim_replay_file *f = moesim_bench_file(s->bench);
    const char *line = f->session[f->num_sessions - 1].facts;
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        printf("device   %.*s: %.*s\n", (int)(tab - line), line, (int)(end - tab - 1), tab + 1);
    }
    if (f->config.pinned == 0)
        printf("warning  host memory is pageable: times are not those of a real system\n");
    (void)fflush(stdout);
}

moesim_code moesim_device_execute(moesim_device_session *s, moesim_error *err)
{
    const moesim_replay_grid grid = {
        .job = s->job, .num_jobs = s->num_jobs, .repeats = (uint32_t)s->words->repeat, .time_limit = s->words->time_limit,
        .started = s->started, .output = s->words->output, .scratch = s->words->scratch,
    };
    const char *kept = s->words->scratch ? NULL : s->words->output;
    moesim_grid_progress progress;
    say_facts(s);
    if (moesim_grid_execute(s->bench, &grid, &progress, err) != MOESIM_OK)
        return err->code;
    if (progress.out_of_time)
        printf("partial  out of time after %u of %u cells%s%s\n", progress.finished, progress.planned,
               kept != NULL ? "; the same command goes on with " : "", kept != NULL ? kept : "");
    else
        printf("done     %u cell%s%s%s\n", progress.finished, progress.finished == 1 ? "" : "s",
               kept != NULL ? " in " : "", kept != NULL ? kept : "");
    return MOESIM_OK;
}
