/* SPDX-License-Identifier: Apache-2.0
 *
 * The tables of one part: /cells, a row a cell, /requests, a row a counted request of a cell, and /layers, a row a MoE layer
 * of a cell.
 */
#include "cli/sweep.h"

#include <math.h>
#include <string.h>

#include "cli/figures.h"

typedef struct job {
    const moesim_sweep *sweep;
    const moesim_sweep_part *part;
    const size_t *index;
    const moesim_cell_result *result;
    size_t n;
    bool timed;
} job;

/* Scope global has no slots: what is measured in them is undefined. */
static bool is_global(const job *j)
{
    return j->sweep->options->modes.scope == MOESIM_SCOPE_GLOBAL;
}

/* ---- cells ----------------------------------------------------------------------------------------------------------- */

/* The texts of a cell. Returned words live as long as the sweep. */
static const char *word_of(const job *j, size_t i, size_t which)
{
    const moesim_policy_spec *policy = moesim_sweep_cell_at(j->sweep, j->part, j->index[i]).policy;
    const moesim_pricing *pricing = &j->part->pricing;
    switch (which) {
    case 0: return j->part->trace->path;
    case 1: return j->part->trace->digest;
    case 2: return policy->given;
    case 3: return policy->effective;
    case 4: return pricing->profile != NULL ? pricing->profile->name : "";
    default: return pricing->model != NULL ? moesim_dtype_names[pricing->dtype] : "";
    }
}

#define CACHE 1u

static int64_t number_of(const job *j, size_t i, size_t which)
{
    const moesim_outcome *o = j->result[i].outcome;
    switch (which) {
    case 0: return (int64_t)(j->part->first + j->index[i]);
    case CACHE: return (int64_t)moesim_sweep_cell_at(j->sweep, j->part, j->index[i]).cache;
    case 2: return j->part->batch;
    case 3: return o->num_requests;
    case 4: return (o->traits & MOESIM_CLAIRVOYANT) != 0;
    default: return (o->traits & MOESIM_NON_CAUSAL) != 0;
    }
}

static moesim_code add_words(const job *j, moesim_table *t, size_t which, const char *name, moesim_error *err)
{
    char **column = NULL;
    moesim_code code = moesim_table_texts(t, name, &column, err);
    for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
        code = moesim_table_text(t, column, i, word_of(j, i, which), err);
    return code;
}

static moesim_code add_numbers(const job *j, moesim_table *t, size_t which, const char *name, moesim_error *err)
{
    int64_t *column = NULL;
    const moesim_code code = moesim_table_integers(t, name, which == CACHE && is_global(j) ? "bytes" : "", &column, err);
    for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
        column[i] = number_of(j, i, which);
    return code;
}

static moesim_code add_bandwidth(const job *j, moesim_table *t, moesim_error *err)
{
    double *column = NULL;
    const moesim_code code = moesim_table_reals(t, "bandwidth_gbps", "GB/s", &column, err);
    for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
        column[i] = j->timed ? j->result[i].timing->bandwidth / 1e9 : (double)NAN;
    return code;
}

/* What identifies a cell, in the order of the columns. */
static moesim_code add_identity(const job *j, moesim_table *t, moesim_error *err)
{
    static const struct { const char *name; char kind; size_t which; } list[] = {
        { "cell", 'n', 0 },  { "trace", 'w', 0 },          { "trace_digest", 'w', 1 }, { "policy", 'w', 2 },
        { "options", 'w', 3 }, { "cache", 'n', CACHE },    { "bandwidth_gbps", 'b', 0 }, { "batch", 'n', 2 },
        { "profile", 'w', 4 }, { "dtype", 'w', 5 },        { "requests", 'n', 3 },     { "clairvoyant", 'n', 4 },
        { "non_causal", 'n', 5 },
    };
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; k < sizeof list / sizeof list[0] && code == MOESIM_OK; k++)
        code = list[k].kind == 'n'   ? add_numbers(j, t, list[k].which, list[k].name, err)
               : list[k].kind == 'w' ? add_words(j, t, list[k].which, list[k].name, err)
                                     : add_bandwidth(j, t, err);
    return code;
}

static moesim_code add_counts(const job *j, moesim_table *t, moesim_error *err)
{
    double *column = NULL;
    moesim_code code = MOESIM_OK;
    for (const moesim_count *c = moesim_counts; c->name != NULL && code == MOESIM_OK; c++) {
        code = moesim_table_reals(t, c->name, c->unit, &column, err);
        for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
            column[i] = c->get(j->result[i].outcome);
    }
    if (code == MOESIM_OK)
        code = moesim_table_reals(t, "ratio_p95", "", &column, err);
    for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
        column[i] = moesim_modes_ratio_p95(&j->sweep->options->modes, j->result[i].outcome, (uint64_t)number_of(j, i, CACHE));
    if (code == MOESIM_OK)
        code = moesim_table_reals(t, "all_hit_rate", "", &column, err);
    for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
        column[i] = moesim_all_hit_rate(j->result[i].outcome);
    return code;
}

