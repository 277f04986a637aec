/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and starting moesim-device.
 */
#include "cli/start.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/log.h"

#define PROGRAM "moesim-device"
#define PAUSES 100               /* of 20 ms, after an interruption */

extern char **environ;

static bool usable(const char *folder, size_t chars, char path[PATH_MAX])
{
    const int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)chars, folder, PROGRAM);
    return n > 0 && n < PATH_MAX && access(path, X_OK) == 0;
}

/* The folder of this program's own file; 0: unknown. */
static size_t own_folder(char folder[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (n <= 0)
        return 0;
    folder[n] = '\0';
    const char *slash = strrchr(folder, '/');
    return slash != NULL ? (size_t)(slash - folder) : 0;
}

static moesim_code find(char path[PATH_MAX], moesim_error *err)
{
    char own[PATH_MAX] = "";
    const size_t chars = own_folder(own);
    const char *list = getenv("PATH");
    if (chars > 0 && usable(own, chars, path))
        return MOESIM_OK;
    while (list != NULL && *list != '\0') {
        const size_t n = strcspn(list, ":");
        if (n > 0 && usable(list, n, path))
            return MOESIM_OK;
        list += n + (list[n] == ':' ? 1 : 0);
    }
    return moesim_fail(err, MOESIM_E_USAGE, "there is no program " PROGRAM " in %.*s or on PATH; it is built and installed "
                       "together with moesim: `ninja -C build`, then start build/cli/moesim", (int)chars, own);
}

/* program, verb, the words after argv[0]; freed by the caller. */
static moesim_code words_of(char *path, const char *verb, int argc, char **argv, char ***out, moesim_error *err)
{
    void *p = NULL;
    const moesim_code code = moesim_alloc((size_t)argc + 3, sizeof **out, "the command line", &p, err);
    if (code != MOESIM_OK)
        return code;
    char **words = p;
    words[0] = path;
    words[1] = (char *)(uintptr_t)verb;      /* exec does not change it */
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
    *out = words;
    return MOESIM_OK;
}

moesim_code moesim_device_become(const char *verb, int argc, char **argv, moesim_error *err)
{
    char path[PATH_MAX], **words = NULL;
    moesim_code code = find(path, err);
    if (code == MOESIM_OK)
        code = words_of(path, verb, argc, argv, &words, err);
    if (code != MOESIM_OK)
        return code;
    (void)fflush(NULL);
    (void)execv(path, words);
    code = moesim_fail(err, MOESIM_E_IO, "cannot start %s: %s", path, strerror(errno));
    free(words);
    return code;
}

/* Ctrl-C reaches both programs at once; a signal that was sent to this one alone is passed on when the other has not ended
 * by itself. */
static bool wait_for(pid_t child, int *state)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    for (int waited = 0;;) {
        const pid_t ended = waitpid(child, state, WNOHANG);
        if (ended == child || (ended < 0 && errno != EINTR))
            return ended == child;
        (void)nanosleep(&pause, NULL);
        if (moesim_interrupted() && ++waited == PAUSES)
            (void)kill(child, SIGTERM);
    }
}

moesim_code moesim_device_call(const char *verb, int argc, char **argv, int *status, moesim_error *err)
{
    char path[PATH_MAX], **words = NULL;
    pid_t child = -1;
    int state = 0;
    moesim_code code = find(path, err);
    if (code == MOESIM_OK)
        code = words_of(path, verb, argc, argv, &words, err);
    if (code != MOESIM_OK)
        return code;
    (void)fflush(NULL);
    const int failed = posix_spawn(&child, path, NULL, NULL, words, environ);
    if (failed != 0)
        code = moesim_fail(err, MOESIM_E_IO, "cannot start %s: %s", path, strerror(failed));
    if (code == MOESIM_OK && !wait_for(child, &state))
        code = moesim_fail(err, MOESIM_E_IO, "cannot wait for %s: %s", path, strerror(errno));
    *status = WIFSIGNALED(state) ? 128 + WTERMSIG(state) : WEXITSTATUS(state);
    free(words);
    return code;
}
