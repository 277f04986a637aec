/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration of a sweep as one JSON object with everything that shapes its result and nothing else, in a fixed order;
 * the same object read back; and the attributes of result files.
 */
#include "cli/sweep.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/print.h"

#define SCHEMA "moesim.sweep.config/1"

/* ---- writing --------------------------------------------------------------------------------------------------------- */

static json_t *whole(uint64_t v)
{
    return v == MOESIM_UNSET ? json_null() : json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX);
}

static json_t *optional(const char *text)
{
    return text != NULL ? moesim_json_text(text) : json_null();
}

static json_t *texts(const moesim_list *list)
{
    json_t *array = json_array();
    for (size_t i = 0; i < list->n; i++)
        if (list->item[i] != NULL)
            json_array_append_new(array, moesim_json_text(list->item[i]));
    return array;
}

static json_t *traces(const moesim_sweep *s)
{
    json_t *array = json_array();
    for (size_t i = 0; i < s->num_traces; i++)
        json_array_append_new(array, json_pack("{s:o, s:s}", "path", moesim_json_text(s->trace[i].path), "digest",
                                               s->trace[i].digest));
    return array;
}

static json_t *policies(const moesim_sweep *s)
{
    json_t *array = json_array();
    for (size_t i = 0; i < s->num_policies; i++)
        json_array_append_new(array, moesim_json_text(s->policy[i].given));
    return array;
}

static json_t *capacities(const moesim_sweep *s)
{
    json_t *array = json_array();
    const moesim_cachelist *list = &s->part[0].cache;
    char text[32];
    for (size_t i = 0; i < list->n && s->options->cache.n > 0; i++)
        json_array_append_new(array, s->options->modes.scope == MOESIM_SCOPE_GLOBAL
                                         ? json_string(moesim_cache_text(list->amount[i], true, text, sizeof text))
                                         : whole(list->amount[i]));
    return array;
}

/* In B/s, so that they read back exactly. */
static json_t *bandwidths(const moesim_sweep *s)
{
    char text[40];
    json_t *array = json_array();
    for (size_t i = 0; i < s->num_bandwidths && s->bandwidth[i] > 0; i++) {
        snprintf(text, sizeof text, "%.17gB/s", s->bandwidth[i]);
        json_array_append_new(array, json_string(text));
    }
    return array;
}

static json_t *batches(const moesim_sweep *s)
{
    json_t *array = json_array();
    for (size_t i = 0; i < s->num_batches; i++)
        json_array_append_new(array, whole(s->batch[i]));
    return array;
}

/* Beside the words, what their files hold. */
static json_t *profile_digests(const moesim_sweep *s)
{
    json_t *array = json_array();
    for (size_t i = 0; i < s->profile.n && s->part[0].pricing.profile != NULL; i++)
        json_array_append_new(array, json_string(s->part[i * s->dtype.n].pricing.profile->digest));
    return array;
}

static void add_range(json_t *o, const moesim_range *r)
{
    json_object_set_new(o, "requests", r->given ? json_pack("[o, o]", whole(r->begin), whole(r->end)) : json_null());
}

static json_t *without_prefetch_limit(uint64_t budget)
{
    return budget == UINT32_MAX ? json_null() : whole(budget);
}

/* Left out where they are what they were before there was a choice, so that older results stay equal. */
static void add_modes(json_t *o, const moesim_modes *m)
{
    if (m->scope != MOESIM_SCOPE_LAYER)
        json_object_set_new(o, "scope", json_string(moesim_scope_names[m->scope]));
    if (m->order != MOESIM_ATOMIC)
        json_object_set_new(o, "order", json_string(moesim_order_names[m->order]));
    if (m->bound != MOESIM_NO_BOUND)
        json_object_set_new(o, "bound", json_string(moesim_bound_names[m->bound]));
}

