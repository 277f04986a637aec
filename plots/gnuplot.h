/* SPDX-License-Identifier: Apache-2.0
 *
 * gnuplot as a program: found on PATH when it is needed, run without a shell, without the user's settings and with a limit of
 * time. Thread safety: one call at a time.
 */
#ifndef MOESIM_PLOTS_GNUPLOT_H
#define MOESIM_PLOTS_GNUPLOT_H

#include <stdio.h>

#include "base/error.h"

typedef struct moesim_gnuplot {
    char program[4096];
    char terminals[4096];                /* that it has, separated and surrounded by blanks */
} moesim_gnuplot;

/* IO error that names the package where there is none, or where it cannot be run. */
moesim_code moesim_gnuplot_find(moesim_gnuplot *out, moesim_error *err);

/* The terminal to write a file of this name with: png, svg or pdf by its ending. USAGE error for other endings; IO error where
 * this gnuplot lacks the terminal, naming the endings that it can write. */
moesim_code moesim_gnuplot_terminal(const moesim_gnuplot *g, const char *path, const char **out, moesim_error *err);

/* Runs script with data as its first word; what it writes goes to `out` (a file). Errors: IO with gnuplot's own words or where
 * it takes longer than a minute; INTERRUPTED. */
moesim_code moesim_gnuplot_run(const moesim_gnuplot *g, const char *script, const char *data, FILE *out, moesim_error *err);

#endif
