/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages: text, code, cutting, prefixes, exit statuses; interruption by signals.
 */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "tests/unit/base/runner.h"

START_TEST(fail_fills_code_and_text)
{
    moesim_error err = MOESIM_ERROR_INIT;
    ck_assert_int_eq(moesim_fail(&err, MOESIM_E_FORMAT, "row %d of %s", 7, "x"), MOESIM_E_FORMAT);
    ck_assert_int_eq(err.code, MOESIM_E_FORMAT);
    ck_assert_str_eq(err.text, "row 7 of x");
    ck_assert_int_eq(moesim_fail(NULL, MOESIM_E_IO, "unheard"), MOESIM_E_IO);
}
END_TEST

/* 1023 bytes fit; one more is cut with "…" and no UTF-8 character is split. */
START_TEST(long_text_is_cut)
{
    moesim_error err = MOESIM_ERROR_INIT;
    char text[1200];
    memset(text, 'a', sizeof text);
    text[1023] = '\0';
    moesim_fail(&err, MOESIM_E_IO, "%s", text);
    ck_assert_str_eq(err.text, text);
    memset(text, 'a', sizeof text);
    memcpy(text + 1018, "\xc3\xa4\xc3\xa4\xc3\xa4", 6);
    text[1100] = '\0';
    moesim_fail(&err, MOESIM_E_IO, "%s", text);
    ck_assert_uint_eq(strlen(err.text), 1023);
    ck_assert_str_eq(err.text + 1016, "aa\xc3\xa4\xe2\x80\xa6");
    memcpy(text + 1019, "\xc3\xa4", 2);
    moesim_fail(&err, MOESIM_E_IO, "%s", text);
    ck_assert_uint_eq(strlen(err.text), 1022);
    ck_assert_str_eq(err.text + 1019, "\xe2\x80\xa6");
}
END_TEST

START_TEST(prefix_goes_before)
{
    moesim_error err = MOESIM_ERROR_INIT;
    moesim_fail(&err, MOESIM_E_NOMEM, "no room");
    ck_assert_int_eq(moesim_fail_prefix(&err, "file %d", 3), MOESIM_E_NOMEM);
    ck_assert_str_eq(err.text, "file 3: no room");
    for (int i = 0; i < 200; i++)
        moesim_fail_prefix(&err, "prefix");
    ck_assert_uint_le(strlen(err.text), 1023);
    ck_assert_str_eq(err.text + strlen(err.text) - 3, "\xe2\x80\xa6");
}
END_TEST

START_TEST(exit_statuses)
{
    ck_assert_int_eq(moesim_exit_status(MOESIM_OK), 0);
    ck_assert_int_eq(moesim_exit_status(MOESIM_E_USAGE), 2);
    for (int code = MOESIM_E_IO; code <= MOESIM_E_INTERNAL; code++)
        ck_assert_int_eq(moesim_exit_status((moesim_code)code), 1);
}
END_TEST

/* The first signal sets the flag, the second, of the other kind, ends the process by that signal. */
START_TEST(second_signal_kills)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(SIGINT, SIG_DFL);   /* a background job may have it ignored */
        moesim_interrupt_install();
        if (moesim_interrupted())
            _exit(10);
        raise(SIGINT);
        if (!moesim_interrupted())
            _exit(11);
        raise(SIGTERM);
        _exit(12);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(WTERMSIG(status), SIGTERM);
}
END_TEST

/* The status of a child that installs the handlers, raises `number` and then ends with 3 if interrupted, else 4. */
static int raised(int number, bool ignored)
{
    const pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        signal(number, ignored ? SIG_IGN : SIG_DFL);
        moesim_interrupt_install();
        raise(number);
        _exit(moesim_interrupted() ? 3 : 4);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

START_TEST(signals)
{
    static const int stop[] = { SIGINT, SIGTERM, SIGHUP }, fatal[] = { SIGPIPE, SIGQUIT, SIGXCPU };
    const struct rlimit none = { 0, 0 };
    setrlimit(RLIMIT_CORE, &none);
    for (size_t i = 0; i < 3; i++) {
        ck_assert_int_eq(WEXITSTATUS(raised(stop[i], false)), 3);
        ck_assert_int_eq(WTERMSIG(raised(fatal[i], false)), fatal[i]);
        ck_assert_int_eq(WEXITSTATUS(raised(stop[i], true)), 4);
        ck_assert_int_eq(WEXITSTATUS(raised(fatal[i], true)), 4);
    }
}
END_TEST

RUN_TESTS("error", fail_fills_code_and_text, long_text_is_cut, prefix_goes_before, exit_statuses, second_signal_kills, signals)
