/* SPDX-License-Identifier: Apache-2.0
 *
 * Old superblocks: read in a child under limits, whose end of any kind becomes a message.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/unit/traces_write/common.h"
#include "traces/copy.h"
#include "traces/h5.h"
#include "traces/oldformat.h"

static void copy_attributes(hid_t from, hid_t to)
{
    H5O_info_t info;
    ck_assert_int_ge(H5Oget_info(from, &info), 0);
    for (hsize_t i = 0; i < info.num_attrs; i++) {
        char name[128], value[256] = {0};
        const hid_t a = H5Aopen_by_idx(from, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT);
        const hid_t type = H5Aget_type(a), space = H5Aget_space(a);
        ck_assert_int_gt(H5Aget_name(a, sizeof name, name), 0);
        ck_assert_int_ge(H5Aread(a, type, value), 0);
        const hid_t b = H5Acreate2(to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
        ck_assert_int_ge(H5Awrite(b, type, value), 0);
        ck_assert_int_ge(H5Dvlen_reclaim(type, space, H5P_DEFAULT, value), 0);
        H5Aclose(b);
        H5Sclose(space);
        H5Tclose(type);
        H5Aclose(a);
    }
}

/* The same trace in the file format of HDF5 1.6. */
static void make_old(const char *from, const char *to)
{
    static const char *const group[] = {"model", "pass", "request", "token", "routing", "observed"};
    ck_assert_int_eq(moesim_h5_enter(NULL), MOESIM_OK);
    const hid_t in = H5Fopen(from, H5F_ACC_RDONLY, H5P_DEFAULT), out = H5Fcreate(to, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    copy_attributes(in, out);
    for (size_t g = 0; g < sizeof group / sizeof group[0]; g++)
        ck_assert_int_ge(H5Ocopy(in, group[g], out, group[g], H5P_DEFAULT, H5P_DEFAULT), 0);
    ck_assert_int_ge(H5Fclose(in), 0);
    ck_assert_int_ge(H5Fclose(out), 0);
    moesim_h5_leave();
    size_t n;
    unsigned char *data = slurp(to, &n);
    ck_assert_uint_eq(data[8], 0);   /* version of the superblock */
    free(data);
}

static void private_tmpdir(void)
{
    ck_assert_int_eq(setenv("TMPDIR", test_folder(), 1), 0);
}

START_TEST(old_file)
{
    struct test_trace t;
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    char digest[MOESIM_DIGEST_CHARS];
    rich_trace(&t, 11);
    test_trace_write(&t, test_path("new.h5"));
    make_old(test_path("new.h5"), test_path("old.h5"));
    private_tmpdir();
    ck_assert_int_ne(moesim_trace_open(test_path("old.h5"), NULL, &trace, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "--old-format");

    ck_assert_msg(moesim_trace_open_old(test_path("old.h5"), &trace, &err) == MOESIM_OK, "%s", err.text);
    ck_assert_uint_eq(count_entries(), 2);   /* the temporary file has no name any more */
    ck_assert_str_eq(moesim_trace_get_info(trace)->path, test_path("old.h5"));
    ck_assert(moesim_trace_get_info(trace)->superblock_old);
    ck_assert_int_eq(moesim_trace_digest(trace, &err), MOESIM_OK);
    ck_assert_int_eq(moesim_digest_file(test_path("old.h5"), digest, &err), MOESIM_OK);
    ck_assert_str_eq(moesim_trace_get_info(trace)->digest, digest);
    ck_assert_msg(moesim_trace_copy(trace, test_path("back.h5"), NULL, NULL, NULL, NULL, &err) == MOESIM_OK, "%s", err.text);
    moesim_trace_close(&trace);
    check_same_content(test_path("new.h5"), test_path("back.h5"), 0, 0);
    test_trace_fini(&t);
}
END_TEST

/* Damage anywhere ends in a message or in an equal trace, never in the end of this process, and leaves nothing. */
START_TEST(damaged_old_files)
{
    struct test_trace t;
    moesim_rng rng;
    size_t n, refused = 0;
    rich_trace(&t, 1);
    test_trace_write(&t, test_path("new.h5"));
    make_old(test_path("new.h5"), test_path("old.h5"));
    private_tmpdir();
    unsigned char *data = slurp(test_path("old.h5"), &n);
    moesim_rng_seed(&rng, 99);
    for (int round = 0; round < 25; round++) {
        moesim_error err = MOESIM_ERROR_INIT;
        moesim_trace *trace = NULL;
        unsigned char *bad = malloc(n);
        ck_assert_ptr_nonnull(bad);
        memcpy(bad, data, n);
        for (int i = 0; i < 40; i++)
            bad[moesim_rng_below(&rng, 4000)] = (unsigned char)moesim_rng_below(&rng, 256);
        spill(test_path("bad.h5"), bad, n);
        free(bad);
        const moesim_code code = moesim_trace_open_old(test_path("bad.h5"), &trace, &err);
        refused += code != MOESIM_OK;
        ck_assert((code == MOESIM_OK) == (trace != NULL));
        ck_assert(code == MOESIM_OK || err.text[0] != '\0');
        moesim_trace_close(&trace);
        ck_assert_uint_eq(count_entries(), 3);
    }
    ck_assert_uint_ge(refused, 20);
    free(data);
    test_trace_fini(&t);
}
END_TEST

/* ---- the child ---------------------------------------------------------------------------------------------------- */

static moesim_code succeed(void *cookie, moesim_error *err)
{
    (void)cookie;
    (void)err;
    return MOESIM_OK;
}

static moesim_code report(void *cookie, moesim_error *err)
{
    (void)cookie;
    return moesim_fail(err, MOESIM_E_LIMIT, "the child's own words");
}

static moesim_code crash(void *cookie, moesim_error *err)
{
    (void)err;
    raise(*(const int *)cookie);
    return MOESIM_OK;
}

static moesim_code spin(void *cookie, moesim_error *err)
{
    volatile uint64_t *counter = cookie;
    (void)err;
    while (*counter != UINT64_MAX)
        ++*counter;
    return MOESIM_OK;
}

static moesim_code speak(void *cookie, moesim_error *err)
{
    (void)cookie;
    (void)err;
    puts("from the child");
    fputs("from the child\n", stderr);
    fflush(NULL);
    return MOESIM_OK;
}

static moesim_code grab(void *cookie, moesim_error *err)
{
    (void)cookie;
    void *volatile memory = malloc((size_t)1 << 30);   /* else clang leaves the call out */
    const moesim_code code = memory == NULL ? moesim_fail_nomem(err, "a gibibyte", (size_t)1 << 30) : MOESIM_OK;
    free(memory);
    return code;
}

static const moesim_child_limits limits = {.memory_bytes = UINT64_C(256) << 20, .cpu_seconds = 1};

START_TEST(child_reports)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_child_run(succeed, NULL, &limits, "F", &err), MOESIM_OK);
    ck_assert_int_ne(moesim_child_run(report, NULL, &limits, "F", &err), MOESIM_OK);
    check_error(&err, MOESIM_E_LIMIT, "the child's own words");
}
END_TEST

