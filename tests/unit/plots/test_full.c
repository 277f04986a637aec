/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of a sweep that adds full residency as a floor: policy full at the capacity of all experts alone, which no other
 * policy has. Its value holds for every capacity.
 */
#include <check.h>
#include <math.h>
#include <string.h>

#include "plots/cells.h"
#include "plots/chart.h"
#include "plots/figures.h"
#include "tests/unit/plots/sample.h"

#define ALL 256                  /* experts of a layer */

static moesim_result result;
static moesim_chart chart;
static moesim_error err;

#define find(role, name) sample_find(&chart, role, name)

static moesim_plot_request request(void)
{
    return (moesim_plot_request){ .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 160 };
}

static moesim_code draw(const char *name, const moesim_plot_request *q, size_t num_workloads, int64_t full_cache)
{
    struct sample s = sample_usual;
    const moesim_figure *figure;
    s.num_workloads = num_workloads;
    s.full_cache = full_cache;
    err = (moesim_error)MOESIM_ERROR_INIT;
    sample_result(&s, &result);
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find(name, &figure, &err), MOESIM_OK);
    return moesim_figure_chart(figure, &result, "r.h5", q, &chart, &err);
}

static void done(void)
{
    moesim_result_fini(&result);
    moesim_chart_fini(&chart);
}

static double full(double gbps, const char *column)
{
    return sample_cell(&result, "full", ALL, gbps, column);
}

static const struct { const char *figure, *column; } curves[] = { { "tpot-curve", "tpot_ms" }, { "curve", "misses_per_pass" } };

/* Level over the capacities of the others; the axis ends with them. */
START_TEST(test_curve)
{
    moesim_plot_request q = request();
    q.bandwidth = 64;
    ck_assert_msg(draw(curves[_i].figure, &q, 3, ALL) == MOESIM_OK, "%s", err.text);
    const moesim_series *level = find("bound", "full residency");
    ck_assert_ptr_nonnull(level);
    ck_assert_uint_eq(level->n, 12);
    for (size_t i = 0; i < level->n; i++) {
        ck_assert_double_eq(level->point[i].x, 10.0 * (double)(i + 1));
        ck_assert_double_eq(level->point[i].y, full(64, curves[_i].column));
    }
    ck_assert_uint_eq(find("line", "lru")->n, 12);
    ck_assert_double_lt(chart.x.hi, 130);
    if (find("floor", "miss floor") != NULL)
        ck_assert_uint_eq(find("floor", "miss floor")->n, 12);
    done();
}
END_TEST

START_TEST(test_bandwidth)
{
    moesim_plot_request q = request();
    ck_assert_msg(draw("bandwidth", &q, 3, ALL) == MOESIM_OK, "%s", err.text);
    const moesim_series *level = find("bound", "full residency");
    ck_assert_ptr_nonnull(level);
    ck_assert_uint_eq(level->n, 4);
    for (size_t i = 0; i < level->n; i++)
        ck_assert_double_eq(level->point[i].y, full(16 * pow(2, (double)i), "tpot_ms"));
    ck_assert_str_eq(chart.chosen, "--cache 60 of 10, 20, 30, 40, 50, 60, 70, 80, …, 120\n");
    done();
}
END_TEST

START_TEST(test_grid)
{
    moesim_plot_request q = request();
    ck_assert_msg(draw("grid", &q, 3, ALL) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(find("tile", "")->n, 48);
    ck_assert_double_eq(chart.x.hi, 11.5);
    done();
}
END_TEST

/* Lying bars; the last row is that of full. */
START_TEST(test_lying_bars)
{
    static const char *const figures[] = { "tpot", "breakdown" };
    moesim_plot_request q = request();
    q.cache = 20;
    q.bandwidth = 32;
    ck_assert_msg(draw(figures[_i], &q, 1, ALL) == MOESIM_OK, "%s", err.text);
    const moesim_series *value = find("value", "");
    ck_assert_ptr_nonnull(value);
    ck_assert_uint_eq(value->n, 7);
    ck_assert_double_eq(value->point[6].y, 6);
    ck_assert_double_eq(value->point[6].lo, full(32, "tpot_ms"));
    ck_assert_double_gt(value->point[6].lo, 0);
    done();
}
END_TEST

START_TEST(test_standing_bars)
{
    moesim_plot_request q = request();
    ck_assert_msg(draw("tpot", &q, 3, ALL) == MOESIM_OK, "%s", err.text);
    bool found = false;
    for (size_t i = 0; i < chart.num_series; i++) {
        if (strcmp(chart.series[i].role, "bar-bound") != 0 || strncmp(chart.series[i].name, "full", 4) != 0)
            continue;
        found = true;
        ck_assert_uint_eq(chart.series[i].n, 4);
        ck_assert_double_eq(chart.series[i].point[0].y, full(16, "tpot_ms"));
    }
    ck_assert(found);
    done();
}
END_TEST

/* Its own capacity is none that can be chosen, unless nothing else is shown. */
START_TEST(test_choice)
{
    static const char *const alone = "full";
    moesim_plot_request q = request();
    q.cache = ALL;
    ck_assert_int_eq(draw("tpot", &q, 3, ALL), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "option --cache: the result has no cells of '256'; it has 10, 20, 30"));
    done();
    q.policy = &alone;
    q.num_policies = 1;
    ck_assert_msg(draw("tpot", &q, 3, ALL) == MOESIM_OK, "%s", err.text);
    done();
}
END_TEST

/* At the capacities of the others, full is a policy as any. */
START_TEST(test_ordinary)
{
    moesim_plot_request q = request();
    ck_assert_msg(draw("tpot-curve", &q, 3, 0) == MOESIM_OK, "%s", err.text);
    ck_assert_ptr_null(find("bound", "full residency"));
    ck_assert_ptr_nonnull(find("bound", "full *"));
    done();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("full residency in figures");
    TCase *c = tcase_create("floor");
    tcase_add_loop_test(c, test_curve, 0, 2);
    tcase_add_test(c, test_bandwidth);
    tcase_add_test(c, test_grid);
    tcase_add_loop_test(c, test_lying_bars, 0, 2);
    tcase_add_test(c, test_standing_bars);
    tcase_add_test(c, test_choice);
    tcase_add_test(c, test_ordinary);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
