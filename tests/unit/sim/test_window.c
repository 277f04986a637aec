/* SPDX-License-Identifier: Apache-2.0
 *
 * Windows of events against the slow reference: schedules, row classes, confidences, reductions, next uses, window sizes;
 * and how a source ends, refuses and is closed.
 */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/sim/reference.h"

static struct test_shape busy_shape(void)
{
    return (struct test_shape){
        .layers = 3, .experts = 40, .top_k = 3, .block_length = 4, .requests = 4, .blocks = 2, .prefill_rows = 5,
        .max_steps = 4, .commit_passes = true, .empty_passes = true, .dummy_passes = true, .unused_slots = true,
        .edits = true, .redraw = 0.4,
    };
}

static const size_t WINDOWS[] = { 16 << 10, 48 << 10, 64 << 20 };
enum { NUM_WINDOWS = sizeof WINDOWS / sizeof WINDOWS[0] };

/* The same events for every window size, equal to the reference. */
static void check_shape(const struct test_shape *shape, uint64_t seed, moesim_window_params params)
{
    struct test_trace t;
    size_t windows[NUM_WINDOWS];
    test_trace_random(&t, shape, seed);
    for (size_t i = 0; i < NUM_WINDOWS; i++) {
        params.window_bytes = WINDOWS[i];
        windows[i] = ref_check_all(&t, &params);
    }
    ck_assert_uint_gt(windows[0], windows[NUM_WINDOWS - 1]);
    test_trace_fini(&t);
}

START_TEST(events_in_file_order)
{
    struct test_shape shape = busy_shape();
    moesim_window_params params = ref_params(0);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        params.warmup = seed % 3;
        shape.interleave = seed % 2;
        shape.prefill_rows = seed < 5 ? 5 : 0;
        shape.experts = seed == 6 ? 200 : 40;
        check_shape(&shape, seed, params);
    }
}
END_TEST

START_TEST(events_of_selected_requests)
{
    struct test_shape shape = busy_shape();
    moesim_window_params params = ref_params(0);
    shape.interleave = true;
    params.request_begin = 1;
    params.request_end = 3;
    params.warmup = 1;
    check_shape(&shape, 11, params);
}
END_TEST

START_TEST(events_of_forward_calls)
{
    struct test_shape shape = busy_shape();
    moesim_window_params params = ref_params(0);
    shape.interleave = true;
    shape.forward_groups = 3;
    for (uint64_t seed = 21; seed <= 24; seed++) {
        params.warmup = seed % 2;
        check_shape(&shape, seed, params);
    }
}
END_TEST

START_TEST(events_of_merged_requests)
{
    struct test_shape shape = busy_shape();
    moesim_window_params params = ref_params(0);
    shape.requests = 7;
    for (uint64_t seed = 31; seed <= 36; seed++) {
        params.batch = 2 + (uint32_t)(seed % 4);
        params.warmup = seed % 2 ? 2 : 0;
        shape.interleave = seed % 2;
        shape.prefill_rows = seed < 35 ? 4 : 0;
        check_shape(&shape, seed, params);
    }
}
END_TEST

START_TEST(unnormalised_gates_are_divided_by_their_sum)
{
    struct test_shape shape = busy_shape();
    struct test_trace t;
    moesim_window_params params = ref_params(1 << 20);
    test_trace_random(&t, &shape, 41);
    (void)snprintf(t.info.gate_kind, sizeof t.info.gate_kind, "sigmoid, unnormalised");
    t.info.gate_unnormalised = true;
    for (size_t i = 0; i < t.info.num_layers * (size_t)t.info.top_k; i++)
        t.gate[i] = 0;           /* a row whose sum is 0 */
    ref_check_all(&t, &params);
    test_trace_fini(&t);
}
END_TEST