START_TEST(child_crashes)
{
    static const struct { int number; const char *part; } ends[] = {
        {SIGSEGV, "Segmentation fault"}, {SIGABRT, "Aborted"}, {SIGBUS, "Bus error"}, {SIGFPE, "Floating point exception"},
        {SIGKILL, "Killed"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        moesim_error err = MOESIM_ERROR_INIT;
        int number = ends[i].number;
        ck_assert_int_ne(moesim_child_run(crash, &number, &limits, "old.h5", &err), MOESIM_OK);
        const char *const part[] = {ends[i].part, "old.h5: ", "limits: 256 MiB of memory, 1 s of CPU time"};
        for (size_t p = 0; p < sizeof part / sizeof part[0]; p++)
            ck_assert_msg(strstr(err.text, part[p]) != NULL, "\"%s\" lacks \"%s\"", err.text, part[p]);
        ck_assert_int_eq(err.code, MOESIM_E_FORMAT);
    }
}
END_TEST

START_TEST(child_never_ends)
{
    moesim_error err = MOESIM_ERROR_INIT;
    volatile uint64_t counter = 0;
    ck_assert_int_ne(moesim_child_run(spin, (void *)&counter, &limits, "F", &err), MOESIM_OK);
    check_error(&err, MOESIM_E_FORMAT, "ended early");
}
END_TEST

START_TEST(child_wants_memory)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)grab;   /* the address space is not limited there */
#else
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_ne(moesim_child_run(grab, NULL, &limits, "F", &err), MOESIM_OK);
    check_error(&err, MOESIM_E_NOMEM, "a gibibyte");
