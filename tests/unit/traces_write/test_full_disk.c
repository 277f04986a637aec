/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that is full at any moment (a limit on file sizes stands for it): one error, and nothing is left in the folder.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/traces_write/common.h"
#include "traces/copy.h"
#include "traces/declog.h"

/* HDF5 itself loses memory when it cannot close a file; only here, where that is provoked. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

/* Wherever the disk fills up: one error, the older file untouched, nothing beside it, and the next write works. */
START_TEST(trace_writer)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    rich_trace(&t, 3);
    test_trace_write(&t, test_path("whole.h5"));
    struct stat st;
    ck_assert_int_eq(stat(test_path("whole.h5"), &st), 0);
    spill(test_path("t.h5"), "older", 5);
    for (uint64_t limit = 0; limit < (uint64_t)st.st_size; limit += (uint64_t)st.st_size / 12) {
        limit_file_size(limit);
        const moesim_code code = test_trace_try_write(&t, test_path("t.h5"), &err);
        unlimit_file_size();
        ck_assert_int_ne(code, MOESIM_OK);
        check_error(&err, MOESIM_E_IO, "File too large");
        ck_assert_uint_eq(count_entries(), 2);
        size_t n;
        unsigned char *data = slurp(test_path("t.h5"), &n);
        ck_assert_str_eq((const char *)data, "older");
        free(data);
    }
    ck_assert_int_eq(test_trace_try_write(&t, test_path("t.h5"), &err), MOESIM_OK);
    ck_assert(same_bytes(test_path("t.h5"), test_path("whole.h5")));
    test_trace_fini(&t);
}
END_TEST

START_TEST(decision_log)
{
    static const moesim_declog_header header = {.trace_digest = "", .model_id = "m", .policy = "lru", .options = "",
                                                .config = "{}", .num_layers = 4, .num_experts = 16, .cache = 8};
    moesim_error err = MOESIM_ERROR_INIT;
    struct stat st = {.st_size = 1};
    /* The first round has no limit and tells the size. */
    for (uint64_t limit = UINT64_MAX; limit == UINT64_MAX || limit < (uint64_t)st.st_size;
         limit = limit == UINT64_MAX ? 0 : limit + (uint64_t)st.st_size / 6) {
        moesim_declog *log = NULL;
        if (limit != UINT64_MAX)
            limit_file_size(limit);
        moesim_code code = moesim_declog_create(test_path("d.h5"), &header, &log, &err);
        for (uint32_t n = 0; n < 20000 && code == MOESIM_OK; n++) {
            const uint16_t expert[2] = {(uint16_t)(n * 7 % 16), (uint16_t)(n * 5 % 16)};
            const moesim_decision d = {.pass = n / 4, .clock = n / 4 + 1, .layer = n % 4, .n_hits = n % 3, .hits = expert,
                                       .n_evicted = n % 2, .evicted = expert};
            code = moesim_declog_append(log, &d, &err);
        }
        if (code == MOESIM_OK)
            code = moesim_declog_finish(&log, NULL, &err);
        moesim_declog_discard(&log);
        unlimit_file_size();
        if (limit == UINT64_MAX) {
            ck_assert_int_eq(code, MOESIM_OK);
            ck_assert_int_eq(stat(test_path("d.h5"), &st), 0);
            ck_assert_int_eq(remove(test_path("d.h5")), 0);
            continue;
        }
        ck_assert_int_ne(code, MOESIM_OK);
        check_error(&err, MOESIM_E_IO, "File too large");
        ck_assert_uint_eq(count_entries(), 0);
    }
}
END_TEST

START_TEST(copy)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    struct stat st;
    rich_trace(&t, 6);
    test_trace_write(&t, test_path("a.h5"));
    ck_assert_int_eq(stat(test_path("a.h5"), &st), 0);
    moesim_trace *trace = NULL;
    ck_assert_int_eq(moesim_trace_open(test_path("a.h5"), NULL, &trace, &err), MOESIM_OK);
    for (uint64_t limit = 0; limit < (uint64_t)st.st_size - 200; limit += (uint64_t)st.st_size / 8) {
        limit_file_size(limit);
        const moesim_code code = moesim_trace_copy(trace, test_path("b.h5"), NULL, NULL, NULL, NULL, &err);
        unlimit_file_size();
        ck_assert_int_ne(code, MOESIM_OK);
        check_error(&err, MOESIM_E_IO, "File too large");
        ck_assert_uint_eq(count_entries(), 1);
    }
    moesim_trace_close(&trace);
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("full disk");
    TCase *cases = tcase_create("full disk");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, trace_writer);
    tcase_add_test(cases, decision_log);
    tcase_add_test(cases, copy);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
