/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim trace plugin-path: how other programs come to read zstd.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

#define PLUGIN "libh5zstd.so"
#define VARIABLE "HDF5_PLUGIN_PATH"

typedef struct settings {
    bool folder;
} settings;

static const moesim_arg args[] = {
    { .name = "folder", .type = MOESIM_ARG_FLAG, .offset = offsetof(settings, folder),
      .help = "Print the plug-in's folder alone." },
    { .name = NULL },
};

const moesim_usage moesim_usage_trace_plugin_path = {
    .command = "moesim trace plugin-path",
    .synopsis = "[--folder]",
    .summary = "Prints the line of shell with which h5py, h5dump and other programs of HDF5 read traces that are compressed "
               "with zstd: it names the folder of the filter's plug-in, before the folders that " VARIABLE " names already. "
               "HDF5 then leaves out its default folder unless it is named too. The plug-in is looked for beside this "
               "program, as built or as installed.",
    .examples = "  eval \"$(moesim trace plugin-path)\"\n"
                "  h5dump -d /pass/kind trace.h5\n",
    .args = args,
};

/* The folder of this program. */
static bool find_program(char out[PATH_MAX])
{
    const ssize_t n = readlink("/proc/self/exe", out, PATH_MAX - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (slash == NULL)
        return false;
    *slash = '\0';
    return true;
}

/* Is the plug-in in the folder? Then out is the folder's name without links and "..". */
static bool has_plugin(const char *folder, char out[PATH_MAX])
{
    char file[PATH_MAX];
    const int n = snprintf(file, sizeof file, "%s/" PLUGIN, folder);
    return n > 0 && (size_t)n < sizeof file && access(file, R_OK) == 0 && realpath(folder, out) != NULL;
}

/* As built, then as installed (wherever the whole tree was moved), then where it was to be installed. */
static bool find_plugin(char out[PATH_MAX])
{
    char program[PATH_MAX], folder[2 * PATH_MAX];
    if (find_program(program)) {
        const size_t length = strlen(program), end = strlen("/" MOESIM_BINDIR);
        (void)snprintf(folder, sizeof folder, "%s/../traces", program);
        if (has_plugin(folder, out))
            return true;
        if (length >= end && strcmp(program + length - end, "/" MOESIM_BINDIR) == 0 && MOESIM_PLUGIN_DIR[0] != '/') {
            (void)snprintf(folder, sizeof folder, "%.*s/" MOESIM_PLUGIN_DIR, (int)(length - end), program);
            if (has_plugin(folder, out))
                return true;
        }
    }
    (void)snprintf(folder, sizeof folder, "%s" MOESIM_PLUGIN_DIR, MOESIM_PLUGIN_DIR[0] != '/' ? MOESIM_PREFIX "/" : "");
    return has_plugin(folder, out);
}

/* Is the folder an element of the list? */
static bool is_named(const char *list, const char *folder)
{
    const size_t length = strlen(folder);
    for (const char *at = list; at != NULL; at = strchr(at, ':')) {
        at += *at == ':';
        if (strncmp(at, folder, length) == 0 && (at[length] == ':' || at[length] == '\0'))
            return true;
    }
    return false;
}

/* In single quotes unless every character is harmless in a shell. */
static void print_quoted(const char *text)
{
    static const char harmless[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/:._+-,@%=";
    if (text[strspn(text, harmless)] == '\0') {
        fputs(text, stdout);
        return;
    }
    putchar('\'');
    for (; *text != '\0'; text++)
        fputs(*text == '\'' ? "'\\''" : (const char[]){ *text, '\0' }, stdout);
    putchar('\'');
}

static moesim_code print_path(const settings *s, moesim_error *err)
{
    char folder[PATH_MAX];
    if (!find_plugin(folder))
        return moesim_fail(err, MOESIM_E_IO, "there is no plug-in " PLUGIN " beside this program (one that was linked "
                           "statically has none); write traces for other programs with `moesim trace convert IN OUT "
                           "--compression gzip`, or take the zstd filter of another package, as hdf5plugin of Python");
    if (s->folder) {
        puts(folder);
        return MOESIM_OK;
    }
    if (strchr(folder, ':') != NULL)
        return moesim_fail(err, MOESIM_E_IO, "%s: HDF5 takes ':' for the end of a folder; move the program to another one",
                           folder);
    const char *before = getenv(VARIABLE);
    const bool named = before != NULL && is_named(before, folder);
    fputs("export " VARIABLE "=", stdout);
    print_quoted(named ? before : folder);
    if (!named && before != NULL && before[0] != '\0') {
        putchar(':');
        print_quoted(before);
    }
    putchar('\n');
    return MOESIM_OK;
}

moesim_code moesim_cmd_trace_plugin_path(int argc, char **argv, moesim_error *err)
{
    settings s = { .folder = false };
    moesim_list words = { 0 };
    bool help = false;
    moesim_code code = moesim_args_parse(&moesim_usage_trace_plugin_path, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&moesim_usage_trace_plugin_path, stdout);
    else if (code == MOESIM_OK)
        code = print_path(&s, err);
    moesim_list_fini(&words);
    return code;
}
