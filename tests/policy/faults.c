/* SPDX-License-Identifier: Apache-2.0
 *
 * An outside policy that breaks its contract while it runs: a clean error that names the policy and what it did, never a
 * wrong result. MOESIM_TEST_OUTSIDE is the folder with outside.so.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

static char path[4096], wide[4096];

static void setup(void)
{
    const struct test_shape shape = { .layers = 2, .experts = 16, .top_k = 3, .block_length = 4, .requests = 2, .blocks = 2,
                                      .prefill_rows = 4, .max_steps = 3, .commit_passes = true, .redraw = .5 };
    struct test_shape wider = shape;
    struct test_trace t;
    wider.experts = 130;
    test_trace_random(&t, &shape, 31);
    snprintf(path, sizeof path, "%s", test_path("faults.h5"));
    test_trace_write(&t, path);
    test_trace_fini(&t);
    test_trace_random(&t, &wider, 32);
    snprintf(wide, sizeof wide, "%s", test_path("wide.h5"));
    test_trace_write(&t, wide);
    test_trace_fini(&t);
}

static const char *with(const char *options)
{
    static char text[4096];
    const char *folder = getenv("MOESIM_TEST_OUTSIDE");
    ck_assert_msg(folder != NULL, "MOESIM_TEST_OUTSIDE is not set");
    snprintf(text, sizeof text, "%s/outside.so%s", folder, options);
    return text;
}

START_TEST(test_good)
{
    moesim_outcome mine, lru;
    test_run(path, with(""), 5, NULL, &mine);
    test_run(path, "lru", 5, NULL, &lru);
    ck_assert(test_outcome_equal(&mine, &lru));
    moesim_outcome_fini(&mine);
    test_run(path, with(":fault=never"), 5, NULL, &mine);   /* allowed: nothing is ever kept */
    ck_assert_uint_eq(mine.insertions, 0);
    ck_assert_uint_eq(mine.all_hits, 0);
    ck_assert_uint_gt(mine.refused, 0);
    moesim_outcome_fini(&mine);
    moesim_outcome_fini(&lru);
}
END_TEST

START_TEST(test_faults)
{
    static const struct { const char *options, *says; } row[] = {
        { ":fault=nan,from=4", "NaN" },
        { ":fault=unset,from=4", "without a value" },
        { ":fault=tie,from=4", "tie" },
        { ":fault=grow,from=4", "slots" },
        { ":fault=wide,from=4", "slots" },
        { ":fault=open-grow", "slots" },
        { ":fault=cpu,from=4", "dispatch" },
        { ":fault=order,from=4", "dispatch" },
        { ":fault=stop,from=4", "retain" },
        { ":fault=open", "no luck today" },
        { ":fault=many", "close reports 17 counters; there is room for 16" },
        { ":fault=no-name", "close names counter 1 with other than" },
        { ":fault=empty", "close names counter 1 with other than" },
        { ":fault=control", "close names counter 1 with other than" },
        { ":fault=same", "close reports counter 'again' twice" },
        { ":fault=infinite", "close reports counter 'counted' as inf" },
        { ":fault=elsewhere", "close replaces the array of counters" },
    };
    for (size_t i = 0; i < 2 * (sizeof row / sizeof row[0]); i++) {
        const char *policy = with(row[i / 2].options);
        moesim_outcome out;
        moesim_error err = MOESIM_ERROR_INIT;
        const moesim_code code = test_try_run(i % 2 == 0 ? path : wide, policy, 5, NULL, &out, &err);
        ck_assert_msg(code == MOESIM_E_POLICY || code == MOESIM_E_USAGE, "%s gave %d: %s", policy, (int)code, err.text);
        ck_assert_msg(strstr(err.text, row[i / 2].says) != NULL, "%s says: %s", policy, err.text);
        ck_assert_msg(strstr(err.text, "outside.so") != NULL, "%s says: %s", policy, err.text);
        moesim_outcome_fini(&out);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("faults");
    TCase *tests = tcase_create("faults");
    tcase_set_timeout(tests, 60);
    tcase_add_checked_fixture(tests, setup, NULL);
    tcase_add_test(tests, test_good);
    tcase_add_test(tests, test_faults);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
