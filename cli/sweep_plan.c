/* SPDX-License-Identifier: Apache-2.0
 *
 * The grid of a sweep: traces, policies, bandwidths, batch sizes, profiles, dtypes; every word is checked before anything runs.
 */
#include "cli/sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/options.h"
#include "base/paths.h"
#include "cli/cli.h"

/* ---- axes ------------------------------------------------------------------------------------------------------------ */

static moesim_code open_trace(moesim_sweep *s, const char *path, moesim_error *err)
{
    const moesim_range *range = &s->options->requests;
    moesim_sweep_trace *t = &s->trace[s->num_traces];
    t->path = path;
    for (size_t i = 0; i < s->num_traces; i++)
        if (moesim_same_file(s->trace[i].path, path))
            return moesim_fail(err, MOESIM_E_USAGE, "%s is given twice", path);
    s->num_traces++;
    if (moesim_cli_open_trace(path, s->options->old_format, &t->trace, err) != MOESIM_OK ||
        moesim_digest_file(path, t->digest, err) != MOESIM_OK)
        return err->code;
    t->info = moesim_trace_get_info(t->trace);
    const uint64_t have = t->info->num_requests;
    t->request_begin = range->given ? range->begin : 0;
    t->request_end = range->given && range->end != UINT64_MAX ? range->end : have;
    if (t->request_begin >= have || t->request_end > have)
        return moesim_fail(err, MOESIM_E_USAGE, "option --requests: %s has %" PRIu64 " requests, 0:%" PRIu64, path, have, have);
    const uint64_t n = t->request_end - t->request_begin;
    if (s->options->warmup >= n)
        return moesim_fail(err, MOESIM_E_USAGE, "option --warmup: %" PRIu64 " of %" PRIu64 " requests of %s leave none to "
                           "count", s->options->warmup, n, path);
    return MOESIM_OK;
}

