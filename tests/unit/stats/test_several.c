/* SPDX-License-Identifier: Apache-2.0
 *
 * Several ratios at once, and intervals of percentiles.
 */
#include "sim/stats.h"

#include <check.h>
#include <math.h>
#include <string.h>

START_TEST(several_ratios_are_each_ratio)
{
    enum { N = 37, K = 3 };
    double term[2 * K][N];
    const double *num[K], *den[K];
    moesim_bootstrap *b = NULL;
    moesim_interval one, all[K];
    for (size_t f = 0; f < 2 * K; f++)
        for (size_t r = 0; r < N; r++)
            term[f][r] = (double)((r * 7919 + f * 104729) % 1000) / 7.0 + (f == K + 1 ? -90 : 0);
    for (size_t f = 0; f < K; f++) {
        num[f] = term[f];
        den[f] = term[K + f];
    }
    ck_assert_int_eq(moesim_bootstrap_create(N, 2000, 5, &b, NULL), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_ratios(b, K, num, den, all, NULL), MOESIM_OK);
    for (size_t f = 0; f < K; f++) {
        ck_assert_int_eq(moesim_bootstrap_ratio(b, num[f], den[f], &one, NULL), MOESIM_OK);
        ck_assert(memcmp(&one, &all[f], sizeof one) == 0);
    }
    moesim_bootstrap_destroy(&b);
}
END_TEST

/* All n^n resamples of a few values. */
START_TEST(percentile_interval_equals_all_resamples)
{
    static const double q[] = { 0.5, 0.9, 0.99, 1.0 };
    const double value[] = { 3, 1, 4, 1.5, 9 }, sorted[] = { 1, 1.5, 3, 4, 9 };
    for (size_t c = 0; c < sizeof q / sizeof q[0]; c++) {
        const unsigned m = (unsigned)ceil(q[c] * 5);
        unsigned below[5] = { 0 };
        for (unsigned draw = 0; draw < 3125; draw++) {
            unsigned count[5] = { 0 }, rank = 0, k = 0;
            for (unsigned rest = draw, i = 0; i < 5; i++, rest /= 5)
                count[rest % 5]++;
            while (rank + count[k] < m)
                rank += count[k++];
            below[k]++;
        }
        moesim_interval got;
        ck_assert_int_eq(moesim_percentile_interval(value, 5, q[c], &got, NULL), MOESIM_OK);
        unsigned sum = 0, lo = 5, hi = 5;
        for (unsigned k = 0; k < 5; k++) {
            sum += below[k];
            lo = lo == 5 && sum >= 0.025 * 3125 ? k : lo;
            hi = hi == 5 && sum >= 0.975 * 3125 ? k : hi;
        }
        ck_assert(got.lo >= sorted[lo] && got.lo <= sorted[lo]);
        ck_assert(got.hi >= sorted[hi] && got.hi <= sorted[hi]);
    }
    moesim_interval none;
    ck_assert_int_eq(moesim_percentile_interval(value, 1, 0.5, &none, NULL), MOESIM_OK);
    ck_assert(isnan(none.lo) && isnan(none.hi));
}
END_TEST

int main(void)
{
    Suite *s = suite_create("several");
    TCase *t = tcase_create("several");
    tcase_add_test(t, several_ratios_are_each_ratio);
    tcase_add_test(t, percentile_interval_equals_all_resamples);
    suite_add_tcase(s, t);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
