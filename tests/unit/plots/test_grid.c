/* SPDX-License-Identifier: Apache-2.0
 *
 * The figure of capacity × bandwidth: which policy is best, and whether that can be told.
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

#define find(role, name) sample_series(&chart, role, name)
#define cell(policy, cache, gbps, column) sample_cell(&result, policy, cache, gbps, column)

/* Told apart from a difference of 1 on. */
static moesim_code apart(void *cookie, const double *num_a, const double *den_a, const double *num_b, const double *den_b,
                         size_t n, bool *out, moesim_error *e)
{
    double sum[4] = { 0, 0, 0, 0 };
    (void)cookie;
    (void)e;
    for (size_t i = 0; i < n; i++) {
        sum[0] += num_a[i];
        sum[1] += den_a[i];
        sum[2] += num_b[i];
        sum[3] += den_b[i];
    }
    *out = fabs(sum[0] / sum[1] - sum[2] / sum[3]) >= 1;
    return MOESIM_OK;
}

static moesim_plot_request request(void)
{
    return (moesim_plot_request){ .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 160, .differ = apart };
}

/* Of the result that is there. */
static moesim_code draw(const moesim_plot_request *q)
{
    const moesim_figure *figure;
    err = (moesim_error)MOESIM_ERROR_INIT;
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find("grid", &figure, &err), MOESIM_OK);
    return moesim_figure_chart(figure, &result, "r.h5", q, &chart, &err);
}

static void done(void)
{
    moesim_result_fini(&result);
    moesim_chart_fini(&chart);
}

/* Best causal policy: bounds never; where any other one is nearer than 1 ms, the mark is hollow. */
START_TEST(test_grid)
{
    moesim_plot_request q = request();
    sample_result(&sample_usual, &result);
    ck_assert_msg(draw(&q) == MOESIM_OK, "%s", err.text);
    const moesim_series *tiles = find("tile", NULL), *sure = find("mark", "surv");
    ck_assert_uint_eq(tiles->n, 48);
    size_t marks = 0, hollow = 0;
    for (size_t i = 0; i < chart.num_series; i++) {
        marks += strncmp(chart.series[i].role, "mark", 4) == 0 ? chart.series[i].n : 0;
        hollow += strcmp(chart.series[i].role, "mark-open") == 0 ? chart.series[i].n : 0;
        ck_assert_ptr_null(strstr(chart.series[i].name, "belady"));
    }
    ck_assert_uint_eq(marks, 48);
    ck_assert_uint_gt(hollow, 0);
    ck_assert_uint_gt(sure->n, 0);
    ck_assert_uint_eq(find("mark-open", "hollow: not distinguishable")->n, 0);       /* an entry of the legend alone */
    ck_assert_ptr_nonnull(strstr(chart.footer, "compared: lru, oled, oled:confidence"));
    for (size_t i = 0; i < sure->n; i++) {
        const double cache = 10 * (sure->point[i].x + 1), gbps = 16 * pow(2, sure->point[i].y);
        ck_assert_double_eq(sure->point[i].lo, cell("surv", cache, gbps, "tpot_ms"));
        ck_assert_double_gt(cell("oled:confidence=lag1,adapt=on,dispatch=reuse", cache, gbps, "tpot_ms") -
                            cell("surv", cache, gbps, "tpot_ms"), 1 - 1e-9);
    }
    done();
}
END_TEST

/* Without a rule that tells policies apart all marks are hollow, and only six shapes can be told apart by eye. */
START_TEST(test_grid_limits)
{
    static const char *const many[] = { "lru", "b", "c", "d", "e", "f", "surv" };
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    q.differ = NULL;
    sample_result(&s, &result);
    ck_assert_msg(draw(&q) == MOESIM_OK, "%s", err.text);
    for (size_t i = 0; i < chart.num_series; i++)
        ck_assert(strcmp(chart.series[i].role, "mark") != 0 || chart.series[i].n == 0);
    done();
    s.policy = many;
    s.num_policies = 7;
    sample_result(&s, &result);
    moesim_table *cells = (moesim_table *)(uintptr_t)moesim_result_find(&result, "cells");
    double *tpot = moesim_table_find(cells, "tpot_ms")->real;
    for (size_t i = 0; i < cells->rows; i++)     /* each one is best at some place */
        if (strcmp(moesim_cells_text(cells, "policy", i), many[(size_t)moesim_cells_number(cells, "cache", i) / 10 % 7]) == 0)
            tpot[i] = 1e-3;
    ck_assert_int_eq(draw(&q), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "marks for 6 policies, and 7 are best somewhere (lru, b, c, d, e, f, surv)"));
    done();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grid");
    TCase *c = tcase_create("grid");
    tcase_add_test(c, test_grid);
    tcase_add_test(c, test_grid_limits);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
