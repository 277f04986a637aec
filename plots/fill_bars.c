/* SPDX-License-Identifier: Apache-2.0
 *
 * Bars: a figure by policy, and by trace or workload where there are several; the parts of TPOT stacked. With one group the
 * bars lie, so that names of policies have room; with several they stand side by side.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plots/fill.h"

#define MAX_GROUPS 48u
#define THICKNESS 0.8            /* of a bar or of a group of bars, of its room */

struct groups {
    size_t n;
    const char *name[MAX_GROUPS];
    bool by_trace;               /* else by workload, the first being all */
};

static bool has_group(const struct groups *g, const char *name)
{
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->name[i], name) == 0)
            return true;
    return false;
}

static moesim_code add_group(struct groups *g, const char *name, moesim_error *err)
{
    if (has_group(g, name))
        return MOESIM_OK;
    if (g->n == MAX_GROUPS)
        return moesim_fail(err, MOESIM_E_LIMIT, "a figure of bars shows at most %u traces or workloads", MAX_GROUPS);
    g->name[g->n++] = name;
    return MOESIM_OK;
}

static moesim_code find_groups(const moesim_cells *c, const moesim_ratio *ratio, struct groups *g, moesim_error *err)
{
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && i < c->n; i++)
        code = add_group(g, moesim_cells_text(c->table, "trace", c->row[i]), err);
    g->by_trace = g->n > 1;
    const moesim_table *t = moesim_result_find(c->result, "requests");
    if (code != MOESIM_OK || g->by_trace || t == NULL || c->n == 0)
        return code;
    size_t begin = 0, end = 0;
    g->n = 0;
    code = add_group(g, "all", err);
    if (code == MOESIM_OK)
        code = moesim_cells_requests(c, c->row[0], &begin, &end, err);
    for (size_t i = begin; code == MOESIM_OK && i < end && moesim_table_find(t, ratio->value) != NULL; i++)
        code = add_group(g, moesim_cells_text(t, "workload", i), err);
    if (g->n == 2)               /* all and its only workload are one */
        g->n = 1;
    return code;
}

/* The bar of a policy in a group; y NaN where there is none. */
static moesim_code bar_value(const moesim_cells *c, const moesim_plot_request *q, const moesim_figure *f,
                             const moesim_ratio *ratio, const struct groups *g, size_t group,
                             const struct moesim_shown_policy *policy, moesim_point *out, moesim_error *err)
{
    *out = moesim_point_none();
    for (size_t i = 0; i < c->n; i++) {
        const size_t row = c->row[i];
        if (!moesim_cells_is(c, row, policy))
            continue;
        if (g->by_trace && strcmp(moesim_cells_text(c->table, "trace", row), g->name[group]) != 0)
            continue;
        if (g->by_trace || group == 0) {
            moesim_cells_figure(c, f->value, row, out);
            return MOESIM_OK;
        }
        moesim_ratio of_workload = *ratio;
        of_workload.workload = g->name[group];
        return moesim_cells_ratio(c, q, &of_workload, row, SIZE_MAX, out, err);
    }
    return MOESIM_OK;
}

/* ---- drawing ------------------------------------------------------------------------------------------------------- */

/* A lying bar in a row from `from` to `to`. */
static moesim_point lying(size_t row, double from, double to)
{
    moesim_point p = moesim_point_none();
    p.x = to;
    p.y = (double)row;
    p.from = from;
    p.to = to;
    p.lo = p.y - THICKNESS / 2;
    p.hi = p.y + THICKNESS / 2;
    return p;
}

/* Interval and value at the end of a lying bar. */
static moesim_code lying_ends(size_t row, const moesim_point *value, moesim_series *error, moesim_series *text,
                              moesim_error *err)
{
    moesim_point p = moesim_point_none();
    p.x = value->y;
    p.y = (double)row;
    p.from = value->lo;
    p.to = value->hi;
    moesim_code code = isnan(value->lo) ? MOESIM_OK : moesim_series_add(error, p, err);
    p.x = isnan(value->hi) ? value->y : fmax(value->hi, value->y);
    p.lo = value->y;
    return code == MOESIM_OK ? moesim_series_add(text, p, err) : code;
}

