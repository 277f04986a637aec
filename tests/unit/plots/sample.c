/* SPDX-License-Identifier: Apache-2.0
 *
 * Made-up results.
 */
#include "tests/unit/plots/sample.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/cells.h"
#include "tests/support/support.h"

#define ACTIVE 60.0              /* experts of an event */
#define LAYERS 20.0
#define PASSES 100.0             /* of a request */
#define TOKENS 200.0

static const char *const usual_policies[] = { "lru", "oled", "oled:confidence=lag1,adapt=on,dispatch=reuse", "surv", "belady",
                                              "ideal", "full" };
static const char *const usual_traces[] = { "traces/gsm8k.h5" };
static const char *const workloads[] = { "gsm8k", "mbpp", "wiki" };

const struct sample sample_usual = { usual_policies, 7, usual_traces, 1, 12, 4, 12, 3, "llada2.0-mini-like", "llada2.0-flash",
                                     "h200-host", 0 };

static const struct { const char *name, *unit; } reals[] = {
    { "bandwidth_gbps", "GB/s" }, { "misses_per_pass", "experts" }, { "misses_per_pass_lo", "experts" },
    { "misses_per_pass_hi", "experts" }, { "hit_rate", "" }, { "tpot_ms", "ms" }, { "tpot_lo", "ms" }, { "tpot_hi", "ms" },
    { "part_other_gpu_ms", "ms" }, { "part_hits_ms", "ms" }, { "part_link_ms", "ms" }, { "part_cpu_ms", "ms" },
    { "part_head_ms", "ms" },
};
enum { BANDWIDTH, MISSES, MISSES_LO, MISSES_HI, HITS, TPOT, TPOT_LO, TPOT_HI, PART_GPU, PART_HITS, PART_LINK, PART_CPU,
       PART_HEAD, NUM_REALS };
enum { R_PASSES, R_ACTIVE, R_MISSES, R_FLOOR, R_TOKENS, R_TPOT, NUM_SUMS };

struct tables {
    moesim_table *cells, *requests;
    int64_t *cell, *cache, *batch, *of_cell, *request;
    char **trace, **digest, **policy, **profile, **dtype, **workload;
    double *real[NUM_REALS], *sum[NUM_SUMS];
};

static void must(moesim_code code, const moesim_error *err)
{
    if (code != MOESIM_OK)
        test_die("%s", err->text);
}

static void add_attributes(const struct sample *s, moesim_result *r)
{
    const char *const text[][2] = {
        { "kind", "sweep" }, { "model_id", s->model }, { "priced_as", s->priced_as }, { "profile", s->profile },
        { "profile_label", "provisional" }, { "seed", "1" }, { "moesim_version", "0.1.0" },
        { "profile_digest", "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0" },
    };
    moesim_error err = MOESIM_ERROR_INIT;
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        must(moesim_result_set(r, text[i][0], text[i][1], &err), &err);
}

static void make_columns(struct tables *t)
{
    static const char *const sums[NUM_SUMS] = { "passes", "active", "misses", "floor", "output_tokens", "tpot_ms" };
    moesim_error err = MOESIM_ERROR_INIT;
    must(moesim_table_integers(t->cells, "cell", "", &t->cell, &err), &err);
    must(moesim_table_texts(t->cells, "trace", &t->trace, &err), &err);
    must(moesim_table_texts(t->cells, "trace_digest", &t->digest, &err), &err);
    must(moesim_table_texts(t->cells, "policy", &t->policy, &err), &err);
    must(moesim_table_integers(t->cells, "cache", "", &t->cache, &err), &err);
    must(moesim_table_integers(t->cells, "batch", "", &t->batch, &err), &err);
    must(moesim_table_texts(t->cells, "profile", &t->profile, &err), &err);
    must(moesim_table_texts(t->cells, "dtype", &t->dtype, &err), &err);
    for (size_t i = 0; i < NUM_REALS; i++)
        must(moesim_table_reals(t->cells, reals[i].name, reals[i].unit, &t->real[i], &err), &err);
    must(moesim_table_integers(t->requests, "cell", "", &t->of_cell, &err), &err);
    must(moesim_table_integers(t->requests, "request", "", &t->request, &err), &err);
    must(moesim_table_texts(t->requests, "workload", &t->workload, &err), &err);
    for (size_t i = 0; i < NUM_SUMS; i++)
        must(moesim_table_reals(t->requests, sums[i], "", &t->sum[i], &err), &err);
}

