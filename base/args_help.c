/* SPDX-License-Identifier: Apache-2.0
 *
 * Help texts from the same table as the parser, at most 80 columns.
 */
#include <string.h>

#include "base/args.h"
#include "base/text.h"

#define COLUMNS 80u
#define MAX_WORD 4200u    /* bytes; longer words, which only a path could be, are cut */
#define MAX_HELP 2048u
#define HELP_COLUMN 26u   /* where help texts of options begin */

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
    char word[MAX_WORD];
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
        moesim_text_clean(text, bytes, word, sizeof word);
        fputs(word, out);
        column += chars;
        first = false;
        text += bytes;
        text += strspn(text, " \n");
    }
    fputc('\n', out);
}

void moesim_args_row(FILE *out, const char *left, unsigned indent, unsigned column, const char *text)
{
    const size_t used = indent + width(left, strlen(left));
    fprintf(out, "%*s%s", (int)indent, "", left);
    if (left[0] != '\0' && used + 2 > column)
        fprintf(out, "\n%*s", (int)column, "");
    else if (column > used)
        fprintf(out, "%*s", (int)(column - used), "");
    wrap(out, text, column, column);
}

/* Writes "-o, --name VALUE" for an option. */
static void name_text(const moesim_arg *a, char *text, size_t size)
{
    int n = a->letter != 0 ? snprintf(text, size, "-%c, --%s", a->letter, a->name) : snprintf(text, size, "--%s", a->name);
    size_t used = n > 0 ? (size_t)n : 0;
    if (a->value != NULL && a->type != MOESIM_ARG_FLAG && used < size) {
        snprintf(text + used, size - used, " %s", a->value);
        return;
    }
    for (size_t i = 0; a->type == MOESIM_ARG_CHOICE && a->choices[i] != NULL && used < size; i++) {
        n = snprintf(text + used, size - used, "%s%s", i > 0 ? "|" : " ", a->choices[i]);
        used += n > 0 ? (size_t)n : 0;
    }
}

/* The limits that the parser holds a number to, or that the command sets to a list, as one more sentence; "" without. */
static void limits_text(const moesim_arg *a, char *text, size_t size)
{
    text[0] = '\0';
    if (a->min == 0.0 && a->max == 0.0)
        return;
    if (a->type == MOESIM_ARG_U64)
        snprintf(text, size, "From %.0f to %.0f.", a->min, a->max);
    else if (a->type == MOESIM_ARG_REAL)
        snprintf(text, size, "From %.15g to %.15g.", a->min, a->max);
    else if (a->type == MOESIM_ARG_LIST)
        snprintf(text, size, "At most %.0f.", a->max);
}

static void print_arg(const moesim_arg *a, FILE *out)
{
    char text[256], limits[80], help[MAX_HELP];
    name_text(a, text, sizeof text);
    limits_text(a, limits, sizeof limits);
    snprintf(help, sizeof help, "%s %s", a->help, limits);
    moesim_args_row(out, text, 2, HELP_COLUMN, help);
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