/* Rows of lying bars, one a policy, from the top. */
static moesim_code policy_rows(const moesim_cells *c, moesim_chart *chart, moesim_error *err)
{
    char label[MOESIM_RESULT_TEXT_BYTES + 8];
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; code == MOESIM_OK && i < c->num_policies; i++) {
        moesim_cells_label(&c->policy[i], label, sizeof label);
        code = moesim_axis_tick(&chart->y, (double)i, label, err);
    }
    chart->y.lo = (double)c->num_policies - 0.4;
    chart->y.hi = -0.6;
    chart->x.lo = 0;
    chart->height = fmin(1.2, 0.12 + 0.055 * (double)c->num_policies);
    return code;
}

/* Ticks at round numbers, not more than a narrow figure has room for, and room for the values behind the bars. */
static moesim_code value_axis(moesim_axis *axis, const moesim_series *text, moesim_error *err)
{
    double most = 0;
    char label[32];
    moesim_code code = MOESIM_OK;
    for (size_t i = 0; i < text->n; i++)
        most = fmax(most, text->point[i].x);
    if (!(most > 0) || !isfinite(most))
        return MOESIM_OK;
    const double ten = pow(10, floor(log10(most / 4)));
    const double step = most / 4 >= 5 * ten ? 5 * ten : most / 4 >= 2 * ten ? 2 * ten : ten;
    for (int i = 0; code == MOESIM_OK && i * step <= most * 1.001; i++) {
        (void)snprintf(label, sizeof label, "%g", i * step);
        code = moesim_axis_tick(axis, i * step, label, err);
    }
    axis->hi = 1.22 * most;
    return code;
}

struct bars {
    const moesim_cells *cells;
    const moesim_plot_request *request;
    const moesim_figure *figure;
    moesim_ratio ratio;
    struct groups groups;
    bool bounded;                /* offline-cost comes last */
};

/* The bound below the policies. */
static moesim_code lie_bound(const struct bars *b, moesim_series *error, moesim_series *text, moesim_chart *chart,
                             moesim_error *err)
{
    const size_t row = b->cells->num_policies;
    moesim_series *s;
    moesim_point v = moesim_point_none();
    v.y = moesim_bound_at(b->cells, NULL, 0, NULL);
    moesim_code code = moesim_axis_tick(&chart->y, (double)row, MOESIM_BOUND_NAME, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "bar-bound", "", MOESIM_BOUND_LOOK, &s, err);
    if (code == MOESIM_OK)
        code = moesim_series_add(s, lying(row, 0, v.y), err);
    chart->y.lo += 1;
    chart->height = fmin(1.2, chart->height + 0.055);
    return code == MOESIM_OK ? lying_ends(row, &v, error, text, err) : code;
}

static moesim_code lie(const struct bars *b, moesim_chart *chart, moesim_error *err)
{
    moesim_series *error, *text, *s;
    moesim_point v;
    moesim_code code = policy_rows(b->cells, chart, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "xerror", "", 0, &error, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "value", "", 0, &text, err);
    for (size_t i = 0; code == MOESIM_OK && i < b->cells->num_policies; i++) {
        const struct moesim_shown_policy *p = &b->cells->policy[i];
        code = bar_value(b->cells, b->request, b->figure, &b->ratio, &b->groups, 0, p, &v, err);
        if (code == MOESIM_OK)
            code = moesim_chart_add(chart, p->bound ? "bar-bound" : "bar", "", p->look, &s, err);
        if (code == MOESIM_OK && !isnan(v.y))
            code = moesim_series_add(s, lying(i, 0, v.y), err);
        if (code == MOESIM_OK && !isnan(v.y))
            code = lying_ends(i, &v, error, text, err);
    }
    if (code == MOESIM_OK && b->bounded)
        code = lie_bound(b, error, text, chart, err);
    if (code == MOESIM_OK)
        code = value_axis(&chart->x, text, err);
    (void)snprintf(chart->x.label, sizeof chart->x.label, "%s", b->figure->label);
    return code;
}

