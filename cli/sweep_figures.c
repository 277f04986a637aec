/* SPDX-License-Identifier: Apache-2.0
 *
 * Figures of the cells of one part with their intervals, on several threads.
 */
#include "cli/sweep.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/parallel.h"
#include "cli/bootstraps.h"
#include "cli/figures.h"

typedef struct job {
    const moesim_cell_result *result;
    size_t n, figures;
    bool global;
    double **column;             /* [figures][3]: value, lo, hi */
    moesim_bootstraps bootstraps;
    size_t *first, pieces;       /* [pieces + 1] cells of one outcome lie together and are one piece of work */
    double *value;               /* [threads][figures] */
    moesim_interval *interval;   /* the same */
} job;

static moesim_code add_columns(const job *j, moesim_table *t, moesim_error *err)
{
    char name[64];
    moesim_code code = MOESIM_OK;
    for (size_t k = 0; k < j->figures && code == MOESIM_OK; k++) {
        const moesim_figure f = moesim_figure_at(k);
        code = moesim_table_reals(t, f.name, f.unit, &j->column[3 * k], err);
        if (code == MOESIM_OK)
            code = moesim_table_reals(t, moesim_figure_bound(f.name, "_lo", name), f.unit, &j->column[3 * k + 1], err);
        if (code == MOESIM_OK)
            code = moesim_table_reals(t, moesim_figure_bound(f.name, "_hi", name), f.unit, &j->column[3 * k + 2], err);
    }
    return code;
}

/* Figures of counts are those of the outcome, the same for all cells of a piece. */
static moesim_code fill_piece(void *cookie, uint32_t worker, size_t piece, moesim_error *err)
{
    const job *j = cookie;
    double *value = j->value + worker * j->figures;
    moesim_interval *interval = j->interval + worker * j->figures;
    moesim_code code = MOESIM_OK;
    for (size_t i = j->first[piece]; i < j->first[piece + 1] && code == MOESIM_OK; i++) {
        const moesim_figure_source source = { j->result[i].outcome, j->result[i].timing, j->global };
        const size_t begin = i > j->first[piece] ? moesim_num_figures(false) : 0;
        code = moesim_figures_fill(j->bootstraps.of[worker], &source, begin, j->figures, value + begin, interval + begin, err);
        for (size_t k = 0; k < j->figures && code == MOESIM_OK; k++) {
            j->column[3 * k][i] = value[k];
            j->column[3 * k + 1][i] = interval[k].lo;
            j->column[3 * k + 2][i] = interval[k].hi;
        }
    }
    return code;
}

static moesim_code make_room(job *j, size_t threads, moesim_error *err)
{
    void *column = NULL, *first = NULL, *value = NULL, *interval = NULL;
    moesim_code code = moesim_alloc(3 * j->figures, sizeof(double *), "columns", &column, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(j->n + 1, sizeof *j->first, "figures", &first, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(threads * j->figures, sizeof *j->value, "figures", &value, err);
    if (code == MOESIM_OK)
        code = moesim_alloc(threads * j->figures, sizeof *j->interval, "intervals", &interval, err);
    j->column = column;
    j->first = first;
    j->value = value;
    j->interval = interval;
    for (size_t i = 0; i < j->n && code == MOESIM_OK; i++)
        if (i == 0 || j->result[i].outcome != j->result[i - 1].outcome)
            j->first[j->pieces++] = i;
    if (code == MOESIM_OK)
        j->first[j->pieces] = j->n;
    return code;
}

moesim_code moesim_sweep_figures(const moesim_sweep *s, const moesim_cell_result *result, size_t n, bool timed, bool global,
                                 moesim_table *cells, moesim_error *err)
{
    job j = { .result = result, .n = n, .figures = moesim_num_figures(timed), .global = global };
    moesim_progress progress = { .always = false };
    moesim_code code = moesim_bootstraps_init(result[0].outcome->num_requests, s->options->seed, s->options->threads,
                                              &j.bootstraps, err);
    if (code == MOESIM_OK)
        code = make_room(&j, j.bootstraps.n, err);
    if (code == MOESIM_OK)
        code = add_columns(&j, cells, err);
    if (code == MOESIM_OK) {
        moesim_progress_begin(&progress, "intervals", j.pieces, n / j.pieces, "cells");
        code = moesim_parallel(j.bootstraps.n, j.pieces, fill_piece, &j, &progress, err);
        moesim_progress_end(&progress);
    }
    moesim_bootstraps_fini(&j.bootstraps);
    free(j.column);
    free(j.first);
    free(j.value);
    free(j.interval);
    return code;
}