#endif
}
END_TEST

START_TEST(child_is_mute)
{
    moesim_error err = MOESIM_ERROR_INIT;
    const int kept_out = dup(STDOUT_FILENO), kept_err = dup(STDERR_FILENO);
    const int file = open(test_path("said"), O_CREAT | O_RDWR, 0600);
    ck_assert_int_ge(file, 0);
    fflush(NULL);
    dup2(file, STDOUT_FILENO);
    dup2(file, STDERR_FILENO);
    const moesim_code code = moesim_child_run(speak, NULL, &limits, "F", &err);
    dup2(kept_out, STDOUT_FILENO);
    dup2(kept_err, STDERR_FILENO);
    ck_assert_int_eq(code, MOESIM_OK);
    ck_assert_int_eq(lseek(file, 0, SEEK_END), 0);
    close(file);
}
END_TEST

static moesim_code sleeping_child(void *cookie, moesim_error *err)
{
    (void)err;
    const char mark = 'x';
    ck_assert_int_eq(write(*(const int *)cookie, &mark, 1), 1);
    for (;;)
        (void)pause();
    return MOESIM_OK;
}

/* A signal to the parent alone, while it waits, ends both; without that the test runs into its time limit. */
START_TEST(interrupted_parent)
{
    moesim_error err = MOESIM_ERROR_INIT;
    int ends[2], status = 0;
    char mark = 0;
    ck_assert_int_eq(pipe(ends), 0);
    const pid_t parent = fork();
    ck_assert_int_ge(parent, 0);
    if (parent == 0) {
        moesim_interrupt_install();
        const moesim_code code = moesim_child_run(sleeping_child, &ends[1], &limits, "file", &err);
        _exit(code == MOESIM_E_INTERRUPTED && strstr(err.text, "interrupted while reading file") != NULL ? 0 : 1);
    }
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(read(ends[0], &mark, 1), 1);
    ck_assert_int_eq(kill(parent, SIGTERM), 0);
    ck_assert_int_eq(read(ends[0], &mark, 1), 0);   /* both are gone: nobody holds the other end */
    ck_assert_int_eq(waitpid(parent, &status, 0), parent);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(no_tmpdir)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_trace *trace = NULL;
    ck_assert_int_eq(setenv("TMPDIR", "/nonexistent", 1), 0);
    ck_assert_int_ne(moesim_trace_open_old("old.h5", &trace, &err), MOESIM_OK);
    check_error(&err, MOESIM_E_IO, "set TMPDIR");
    ck_assert_ptr_null(trace);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("old file format");
    TCase *cases = tcase_create("oldformat");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, old_file);
    tcase_add_test(cases, damaged_old_files);
    tcase_add_test(cases, child_reports);
    tcase_add_test(cases, child_crashes);
    tcase_add_test(cases, child_never_ends);
    tcase_add_test(cases, child_wants_memory);
    tcase_add_test(cases, child_is_mute);
    tcase_add_test(cases, interrupted_parent);
    tcase_add_test(cases, no_tmpdir);
    suite_add_tcase(suite, cases);
    return run_suite(suite);
}
