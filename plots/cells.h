/* SPDX-License-Identifier: Apache-2.0
 *
 * The cells of a result that one figure shows: every dimension of the grid that is not an axis of the figure is held at one
 * value. Pointers into the result; const, shared by any number of threads.
 */
#ifndef MOESIM_PLOTS_CELLS_H
#define MOESIM_PLOTS_CELLS_H

#include <stdbool.h>

#include "plots/chart.h"
#include "plots/figures.h"
#include "sim/result.h"

enum moesim_plot_axes { MOESIM_OVER_CACHE = 1u, MOESIM_OVER_BANDWIDTH = 2u, MOESIM_OVER_TRACE = 4u };

typedef struct moesim_cells {
    const moesim_result *result;
    const moesim_table *table;
    size_t n, *row;                      /* rows of /cells that are shown, in order; owned */
    size_t num_full;                     /* of them the last: cells of policy full that hold for every capacity, whatever
                                          * their own; 0 where full is at the capacities of the other policies */
    size_t num_policies;
    struct moesim_shown_policy {
        const char *name;
        bool bound;
        char mark;                       /* of tables: '*' clairvoyant, '!' not causal, 0 a policy that can be built */
        uint32_t look;                   /* the same whatever is chosen */
    } *policy;                           /* owned */
} moesim_cells;

/* axes: bits of moesim_plot_axes that stay free. Appends to chart->chosen what had to be chosen, and to chart->subtitle what is
 * held. USAGE errors where nothing is left, naming what there is. Release with fini, also after an error. */
moesim_code moesim_cells_select(const moesim_result *result, const moesim_plot_request *request, unsigned axes,
                                moesim_chart *chart, moesim_cells *out, moesim_error *err);
void moesim_cells_fini(moesim_cells *c);

/* Number in a column of a row: of an integer column too; NaN where undefined or absent. */
double moesim_cells_number(const moesim_table *t, const char *column, size_t row);
const char *moesim_cells_text(const moesim_table *t, const char *column, size_t row);    /* "" where absent */

/* Sets y, lo and hi of a point from a figure and its interval, columns NAME, NAME_lo and NAME_hi (or without a final _ms). */
void moesim_cells_figure(const moesim_cells *c, const char *name, size_t row, moesim_point *out);

/* Is the row one of the policy's? */
bool moesim_cells_is(const moesim_cells *c, size_t row, const struct moesim_shown_policy *policy);

/* Row of the whole table with another policy and everything else equal (`column` NULL), or equal but for one column; SIZE_MAX
 * where there is none. */
size_t moesim_cells_twin(const moesim_cells *c, size_t row, const char *policy, const char *column);

/* Is the policy the one of the last num_full rows? */
bool moesim_cells_is_full(const moesim_cells *c, const struct moesim_shown_policy *policy);

/* Distinct numbers of a column among the shown rows but the last num_full, ascending; owned by the caller. */
moesim_code moesim_cells_distinct(const moesim_cells *c, const char *column, double **out, size_t *n, moesim_error *err);

/* Rows of /requests of a cell: [begin, end), empty without the table. FORMAT error where the table is not ordered. */
moesim_code moesim_cells_requests(const moesim_cells *c, size_t row, size_t *begin, size_t *end, moesim_error *err);

/* 95 % interval over the requests of two cells (base SIZE_MAX: of one) of Σ(a − base)/Σ(weight): the columns of /requests are
 * multiplied by `times` (NULL: by 1). workload NULL: all. Also the value itself. NaN where there are no such columns, or where
 * the two cells do not have the same requests. */
typedef struct moesim_ratio { const char *value, *times, *weight, *workload; } moesim_ratio;
moesim_code moesim_cells_ratio(const moesim_cells *c, const moesim_plot_request *request, const moesim_ratio *ratio, size_t row,
                               size_t base, moesim_point *out, moesim_error *err);

/* Can two cells be told apart by this figure of their requests (request->differ)? False where they do not have the same
 * requests. */
moesim_code moesim_cells_differ(const moesim_cells *c, const moesim_plot_request *request, const moesim_ratio *ratio, size_t a,
                                size_t b, bool *out, moesim_error *err);

/* Name in the legend, "belady *", "oled:confidence=hindsight !", "lru". */
void moesim_cells_label(const struct moesim_shown_policy *policy, char *out, size_t bytes);

#endif
