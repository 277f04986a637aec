/* SPDX-License-Identifier: Apache-2.0
 *
 * Conversion of old-format traces in a child process under limits.
 */
#include "traces/oldformat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "traces/copy.h"

#if defined(__SANITIZE_ADDRESS__)
#define LIMIT_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LIMIT_MEMORY 0
#endif
#endif
#ifndef LIMIT_MEMORY
#define LIMIT_MEMORY 1
#endif

#define POLL_MS 100   /* how soon an interruption is seen */

/* Sets both limits, but never above the hard limit that already holds, which only a privileged process may raise. */
static bool limit(unsigned resource, rlim_t most)
{
    struct rlimit now;
    if (getrlimit(resource, &now) != 0)
        return false;
    const rlim_t least = now.rlim_max < most ? now.rlim_max : most;   /* RLIM_INFINITY is the largest */
    now = (struct rlimit){least, least};
    return setrlimit(resource, &now) == 0;
}

/* In the child: no core file, no output, limits. Default actions, so that a sanitizer's or a caller's handler cannot turn a
 * crash into something else. */
static bool confine(const moesim_child_limits *limits)
{
    const int nowhere = open("/dev/null", O_RDWR);
    if (nowhere < 0 || dup2(nowhere, STDOUT_FILENO) < 0 || dup2(nowhere, STDERR_FILENO) < 0)
        return false;
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU};
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        signal(fatal[i], SIG_DFL);
    return limit(RLIMIT_CORE, 0) && limit(RLIMIT_CPU, limits->cpu_seconds) &&
           (!LIMIT_MEMORY || limit(RLIMIT_AS, limits->memory_bytes));
}

static void child(moesim_child_work *work, void *cookie, const moesim_child_limits *limits, const char *path,
                  int pipe_end)
{
    moesim_error err = MOESIM_ERROR_INIT;
    if (!confine(limits))
        moesim_fail(&err, MOESIM_E_IO, "%s: cannot limit the child process that would read it: %s; repack the file with "
                    "`h5repack --low=2 --high=2` where it is trusted", path, strerror(errno));
    else
        work(cookie, &err);
    /* One write of less than PIPE_BUF bytes: the parent gets all of it or nothing. */
    const ssize_t wrote = write(pipe_end, &err, sizeof err);
    _exit(wrote == (ssize_t)sizeof err && err.code == MOESIM_OK ? 0 : 1);
}

/* Waits for the child's end and takes what it reported; an interruption of this process ends the child first. Signals restart
 * a read, so it is not begun before there is something to read. */
static bool collect(pid_t pid, int pipe_end, moesim_error *report, int *status)
{
    size_t have = 0;
    bool killed = false;
    for (;;) {
        struct pollfd ready = {.fd = pipe_end, .events = POLLIN};
        if (moesim_interrupted() && !killed)
            killed = kill(pid, SIGKILL) == 0;
        if (poll(&ready, 1, POLL_MS) <= 0)
            continue;
        const ssize_t n = read(pipe_end, (char *)report + have, sizeof *report - have);
        if (n > 0)
            have += (size_t)n;
        if ((n < 0 && errno != EINTR) || n == 0 || have == sizeof *report)
            break;
    }
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        if (moesim_interrupted() && !killed)
            killed = kill(pid, SIGKILL) == 0;
    return have == sizeof *report;
}

static moesim_code judge(bool reported, const moesim_error *report, int status, const moesim_child_limits *limits,
                         const char *path, moesim_error *err)
{
    if (reported && WIFEXITED(status))   /* its work was done, whatever came since */
        return report->code == MOESIM_OK ? MOESIM_OK : moesim_fail(err, report->code, "%.*s", (int)sizeof report->text - 1,
                                                                   report->text);
    if (moesim_interrupted())
        return moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted while reading %s", path);
    const char *cause = WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it ended without a report";
    return moesim_fail(err, MOESIM_E_FORMAT, "%s: the file is damaged, or larger than allowed: the process that read it ended "
                       "early (%s; limits: %llu MiB of memory, %llu s of CPU time); repack the file with `h5repack "
                       "--low=2 --high=2` where it is trusted", path, cause,
                       (unsigned long long)(limits->memory_bytes >> 20), (unsigned long long)limits->cpu_seconds);
}

moesim_code moesim_child_run(moesim_child_work *work, void *cookie, const moesim_child_limits *limits, const char *path,
                             moesim_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return moesim_fail(err, MOESIM_E_IO, "%s: no pipe to a child process: %s", path, strerror(errno));
    fflush(NULL);   /* the child must not write out the parent's buffers again */
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        child(work, cookie, limits, path, ends[1]);
    }
    const int fork_errno = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return moesim_fail(err, MOESIM_E_IO, "%s: no child process: %s", path, strerror(fork_errno));
    }
    moesim_error report;
    int status = 0;
    const bool reported = collect(pid, ends[0], &report, &status);
    close(ends[0]);
    return judge(reported, &report, status, limits, path, err);
}

typedef struct conversion {
    const char *path, *converted;
} conversion;

static moesim_code convert(void *cookie, moesim_error *err)
{
    const conversion *c = cookie;
    const moesim_trace_options options = {.old_format = true};
    moesim_trace *trace = NULL;
    moesim_code code = moesim_trace_open(c->path, &options, &trace, err);
    if (code != MOESIM_OK)
        return code;
    /* A light compression: the copy lives for one run. The source's own attribute stays. */
    code = moesim_trace_copy(trace, c->converted, NULL, moesim_trace_get_info(trace)->source_digest,
                             &(moesim_writer_options){MOESIM_ZSTD, 1}, NULL, err);
    moesim_trace_close(&trace);
    return code;
}

/* Removes the private folder and whatever a crashed child left in it. */
static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);
    if (dir != NULL) {
        for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                (void)unlinkat(dirfd(dir), entry->d_name, 0);
        closedir(dir);
    }
    (void)rmdir(folder);
}

moesim_code moesim_trace_open_old(const char *path, moesim_trace **out, moesim_error *err)
{
    static const moesim_child_limits limits = MOESIM_OLD_FORMAT_LIMITS;
    const char *base = getenv("TMPDIR");
    char folder[3072], converted[3200];
    if (base == NULL || base[0] == '\0')
        base = "/tmp";
    *out = NULL;
    const int n = snprintf(folder, sizeof folder, "%s/moesim-XXXXXX", base);
    if (n < 0 || (size_t)n >= sizeof folder || mkdtemp(folder) == NULL)
        return moesim_fail(err, MOESIM_E_IO, "%s: no temporary folder in %s: %s; set TMPDIR to a writable one", path, base,
                           (size_t)n >= sizeof folder ? "its name is too long" : strerror(errno));
    snprintf(converted, sizeof converted, "%s/converted.h5", folder);
    conversion c = {path, converted};
    moesim_code code = moesim_child_run(convert, &c, &limits, path, err);
    if (code == MOESIM_OK) {
        const moesim_trace_options options = {.shown_path = path};
        code = moesim_trace_open(converted, &options, out, err);
    }
    remove_folder(folder);
    return code;
}
