/* SPDX-License-Identifier: Apache-2.0
 *
 * What the trace writer refuses, and that a failure at any moment leaves nothing behind.
 */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "tests/unit/traces_write/common.h"

START_TEST(bad_headers)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 1);
    const moesim_trace_info good = t.info;
    const struct { size_t offset; uint32_t value; const char *part; } bad[] = {
        {offsetof(moesim_trace_info, num_layers), 0, "num_moe_layers = 0 is outside 1..1024"},
        {offsetof(moesim_trace_info, num_layers), 1025, "num_moe_layers = 1025"},
        {offsetof(moesim_trace_info, num_experts), 0, "num_experts = 0"},
        {offsetof(moesim_trace_info, num_experts), 1025, "num_experts = 1025"},
        {offsetof(moesim_trace_info, top_k), 0, "top_k = 0"},
        {offsetof(moesim_trace_info, top_k), 25, "top_k = 25 is outside 1..24"},
        {offsetof(moesim_trace_info, block_length), 0, "block_length = 0"},
        {offsetof(moesim_trace_info, block_length), 4097, "block_length = 4097 is outside 1..4096"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        t.info = good;
        memcpy((char *)&t.info + bad[i].offset, &bad[i].value, sizeof bad[i].value);
        ck_assert_int_ne(test_trace_try_write(&t, test_path("t.h5"), &err), MOESIM_OK);
        check_error(&err, MOESIM_E_FORMAT, bad[i].part);
    }
    ck_assert_uint_eq(count_entries(), 0);
    t.info = good;
    test_trace_fini(&t);
}
END_TEST

START_TEST(bad_places)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 1);
    ck_assert_int_eq(mkdir(test_path("folder"), 0700), 0);
    const struct { const char *path; moesim_code code; } bad[] = {
        {"-", MOESIM_E_USAGE}, {test_path("absent/t.h5"), MOESIM_E_IO}, {test_path("folder"), MOESIM_E_IO},
        {"/dev/null", MOESIM_E_IO},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const moesim_code code = test_trace_try_write(&t, bad[i].path, &err);
        ck_assert_msg(code != MOESIM_OK && err.text[0] != '\0', "%s was accepted", bad[i].path);
        if (bad[i].code == MOESIM_E_USAGE)
            check_error(&err, MOESIM_E_USAGE, "standard output");
        ck_assert_uint_eq(count_entries(), 1);
    }
    test_trace_fini(&t);
}
END_TEST

START_TEST(bad_options)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_writer *w = NULL;
    rich_trace(&t, 1);
    const struct { moesim_writer_options options; const char *part; } bad[] = {
        {{2, 0}, "unknown compression"}, {{MOESIM_ZSTD, 20}, "level 20 is outside 1..19"},
        {{MOESIM_GZIP, 10}, "level 10 is outside 1..9"}, {{MOESIM_ZSTD, -1}, "level -1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_ne(moesim_writer_create(test_path("t.h5"), &t.info, t.layer_ids, t.expert_bytes, &bad[i].options, &w,
                                              &err), MOESIM_OK);
        check_error(&err, MOESIM_E_USAGE, bad[i].part);
        ck_assert_ptr_null(w);
    }
    ck_assert_uint_eq(count_entries(), 0);
    test_trace_fini(&t);
}
END_TEST

START_TEST(bad_passes)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_writer *w = NULL;
    test_trace_init(&t, 2, 4, 1, 1);
    t.info.has_residency = true;
    const uint32_t q = test_trace_add_request(&t, "w", 1, -1);
    test_trace_add_pass(&t, q, MOESIM_PASS_DENOISE, 0, 0, 1, 0);
    const moesim_pass good = t.pass[0].pass;
    const moesim_rows full = {.end = 1, .expert = t.expert, .gate = t.gate, .confidence = t.confidence, .state = t.state,
                              .position = t.position, .residency = t.residency};
    ck_assert_int_eq(moesim_writer_create(test_path("t.h5"), &t.info, t.layer_ids, t.expert_bytes, NULL, &w, &err), MOESIM_OK);
    moesim_pass pass = good;
    ck_assert_int_ne(moesim_writer_pass(w, &pass, &full, 0, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_INTERNAL, "request 0 (of 0 declared)");
    ck_assert_int_eq(moesim_writer_request(w, &t.request[0], &err), MOESIM_OK);
    pass.kind = 4;
    ck_assert_int_ne(moesim_writer_pass(w, &pass, &full, 0, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_INTERNAL, "kind 4");
    moesim_rows rows = full;
    rows.begin = 2;
    ck_assert_int_ne(moesim_writer_rows(w, &rows, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_INTERNAL, "end before they begin");
    const struct { size_t offset; const char *name; } column[] = {
        {offsetof(moesim_rows, expert), "/routing/expert"}, {offsetof(moesim_rows, gate), "/routing/gate"},
        {offsetof(moesim_rows, confidence), "/token/confidence"}, {offsetof(moesim_rows, state), "/token/state"},
        {offsetof(moesim_rows, position), "/token/position"}, {offsetof(moesim_rows, residency), "/observed/residency"},
    };
    for (size_t c = 0; c < sizeof column / sizeof column[0]; c++) {
        const void *nothing = NULL;
        rows = full;
        memcpy((char *)&rows + column[c].offset, &nothing, sizeof nothing);
        ck_assert_int_ne(moesim_writer_pass(w, &good, &rows, 0, &err), MOESIM_OK);
        check_error(&err, MOESIM_E_INTERNAL, column[c].name);
    }
    ck_assert_uint_eq(count_entries(), 1);   /* the temporary file */
    moesim_writer_discard(&w);
    ck_assert_ptr_null(w);
    moesim_writer_discard(&w);
    ck_assert_uint_eq(count_entries(), 0);
    test_trace_fini(&t);
}
END_TEST

START_TEST(values_beyond_half)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 1);
    t.gate[5] = 70000.0f;
    ck_assert_int_ne(test_trace_try_write(&t, test_path("t.h5"), &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "/routing/gate: a value beyond 65504");
    ck_assert_uint_eq(count_entries(), 0);
    t.info.gate_is_f32 = true;
    ck_assert_int_eq(test_trace_try_write(&t, test_path("t.h5"), &err), MOESIM_OK);
    test_trace_fini(&t);
}
END_TEST

START_TEST(interrupted)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 3);
    moesim_interrupt_install();
    raise(SIGINT);
    ck_assert_int_ne(test_trace_try_write(&t, test_path("t.h5"), &err), MOESIM_OK);
    check_error(&err, MOESIM_E_INTERRUPTED, "interrupted while writing");
    ck_assert_uint_eq(count_entries(), 0);
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("refusals of the trace writer");
    TCase *cases = tcase_create("refusals");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, bad_headers);
    tcase_add_test(cases, bad_places);
    tcase_add_test(cases, bad_options);
    tcase_add_test(cases, bad_passes);
    tcase_add_test(cases, values_beyond_half);
    tcase_add_test(cases, interrupted);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
