/* SPDX-License-Identifier: Apache-2.0
 *
 * Intervals and sign-flip tests against hand-worked values, brute force and an independent resampler.
 */
#include "sim/stats.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gsl/gsl_rng.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>

#include "base/rng.h"

static const double ONES[32] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
static const double ZEROS[32];

static moesim_interval ratio(size_t n, const double *num, const double *den)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bootstrap *b = NULL;
    moesim_interval ci = { 0, 0 };
    ck_assert_int_eq(moesim_bootstrap_create(n, MOESIM_RESAMPLES, 1, &b, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_ratio(b, num, den, &ci, &err), MOESIM_OK);
    moesim_bootstrap_destroy(&b);
    ck_assert_ptr_null(b);
    return ci;
}

/* The test of differences d against zeros, every denominator 1. */
static moesim_paired flip(size_t n, const double *d)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bootstrap *b = NULL;
    moesim_paired out;
    memset(&out, 0, sizeof out);
    ck_assert_int_eq(moesim_bootstrap_create(n, 200, 1, &b, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_paired(b, d, ONES, ZEROS, ONES, 7, &out, &err), MOESIM_OK);
    moesim_bootstrap_destroy(&b);
    return out;
}

static double brute_force_p(size_t n, const double *d)
{
    double observed = 0;
    size_t extreme = 0;
    for (size_t i = 0; i < n; i++)
        observed += d[i];
    for (size_t mask = 0; mask < (size_t)1 << n; mask++) {
        double s = 0;
        for (size_t i = 0; i < n; i++)
            s += (mask >> i & 1) != 0 ? -d[i] : d[i];
        extreme += fabs(s) >= fabs(observed) - 1e-9;
    }
    return (double)extreme / (double)((size_t)1 << n);
}

static void draw(uint64_t seed, size_t n, double shift, double *out)
{
    moesim_rng rng;
    moesim_rng_seed(&rng, seed);
    for (size_t i = 0; i < n; i++)
        out[i] = shift + moesim_rng_real(&rng) + moesim_rng_real(&rng) + moesim_rng_real(&rng) - 1.5;
}

/* Means of resamples of {1, 3}: 1, 2, 2, 3. */
START_TEST(interval_of_two_requests)
{
    const moesim_interval ci = ratio(2, (const double[]){ 1, 3 }, ONES);
    ck_assert_double_eq(ci.lo, 1);
    ck_assert_double_eq(ci.hi, 3);
}
END_TEST

/* Ratios of {1/1, 3/2}: 2/2, 4/3, 6/4: a ratio of sums, not a mean of ratios. */
START_TEST(interval_weighs_by_the_denominator)
{
    const moesim_interval ci = ratio(2, (const double[]){ 1, 3 }, (const double[]){ 1, 2 });
    ck_assert_double_eq(ci.lo, 1);
    ck_assert_double_eq(ci.hi, 1.5);
}
END_TEST

/* {0, 0, 3}: the mean is 3 in 1 of 27 resamples (3.7 %), 0 in 8 of 27. */
START_TEST(interval_of_three_requests)
{
    const moesim_interval ci = ratio(3, (const double[]){ 0, 0, 3 }, ONES);
    ck_assert_double_eq(ci.lo, 0);
    ck_assert_double_eq(ci.hi, 3);
}
END_TEST

/* {0, 0, 0, 4}: the mean is 4 in 1 of 256 (0.4 %), at least 3 in 13 of 256 (5.1 %). */
START_TEST(interval_of_four_requests)
{
    const moesim_interval ci = ratio(4, (const double[]){ 0, 0, 0, 4 }, ONES);
    ck_assert_double_eq(ci.lo, 0);
    ck_assert_double_eq(ci.hi, 3);
}
END_TEST

START_TEST(resamples_without_denominator_are_left_out)
{
    const moesim_interval some = ratio(2, (const double[]){ 0, 2 }, (const double[]){ 0, 1 });
    ck_assert_double_eq(some.lo, 2);
    ck_assert_double_eq(some.hi, 2);
    const moesim_interval none = ratio(3, ONES, ZEROS);
    ck_assert_double_nan(none.lo);
    ck_assert_double_nan(none.hi);
}
END_TEST

START_TEST(fewer_than_two_requests_have_no_interval)
{
    for (size_t n = 0; n < 2; n++) {
        const moesim_interval ci = ratio(n, ONES, ONES);
        ck_assert_double_nan(ci.lo);
        ck_assert_double_nan(ci.hi);
    }
    const moesim_paired one = flip(1, (const double[]){ 5 });
    ck_assert_double_eq(one.difference, 5);
    ck_assert_double_nan(one.interval.lo);
    ck_assert_double_eq(one.p, 1);
    ck_assert(one.exact);
    const moesim_paired none = flip(0, ONES);
    ck_assert_double_nan(none.difference);
    ck_assert_double_nan(none.p);
    ck_assert_uint_eq(none.n, 0);
}
END_TEST

