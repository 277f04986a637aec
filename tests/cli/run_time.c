/* SPDX-License-Identifier: Apache-2.0
 *
 * What `moesim run` says of time: how its parts relate, and what may not change it. usage: run_time MOESIM SOURCE_ROOT
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/cli/command.h"

#define TIMED "--policy lru,oled-full,ideal,full --cache 40,100 --profile h200-host --bandwidth 32"

static const char *const resident[] = { "part_other_gpu_ms", "part_other_host_ms", "part_sync_ms", "part_hits_ms",
                                        "part_policy_ms", "part_head_ms" };
static const char *const missing[] = { "part_link_ms", "part_cpu_ms", "part_dram_ms" };

static double sum_of(const json_t *result, const char *const *name, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += test_json_number(result, "%s", name[i]);
    return sum;
}

START_TEST(test_parts_add_up)
{
    const json_t *results = test_json_at(test_run_json(TIMED), "results"), *result;
    size_t i, full = 0;
    ck_assert_uint_eq(json_array_size(results), 8);
    json_array_foreach(results, i, result) {
        const double tpot = test_json_number(result, "tpot_ms"), miss = sum_of(result, missing, COUNT(missing));
        const double all = sum_of(result, resident, COUNT(resident)) + miss + test_json_number(result, "waited_ms");
        ck_assert_double_gt(tpot, 0);
        ck_assert_double_le(fabs(all - tpot), 1e-12 * tpot);
        ck_assert_double_le(fabs(miss - test_json_number(result, "miss_ms")), 1e-12 * tpot);
        ck_assert_double_le(test_json_number(result, "ci/tpot_ms/0"), tpot);
        ck_assert_double_ge(test_json_number(result, "ci/tpot_ms/1"), tpot);
        if (strcmp(test_json_text(result, "policy"), "full") != 0)
            continue;
        full++;
        ck_assert_double_eq(miss, 0);
        ck_assert_double_eq(test_json_number(result, "busy_link"), 0);
    }
    ck_assert_uint_eq(full, 2);
}
END_TEST

/* Every expert a hit: no constant of link or CPU is read. */
START_TEST(test_full_does_not_know_the_link)
{
    const json_t *slow = test_run_json("--policy full --cache 40 --profile h200-host --bandwidth 1");
    const json_t *fast = test_run_json("--policy full --cache 40 --profile h200-host --bandwidth 100GB/s");
    ck_assert_double_eq(test_json_number(slow, "results/0/tpot_ms"), test_json_number(fast, "results/0/tpot_ms"));
    ck_assert_double_eq(test_json_number(slow, "results/0/bandwidth_gbps"), 1);
    ck_assert_double_eq(test_json_number(fast, "results/0/bandwidth_gbps"), 100);
}
END_TEST

START_TEST(test_switches)
{
    const json_t *all = test_run_json("--policy full --cache 40 --time model");
    const json_t *none = test_run_json("--policy full --cache 40 --time model --without other,sync --without policy,head");
    ck_assert_double_eq(test_json_number(none, "results/0/tpot_ms"), test_json_number(none, "results/0/part_hits_ms"));
    ck_assert_double_eq(test_json_number(none, "results/0/part_hits_ms"), test_json_number(all, "results/0/part_hits_ms"));
    ck_assert_uint_eq(json_array_size(test_json_at(none, "config/without")), 4);
}
END_TEST

/* Counts are those of a run that tells no time, for policies that do not read costs. */
START_TEST(test_counts_stay)
{
    static const char *const same[] = { "hits", "misses", "moved", "evictions", "unused", "read_bytes" };
    const json_t *counted = test_run_json("--policy lru,belady --cache 40");
    const json_t *timed = test_run_json("--policy lru,belady --cache 40 --profile h200-host --bandwidth 16");
    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; k < COUNT(same); k++)
            ck_assert_int_eq(test_json_whole(counted, "results/%zu/%s", i, same[k]),
                             test_json_whole(timed, "results/%zu/%s", i, same[k]));
}
END_TEST

START_TEST(test_threads)
{
    struct test_command one = test_shell("\"$MOESIM\" run \"$SAMPLE\" --format json --threads 1 %s", TIMED);
    struct test_command two = test_shell("\"$MOESIM\" run \"$SAMPLE\" --format json --threads 2 %s", TIMED);
    ck_assert_int_eq(one.status, 0);
    ck_assert_int_eq(two.status, 0);
    ck_assert_str_eq(one.out, two.out);
}
END_TEST

/* No policy without prefetch spends less on hits and misses than copies and CPU take at least. */
START_TEST(test_bound)
{
    const json_t *run = test_run_json("--policy lru,belady,oled-full --cache 20,60,120 --profile h200-host "
                                      "--bound offline-cost");
    const json_t *results = test_json_at(run, "results"), *result;
    size_t i;
    ck_assert_uint_eq(json_array_size(test_json_at(run, "bounds")), 3);
    json_array_foreach(results, i, result) {
        const double bound = test_json_number(run, "bounds/%zu/ms_per_token", i / 3);
        ck_assert_int_eq(test_json_whole(run, "bounds/%zu/cache", i / 3), test_json_whole(result, "cache"));
        ck_assert_double_gt(bound, 0);
        ck_assert_double_le(bound, test_json_number(result, "part_hits_ms") + test_json_number(result, "miss_ms"));
    }
    ck_assert_double_gt(test_json_number(run, "bounds/0/ms_per_token"), test_json_number(run, "bounds/2/ms_per_token"));
}
END_TEST

int main(int argc, char **argv)
{
    const TTest *const tests[] = {
        test_parts_add_up, test_full_does_not_know_the_link, test_switches, test_counts_stay, test_threads, test_bound,
    };
    return test_command_main("run_time", argc, argv, tests, COUNT(tests));
}
