/* SPDX-License-Identifier: Apache-2.0
 *
 * Copies and selections of traces: content and attributes stay, a failure leaves nothing.
 */
#include <string.h>
#include <unistd.h>

#include "tests/unit/traces_write/common.h"
#include "traces/copy.h"

static moesim_trace *open_trace(const char *path)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    ck_assert_msg(moesim_trace_open(path, NULL, &trace, &err) == MOESIM_OK, "%s", err.text);
    return trace;
}

static moesim_code copy(const char *in, const char *out, const moesim_copy_selection *selection, int compression,
                        moesim_copy_result *result, moesim_error *err)
{
    moesim_trace *trace = open_trace(in);
    const moesim_writer_options options = {compression, 0};
    const moesim_code code = moesim_trace_copy(trace, out, selection, NULL, &options, result, err);
    moesim_trace_close(&trace);
    return code;
}

static void check_source(const char *in, const char *out)
{
    char digest[MOESIM_DIGEST_CHARS];
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = open_trace(out);
    ck_assert_int_eq(moesim_digest_file(in, digest, &err), MOESIM_OK);
    ck_assert_str_eq(moesim_trace_get_info(trace)->source_digest, digest);
    moesim_trace_close(&trace);
}

START_TEST(convert)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_copy_result result;
    rich_trace(&t, 5);
    t.info.gate_is_f32 = _i == 1;
    test_trace_write(&t, test_path("a.h5"));
    ck_assert_msg(copy(test_path("a.h5"), test_path("gzip.h5"), NULL, MOESIM_GZIP, &result, &err) == MOESIM_OK, "%s",
                  err.text);
    ck_assert(result.requests == t.num_requests && result.passes == t.num_passes && result.rows == t.num_rows);
    ck_assert_int_eq(copy(test_path("gzip.h5"), test_path("zstd.h5"), NULL, MOESIM_ZSTD, NULL, &err), MOESIM_OK);
    ck_assert_int_eq(copy(test_path("gzip.h5"), test_path("again.h5"), NULL, MOESIM_ZSTD, NULL, &err), MOESIM_OK);
    check_same_content(test_path("a.h5"), test_path("gzip.h5"), 0, 0);
    check_same_content(test_path("a.h5"), test_path("zstd.h5"), 0, 0);
    check_source(test_path("a.h5"), test_path("gzip.h5"));
    check_source(test_path("gzip.h5"), test_path("zstd.h5"));
    ck_assert(same_bytes(test_path("zstd.h5"), test_path("again.h5")));
    ck_assert(!same_bytes(test_path("zstd.h5"), test_path("gzip.h5")));
    test_trace_fini(&t);
}
END_TEST

START_TEST(select_part)
{
    static const struct { moesim_copy_selection selection; uint32_t requests, layers, first_request; } part[] = {
        {{0, 3, 0, UINT64_MAX, NULL}, 3, 5, 0}, {{2, UINT64_MAX, 0, 5, NULL}, 4, 5, 2}, {{4, 5, 1, 3, NULL}, 1, 2, 4},
        {{0, UINT64_MAX, 4, UINT64_MAX, NULL}, 6, 1, 0}, {{3, 6, 0, 2, NULL}, 3, 2, 3},
    };
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 6);
    test_trace_write(&t, test_path("a.h5"));
    for (size_t i = 0; i < sizeof part / sizeof part[0]; i++) {
        moesim_copy_result result;
        ck_assert_msg(copy(test_path("a.h5"), test_path("b.h5"), &part[i].selection, MOESIM_ZSTD, &result, &err) == MOESIM_OK,
                      "%s", err.text);
        ck_assert_uint_eq(result.requests, part[i].requests);
        ck_assert_uint_eq(result.layers, part[i].layers);
        check_same_content(test_path("a.h5"), test_path("b.h5"), (uint32_t)part[i].selection.layer_begin,
                           part[i].first_request);
        check_source(test_path("a.h5"), test_path("b.h5"));
    }
    test_trace_fini(&t);
}
END_TEST

START_TEST(select_workload)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_copy_result result;
    static const char *const name[] = {"code", "math", "code", "math", "math"};
    test_trace_init(&t, 1, 4, 1, 1);
    for (uint32_t q = 0; q < 5; q++) {
        test_trace_add_request(&t, name[q], 10 + q, q);
        test_trace_add_pass(&t, q, MOESIM_PASS_DENOISE, 0, 0, q + 1, 0);
    }
    test_trace_write(&t, test_path("a.h5"));
    const moesim_copy_selection selection = {1, 4, 0, 1, "math"};
    ck_assert_int_eq(copy(test_path("a.h5"), test_path("b.h5"), &selection, MOESIM_ZSTD, &result, &err), MOESIM_OK);
    ck_assert(result.requests == 2 && result.passes == 2 && result.rows == 2 + 4);
    moesim_trace *b = open_trace(test_path("b.h5"));
    for (uint32_t q = 0; q < 2; q++) {
        moesim_pass pass;
        ck_assert_int_eq(moesim_trace_pass(b, q, &pass, &err), MOESIM_OK);
        ck_assert_uint_eq(pass.request, q);
        ck_assert_uint_eq(moesim_trace_get_request(b, q)->prompt_tokens, 11 + 2 * q);
        ck_assert_str_eq(moesim_trace_get_request(b, q)->workload, "math");
    }
    moesim_trace_close(&b);
    test_trace_fini(&t);
}
END_TEST