/* Share of the active experts that miss: falls with capacity, better policies lower, nothing for full. */
static double miss_share(const char *policy, size_t index, double cache)
{
    if (strcmp(policy, "full") == 0)
        return 0;
    const double floor = fmax(0, 1 - cache / ACTIVE);
    const double above = strcmp(policy, "ideal") == 0 ? 0 : exp(-cache / 70.0) * (0.62 - 0.08 * (double)index);
    return floor + (1 - floor) * above;
}

static void add_request(const struct sample *s, struct tables *t, size_t cell, size_t k, double share, double gbps)
{
    const size_t row = cell * s->num_requests + k, w = k % s->num_workloads;
    const double spread = 1 + 0.12 * sin(1.7 * (double)k) + 0.1 * (double)w + 0.02 * cos((double)(cell * 7 + k * 3));
    const double active = ACTIVE * LAYERS * PASSES, misses = fmin(active, active * share * spread);
    moesim_error err = MOESIM_ERROR_INIT;
    t->of_cell[row] = (int64_t)cell;
    t->request[row] = (int64_t)k;
    must(moesim_table_text(t->requests, t->workload, row, workloads[w % 3], &err), &err);
    t->sum[R_PASSES][row] = PASSES;
    t->sum[R_ACTIVE][row] = active;
    t->sum[R_MISSES][row] = misses;
    t->sum[R_FLOOR][row] = active * fmax(0, 1 - (double)t->cache[cell] / ACTIVE);
    t->sum[R_TOKENS][row] = TOKENS;
    t->sum[R_TPOT][row] = gbps > 0 ? 2.9 + misses * 6.29e6 / (gbps * 1e9) / TOKENS * 1e3 : (double)NAN;
}

/* Figures of a cell from its requests; the intervals are made up. */
static void fill_figures(const struct sample *s, struct tables *t, size_t cell, double gbps)
{
    double sum[NUM_SUMS] = { 0 };
    for (size_t k = 0; k < s->num_requests; k++)
        for (size_t i = 0; i < NUM_SUMS; i++)
            sum[i] += t->sum[i][cell * s->num_requests + k];
    const double misses = sum[R_MISSES] / sum[R_PASSES], tpot = sum[R_TPOT] / (double)s->num_requests;
    t->real[BANDWIDTH][cell] = gbps > 0 ? gbps : (double)NAN;
    t->real[MISSES][cell] = misses;
    t->real[MISSES_LO][cell] = misses * 0.94;
    t->real[MISSES_HI][cell] = misses * 1.05;
    t->real[HITS][cell] = 1 - sum[R_MISSES] / sum[R_ACTIVE];
    t->real[TPOT][cell] = tpot;
    t->real[TPOT_LO][cell] = 2.9 + (tpot - 2.9) * 0.94;
    t->real[TPOT_HI][cell] = 2.9 + (tpot - 2.9) * 1.05;
    t->real[PART_GPU][cell] = 1.6;
    t->real[PART_HITS][cell] = 1.1;
    t->real[PART_LINK][cell] = (tpot - 2.9) * 0.7;
    t->real[PART_CPU][cell] = (tpot - 2.9) * 0.3;
    t->real[PART_HEAD][cell] = 0.2;
}

static bool is_alone(const struct sample *s, size_t policy)
{
    return s->full_cache > 0 && strcmp(s->policy[policy], "full") == 0;
}

