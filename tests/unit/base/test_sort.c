/* SPDX-License-Identifier: Apache-2.0
 *
 * Sorted reals and nearest ranks.
 */
#include "base/sort.h"

#include <check.h>
#include <math.h>

#include "tests/unit/base/runner.h"

START_TEST(sorted)
{
    double value[] = { 3, -1, INFINITY, 1e-300, 3, -INFINITY, 0, 2 };
    const double want[] = { -INFINITY, -1, 0, 1e-300, 2, 3, 3, INFINITY };
    moesim_sort_reals(value, sizeof value / sizeof value[0]);
    for (size_t i = 0; i < sizeof value / sizeof value[0]; i++)
        ck_assert_double_eq(value[i], want[i]);
}
END_TEST

/* The definition, by counting: at least q · n values at or below it, and fewer at or below the one before. */
START_TEST(ranks)
{
    static const unsigned percent[] = { 0, 1, 10, 25, 50, 75, 90, 95, 97, 99, 100 };
    for (size_t n = 1; n <= 1000; n++)
        for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
            const size_t at = moesim_rank_index(n, percent[i] / 100.0);
            ck_assert_uint_lt(at, n);
            ck_assert_uint_ge((at + 1) * 100, percent[i] * n);
            ck_assert(at == 0 || at * 100 < percent[i] * n);
        }
    ck_assert_uint_eq(moesim_rank_index(100, 0.99), 98);         /* 0.99 · 100 is above 99 by a digit or not at all */
    ck_assert_uint_eq(moesim_rank_index(1000, 0.975), 974);
}
END_TEST

RUN_TESTS("sort", sorted, ranks)
