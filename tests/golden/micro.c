/* SPDX-License-Identifier: Apache-2.0
 *
 * Small cases whose answers are known by hand, through trace file and engine: the conformance case of arXiv 2608.07911 and
 * the cases that tell event-atomic from flattened replay and bypass from forced admission.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/support.h"

/* Writes a trace of one request whose passes activate the given sets in every layer; ids are the digits of each word. */
static const char *write_sets(uint32_t layers, uint32_t experts, uint32_t top_k, const char *sets)
{
    struct test_trace t;
    test_trace_init(&t, layers, experts, top_k, 16);
    test_trace_add_request(&t, "micro", 0, 1);
    int32_t step = 0;
    for (const char *p = sets; *p != '\0';) {
        uint16_t ids[10];
        size_t n = 0;
        for (; *p >= '0' && *p <= '9'; p++)
            ids[n++] = (uint16_t)(*p - '0');
        test_trace_add_set(&t, step++, n, ids);
        while (*p == ' ')
            p++;
    }
    const char *path = test_path("micro.h5");
    test_trace_write(&t, path);
    test_trace_fini(&t);
    return path;
}

static moesim_outcome run(const char *path, const char *policy, uint32_t cache, enum moesim_order_mode order)
{
    moesim_outcome out;
    moesim_run_params params;
    moesim_run_params_defaults(&params);
    params.order = order;
    test_run(path, policy, cache, &params, &out);
    return out;
}

START_TEST(test_conformance)
{
    const char *path = write_sets(3, 4, 2, "01 02 01 03 01");
    moesim_outcome out;
    struct test_decisions d;
    test_run_decisions(path, "lru", 2, NULL, &out, &d);
    ck_assert_double_eq(out.total.active, 30);
    ck_assert_double_eq(out.total.hits, 12);
    ck_assert_double_eq(out.total.misses, 18);
    ck_assert_uint_eq(out.evictions, 12);
    ck_assert_uint_eq(out.insertions, 18);
    ck_assert_uint_eq(d.num_events, 15);
    for (size_t i = 0; i < d.num_events; i++)
        ck_assert_uint_eq(d.moved_begin[i + 1] - d.moved_begin[i], i < 3 ? 2 : 1);
    test_decisions_fini(&d);
    moesim_outcome_fini(&out);
}
END_TEST

START_TEST(test_atomic_and_flattened)
{
    const char *path = write_sets(1, 2, 2, "01 01");
    moesim_outcome atomic = run(path, "lru", 1, MOESIM_ATOMIC), flat = run(path, "lru", 1, MOESIM_FLATTENED);
    ck_assert_double_eq(atomic.total.misses, 3);
    ck_assert_double_eq(flat.total.misses, 4);
    moesim_outcome_fini(&atomic);
    moesim_outcome_fini(&flat);
}
END_TEST

START_TEST(test_bypass)
{
    moesim_outcome out = run(write_sets(1, 2, 1, "0 1 0"), "belady", 1, MOESIM_ATOMIC);
    ck_assert_double_eq(out.total.misses, 2);
    ck_assert_uint_eq(out.insertions, 1);
    ck_assert_uint_eq(out.evictions, 0);
    moesim_outcome_fini(&out);
}
END_TEST

START_TEST(test_cycle)
{
    const char *path = write_sets(1, 3, 1, "0 1 2 0 1 2");
    moesim_outcome lru = run(path, "lru", 2, MOESIM_ATOMIC), belady = run(path, "belady", 2, MOESIM_ATOMIC);
    ck_assert_double_eq(lru.total.misses, 6);
    ck_assert_double_eq(belady.total.misses, 4);
    moesim_outcome_fini(&lru);
    moesim_outcome_fini(&belady);
}
END_TEST

