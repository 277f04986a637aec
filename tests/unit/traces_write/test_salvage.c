/* SPDX-License-Identifier: Apache-2.0
 *
 * Salvaged traces: killed writers and columns of unlike length. What is kept is what was there, nothing else is written,
 * and the input stays as it was. A writer that is killed between any two writes: traces/record/tests/test_writer_killed.py.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/traces_write/salvaged.h"
#include "traces/h5.h"

enum change { UNMARK, KILL, KILL_BESIDE_READERS, SHORTEN, LENGTHEN };

static hid_t open_to_write(const char *path)
{
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    ck_assert_int_ge(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110), 0);
    const hid_t file = H5Fopen(path, H5F_ACC_RDWR, access);
    ck_assert_int_ge(file, 0);
    return file;
}

static void resize(hid_t file, const char *name, int64_t by)
{
    const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT), space = H5Dget_space(dataset);
    hsize_t dims[3];
    ck_assert_int_gt(H5Sget_simple_extent_dims(space, dims, NULL), 0);
    dims[0] = (hsize_t)((int64_t)dims[0] + by);
    ck_assert_int_ge(H5Dset_extent(dataset, dims), 0);
    ck_assert(H5Sclose(space) >= 0 && H5Dclose(dataset) >= 0);
}

/* In a child, which is killed where that is the change: by: entries of column `name`. */
static void change_file(const char *file, enum change change, const char *name, int64_t by)
{
    const char *path = test_path(file);
    int status = 0;
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        moesim_error err = MOESIM_ERROR_INIT;
        (void)moesim_h5_enter(&err);
        const hid_t h5 = open_to_write(path);
        if (change == UNMARK)
            (void)H5Adelete(h5, "complete");
        if (change == SHORTEN || change == LENGTHEN)
            resize(h5, name, by);
        if (change == KILL_BESIDE_READERS)
            ck_assert_int_ge(H5Fstart_swmr_write(h5), 0);
        if (change == KILL || change == KILL_BESIDE_READERS)
            (void)kill(getpid(), SIGKILL);
        _exit(H5Fclose(h5) >= 0 ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status) ? change == KILL || change == KILL_BESIDE_READERS : WEXITSTATUS(status) == 0);
}

START_TEST(whole)
{
    struct test_trace t;
    moesim_salvage_result result;
    moesim_error err = MOESIM_ERROR_INIT;
    salvage_trace(&t);
    test_trace_write(&t, test_path("in.h5"));
    ck_assert_msg(salvage("in.h5", &result, &err) == MOESIM_OK, "%s", err.text);
    ck_assert(result.whole && result.found_passes == t.num_passes && result.found_rows == t.num_rows);
    ck_assert_uint_eq(count_entries(), 1);
    test_trace_fini(&t);
}
END_TEST

