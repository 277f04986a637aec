/* SPDX-License-Identifier: Apache-2.0
 *
 * Which names lead to one file, whether it exists or not.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/paths.h"
#include "tests/unit/base/runner.h"

static char folder[64], absolute[3][256];

/* A folder with a file "x", names of it and of a file "new" that does not exist; left to the working folder's owner. */
static void enter(void)
{
    char here[128];
    snprintf(folder, sizeof folder, "%s", "paths-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    ck_assert_int_eq(chdir(folder), 0);
    ck_assert_ptr_nonnull(getcwd(here, sizeof here));
    snprintf(absolute[0], sizeof absolute[0], "%s/x", here);
    snprintf(absolute[1], sizeof absolute[1], "%s/new", here);
    snprintf(absolute[2], sizeof absolute[2], "%s/sub/../new", here);
    ck_assert_int_eq(close(open("x", O_WRONLY | O_CREAT, 0666)), 0);
    ck_assert_int_eq(close(open("other", O_WRONLY | O_CREAT, 0666)), 0);
    ck_assert_int_eq(mkdir("sub", 0777), 0);
    ck_assert_int_eq(link("x", "hard"), 0);
    ck_assert_int_eq(symlink("x", "soft"), 0);
    ck_assert_int_eq(symlink("../soft", "sub/chain"), 0);
    ck_assert_int_eq(symlink("new", "dangling"), 0);
    ck_assert_int_eq(symlink("../dangling", "sub/chain-to-new"), 0);
    ck_assert_int_eq(symlink(".", "here"), 0);
    ck_assert_int_eq(symlink("loop", "loop"), 0);
}

static void leave(void)
{
    static const char *const names[] = { "x", "other", "hard", "soft", "sub/chain", "dangling", "sub/chain-to-new", "here",
                                         "loop" };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        ck_assert_int_eq(unlink(names[i]), 0);
    ck_assert_int_eq(rmdir("sub"), 0);
    ck_assert_int_eq(chdir(".."), 0);
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(every_way_to_one_file)
{
    enter();
    const char *const x[] = { "x", "./x", "hard", "soft", "sub/../x", "sub/chain", "here/x", "here/here/soft", absolute[0] };
    const char *const new[] = { "new", "./new", ".//new", "dangling", "sub/../new", "sub/chain-to-new", "here/new", absolute[1],
                                absolute[2] };
    const char *const apart[] = { "other", "sub/x", "sub/new", "none/new", "loop", "new2", "", "-", "sub", NULL };
    const size_t n = sizeof x / sizeof x[0];
    ck_assert_uint_eq(n, sizeof new / sizeof new[0]);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            ck_assert_msg(moesim_same_file(x[i], x[k]), "%s, %s", x[i], x[k]);
            ck_assert_msg(moesim_same_file(new[i], new[k]), "%s, %s", new[i], new[k]);
            ck_assert_msg(!moesim_same_file(x[i], new[k]), "%s, %s", x[i], new[k]);
        }
        for (size_t k = 0; k < sizeof apart / sizeof apart[0]; k++) {
            ck_assert_msg(!moesim_same_file(x[i], apart[k]), "%s, %s", x[i], apart[k]);
            ck_assert_msg(!moesim_same_file(apart[k], new[i]), "%s, %s", new[i], apart[k]);
        }
    }
    ck_assert(moesim_same_file("-", "-"));
    ck_assert(!moesim_same_file("-", "./-"));
    ck_assert(!moesim_same_file(NULL, NULL));
    leave();
}
END_TEST

START_TEST(outputs_are_held_against_inputs_and_each_other)
{
    moesim_error err = MOESIM_ERROR_INIT;
    enter();
    const moesim_named_file in[] = { { "the trace", "x" }, { "option --profile", NULL } };
    const moesim_named_file good[] = { { "option --csv", "new" }, { "option -o", NULL }, { "option --log", "other" } };
    ck_assert_int_eq(moesim_check_outputs(in, 2, good, 3, &err), MOESIM_OK);
    const moesim_named_file over[] = { { "option --csv", "new" }, { "option -o", "sub/chain" } };
    ck_assert_int_eq(moesim_check_outputs(in, 2, over, 2, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "option -o: sub/chain is the input itself (the trace); name another output file");
    const moesim_named_file twice[] = { { "option --csv", "new" }, { "option -o", "here/new" } };
    ck_assert_int_eq(moesim_check_outputs(in, 2, twice, 2, &err), MOESIM_E_USAGE);
    ck_assert_str_eq(err.text, "option -o: here/new is the file of option --csv too; name another output file");
    leave();
}
END_TEST

START_TEST(numbered_files_are_known)
{
    moesim_error err = MOESIM_ERROR_INIT;
    static const char *const taken[] = { "new.1", "./new.12", "here/new.007", "sub/../new.1" };
    static const char *const apart[] = { "new", "new.", "new.x", "new.1x", "new1", "newer.1", "sub/new.1", "-", "x.1", NULL };
    enter();
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        const moesim_named_file file = { "the trace", taken[i] };
        ck_assert_msg(moesim_check_numbered(&file, 1, "new", &err) == MOESIM_E_USAGE, "%s", taken[i]);
    }
    ck_assert_str_eq(err.text, "the trace: sub/../new.1 has a name that working files of new take; name another output file");
    for (size_t i = 0; i < sizeof apart / sizeof apart[0]; i++) {
        const moesim_named_file file = { "the trace", apart[i] };
        ck_assert_msg(moesim_check_numbered(&file, 1, "new", &err) == MOESIM_OK, "%s", err.text);
    }
    const moesim_named_file file = { "the trace", "1" };
    ck_assert_int_eq(moesim_check_numbered(&file, 1, "", &err), MOESIM_OK);
    leave();
}
END_TEST

START_TEST(only_open_files_are_streams)
{
    char own[32];
    enter();
    snprintf(own, sizeof own, "/proc/%ld/fd/2", (long)getpid());
    ck_assert_int_eq(moesim_path_stream("/dev/stdout"), 1);
    ck_assert_int_eq(moesim_path_stream("/dev/fd/7"), 7);
    ck_assert_int_eq(moesim_path_stream(own), 2);
    const char *const none[] = { "x", "soft", "loop", "1", "fd/1", "", "/", "/dev/null", "/proc/self/fd", "/proc/self/fd/x",
                                 "/proc/1/fd/1", "/proc/self/fd/99999999999", "-" };
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        ck_assert_msg(moesim_path_stream(none[i]) == -1, "%s", none[i]);
    leave();
}
END_TEST

RUN_TESTS("paths", every_way_to_one_file, outputs_are_held_against_inputs_and_each_other, numbered_files_are_known,
          only_open_files_are_streams)
