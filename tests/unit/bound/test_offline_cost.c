/* SPDX-License-Identifier: Apache-2.0
 *
 * offline-cost on recorded traces: with equal costs it counts the misses of belady, an independent implementation; belady's
 * own time, all misses moved, is never below it; costs taken from profiles; refusals.
 * Without MOESIM_TRACES (a folder of recorded traces) the built-in sample alone is read.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hwprofile/profile.h"
#include "tests/unit/bound/reads.h"

enum { MOST_LAYERS = 64, TOKENS = 512 };

static double belady_misses(const char *path, uint32_t cache, const moesim_run_params *params)
{
    moesim_outcome out;
    test_run(path, "belady", cache, params, &out);
    const double misses = out.total.misses;
    moesim_outcome_fini(&out);
    return misses;
}

/* CPU times flat + steep · tokens, every copy 1 s. */
static double *linear_cpu(const moesim_bound *bound, double flat, double steep)
{
    double *cpu = calloc((size_t)MOST_LAYERS * TOKENS, sizeof *cpu);
    for (size_t i = 0; cpu != NULL && i < (size_t)MOST_LAYERS * TOKENS; i++)
        cpu[i] = flat + steep * (double)(i % TOKENS);
    double *table = bound_cpu(bound, cpu, TOKENS);
    free(cpu);
    return table;
}

static void check_belady(const char *path, uint64_t warmup, uint32_t batch, const uint32_t *caches, size_t n)
{
    double h2d[MOST_LAYERS], before = INFINITY;
    moesim_run_params params;
    moesim_bound *bound = bound_read(path, warmup, batch);
    double *dear = linear_cpu(bound, 2, 0), *linear = linear_cpu(bound, 0.3, 0.2);
    const moesim_bound_info *info = moesim_bound_get_info(bound);
    moesim_run_params_defaults(&params);
    params.warmup = warmup;
    params.batch = batch;
    for (uint32_t l = 0; l < MOST_LAYERS; l++)
        h2d[l] = 1;
    for (size_t i = 0; i < n; i++) {
        const double misses = belady_misses(path, caches[i], &params);
        const double copied = bound_solve(bound, h2d, dear, caches[i], MOESIM_PATHS_ONE).seconds;
        const double two = bound_solve(bound, h2d, linear, caches[i], MOESIM_PATHS_TWO).seconds;
        const double one = bound_solve(bound, h2d, linear, caches[i], MOESIM_PATHS_ONE).seconds;
        ck_assert_msg(copied == misses, "%s C %u: %.17g, belady %.17g", path, caches[i], copied, misses);
        ck_assert_msg(two < one && one < misses, "%s C %u: two paths %g, one %g, belady %g", path, caches[i], two, one,
                      misses);
        ck_assert_double_le(two, before);
        before = two;
    }
    ck_assert_double_eq(bound_solve(bound, h2d, dear, info->experts, MOESIM_PATHS_ONE).seconds, (double)info->first_uses);
    ck_assert_double_eq(bound_solve(bound, h2d, dear, 0, MOESIM_PATHS_ONE).seconds, (double)info->counted_uses);
    free(dear);
    free(linear);
    moesim_bound_close(&bound);
}

START_TEST(test_belady)
{
    const uint32_t caches[] = { 1, 20, 40, 80, 200 };
    const size_t n = sizeof caches / sizeof caches[0];
    check_belady(SAMPLE, 0, 1, caches, n);
    check_belady(SAMPLE, 1, 1, caches, n);
    check_belady(SAMPLE, 0, 2, caches, n);
}
END_TEST

START_TEST(test_recorded)
{
    const uint32_t caches[] = { 40, 160 };
    const char *folder = getenv("MOESIM_TRACES"), *const name[] = { "gsm8k-b8.h5", "humaneval-b16.h5" };
    for (size_t i = 0; folder != NULL && i < sizeof name / sizeof name[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, name[i]);
        ck_assert_msg(access(path, R_OK) == 0, "%s cannot be read", path);
        check_belady(path, 0, 1, caches, sizeof caches / sizeof caches[0]);
    }
    if (folder == NULL)
        printf("skipped: MOESIM_TRACES names no folder\n");
}
END_TEST

/* ---- costs from profiles --------------------------------------------------------------------------------------------- */

static moesim_costing *make_costing(const moesim_profile *profile, enum moesim_time_mode mode, double bandwidth,
                                    uint32_t layers, const uint64_t *bytes)
{
    const moesim_costing_params params = {
        .profile = profile, .mode = mode, .bandwidth = bandwidth, .effects = MOESIM_EFFECT_ALL, .staging = 4,
        .num_layers = layers, .max_rows = 2, .expert_bytes = bytes, .hidden_bytes = 4096,
    };
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_costing *costing = NULL;
    ck_assert_msg(moesim_costing_create(&params, &costing, &err) == MOESIM_OK, "%s", err.text);
    return costing;
}

