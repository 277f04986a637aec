/* SPDX-License-Identifier: Apache-2.0
 *
 * Log lines, progress and interruption.
 */
#include "base/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output.h"
#include "base/text.h"

#define MAX_TEXT 2048   /* longer than any error; what is longer is cut */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;   /* guards standard error and `line_drawn` */
static moesim_level threshold = MOESIM_LOG_WARN;
static bool line_drawn;                                    /* a progress line stands at the cursor */
static volatile sig_atomic_t interrupted;

void moesim_log_set_level(moesim_level level)
{
    threshold = level;
}

static void clear_line(void)
{
    if (line_drawn)
        fputs("\r\033[K", stderr);
    line_drawn = false;
}

void moesim_log(moesim_level level, const char *fmt, ...)
{
    static const char *const word[] = { "error", "warning", "info", "debug" };
    char text[MAX_TEXT];
    if (level > threshold)
        return;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    moesim_text_clean(text, sizeof text, text, sizeof text);
    pthread_mutex_lock(&lock);
    clear_line();
    fprintf(stderr, "moesim: %s: %s\n", word[level], text);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

void moesim_progress_begin(moesim_progress *p, const char *what, uint64_t total, uint64_t unit_scale, const char *unit)
{
    const bool always = p->always;
    memset(p, 0, sizeof *p);
    p->always = always;
    p->what = what;
    p->total = total;
    p->unit_scale = unit_scale > 0 ? unit_scale : 1;
    p->unit = unit;
    p->started = moesim_clock_seconds();
    p->visible = always || isatty(STDERR_FILENO) == 1;
}

/* "1.2 M" for 1.2e6. */
static void print_rate(double rate, const char *unit)
{
    static const struct { double scale; const char *letter; } step[] = {
        { 1e9, "G " }, { 1e6, "M " }, { 1e3, "k " }, { 1.0, "" },
    };
    size_t i = 0;
    while (i < 3 && rate < step[i].scale)
        i++;
    fprintf(stderr, "  %.1f %s%s/s", rate / step[i].scale, step[i].letter, unit);
}

void moesim_progress_update(moesim_progress *p, uint64_t done)
{
    if (!p->visible)
        return;
    const double t = moesim_clock_seconds();
    const double elapsed = t - p->started;
    if (elapsed < 2.0 || t - p->drawn < 0.2)
        return;
    p->drawn = t;
    pthread_mutex_lock(&lock);
    clear_line();
    fprintf(stderr, "\r%s", p->what);
    if (p->total > 0)
        fprintf(stderr, "  %3.0f %%", 100.0 * (double)done / (double)p->total);
    else
        fprintf(stderr, "  %" PRIu64, done);
    print_rate((double)done * (double)p->unit_scale / elapsed, p->unit);
    if (p->total > 0 && done > 0 && done <= p->total)
        fprintf(stderr, "  %.0f s left", elapsed * (double)(p->total - done) / (double)done);
    fflush(stderr);
    line_drawn = true;
    pthread_mutex_unlock(&lock);
}

void moesim_progress_end(moesim_progress *p)
{
    pthread_mutex_lock(&lock);
    clear_line();
    pthread_mutex_unlock(&lock);
    p->visible = false;
}

bool moesim_interrupted(void)
{
    return interrupted != 0;
}

/* Ends the process at once, as without a handler, but leaves no temporary file. */
static void on_fatal(int number)
{
    moesim_output_discard_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* The first signal asks loops to stop and clean up; a second one, of whatever kind, ends the process at once. */
static void on_signal(int number)
{
    if (interrupted != 0)
        on_fatal(number);
    interrupted = 1;
}

/* A signal that was ignored when the program began stays so: nohup and background jobs rely on that. */
static void handle(int number, void (*handler)(int))
{
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
        return;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;   /* libraries below need not know about EINTR: loops poll the flag */
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void moesim_interrupt_install(void)
{
    static const int stop[] = { SIGINT, SIGTERM, SIGHUP }, fatal[] = { SIGPIPE, SIGQUIT, SIGXCPU };
    for (size_t i = 0; i < sizeof stop / sizeof stop[0]; i++)
        handle(stop[i], on_signal);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++)
        handle(fatal[i], on_fatal);
}
