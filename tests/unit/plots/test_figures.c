/* SPDX-License-Identifier: Apache-2.0
 *
 * What figures show, checked against the result that they are made of.
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

/* An interval of ±1 around the ratio: enough to see that it is asked for, and with what. */
static moesim_code around(void *cookie, const double *num, const double *den, size_t n, double *lo, double *hi, moesim_error *e)
{
    double sum[2] = { 0, 0 };
    (void)e;
    for (size_t i = 0; i < n; i++) {
        sum[0] += num[i];
        sum[1] += den[i];
    }
    *(size_t *)cookie = n;
    *lo = sum[0] / sum[1] - 1;
    *hi = sum[0] / sum[1] + 1;
    return MOESIM_OK;
}

static size_t last_n;

static moesim_plot_request request(void)
{
    return (moesim_plot_request){ .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 160, .interval = around,
                                  .cookie = &last_n };
}

static moesim_code try_draw(const struct sample *s, const char *name, const moesim_plot_request *q)
{
    const moesim_figure *figure;
    err = (moesim_error)MOESIM_ERROR_INIT;
    sample_result(s, &result);
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find(name, &figure, &err), MOESIM_OK);
    return moesim_figure_chart(figure, &result, "r.h5", q, &chart, &err);
}

static void draw(const struct sample *s, const char *name, const moesim_plot_request *q)
{
    ck_assert_msg(try_draw(s, name, q) == MOESIM_OK, "%s", err.text);
}

static void done(void)
{
    moesim_result_fini(&result);
    moesim_chart_fini(&chart);
}

START_TEST(test_curve)
{
    moesim_plot_request q = request();
    draw(&sample_usual, "curve", &q);
    const moesim_series *lru = find("line", "lru"), *belady = find("bound", "belady *"), *floor = find("floor", NULL);
    ck_assert_uint_eq(lru->n, 12);
    ck_assert_uint_eq(belady->n, 12);
    for (size_t i = 0; i < 12; i++) {
        const double cache = 10.0 * (double)(i + 1);
        ck_assert_double_eq(lru->point[i].x, cache);
        ck_assert_double_eq(lru->point[i].y, cell("lru", cache, 16, "misses_per_pass"));
        ck_assert_double_eq(lru->point[i].lo, cell("lru", cache, 16, "misses_per_pass_lo"));
        ck_assert_double_eq(lru->point[i].hi, cell("lru", cache, 16, "misses_per_pass_hi"));
        ck_assert_double_eq_tol(floor->point[i].y, 20 * fmax(0, 60 - cache), 1e-9);
    }
    ck_assert_ptr_nonnull(strstr(chart.subtitle, "routing of llada2.0-mini-like priced as llada2.0-flash"));
    ck_assert_ptr_nonnull(strstr(chart.subtitle, "n = 12 requests (few), 95 % intervals"));
    ck_assert_ptr_nonnull(strstr(chart.subtitle, "16 GB/s"));
    ck_assert_ptr_nonnull(strstr(chart.footer, "profile h200-host (provisional) sha256 0f1e2d3c4b5a6978"));
    ck_assert_ptr_nonnull(strstr(chart.footer, "trace gsm8k.h5 sha256 8badf00d12345678"));
    ck_assert_ptr_nonnull(strstr(chart.footer, "* clairvoyant"));
    ck_assert_str_eq(chart.chosen, "--bandwidth 16 of 16, 32, 64, 128\n");
    done();
}
END_TEST

/* The knee is the first capacity within 5 % of `full`; without times, the first at which 95 % hit. */
START_TEST(test_knee)
{
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    for (int timed = 0; timed < 2; timed++) {
        s.num_caches = 40;
        s.num_bandwidths = timed ? 4 : 0;
        q.bandwidth = timed ? 128 : (double)NAN;
        draw(&s, timed ? "tpot-curve" : "curve", &q);
        const moesim_series *knees = find("knee", timed ? "knee: TPOT ≤ 1.05 × full residency"
                                                        : "knee: hit rate 95 %");
        size_t knee = 1;
        while (timed ? cell("lru", 10.0 * (double)knee, 128, "tpot_ms") > 1.05 * cell("full", 10, 128, "tpot_ms")
                     : cell("lru", 10.0 * (double)knee, NAN, "hit_rate") < 0.95)
            knee++;
        ck_assert_double_eq(knees->point[0].x, 10.0 * (double)knee);
        ck_assert_double_eq(knees->point[0].y, cell("lru", 10.0 * (double)knee, q.bandwidth,
                                                    timed ? "tpot_ms" : "misses_per_pass"));
        ck_assert_uint_eq(knees->n, 4);          /* of policies, none of bounds */
        ck_assert_ptr_nonnull(strstr(chart.subtitle, timed ? "priced as" : ", counts"));
        done();
    }
}
END_TEST

