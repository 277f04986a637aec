/* SPDX-License-Identifier: Apache-2.0
 *
 * Command-line parsing from a table; --help comes from the same rows. Long options only ("--name value" or "--name=value")
 * plus "-o"; "--" ends options; options and positionals mix freely. Every option may be given once unless LIST.
 */
#ifndef MOESIM_BASE_ARGS_H
#define MOESIM_BASE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define MOESIM_ARG_MAX_SEED 9e18   /* of --seed: JSON, in which configurations are kept, ends at 2^63 − 1 */

typedef enum moesim_arg_type {
    MOESIM_ARG_FLAG,      /* bool */
    MOESIM_ARG_U64,       /* uint64_t within [min, max] */
    MOESIM_ARG_REAL,      /* double within [min, max] */
    MOESIM_ARG_STRING,    /* const char *, points into argv */
    MOESIM_ARG_CHOICE,    /* int index into choices */
    MOESIM_ARG_BYTES,     /* uint64_t, at least min */
    MOESIM_ARG_RANGE,     /* moesim_range "a:b" */
    MOESIM_ARG_LIST       /* moesim_list of const char *, may be given again and again */
} moesim_arg_type;

typedef struct moesim_range { uint64_t begin, end; bool given; } moesim_range;   /* end UINT64_MAX when left out: "2:" */
typedef struct moesim_list { size_t n, capacity; const char **item; } moesim_list;

typedef struct moesim_arg {
    const char *name;            /* without dashes; NULL ends the table */
    char letter;                 /* short form or 0 */
    moesim_arg_type type;
    size_t offset;               /* into the caller's struct; its initial content is the default */
    const char *value;           /* how the value is written in help: "N", "FILE", "a:b" */
    double min, max;             /* U64 and REAL, both 0: no limits; BYTES: min alone; LIST: max is how many values the command
                                  * takes, for help */
    const char *const *choices;  /* CHOICE: NULL-ended */
    const char *help;            /* one or more sentences, wrapped by the printer at 80 columns */
} moesim_arg;

typedef struct moesim_usage {
    const char *command;         /* "moesim run" */
    const char *synopsis;        /* "TRACE --policy P… --cache N[,N…] [options]" */
    const char *summary;         /* a paragraph */
    const char *examples;        /* lines, or NULL */
    const moesim_arg *args;
    int min_positional, max_positional;
} moesim_usage;

/* Parses argv[1..] into `store`; positionals are collected in order. *help is set when --help or -h was met (nothing else is
 * checked then). Errors are MOESIM_E_USAGE and suggest the nearest option name. */
moesim_code moesim_args_parse(const moesim_usage *usage, int argc, char **argv, void *store, moesim_list *positional,
                              bool *help, moesim_error *err);

/* The whole help text, at most 80 columns. */
void moesim_args_help(const moesim_usage *usage, FILE *out);

/* One row of such a help text: `left` at column `indent`, then `text` wrapped to 80 columns from column `column` on. */
void moesim_args_row(FILE *out, const char *left, unsigned indent, unsigned column, const char *text);

/* Lists grow by this; free with moesim_list_fini. */
moesim_code moesim_list_add(moesim_list *list, const char *item, moesim_error *err);
void moesim_list_fini(moesim_list *list);

#endif
