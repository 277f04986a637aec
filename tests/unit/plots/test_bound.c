/* SPDX-License-Identifier: Apache-2.0
 *
 * offline-cost in figures of time, and capacities that are bytes.
 */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plots/cells.h"
#include "plots/chart.h"
#include "plots/figures.h"
#include "tests/unit/plots/sample.h"

static moesim_result result;
static moesim_chart chart;
static moesim_error err;

#define find(role, name) sample_find(&chart, role, name)

static double bound(double cache, double gbps, const char *trace)
{
    return 100 / cache + 10 / gbps + (double)strlen(trace);
}

/* A sample whose cells carry the bound, but for those of host modes. */
static void make(const struct sample *s)
{
    double *column = NULL;
    sample_result(s, &result);
    moesim_table *t = &result.table[0];
    ck_assert_str_eq(t->name, "cells");
    ck_assert_int_eq(moesim_table_reals(t, "tpot_bound_ms", "ms", &column, &err), MOESIM_OK);
    for (size_t i = 0; i < t->rows; i++) {
        const char *policy = moesim_cells_text(t, "policy", i);
        if (strcmp(policy, "full") != 0 && strcmp(policy, "ideal") != 0)
            column[i] = bound(moesim_cells_number(t, "cache", i), moesim_cells_number(t, "bandwidth_gbps", i),
                              moesim_cells_text(t, "trace", i));
    }
}

static void draw(const char *name, double cache, double gbps)
{
    const moesim_plot_request q = { .cache = cache, .bandwidth = gbps, .batch = NAN, .width_mm = 80 };
    const moesim_figure *figure;
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find(name, &figure, &err), MOESIM_OK);
    ck_assert_msg(moesim_figure_chart(figure, &result, "r.h5", &q, &chart, &err) == MOESIM_OK, "%s", err.text);
}

static void done(void)
{
    moesim_result_fini(&result);
    moesim_chart_fini(&chart);
}

START_TEST(test_lines)
{
    make(&sample_usual);
    draw("tpot-curve", NAN, 32);
    const moesim_series *s = find("bound", "offline-cost");
    ck_assert(s != NULL && s->n == 12);
    for (size_t i = 0; i < 12; i++) {
        ck_assert_double_eq(s->point[i].x, 10.0 * (double)(i + 1));
        ck_assert_double_eq(s->point[i].y, bound(s->point[i].x, 32, sample_usual.trace[0]));
    }
    ck_assert_ptr_nonnull(strstr(chart.footer, "offline-cost: lower bound"));
    moesim_chart_fini(&chart);
    draw("bandwidth", 20, NAN);
    s = find("bound", "offline-cost");
    ck_assert(s != NULL && s->n == 4);
    for (size_t i = 0; i < 4; i++)
        ck_assert_double_eq(s->point[i].y, bound(20, s->point[i].x, sample_usual.trace[0]));
    done();
}
END_TEST

/* A row below those of the policies, without an interval. */
START_TEST(test_lying_bars)
{
    struct sample s = sample_usual;
    s.num_workloads = 1;
    make(&s);
    draw("tpot", 40, 16);
    ck_assert_uint_eq(chart.y.num_ticks, s.num_policies + 1);
    ck_assert_str_eq(chart.y.tick[s.num_policies].text, "offline-cost");
    const double row = (double)s.num_policies;
    bool drawn = false;
    for (size_t i = 0; i < chart.num_series; i++)
        for (size_t k = 0; k < chart.series[i].n && strcmp(chart.series[i].role, "bar-bound") == 0; k++)
            drawn = drawn || (chart.series[i].point[k].y == row && chart.series[i].point[k].to == bound(40, 16, s.trace[0]));
    ck_assert(drawn && chart.y.lo > row);
    done();
}
END_TEST

/* Of all workloads together, or of each trace. */
START_TEST(test_standing_bars)
{
    static const char *const traces[] = { "a.h5", "longer.h5" };
    make(&sample_usual);
    draw("tpot", 40, 16);
    const moesim_series *s = find("bar-bound", "offline-cost");
    ck_assert(s != NULL && s->n == 1 && s->point[0].hi == bound(40, 16, sample_usual.trace[0]));
    done();
    struct sample two = sample_usual;
    two.trace = traces;
    two.num_traces = 2;
    make(&two);
    draw("tpot", 40, 16);
    s = find("bar-bound", "offline-cost");
    ck_assert(s != NULL && s->n == 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert_double_eq(s->point[i].hi, bound(40, 16, traces[i]));
        ck_assert(s->point[i].from > (double)i - 0.5 && s->point[i].to < (double)i + 0.5);
    }
    done();
}
END_TEST

/* Counts and parts have no bound in milliseconds, and results without the column none at all. */
START_TEST(test_where_it_says_nothing)
{
    static const char *const figures[] = { "curve", "misses", "gap", "breakdown" };
    make(&sample_usual);
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        const bool held = i == 1 || i == 3;
        draw(figures[i], held ? 40 : (double)NAN, 16);
        ck_assert(find("bound", "offline-cost") == NULL && strstr(chart.footer, "offline-cost") == NULL);
        moesim_chart_fini(&chart);
    }
    moesim_result_fini(&result);
    sample_result(&sample_usual, &result);
    draw("tpot-curve", NAN, 16);
    ck_assert(find("bound", "offline-cost") == NULL && strstr(chart.footer, "offline-cost") == NULL);
    done();
}
END_TEST

START_TEST(test_bytes)
{
    static const char *const policies[] = { "lru", "belady" };
    struct sample s = sample_usual;
    s.policy = policies;
    s.num_policies = 2;
    s.num_bandwidths = 0;
    sample_result(&s, &result);
    moesim_table *t = &result.table[0];
    for (size_t c = 0; c < t->num_columns; c++)
        if (strcmp(t->column[c].name, "cache") == 0) {
            memcpy(t->column[c].unit, "bytes", 6);
            for (size_t i = 0; i < t->rows; i++)
                t->column[c].integer[i] *= 1 << 20;
        }
    draw("curve", NAN, NAN);
    ck_assert_str_eq(chart.x.label, "cache over all layers [MiB]");
    const moesim_series *lru = find("line", "lru");
    ck_assert(lru != NULL && lru->n == 12 && lru->point[11].x == 120);
    for (size_t i = 0; i < chart.num_series; i++)
        ck_assert_str_ne(chart.series[i].role, "floor");
    moesim_chart_fini(&chart);
    draw("misses", NAN, NAN);
    ck_assert_ptr_nonnull(strstr(chart.subtitle, "60 MiB over all layers"));
    done();
}
END_TEST

int main(void)
{
    Suite *s = suite_create("plots bound");
    TCase *t = tcase_create("bound");
    tcase_add_test(t, test_lines);
    tcase_add_test(t, test_lying_bars);
    tcase_add_test(t, test_standing_bars);
    tcase_add_test(t, test_where_it_says_nothing);
    tcase_add_test(t, test_bytes);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