START_TEST(test_gap)
{
    moesim_plot_request q = request();
    q.bandwidth = 64;
    draw(&sample_usual, "gap", &q);
    const moesim_series *surv = find("line", "surv");
    for (size_t i = 0; i < surv->n; i++) {
        const double cache = surv->point[i].x;
        const double gap = cell("surv", cache, 64, "misses_per_pass") - cell("ideal", cache, 64, "misses_per_pass");
        ck_assert_double_eq_tol(surv->point[i].y, gap, 1e-9);
        ck_assert_double_eq_tol(surv->point[i].lo, gap - 1, 1e-9);   /* paired: of the differences by request */
    }
    ck_assert_uint_eq(last_n, 12);
    ck_assert_ptr_nonnull(strstr(chart.y.label, "ideal *"));         /* the mark that the footer explains */
    for (size_t i = 0; i < chart.num_series; i++)
        ck_assert_ptr_null(strstr(chart.series[i].name, "ideal"));
    done();
}
END_TEST

START_TEST(test_bars_by_workload)
{
    moesim_plot_request q = request();
    draw(&sample_usual, "misses", &q);
    const moesim_series *lru = find("bar", "lru");
    ck_assert_uint_eq(chart.x.num_ticks, 4);
    ck_assert_str_eq(chart.x.tick[0].text, "all");
    ck_assert_str_eq(chart.x.tick[2].text, "mbpp");
    ck_assert_double_eq(lru->point[0].y, cell("lru", 60, 16, "misses_per_pass"));
    const moesim_table *t = moesim_result_find(&result, "requests");
    double sum[2] = { 0, 0 };
    for (size_t i = 0; i < t->rows; i++) {
        const bool counts = moesim_cells_number(t, "cell", i) == cell("lru", 60, 16, "cell") &&
                            strcmp(moesim_cells_text(t, "workload", i), "mbpp") == 0;
        sum[0] += counts ? moesim_cells_number(t, "misses", i) : 0;
        sum[1] += counts ? moesim_cells_number(t, "passes", i) : 0;
    }
    ck_assert_double_eq_tol(lru->point[2].y, sum[0] / sum[1], 1e-9);
    ck_assert_uint_eq(find("yerror", NULL)->n, 4 * 7);
    ck_assert_ptr_nonnull(strstr(chart.chosen, "--cache 60 of 10, 20, 30"));
    done();
}
END_TEST

START_TEST(test_bars_by_trace)
{
    static const char *const traces[] = { "a/one.h5", "b/two.h5" };
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    s.trace = traces;
    s.num_traces = 2;
    draw(&s, "tpot", &q);
    ck_assert_uint_eq(chart.x.num_ticks, 2);
    ck_assert_str_eq(chart.x.tick[1].text, "two");
    ck_assert_uint_eq(find("bar", "lru")->n, 2);
    done();
    q.trace = "b/two.h5";
    draw(&s, "tpot", &q);
    ck_assert_uint_eq(chart.x.num_ticks, 4);     /* its workloads */
    done();
}
END_TEST

/* One group: the bars lie, the best of names at the left; parts add up to the whole. */
START_TEST(test_breakdown)
{
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    q.cache = 30;
    draw(&s, "breakdown", &q);
    ck_assert_str_eq(chart.y.tick[0].text, "lru");
    const moesim_series *head = find("part", "head"), *values = find("value", NULL);
    for (size_t i = 0; i < 7; i++) {
        ck_assert_double_eq_tol(head->point[i].to, values->point[i].lo, 1e-9);
        ck_assert_double_eq(head->point[i].y, (double)i);
    }
    ck_assert_double_gt(chart.y.lo, chart.y.hi);
    done();
}
END_TEST

START_TEST(test_bandwidth)
{
    moesim_plot_request q = request();
    q.cache = 20;
    draw(&sample_usual, "bandwidth", &q);
    const moesim_series *oled = find("line", "oled");
    ck_assert_uint_eq(oled->n, 4);
    ck_assert_int_eq(chart.x.log2, 1);
    ck_assert_double_eq(oled->point[3].x, 128);
    ck_assert_double_eq(oled->point[3].y, cell("oled", 20, 128, "tpot_ms"));
    done();
}
END_TEST

/* A result that says itself which policies are clairvoyant is believed. */
START_TEST(test_clairvoyant_column)
{
    static const char *const policies[] = { "mine", "ideal" };
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    const moesim_figure *figure;
    int64_t *clairvoyant;
    s.policy = policies;
    s.num_policies = 2;
    sample_result(&s, &result);
    moesim_table *cells = (moesim_table *)(uintptr_t)moesim_result_find(&result, "cells");
    ck_assert_int_eq(moesim_table_integers(cells, "clairvoyant", "", &clairvoyant, &err), MOESIM_OK);
    for (size_t i = 0; i < cells->rows; i++)
        clairvoyant[i] = 1;
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find("curve", &figure, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_figure_chart(figure, &result, "r.h5", &q, &chart, &err), MOESIM_OK);
    ck_assert_ptr_nonnull(find("line", "mine *"));
    done();
}
END_TEST

/* ---- refusals ------------------------------------------------------------------------------------------------------ */