/* 0 and 1 are moved once each; 0 leaves unused when 1 takes its place, 1 stays to the end: one wasted, one pending. */
START_TEST(test_waste)
{
    moesim_outcome out = run(write_sets(1, 3, 1, "0 1"), "lru", 1, MOESIM_ATOMIC);
    ck_assert_double_eq(out.total.moved, 2);
    ck_assert_double_eq(out.total.moved_bytes, 2000);
    ck_assert_double_eq(out.total.unused, 1);
    ck_assert_uint_eq(out.pending, 1);
    ck_assert_uint_eq(out.read_bytes, 2000);
    moesim_outcome_fini(&out);
}
END_TEST

/* Pass 1 moves 0, which pass 2 uses; pass 2 moves 1, which pass 3 does not use; pass 3 has no next pass. */
START_TEST(test_effective_transfers)
{
    moesim_outcome out = run(write_sets(1, 4, 2, "0 01 02"), "lru", 2, MOESIM_ATOMIC);
    ck_assert_double_eq(out.total.transfers_judged, 2);
    ck_assert_double_eq(out.total.transfers_used, 1);
    ck_assert_double_eq(test_metric(&out, "effective_transfer_ratio"), 0.5);
    moesim_outcome_fini(&out);
}
END_TEST

/* Figure 9: p = .333 .100 .567 0; with three slots the resident E4, not activated, leaves; p orders what stays in two. */
START_TEST(test_figure_9)
{
    struct test_trace t;
    test_trace_init(&t, 1, 5, 2, 2);
    test_trace_add_request(&t, "figure 9", 0, 2);
    const uint16_t warm[] = {4, 1}, one[] = {1, 3}, two[] = {3, 2}, last[] = {3, 1};
    size_t p0 = test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 0, 0, 2, 0);
    size_t p1 = test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 0, 1, 2, 0);
    size_t p2 = test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, 0, 2, 2, 0);
    for (size_t i = 0; i < 6; i++)
        t.state[i] = MOESIM_STATE_MASKED;
    size_t r = test_trace_row(&t, p0);
    test_trace_route(&t, r, 0, 2, warm);
    t.confidence[r] = 0.8f;
    t.confidence[r + 1] = 0.4f;
    r = test_trace_row(&t, p1);
    test_trace_route(&t, r, 0, 2, one);
    test_trace_route(&t, r + 1, 0, 2, two);
    const float gates[] = {0.5f, 0.5f, 0.7f, 0.3f};
    memcpy(test_trace_gates(&t, r, 0), gates, sizeof gates);
    test_trace_route(&t, test_trace_row(&t, p2), 0, 2, last);
    const char *path = test_path("figure9.h5");
    test_trace_write(&t, path);
    test_trace_fini(&t);

    moesim_outcome out;
    struct test_decisions d;
    test_run_decisions(path, "oled", 3, NULL, &out, &d);
    ck_assert_uint_eq(d.evicted_begin[2] - d.evicted_begin[1], 1);   /* E4 alone leaves */
    ck_assert_uint_eq(d.evicted[d.evicted_begin[1]], 4);
    test_decisions_fini(&d);
    moesim_outcome_fini(&out);
    test_run_decisions(path, "oled", 2, NULL, &out, &d);             /* 1 and 3 stay: both hit in the third pass */
    ck_assert_uint_eq(d.hits_begin[3] - d.hits_begin[2], 2);
    test_decisions_fini(&d);
    moesim_outcome_fini(&out);
}
END_TEST

START_TEST(test_above_all_experts)
{
    moesim_outcome out;
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(test_try_run(write_sets(1, 3, 1, "0 1"), "lru", 4, NULL, &out, &err), MOESIM_E_USAGE);
    ck_assert_msg(strstr(err.text, "3") != NULL, "%s does not name the number of experts", err.text);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("micro");
    TCase *tc = tcase_create("micro");
    tcase_add_test(tc, test_conformance);
    tcase_add_test(tc, test_atomic_and_flattened);
    tcase_add_test(tc, test_bypass);
    tcase_add_test(tc, test_cycle);
    tcase_add_test(tc, test_waste);
    tcase_add_test(tc, test_effective_transfers);
    tcase_add_test(tc, test_figure_9);
    tcase_add_test(tc, test_above_all_experts);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
