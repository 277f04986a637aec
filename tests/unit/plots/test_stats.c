/* SPDX-License-Identifier: Apache-2.0
 *
 * Files of `trace stats -o` as tables, and their figures; damaged ones end in an error or in tables, never in a crash.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "plots/cells.h"
#include "plots/chart.h"
#include "plots/figures.h"
#include "sim/result.h"
#include "tests/support/support.h"
#include "traces/stats.h"

/* HDF5 keeps memory when it gives up on a damaged file. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

static moesim_trace_stats stats;

/* Statistics of a random trace, computed and written. */
static const char *write_stats(void)
{
    const struct test_shape shape = { .layers = 3, .experts = 24, .top_k = 4, .block_length = 8, .requests = 5, .blocks = 3,
                                      .prefill_rows = 4, .max_steps = 6, .commit_passes = true, .redraw = 0.2 };
    struct test_trace t;
    moesim_trace *trace = NULL;
    moesim_error err = MOESIM_ERROR_INIT;
    const uint32_t caches[] = { 4, 8 };
    test_trace_random(&t, &shape, 7);
    test_trace_write(&t, test_path("trace.h5"));
    test_trace_fini(&t);
    ck_assert_int_eq(moesim_trace_open(test_path("trace.h5"), NULL, &trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_trace_stats_compute(trace, &stats, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_trace_stats_write(&stats, moesim_trace_get_info(trace), caches, 2, test_path("stats.h5"), &err),
                     MOESIM_OK);
    moesim_trace_close(&trace);
    return test_path("stats.h5");
}

START_TEST(test_tables)
{
    moesim_result r;
    moesim_error err = MOESIM_ERROR_INIT;
    char number[32];
    ck_assert_msg(moesim_result_read_any(write_stats(), &r, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_str_eq(moesim_result_get(&r, "kind"), "stats");
    ck_assert_str_eq(moesim_result_get(&r, "top_k"), "4");
    snprintf(number, sizeof number, "%llu", (unsigned long long)stats.committed);
    ck_assert_str_eq(moesim_result_get(&r, "committed"), number);
    const moesim_table *overlap = moesim_result_find(&r, "overlap"), *stable = moesim_result_find(&r, "stability");
    ck_assert_uint_eq(overlap->rows, MOESIM_STATS_LAGS);
    for (size_t i = 0; i < MOESIM_STATS_LAGS; i++) {
        const double expected = moesim_mean_value(&stats.overlap_old[i + 1]), v = moesim_cells_number(overlap, "over_old", i);
        ck_assert(v == expected || (isnan(v) && isnan(expected)));
        ck_assert_double_eq(moesim_cells_number(overlap, "lag", i), (double)(i + 1));
    }
    for (size_t b = 0; b < MOESIM_STATS_BINS; b++) {
        ck_assert_double_eq(moesim_cells_number(stable, "masked_full", b), (double)stats.stability[0].level[b][4]);
        ck_assert_double_eq(moesim_cells_number(stable, "all_full", b), (double)stats.stability[1].level[b][4]);
        ck_assert_double_eq(moesim_cells_number(stable, "all_kept", b), (double)stats.stability[1].kept[b]);
    }
    ck_assert_double_eq(moesim_cells_number(moesim_result_find(&r, "boundary"), "over_new", 0),
                        moesim_mean_value(&stats.boundary_new));
    moesim_result_fini(&r);
    moesim_trace_stats_fini(&stats);
}
END_TEST

START_TEST(test_figures)
{
    static const double published[10] = { .13, .12, .16, .21, .25, .30, .34, .36, .39, .42 };
    const moesim_plot_request q = { .cache = NAN, .bandwidth = NAN, .batch = NAN, .width_mm = 80, .published = published,
                                    .num_published = 10, .published_name = "Fig. 10b (LLaDA2.0)" };
    static const char *const names[] = { "stability", "overlap" };
    moesim_chart *chart = malloc(sizeof *chart);
    moesim_result r;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_result_read_any(write_stats(), &r, &err), MOESIM_OK);
    for (size_t k = 0; k < 2; k++) {
        const moesim_figure *figure;
        moesim_chart_init(chart);
        ck_assert_int_eq(moesim_figure_find(names[k], &figure, &err), MOESIM_OK);
        ck_assert_msg(moesim_figure_chart(figure, &r, "s.h5", &q, chart, &err) == MOESIM_OK, "%s", err.text);
        ck_assert_ptr_nonnull(strstr(chart->subtitle, "n = 5 requests (few), blocks of 8"));
        const moesim_series *s = &chart->series[k == 0 ? 1 : 0];
        for (size_t i = 0; i < 10; i++) {
            const moesim_stability *all = &stats.stability[1];
            const double y = k == 0 ? (double)all->level[i][4] / (double)all->n[i]
                                    : moesim_mean_value(&stats.overlap_new[i + 1]);
            ck_assert(s->point[i].y == y || (isnan(y) && isnan(s->point[i].y)));
        }
        if (k == 0) {
            ck_assert_str_eq(chart->series[4].role, "reference");
            ck_assert_str_eq(chart->series[4].name, "all K kept, published");        /* what it is to be held against */
            ck_assert_ptr_nonnull(strstr(chart->footer, "published: Fig. 10b (LLaDA2.0), of that model"));
            ck_assert_double_eq(chart->series[4].point[9].y, .42);
        }
        moesim_chart_fini(chart);
    }
    moesim_result_fini(&r);
    moesim_trace_stats_fini(&stats);
    free(chart);
}
END_TEST

START_TEST(test_damaged)
{
    const char *path = write_stats(), *copy = test_path("damaged.h5");
    FILE *f = fopen(path, "rb");
    unsigned char *data = malloc(1 << 20), *bad = malloc(1 << 20);
    const size_t bytes = fread(data, 1, 1 << 20, f);
    moesim_rng rng;
    size_t refused = 0;
    fclose(f);
    moesim_rng_seed(&rng, 11);
    for (int i = 0; i < 300; i++) {
        moesim_result r;
        moesim_error err = MOESIM_ERROR_INIT;
        const size_t n = i % 4 == 0 ? moesim_rng_below(&rng, (uint32_t)bytes) : bytes;
        memcpy(bad, data, bytes);
        for (uint32_t k = 0; k < 1 + moesim_rng_below(&rng, 6); k++)
            bad[moesim_rng_below(&rng, (uint32_t)bytes)] = (unsigned char)moesim_rng_u64(&rng);
        f = fopen(copy, "wb");
        fwrite(bad, 1, n, f);
        fclose(f);
        const moesim_code code = moesim_result_read_any(copy, &r, &err);
        ck_assert(code == MOESIM_OK || err.text[0] != '\0');
        refused += code != MOESIM_OK;
        moesim_result_fini(&r);
    }
    ck_assert_uint_gt(refused, 75);      /* cut files at least */
    free(data);
    free(bad);
    moesim_trace_stats_fini(&stats);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("figures of statistics");
    TCase *c = tcase_create("statistics");
    tcase_set_timeout(c, 60);
    tcase_add_test(c, test_tables);
    tcase_add_test(c, test_figures);
    tcase_add_test(c, test_damaged);
    suite_add_tcase(suite, c);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