/* A pass beyond the size of a piece (16 MiB decoded) is copied in several; layers are cut out of each. */
START_TEST(large_pass)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    test_trace_init(&t, 64, 256, 8, 1);
    test_trace_add_request(&t, "long", 9000, -1);
    test_trace_add_pass(&t, 0, MOESIM_PASS_PREFILL, -1, 0, 9000, 0);
    for (size_t r = 0; r < t.num_rows; r++)
        for (uint32_t l = 0; l < 64; l++)
            for (uint16_t k = 0; k < 8; k++)
                test_trace_ids(&t, r, l)[k] = (uint16_t)((r + l * 3 + k) % 256);
    test_trace_write(&t, test_path("a.h5"));
    const moesim_copy_selection selection = {0, 1, 60, 63, NULL};
    moesim_copy_result result;
    ck_assert_msg(copy(test_path("a.h5"), test_path("b.h5"), NULL, MOESIM_ZSTD, &result, &err) == MOESIM_OK, "%s", err.text);
    ck_assert(result.passes == 1 && result.rows == 9000);
    check_same_content(test_path("a.h5"), test_path("b.h5"), 0, 0);
    ck_assert_int_eq(copy(test_path("a.h5"), test_path("c.h5"), &selection, MOESIM_ZSTD, NULL, &err), MOESIM_OK);
    check_same_content(test_path("a.h5"), test_path("c.h5"), 60, 0);
    test_trace_fini(&t);
}
END_TEST

START_TEST(refusals)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 6);
    test_trace_write(&t, test_path("a.h5"));
    ck_assert_int_eq(symlink("a.h5", test_path("link.h5")), 0);
    ck_assert_int_eq(link(test_path("a.h5"), test_path("hard.h5")), 0);
    const struct { moesim_copy_selection selection; const char *part; } bad[] = {
        {{6, 9, 0, 1, NULL}, "requests 6:9 is empty or reaches beyond the trace, which has 0:6"},
        {{0, 7, 0, 1, NULL}, "requests 0:7 "}, {{3, 3, 0, 1, NULL}, "requests 3:3 "},
        {{6, UINT64_MAX, 0, 1, NULL}, "requests 6:6 "},
        {{0, 6, 0, 1, "absent"}, "workload absent"}, {{0, 6, 5, 9, NULL}, "MoE layers 5:9 is empty or reaches beyond"},
        {{0, 6, 0, 6, NULL}, "MoE layers 0:6 "}, {{0, 6, 0, UINT32_MAX, NULL}, "which has 0:5"},
        {{0, 6, 2, 2, NULL}, "layers 2:2"},
        {{0, 6, 5, UINT64_MAX, NULL}, "layers 5:5"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_ne(copy(test_path("a.h5"), test_path("b.h5"), &bad[i].selection, MOESIM_ZSTD, NULL, &err), MOESIM_OK);
        check_error(&err, MOESIM_E_USAGE, bad[i].part);
    }
    const char *same[] = {"a.h5", "link.h5", "hard.h5"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        ck_assert_int_ne(copy(test_path("a.h5"), test_path(same[i]), NULL, MOESIM_ZSTD, NULL, &err), MOESIM_OK);
        check_error(&err, MOESIM_E_USAGE, "is the input itself");
    }
    ck_assert_uint_eq(count_entries(), 3);
    test_trace_fini(&t);
}
END_TEST

/* Damage that only the rows show: found while copying, and nothing is kept. */
START_TEST(damaged_input)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 6);
    t.expert[(t.num_rows - 1) * 15] = 24;
    test_trace_write(&t, test_path("a.h5"));
    ck_assert_int_ne(copy(test_path("a.h5"), test_path("b.h5"), NULL, MOESIM_ZSTD, NULL, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "/routing/expert");
    ck_assert_uint_eq(count_entries(), 1);
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copies of traces");
    TCase *cases = tcase_create("copy");
    tcase_set_timeout(cases, 60);
    tcase_add_loop_test(cases, convert, 0, 2);
    tcase_add_test(cases, select_part);
    tcase_add_test(cases, select_workload);
    tcase_add_test(cases, large_pass);
    tcase_add_test(cases, refusals);
    tcase_add_test(cases, damaged_input);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