char *moesim_sweep_config(const moesim_sweep *s)
{
    const moesim_sweep_options *c = s->options;
    json_t *o = json_object();
    json_object_set_new(o, "schema", json_string(SCHEMA));
    json_object_set_new(o, "version", json_string(MOESIM_VERSION));
    json_object_set_new(o, "traces", traces(s));
    json_object_set_new(o, "policies", policies(s));
    json_object_set_new(o, "cache", capacities(s));
    json_object_set_new(o, "curve", json_boolean(c->curve));
    add_modes(o, &c->modes);
    json_object_set_new(o, "gpu_memory", whole(c->gpu_memory));
    json_object_set_new(o, "context", whole(c->context));
    json_object_set_new(o, "workspace", whole(c->workspace));
    json_object_set_new(o, "bandwidth", bandwidths(s));
    json_object_set_new(o, "batch", batches(s));
    json_object_set_new(o, "time", c->pricing.time >= 0 ? json_string(moesim_time_names[c->pricing.time]) : json_null());
    json_object_set_new(o, "profile", texts(&s->profile));
    json_object_set_new(o, "profile_digest", profile_digests(s));
    json_object_set_new(o, "set", texts(&c->pricing.set));
    json_object_set_new(o, "without", texts(&c->pricing.without));
    json_object_set_new(o, "as", optional(c->pricing.as));
    json_object_set_new(o, "dtype", texts(&s->dtype));
    add_range(o, &c->requests);
    json_object_set_new(o, "warmup", whole(c->warmup));
    json_object_set_new(o, "staging", whole(c->staging));
    json_object_set_new(o, "prefetch_budget", without_prefetch_limit(c->prefetch_budget));
    json_object_set_new(o, "seed", whole(c->seed));
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    return text;
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static moesim_code bad(const char *path, const char *key, moesim_error *err)
{
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute config: key \"%s\" is missing or of a wrong kind", path, key);
}

/* Texts, or the member `of` of objects; whole numbers become text in place, so that they too can be pointed to. */
static moesim_code read_list(const char *path, json_t *o, const char *key, const char *of, moesim_list *out, moesim_error *err)
{
    json_t *array = json_object_get(o, key);
    moesim_code code = json_is_array(array) ? MOESIM_OK : bad(path, key, err);
    for (size_t i = 0; code == MOESIM_OK && i < json_array_size(array); i++) {
        json_t *item = json_array_get(array, i);
        if (json_is_integer(item)) {
            char text[24];
            snprintf(text, sizeof text, "%" PRId64, (int64_t)json_integer_value(item));
            json_array_set_new(array, i, json_string(text));
            item = json_array_get(array, i);
        }
        const char *text = json_string_value(of != NULL ? json_object_get(item, of) : item);
        code = text != NULL ? moesim_list_add(out, text, err) : bad(path, key, err);
    }
    return code;
}

static moesim_code read_number(const char *path, const json_t *o, const char *key, uint64_t absent, uint64_t *out,
                               moesim_error *err)
{
    const json_t *v = json_object_get(o, key);
    *out = absent;
    if (json_is_null(v))
        return MOESIM_OK;
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return bad(path, key, err);
    *out = (uint64_t)json_integer_value(v);
    return MOESIM_OK;
}

static moesim_code read_numbers(const char *path, const json_t *o, moesim_sweep_options *out, moesim_error *err)
{
    const struct { const char *key; uint64_t absent, *to; } row[] = {
        { "gpu_memory", MOESIM_UNSET, &out->gpu_memory }, { "context", MOESIM_UNSET, &out->context },
        { "workspace", MOESIM_UNSET, &out->workspace },   { "warmup", 0, &out->warmup },
        { "staging", 0, &out->staging },                  { "prefetch_budget", UINT32_MAX, &out->prefetch_budget },
        { "seed", 0, &out->seed },
    };
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < sizeof row / sizeof row[0] && code == MOESIM_OK; i++)
        code = read_number(path, o, row[i].key, row[i].absent, row[i].to, err);
    if (code != MOESIM_OK || json_is_null(json_object_get(o, "requests")))
        return code;
    const json_t *range = json_object_get(o, "requests");
    const json_t *begin = json_array_get(range, 0), *end = json_array_get(range, 1);
    if (!json_is_integer(begin) || json_integer_value(begin) < 0 || (!json_is_null(end) && !json_is_integer(end)))
        return bad(path, "requests", err);
    out->requests = (moesim_range){ (uint64_t)json_integer_value(begin),
                                    json_is_null(end) ? UINT64_MAX : (uint64_t)json_integer_value(end), true };
    return MOESIM_OK;
}

