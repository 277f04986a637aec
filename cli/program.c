/* SPDX-License-Identifier: Apache-2.0
 *
 * What both programs do around their commands.
 */
#include "cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"

/* A closed standard stream would lend its number to the next file that is opened; reading or writing it must fail. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

/* "moesim help run" is "moesim run --help". */
static moesim_code help_on(const moesim_program *p, int argc, char **argv, moesim_error *err)
{
    static char option[] = "--help";
    char **words = calloc((size_t)argc + 1, sizeof *words);
    if (words == NULL)
        return moesim_fail_nomem(err, "the command line", ((size_t)argc + 1) * sizeof *words);
    words[0] = argv[0];
    for (int i = 2; i < argc; i++)
        words[i - 1] = argv[i];
    words[argc - 1] = option;
    const moesim_code code = moesim_dispatch_command(p->commands, p->name, p->summary, argc, words, err);
    free(words);
    return code;
}

static moesim_code run(const moesim_program *p, int argc, char **argv, moesim_error *err)
{
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        p->print_version();
        return MOESIM_OK;
    }
    if (argc >= 2 && strcmp(argv[1], "help") == 0)
        return help_on(p, argc, argv, err);
    return moesim_dispatch_command(p->commands, p->name, p->summary, argc, argv, err);
}

moesim_code moesim_program_flush(moesim_error *err)
{
    const int reason = moesim_output_flush(stdout);
    return reason == 0 ? MOESIM_OK
                       : moesim_fail(err, MOESIM_E_IO, "cannot write to standard output: %s", strerror(reason));
}

int moesim_program_run(const moesim_program *program, int argc, char **argv)
{
    moesim_error err = MOESIM_ERROR_INIT;
    occupy_standard_streams();
    moesim_interrupt_install();
    signal(SIGXFSZ, SIG_IGN);   /* a limit on file sizes is an error of the write, as a full disk is */
    moesim_code code = run(program, argc, argv, &err);
    if (code == MOESIM_OK)
        code = moesim_program_flush(&err);
    moesim_output_discard_all();
    if (code != MOESIM_OK && err.text[0] != '\0')       /* without text: it is said already */
        moesim_log(MOESIM_LOG_ERROR, "%s", err.text);
    return moesim_exit_status(code);
}
