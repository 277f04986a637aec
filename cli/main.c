/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim: the table of commands, and the only place that turns an error into a message and an exit status.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "cli/cli.h"

static const char summary[] =
    "Replays recorded routing traces of Mixture-of-Experts models through expert-cache policies and reports what each "
    "policy keeps, moves and misses.";

static const moesim_command commands[] = {
    { "run", &moesim_usage_run, moesim_cmd_run },
    { "sweep", &moesim_usage_sweep, moesim_cmd_sweep },
    { "compare", &moesim_usage_compare, moesim_cmd_compare },
    { "merge", &moesim_usage_merge, moesim_cmd_merge },
    { "replay", &moesim_usage_replay, moesim_cmd_replay },
    { "fidelity", &moesim_usage_fidelity, moesim_cmd_fidelity },
    { "plot", &moesim_usage_plot, moesim_cmd_plot },
    { "policies", &moesim_usage_policies, moesim_cmd_policies },
    { "policy", &moesim_usage_policy, moesim_cmd_policy },
    { "trace", &moesim_usage_trace, moesim_cmd_trace },
    { "profile", &moesim_usage_profile, moesim_cmd_profile },
    { NULL, NULL, NULL },
};

/* A closed standard stream would lend its number to the next file that is opened; reading or writing it must fail. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static void print_version(void)
{
    printf("moesim %s (%s)\n", MOESIM_VERSION, MOESIM_LIBRARIES);
}

/* "moesim help run" is "moesim run --help". */
static moesim_code help_on(int argc, char **argv, moesim_error *err)
{
    static char option[] = "--help";
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (words == NULL)
        return moesim_fail_nomem(err, "the command line", ((size_t)argc + 1) * sizeof *words);
    words[0] = argv[0];
    for (int i = 2; i < argc; i++)
        words[i - 1] = argv[i];
    words[argc - 1] = option;
    const moesim_code code = moesim_dispatch_command(commands, "moesim", summary, argc, words, err);
    free(words);
    return code;
}

static moesim_code run(int argc, char **argv, moesim_error *err)
{
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        print_version();
        return MOESIM_OK;
    }
    if (argc >= 2 && strcmp(argv[1], "help") == 0)
        return help_on(argc, argv, err);
    return moesim_dispatch_command(commands, "moesim", summary, argc, argv, err);
}

/* Whatever was printed counts as success only once the system has taken it. */
static moesim_code flush_output(moesim_error *err)
{
    errno = 0;
    const int earlier = ferror(stdout);
    if (fflush(stdout) == 0 && earlier == 0)
        return MOESIM_OK;
    return moesim_fail(err, MOESIM_E_IO, "cannot write to standard output: %s",
                       errno != 0 ? strerror(errno) : "an earlier write failed");
}

int main(int argc, char **argv)
{
    moesim_error err = MOESIM_ERROR_INIT;
    occupy_standard_streams();
    moesim_interrupt_install();
    signal(SIGXFSZ, SIG_IGN);   /* a limit on file sizes is an error of the write, as a full disk is */
    moesim_code code = run(argc, argv, &err);
    if (code == MOESIM_OK)
        code = flush_output(&err);
    moesim_output_discard_all();
    if (code != MOESIM_OK && err.text[0] != '\0')       /* without text: moesim-device has said it */
        moesim_log(MOESIM_LOG_ERROR, "%s", err.text);
    return moesim_exit_status(code);
}
