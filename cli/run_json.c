/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim run` as JSON, schema moesim.run/1: one object {schema, trace, config, results, paired, gap}. Undefined numbers are
 * null. Nothing in it depends on the number of threads, the machine or the time.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "cli/print.h"
#include "cli/run.h"

#define SCHEMA "moesim.run/1"
#define EXACT_WHOLE 0x1p53

/* Whole numbers print as such; shares of merged passes have fractions. */
static json_t *count(double v)
{
    return v == floor(v) && fabs(v) < EXACT_WHOLE ? json_integer((json_int_t)v) : moesim_json_real(v);
}

static json_t *whole(uint64_t v)
{
    return json_integer(v < INT64_MAX ? (json_int_t)v : INT64_MAX);
}

static json_t *pair_of(json_t *lo, json_t *hi)
{
    return json_pack("[o, o]", lo, hi);
}

static json_t *interval(moesim_interval ci)
{
    return pair_of(moesim_json_real(ci.lo), moesim_json_real(ci.hi));
}

static json_t *trace_object(const moesim_report *r)
{
    const moesim_trace_info *t = r->info;
    json_t *o = json_object();
    json_object_set_new(o, "path", moesim_json_text(r->options->path));
    json_object_set_new(o, "digest", moesim_json_text(r->digest));
    json_object_set_new(o, "model_id", moesim_json_text(t->model_id));
    json_object_set_new(o, "num_moe_layers", whole(t->num_layers));
    json_object_set_new(o, "num_experts", whole(t->num_experts));
    json_object_set_new(o, "top_k", whole(t->top_k));
    json_object_set_new(o, "block_length", whole(t->block_length));
    json_object_set_new(o, "gate_kind", moesim_json_text(t->gate_kind));
    json_object_set_new(o, "confidence_kind", moesim_json_text(t->confidence_kind));
    json_object_set_new(o, "requests", whole(t->num_requests));
    json_object_set_new(o, "passes", whole(t->num_passes));
    json_object_set_new(o, "rows", whole(t->num_rows));
    return o;
}

static json_t *config_object(const moesim_report *r)
{
    const moesim_run_options *c = r->options;
    json_t *o = json_object(), *cache = json_array();
    for (size_t i = 0; i < r->cache.n; i++)
        json_array_append_new(cache, whole(r->cache.amount[i]));
    json_object_set_new(o, "scope", json_string(moesim_scope_names[c->modes.scope]));
    json_object_set_new(o, "order", json_string(moesim_order_names[c->modes.order]));
    json_object_set_new(o, "cache", cache);
    json_object_set_new(o, "requests", pair_of(whole(r->request_begin), whole(r->request_end)));
    json_object_set_new(o, "warmup", whole(c->warmup));
    json_object_set_new(o, "batch", whole(c->batch));
    json_object_set_new(o, "staging", whole(c->staging));
    json_object_set_new(o, "prefetch_budget", c->prefetch_budget == UINT32_MAX ? json_null() : whole(c->prefetch_budget));
    json_object_set_new(o, "seed", whole(c->seed));
    json_object_set_new(o, "resamples", whole(moesim_resamples(r->request_end - r->request_begin - c->warmup)));
    json_object_set_new(o, "interval_percent", whole(95));
    json_object_set_new(o, "baseline", c->baseline != NULL ? moesim_json_text(c->baseline) : json_null());
    moesim_pricing_json(&r->pricing, o);
    json_object_set_new(o, "version", json_string(MOESIM_VERSION));
    json_object_set_new(o, "libraries", json_string(MOESIM_LIBRARIES));
    return o;
}

static json_t *counters(const moesim_outcome *o)
{
    json_t *all = json_object();
    for (uint32_t i = 0; i < o->num_counters; i++)
        json_object_set_new(all, o->counter[i].name, count((double)o->counter[i].value));
    return all;
}

static json_t *cell_object(const moesim_report *r, size_t cell)
{
    const moesim_policy_spec *spec = moesim_report_policy(r, cell);
    const moesim_outcome *outcome = &r->outcome[cell];
    json_t *o = json_object(), *ci = json_object();
    json_object_set_new(o, "policy", moesim_json_text(spec->given));
    json_object_set_new(o, "options", moesim_json_text(spec->effective));
    json_object_set_new(o, "cache", whole(moesim_report_cache(r, cell)));
    json_object_set_new(o, "n_requests", whole(outcome->num_requests));
    if (moesim_report_timed(r))
        json_object_set_new(o, "bandwidth_gbps", moesim_json_real(outcome->timing->bandwidth / 1e9));
    for (size_t k = 0; k < r->num_metrics; k++) {
        const char *name = moesim_figure_at(k).name;
        json_object_set_new(o, name, moesim_json_real(moesim_report_value(r, cell, k)));
        json_object_set_new(ci, name, interval(moesim_report_interval(r, cell, k)));
    }
    for (const moesim_count *c = moesim_counts; c->name != NULL; c++)
        json_object_set_new(o, c->name, count(c->get(outcome)));
    json_object_set_new(o, "ratio_p95", moesim_json_real(moesim_report_ratio_p95(r, cell)));
    json_object_set_new(o, "all_hit_rate", moesim_json_real(moesim_all_hit_rate(outcome)));
    json_object_set_new(o, "ci", ci);
    json_object_set_new(o, "clairvoyant", json_boolean((outcome->traits & MOESIM_CLAIRVOYANT) != 0));
    json_object_set_new(o, "non_causal", json_boolean((outcome->traits & MOESIM_NON_CAUSAL) != 0));
    json_object_set_new(o, "counters", counters(outcome));
    if (r->options->check_observed)
        json_object_set_new(o, "observed", json_pack("{s:o, s:o}", "checked", whole(outcome->observed_checked), "wrong",
                                                     whole(outcome->observed_wrong)));
    return o;
}

static json_t *pair_object(const moesim_report *r, const moesim_pair *pair)
{
    const moesim_paired *p = &pair->result;
    json_t *o = json_object();
    json_object_set_new(o, "policy", moesim_json_text(moesim_report_policy(r, pair->cell)->given));
    json_object_set_new(o, "baseline", moesim_json_text(moesim_report_policy(r, pair->baseline)->given));
    json_object_set_new(o, "cache", whole(moesim_report_cache(r, pair->cell)));
    json_object_set_new(o, "metric", json_string(moesim_figure_at(pair->metric).name));
    json_object_set_new(o, "difference", moesim_json_real(p->difference));
    json_object_set_new(o, "interval", interval(p->interval));
    json_object_set_new(o, "p", moesim_json_real(p->p));
    json_object_set_new(o, "test", json_string(p->exact ? "sign-flip, exact" : "sign-flip, 100000 seeded"));
    json_object_set_new(o, "n", whole(p->n));
    json_object_set_new(o, "distinguishable", json_boolean(moesim_pair_distinguishable(pair)));
    return o;
}

static json_t *gap_object(const moesim_report *r, const moesim_gap_row *row)
{
    const moesim_gap *g = &row->gap;
    json_t *o = json_object();
    json_object_set_new(o, "policy", moesim_json_text(moesim_report_policy(r, row->cell)->given));
    json_object_set_new(o, "cache", whole(moesim_report_cache(r, row->cell)));
    json_object_set_new(o, "misses_per_pass_above_belady", moesim_json_real(g->misses));
    json_object_set_new(o, "admission_share", moesim_json_real(g->admission));
    json_object_set_new(o, "victim_share", moesim_json_real(g->victim));
    json_object_set_new(o, "ci", json_pack("{s:o, s:o}", "admission_share", interval(g->admission_ci), "victim_share",
                                           interval(g->victim_ci)));
    json_object_set_new(o, "not_applicable", g->why != NULL ? json_string(g->why) : json_null());
    return o;
}

static json_t *bounds_array(const moesim_report *r)
{
    json_t *array = json_array();
    for (size_t i = 0; i < r->cache.n; i++) {
        json_t *o = json_object();
        json_object_set_new(o, "bound", json_string("offline-cost"));
        json_object_set_new(o, "cache", whole(r->cache.amount[i]));
        json_object_set_new(o, "ms_per_token", moesim_json_real(moesim_report_bound_ms(r, i)));
        json_object_set_new(o, "seconds", moesim_json_real(r->bound[i].seconds));
        json_object_set_new(o, "seconds_at_most", moesim_json_real(r->bound[i].upper));
        json_object_set_new(o, "lambda", moesim_json_real(r->bound[i].lambda));
        json_array_append_new(array, o);
    }
    return array;
}

moesim_code moesim_run_print_json(const moesim_report *r, FILE *out, moesim_error *err)
{
    json_t *o = json_object(), *results = json_array(), *paired = json_array(), *gap = json_array();
    for (size_t cell = 0; cell < r->num_cells; cell++)
        if (moesim_report_shown(r, cell))
            json_array_append_new(results, cell_object(r, cell));
    for (size_t i = 0; i < r->num_pairs; i++)
        json_array_append_new(paired, pair_object(r, &r->pair[i]));
    for (size_t i = 0; i < r->num_gaps; i++)
        json_array_append_new(gap, gap_object(r, &r->gap[i]));
    json_object_set_new(o, "schema", json_string(SCHEMA));
    json_object_set_new(o, "trace", trace_object(r));
    json_object_set_new(o, "config", config_object(r));
    json_object_set_new(o, "results", results);
    json_object_set_new(o, "paired", paired);
    json_object_set_new(o, "gap", gap);
    if (r->bound != NULL)
        json_object_set_new(o, "bounds", bounds_array(r));
    if (r->decisions_digest[0] != '\0')
        json_object_set_new(o, "decisions_digest", json_string(r->decisions_digest));
    return moesim_print_json(out, o, err);
}

char *moesim_run_config_json(const moesim_report *r)
{
    json_t *o = config_object(r);
    char *dump = json_dumps(o, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(o);
    return dump;
}
