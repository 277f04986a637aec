/* SPDX-License-Identifier: Apache-2.0
 *
 * moesim policy: help for authors of policies.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/output.h"
#include "cli/cli.h"
#include "cli/policy_template.h"
#include "cli/print.h"
#include "policies/registry.h"

#define MAX_NAME 32u
#define MAX_FOLDER 3072u

typedef struct settings { const char *dir; } settings;

static const moesim_arg args[] = {
    { .name = "dir", .type = MOESIM_ARG_STRING, .offset = offsetof(settings, dir), .value = "FOLDER",
      .help = "Folder to write to; the current one is the default." },
    { .name = NULL },
};

static const moesim_usage usage_new = {
    .command = "moesim policy new",
    .synopsis = "NAME [options]",
    .summary = "Writes NAME.c, a commented policy that compiles as it is, and prints how to build it and how to run it. "
               "NAME consists of small letters, digits and '-', and begins with a letter.",
    .examples = "  moesim policy new mine\n  moesim policy new mine --dir ~/policies\n",
    .args = args,
    .min_positional = 1,
    .max_positional = 1,
};

const moesim_usage moesim_usage_policy = {
    .command = "moesim policy",
    .synopsis = "COMMAND",
    .summary = "Helps to write a policy of your own.",
};

static moesim_code check_name(const char *name, moesim_error *err)
{
    const size_t n = strlen(name);
    if (n == 0 || n > MAX_NAME || name[0] < 'a' || name[0] > 'z'
        || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != n || name[n - 1] == '-')
        return moesim_fail(err, MOESIM_E_USAGE, "'%.80s' cannot name a policy: use up to %u small letters, digits and '-', "
                           "beginning with a letter", name, MAX_NAME);
    for (const moesim_policy *const *p = moesim_policies(); *p != NULL; p++)
        if (strcmp((*p)->name, name) == 0)
            return moesim_fail(err, MOESIM_E_USAGE, "'%s' is a built-in policy; choose another name", name);
    return MOESIM_OK;
}

/* The installed header where there is one, else the source tree's. */
static const char *include_folder(void)
{
    return access(MOESIM_INCLUDE_INSTALLED "/moesim/policy.h", R_OK) == 0 ? MOESIM_INCLUDE_INSTALLED : MOESIM_INCLUDE_SOURCE;
}

static moesim_code write_template(const char *path, const char *name, moesim_error *err)
{
    struct stat st;
    moesim_output *out;
    if (lstat(path, &st) == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s' exists; choose another name or remove it first", path);
    if (errno != ENOENT)
        return moesim_fail(err, MOESIM_E_IO, "cannot write '%s': %s", path, strerror(errno));
    const moesim_code code = moesim_output_open(path, &out, err);
    if (code != MOESIM_OK)
        return code;
    FILE *stream = moesim_output_stream(out);
    for (const char *const *line = moesim_policy_template; *line != NULL; line++) {
        for (const char *c = *line; *c != '\0'; c++) {
            if (*c == '@')
                fputs(name, stream);
            else
                fputc(*c, stream);
        }
        fputc('\n', stream);
    }
    return moesim_output_commit(&out, err);
}

/* A word that a shell reads as it is: quoted, quotes in it apart. */
static void print_quoted(const char *before, const char *word, const char *end)
{
    printf("%s'", before);
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (const char[]){ *word, '\0' }, stdout);
    printf("%s'", end);
}

static moesim_code create(const char *name, const char *dir, moesim_error *err)
{
    char base[MAX_FOLDER + MAX_NAME + 2], path[sizeof base + 2];
    moesim_code code = check_name(name, err);
    if (code != MOESIM_OK)
        return code;
    if (strlen(dir) > MAX_FOLDER)
        return moesim_fail(err, MOESIM_E_USAGE, "the name of the folder is longer than %u characters", MAX_FOLDER);
    snprintf(base, sizeof base, "%s/%s", dir, name);
    snprintf(path, sizeof path, "%s.c", base);
    code = write_template(path, name, err);
    if (code != MOESIM_OK)
        return code;
    fputs("Wrote ", stdout);
    moesim_print_clean(stdout, path);
    fputs(". Build and run:\n  cc -shared -fPIC -O2 -I", stdout);
    print_quoted("", include_folder(), "");
    print_quoted(" ", base, ".c");
    print_quoted(" -o ", base, ".so");
    print_quoted("\n  moesim run TRACE --policy ", base, ".so:row-bonus=1");
    fputs(" --policy lru --cache 40\n", stdout);
    return MOESIM_OK;
}

static moesim_code cmd_new(int argc, char **argv, moesim_error *err)
{
    settings s = { "." };
    moesim_list words = { 0 };
    bool help;
    moesim_code code = moesim_args_parse(&usage_new, argc, argv, &s, &words, &help, err);
    if (code == MOESIM_OK && help)
        moesim_args_help(&usage_new, stdout);
    else if (code == MOESIM_OK)
        code = create(words.item[0], s.dir, err);
    moesim_list_fini(&words);
    return code;
}

moesim_code moesim_cmd_policy(int argc, char **argv, moesim_error *err)
{
    static const moesim_command commands[] = {
        { "new", &usage_new, cmd_new },
        { NULL, NULL, NULL },
    };
    return moesim_dispatch_command(commands, moesim_usage_policy.command, moesim_usage_policy.summary, argc, argv, err);
}