/* A standing bar in a group, the index-th of it. */
static moesim_point standing(const struct bars *b, size_t group, size_t index, const moesim_point *value)
{
    const double width = THICKNESS / (double)(b->cells->num_policies + (b->bounded ? 1u : 0u));
    moesim_point p = *value;
    p.from = (double)group - THICKNESS / 2 + width * (double)index;
    p.to = p.from + width;
    p.x = (p.from + p.to) / 2;
    p.lo = 0;
    p.hi = p.y;
    return p;
}

/* The bound right of the policies; of workloads it is not known apart. */
static moesim_code stand_bound(const struct bars *b, moesim_chart *chart, moesim_error *err)
{
    moesim_series *s;
    moesim_code code = moesim_chart_add(chart, "bar-bound", MOESIM_BOUND_NAME, MOESIM_BOUND_LOOK, &s, err);
    for (size_t g = 0; code == MOESIM_OK && g < (b->groups.by_trace ? b->groups.n : 1); g++) {
        moesim_point v = moesim_point_none();
        v.y = moesim_bound_at(b->cells, NULL, 0, b->groups.by_trace ? b->groups.name[g] : NULL);
        if (!isnan(v.y))
            code = moesim_series_add(s, standing(b, g, b->cells->num_policies, &v), err);
    }
    return code;
}

/* Standing bars of one policy, one a group. */
static moesim_code stand_one(const struct bars *b, size_t index, moesim_series *error, moesim_chart *chart, moesim_error *err)
{
    const struct moesim_shown_policy *policy = &b->cells->policy[index];
    char label[MOESIM_RESULT_TEXT_BYTES + 8];
    moesim_series *s;
    moesim_point v;
    moesim_cells_label(policy, label, sizeof label);
    moesim_code code = moesim_chart_add(chart, policy->bound ? "bar-bound" : "bar", label, policy->look, &s, err);
    for (size_t g = 0; code == MOESIM_OK && g < b->groups.n; g++) {
        code = bar_value(b->cells, b->request, b->figure, &b->ratio, &b->groups, g, policy, &v, err);
        if (code != MOESIM_OK || isnan(v.y))
            continue;
        const moesim_point p = standing(b, g, index, &v);
        v.x = p.x;
        code = moesim_series_add(s, p, err);
        if (code == MOESIM_OK && !isnan(v.lo))
            code = moesim_series_add(error, v, err);
    }
    return code;
}

/* Traces without folder and ending. */
static void group_name(const char *name, char out[MOESIM_RESULT_TEXT_BYTES])
{
    const char *slash = strrchr(name, '/');
    (void)snprintf(out, MOESIM_RESULT_TEXT_BYTES, "%s", slash != NULL ? slash + 1 : name);
    char *dot = strrchr(out, '.');
    if (dot != NULL && dot > out && strcmp(dot, ".h5") == 0)
        *dot = '\0';
}

static moesim_code stand(const struct bars *b, moesim_chart *chart, moesim_error *err)
{
    moesim_series *error;
    moesim_code code = moesim_chart_add(chart, "yerror", "", 0, &error, err);
    for (size_t i = 0; code == MOESIM_OK && i < b->cells->num_policies; i++)
        code = stand_one(b, i, error, chart, err);
    if (code == MOESIM_OK && b->bounded)
        code = stand_bound(b, chart, err);
    for (size_t g = 0; code == MOESIM_OK && g < b->groups.n; g++) {
        char name[MOESIM_RESULT_TEXT_BYTES];
        group_name(b->groups.name[g], name);
        code = moesim_axis_tick(&chart->x, (double)g, name, err);
    }
    chart->x.lo = -0.6;
    chart->x.hi = (double)b->groups.n - 0.4;
    chart->y.lo = 0;
    (void)snprintf(chart->y.label, sizeof chart->y.label, "%s", b->figure->label);
    return code;
}