static const struct { const char *figure, *policy, *trace; double cache, bandwidth; size_t bandwidths; const char *says; }
refusals[] = {
    { "curve", "lrru", NULL, NAN, NAN, 4, "option --policy: the result has no policy 'lrru'; it has lru, oled, " },
    { "misses", NULL, NULL, 7, NAN, 4, "option --cache: the result has no cells of '7'; it has 10, 20, 30" },
    { "curve", NULL, NULL, NAN, 5, 4, "option --bandwidth: the result has no cells of '5'; it has 16, 32, 64, 128" },
    { "curve", NULL, NULL, 20, NAN, 4, "option --cache: this figure shows all of them" },
    { "bandwidth", NULL, NULL, NAN, 16, 4, "option --bandwidth: this figure shows all of them" },
    { "curve", NULL, "x", NAN, NAN, 4, "option --trace: the result has no cells of 'x'; it has traces/gsm8k.h5" },
    { "tpot", NULL, NULL, NAN, NAN, 0, "tpot_ms is undefined in every cell; what it needs is written by `moesim sweep" },
    { "grid", "belady", NULL, NAN, NAN, 4, "figure grid compares causal policies" },
    { "stability", NULL, NULL, NAN, NAN, 4,
      "it is a result of kind sweep, not stats; what it needs is written by `moesim trace" },
};

START_TEST(test_refusal)
{
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    s.num_bandwidths = refusals[_i].bandwidths;
    q.policy = &refusals[_i].policy;
    q.num_policies = refusals[_i].policy != NULL;
    q.trace = refusals[_i].trace;
    q.cache = refusals[_i].cache;
    q.bandwidth = refusals[_i].bandwidth;
    ck_assert_int_eq(try_draw(&s, refusals[_i].figure, &q), MOESIM_E_USAGE);
    ck_assert_msg(strstr(err.text, refusals[_i].says) != NULL, "%s", err.text);
    done();
}
END_TEST

START_TEST(test_missing_column)
{
    moesim_plot_request q = request();
    moesim_table *cells;
    moesim_error e = MOESIM_ERROR_INIT;
    char **policy;
    const moesim_figure *figure;
    moesim_result_init(&result);
    moesim_chart_init(&chart);
    ck_assert_int_eq(moesim_figure_find("curve", &figure, &e), MOESIM_OK);
    ck_assert_int_eq(moesim_figure_chart(figure, &result, "r.h5", &q, &chart, &e), MOESIM_E_USAGE);
    ck_assert_int_eq(moesim_result_set(&result, "kind", "sweep", &e), MOESIM_OK);
    ck_assert_int_eq(moesim_figure_chart(figure, &result, "r.h5", &q, &chart, &e), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "it has no table cells"));
    ck_assert_int_eq(moesim_result_table(&result, "cells", 1, &cells, &e), MOESIM_OK);
    ck_assert_int_eq(moesim_table_texts(cells, "policy", &policy, &e), MOESIM_OK);
    ck_assert_int_eq(moesim_figure_chart(figure, &result, "r.h5", &q, &chart, &e), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(e.text, "it has no column cells/cache"));
    done();
}
END_TEST

/* Two cells that nothing tells apart: no figure may choose one in silence. */
START_TEST(test_twice)
{
    static const char *const twice[] = { "lru", "lru" };
    struct sample s = sample_usual;
    moesim_plot_request q = request();
    s.policy = twice;
    s.num_policies = 2;
    ck_assert_int_eq(try_draw(&s, "curve", &q), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "two cells of policy lru at cache 10"));
    done();
}
END_TEST

/* A table requests that is not ordered is refused, not searched by halves. */
START_TEST(test_unordered)
{
    moesim_plot_request q = request();
    const moesim_figure *figure;
    moesim_error e = MOESIM_ERROR_INIT;
    sample_result(&sample_usual, &result);
    moesim_chart_init(&chart);
    int64_t *of = moesim_table_find(moesim_result_find(&result, "requests"), "cell")->integer;
    of[3] = 99;
    ck_assert_int_eq(moesim_figure_find("misses", &figure, &e), MOESIM_OK);
    q.cache = 10;
    ck_assert_int_eq(moesim_figure_chart(figure, &result, "r.h5", &q, &chart, &e), MOESIM_E_FORMAT);
    done();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("figures");
    TCase *c = tcase_create("charts"), *bad = tcase_create("refusals");
    tcase_add_test(c, test_curve);
    tcase_add_test(c, test_knee);
    tcase_add_test(c, test_gap);
    tcase_add_test(c, test_bars_by_workload);
    tcase_add_test(c, test_bars_by_trace);
    tcase_add_test(c, test_breakdown);
    tcase_add_test(c, test_bandwidth);
    tcase_add_test(c, test_clairvoyant_column);
    tcase_add_loop_test(bad, test_refusal, 0, (int)(sizeof refusals / sizeof refusals[0]));
    tcase_add_test(bad, test_missing_column);
    tcase_add_test(bad, test_twice);
    tcase_add_test(bad, test_unordered);
    suite_add_tcase(suite, c);
    suite_add_tcase(suite, bad);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