static moesim_code open_traces(moesim_sweep *s, moesim_error *err)
{
    const moesim_list *traces = &s->options->trace;
    if (traces->n == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "no trace: name at least one, or --from RESULT");
    if (traces->n > MOESIM_SWEEP_TRACES)
        return moesim_fail(err, MOESIM_E_USAGE, "more than %u traces", MOESIM_SWEEP_TRACES);
    for (size_t i = 0; i < traces->n; i++)
        if (open_trace(s, traces->item[i], err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

static moesim_code add_policy(void *cookie, const char *name, moesim_error *err)
{
    moesim_sweep *s = cookie;
    return moesim_policy_spec_add(s->policy, &s->num_policies, MOESIM_SWEEP_POLICIES, "policy", name, err);
}

static moesim_code add_policies(moesim_sweep *s, moesim_error *err)
{
    const moesim_list *texts = &s->options->policy;
    if (texts->n == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "no policy: give --policy, for example --policy lru,oled,belady; "
                           "'moesim policies' lists them");
    for (size_t i = 0; i < texts->n; i++)
        if (moesim_policy_split(texts->item[i], add_policy, s, err) != MOESIM_OK)
            return err->code;
    return MOESIM_OK;
}

/* Capacity decides nothing where every expert is resident, so the floor needs one cell per bandwidth. */
static moesim_code add_floor(moesim_sweep *s, moesim_error *err)
{
    if (s->part[0].pricing.mode == MOESIM_TIME_COUNT)
        return MOESIM_OK;
    for (size_t i = 0; i < s->num_policies; i++)
        if (s->policy[i].policy->host_mode == MOESIM_HOST_FULL)
            return MOESIM_OK;
    s->floor = moesim_policy_spec_init(&s->policy[s->num_policies], "full", err) == MOESIM_OK;
    return err->code;
}

static moesim_code add_bandwidth(moesim_sweep *s, const char *word, moesim_error *err)
{
    double value;
    if (moesim_profile_parse_bandwidth(word, "option --bandwidth", &value, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < s->num_bandwidths; i++)
        if (!(s->bandwidth[i] < value) && !(s->bandwidth[i] > value))
            return moesim_fail(err, MOESIM_E_USAGE, "option --bandwidth: %.10g GB/s is given twice", value / 1e9);
    if (s->num_bandwidths == MOESIM_SWEEP_VALUES)
        return moesim_fail(err, MOESIM_E_USAGE, "more than %u bandwidths", MOESIM_SWEEP_VALUES);
    s->bandwidth[s->num_bandwidths++] = value;
    return MOESIM_OK;
}

static moesim_code add_batch(moesim_sweep *s, const char *word, moesim_error *err)
{
    uint64_t value;
    if (moesim_parse_u64(word, 1, MOESIM_MAX_BATCH, "option --batch", &value, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0; i < s->num_batches; i++)
        if (s->batch[i] == value)
            return moesim_fail(err, MOESIM_E_USAGE, "option --batch: %" PRIu64 " is given twice", value);
    if (s->num_batches == MOESIM_SWEEP_VALUES)
        return moesim_fail(err, MOESIM_E_USAGE, "more than %u batch sizes", MOESIM_SWEEP_VALUES);
    s->batch[s->num_batches++] = (uint32_t)value;
    return MOESIM_OK;
}

static moesim_code each_word(moesim_sweep *s, const moesim_list *given,
                             moesim_code (*add)(moesim_sweep *s, const char *word, moesim_error *err), moesim_error *err)
{
    moesim_list words = { 0 };
    char *text = NULL;
    moesim_code code = moesim_pricing_split(given, &words, &text, err);
    for (size_t i = 0; i < words.n && code == MOESIM_OK; i++)
        code = add(s, words.item[i], err);
    moesim_list_fini(&words);
    free(text);
    return code;
}

/* Words of an axis that has one value, "not given", by default. */
static moesim_code take_words(const moesim_list *given, const char *option, moesim_list *out, char **text, moesim_error *err)
{
    moesim_code code = moesim_pricing_split(given, out, text, err);
    for (size_t i = 0; i < out->n && code == MOESIM_OK; i++)
        if (out->item[i][0] == '\0')
            code = moesim_fail(err, MOESIM_E_USAGE, "option --%s: there is a comma with nothing beside it", option);
    for (size_t i = 0; i < out->n && code == MOESIM_OK; i++)
        for (size_t k = 0; k < i && code == MOESIM_OK; k++)
            if (strcmp(out->item[i], out->item[k]) == 0)
                code = moesim_fail(err, MOESIM_E_USAGE, "option --%s: '%s' is given twice", option, out->item[i]);
    return code == MOESIM_OK && out->n == 0 ? moesim_list_add(out, NULL, err) : code;
}

static moesim_code read_axes(moesim_sweep *s, moesim_error *err)
{
    const moesim_sweep_options *o = s->options;
    if (open_traces(s, err) != MOESIM_OK || add_policies(s, err) != MOESIM_OK ||
        each_word(s, &o->bandwidth, add_bandwidth, err) != MOESIM_OK || each_word(s, &o->batch, add_batch, err) != MOESIM_OK ||
        take_words(&o->profile, "profile", &s->profile, &s->profile_text, err) != MOESIM_OK ||
        take_words(&o->dtype, "dtype", &s->dtype, &s->dtype_text, err) != MOESIM_OK ||
        moesim_sweep_check_files(s, err) != MOESIM_OK)
        return err->code;
    if (s->num_bandwidths == 0)
        s->bandwidth[s->num_bandwidths++] = 0;
    if (s->num_batches == 0)
        s->batch[s->num_batches++] = 1;
    return MOESIM_OK;
}

/* ---- parts ----------------------------------------------------------------------------------------------------------- */

static moesim_code find_dtype(const char *word, int *out, moesim_error *err)
{
    *out = -1;
    if (word == NULL)
        return MOESIM_OK;
    for (int i = 0; moesim_dtype_names[i] != NULL; i++)
        if (strcmp(moesim_dtype_names[i], word) == 0) {
            *out = i;
            return MOESIM_OK;
        }
    return moesim_fail(err, MOESIM_E_USAGE, "option --dtype: '%.64s' is none of bf16, fp8, int4, mxfp4", word);
}

static moesim_code choose_slots(const moesim_sweep *s, moesim_sweep_part *part, moesim_error *err)
{
    const moesim_sweep_options *o = s->options;
    const uint32_t experts = part->trace->info->num_experts;
    const unsigned ways = (o->cache.n > 0) + (unsigned)o->curve + (o->gpu_memory != MOESIM_UNSET);
    if (ways > 1)
        return moesim_fail(err, MOESIM_E_USAGE, "--cache, --curve and --gpu-memory each choose the capacities; give one of "
                           "them");
    if (o->modes.scope == MOESIM_SCOPE_GLOBAL && o->cache.n == 0 && ways > 0)
        return moesim_fail(err, MOESIM_E_USAGE, "option --scope global has one budget in bytes and no slots per layer; give "
                           "it with --cache in place of --curve or --gpu-memory");
    if (o->gpu_memory != MOESIM_UNSET)
        return moesim_sweep_slots(o, part, err);
    if (o->context != MOESIM_UNSET || o->workspace != MOESIM_UNSET)
        return moesim_fail(err, MOESIM_E_USAGE, "--context and --workspace take effect only with --gpu-memory");
    if (!o->curve)
        return moesim_modes_caches(&o->modes, &o->cache, experts, &part->cache, err);
    char range[32];
    const char *item = range;
    const moesim_list all = { 1, 1, &item };
    snprintf(range, sizeof range, "1:%" PRIu32, experts);
    return moesim_cachelist_parse(&all, false, &part->cache, err);
}

static moesim_code check_costs(const moesim_sweep *s, const moesim_sweep_part *part, moesim_error *err)
{
    for (size_t i = 0; part->pricing.mode == MOESIM_TIME_COUNT && i < s->num_policies; i++)
        if (moesim_pricing_missing(&s->policy[i]))
            return moesim_fail(err, MOESIM_E_USAGE, MOESIM_PRICING_MISSING, s->policy[i].given);
    return MOESIM_OK;
}

static moesim_code make_part(moesim_sweep *s, moesim_sweep_part *part, moesim_error *err)
{
    moesim_pricing_words words = s->options->pricing;
    words.profile = part->profile;
    words.dtype = part->dtype;
    words.bandwidth = s->options->bandwidth.n > 0;
    if (words.bandwidth && words.time < 0 && words.profile == NULL)
        words.profile = moesim_profile_names()[0];
    if (moesim_pricing_load(&words, part->trace->info, &part->pricing, err) != MOESIM_OK ||
        choose_slots(s, part, err) != MOESIM_OK ||
        moesim_modes_check_bound(&s->options->modes, part->pricing.mode != MOESIM_TIME_COUNT, part->batch > 1,
                                 err) != MOESIM_OK)
        return err->code;
    return check_costs(s, part, err);
}

static moesim_code make_parts(moesim_sweep *s, moesim_error *err)
{
    void *p = NULL;
    const size_t n = s->num_traces * s->num_batches * s->profile.n * s->dtype.n;
    if (n > 65536)
        return moesim_fail(err, MOESIM_E_LIMIT, "%zu combinations of trace, batch size, profile and dtype: at most 65536", n);
    if (moesim_alloc(n, sizeof *s->part, "the parts of a grid", &p, err) != MOESIM_OK)
        return err->code;
    s->part = p;
    for (size_t i = 0; i < n; i++) {
        moesim_sweep_part *part = &s->part[s->num_parts++];
        size_t at = i;
        const char *dtype = s->dtype.item[at % s->dtype.n];
        at /= s->dtype.n;
        part->profile = s->profile.item[at % s->profile.n];
        at /= s->profile.n;
        part->batch = s->batch[at % s->num_batches];
        part->trace = &s->trace[at / s->num_batches];
        if (find_dtype(dtype, &part->dtype, err) != MOESIM_OK || make_part(s, part, err) != MOESIM_OK)
            return err->code;
    }
    return MOESIM_OK;
}

/* The name is what tells the cells of profiles apart. The first parts are those of one trace and batch. */
static moesim_code check_names(const moesim_sweep *s, moesim_error *err)
{
    for (size_t i = 1; i < s->profile.n; i++)
        for (size_t k = 0; k < i; k++) {
            const moesim_sweep_part *a = &s->part[k * s->dtype.n], *b = &s->part[i * s->dtype.n];
            if (strcmp(a->pricing.profile->name, b->pricing.profile->name) == 0)
                return moesim_fail(err, MOESIM_E_USAGE, "profiles %s and %s are both named %s, which would mix their cells; "
                                   "change \"name\" in one of them", a->profile, b->profile, a->pricing.profile->name);
        }
    return MOESIM_OK;
}

static moesim_code check_modes(const moesim_sweep *s, moesim_error *err)
{
    for (size_t i = 1; i < s->num_parts; i++)
        if (s->part[i].pricing.mode != s->part[0].pricing.mode)
            return moesim_fail(err, MOESIM_E_USAGE, "profiles %s and %s tell time in different modes; choose one with --time",
                               s->part[0].pricing.profile->name, s->part[i].pricing.profile->name);
    return MOESIM_OK;
}

static void lay_out(moesim_sweep *s)
{
    for (size_t i = 0; i < s->num_parts; i++) {
        moesim_sweep_part *part = &s->part[i];
        const size_t groups = s->num_policies * part->cache.n + (s->floor ? 1u : 0u);
        part->first = s->num_cells;
        part->first_group = s->num_groups;
        part->cells = groups * s->num_bandwidths;
        s->num_cells += part->cells;
        s->num_groups += groups;
    }
}

moesim_sweep_cell moesim_sweep_cell_at(const moesim_sweep *s, const moesim_sweep_part *part, size_t j)
{
    const size_t group = j / s->num_bandwidths, policy = group / part->cache.n;
    return (moesim_sweep_cell){
        .policy = &s->policy[policy], .bandwidth = s->bandwidth[j % s->num_bandwidths], .group = group,
        .cache = policy < s->num_policies ? part->cache.amount[group % part->cache.n] : part->trace->info->num_experts,
    };
}

bool moesim_sweep_mine(const moesim_sweep *s, const moesim_sweep_part *part, size_t j)
{
    return (part->first_group + j / s->num_bandwidths) % s->shards + 1 == s->shard;
}

static moesim_code read_shard(moesim_sweep *s, moesim_error *err)
{
    const char *text = s->options->shard, *slash = text != NULL ? strchr(text, '/') : NULL;
    char first[24];
    s->shard = s->shards = 1;
    if (text == NULL)
        return MOESIM_OK;
    if (slash == NULL || (size_t)(slash - text) >= sizeof first)
        return moesim_fail(err, MOESIM_E_USAGE, "option --shard: '%.32s' is no share; write i/n, for example 1/4", text);
    memcpy(first, text, (size_t)(slash - text));
    first[slash - text] = '\0';
    if (moesim_parse_u64(slash + 1, 1, 4096, "option --shard", &s->shards, err) != MOESIM_OK ||
        moesim_parse_u64(first, 1, s->shards, "option --shard", &s->shard, err) != MOESIM_OK)
        return err->code;
    if (s->shards > s->num_groups)
        return moesim_fail(err, MOESIM_E_USAGE, "option --shard: the grid has %zu share%s at most (cells that differ in "
                           "bandwidth alone stay together)", s->num_groups, s->num_groups == 1 ? "" : "s");
    return MOESIM_OK;
}

static moesim_code check_expected(const moesim_sweep *s, moesim_error *err)
{
    char difference[600];
    moesim_result was, is;
    if (s->options->expected == NULL || strcmp(s->options->expected, s->config) == 0)
        return MOESIM_OK;
    moesim_result_init(&was);
    moesim_result_init(&is);
    if (moesim_result_set(&was, "config", s->options->expected, err) == MOESIM_OK &&
        moesim_result_set(&is, "config", s->config, err) == MOESIM_OK &&
        moesim_result_same(&was, &is, difference, sizeof difference) != MOESIM_OK)
        moesim_fail(err, MOESIM_E_USAGE, "option --from: a trace, a profile or the program is not what it was: %s", difference);
    moesim_result_fini(&was);
    moesim_result_fini(&is);
    return err->code;
}

moesim_code moesim_sweep_plan(moesim_sweep *s, moesim_error *err)
{
    if (read_axes(s, err) != MOESIM_OK || make_parts(s, err) != MOESIM_OK || check_names(s, err) != MOESIM_OK ||
        check_modes(s, err) != MOESIM_OK || add_floor(s, err) != MOESIM_OK)
        return err->code;
    lay_out(s);
    if (read_shard(s, err) != MOESIM_OK)
        return err->code;
    s->config = moesim_sweep_config(s);
    if (s->config == NULL)
        return moesim_fail_nomem(err, "the configuration as JSON", 0);
    return check_expected(s, err);
}

void moesim_sweep_fini(moesim_sweep *s)
{
    for (size_t i = 0; i < s->num_parts; i++) {
        moesim_pricing_fini(&s->part[i].pricing);
        moesim_cachelist_fini(&s->part[i].cache);
        free(s->part[i].memory);
    }
    for (size_t i = 0; i < s->num_policies + (s->floor ? 1u : 0u); i++)
        moesim_policy_spec_fini(&s->policy[i]);
    for (size_t i = 0; i < s->num_traces; i++)
        moesim_trace_close(&s->trace[i].trace);
    moesim_list_fini(&s->profile);
    moesim_list_fini(&s->dtype);
    free(s->profile_text);
    free(s->dtype_text);
    free(s->part);
    free(s->config);
}