moesim_code moesim_fill_bars(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                             moesim_chart *chart, moesim_error *err)
{
    static const moesim_ratio misses = { "misses", NULL, "passes", NULL };
    static const moesim_ratio tpot = { "tpot_ms", "output_tokens", "output_tokens", NULL };
    moesim_cells c;
    struct bars b = { .cells = &c, .request = request, .figure = figure };
    b.ratio = strcmp(figure->value, "tpot_ms") == 0 ? tpot : misses;
    moesim_code code = moesim_cells_select(result, request, request->trace == NULL ? MOESIM_OVER_TRACE : 0, chart, &c, err);
    if (code == MOESIM_OK)
        code = find_groups(&c, &b.ratio, &b.groups, err);
    if (code == MOESIM_OK)
        b.bounded = moesim_bound_shown(&c, figure, chart);
    if (code == MOESIM_OK)
        code = b.groups.n > 1 ? stand(&b, chart, err) : lie(&b, chart, err);
    if (code == MOESIM_OK)
        code = moesim_caption_cells(&c, chart, err);
    moesim_cells_fini(&c);
    return code;
}

/* ---- breakdown ----------------------------------------------------------------------------------------------------- */

static const struct { const char *column, *name; } parts[] = {
    { "part_other_gpu_ms", "attention, router, shared expert" },
    { "part_other_host_ms", "host overhead" },
    { "part_sync_ms", "sync" },
    { "part_hits_ms", "resident experts" },
    { "part_link_ms", "link and moved experts" },
    { "part_cpu_ms", "CPU experts" },
    { "part_dram_ms", "DRAM shared" },
    { "part_policy_ms", "policy" },
    { "part_head_ms", "head" },
    { "waited_ms", "waiting for prefills" },
};
#define NUM_PARTS (sizeof parts / sizeof parts[0])

static bool part_is_there(const moesim_cells *c, const char *column)
{
    for (size_t i = 0; i < c->n; i++)
        if (moesim_cells_number(c->table, column, c->row[i]) > 0)
            return true;
    return false;
}

/* One part of all policies, on top of what `base` [num_policies] holds, which grows by it. */
static moesim_code stack_part(const moesim_cells *c, size_t part, double *base, moesim_chart *chart, moesim_error *err)
{
    moesim_series *s;
    if (!part_is_there(c, parts[part].column))
        return MOESIM_OK;
    moesim_code code = moesim_chart_add(chart, "part", parts[part].name, (uint32_t)part, &s, err);
    for (size_t i = 0; code == MOESIM_OK && i < c->n; i++) {
        const double v = moesim_cells_number(c->table, parts[part].column, c->row[i]);
        size_t k = 0;
        while (k < c->num_policies && !moesim_cells_is(c, c->row[i], &c->policy[k]))
            k++;
        if (isnan(v) || k == c->num_policies)
            continue;
        code = moesim_series_add(s, lying(k, base[k], base[k] + v), err);
        base[k] += v;
    }
    return code;
}

moesim_code moesim_fill_breakdown(const moesim_figure *figure, const moesim_result *result, const moesim_plot_request *request,
                                  moesim_chart *chart, moesim_error *err)
{
    moesim_cells c;
    double base[1024] = { 0 };   /* as many policies as a result may have */
    moesim_series *error, *text;
    moesim_code code = moesim_cells_select(result, request, 0, chart, &c, err);
    if (code == MOESIM_OK)
        code = policy_rows(&c, chart, err);
    for (size_t part = 0; code == MOESIM_OK && part < NUM_PARTS; part++)
        code = stack_part(&c, part, base, chart, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "xerror", "", 0, &error, err);
    if (code == MOESIM_OK)
        code = moesim_chart_add(chart, "value", "", 0, &text, err);
    for (size_t i = 0; code == MOESIM_OK && i < c.n; i++) {
        moesim_point v = moesim_point_none();
        size_t k = 0;
        while (k + 1 < c.num_policies && !moesim_cells_is(&c, c.row[i], &c.policy[k]))
            k++;
        moesim_cells_figure(&c, figure->value, c.row[i], &v);
        if (!isnan(v.y))
            code = lying_ends(k, &v, error, text, err);
    }
    if (code == MOESIM_OK)
        code = value_axis(&chart->x, text, err);
    (void)snprintf(chart->x.label, sizeof chart->x.label, "%s", figure->label);
    if (code == MOESIM_OK)
        code = moesim_caption_cells(&c, chart, err);
    moesim_cells_fini(&c);
    return code;
}
