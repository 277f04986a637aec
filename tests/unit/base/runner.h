/* SPDX-License-Identifier: Apache-2.0
 *
 * The main function of a file of unit tests: RUN_TESTS("name", test_a, test_b, …).
 */
#ifndef MOESIM_TESTS_UNIT_BASE_RUNNER_H
#define MOESIM_TESTS_UNIT_BASE_RUNNER_H

#include <check.h>
#include <stdlib.h>

#define RUN_TESTS(name, ...)                                                     \
    int main(void)                                                               \
    {                                                                            \
        const TTest *const all[] = { __VA_ARGS__ };                              \
        Suite *suite = suite_create(name);                                       \
        TCase *tcase = tcase_create(name);                                       \
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)                  \
            tcase_add_test(tcase, all[i]);                                       \
        suite_add_tcase(suite, tcase);                                           \
        SRunner *runner = srunner_create(suite);                                 \
        srunner_run_all(runner, CK_ENV);                                         \
        const int failed = srunner_ntests_failed(runner);                        \
        srunner_free(runner);                                                    \
        return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;                        \
    }

#endif