/* ---- requests -------------------------------------------------------------------------------------------------------- */

#define SUM(name, field, unit) { name, unit, offsetof(moesim_sums, field) }
static const struct { const char *name, *unit; size_t offset; } sums[] = {
    SUM("output_tokens", output_tokens, ""),  SUM("passes", passes, ""),
    SUM("events", events, ""),                SUM("active", active, ""),
    SUM("hits", hits, ""),                    SUM("misses", misses, ""),
    SUM("floor", floor, ""),                  SUM("utilisation_sum", utilisation, ""),
    SUM("moved", moved, ""),                  SUM("cpu", cpu, ""),
    SUM("prefetched", prefetched, ""),        SUM("moved_bytes", moved_bytes, "bytes"),
    SUM("prefetched_bytes", prefetched_bytes, "bytes"), SUM("unused", unused, ""),
};

static bool of_slots(size_t offset)
{
    return offset == offsetof(moesim_sums, floor) || offset == offsetof(moesim_sums, utilisation);
}

static double decode_ms(const moesim_time_sums *s) { return 1e3 * (s->decode.total + s->waited); }
static double ttft_ms(const moesim_time_sums *s) { return 1e3 * s->ttft; }
static double miss_ms(const moesim_time_sums *s) { return 1e3 * (s->decode.link + s->decode.cpu + s->decode.dram); }
static double tpot_ms(const moesim_time_sums *s) { return moesim_time_metric_value(moesim_time_metrics, s); }

static const struct { const char *name; double (*get)(const moesim_time_sums *s); } times[] = {
    { "tpot_ms", tpot_ms }, { "ttft_ms", ttft_ms }, { "decode_ms", decode_ms }, { "missed_ms", miss_ms },
};

static moesim_code add_request_names(const job *j, moesim_table *t, moesim_error *err)
{
    int64_t *cell = NULL, *request = NULL;
    char **workload = NULL;
    moesim_code code = moesim_table_integers(t, "cell", "", &cell, err);
    if (code == MOESIM_OK)
        code = moesim_table_integers(t, "request", "", &request, err);
    if (code == MOESIM_OK)
        code = moesim_table_texts(t, "workload", &workload, err);
    for (size_t i = 0, row = 0; i < j->n; i++) {
        const moesim_outcome *o = j->result[i].outcome;
        for (uint32_t r = 0; r < o->num_requests && code == MOESIM_OK; r++, row++) {
            cell[row] = number_of(j, i, 0);
            request[row] = o->request_id[r];
            const moesim_trace_request *of = moesim_trace_get_request(j->part->trace->trace, o->request_id[r]);
            code = moesim_table_text(t, workload, row, of->workload, err);
        }
    }
    return code;
}

static moesim_code add_sums(const job *j, moesim_table *t, moesim_error *err)
{
    double *column = NULL;
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; k < sizeof sums / sizeof sums[0] && code == MOESIM_OK; k++) {
        code = moesim_table_reals(t, sums[k].name, sums[k].unit, &column, err);
        for (size_t i = 0, row = 0; i < j->n && code == MOESIM_OK; i++)
            for (uint32_t r = 0; r < j->result[i].outcome->num_requests; r++)
                memcpy(&column[row++], (const char *)&j->result[i].outcome->request[r] + sums[k].offset, sizeof *column);
        if (code == MOESIM_OK && is_global(j) && of_slots(sums[k].offset))
            for (size_t row = 0; row < t->rows; row++)
                column[row] = NAN;
    }
    return code;
}

static moesim_code add_times(const job *j, moesim_table *t, moesim_error *err)
{
    double *column = NULL;
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; j->timed && k < sizeof times / sizeof times[0] && code == MOESIM_OK; k++) {
        code = moesim_table_reals(t, times[k].name, "ms", &column, err);
        for (size_t i = 0, row = 0; i < j->n && code == MOESIM_OK; i++)
            for (uint32_t r = 0; r < j->result[i].timing->num_requests; r++)
                column[row++] = times[k].get(&j->result[i].timing->request[r]);
    }
    return code;
}

/* ---- layers ---------------------------------------------------------------------------------------------------------- */

#define LAYER(field, unit) { #field, unit, offsetof(moesim_layer_sums, field) }
static const struct { const char *name, *unit; size_t offset; } layer_sums[] = {
    LAYER(events, ""), LAYER(active, ""), LAYER(hits, ""),           LAYER(misses, ""),
    LAYER(moved, ""),  LAYER(cpu, ""),    LAYER(moved_bytes, "bytes"),
};

