/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of fidelity reports: every policy of the cells is drawn, what cannot be on logarithmic axes is not.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plots/chart.h"
#include "plots/figures.h"
#include "sim/result.h"
#include "tests/unit/plots/sample.h"

#define POLICIES 40u             /* more than there are looks */

static moesim_result result;
static moesim_chart chart;
static moesim_error err;

#define find(role, name) sample_find(&chart, role, name)

static const char *const reals[] = { "tpot_predicted_ms", "tpot_measured_ms", "tpot_measured_lo", "tpot_measured_hi" };

/* One cell a policy; the second is executed by the witness too, the third was calibrated on, the last has no time. narrow: all
 * take about as long. */
static void make(bool narrow)
{
    moesim_table *t = NULL;
    char **by = NULL, **policy = NULL, **role = NULL, name[16];
    double *real[4];
    moesim_result_init(&result);
    ck_assert_int_eq(moesim_result_set(&result, "kind", "fidelity", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_result_set(&result, "device", "null", &err), MOESIM_OK);
    ck_assert_int_eq(moesim_result_table(&result, "cells", POLICIES + 1, &t, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_table_texts(t, "executed_by", &by, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_table_texts(t, "policy", &policy, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_table_texts(t, "role", &role, &err), MOESIM_OK);
    for (size_t k = 0; k < 4; k++)
        ck_assert_int_eq(moesim_table_reals(t, reals[k], "ms", &real[k], &err), MOESIM_OK);
    for (size_t i = 0; i <= POLICIES; i++) {
        const bool witness = i == POLICIES;
        (void)snprintf(name, sizeof name, "p%zu", witness ? 1 : i);
        ck_assert_int_eq(moesim_table_text(t, by, i, witness ? "witness" : "replay", &err), MOESIM_OK);
        ck_assert_int_eq(moesim_table_text(t, policy, i, name, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_table_text(t, role, i, i == 2 ? "calibration" : "test", &err), MOESIM_OK);
        real[0][i] = 4 + (double)i;
        real[1][i] = i + 1 == POLICIES ? 0 : 5 + (double)i;
        real[2][i] = i == 0 ? -1 : i == 1 ? 1 : 4.5 + (double)i;
        real[3][i] = i == 1 ? 100 : 5.5 + (double)i;
        for (size_t k = 0; narrow && k < 4; k++)
            real[k][i] = 10 + 0.1 * (double)i;
    }
}

static moesim_code draw(const moesim_plot_request *q)
{
    const moesim_figure *figure;
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find("fidelity", &figure, &err), MOESIM_OK);
    return moesim_figure_chart(figure, &result, "r.h5", q, &chart, &err);
}

START_TEST(test_cells)
{
    const moesim_plot_request q = { .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 80 };
    char name[16];
    make(false);
    ck_assert_msg(draw(&q) == MOESIM_OK, "%s", err.text);
    for (uint32_t i = 0; i + 1 < POLICIES; i++) {
        (void)snprintf(name, sizeof name, "p%u", i);
        const moesim_series *s = find("cell", name);
        ck_assert_msg(s != NULL && s->n == 1 && s->look == i, "%s", name);
        ck_assert(s->point[0].x == 4.0 + i && s->point[0].y == 5.0 + i);
        ck_assert(i == 0 ? s->point[0].lo > 0 && s->point[0].lo < 1e-3 && s->point[0].hi == 5.5
                         : s->point[0].lo == (i == 1 ? 1 : 4.5 + i));
    }
    (void)snprintf(name, sizeof name, "p%u", POLICIES - 1);
    ck_assert_ptr_null(find("cell", name));
    const moesim_series *witness = find("witness", "p1, second witness"), *fitted = find("fitted", "calibrated on");
    ck_assert(witness != NULL && witness->n == 1 && witness->look == 1 && witness->point[0].x == 4.0 + POLICIES);
    ck_assert(fitted != NULL && fitted->n == 1 && fitted->point[0].x == 6);
    const moesim_series *agree = find("agree", "predicted = measured");
    ck_assert(agree != NULL && agree->n == 2);
    ck_assert(agree->point[0].x == chart.x.lo && chart.x.lo < 4 && agree->point[1].y == chart.y.hi);
    ck_assert_double_gt(chart.y.hi, 100);         /* intervals are not cut */
    ck_assert_double_lt(chart.y.lo, 1);
    ck_assert(chart.x.log2 && chart.y.log2);
    ck_assert_double_gt(chart.y.lo, 0.1);         /* but for what reaches 0 */
    ck_assert_ptr_nonnull(strstr(chart.footer, "to the edge where they reach 0"));
    ck_assert_ptr_nonnull(strstr(chart.footer, "1 cell of a time of 0 or less"));
    ck_assert_ptr_nonnull(strstr(chart.subtitle, "null\nrouting of (unnamed model)"));
    ck_assert_ptr_nonnull(strstr(chart.footer, "nothing fitted"));
    moesim_chart_fini(&chart);
    moesim_result_fini(&result);
}
END_TEST

/* Times close together: linear axes, since powers of two would be one or two. */
START_TEST(test_narrow)
{
    const moesim_plot_request q = { .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 80 };
    make(true);
    ck_assert_msg(draw(&q) == MOESIM_OK, "%s", err.text);
    ck_assert(!chart.x.log2 && !chart.y.log2);
    ck_assert(chart.x.lo < 10 && chart.x.hi > 14);
    ck_assert_ptr_null(strstr(chart.footer, "0 or less"));
    moesim_chart_fini(&chart);
    moesim_result_fini(&result);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("figures of fidelity");
    TCase *c = tcase_create("fidelity");
    tcase_add_test(c, test_cells);
    tcase_add_test(c, test_narrow);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
