/* SPDX-License-Identifier: Apache-2.0
 *
 * A disk that is full at any moment of writing a result (a limit on file sizes stands for it).
 */
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/result/common.h"
#include "tests/unit/traces_write/common.h"

/* HDF5 itself loses memory when it cannot close a file; only here, where that is provoked. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}

START_TEST(full_disk)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_result r;
    struct stat st;
    sample_result(&r, "", NULL);
    OK(moesim_result_write(&r, test_path("whole.h5"), &err));
    ck_assert_int_eq(stat(test_path("whole.h5"), &st), 0);
    spill(test_path("r.h5"), "older", 5);
    for (uint64_t limit = 0; limit < (uint64_t)st.st_size; limit += (uint64_t)st.st_size / 24) {
        limit_file_size(limit);
        const moesim_code code = moesim_result_write(&r, test_path("r.h5"), &err);
        unlimit_file_size();
        ck_assert_int_ne(code, MOESIM_OK);
        check_error(&err, MOESIM_E_IO, "File too large");
        ck_assert_uint_eq(count_entries(), 2);
        size_t n;
        unsigned char *data = slurp(test_path("r.h5"), &n);
        ck_assert_uint_eq(n, 5);
        ck_assert_mem_eq(data, "older", 5);
        free(data);
    }
    OK(moesim_result_write(&r, test_path("r.h5"), &err));
    ck_assert(same_bytes(test_path("r.h5"), test_path("whole.h5")));
    moesim_result_fini(&r);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("result full disk");
    TCase *cases = tcase_create("result full disk");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, full_disk);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