/* Without the attribute, and with the marks that a killed program leaves in the file. */
START_TEST(killed)
{
    struct test_trace t;
    moesim_salvage_result result;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    char digest[MOESIM_DIGEST_CHARS];
    salvage_trace(&t);
    test_trace_write(&t, test_path("in.h5"));
    if (_i != KILL)
        change_file("in.h5", UNMARK, NULL, 0);
    if (_i != UNMARK)
        change_file("in.h5", (enum change)_i, NULL, 0);
    ck_assert_int_ne(moesim_trace_open(test_path("in.h5"), NULL, &trace, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "moesim trace salvage IN OUT");
    salvage_well("in.h5", &result);
    ck_assert(result.complete == (_i == KILL) && result.reason[0] == '\0' && result.dropped_requests == 0);
    ck_assert(result.kept.passes == t.num_passes && result.found_passes == t.num_passes && result.kept.requests == 6);
    check_kept(&t, t.num_passes);
    ck_assert_int_eq(moesim_digest_file(test_path("in.h5"), digest, &err), MOESIM_OK);
    trace = open_salvaged();
    ck_assert_str_eq(moesim_trace_get_info(trace)->source_digest, digest);
    moesim_trace_close(&trace);
    ck_assert_uint_eq(count_entries(), 2);
    test_trace_fini(&t);
}
END_TEST

/* A column that is shorter ends the trace; one that is longer does not. Chunks of rows that were never written are missing. */
START_TEST(unlike_columns)
{
    static const struct { const char *name; int64_t by; size_t lost_passes, lost_rows, lost_requests; } row[] = {
        {"/pass/block", -3, 3, 0, 0}, {"/pass/row_offset", -4, 4, 0, 0}, {"/observed/pass_ns", -1, 1, 0, 0},
        {"/pass/kind", 7, 0, 0, 0}, {"/token/state", -5, 0, 5, 0}, {"/token/id", -50, 0, 50, 0},
        {"/routing/gate", -1, 0, 1, 0}, {"/routing/expert", -70, 0, 70, 0}, {"/observed/residency", 300, 0, 0, 0},
        {"/routing/expert", 5000, 0, 0, 0}, {"/request/workload", -1, 0, 0, 1}, {"/request/output_tokens", -2, 0, 0, 2},
        {"/request/prompt_tokens", 3, 0, 0, 0},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        struct test_trace t;
        moesim_salvage_result result;
        salvage_trace(&t);
        test_trace_write(&t, test_path("in.h5"));
        change_file("in.h5", row[i].by < 0 ? SHORTEN : LENGTHEN, row[i].name, row[i].by);
        salvage_well("in.h5", &result);
        size_t passes = t.num_passes - row[i].lost_passes;
        while (row[i].lost_rows > 0 && (passes < t.num_passes ? test_trace_row(&t, passes) : t.num_rows) >
               t.num_rows - row[i].lost_rows)
            passes--;
        for (size_t p = 0; p < passes && row[i].lost_requests > 0; p++)   /* up to the first pass of a request that is lost */
            if (t.pass[p].pass.request >= 6 - row[i].lost_requests)
                passes = p;
        ck_assert_msg(result.kept.passes == passes, "%s: %llu of %zu", row[i].name, (unsigned long long)result.kept.passes,
                      passes);
        check_kept(&t, passes);
        ck_assert_uint_eq(count_entries(), 2);
        test_trace_fini(&t);
    }
}
END_TEST

/* Of the last requests one has no committed token and one no pass; tokens of lost rows are not counted. */
START_TEST(last_requests)
{
    struct test_trace t;
    moesim_salvage_result result;
    test_trace_init(&t, 1, 2, 1, 4);
    static const uint32_t tokens[] = {1, 9, 0, 0};
    for (uint32_t q = 0; q < 4; q++) {
        test_trace_add_request(&t, "w", 3, tokens[q]);
        for (int32_t step = 0; step < 2 && q < 3; step++) {
            const size_t pass = test_trace_add_pass(&t, q, MOESIM_PASS_DENOISE, 0, step, 4, 0);
            for (size_t r = 0; r < 4; r++) {
                t.expert[test_trace_row(&t, pass) + r] = (uint16_t)(r % 2);
                t.state[test_trace_row(&t, pass) + r] = q < 2 ? MOESIM_STATE_COMMITTED_NOW : MOESIM_STATE_MASKED;
            }
        }
    }
    test_trace_write(&t, test_path("in.h5"));
    change_file("in.h5", UNMARK, NULL, 0);
    salvage_well("in.h5", &result);
    ck_assert(result.kept.requests == 2 && result.kept.passes == 4 && result.kept.rows == 16);
    ck_assert(result.dropped_requests == 2 && result.found_requests == 4 && result.corrected_requests == 1);
    moesim_trace *out = open_salvaged();
    ck_assert_uint_eq(moesim_trace_get_request(out, 0)->output_tokens, 1);
    ck_assert_uint_eq(moesim_trace_get_request(out, 1)->output_tokens, 8);
    moesim_trace_close(&out);
    for (size_t r = 0; r < t.num_rows; r++)   /* nothing was ever committed: then all that have a pass are kept */
        t.state[r] = MOESIM_STATE_MASKED;
    test_trace_write(&t, test_path("in.h5"));
    change_file("in.h5", UNMARK, NULL, 0);
    salvage_well("in.h5", &result);
    ck_assert(result.kept.requests == 3 && result.kept.passes == 6 && result.corrected_requests == 0);
    test_trace_fini(&t);
}
END_TEST

START_TEST(refusals)
{
    struct test_trace t;
    moesim_salvage_result result;
    moesim_error err = MOESIM_ERROR_INIT;
    size_t bytes;
    salvage_trace(&t);
    test_trace_write(&t, test_path("in.h5"));
    unsigned char *data = slurp(test_path("in.h5"), &bytes);
    static const struct { size_t at; unsigned char value; size_t keep; const char *part; } bad[] = {
        {0, 'x', SIZE_MAX, "no signature at byte 0"}, {8, 1, SIZE_MAX, "superblock version 1; only"},
        {30, 77, SIZE_MAX, "the HDF5 superblock is damaged"}, {11, 5, SIZE_MAX, "the HDF5 superblock is damaged"},
        {0, 0x89, 40, "the HDF5 superblock is cut short"}, {0, 0x89, 49, "there is no root group at byte 48 "},
        {0, 0x89, 600, "nothing can be salvaged"}, {0, 0x89, 0, "no signature"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const unsigned char old = data[bad[i].at];
        data[bad[i].at] = bad[i].value;
        spill(test_path("bad.h5"), data, bad[i].keep < bytes ? bad[i].keep : bytes);
        data[bad[i].at] = old;
        ck_assert_int_ne(salvage("bad.h5", &result, &err), MOESIM_OK);
        ck_assert_msg(strncmp(err.text, test_path("bad.h5"), strlen(test_path("bad.h5"))) == 0, "%s", err.text);
        check_error(&err, MOESIM_E_FORMAT, bad[i].part);
        ck_assert_uint_eq(count_entries(), 2);
    }
    free(data);
    ck_assert_int_ne(moesim_trace_salvage(test_path("in.h5"), test_path("in.h5"), NULL, &result, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_USAGE, "is the input itself");
    ck_assert_int_ne(moesim_trace_salvage(test_path("none.h5"), test_path("out.h5"), NULL, &result, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_IO, "none.h5");
    ck_assert_int_ne(moesim_trace_salvage(test_folder(), test_path("out.h5"), NULL, &result, &err), MOESIM_OK);
    err = (moesim_error)MOESIM_ERROR_INIT;
    change_file("in.h5", SHORTEN, "/pass/row_offset", 1 - (int64_t)(t.num_passes + 1));
    ck_assert_int_ne(salvage("in.h5", &result, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "nothing can be salvaged: not a single pass is whole");
    ck_assert_uint_eq(count_entries(), 2);
    test_trace_fini(&t);
}
END_TEST

START_TEST(full_disk)
{
    struct test_trace t;
    moesim_salvage_result result;
    moesim_error err = MOESIM_ERROR_INIT;
    salvage_trace(&t);
    test_trace_write(&t, test_path("in.h5"));
    change_file("in.h5", UNMARK, NULL, 0);
    const moesim_writer_options large = {MOESIM_GZIP, 1};
    size_t in, out;
    ck_assert_int_eq(moesim_trace_salvage(test_path("in.h5"), test_path("out.h5"), &large, &result, &err), MOESIM_OK);
    free(slurp(test_path("in.h5"), &in));
    free(slurp(test_path("out.h5"), &out));
    ck_assert_int_eq(remove(test_path("out.h5")), 0);
    ck_assert_uint_gt(out, in);
    const uint64_t limit[] = {in / 2, in + (out - in) / 2};   /* met by the copy, and by the child that writes the output */
    for (size_t i = 0; i < 2; i++) {
        limit_file_size(limit[i]);
        const moesim_code code = moesim_trace_salvage(test_path("in.h5"), test_path("out.h5"), &large, &result, &err);
        unlimit_file_size();
        ck_assert_int_ne(code, MOESIM_OK);
        check_error(&err, MOESIM_E_IO, "cannot write");
        ck_assert_uint_eq(count_entries(), 1);
    }
    test_trace_fini(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("salvaged traces");
    TCase *cases = tcase_create("salvage");
    tcase_set_timeout(cases, 100);
    tcase_add_test(cases, whole);
    tcase_add_loop_test(cases, killed, UNMARK, SHORTEN);
    tcase_add_test(cases, unlike_columns);
    tcase_add_test(cases, last_requests);
    tcase_add_test(cases, refusals);
    tcase_add_test(cases, full_disk);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
