/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds a command in its table and lists tables.
 */
#include <stdio.h>
#include <string.h>

#include "base/options.h"
#include "cli/cli.h"

#define MAX_COMMANDS 64u
#define INDENT 2u
#define COLUMN 14u

/* The first sentence says what a command is for; the rest is for its own help. */
static void first_sentence(const char *text, char *out, size_t size)
{
    const char *end = strstr(text, ". ");
    const size_t chars = end != NULL ? (size_t)(end - text) + 1 : strlen(text);
    snprintf(out, size, "%.*s", (int)chars, text);
}

static void list(const moesim_command *table, const char *prefix, const char *summary, FILE *out)
{
    char text[512];
    fprintf(out, "Usage: %s COMMAND [words and options]\n\n", prefix);
    moesim_args_row(out, "", 0, 0, summary);
    fputs("\nCommands:\n", out);
    for (const moesim_command *c = table; c->name != NULL; c++) {
        first_sentence(c->usage->summary, text, sizeof text);
        moesim_args_row(out, c->name, INDENT, COLUMN, text);
    }
    fprintf(out, "\n'%s COMMAND --help' describes a command and its options.\n", prefix);
    if (strchr(prefix, ' ') == NULL)
        fprintf(out, "'%s --version' prints the version.\n", prefix);
}

static moesim_code fail_unknown(const moesim_command *table, const char *prefix, const char *word, moesim_error *err)
{
    const char *names[MAX_COMMANDS + 1];
    size_t n = 0;
    for (; table[n].name != NULL && n < MAX_COMMANDS; n++)
        names[n] = table[n].name;
    names[n] = NULL;
    const char *nearest = moesim_nearest(word, names);
    if (nearest != NULL)
        return moesim_fail(err, MOESIM_E_USAGE, "'%s %s' is no command; did you mean '%s %s'?", prefix, word, prefix,
                           nearest);
    return moesim_fail(err, MOESIM_E_USAGE, "'%s %s' is no command; '%s --help' lists the commands", prefix, word, prefix);
}

moesim_code moesim_dispatch_command(const moesim_command *table, const char *prefix, const char *summary, int argc,
                                    char **argv, moesim_error *err)
{
    if (argc < 2) {
        list(table, prefix, summary, stderr);
        return moesim_fail(err, MOESIM_E_USAGE, "a command is missing after '%s'", prefix);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        list(table, prefix, summary, stdout);
        return MOESIM_OK;
    }
    for (const moesim_command *c = table; c->name != NULL; c++)
        if (strcmp(c->name, argv[1]) == 0)
            return c->run(argc - 1, argv + 1, err);
    return fail_unknown(table, prefix, argv[1], err);
}