START_TEST(too_many_requests_are_refused)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bootstrap *b = NULL;
    ck_assert_int_eq(moesim_bootstrap_create(SIZE_MAX, 10, 1, &b, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_null(b);
    ck_assert_ptr_nonnull(strstr(err.text, "--requests"));
}
END_TEST

/* Of {1,2,3} only +++ and −−− reach 6; {1,1}: 2 of 4; a sum of 0 is reached by all. */
START_TEST(known_p_values)
{
    ck_assert_double_eq(flip(3, (const double[]){ 1, 2, 3 }).p, 0.25);
    ck_assert_double_eq(flip(2, (const double[]){ 1, 1 }).p, 0.5);
    ck_assert_double_eq(flip(2, (const double[]){ 1, -1 }).p, 1);
    ck_assert_double_eq(flip(3, ZEROS).p, 1);
    const moesim_paired twenty = flip(20, ONES);
    ck_assert_double_eq(twenty.p, 2.0 / 1048576.0);
    ck_assert(twenty.exact);
    ck_assert_uint_eq(twenty.n, 20);
}
END_TEST

/* .1 .2 .3 −.1: ±.5 is reached by two orders of addition that round apart; 6 of 16 flips are as extreme. */
START_TEST(ties_survive_rounding)
{
    ck_assert_double_eq(flip(4, (const double[]){ .1, .2, .3, -.1 }).p, 0.375);
}
END_TEST

START_TEST(p_equals_brute_force)
{
    for (uint64_t seed = 1; seed <= 12; seed++) {
        double d[12];
        draw(seed, 12, 0.2, d);
        ck_assert_double_eq(flip(seed, d).p, brute_force_p(seed, d));
    }
}
END_TEST

START_TEST(seeded_flips_come_near_the_exact_value)
{
    double d[21];
    draw(3, 21, 0.25, d);
    const moesim_paired out = flip(21, d);
    ck_assert(!out.exact);
    ck_assert_double_eq_tol(out.p, brute_force_p(21, d), 0.004);
    ck_assert_double_eq(out.p, flip(21, d).p);
    ck_assert_double_gt(flip(32, ONES).p, 0);
}
END_TEST

START_TEST(undefined_requests_leave_the_test_but_not_the_ratio)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bootstrap *b = NULL;
    moesim_paired out;
    const double num_a[3] = { 0, 4, 6 }, den_a[3] = { 0, 1, 1 }, num_b[3] = { 0, 1, 1 };
    ck_assert_int_eq(moesim_bootstrap_create(3, 2000, 1, &b, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_paired(b, num_a, den_a, num_b, ONES, 1, &out, &err), MOESIM_OK);
    moesim_bootstrap_destroy(&b);
    ck_assert_uint_eq(out.n, 2);
    ck_assert_double_eq(out.p, 0.5);
    ck_assert_double_eq(out.difference, 5 - 2.0 / 3.0);
}
END_TEST

/* Same resamples on both sides: a constant shift has a difference without spread. */
START_TEST(comparisons_are_paired)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bootstrap *b = NULL;
    moesim_paired out;
    double a[16], shifted[16];
    draw(5, 16, 10, a);
    for (size_t i = 0; i < 16; i++)
        shifted[i] = a[i] + 0.5;
    ck_assert_int_eq(moesim_bootstrap_create(16, MOESIM_RESAMPLES, 1, &b, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_paired(b, shifted, ONES, a, ONES, 1, &out, &err), MOESIM_OK);
    moesim_bootstrap_destroy(&b);
    ck_assert_double_eq_tol(out.interval.lo, 0.5, 1e-9);
    ck_assert_double_eq_tol(out.interval.hi, 0.5, 1e-9);
    ck_assert_double_eq(out.p, 2.0 / 65536.0);
}
END_TEST

/* The same resampling written again, straight from the definition; (n, resamples) on both sides of the stored table. */
static void compare_with_definition(size_t n, uint32_t asked)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const uint32_t resamples = asked < moesim_resamples(n) ? asked : moesim_resamples(n);
    double *x = malloc(n * sizeof *x), *one = malloc(n * sizeof *one), *value = malloc(resamples * sizeof *value);
    uint32_t *drawn = malloc(n * sizeof *drawn);
    ck_assert(x != NULL && one != NULL && value != NULL && drawn != NULL);
    draw(9, n, 3, x);
    for (size_t i = 0; i < n; i++)
        one[i] = 1;
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, 42);
    for (uint32_t r = 0; r < resamples; r++) {
        double sum = 0;
        memset(drawn, 0, n * sizeof *drawn);
        for (size_t i = 0; i < n; i++)
            drawn[gsl_rng_uniform_int(rng, n)]++;
        for (size_t i = 0; i < n; i++)
            sum += drawn[i] * x[i];
        value[r] = sum / (double)n;
    }
    gsl_sort(value, 1, resamples);
    moesim_bootstrap *b = NULL;
    moesim_interval ci[2];
    moesim_paired other;
    ck_assert_int_eq(moesim_bootstrap_create(n, resamples, 42, &b, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_ratio(b, x, one, &ci[0], &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_paired(b, x, one, one, one, 1, &other, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_bootstrap_ratio(b, x, one, &ci[1], &err), MOESIM_OK);
    for (int call = 0; call < 2; call++) {   /* the order of calls changes nothing */
        ck_assert_double_eq(ci[call].lo, gsl_stats_quantile_from_sorted_data(value, 1, resamples, 0.025));
        ck_assert_double_eq(ci[call].hi, gsl_stats_quantile_from_sorted_data(value, 1, resamples, 0.975));
    }
    moesim_bootstrap_destroy(&b);
    gsl_rng_free(rng);
    free(x);
    free(one);
    free(value);
    free(drawn);
}

START_TEST(stored_resamples_follow_the_definition)
{
    compare_with_definition(7, 999);
}
END_TEST

START_TEST(regenerated_resamples_follow_the_definition)
{
    compare_with_definition(6000, 10000);   /* 120 MB of counts: above the table's limit; flips are seeded here */
}
END_TEST

START_TEST(many_requests_get_fewer_resamples)
{
    ck_assert_uint_eq(moesim_resamples(0), 10000);
    ck_assert_uint_eq(moesim_resamples(1), 10000);
    ck_assert_uint_eq(moesim_resamples(6710), 10000);
    ck_assert_uint_eq(moesim_resamples(6711), 9999);
    ck_assert_uint_eq(moesim_resamples(100000), 671);
    ck_assert_uint_eq(moesim_resamples((size_t)1 << 20), 400);
}
END_TEST

START_TEST(seeds_matter)
{
    moesim_error err = MOESIM_ERROR_INIT;
    double x[24];
    moesim_interval ci[3];
    const uint64_t seed[3] = { 1, 2, UINT64_C(1) << 40 };
    draw(11, 24, 0, x);
    for (int i = 0; i < 3; i++) {
        moesim_bootstrap *b = NULL;
        ck_assert_int_eq(moesim_bootstrap_create(24, 500, seed[i], &b, &err), MOESIM_OK);
        ck_assert_int_eq(moesim_bootstrap_ratio(b, x, ONES, &ci[i], &err), MOESIM_OK);
        moesim_bootstrap_destroy(&b);
    }
    ck_assert_double_ne(ci[0].lo, ci[1].lo);
    ck_assert_double_ne(ci[0].lo, ci[2].lo);
}
END_TEST

/* 400 data sets of 30 requests with a known mean: a percentile interval covers it in about 93 %. */
START_TEST(intervals_cover_the_truth)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_bootstrap *b = NULL;
    int covered = 0;
    ck_assert_int_eq(moesim_bootstrap_create(30, 2000, 1, &b, &err), MOESIM_OK);
    for (uint64_t seed = 1; seed <= 400; seed++) {
        double x[30];
        moesim_interval ci;
        draw(seed, 30, 2, x);
        ck_assert_int_eq(moesim_bootstrap_ratio(b, x, ONES, &ci, &err), MOESIM_OK);
        covered += ci.lo <= 2 && 2 <= ci.hi;
    }
    moesim_bootstrap_destroy(&b);
    ck_assert_int_ge(covered, 360);
    ck_assert_int_le(covered, 392);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("stats");
    TCase *t = tcase_create("stats");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, interval_of_two_requests);
    tcase_add_test(t, interval_weighs_by_the_denominator);
    tcase_add_test(t, interval_of_three_requests);
    tcase_add_test(t, interval_of_four_requests);
    tcase_add_test(t, resamples_without_denominator_are_left_out);
    tcase_add_test(t, fewer_than_two_requests_have_no_interval);
    tcase_add_test(t, too_many_requests_are_refused);
    tcase_add_test(t, known_p_values);
    tcase_add_test(t, ties_survive_rounding);
    tcase_add_test(t, p_equals_brute_force);
    tcase_add_test(t, seeded_flips_come_near_the_exact_value);
    tcase_add_test(t, undefined_requests_leave_the_test_but_not_the_ratio);
    tcase_add_test(t, comparisons_are_paired);
    tcase_add_test(t, stored_resamples_follow_the_definition);
    tcase_add_test(t, regenerated_resamples_follow_the_definition);
    tcase_add_test(t, many_requests_get_fewer_resamples);
    tcase_add_test(t, seeds_matter);
    tcase_add_test(t, intervals_cover_the_truth);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    SRunner *runner = srunner_create(suite());
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