static void add_cell(const struct sample *s, struct tables *t, size_t cell, const size_t at[4])
{
    static const char digests[] = "8badf00d1234567890abcdef8badf00d1234567890abcdef8badf00d12345678";
    moesim_error err = MOESIM_ERROR_INIT;
    const double gbps = s->num_bandwidths > 0 ? 16.0 * (double)(1u << at[3]) : 0;
    t->cell[cell] = (int64_t)cell;
    t->cache[cell] = is_alone(s, at[1]) ? s->full_cache : 10 * ((int64_t)at[2] + 1);
    t->batch[cell] = 1;
    must(moesim_table_text(t->cells, t->trace, cell, s->trace[at[0]], &err), &err);
    must(moesim_table_text(t->cells, t->digest, cell, digests + at[0], &err), &err);
    must(moesim_table_text(t->cells, t->policy, cell, s->policy[at[1]], &err), &err);
    must(moesim_table_text(t->cells, t->profile, cell, s->profile, &err), &err);
    must(moesim_table_text(t->cells, t->dtype, cell, "bf16", &err), &err);
    const double share = miss_share(s->policy[at[1]], at[1], (double)t->cache[cell]);
    for (size_t k = 0; k < s->num_requests; k++)
        add_request(s, t, cell, k, share * (1 - 0.1 * (double)at[0]), gbps);
    fill_figures(s, t, cell, gbps);
}

void sample_result(const struct sample *s, moesim_result *out)
{
    moesim_error err = MOESIM_ERROR_INIT;
    struct tables t;
    const size_t bandwidths = s->num_bandwidths > 0 ? s->num_bandwidths : 1;
    const size_t all = s->num_traces * s->num_policies * s->num_caches * bandwidths;
    size_t cells = all, cell = 0;
    for (size_t i = 0; i < s->num_policies; i++)
        cells -= is_alone(s, i) ? s->num_traces * (s->num_caches - 1) * bandwidths : 0;
    moesim_result_init(out);
    add_attributes(s, out);
    must(moesim_result_table(out, "cells", cells, &t.cells, &err), &err);
    must(moesim_result_table(out, "requests", cells * s->num_requests, &t.requests, &err), &err);
    make_columns(&t);
    for (size_t i = 0; i < all; i++) {
        size_t at[4], rest = i;
        at[3] = rest % bandwidths;
        rest /= bandwidths;
        at[2] = rest % s->num_caches;
        rest /= s->num_caches;
        at[1] = rest % s->num_policies;
        at[0] = rest / s->num_policies;
        if (at[2] == 0 || !is_alone(s, at[1]))
            add_cell(s, &t, cell++, at);
    }
}

const moesim_series *sample_find(const moesim_chart *chart, const char *role, const char *name)
{
    for (size_t i = 0; i < chart->num_series; i++)
        if (strcmp(chart->series[i].role, role) == 0 && (name == NULL || strcmp(chart->series[i].name, name) == 0))
            return &chart->series[i];
    return NULL;
}

const moesim_series *sample_series(const moesim_chart *chart, const char *role, const char *name)
{
    const moesim_series *s = sample_find(chart, role, name);
    ck_assert_msg(s != NULL, "no series %s %s", role, name != NULL ? name : "");
    return s;
}

double sample_cell(const moesim_result *r, const char *policy, double cache, double gbps, const char *column)
{
    const moesim_table *t = moesim_result_find(r, "cells");
    for (size_t i = 0; i < t->rows; i++)
        if (strcmp(moesim_cells_text(t, "policy", i), policy) == 0 && moesim_cells_number(t, "cache", i) == cache &&
            (isnan(gbps) || moesim_cells_number(t, "bandwidth_gbps", i) == gbps))
            return moesim_cells_number(t, column, i);
    ck_abort_msg("no cell");
    return NAN;
}
