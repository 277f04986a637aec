/* SPDX-License-Identifier: Apache-2.0
 *
 * Help texts from the same table as the parser, at most 80 columns.
 */
#include <string.h>

#include "base/args.h"

#define COLUMNS 80u
#define HELP_COLUMN 26u

/* Columns of UTF-8 text: bytes that do not continue a character. */
static size_t width(const char *text, size_t bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++)
        n += ((unsigned char)text[i] & 0xC0u) != 0x80u;
    return n;
}

/* Prints words wrapped at 80 columns, indented by `indent`; the cursor stands at `column`. Ends the line. */
static void wrap(FILE *out, const char *text, size_t indent, size_t column)
{
    bool first = true;
    while (*text != '\0') {
        const size_t bytes = strcspn(text, " \n");
        const size_t chars = width(text, bytes);
        if (!first && column + 1 + chars > COLUMNS) {
            fprintf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fwrite(text, 1, bytes, out);
        column += chars;
        first = false;
        text += bytes;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

/* "  -o, --name VALUE"; returns its columns. */
static size_t print_name(const moesim_arg *a, FILE *out)
{
    char text[256];
    int n = a->letter != 0 ? snprintf(text, sizeof text, "  -%c, --%s", a->letter, a->name)
                           : snprintf(text, sizeof text, "  --%s", a->name);
    size_t used = n > 0 ? (size_t)n : 0;
    if (a->value != NULL && a->type != MOESIM_ARG_FLAG && used < sizeof text) {
        n = snprintf(text + used, sizeof text - used, " %s", a->value);
        used += n > 0 ? (size_t)n : 0;
    } else if (a->type == MOESIM_ARG_CHOICE) {
        for (size_t i = 0; a->choices[i] != NULL && used < sizeof text; i++) {
            n = snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "|" : " ", a->choices[i]);
            used += n > 0 ? (size_t)n : 0;
        }
    }
    fputs(text, out);
    return width(text, strlen(text));
}

static void print_arg(const moesim_arg *a, FILE *out)
{
    const size_t used = print_name(a, out);
    if (used + 2 > HELP_COLUMN)
        fprintf(out, "\n%*s", (int)HELP_COLUMN, "");
    else
        fprintf(out, "%*s", (int)(HELP_COLUMN - used), "");
    wrap(out, a->help, HELP_COLUMN, HELP_COLUMN);
}

void moesim_args_help(const moesim_usage *usage, FILE *out)
{
    static const moesim_arg help = { .name = "help", .letter = 'h', .type = MOESIM_ARG_FLAG, .help = "Print this text." };
    const size_t indent = 8 + strlen(usage->command);
    fprintf(out, "Usage: %s ", usage->command);
    wrap(out, usage->synopsis, indent, indent);
    fputc('\n', out);
    wrap(out, usage->summary, 0, 0);
    fputs("\nOptions:\n", out);
    for (const moesim_arg *a = usage->args; a != NULL && a->name != NULL; a++)
        print_arg(a, out);
    print_arg(&help, out);
    if (usage->examples != NULL)
        fprintf(out, "\nExamples:\n%s%s", usage->examples,
                usage->examples[strlen(usage->examples) - 1] == '\n' ? "" : "\n");
}