static moesim_code read_lists(const char *path, json_t *o, moesim_sweep_options *out, moesim_error *err)
{
    const struct { const char *key, *of; moesim_list *to; } row[] = {
        { "traces", "path", &out->trace }, { "policies", NULL, &out->policy },  { "cache", NULL, &out->cache },
        { "bandwidth", NULL, &out->bandwidth }, { "batch", NULL, &out->batch }, { "profile", NULL, &out->profile },
        { "set", NULL, &out->pricing.set }, { "without", NULL, &out->pricing.without }, { "dtype", NULL, &out->dtype },
    };
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < sizeof row / sizeof row[0] && code == MOESIM_OK; i++)
        code = read_list(path, o, row[i].key, row[i].of, row[i].to, err);
    return code;
}

/* Index of the word of a key among names; absent where there is no such key. */
static moesim_code read_word(const char *path, const json_t *o, const char *key, const char *const *names, int absent, int *out,
                             moesim_error *err)
{
    const json_t *word = json_object_get(o, key);
    *out = absent;
    if (word == NULL || json_is_null(word))
        return MOESIM_OK;
    for (int i = 0; names[i] != NULL; i++)
        if (json_is_string(word) && strcmp(names[i], json_string_value(word)) == 0) {
            *out = i;
            return MOESIM_OK;
        }
    return bad(path, key, err);
}

static moesim_code read_words(const char *path, const json_t *o, moesim_sweep_options *out, moesim_error *err)
{
    moesim_modes *m = &out->modes;
    if (read_word(path, o, "time", moesim_time_names, -1, &out->pricing.time, err) != MOESIM_OK ||
        read_word(path, o, "scope", moesim_scope_names, MOESIM_SCOPE_LAYER, &m->scope, err) != MOESIM_OK ||
        read_word(path, o, "order", moesim_order_names, MOESIM_ATOMIC, &m->order, err) != MOESIM_OK)
        return err->code;
    return read_word(path, o, "bound", moesim_bound_names, MOESIM_NO_BOUND, &m->bound, err);
}

moesim_code moesim_sweep_from(const moesim_result *result, const char *path, moesim_sweep_options *out, json_t **keep,
                              moesim_error *err)
{
    const char *kind = moesim_result_get(result, "kind"), *config = moesim_result_get(result, "config");
    if (kind == NULL || strcmp(kind, "sweep") != 0 || config == NULL)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s is not the result of a sweep", path);
    json_t *o = json_loads(config, 0, NULL);
    *keep = o;
    const char *schema = json_string_value(json_object_get(o, "schema"));
    if (schema == NULL || strcmp(schema, SCHEMA) != 0)
        return moesim_fail(err, MOESIM_E_FORMAT, "%s: attribute config is not of schema " SCHEMA, path);
    json_object_set_new(o, "expected", json_string(config));
    out->expected = json_string_value(json_object_get(o, "expected"));
    out->curve = json_is_true(json_object_get(o, "curve"));
    out->pricing.as = json_string_value(json_object_get(o, "as"));
    if (read_words(path, o, out, err) != MOESIM_OK || read_numbers(path, o, out, err) != MOESIM_OK)
        return err->code;
    return read_lists(path, o, out, err);
}

/* ---- attributes ------------------------------------------------------------------------------------------------------ */

/* Texts joined by `between`, each once a trace or a part; owned. */
typedef struct joined { char *text; size_t bytes; FILE *out; } joined;