/* Each layer's own bytes are priced, also beyond the costing's table (max_rows 2). */
static void check_profile(const char *name, enum moesim_time_mode mode, double bandwidth)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_profile *profile = calloc(1, sizeof *profile);
    moesim_bound *bound = bound_read(SAMPLE, 0, 1);
    const uint32_t layers = moesim_bound_get_info(bound)->layers;
    double h2d[MOST_LAYERS], *cpu = calloc((size_t)MOST_LAYERS * TOKENS, sizeof *cpu);
    uint64_t bytes[MOST_LAYERS];
    ck_assert_ptr_nonnull(cpu);
    ck_assert_uint_le(layers, MOST_LAYERS);
    ck_assert_msg(moesim_profile_load(name, profile, &err) == MOESIM_OK, "%s", err.text);
    for (uint32_t l = 0; l < layers; l++) {
        bytes[l] = l % 2 == 0 ? 6291456 : 3000000;
        h2d[l] = mode == MOESIM_TIME_PAPER ? profile->paper_t_h2d.value * (profile->link_nominal_bandwidth.value / bandwidth)
                                           : profile->link_alpha.value + (double)bytes[l] / bandwidth;
        for (uint32_t t = 1; t < TOKENS; t++)
            cpu[l * TOKENS + t] = mode == MOESIM_TIME_PAPER ? profile->paper_tau.value * t
                                                            : moesim_profile_cpu_s(profile, t, (double)bytes[l]);
    }
    double *table = bound_cpu(bound, cpu, TOKENS);
    moesim_costing *costing = make_costing(profile, mode, bandwidth, layers, bytes);
    for (uint32_t paths = 0; paths < 2; paths++) {
        moesim_offline_cost got;
        const moesim_offline_cost want = bound_solve(bound, h2d, table, 30, (enum moesim_paths)paths);
        ck_assert_msg(moesim_bound_offline_cost(bound, costing, 30, (enum moesim_paths)paths, &got, &err) == MOESIM_OK, "%s",
                      err.text);
        ck_assert_double_gt(want.seconds, 0);
        ck_assert_double_eq_tol(got.seconds, want.seconds, 1e-12 * want.seconds);
    }
    moesim_costing_destroy(&costing);
    moesim_bound_close(&bound);
    free(table);
    free(cpu);
    free(profile);
}

START_TEST(test_profiles)
{
    check_profile("paper-a", MOESIM_TIME_PAPER, 20e9);
    check_profile("h200-host", MOESIM_TIME_MODEL, 32e9);
}
END_TEST

START_TEST(test_refusals)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_offline_cost out;
    moesim_bound *bound = NULL;
    ck_assert_int_eq(bound_try_read(SAMPLE, 10000, &bound, &err), MOESIM_E_LIMIT);
    ck_assert_ptr_null(bound);
    ck_assert_ptr_nonnull(strstr(err.text, "--requests"));

    bound = bound_read(SAMPLE, 0, 1);
    const moesim_bound_info *info = moesim_bound_get_info(bound);
    ck_assert_uint_ge(info->memory_bytes, 10000);
    ck_assert_int_eq(bound_try_read(SAMPLE, info->memory_bytes - 1, &(moesim_bound *){ NULL }, &err), MOESIM_E_LIMIT);
    const uint64_t bytes[MOST_LAYERS] = { 0 };
    moesim_costing *count = make_costing(NULL, MOESIM_TIME_COUNT, 0, info->layers, bytes);
    ck_assert_int_eq(moesim_bound_offline_cost(bound, count, 1, MOESIM_PATHS_TWO, &out, &err), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "--time model"));
    moesim_costing_destroy(&count);

    double h2d[MOST_LAYERS] = { 1, NAN }, *table = linear_cpu(bound, 1, 0);
    ck_assert_int_eq(moesim_bound_solve(bound, h2d, table, info->experts + 1, MOESIM_PATHS_TWO, &out, &err), MOESIM_E_USAGE);
    ck_assert_ptr_nonnull(strstr(err.text, "E = "));
    ck_assert_int_eq(moesim_bound_solve(bound, h2d, table, 1, MOESIM_PATHS_TWO, &out, &err), MOESIM_E_INTERNAL);
    free(table);
    moesim_bound_close(&bound);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("offline-cost");
    TCase *tc = tcase_create("offline-cost");
    tcase_set_timeout(tc, 600);
    tcase_add_test(tc, test_belady);
    tcase_add_test(tc, test_recorded);
    tcase_add_test(tc, test_profiles);
    tcase_add_test(tc, test_refusals);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
