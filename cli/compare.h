/* SPDX-License-Identifier: Apache-2.0
 *
 * `moesim compare` inside: two results, their common cells, and the difference of every figure between them, paired on
 * requests. compare.c parses and drives, compare_match.c finds the common cells, compare_figures.c the differences,
 * compare_print.c prints. Side 0 is A, side 1 is B.
 */
#ifndef MOESIM_CLI_COMPARE_H
#define MOESIM_CLI_COMPARE_H

#include <stdint.h>
#include <stdio.h>

#include "base/args.h"
#include "sim/result.h"
#include "sim/stats.h"

#define MOESIM_COMPARE_METRICS 32u
#define MOESIM_COMPARE_KEYS 16u

typedef struct moesim_compare_options {
    moesim_list metric;
    const char *policy[2];       /* --a-policy and --b-policy: both or neither */
    const char *path[2];
    int format;                  /* enum moesim_format */
    uint64_t seed;               /* of the resamples and flips */
} moesim_compare_options;

/* A column of /cells whose values must be equal; both sides have it, with one type. */
typedef struct moesim_compare_key {
    const char *name;
    const moesim_column_data *column[2];
} moesim_compare_key;

/* A figure as Σ num / Σ den over requests. */
typedef struct moesim_compare_metric {
    char name[64];
    const char *unit;                        /* "" for a plain number */
    const moesim_column_data *num[2];
    const moesim_column_data *den[2];        /* NULL: 1, so that the figure is a mean over requests */
    bool ratio;                              /* num is the request's own num/den, which den weighs */
} moesim_compare_metric;

typedef struct moesim_compare_pair { size_t row[2]; } moesim_compare_pair;

typedef struct moesim_compare_row {
    size_t pair, metric;
    double value[2];
    moesim_paired result;
    size_t requests;             /* that both have */
} moesim_compare_row;

/* Arrays are owned. */
typedef struct moesim_comparison {
    const moesim_compare_options *options;
    moesim_result result[2];
    const moesim_table *cells[2], *requests[2];
    char difference[700];        /* of the configurations; "" where they are equal */
    size_t num_keys, num_pairs, num_metrics, num_rows;
    moesim_compare_key key[MOESIM_COMPARE_KEYS];
    moesim_compare_pair *pair;   /* in the order of A's cells */
    size_t alone[2];             /* cells that the other side does not have */
    moesim_compare_metric metric[MOESIM_COMPARE_METRICS];
    moesim_compare_row *row;     /* by metric, then pair */
    size_t unpaired;             /* most requests of a pair that only one side has */
} moesim_comparison;

/* Chooses the keys and finds the common cells; none is an error that says in which columns nothing agrees. */
moesim_code moesim_compare_match(moesim_comparison *c, moesim_error *err);

/* Chooses the metrics and computes every difference. */
moesim_code moesim_compare_figures(moesim_comparison *c, moesim_error *err);

/* The policy of a cell, "" where the result has no such column. */
const char *moesim_compare_policy(const moesim_comparison *c, int side, size_t row);

/* Value of a column as text: integers and reals as in CSV, undefined reals "". Returns out, or the text itself. */
const char *moesim_compare_value(const moesim_column_data *column, size_t row, char out[32]);

void moesim_compare_print_table(const moesim_comparison *c, FILE *out);
void moesim_compare_print_csv(const moesim_comparison *c, FILE *out);
moesim_code moesim_compare_print_json(const moesim_comparison *c, FILE *out, moesim_error *err);

#endif