static moesim_code set_joined(const moesim_sweep *s, moesim_result *r, const char *name, size_t n, const char *between,
                              const char *(*get)(const moesim_sweep *s, size_t i), moesim_error *err)
{
    joined j = { NULL, 0, NULL };
    bool any = false;
    j.out = open_memstream(&j.text, &j.bytes);
    if (j.out == NULL)
        return moesim_fail_nomem(err, "an attribute", 0);
    for (size_t i = 0; i < n; i++) {
        const char *text = get(s, i);
        if (text == NULL)
            continue;
        fprintf(j.out, "%s%s", any ? between : "", text);
        any = true;
    }
    const int closed = fclose(j.out);
    moesim_code code = closed != 0 ? moesim_fail_nomem(err, "an attribute", 0) : MOESIM_OK;
    if (code == MOESIM_OK)
        code = moesim_result_set(r, name, any ? j.text : "", err);
    free(j.text);
    return code;
}

static const char *get_path(const moesim_sweep *s, size_t i) { return s->trace[i].path; }
static const char *get_digest(const moesim_sweep *s, size_t i) { return s->trace[i].digest; }
static const char *get_model(const moesim_sweep *s, size_t i) { return s->trace[i].info->model_id; }

/* The profile of the i-th word of --profile. */
static const moesim_profile *profile_of(const moesim_sweep *s, size_t i)
{
    return s->part[i * s->dtype.n].pricing.profile;
}

#define PROFILE(field)                                             \
    static const char *get_##field(const moesim_sweep *s, size_t i) \
    {                                                              \
        return profile_of(s, i) != NULL ? profile_of(s, i)->field : NULL; \
    }
PROFILE(name)
PROFILE(label)
PROFILE(overrides)

static const char *get_profile_digest(const moesim_sweep *s, size_t i)
{
    return profile_of(s, i) != NULL ? profile_of(s, i)->digest : NULL;
}

/* One sentence a trace, in mode paper one a profile of each; dtypes stand in the cells. */
static const char *get_priced(const moesim_sweep *s, size_t i)
{
    const size_t trace = i / s->profile.n, profile = i % s->profile.n;
    const moesim_pricing *p = &s->part[trace * s->num_parts / s->num_traces + profile * s->dtype.n].pricing;
    return profile == 0 || p->mode == MOESIM_TIME_PAPER ? p->priced_as : NULL;
}

moesim_code moesim_sweep_attributes(const moesim_sweep *s, moesim_result *r, moesim_error *err)
{
    const struct {
        const char *name;
        size_t n;
        const char *between;
        const char *(*get)(const moesim_sweep *sweep, size_t i);
    } list[] = {
        { "trace", s->num_traces, ",", get_path },          { "trace_digest", s->num_traces, ",", get_digest },
        { "model_id", s->num_traces, ",", get_model },      { "profile", s->profile.n, ",", get_name },
        { "profile_label", s->profile.n, ",", get_label },  { "profile_digest", s->profile.n, ",", get_profile_digest },
        { "profile_overrides", 1, ",", get_overrides },
        { "priced_as_note", s->num_traces * s->profile.n, "; ", get_priced },
    };
    char seed[24], shard[48];
    const moesim_geometry *model = s->part[0].pricing.model;
    snprintf(seed, sizeof seed, "%" PRIu64, s->options->seed);
    snprintf(shard, sizeof shard, "%" PRIu64 "/%" PRIu64, s->shard, s->shards);
    const struct { const char *name, *text; } one[] = {
        { "kind", "sweep" }, { "config", s->config }, { "moesim_version", MOESIM_VERSION }, { "libraries", MOESIM_LIBRARIES },
        { "time", moesim_time_names[s->part[0].pricing.mode] }, { "priced_as", model != NULL ? model->name : "" },
        { "seed", seed },
    };
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < sizeof one / sizeof one[0] && code == MOESIM_OK; i++)
        code = moesim_result_set(r, one[i].name, one[i].text, err);
    for (size_t i = 0; i < sizeof list / sizeof list[0] && code == MOESIM_OK; i++)
        code = set_joined(s, r, list[i].name, list[i].n, list[i].between, list[i].get, err);
    return code == MOESIM_OK && s->shards > 1 ? moesim_result_set(r, "shard", shard, err) : code;
}