/* Two rows of block 0: position 10 masked, 11 committed in the first pass. */
START_TEST(classes_and_confidences_by_hand)
{
    struct test_trace t;
    test_trace_init(&t, 1, 8, 2, 2);
    test_trace_add_request(&t, "hand", 10, -1);
    const struct { int32_t block; uint8_t kind, state[2]; float confidence[2]; } pass[] = {
        { 0, MOESIM_PASS_DENOISE, { 0, 1 }, { 0.25f, 0.75f } },
        { 0, MOESIM_PASS_DENOISE, { 0, 3 }, { NAN, 0.5f } },
        { 0, MOESIM_PASS_DENOISE, { 1, 2 }, { 0.875f, 0.5f } },
        { 0, MOESIM_PASS_COMMIT, { 2, 2 }, { NAN, NAN } },
        { 1, MOESIM_PASS_DENOISE, { 0, 0 }, { 0.5f, 0.5f } },
    };
    const struct { uint8_t input[2]; float confidence[2]; double weighted[2]; uint8_t first; } expected[] = {
        { { MOESIM_ROW_MASKED, MOESIM_ROW_MASKED }, { NAN, NAN }, { 1, 1 }, 1 },
        { { MOESIM_ROW_MASKED, MOESIM_ROW_JUST }, { 0.25f, 0.75f }, { 0.25, 1 }, 0 },
        { { MOESIM_ROW_MASKED, MOESIM_ROW_JUST }, { NAN, 0.5f }, { 1, 1 }, 0 },
        { { MOESIM_ROW_JUST, MOESIM_ROW_LONG }, { 0.875f, 0.5f }, { 1, 1 }, 0 },
        { { MOESIM_ROW_MASKED, MOESIM_ROW_MASKED }, { NAN, NAN }, { 1, 1 }, 1 },
    };
    enum { PASSES = sizeof pass / sizeof pass[0] };
    for (size_t i = 0; i < PASSES; i++) {
        size_t p = test_trace_add_pass(&t, 0, pass[i].kind, pass[i].block, (int32_t)i, 2, pass[i].block == 0 ? 10 : 12);
        for (size_t r = 0; r < 2; r++) {
            size_t row = test_trace_row(&t, p) + r;
            const uint16_t id = (uint16_t)r;
            test_trace_route(&t, row, 0, 1, &id);
            test_trace_gates(&t, row, 0)[0] = 1;
            t.state[row] = pass[i].state[r];
            t.confidence[row] = pass[i].confidence[r];
        }
    }
    test_trace_write(&t, test_path("hand.h5"));
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_source *source = NULL;
    const moesim_window *w = NULL;
    moesim_window_params params = ref_params(1 << 20);
    ck_assert_int_eq(moesim_trace_open(test_path("hand.h5"), NULL, &trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_source_open(trace, &params, &source, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_source_next(source, &w, &err), MOESIM_OK);
    ck_assert_uint_eq(w->num_steps, PASSES);
    for (size_t i = 0; i < PASSES; i++) {
        ck_assert_uint_eq(w->step[i].first, expected[i].first);
        for (size_t r = 0; r < 2; r++) {
            const moesim_row *row = &w->row[w->step[i].row + r];
            const float c = expected[i].confidence[r];
            ck_assert_uint_eq(row->input, expected[i].input[r]);
            ck_assert(isnan(c) ? isnan(row->confidence) : row->confidence == c);
            ck_assert(w->weighted[w->list_begin[i] + r] == expected[i].weighted[r]);
        }
    }
    moesim_source_close(&source);
    moesim_trace_close(&trace);
    test_trace_fini(&t);
}
END_TEST

static const char *write_busy(uint64_t seed, uint32_t forward_groups)
{
    struct test_shape shape = busy_shape();
    struct test_trace t;
    const char *path = test_path("busy.h5");
    shape.interleave = forward_groups > 1;
    shape.forward_groups = forward_groups;
    test_trace_random(&t, &shape, seed);
    test_trace_write(&t, path);
    test_trace_fini(&t);
    return path;
}

START_TEST(closing_early_is_clean)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_window_params params = ref_params(8 << 10);
    ck_assert_int_eq(moesim_trace_open(write_busy(51, 0), NULL, &trace, &err), MOESIM_OK);
    for (int taken = 0; taken < 6; taken++) {
        moesim_source *source = NULL;
        ck_assert_int_eq(moesim_source_open(trace, &params, &source, &err), MOESIM_OK);
        for (int i = 0; i < taken; i++) {
            const moesim_window *w = NULL;
            ck_assert_int_eq(moesim_source_next(source, &w, &err), MOESIM_OK);
            ck_assert_ptr_nonnull(w);
        }
        moesim_source_close(&source);
        ck_assert_ptr_null(source);
    }
    moesim_trace_close(&trace);
}
END_TEST

START_TEST(the_end_stays_the_end)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_source *source = NULL;
    const moesim_window *w = NULL;
    moesim_window_params params = ref_params(64 << 20);
    ck_assert_int_eq(moesim_trace_open(write_busy(52, 0), NULL, &trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_source_open(trace, &params, &source, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_source_next(source, &w, &err), MOESIM_OK);
    ck_assert_ptr_nonnull(w);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(moesim_source_next(source, &w, &err), MOESIM_OK);
        ck_assert_ptr_null(w);
    }
    moesim_source_close(&source);
    moesim_trace_close(&trace);
}
END_TEST

static void check_refusal(const char *path, moesim_window_params params, moesim_code code, const char *text)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    moesim_source *source = NULL;
    ck_assert_int_eq(moesim_trace_open(path, NULL, &trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_source_open(trace, &params, &source, &err), code);
    ck_assert_msg(strstr(err.text, text) != NULL, "%s lacks %s", err.text, text);
    ck_assert_ptr_null(source);
    moesim_trace_close(&trace);
}

START_TEST(refusals_name_the_remedy)
{
    const char *path = write_busy(53, 0);
    moesim_window_params params = ref_params(64 << 20);
    params.request_begin = 4;
    check_refusal(path, params, MOESIM_E_USAGE, "has 4");
    params.request_begin = params.request_end = 2;
    check_refusal(path, params, MOESIM_E_USAGE, "selects no request");
    params = ref_params(64 << 20);
    params.batch = MOESIM_MAX_BATCH + 1;
    check_refusal(path, params, MOESIM_E_USAGE, "--batch");
    params = ref_params(1 << 10);
    check_refusal(path, params, MOESIM_E_USAGE, "--window");
    params = ref_params(64 << 20);
    params.batch = 2;
    check_refusal(write_busy(54, 3), params, MOESIM_E_USAGE, "recorded with batching");
}
END_TEST

START_TEST(endless_forward_calls_are_refused)
{
    struct test_trace t;
    test_trace_init(&t, 1, 4, 1, 1);
    test_trace_add_request(&t, "hand", 1, -1);
    t.info.has_forward = true;
    for (int32_t i = 0; i < 4200; i++) {
        size_t p = test_trace_add_pass(&t, 0, MOESIM_PASS_DENOISE, i, 0, 0, i);
        t.pass[p].pass.forward = 7;
    }
    test_trace_write(&t, test_path("forward.h5"));
    check_refusal(test_path("forward.h5"), ref_params(64 << 20), MOESIM_E_LIMIT, "/pass/forward");
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        events_in_file_order, events_of_selected_requests, events_of_forward_calls, events_of_merged_requests,
        unnormalised_gates_are_divided_by_their_sum, classes_and_confidences_by_hand, closing_early_is_clean,
        the_end_stays_the_end, refusals_name_the_remedy, endless_forward_calls_are_refused,
    };
    Suite *suite = suite_create("window");
    TCase *tcase = tcase_create("window");
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(tcase, tests[i]);
    tcase_set_timeout(tcase, 120);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
