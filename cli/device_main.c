/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim-device: the table of its verbs. It knows devices (CUDA, if built with it) and not GSL; `moesim` starts it and prints
 * the reports.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "cli/device_verbs.h"
#include "cli/measure.h"
#include "hwprofile/device.h"

static const char summary[] = "Executes and measures on devices, for `moesim`, which prints the reports.";

static const moesim_command commands[] = {
    { "replay", &moesim_usage_device_replay, moesim_cmd_device_replay },
    { "fidelity", &moesim_usage_device_fidelity, moesim_cmd_device_fidelity },
    { "measure", &moesim_usage_device_measure, moesim_cmd_device_measure },
    { "devices", &moesim_usage_device_devices, moesim_cmd_device_devices },
    { NULL, NULL, NULL },
};

/* A closed standard stream would lend its number to the next file that is opened. */
static void occupy_standard_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
}

static void print_version(void)
{
    printf("moesim-device %s (devices:", MOESIM_VERSION);
    for (const moesim_device_ops *const *d = moesim_device_backends(); *d != NULL; d++)
        printf(" %s", (*d)->name);
    printf(")\n");
}

static moesim_code run(int argc, char **argv, moesim_error *err)
{
    static char help[] = "--help";
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        print_version();
        return MOESIM_OK;
    }
    if (argc >= 2 && strcmp(argv[1], "help") == 0) {
        char *words[] = { argv[0], argc > 2 ? argv[2] : help, help, NULL };
        return moesim_dispatch_command(commands, "moesim-device", summary, argc > 2 ? 3 : 2, words, err);
    }
    return moesim_dispatch_command(commands, "moesim-device", summary, argc, argv, err);
}

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
    signal(SIGXFSZ, SIG_IGN);    /* a limit on file sizes is an error of the write, as a full disk is */
    moesim_code code = run(argc, argv, &err);
    if (code == MOESIM_OK)
        code = flush_output(&err);
    moesim_output_discard_all();
    if (code != MOESIM_OK)
        moesim_log(MOESIM_LOG_ERROR, "%s", err.text);
    return moesim_exit_status(code);
}
