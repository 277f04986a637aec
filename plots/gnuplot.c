/* SPDX-License-Identifier: Apache-2.0
 *
 * Finding and running gnuplot.
 */
#include "plots/gnuplot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define SECONDS 60               /* a figure takes well below one */
#define STEP_MS 5
#define ENVIRONMENT 8

#define ADVICE "install the package gnuplot-nox (Debian, Ubuntu) or gnuplot (Fedora, Homebrew)"

/* What the program may see of the environment. The locale is fixed: a decimal comma would change the figure. */
static void environment(char *const inherited[], char *out[ENVIRONMENT])
{
    static char locale[] = "LC_ALL=C.UTF-8", epoch[] = "SOURCE_DATE_EPOCH=0";
    static const char *const passed[] = { "PATH=", "HOME=", "XDG_CACHE_HOME=", "FONTCONFIG_FILE=", "FONTCONFIG_PATH=" };
    size_t n = 0;
    out[n++] = locale;
    out[n++] = epoch;
    for (size_t k = 0; k < sizeof passed / sizeof passed[0]; k++)
        for (size_t i = 0; inherited[i] != NULL; i++)
            if (strncmp(inherited[i], passed[k], strlen(passed[k])) == 0) {
                out[n++] = inherited[i];
                break;
            }
    out[n] = NULL;
}

static moesim_code start(const char *program, char *const argv[], int out, int error, pid_t *pid, moesim_error *err)
{
    char *env[ENVIRONMENT];
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    environment(environ, env);
    int reason = posix_spawn_file_actions_init(&files);
    if (reason != 0)
        return moesim_fail(err, MOESIM_E_IO, "cannot run %s: %s", program, strerror(reason));
    reason = posix_spawnattr_init(&attributes);
    if (reason == 0) {
        sigemptyset(&none);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
        posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&files, error, STDERR_FILENO);
        reason = posix_spawn(pid, program, &files, &attributes, argv, env);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return reason == 0 ? MOESIM_OK : moesim_fail(err, MOESIM_E_IO, "cannot run %s: %s; " ADVICE, program, strerror(reason));
}

/* Waits; ends the child where it takes too long or the user interrupts. */
static moesim_code wait_for(pid_t pid, int *status, moesim_error *err)
{
    const struct timespec pause = { 0, STEP_MS * 1000000L };
    moesim_code code = MOESIM_OK;
    for (long steps = 0;; steps++) {
        const pid_t done = waitpid(pid, status, code == MOESIM_OK ? WNOHANG : 0);
        if (code == MOESIM_OK && moesim_interrupted())
            code = moesim_fail(err, MOESIM_E_INTERRUPTED, "interrupted; nothing was kept");
        if (done == pid || (done < 0 && errno != EINTR))
            return code != MOESIM_OK || done == pid ? code
                : moesim_fail(err, MOESIM_E_IO, "lost track of gnuplot: %s", strerror(errno));
        if (code == MOESIM_OK && steps > SECONDS * 1000L / STEP_MS)
            code = moesim_fail(err, MOESIM_E_IO, "gnuplot took longer than %d s and was ended; nothing was kept", SECONDS);
        if (code != MOESIM_OK)
            (void)kill(pid, SIGKILL);
        else
            (void)nanosleep(&pause, NULL);
    }
}

/* The last line of what gnuplot complained about: before it stand the line of the script and warnings. */
static void last_line(FILE *error, char *out, size_t bytes)
{
    char line[512];
    out[0] = '\0';
    rewind(error);
    while (fgets(line, sizeof line, error) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        for (char *c = line; *c != '\0'; c++)
            if ((unsigned char)*c < 0x20 || *c == 0x7F)
                *c = ' ';
        if (line[strspn(line, " ")] != '\0')
            (void)snprintf(out, bytes, "%s", line + strspn(line, " "));
    }
}

static moesim_code judge(int status, FILE *error, moesim_error *err)
{
    char words[300];
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return MOESIM_OK;
    last_line(error, words, sizeof words);
    if (WIFSIGNALED(status))
        return moesim_fail(err, MOESIM_E_IO, "gnuplot ended by signal %d; nothing was kept", WTERMSIG(status));
    return moesim_fail(err, MOESIM_E_IO, "gnuplot failed: %s; nothing was kept",
                       words[0] != '\0' ? words : "without a message");
}

static moesim_code call(const char *program, char *const argv[], FILE *out, FILE *error, moesim_error *err)
{
    pid_t pid;
    int status = 0;
    moesim_code code = start(program, argv, fileno(out), fileno(error), &pid, err);
    if (code == MOESIM_OK)
        code = wait_for(pid, &status, err);
    return code == MOESIM_OK ? judge(status, error, err) : code;
}

