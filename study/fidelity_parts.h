/* SPDX-License-Identifier: Apache-2.0
 *
 * Inside of fidelity: what its files share.
 */
#ifndef MOESIM_STUDY_FIDELITY_PARTS_H
#define MOESIM_STUDY_FIDELITY_PARTS_H

#include "study/fidelity.h"

/* Times of one cell summed up: totals by repeat, and by unit for the bootstrap. */
typedef struct moesim_cell_sums {
    double predicted[MOESIM_VARIANTS];   /* s over the counted passes */
    double *measured;            /* [repeats] s */
    double *unit_predicted;      /* [units] */
    double *unit_measured;       /* [repeats][units] */
} moesim_cell_sums;

/* Scratch of one computation. */
typedef struct moesim_fidelity_work {
    const moesim_fidelity_input *in;
    uint32_t *unit;              /* [num_passes] or MOESIM_NO_REQUEST */
    size_t num_units;
    double tokens;
    moesim_cell_sums *sums;      /* [num_cells] */
} moesim_fidelity_work;

static inline bool moesim_fidelity_is_test(const moesim_fidelity_cell *c)
{
    return !c->reference && !c->calibration;
}

/* The reference that a cell is held against: of the same link if there is one, else any; num_cells: none. */
size_t moesim_fidelity_reference(const moesim_fidelity_input *in, size_t cell);

/* Units, totals. */
moesim_code moesim_fidelity_sum(moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err);
void moesim_fidelity_work_fini(moesim_fidelity_work *w);

/* Figures of every cell with their intervals; the sums must be there. */
moesim_code moesim_fidelity_figures(const moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err);

/* Residuals of every cell, layer, class and variant. */
moesim_code moesim_fidelity_residuals(const moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err);

/* From the figures: errors over cells, order, knees. */
void moesim_fidelity_errors_of(const moesim_fidelity_work *w, moesim_fidelity *out);
moesim_code moesim_fidelity_rank(const moesim_fidelity_work *w, moesim_fidelity *out, moesim_error *err);

#endif