static double mean(uint64_t sum, uint64_t n) { return n > 0 ? (double)sum / (double)n : (double)NAN; }
static double slots_mean(const moesim_layer_sums *s) { return mean(s->slots, s->events); }
static double active_mean(const moesim_layer_sums *s) { return mean(s->active, s->events); }
static double hit_rate(const moesim_layer_sums *s) { return mean(s->hits, s->active); }

static const struct { const char *name; double (*get)(const moesim_layer_sums *s); } layer_means[] = {
    { "slots_mean", slots_mean }, { "active_mean", active_mean }, { "hit_rate", hit_rate },
};

#define SLOTS 0u

static moesim_code add_layer_names(const job *j, moesim_table *t, moesim_error *err)
{
    const int32_t *id = moesim_trace_layer_ids(j->part->trace->trace);
    int64_t *cell = NULL, *layer = NULL, *in_model = NULL;
    if (moesim_table_integers(t, "cell", "", &cell, err) != MOESIM_OK ||
        moesim_table_integers(t, "layer", "", &layer, err) != MOESIM_OK ||
        moesim_table_integers(t, "moe_layer_id", "", &in_model, err) != MOESIM_OK)
        return err->code;
    for (size_t i = 0, row = 0; i < j->n; i++)
        for (uint32_t l = 0; l < j->result[i].outcome->num_layers; l++, row++) {
            cell[row] = number_of(j, i, 0);
            layer[row] = l;
            in_model[row] = id[l];
        }
    return MOESIM_OK;
}

static moesim_code add_layer_sums(const job *j, moesim_table *t, moesim_error *err)
{
    int64_t *column = NULL;
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; k < sizeof layer_sums / sizeof layer_sums[0] && code == MOESIM_OK; k++) {
        code = moesim_table_integers(t, layer_sums[k].name, layer_sums[k].unit, &column, err);
        for (size_t i = 0, row = 0; i < j->n && code == MOESIM_OK; i++)
            for (uint32_t l = 0; l < j->result[i].outcome->num_layers; l++) {
                uint64_t sum;
                memcpy(&sum, (const char *)&j->result[i].outcome->layer[l] + layer_sums[k].offset, sizeof sum);
                column[row++] = (int64_t)sum;
            }
    }
    return code;
}

static moesim_code add_layer_means(const job *j, moesim_table *t, moesim_error *err)
{
    double *column = NULL;
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; k < sizeof layer_means / sizeof layer_means[0] && code == MOESIM_OK; k++) {
        code = moesim_table_reals(t, layer_means[k].name, "", &column, err);
        for (size_t i = 0, row = 0; i < j->n && code == MOESIM_OK; i++)
            for (uint32_t l = 0; l < j->result[i].outcome->num_layers; l++)
                column[row++] = k == SLOTS && is_global(j) ? (double)NAN
                                                           : layer_means[k].get(&j->result[i].outcome->layer[l]);
    }
    return code;
}

static moesim_code add_layers(const job *j, moesim_result *out, moesim_error *err)
{
    moesim_table *t = NULL;
    size_t rows = 0;
    for (size_t i = 0; i < j->n; i++)
        rows += j->result[i].outcome->num_layers;
    if (moesim_result_table(out, "layers", rows, &t, err) != MOESIM_OK || add_layer_names(j, t, err) != MOESIM_OK ||
        add_layer_sums(j, t, err) != MOESIM_OK)
        return err->code;
    return add_layer_means(j, t, err);
}

moesim_code moesim_sweep_tables(const moesim_sweep *s, const moesim_sweep_part *part, const size_t *index,
                                const moesim_cell_result *result, size_t n, moesim_result *out, moesim_error *err)
{
    const job j = { s, part, index, result, n, part->pricing.mode != MOESIM_TIME_COUNT };
    moesim_table *cells = NULL, *requests = NULL;
    size_t rows = 0;
    for (size_t i = 0; i < n; i++)
        rows += result[i].outcome->num_requests;
    if (moesim_result_table(out, "cells", n, &cells, err) != MOESIM_OK ||
        moesim_result_table(out, "requests", rows, &requests, err) != MOESIM_OK ||
        add_identity(&j, cells, err) != MOESIM_OK ||
        moesim_sweep_figures(s, result, n, j.timed, is_global(&j), cells, err) != MOESIM_OK ||
        add_counts(&j, cells, err) != MOESIM_OK ||
        moesim_sweep_bound(s, part, index, result, n, cells, err) != MOESIM_OK ||
        add_request_names(&j, requests, err) != MOESIM_OK ||
        add_sums(&j, requests, err) != MOESIM_OK || add_times(&j, requests, err) != MOESIM_OK)
        return err->code;
    return add_layers(&j, out, err);
}