/* ---- finding ------------------------------------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool search_path(char *out, size_t bytes)
{
    const char *path = getenv("PATH");
    for (const char *at = path; at != NULL && *at != '\0';) {
        const size_t n = strcspn(at, ":");
        const int chars = snprintf(out, bytes, "%.*s/gnuplot", (int)n, at);
        if (at[0] == '/' && chars > 0 && (size_t)chars < bytes && is_program(out))
            return true;
        at += n + (at[n] == ':' ? 1u : 0u);
    }
    return false;
}

/* gnuplot prints to standard error. */
static moesim_code ask_terminals(moesim_gnuplot *g, FILE *answer, moesim_error *err)
{
    char name[] = "gnuplot", settings[] = "-d", option[] = "-e", question[] = "print GPVAL_TERMINALS";
    char *const argv[] = { name, settings, option, question, NULL };
    const moesim_code code = call(g->program, argv, answer, answer, err);
    if (code != MOESIM_OK)
        return code;
    rewind(answer);
    size_t n = fread(g->terminals, 1, sizeof g->terminals - 1, answer);
    g->terminals[n] = '\0';
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)g->terminals[i] <= ' ')
            g->terminals[i] = ' ';
    return MOESIM_OK;
}

moesim_code moesim_gnuplot_find(moesim_gnuplot *out, moesim_error *err)
{
    memset(out, 0, sizeof *out);
    if (!search_path(out->program, sizeof out->program))
        return moesim_fail(err, MOESIM_E_IO, "figures are drawn by gnuplot, which is not on PATH; " ADVICE);
    FILE *answer = tmpfile();
    if (answer == NULL)
        return moesim_fail(err, MOESIM_E_IO, "cannot make a temporary file: %s", strerror(errno));
    const moesim_code code = ask_terminals(out, answer, err);
    (void)fclose(answer);
    return code;
}

/* ---- terminals ----------------------------------------------------------------------------------------------------- */

/* The first that is there is taken. */
static const struct { const char *ending, *terminal; } terminals[] = {
    { "svg", "svg" },
    { "png", "pngcairo" },
    { "png", "png" },
    { "pdf", "pdfcairo" },
};
#define NUM_TERMINALS (sizeof terminals / sizeof terminals[0])

static bool has_terminal(const moesim_gnuplot *g, const char *name)
{
    char word[32];
    (void)snprintf(word, sizeof word, " %s ", name);
    return strstr(g->terminals, word) != NULL;
}

/* Endings that can be written, "svg, png". */
static void list_endings(const moesim_gnuplot *g, char *out, size_t bytes)
{
    const char *before = "";
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < NUM_TERMINALS; i++) {
        if (!has_terminal(g, terminals[i].terminal) || strcmp(before, terminals[i].ending) == 0)
            continue;
        before = terminals[i].ending;
        used += (size_t)snprintf(out + used, bytes - used, "%s.%s", used > 0 ? ", " : "", before);
    }
}

moesim_code moesim_gnuplot_terminal(const moesim_gnuplot *g, const char *path, const char **out, moesim_error *err)
{
    char can[64];
    bool known = false;
    const char *name = strrchr(path, '/'), *dot = strrchr(name != NULL ? name : path, '.');
    for (size_t i = 0; dot != NULL && i < NUM_TERMINALS; i++) {
        if (strcasecmp(dot + 1, terminals[i].ending) != 0)
            continue;
        known = true;
        *out = terminals[i].terminal;
        if (has_terminal(g, *out))
            return MOESIM_OK;
    }
    if (!known)
        return moesim_fail(err, MOESIM_E_USAGE, "option -o: '%.200s' ends in none of .png, .svg and .pdf, which say what "
                           "to draw", path);
    list_endings(g, can, sizeof can);
    return moesim_fail(err, MOESIM_E_IO, "%s cannot write %s files (it has no terminal %s); it can write %s, or " ADVICE,
                       g->program, dot, *out, can[0] != '\0' ? can : "none of them");
}

moesim_code moesim_gnuplot_run(const moesim_gnuplot *g, const char *script, const char *data, FILE *out, moesim_error *err)
{
    char name[] = "gnuplot", settings[] = "-d", option[] = "-c";
    char *words[2] = { strdup(script), strdup(data) };
    char *const argv[] = { name, settings, option, words[0], words[1], NULL };
    FILE *error = tmpfile();
    moesim_code code = MOESIM_OK;
    if (words[0] == NULL || words[1] == NULL)
        code = moesim_fail_nomem(err, "file names", strlen(script) + strlen(data));
    else if (error == NULL)
        code = moesim_fail(err, MOESIM_E_IO, "cannot make a temporary file: %s", strerror(errno));
    else
        code = call(g->program, argv, out, error, err);
    if (error != NULL)
        (void)fclose(error);
    free(words[0]);
    free(words[1]);
    return code;
}
